package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// lines does lines of the debugger on a run, from stdin.
func (u *user) debugged(code exit, run, lines string, flags ...string) ended {
	u.t.Helper()
	cmd := u.command(append([]string{"debug", run}, flags...)...)
	cmd.Stdin = strings.NewReader(lines)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	e := ended{exitCode(u.t, cmd.Run()), out.String(), errs.String()}
	if e.code != int(code) {
		u.t.Fatalf("sallyport debug %s: exit code %d, want %d\n%s%s", run, e.code, code, e.stdout, e.messages)
	}
	return e
}

// savingDesk is a run with three calls and a save, which alone writes.
func savingDesk(u *user) {
	u.t.Helper()
	stubDesk(u)
	u.write("sallyport.yaml", strings.Replace(u.read("sallyport.yaml"), "\n  stub__put:", "\n  stub__look: {owner: me, risk: read, result: status}\n  stub__put:", 1))
	u.write("task.yaml", `
task: do it
model:
  script:
    - call: {tool: stub__get, args: {text: a}}
    - call: {tool: stub__look, args: {text: b}}
    - call: {tool: stub__get, args: {text: c}}
    - call: {tool: stub__put, args: {text: the report}}
    - say: done
`)
}

// Going back and forth only reads: no server is called, nothing is appended.
func TestDebug_BackAndForthAHundredTimes(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	u.must(exitOK, "approve", "r", "--sha256", u.digest())
	journal, calls := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout, u.read("stub/calls")
	if u.puts() != 1 || u.reached("get") != 2 || u.reached("look") != 1 {
		t.Fatalf("called: %q", calls)
	}
	got := u.debugged(exitOK, "r", strings.Repeat("continue\nrn\nrewind\nuntil awaiting_approval\nrs\nstep\ngoto 1\n", 100))
	if n := strings.Count(got.stdout, "This is the end: the run is completed."); n != 100 {
		t.Errorf("it came to the end %d times", n)
	}
	if u.read("stub/calls") != calls || u.must(exitOK, "journal", "r", "-o", "jsonl").stdout != journal {
		t.Errorf("called: %q, was %q; the journal is the same: %t", u.read("stub/calls"), calls, u.must(exitOK, "journal", "r", "-o", "jsonl").stdout == journal)
	}
}

// A fork from before the save does not repeat it without a new signature, and the run
// that it is a fork of is not changed.
func TestDebug_AForkFromBeforeTheSave(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	digest := u.digest()
	u.must(exitOK, "approve", "r", "--sha256", digest)
	journal := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout
	got := u.debugged(exitOK, "r", "break tool stub__put\ncontinue\nfork --id f --set calls=+2\ncontinue\ncontinue\ncall\n")
	if u.puts() != 1 || !strings.Contains(got.stdout, "the run waits for a decision") {
		t.Errorf("%d writes\n%s", u.puts(), got.stdout)
	}
	refused := u.debugged(exitDenied, "f", "approve --sha256 "+strings.Repeat("0", 64)+"\n")
	if u.puts() != 1 || !strings.Contains(refused.messages, "the pending candidate has sha256") {
		t.Errorf("%d writes\n%s", u.puts(), refused.messages)
	}
	end := u.debugged(exitOK, "f", "approve --sha256 "+digest+"\ncontinue\ncalls\ndiff r f\n")
	if u.puts() != 2 || u.reached("get") != 2 || !strings.Contains(end.stdout, "the run is completed") {
		t.Errorf("%d writes, %d reads\n%s", u.puts(), u.reached("get"), end.stdout)
	}
	if got := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout; got != journal {
		t.Errorf("the parent has changed:\n%s", got)
	}
	if got := u.must(exitOK, "audit").stdout; strings.Contains(got, "BROKEN") {
		t.Error(got)
	}
}

