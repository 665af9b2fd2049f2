package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sallyport/agent"
	"sallyport/agent/audit"
	"sallyport/agent/embedded"
	"sallyport/nodes"
	"sallyport/scenarios"
)

// place is where a death belongs: a crash point of the engine, or one that only the
// document server's side can see.
type place string

const (
	heldAsked place = "held asked" // the request has left the Host, the server has not begun
	heldDone  place = "held done"  // the server has done all, the reply has not arrived
)

// death is one kill: in the command with that number, at the n-th time that the place
// is reached. Its zero value is none.
type death struct {
	command int
	at      place
	nth     int
}

func (d death) String() string {
	if d.at == "" {
		return "nobody is killed"
	}
	return fmt.Sprintf("command %d, %s, %d", d.command, d.at, d.nth)
}

// variable is what tells the process to die.
func (d death) variable() string { return fmt.Sprintf("%s=%s#%d", killVariable, d.at, d.nth) }

// life is one telling of a plot, with at most one death in it.
type life struct {
	*user
	plot  *plot
	death death

	given    int      // commands so far
	again    int      // of which only repeat one
	later    bool     // the engine's clock is past every deadline of a candidate
	killed   bool     // the death has come
	recorded []string // hashes of the journal as it was found after the death
	sending  bool     // the intent of the save was its last word
	told     strings.Builder
}

// home is what every life begins with, made once: keys, and what they are called.
var home = sync.OnceValues(func() (map[string]string, error) {
	dir, err := os.MkdirTemp("", "sallyport-home-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	for _, name := range []string{"home", "tmp"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	for _, name := range []string{"ann", "bob", "cleo"} {
		cmd := (&user{dir: dir}).command("keys", "new", "--no-passphrase", "--as", name)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
	}
	files := map[string]string{}
	err = filepath.WalkDir(filepath.Join(dir, "config"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		files[name] = string(data)
		return err
	})
	files["config/sallyport/config.yaml"] = "approvers: [ann, bob, cleo]\n"
	return files, err
})

// begin prepares a life.
func begin(t *testing.T, p *plot, d death) *life {
	t.Helper()
	l := &life{user: newUser(t), plot: p, death: d}
	files, err := home()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		l.write(name, text)
	}
	text, err := os.ReadFile("../../scenarios/research/sallyport.yaml")
	if err != nil {
		t.Fatal(err)
	}
	config := strings.Replace(string(text), "scope: desk/reading", "scope: desk/reading, timeout: 60s", 1)
	if p.two {
		config = strings.Replace(config, "approvers: 1", "approvers: 2", 1)
	}
	l.write("sallyport.yaml", config)
	l.write("desk/sources/notes.md", draftText)
	l.write("desk/reports/.keep", "")
	l.write("task.yaml", p.script())
	l.write(editFile, editedText)
	l.write(orders+"/calls", "")
	if len(p.dies) > 0 {
		l.write(orders+"/die", strings.Join(p.dies, "\n"))
	}
	return l
}

// maxCommands bounds how many commands a life may take.
const maxCommands = 12

// tell lives the life to its end, and returns the run as it is then.
func (l *life) tell() agent.Run {
	l.t.Helper()
	for range maxCommands {
		run := l.load("state")
		if run.State.Final() {
			return run
		}
		_, err := os.Stat(l.path("desk/reports/report.md"))
		l.give(l.plot.next(run, err == nil))
	}
	l.t.Fatalf("%s: after %d commands the run has not ended:\n%s", l.death, maxCommands, l.told.String())
	return agent.Run{}
}

// give gives a command, and after a death what a person gives first: resume.
func (l *life) give(a act) {
	l.t.Helper()
	was := l.killed
	if a.cancel {
		l.cancelIn(a)
	} else {
		l.end(l.start(a))
	}
	if !l.killed || was {
		return
	}
	l.remember()
	again := l.plot.next(agent.Run{Seq: 1}, false)
	l.give(again)
}

// process is a command under way.
type process struct {
	number  int
	command string
	wait    func() ended
	kill    func()
}

