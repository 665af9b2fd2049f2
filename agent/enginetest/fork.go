package enginetest

import (
	"errors"
	"testing"

	"sallyport/agent"
)

// ForkOf is a Spec of a fork of the run at an entry; at 0 is the latest that serves.
func ForkOf(t *testing.T, e agent.Engine, parent string, at int64, run string) agent.Spec {
	t.Helper()
	point, _, err := agent.ForkPoint(e.Journal(t.Context(), parent, 1, false), at)
	if err != nil {
		t.Fatalf("fork %s at %d: %v", parent, at, err)
	}
	spec := Spec(run)
	spec.Fork = &point
	return spec
}

// after is the sequence of the run's n-th entry of a row.
func (h Harness) after(t *testing.T, id string, row agent.Row, n int) int64 {
	t.Helper()
	for e, err := range h.Journal(t.Context(), id, 1, false) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Row == row {
			if n--; n == 0 {
				return e.Seq
			}
		}
	}
	t.Fatalf("run %s has no such row %s", id, row)
	return 0
}

// named fails if a body that the run's entries name is not there.
func (h Harness) named(t *testing.T, id string) {
	t.Helper()
	for e, err := range h.Journal(t.Context(), id, 1, false) {
		if err != nil {
			t.Fatal(err)
		}
		refs, err := e.Bodies()
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range refs {
			if ref.IsZero() {
				continue
			}
			if data, err := h.Body(t.Context(), id, ref); err != nil || agent.NewBody(data).Ref != ref {
				t.Errorf("run %s, entry %d, body %s: %v", id, e.Seq, ref, err)
			}
		}
	}
}

// forkAfterBudget: a run that its calls ended goes on in a fork with more of them, and
// nothing that was sent is sent again.
func forkAfterBudget(t *testing.T, h Harness) {
	script := Script{{ToolRead, ToolWrite}, {ToolRead, ToolRead}}
	spec := Spec("p")
	spec.Budget.Calls = 2
	h.begin(t, spec)
	w := &World{}
	run := h.serve(t, "p", w, script)
	h.accepted(t, "p", Sign(run, "alice", h.Now()), "", agent.RowGranted)
	run = h.serve(t, "p", w, script)
	in(t, run, agent.StateFailed)
	sent := w.TotalSent()
	if run.Reason != "budget:tool_calls" || sent != 2 {
		t.Fatalf("the parent ended by %s after %d requests, want budget:tool_calls after 2", run.Reason, sent)
	}

	more := ForkOf(t, h, "p", 0, "f")
	more.Budget.Calls = 4
	fork := h.begin(t, more)
	again := h.begin(t, more)
	if fork.Head != again.Head || fork.Seq != again.Seq {
		t.Errorf("the second start gave entry %d, the first %d", again.Seq, fork.Seq)
	}
	in(t, fork, agent.StateExecute)
	if fork.Open.Kind != agent.Prepare || fork.Used.Calls != 2 || fork.Carried.Calls != 2 || fork.Used.Turns != run.Used.Turns {
		t.Errorf("the fork waits for %s, used %+v, carried %+v; want prepare, the parent's 2 calls and turns", fork.Open.Kind, fork.Used, fork.Carried)
	}
	h.named(t, "f")
	fork = h.serve(t, "f", w, script)
	in(t, fork, agent.StateCompleted)
	if w.TotalSent() != sent+2 || fork.Used.Calls != 4 {
		t.Errorf("the fork sent %d, counted %d; want 2 more and 4 in all", w.TotalSent()-sent, fork.Used.Calls)
	}
	list, err := h.List(t.Context(), agent.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		if want := map[string]string{"f": "p"}[s.ID]; s.Parent != want {
			t.Errorf("run %s is listed as a fork of %q, want %q", s.ID, s.Parent, want)
		}
	}
	in(t, h.replay(t, "p"), agent.StateFailed)
}