// A run that another process serves is paused at its next transition, stepped, and
// released; what kills the debugger leaves the run as it is.
func TestDebug_AttachesToALiveRun(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	wait := u.write("stub/wait", "")
	serving := u.open("run", "task.yaml", "--id", "r", "--no-input")
	u.until("the first call is under way", func() bool {
		_, err := os.Stat(u.path("stub", "calls"))
		return err == nil
	})
	d := u.open("debug", "r", "--line")
	d.see("@ step 3/3 · seq 3 · execute")
	d.see(prompt)
	d.enter("pause\r")
	d.see("paused")
	d.see(prompt)
	if err := os.Remove(wait); err != nil {
		t.Fatal(err)
	}
	if code, screen := serving.end(); code != int(exitParked) || !strings.Contains(screen, "is paused") {
		t.Fatalf("exit code %d\n%s", code, screen)
	}
	d.enter("goto end\r")
	d.see("returned")
	d.see(prompt)
	d.enter("step\r")
	d.see("stepped")
	d.see("next_turn")
	d.see("(paused)")
	d.see(prompt)
	if u.reached("get") != 1 || u.reached("look") != 0 {
		t.Errorf("called: %q", u.read("stub/calls"))
	}
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.end()
	before := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout
	if got := u.must(exitOK, "show", "r").stdout; !strings.Contains(got, "model (paused)") {
		t.Errorf("after the debugger was killed:\n%s", got)
	}
	got := u.debugged(exitOK, "r", "step\nresume\nwhere\n")
	if !strings.Contains(got.stdout, "awaiting_approval") || u.puts() != 0 || u.reached("get") != 2 {
		t.Errorf("called: %q\n%s%s", u.read("stub/calls"), got.stdout, got.messages)
	}
	if now := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout; !strings.HasPrefix(now, before) {
		t.Error("what was there has changed")
	}
}

