package agent_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

// story is a run that uses every kind of entry and most events.
func story(t *testing.T) *trace {
	t.Helper()
	spec := enginetest.Spec("story")
	spec.Prices = &agent.Prices{Currency: "EUR", Input: 2_500_000, Cached: 1_250_000, Output: 10_000_000}
	spec.Budget.Cost = 1_000_000
	tr := begin(t, spec)
	tr.node(agent.TurnRefused{Reason: "length", Message: ref("cut off"), Usage: agent.Usage{Input: 90, Output: 7, Cached: 64}})
	tr.node(agent.Unreached{Reason: "timeout", After: 1})
	tr.node(proposes(enginetest.ToolRead, enginetest.ToolWrite))
	tr.outside(agent.Pause{})
	tr.note(agent.FromNode(tr.run.Open.Effect, tr.checked(), tr.tickTock()))
	tr.outside(agent.StepOnce{})
	tr.outside(agent.Resume{})
	tr.node(tr.checked())
	tr.node(came(agent.StatusOK, agent.ClassOK))
	tr.node(observed(agent.StatusOK, agent.ClassOK))
	tr.node(enginetest.Waiting(tr.task(), arguments))
	tr.node(agent.Observed{Status: agent.StatusWaitingApproval, Class: agent.ClassPermissionRefused})
	tr.note(agent.FromOutside(enginetest.Sign(tr.run, "mallory", tr.now), "mallory", tr.tickTock()))
	tr.outside(agent.Extend{Budget: agent.Budget{Calls: 1, Cost: 500}})
	tr.outside(tr.sign("alice"))
	tr.attempt()
	tr.node(tr.checked())
	tr.node(came(agent.StatusResultUnknown, agent.ClassTimeout))
	tr.node(agent.Observed{Status: agent.StatusResultUnknown, Class: agent.ClassTimeout})
	tr.node(agent.Verified{Finding: agent.Undecided, Reason: "other_bytes"})
	tr.outside(enginetest.Statement(tr.run, "bob", string(agent.Applied), tr.now))
	tr.node(observed(agent.StatusOK, agent.ClassOK))
	tr.erase()
	tr.node(agent.Turned{Message: ref("answer")})
	return tr
}

func (tr *trace) note(ev agent.Event) {
	tr.t.Helper()
	var no *agent.Refusal
	if _, _, err := agent.Step(tr.run, ev); !errors.As(err, &no) {
		tr.t.Fatalf("%s was not refused", ev.Kind())
	}
	run, entry, ok, err := agent.Note(tr.run, ev, no)
	if err != nil || !ok {
		tr.t.Fatalf("note: %t, %v", ok, err)
	}
	tr.run, tr.entries = run, append(tr.entries, entry)
}

func (tr *trace) attempt() {
	tr.t.Helper()
	run, entry, err := agent.Attempt(tr.run, tr.tickTock())
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.run, tr.entries = run, append(tr.entries, entry)
}

func (tr *trace) erase() {
	tr.t.Helper()
	run, entry, err := agent.Erase(tr.run, ref("told"), "operator", tr.tickTock())
	if err != nil {
		tr.t.Fatal(err)
	}
	tr.run, tr.entries = run, append(tr.entries, entry)
}