// forkEverywhere: from every entry of a run with a granted write, a fork goes on, sends
// no call again whose outcome it has, and sends a write only if a person signs anew.
func forkEverywhere(t *testing.T, h Harness) {
	script := Script{{ToolRead, ToolWrite}, {ToolRead}}
	h.begin(t, Spec("p"))
	w := &World{}
	run := h.serve(t, "p", w, script)
	h.accepted(t, "p", Sign(run, "alice", h.Now()), "", agent.RowGranted)
	run = h.serve(t, "p", w, script)
	in(t, run, agent.StateCompleted)
	checked, returned := h.after(t, "p", agent.RowChecked, 2), h.after(t, "p", agent.RowReturned, 3)
	for at := int64(1); at < run.Seq; at++ {
		id := "f" + agent.CallID("f", at, 0)[:8]
		before := w.TotalSent()
		h.begin(t, ForkOf(t, h, "p", at, id))
		h.named(t, id)
		fork := h.serve(t, id, w, script)
		switch {
		case at < checked: // the write is not carried: a person must sign it again
			in(t, fork, agent.StateAwaitingApproval)
			h.refused(t, id, Sign(h.waited(t, "p"), "alice", h.Now()), "", agent.CodeOther)
			h.accepted(t, id, Sign(fork, "alice", h.Now()), "", agent.RowGranted)
			fork = h.serve(t, id, w, script)
		case at < returned: // it was in flight: nobody knows
			in(t, fork, agent.StateNeedsVerification)
			h.accepted(t, id, Statement(fork, "bob", string(agent.Applied), h.Now()), "", agent.RowSettled)
			fork = h.serve(t, id, w, script)
		}
		in(t, fork, agent.StateCompleted)
		if fork.Used.Calls != 3 {
			t.Errorf("entry %d: the fork counts %d calls, want 3", at, fork.Used.Calls)
		}
		want := 3 - counted(t, h, at)
		if got := w.TotalSent() - before; got != want {
			t.Errorf("entry %d: the fork sent %d requests, want %d", at, got, want)
		}
	}
	_, err := h.Start(t.Context(), withFork(Spec("late"), agent.Fork{Run: "p", Seq: run.Seq, Head: run.Head}), "tester", []agent.Body{Task})
	var no *agent.Refusal
	if !errors.As(err, &no) || no.Code != agent.CodeEnded {
		t.Errorf("a fork behind the answer: %v, want refusal %s", err, agent.CodeEnded)
	}
}

// counted is how many calls of the parent a fork at the entry need not send: those with
// an outcome, and the write whose request was under way.
func counted(t *testing.T, h Harness, at int64) int {
	n := 0
	var open agent.EffectKind
	var write bool
	for e, err := range h.Journal(t.Context(), "p", 1, false) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq > at {
			break
		}
		if e.Row == agent.RowGranted {
			write = true
		}
		if e.Row == agent.RowReturned && open == agent.Send && !write {
			n++
		}
		if e.Row == agent.RowChecked && write {
			n++
		}
		if e.Row == agent.RowNextCall || e.Row == agent.RowNextTurn {
			write = false
		}
		open = ""
		if len(e.Effects) > 0 {
			open = e.Effects[0].Kind
		}
	}
	return n
}

// waited is the run as it first waited for a person.
func (h Harness) waited(t *testing.T, id string) (run agent.Run) {
	t.Helper()
	for e, err := range h.Journal(t.Context(), id, 1, false) {
		if err == nil {
			run, err = agent.Apply(run, e)
		}
		if err != nil {
			t.Fatal(err)
		}
		if run.State == agent.StateAwaitingApproval {
			break
		}
	}
	return run
}

func withFork(spec agent.Spec, f agent.Fork) agent.Spec {
	spec.Fork = &f
	return spec
}

// forkUnknown: what nobody knows in the parent nobody knows in the fork, until evidence
// or a person says so there.
func forkUnknown(t *testing.T, h Harness) {
	script := Script{{ToolWrite, ToolRead}}
	w := &World{Blind: true, Sending: func(string) (agent.Status, bool) { return agent.StatusResultUnknown, true }}
	h.begin(t, Spec("p"))
	run := h.serve(t, "p", w, script)
	h.accepted(t, "p", Sign(run, "alice", h.Now()), "", agent.RowGranted)
	in(t, h.serve(t, "p", w, script), agent.StateNeedsVerification)
	h.accepted(t, "p", agent.Cancel{Abandon: true}, "k", agent.RowCancelled)

	w.Sending = nil
	fork := h.begin(t, ForkOf(t, h, "p", 0, "f"))
	in(t, fork, agent.StateNeedsVerification)
	if fork.Call.Candidate == nil || fork.Call.Candidate.Run != "p" || len(fork.Call.Grants) != 0 {
		t.Errorf("the fork has the candidate %v and %d grants; want the parent's and none", fork.Call.Candidate, len(fork.Call.Grants))
	}
	fork = h.serve(t, "f", w, script)
	in(t, fork, agent.StateNeedsVerification)
	abandoned := h.begin(t, ForkOf(t, h, "f", 0, "g"))
	in(t, abandoned, agent.StateNeedsVerification)
	h.accepted(t, "g", agent.Cancel{}, "c0", agent.RowCancelAsked)
	h.refused(t, "g", agent.Cancel{}, "c1", agent.CodeUnknown)
	h.accepted(t, "g", agent.Cancel{Abandon: true}, "c2", agent.RowCancelled)
	h.accepted(t, "f", Statement(fork, "bob", string(agent.Applied), h.Now()), "", agent.RowSettled)
	in(t, h.serve(t, "f", w, script), agent.StateCompleted)
	if w.TotalSent() != 2 {
		t.Errorf("%d requests were sent, want the parent's write and the fork's read", w.TotalSent())
	}
}