// A run that was not paused goes on when the debugger that follows it is killed.
func TestDebug_KilledWhileItFollows(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	wait := u.write("stub/wait", "")
	serving := u.open("run", "task.yaml", "--id", "r", "--no-input")
	u.until("the first call is under way", func() bool {
		_, err := os.Stat(u.path("stub", "calls"))
		return err == nil
	})
	d := u.open("debug", "r", "--line", "--read-only")
	d.see(prompt)
	d.enter("follow\r")
	d.see("Following run r")
	d.enter(ctrlC) // ends the command, not the debugger
	d.see("interrupted; nothing new was started")
	d.see(prompt)
	d.enter("follow\r")
	d.see("Following run r")
	if err := os.Remove(wait); err != nil {
		t.Fatal(err)
	}
	d.see("next_turn")
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	d.end()
	if code, screen := serving.end(); code != int(exitParked) || !strings.Contains(screen, "waits for approval") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

// On a terminal there are completion and history, a mistake is no end, and what is asked
// is asked as elsewhere.
func TestDebug_OnATerminal(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	d := u.open("debug", "task.yaml", "--line", "--id", "r")
	d.see("@ step 2/2 · seq 2 · model (paused)")
	d.see(prompt)
	d.enter("until aw\t\r")
	d.see("until awaiting_approval")
	d.see("the run waits for a decision")
	d.see(prompt)
	d.enter("nonsense\r")
	d.see(`there is no command "nonsense"`)
	d.see(prompt)
	d.enter("re\t\t")
	d.see("rewind  reject  resume")
	d.enter(ctrlC + "approve\r") // the line is cleared
	d.see("the report")
	d.see("approve? ")
	d.enter("approve\n")
	d.see("granted")
	d.see(prompt)
	d.enter("c\r")
	d.see("This is the end: the run is completed.")
	d.see(prompt)
	d.enter("back\r")
	d.see(prompt)
	d.enter("\r") // again
	d.see("· seq ")
	d.see(prompt)
	d.enter(ctrlD)
	if code, screen := d.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	if u.puts() != 1 {
		t.Errorf("%d writes", u.puts())
	}
	path := u.path("state", "sallyport", historyFile)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the history: %v, %v", info, err)
	}
	again := u.open("debug", "r", "--line")
	again.see(prompt)
	again.enter("\x1b[A\x1b[A\r") // up, up
	again.see("This is the end: the run is completed.")
	again.see(prompt)
	again.enter("quit\r")
	if code, screen := again.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

// Under a service that serves every open run, the debugger pauses a run, and the service
// performs each of its steps.
func TestDebug_StepsARunThatTheServiceServes(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	digest := u.digest()
	service := u.serve(nil)
	got := u.debugged(exitOK, "r", "pause\napprove --sha256 "+digest+"\nstep\nevents\nstep\n")
	if u.puts() != 1 || strings.Contains(got.stdout, "completed") || !strings.Contains(got.stdout, "next_turn") {
		t.Errorf("%d writes\n%s%s", u.puts(), got.stdout, got.messages)
	}
	if got := u.must(exitOK, "show", "r").stdout; !strings.Contains(got, "model (paused)") {
		t.Errorf("it did not stay paused:\n%s", got)
	}
	u.debugged(exitOK, "r", "resume\n")
	service.until("it completes", completes)
	if code := service.end(os.Interrupt); code != 130 || u.puts() != 1 {
		t.Errorf("exit code %d, %d writes", code, u.puts())
	}
}

// An edit is that of approve --edit: signed, granting nothing, with a candidate of its own.
func TestDebug_EditsTheCandidate(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	before := u.digest()
	u.write("other.json", `{"text":"another report"}`)
	got := u.debugged(exitOK, "r", "edit =other.json\ncontinue\ncall\n")
	if u.puts() != 0 || !strings.Contains(got.stdout, "edited") || !strings.Contains(got.stdout, "another report") {
		t.Errorf("%d writes\n%s%s", u.puts(), got.stdout, got.messages)
	}
	u.debugged(exitDenied, "r", "approve --sha256 "+before+"\n")
	u.debugged(exitOK, "r", "approve --sha256 "+u.digest()+"\ncontinue\n")
	if u.puts() != 1 || !strings.Contains(u.read("stub/put"), "another report") {
		t.Errorf("%d writes: %s", u.puts(), u.read("stub/put"))
	}
}

// What nobody knows is not stepped past: a person says what became of it, signed.
func TestDebug_AnUnknownWriteIsVerified(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	u.write("stub/crash", "")
	got := u.debugged(exitOK, "r", "approve --sha256 "+u.digest()+"\ncontinue\nstep\nbt\n")
	if !strings.Contains(got.stdout, "the outcome of a write is unknown") || !strings.Contains(got.stdout, "unknown outcome") || u.puts() != 1 {
		t.Fatalf("%d writes\n%s%s", u.puts(), got.stdout, got.messages)
	}
	if err := os.Remove(u.path("stub", "crash")); err != nil {
		t.Fatal(err)
	}
	got = u.debugged(exitOK, "r", "verify --applied\ncontinue\n")
	if !strings.Contains(got.stdout, "settled") || !strings.Contains(got.stdout, "the run is completed") || u.puts() != 1 {
		t.Errorf("%d writes\n%s%s", u.puts(), got.stdout, got.messages)
	}
}

// The debugger shows no control character of anybody else's.
func TestDebug_ShowsHostileTextEscaped(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	const hostile = "\\e]0;owned\\a\\e[2J\\u202e⟦U+0041⟧\\x9b31m"
	u.write("task.yaml", `
task: "`+hostile+`"
model:
  script:
    - call: {tool: "stub__get", args: {text: "`+hostile+`"}}
    - call: {tool: stub__put, args: {text: "`+hostile+`"}}
`)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	var lines strings.Builder
	for step := range 12 {
		fmt.Fprintf(&lines, "goto %d\n", step+1)
		for _, look := range []string{"call", "outcome", "context", "context --diff", "bt", "p run", "p call", "p entry", "events all", "calls", "grants", "info", "list"} {
			lines.WriteString(look + "\n")
		}
	}
	got := u.debugged(exitOK, "r", lines.String())
	for _, r := range got.stdout + got.messages {
		if r != '\n' && r != '\t' && (r < ' ' || r >= 0x7f && r < 0xa0 || r == 0x202e) {
			t.Fatalf("it shows %U", r)
		}
	}
	if !strings.Contains(got.stdout, "⟦U+001B⟧") || !strings.Contains(got.stdout, "⟦U+202E⟧") {
		t.Error("the hostile text is not shown at all")
	}
}

func TestHistory_KeepsTheNewestLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), historyFile)
	h, err := readHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2*maxHistory + 1 {
		h.Add(fmt.Sprint(i))
		h.Add(fmt.Sprint(i)) // at once again: once
	}
	if h, err = readHistory(path); err != nil || h.Len() != maxHistory || h.At(0) != fmt.Sprint(2*maxHistory) {
		t.Errorf("%d lines, %v", h.Len(), err)
	}
}