// TestJournal_Version2 holds the wire form still: the bytes of a whole run, and that
// what was written is read back to the same run. The file is frozen: a difference is a
// new version of the format, not a reason for -update.
func TestJournal_Version2(t *testing.T) {
	tr := story(t)
	var b bytes.Buffer
	for _, e := range tr.entries {
		b.Write(e.Bytes())
		b.WriteByte('\n')
	}
	golden(t, "testdata/journal-v2.jsonl", b.String())
	raw, err := os.ReadFile("testdata/journal-v2.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	run, err := agent.Replay(parsed(bytes.Split(bytes.TrimSpace(raw), []byte("\n"))))
	if err != nil {
		t.Fatal(err)
	}
	if run.Head != tr.run.Head || fmt.Sprint(deep(run)) != fmt.Sprint(deep(tr.run)) {
		t.Errorf("read back as\n%v\nwas\n%v", deep(run), deep(tr.run))
	}
	seen := map[agent.EntryKind]bool{}
	for _, e := range tr.entries {
		seen[e.Kind] = true
		if _, err := e.Payload(); e.Event != "" && err != nil {
			t.Errorf("entry %d: %v", e.Seq, err)
		}
	}
	if len(seen) != 4 {
		t.Errorf("the story has the kinds %v, want all four", seen)
	}
}

// TestJournal_Version2OfAFork holds the form of a fork still: what it carries of a run
// that used every kind of entry, with a write in flight, and what an operator gives.
func TestJournal_Version2OfAFork(t *testing.T) {
	parent := story(t)
	var inFlight int64
	for _, e := range parent.entries {
		if e.Row == agent.RowChecked {
			inFlight = e.Seq
		}
	}
	spec := parent.forkSpec(inFlight)
	spec.Prices = parent.run.Spec.Prices
	tr := parent.carried(spec)
	tr.node(agent.Observed{Status: agent.StatusResultUnknown, Class: agent.ClassProtocolError, Reason: agent.ReasonCrashed})
	tr.outside(enginetest.Statement(tr.run, "bob", string(agent.NotApplied), tr.now))
	tr.node(agent.Observed{Status: agent.StatusFailed, Class: agent.ClassToolError, Reason: agent.ReasonSettled, Message: ref("told")})
	for range 2 { // a turn, and a result
		give := tr.substitute()
		tr.outside(give)
		tr.node(give.Answer())
	}
	tr.node(observed(agent.StatusOK, agent.ClassOK))
	tr.node(agent.Turned{Message: ref("answer")})
	var b bytes.Buffer
	for _, e := range tr.entries {
		b.Write(e.Bytes())
		b.WriteByte('\n')
	}
	golden(t, "testdata/journal-v2-fork.jsonl", b.String())
	run, err := agent.Replay(parsed(bytes.Split(bytes.TrimSpace(b.Bytes()), []byte("\n"))))
	if err != nil || run.State != agent.StateCompleted || fmt.Sprint(deep(run)) != fmt.Sprint(deep(tr.run)) {
		t.Errorf("read back as\n%v, %v\nwas\n%v", deep(run), err, deep(tr.run))
	}
}

// TestJournal_OlderVersionsAreReadAndGoOn: a run from an earlier format replays, and
// this program writes each of its entries bit for bit as the earlier one did.
func TestJournal_OlderVersionsAreReadAndGoOn(t *testing.T) {
	for version := range agent.Version {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			lines := fixture(t, version)
			if _, err := agent.Replay(parsed(lines)); err != nil {
				t.Fatal(err)
			}
			run, err := agent.Replay(parsed(lines[:1]))
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range lines[1:] {
				was, err := agent.ParseEntry(line)
				if err != nil {
					t.Fatal(err)
				}
				if was.Kind == agent.EntryEvent {
					_, entry, err := agent.Advance(run, agent.Said(was))
					if err != nil || !bytes.Equal(entry.Bytes(), line) {
						t.Errorf("entry %d is now %s, %v; was %s", i+2, entry.Bytes(), err, line)
					}
				}
				if run, err = agent.Apply(run, was); err != nil {
					t.Fatal(err)
				}
			}
			newer := fmt.Appendf(nil, `"v":%d`, version+1)
			mixed := [][]byte{lines[0], bytes.Replace(lines[1], fmt.Appendf(nil, `"v":%d`, version), newer, 1)}
			if _, err := agent.Replay(parsed(mixed)); !errors.Is(err, agent.ErrIntegrity) {
				t.Errorf("two formats in one run: %v, want ErrIntegrity", err)
			}
		})
	}
}