// forkWrong: a fork that cannot be is refused by name, and leaves nothing.
func forkWrong(t *testing.T, h Harness) {
	h.begin(t, Spec("p"))
	run := h.serve(t, "p", &World{}, Script{{ToolRead}})
	good := ForkOf(t, h, "p", 0, "f")
	for name, row := range map[string]struct {
		with func(*agent.Spec)
		want error
	}{
		"no such parent":     {func(s *agent.Spec) { s.Fork.Run = "nobody" }, agent.ErrNoRun},
		"another history":    {func(s *agent.Spec) { s.Fork.Head = run.Head }, agent.ErrIntegrity},
		"behind the end":     {func(s *agent.Spec) { s.Fork.Seq = run.Seq + 1 }, agent.ErrIntegrity},
		"other working time": {func(s *agent.Spec) { s.Fork.Wall += 5 }, nil},
		"too few calls":      {func(s *agent.Spec) { s.Budget.Calls = 0 }, nil},
		"too few turns":      {func(s *agent.Spec) { s.Budget.Turns = 1 }, nil},
		"too few tokens":     {func(s *agent.Spec) { s.Budget.Tokens = 3 }, nil},
	} {
		spec, point := good, *good.Fork
		spec.Fork = &point
		row.with(&spec)
		_, err := h.Start(t.Context(), spec, "tester", []agent.Body{Task})
		var no *agent.Refusal
		if row.want != nil && !errors.Is(err, row.want) || row.want == nil && !errors.As(err, &no) {
			t.Errorf("%s: %v, want %v, or a refusal", name, err, row.want)
		}
		for _, err := range h.Journal(t.Context(), "f", 1, false) {
			if !errors.Is(err, agent.ErrNoRun) {
				t.Fatalf("%s: the fork has a journal: %v", name, err)
			}
		}
	}
	h.begin(t, good)
	other := good
	other.Budget.Turns++
	if _, err := h.Start(t.Context(), other, "tester", nil); !errors.Is(err, agent.ErrExists) {
		t.Errorf("the id with another spec: %v, want ErrExists", err)
	}
}

// substitutes: in a fork an operator gives a turn and a result; nothing is performed for
// them.
func substitutes(t *testing.T, h Harness) {
	script := Script{{ToolRead, ToolWrite}}
	h.begin(t, Spec("p"))
	w := &World{}
	h.serve(t, "p", w, script)
	said := agent.NewBody([]byte(`{"role":"assistant","content":"as the operator says"}`))
	proposal, body := Propose(ToolRead, "given", `{"n":1}`)
	turn := agent.Delivery{
		Key: "turn", Actor: "tester", Bodies: []agent.Body{said, body},
		Decision: agent.Substitute{Turn: &agent.Turned{Message: said.Ref, Calls: []agent.Proposal{proposal}}},
	}
	result := agent.NewBody([]byte(`{"content":[]}`))
	outcome := agent.Delivery{
		Key: "outcome", Actor: "tester", Bodies: []agent.Body{result},
		Decision: agent.Substitute{Outcome: &agent.Outcome{
			Status: agent.StatusOK, Class: agent.ClassOK, Reason: agent.ReasonSubstituted, Body: result.Ref,
		}},
	}
	gives := func(id string, d agent.Delivery, row agent.Row, code string) {
		t.Helper()
		v, err := h.Deliver(t.Context(), id, d)
		if err != nil || v.Row != row || (v.Refusal == nil) != (code == "") || v.Refusal != nil && v.Refusal.Code != code {
			t.Fatalf("deliver %s to %s: %+v, %v, %v; want row %q, refusal %q", d.Key, id, v, v.Refusal, err, row, code)
		}
	}
	h.begin(t, Spec("q"))
	gives("q", turn, "", agent.CodeIllegal) // no fork

	h.begin(t, ForkOf(t, h, "p", 1, "f"))
	bare := turn
	bare.Key, bare.Bodies = "bare", turn.Bodies[:1]
	gives("f", bare, "", agent.CodeInvalid)
	gives("f", turn, agent.RowSubstituted, "")
	asked, sent := w.Asked(), w.TotalSent()
	w.Preparing = func() { t.Error("a call was prepared whose result was given") }
	h.accepted(t, "f", agent.Pause{}, "pause", agent.RowPaused)
	h.accepted(t, "f", agent.StepOnce{}, "step", agent.RowStepped)
	in(t, h.serve(t, "f", w, script), agent.StateExecute)
	gives("f", outcome, agent.RowSubstituted, "")
	h.accepted(t, "f", agent.Resume{}, "resume", agent.RowResumed)
	run := h.serve(t, "f", w, Script{nil})
	in(t, run, agent.StateCompleted)
	if w.Asked() != asked+1 || w.TotalSent() != sent || run.Used.Calls != 0 || run.Used.Turns != 2 {
		t.Errorf("the model was asked %d times more, %d requests were sent, used %+v; want 1, 0, and 2 turns", w.Asked()-asked, w.TotalSent()-sent, run.Used)
	}
	h.named(t, "f")
	again := h.begin(t, ForkOf(t, h, "f", 0, "g"))
	if again.Carried.Calls != 1 || again.Used.Calls != 0 {
		t.Errorf("a fork of the fork carries %+v, used %+v; want the call that was given, which does not count", again.Carried, again.Used)
	}

	at := h.after(t, "p", agent.RowNextCall, 1)
	h.begin(t, ForkOf(t, h, "p", at, "w"))
	gives("w", outcome, "", agent.CodeInvalid) // it would make a write look done
}