// A step tells each entry as it is recorded, once. Ctrl-C says at once that the call which
// was sent is waited for, and then the cursor is where the run is.
func TestDebug_TellsAStepAsItHappens(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	d := u.open("debug", "task.yaml", "--line", "--id", "r")
	d.see(prompt)
	d.enter("step\r")
	d.see("proposed")
	d.see(prompt)
	wait := u.write("stub/wait", "")
	d.enter("step\r")
	d.see("checked") // while the call is under way
	d.enter(ctrlC)
	d.see("Interrupted: nothing new is started; a call that was sent already is waited for.")
	if err := os.Remove(wait); err != nil {
		t.Fatal(err)
	}
	d.see("@ step 7/7 · seq 7 · observe (paused)")
	d.see("interrupted; nothing new was started")
	d.see(prompt)
	d.enter("resume\r")
	d.see("@ step 20/20 · seq 20 · awaiting_approval")
	d.see(prompt)
	d.enter("follow\r")
	d.see("Following run r")
	d.enter(ctrlC)
	d.see(prompt)
	d.enter("pause\r")
	d.see("@ step 21/21 · seq 21 · awaiting_approval (paused)")
	d.see(prompt)
	d.enter(ctrlD)
	code, screen := d.end()
	if code != 0 || u.reached("get") != 2 {
		t.Errorf("exit code %d, called: %q", code, u.read("stub/calls"))
	}
	for seq := 3; seq <= 21; seq++ {
		if n := strings.Count(screen, fmt.Sprintf("live: %4d  ", seq)); n != 1 {
			t.Errorf("entry %d is told %d times\n%s", seq, n, screen)
		}
	}
}

// What stops a follower is not told again.
func TestDebug_FollowingTellsNothingTwice(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	wait := u.write("stub/wait", "")
	serving := u.open("run", "task.yaml", "--id", "r", "--no-input")
	u.until("the first call is under way", func() bool {
		_, err := os.Stat(u.path("stub", "calls"))
		return err == nil
	})
	d := u.open("debug", "r", "--line")
	d.see(prompt)
	d.enter("break awaiting_approval\r")
	d.see("Breakpoint 1")
	d.see(prompt)
	d.enter("follow\r")
	d.see("Following run r")
	if err := os.Remove(wait); err != nil {
		t.Fatal(err)
	}
	d.see("the run waits for a decision")
	d.see(prompt)
	serving.end()
	d.enter("pause\r")
	d.see("(paused)")
	d.see(prompt)
	d.enter(ctrlD)
	if _, screen := d.end(); strings.Count(screen, "live: ") != 1 {
		t.Errorf("more is told than the pause:\n%s", screen)
	}
}

// Where the candidate has expired, no decision is offered, and a step says what it does.
func TestDebug_ACandidateThatHasExpired(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	u.write("sallyport.yaml", strings.Replace(u.read("sallyport.yaml"), "{approvers: 1}", "{approvers: 1, expires: 2s}", 1))
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	u.until("the candidate has expired", func() bool { return strings.Contains(u.run("approvals").stdout, "(expired)") })
	got := u.debugged(exitOK, "r", "goto end\nstep\n").stdout
	before, after, found := strings.Cut(got, prompt+"step\n")
	if !found || !strings.Contains(before, "the candidate has expired at") || strings.Contains(before, "approve, reject") {
		t.Errorf("at the end:\n%s", got)
	}
	said, _, recorded := strings.Cut(after, "live: ")
	if !recorded || !strings.Contains(said, "The candidate has expired at") || !strings.Contains(after, "expired           observe") || !strings.Contains(after, "@ step 19/19 · seq 19 · observe (paused)") {
		t.Errorf("the step:\n%s", after)
	}
}

// What a command does not take is refused, by the command that it was given to.
func TestDebug_RefusesWhatMeansNothing(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	for line, want := range map[string]string{
		"list x": `list: "x" is too much`, "info x": `info: "x" is too much`, "where x": `where: "x" is too much`, "calls x": `calls: "x" is too much`,
		"why x": `bt: "x" is too much`, "c c": `continue: "c" is too much`, "rn x": `rn: "x" is too much`, "follow x": `follow: "x" is too much`,
		"goto 0": "want the number of a step, from 1, or end", "goto -1": "want the number of a step, from 1, or end",
		"until nosuch":     `until "nosuch": there is no such state`,
		"break execute if": "the condition is missing", "watch state if": "the condition is missing",
	} {
		if got := u.debugged(exitUsage, "r", line+"\n"); !strings.Contains(got.messages, want) {
			t.Errorf("%s: %s, want %s", line, got.messages, want)
		}
	}
}
