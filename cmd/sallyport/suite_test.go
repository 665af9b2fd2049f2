package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"sallyport/scenarios/suite"
)

// suiteDesk gives the user a suite of two scenarios over a stub: quick does not call
// it, and slow waits for as long as stub/wait is there.
func suiteDesk(u *user) {
	u.t.Helper()
	u.write("stub/wait", "")
	u.write("pack/sallyport.yaml", `
servers:
  stub: {command: [`+yamlText(stubPath(u))+`, `+yamlText(u.path("stub"))+`], timeout: 60s}
tools:
  stub__get: {owner: me, risk: read, result: status}
`)
	const head = "task: get\nexpect: {state: completed}\nmodel:\n  script:\n"
	u.write("pack/quick.yaml", "scenario: Quick\n"+head+"    - say: x\n")
	u.write("pack/slow.yaml", "scenario: Slow\n"+head+"    - call: {tool: stub__get, args: {text: a}}\n    - say: x\n")
}

func (u *user) emptyTemp() {
	u.t.Helper()
	if left, err := os.ReadDir(u.path("tmp")); err != nil || len(left) > 0 {
		u.t.Errorf("left behind: %v, %v", left, err)
	}
}

// On a terminal one line says how far the suite is; it is gone in the end.
func TestSuite_OneLineOfProgressOnATerminal(t *testing.T) {
	u := newUser(t)
	suiteDesk(u)
	s := u.open("test", "pack", "-j", "1", "-v")
	s.see("\r\x1b[K0 of 2  0s  pack/quick")
	s.see("PASS    pack/quick  Quick")
	s.see("1 of 2  1s  pack/slow")
	if err := os.Remove(u.path("stub/wait")); err != nil {
		t.Fatal(err)
	}
	s.see("PASS    pack/slow  Slow")
	code, screen := s.end()
	last := screen[strings.LastIndex(screen, "\x1b[K")+len("\x1b[K"):]
	if code != 0 || !strings.HasPrefix(last, "2 scenarios: 2 passed, in ") || strings.Count(last, "\n") != 1 {
		t.Errorf("exit code %d, the screen ends with %q", code, last)
	}
	u.emptyTemp()
}

// Ctrl-C starts nothing new, stops what is played, and says what was done.
func TestSuite_Interrupted(t *testing.T) {
	u := newUser(t)
	suiteDesk(u)
	u.write("pack/tail.yaml", "scenario: Tail\ntask: x\nexpect: {state: completed}\nmodel: {script: [{say: x}]}\n")
	s := u.open("test", "pack", "-j", "1", "-o", "tap", "--out", "report.tap")
	u.until("the call reached the server", func() bool { return strings.Contains(u.calls(), "get\n") })
	s.enter(ctrlC)
	code, screen := s.end()
	if code != int(exitInterrupted) || !strings.Contains(screen, "STOPPED pack/slow  Slow (") || !strings.Contains(screen, "3 scenarios: 1 passed, 1 stopped, 1 not run, in ") || !strings.Contains(screen, ", interrupted\n") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	report := u.read("report.tap")
	for _, row := range []string{"ok 1 - pack/quick: Quick\n", "not ok 2 - pack/slow: Slow # interrupted\n", "ok 3 - pack/tail: Tail # SKIP not run\n", "Bail out! interrupted\n"} {
		if !strings.Contains(report, row) {
			t.Errorf("the report lacks %q:\n%s", row, report)
		}
	}
	u.emptyTemp()
}

// The second Ctrl-C waits for nothing, and leaves nothing.
func TestSuite_InterruptedTwice(t *testing.T) {
	u := newUser(t)
	suiteDesk(u)
	s := u.open("test", "pack", "-run", "slow")
	u.until("the call reached the server", func() bool { return strings.Contains(u.calls(), "get\n") })
	began := time.Now()
	s.enter(ctrlC)
	s.see("Ctrl-C again ends at once")
	s.enter(ctrlC)
	if code, screen := s.end(); code != int(exitInterrupted) || time.Since(began) > 4*time.Second || !strings.Contains(screen, "\nEnded at once") {
		t.Errorf("exit code %d after %s\n%s", code, time.Since(began), screen)
	}
	u.emptyTemp()
}

// A suite that is killed leaves no player, no server and no folder.
func TestSuite_Killed(t *testing.T) {
	u := newUser(t)
	suiteDesk(u)
	cmd := u.command("test", "pack", "-run", "slow")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	u.until("the call reached the server", func() bool { return strings.Contains(u.calls(), "get\n") })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if alive := lingering(u.dir); len(alive) > 0 {
		t.Errorf("still alive: %q", alive)
	}
	u.until("nothing was left behind", func() bool {
		left, err := os.ReadDir(u.path("tmp"))
		return err == nil && len(left) == 0
	})
}

// What is passed over is counted, and named if it is asked; what is wrong with the flags
// is said once.
func TestSuite_SaysWhatItDidNotPlay(t *testing.T) {
	u := newUser(t)
	suiteDesk(u)
	u.write("pack/typo.yml", "scenaro: x\n")
	e := u.must(exitOK, "test", "pack", "-run", "quick", "-v")
	for _, want := range []string{"Warning: pack/typo.yml: passed over: ", "Passed over: 2 YAML files without `scenario:`\n  pack/sallyport.yaml\n  pack/typo.yml\n"} {
		if !strings.Contains(e.messages, want) {
			t.Errorf("it does not say %q:\n%s", want, e.messages)
		}
	}
	if e := u.must(exitUsage, "test", "pack", "-run", "a", "-run", "b"); !strings.Contains(e.messages, "given twice") {
		t.Errorf("%s", e.messages)
	}
	if e := u.must(exitUsage, "test", "pack", "--config", "none.yaml"); strings.Count(e.messages, "none.yaml") != 1 {
		t.Errorf("%s", e.messages)
	}
	if e := u.must(exitOK, "test", "--help"); !strings.Contains(e.stdout, "jsonl, junit or tap") {
		t.Errorf("%s", e.stdout)
	}
}

// calls are those that have reached the stub.
func (u *user) calls() string {
	data, err := os.ReadFile(u.path("stub", "calls"))
	if err != nil {
		return ""
	}
	return string(data)
}

func TestTestLine_FitsItsTerminal(t *testing.T) {
	var b strings.Builder
	l := newTestLine(&b, 30, 12)
	l.Started(suite.Case{Name: "research/証拠の検索-and-a-long-name"})
	l.Started(suite.Case{Name: "x\x1b[2J"})
	l.Finished(suite.Case{Name: "x\x1b[2J"}, suite.Result{Status: suite.StatusFailed})
	l.end()
	for _, row := range strings.Split(b.String(), clearLine) {
		if cells(row) > 29 || strings.Contains(row, "\x1b") {
			t.Errorf("%d cells: %q", cells(row), row)
		}
	}
	if want := "1 of 12, 1 not passed  0s  res"; !strings.Contains(b.String(), want[:29]) {
		t.Errorf("%q", b.String())
	}
}

func cells(text string) int {
	n := 0
	for _, r := range text {
		n++
		if r >= 0x1100 {
			n++
		}
	}
	return n
}

func TestOneDash(t *testing.T) {
	for in, want := range map[string]string{
		"test x -run a":        "test x --run a",
		"test -run=a -j 2 x":   "test --run=a -j 2 x",
		"run x.yaml -run":      "run x.yaml -run",
		"test -- -run":         "test -- -run",
		"--no-input test -run": "--no-input test --run",
	} {
		if got := strings.Join(oneDash(strings.Fields(in)), " "); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}