// start starts a command with whatever death is meant for it.
func (l *life) start(a act) process {
	l.t.Helper()
	number := l.given
	l.given++
	cmd := l.command(a.args...)
	cmd.Env = append(cmd.Env, traceVariable+"="+l.path("trace", fmt.Sprint(number)))
	l.later = l.later || a.later // time does not go back
	if l.later {
		cmd.Env = append(cmd.Env, clockVariable+"=25h")
	}
	held := l.mine(number) && (l.death.at == heldAsked || l.death.at == heldDone)
	if held {
		_, when, _ := strings.Cut(string(l.death.at), " ")
		l.write(orders+"/hold", l.plot.held+" "+when)
	} else if l.mine(number) {
		cmd.Env = append(cmd.Env, l.death.variable())
	}
	l.write("trace/.keep", "")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	finished := sync.OnceValue(func() ended { return ended{exitCode(l.t, cmd.Wait()), out.String(), errs.String()} })
	p := process{number, strings.Join(a.args, " "), finished, func() { _ = cmd.Process.Kill() }}
	l.t.Cleanup(func() { p.kill(); p.wait() })
	if held {
		l.until("the call is held", l.isHeld)
		p.kill()
		l.release(p)
	}
	return p
}

// mine reports whether the death is meant for the command.
func (l *life) mine(number int) bool {
	return l.death.at != "" && !l.killed && l.death.command == number
}

// end waits for a command, and says whether it came to its death.
func (l *life) end(p process) {
	l.t.Helper()
	e := p.wait()
	fmt.Fprintf(&l.told, "%d: sallyport %s: exit code %d\n%s%s", p.number, p.command, e.code, e.stdout, e.messages)
	if e.code == -1 {
		l.killed = true
	}
	if l.mine(p.number) {
		l.t.Fatalf("%s: the place was not reached:\n%s", l.death, l.told.String())
	}
}

// cancelIn gives a command and cancels the run while its save is held, if it comes to that.
func (l *life) cancelIn(a act) {
	l.t.Helper()
	l.write(orders+"/hold", saveTool+" done")
	p := l.start(a)
	over := make(chan struct{})
	go func() { // ends with the command, which is waited for below
		defer close(over)
		p.wait()
	}()
	l.until("the save is held or the command over", func() bool {
		select {
		case <-over:
			return true
		default:
			return l.isHeld()
		}
	})
	if l.isHeld() {
		l.end(l.start(does("cancel", "r")))
		if l.killed && l.death.command == l.given-1 {
			l.cancelAgain()
		}
	}
	select {
	case <-over:
		l.release(p)
	default: // the host lives, and is to go on
		l.letGo()
	}
	<-over
	l.end(p)
}

// cancelAgain is what somebody does who does not know whether the first one counted. One
// that was in the inbox does.
func (l *life) cancelAgain() {
	l.t.Helper()
	p := l.start(does("cancel", "r"))
	l.end(p)
	l.again++
	if code := p.wait().code; (l.death.at == embedded.Delivered) != (code == int(exitDenied)) {
		l.t.Errorf("%s: the second cancel ended with %d:\n%s", l.death, code, l.told.String())
	}
}

func (l *life) isHeld() bool {
	_, err := os.Stat(l.path(orders, "held"))
	return err == nil
}

// release takes the order to hold away after a host has ended, once its server is gone: a
// kill may not have reached that yet.
func (l *life) release(host process) {
	l.t.Helper()
	host.wait()
	l.until("the server is gone", func() bool { return len(processesNaming(l.path("state", "sallyport", "servers"))) == 0 })
	l.letGo()
}

// letGo lets a held call go on.
func (l *life) letGo() {
	l.t.Helper()
	for _, name := range []string{"hold", "held"} {
		if err := os.Remove(l.path(orders, name)); err != nil && !os.IsNotExist(err) {
			l.t.Fatal(err)
		}
	}
}

// journal reads the run with its entries and bodies; nothing if there is none.
func (l *life) journal(state string, use func(*embedded.Engine, agent.Run, []agent.Entry)) {
	l.t.Helper()
	dir := l.path(state, "sallyport")
	if _, err := os.Stat(filepath.Join(dir, stateFile)); err != nil {
		return
	}
	e, err := embedded.Open(dir, embedded.Config{})
	if err != nil {
		l.t.Fatalf("%s: %v", l.death, err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			l.t.Error(err)
		}
	}()
	runs, err := e.List(l.t.Context(), agent.Filter{})
	if err != nil || len(runs) == 0 {
		return
	}
	run, entries, err := scenarios.Load(l.t.Context(), e, "r")
	if err != nil {
		l.t.Fatalf("%s: %v\n%s", l.death, err, l.told.String())
	}
	use(e, run, entries)
}