// TestJournal_AnOlderRunKeepsItsForm: what a format cannot say is left out of a run of
// it where nothing depends on it, and refused where something does.
func TestJournal_AnOlderRunKeepsItsForm(t *testing.T) {
	for version := range agent.Version {
		run, err := agent.Replay(parsed(fixture(t, version)[:1]))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []agent.Result{
			agent.Turned{Message: ref("said"), Usage: agent.Usage{Input: 9, Cached: 5}},
			agent.TurnRefused{Message: ref("said"), Usage: agent.Usage{Input: 9, Cached: 5}},
		} {
			_, entry, err := agent.Advance(run, agent.FromNode(run.Open.Effect, r, run.Time))
			if err != nil || entry.Version != version || bytes.Contains(entry.Bytes(), []byte("cached")) {
				t.Errorf("version %d: %T became %s, %v", version, r, entry.Bytes(), err)
			}
		}
		_, _, err = agent.Advance(run, agent.FromOutside(agent.Extend{Budget: agent.Budget{Calls: 1, Cost: 1}}, "o", run.Time))
		var no *agent.Refusal
		if !errors.As(err, &no) || no.Code != agent.CodeInvalid {
			t.Errorf("version %d: an extension of the cost: %v, want refusal %s", version, err, agent.CodeInvalid)
		}
		spec := enginetest.Spec(run.ID)
		spec.Prices = &agent.Prices{Currency: "EUR"}
		_, err = agent.Replay(parsed([][]byte{bytes.Replace(begin(t, spec).entries[0].Bytes(), []byte(`"v":2`), fmt.Appendf(nil, `"v":%d`, version), 1)}))
		if !errors.Is(err, agent.ErrIntegrity) {
			t.Errorf("version %d: prices: %v, want ErrIntegrity", version, err)
		}
	}
}

// fixture are the lines of the frozen journal of a format.
func fixture(t *testing.T, version int) [][]byte {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("testdata/journal-v%d.jsonl", version))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
}