func (l *life) load(state string) (run agent.Run) {
	l.t.Helper()
	l.journal(state, func(_ *embedded.Engine, r agent.Run, _ []agent.Entry) { run = r })
	return run
}

// remember notes what the journal holds after a death, in a copy: the first to open the
// real one is the command itself.
func (l *life) remember() {
	l.t.Helper()
	files, err := filepath.Glob(l.path("state", "sallyport", stateFile) + "*")
	if err != nil {
		l.t.Fatal(err)
	}
	for _, f := range files {
		l.write(filepath.Join("copy", "sallyport", filepath.Base(f)), l.read(filepath.Join("state", "sallyport", filepath.Base(f))))
	}
	l.journal("copy", func(_ *embedded.Engine, run agent.Run, entries []agent.Entry) {
		l.sending = run.Open != nil && run.Open.Kind == agent.Send && run.Call.Proposal.Tool == "docs__"+saveTool
		for _, e := range entries {
			l.recorded = append(l.recorded, e.Hash())
		}
	})
}

// traced counts, for each command, how often it came to each place.
func (l *life) traced() []map[place]int {
	l.t.Helper()
	var out []map[place]int
	for number := range l.given {
		reached := map[place]int{}
		data, err := os.ReadFile(l.path("trace", fmt.Sprint(number)))
		if err != nil && !os.IsNotExist(err) {
			l.t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			reached[place(strings.TrimSpace(line))]++
		}
		out = append(out, reached)
	}
	return out
}

// deaths are all that can be died in a plot, found by telling it once without any.
func deaths(t *testing.T, p *plot) []death {
	t.Helper()
	l := begin(t, p, death{})
	l.check(l.tell())
	var out []death
	for command, reached := range l.traced() {
		if command < p.from {
			continue
		}
		for _, at := range slices.Sorted(maps.Keys(reached)) {
			for n := range reached[at] {
				out = append(out, death{command, at, n + 1})
			}
		}
		if calls := reached["before_perform:send"] + reached["before_perform:verify"]; p.held != "" && calls > 0 && p.holds(command, reached) {
			out = append(out, death{command, heldAsked, 1}, death{command, heldDone, 1})
		}
	}
	return out
}

// holds reports whether the tool that is held is called in that command.
func (p *plot) holds(command int, reached map[place]int) bool {
	if p.held == settleTool {
		return reached["before_perform:verify"] > 0
	}
	return command > 0 == p.saves
}

// check looks at a life that has ended.
func (l *life) check(run agent.Run) {
	l.t.Helper()
	bad := func(format string, args ...any) {
		l.t.Helper()
		l.t.Errorf("%s, %s: %s\n%s", l.plot.name, l.death, fmt.Sprintf(format, args...), l.told.String())
	}
	if l.death.at != "" && !l.killed {
		bad("it was not reached")
	}
	// A resume more, and what was delivered is not to be said again.
	switch n := l.given - l.again - l.plot.commands; {
	case l.death.at == "" && n != 0, l.death.at == embedded.Delivered && n != 1:
		bad("it took %d commands more than without a death", n)
	}
	l.journal("state", func(e *embedded.Engine, _ agent.Run, entries []agent.Entry) {
		l.checkKept(entries, bad)
		body := func(ref agent.BodyRef) ([]byte, error) { return e.Body(l.t.Context(), "r", ref) }
		report, err := audit.Check(e.Journal(l.t.Context(), "r", 1, false), body)
		switch n := report.Counts; {
		case err != nil:
			bad("audit: %v", err)
		case len(report.Findings) > 0:
			bad("audit finds %v", report.Findings)
		case n.Results != n.Calls || n.Writes > 1:
			bad("%d calls, %d results, %d writes", n.Calls, n.Results, n.Writes)
		}
		messages, err := nodes.Context("", nodes.Window{}, e.Journal(l.t.Context(), "r", 1, false), body)
		if err != nil {
			bad("%v", err)
		}
		l.checkHistory(run, messages, bad)
		l.checkTruth(run, entries, messages, bad)
	})
}

type complain func(format string, args ...any)

// checkKept: what was in the journal after the death is there, and where it was.
func (l *life) checkKept(entries []agent.Entry, bad complain) {
	for i, hash := range l.recorded {
		if i >= len(entries) || entries[i].Hash() != hash {
			bad("entry %d was lost or changed", i+1)
			return
		}
	}
}

// checkHistory: each call of the model is answered once, in order, before the next turn.
func (l *life) checkHistory(run agent.Run, messages []nodes.Message, bad complain) {
	var owed []string
	for i, m := range messages {
		switch {
		case m.Role == nodes.RoleTool && (len(owed) == 0 || owed[0] != m.ToolCallID):
			bad("message %d answers %q, owed are %q", i, m.ToolCallID, owed)
		case m.Role == nodes.RoleTool:
			owed = owed[1:]
		case len(owed) > 0:
			bad("message %d comes while %q are owed an answer", i, owed)
		}
		for _, c := range m.ToolCalls {
			owed = append(owed, c.ID)
		}
	}
	last := messages[len(messages)-1]
	if run.State == agent.StateCompleted && (last.Role != nodes.RoleAssistant || last.Content != finalWords) || len(owed) > 0 {
		bad("the history ends with %v, owed are %q", last, owed)
	}
}

// checkTruth: there is at most one write, and what the model was told of it is so.
func (l *life) checkTruth(run agent.Run, entries []agent.Entry, messages []nodes.Message, bad complain) {
	w, decided, cancelled := l.plot.want, false, false
	for _, e := range entries {
		decided = decided || e.Row == agent.RowOutcomeUnknown
		cancelled = cancelled || e.Row == agent.RowCancelAsked
	}
	state := w.state
	if state == agent.StateCancelled && !cancelled { // killed before anybody could cancel
		state = agent.StateCompleted
	}
	if run.State != state {
		bad("the run is %s (%s), want %s", run.State, run.Reason, state)
	}
	reports, written := l.reports()
	told := observations(messages, bad)
	if n := strings.Count(l.read(orders+"/calls"), saveTool+"\n"); n > 1 {
		bad("%d saves reached the server", n)
	}
	want := 1
	if l.plot.saves {
		want = 2
	}
	if len(told) != want {
		bad("the model has %d results, want %d", len(told), want)
		return
	}
	if read := told[0]; read.Status != agent.StatusOK || !strings.Contains(string(read.Untrusted.Data), jsonText(draftText)) {
		bad("the model was told of the read: %+v", read)
	}
	if !l.plot.saves {
		return
	}
	save := told[1]
	said := cmp.Or(w.said, saidSaved)
	if decided {
		said = map[bool]string{true: saidApplied, false: saidNot}[reports == 1]
	}
	switch {
	case reports > 1 || reports == 1 && written != textOf(w):
		bad("%d reports, the first is %q", reports, written)
	case (save.Status == agent.StatusOK) != (reports == 1):
		bad("the model was told %s, and there are %d reports", save.Status, reports)
	case !decided && (reports == 1) == w.nothing:
		bad("there are %d reports, and nobody had to find that out", reports)
	case !strings.Contains(save.Message, said):
		bad("the model was told %q, want %q", save.Message, said)
	case decided != (w.uncertain || l.sending):
		bad("a check decided: %t, want %t", decided, w.uncertain || l.sending)
	case l.plot.held == saveTool && (l.death.at == heldAsked && reports > 0 || l.death.at == heldDone && reports == 0):
		bad("there are %d reports", reports)
	}
}

// textOf is what a report holds, if there is one.
func textOf(w want) string { return cmp.Or(w.text, draftText) }

// reports counts what is in the folder, drafts and all, and reads the report.
func (l *life) reports() (n int, text string) {
	l.t.Helper()
	found, err := os.ReadDir(l.path("desk/reports"))
	if err != nil {
		l.t.Fatal(err)
	}
	for _, f := range found {
		if f.Name() != ".keep" {
			n, text = n+1, l.read(filepath.Join("desk/reports", f.Name()))
		}
	}
	return n, text
}

func observations(messages []nodes.Message, bad complain) []nodes.Observation {
	var out []nodes.Observation
	for _, m := range messages {
		if m.Role != nodes.RoleTool {
			continue
		}
		o, err := nodes.ParseObservation(m.Content)
		if err != nil {
			bad("%v", err)
		}
		out = append(out, o)
	}
	return out
}

func jsonText(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string
	}
	return string(data)
}