func parsed(lines [][]byte) func(func(agent.Entry, error) bool) {
	return func(yield func(agent.Entry, error) bool) {
		for _, line := range lines {
			e, err := agent.ParseEntry(line)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// TestReplay_FindsEveryBreak: a changed byte, an entry gone, swapped, repeated, or
// taken from another run.
func TestReplay_FindsEveryBreak(t *testing.T) {
	tr := story(t)
	lines := make([][]byte, len(tr.entries))
	for i, e := range tr.entries {
		lines[i] = e.Bytes()
	}
	other := begin(t, enginetest.Spec("other"))
	for name, spoil := range map[string]func([][]byte) [][]byte{
		"removed":   func(l [][]byte) [][]byte { return append(l[:5:5], l[6:]...) },
		"no first":  func(l [][]byte) [][]byte { return l[1:] },
		"swapped":   func(l [][]byte) [][]byte { l[7], l[8] = l[8], l[7]; return l },
		"repeated":  func(l [][]byte) [][]byte { return append(l[:5:5], l[4:]...) },
		"other run": func(l [][]byte) [][]byte { l[0] = other.entries[0].Bytes(); return l },
		"state": func(l [][]byte) [][]byte {
			l[len(l)-1] = bytes.Replace(l[len(l)-1], []byte(`"completed"`), []byte(`"cancelled"`), 1)
			return l
		},
		"origin": func(l [][]byte) [][]byte {
			l[len(l)-1] = bytes.Replace(l[len(l)-1], []byte(`"model"`), []byte(`"operator"`), 1)
			return l
		},
		"member added": func(l [][]byte) [][]byte {
			l[3] = append([]byte(`{"x":1,`), l[3][1:]...)
			return l
		},
	} {
		got := spoil(append([][]byte{}, lines...))
		if _, err := agent.Replay(parsed(got)); !errors.Is(err, agent.ErrIntegrity) {
			t.Errorf("%s: %v, want ErrIntegrity", name, err)
		}
	}
	for i := range lines {
		for _, at := range []int{len(lines[i]) / 3, len(lines[i]) / 2} {
			spoilt := append([][]byte{}, lines...)
			spoilt[i] = append([]byte{}, lines[i]...)
			spoilt[i][at] ^= 1
			run, err := agent.Replay(parsed(spoilt))
			// The last entry's hash is only in the head: a change there that still
			// replays shows in the head, which approvals sign and audit names.
			if err == nil && run.Head == tr.run.Head {
				t.Errorf("entry %d with byte %d changed replays to the same head", i+1, at)
			}
		}
	}
}

// TestAttempt_NeverAtTheSendOfAWrite: what may have written is not done again.
func TestAttempt_NeverAtTheSendOfAWrite(t *testing.T) {
	tr := upToSend(t)
	if _, _, err := agent.Attempt(tr.run, tr.now); err == nil {
		t.Error("an attempt at the Send of a write was recorded")
	}
}

// TestStep_RefusesImpossibleUsage: no provider gives tokens back.
func TestStep_RefusesImpossibleUsage(t *testing.T) {
	for _, u := range []agent.Usage{{Input: -1}, {Output: -1}, {Input: 1 << 62}, {Input: 1, Cached: 2}, {Input: 1, Cached: -1}} {
		tr := begin(t, enginetest.Spec("r"))
		turned := proposes(enginetest.ToolRead)
		turned.Usage = u
		if _, _, err := agent.Step(tr.run, agent.FromNode(tr.run.Open.Effect, turned, tr.now)); err == nil {
			t.Errorf("usage %+v was taken", u)
		}
	}
}

// TestReplay_RefusesWhatIsNewer: by name, not as damage.
func TestReplay_RefusesWhatIsNewer(t *testing.T) {
	tr := story(t)
	first := string(tr.entries[0].Bytes())
	for name, line := range map[string]string{
		"format": strings.Replace(first, `"v":2`, `"v":3`, 1),
		"rules":  strings.Replace(first, `"rules":0`, `"rules":1`, 1),
	} {
		if line == first {
			t.Fatalf("%s: nothing was replaced", name)
		}
		if _, err := agent.Replay(parsed([][]byte{[]byte(line)})); !errors.Is(err, agent.ErrNewer) {
			t.Errorf("%s: %v, want ErrNewer", name, err)
		}
	}
}

// TestNote_IsBounded: a flood of forged decisions fills a hundred entries, no more.
func TestNote_IsBounded(t *testing.T) {
	tr := upToWaiting(t, enginetest.ToolWrite)
	ev := agent.FromOutside(agent.Approve{Grant: "x"}, "mallory", tr.now)
	for i := range agent.MaxNoted + 5 {
		run, _, ok, err := agent.Note(tr.run, ev, &agent.Refusal{Code: agent.CodeForged})
		if err != nil || ok != (i < agent.MaxNoted) {
			t.Fatalf("note %d: %t, %v", i+1, ok, err)
		}
		tr.run = run
	}
}

// TestDecisions_HaveAWireForm: each decision survives an inbox, and nothing else does.
func TestDecisions_HaveAWireForm(t *testing.T) {
	for _, d := range []agent.Decision{
		agent.Approve{Grant: "g"}, agent.Refuse{Candidate: "c", Signed: "s"}, agent.Edit{Signed: "s", Arguments: arguments},
		agent.Attest{Signed: "s"}, agent.Cancel{Abandon: true}, agent.Pause{}, agent.Resume{}, agent.StepOnce{},
		agent.Extend{Budget: agent.Budget{Calls: 1}},
	} {
		kind, data, err := agent.EncodeDecision(d)
		if err != nil {
			t.Fatal(err)
		}
		back, err := agent.DecodeDecision(kind, data)
		if err != nil || back != d {
			t.Errorf("%T came back as %#v, %v", d, back, err)
		}
		if _, err := agent.DecodeDecision(kind, append([]byte(`{"x":1,`), data[1:]...)); err == nil {
			t.Errorf("%T with an extra member was taken", d)
		}
	}
	if _, err := agent.DecodeDecision(agent.KindTurned, []byte(`{"message":{"sha256":"","bytes":0}}`)); err == nil {
		t.Error("a model's turn passed as a decision")
	}
}

// TestKillPoints_InMemory kills the engine at every durable append and around every
// effect of a run with a read and a granted write, starts again from what was durable,
// and checks: no request twice but a read's, one result a call, the run completes.
func TestKillPoints_InMemory(t *testing.T) {
	script := enginetest.Script{{enginetest.ToolRead, enginetest.ToolWrite}, {enginetest.ToolRead}}
	points := 0
	for at := 1; ; at++ {
		if !killAt(t, script, at) {
			break
		}
		points++
	}
	if points < 40 {
		t.Errorf("only %d kill points were tried", points)
	}
	t.Logf("%d kill points", points)
}

// killAt runs the script, kills the engine at its n-th point, and goes on with what is
// durable. It returns false if the run ended before.
func killAt(t *testing.T, script enginetest.Script, n int) bool {
	t.Helper()
	killed := make(chan struct{})
	count := make(chan int, 1)
	count <- 0
	w := &enginetest.World{}
	m := enginetest.NewMemory(nil, func(string) {
		c := <-count
		c++
		count <- c
		if c == n {
			close(killed)
		}
		if c >= n {
			select {} // the process is gone
		}
	})
	if _, err := m.Start(t.Context(), enginetest.Spec("k"), "tester", []agent.Body{enginetest.Task}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan bool, 1)
	go func() { ended <- finish(t, m, w, script) }()
	select {
	case <-ended:
		return false
	case <-killed:
	}
	after := m.Crashed()
	if !finish(t, after, w, script) {
		t.Fatalf("point %d: the run did not complete after the restart", n)
	}
	run, err := agent.Replay(after.Journal(t.Context(), "k", 1, false))
	if err != nil {
		t.Fatalf("point %d: %v", n, err)
	}
	if run.Used.Calls != 3 {
		t.Errorf("point %d: %d calls were counted, want 3", n, run.Used.Calls)
	}
	var intents, told int
	for e, err := range after.Journal(t.Context(), "k", 1, false) {
		if err != nil {
			t.Fatal(err)
		}
		intents += count1(e.Row == agent.RowChecked)
		told += count1(e.Row == agent.RowNextCall || e.Row == agent.RowNextTurn)
	}
	if intents != 3 || told != 3 {
		t.Errorf("point %d: %d intents, %d results; want 3 of each", n, intents, told)
	}
	if writes := w.Sent(agent.CallID("k", proposedAt(t, after), 1)); writes > 1 {
		t.Errorf("point %d: the write was sent %d times", n, writes)
	}
	return true
}

// proposedAt is the sequence of the first proposed event.
func proposedAt(t *testing.T, e agent.Engine) int64 {
	for entry, err := range e.Journal(t.Context(), "k", 1, false) {
		if err == nil && entry.Row == agent.RowProposed {
			return entry.Seq
		}
	}
	t.Fatal("nothing was proposed")
	return 0
}

// finish serves the run to its end, approving what it asks for.
func finish(t *testing.T, e agent.Engine, w *enginetest.World, script enginetest.Script) bool {
	for range 10 {
		if err := e.Serve(t.Context(), agent.ServeOptions{Runs: []string{"k"}}, w.Nodes(script)); err != nil {
			return false
		}
		run, err := agent.Replay(e.Journal(t.Context(), "k", 1, false))
		switch {
		case err != nil:
			return false
		case run.State == agent.StateCompleted:
			return true
		case run.State == agent.StateAwaitingApproval:
			if _, err := e.Deliver(t.Context(), "k", enginetest.Deliver(enginetest.Sign(run, "alice", time.Now()), "")); err != nil {
				return false
			}
		}
	}
	return false
}

func count1(yes bool) int {
	if yes {
		return 1
	}
	return 0
}
