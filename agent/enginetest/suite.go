package enginetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"sallyport/agent"
)

// Harness is an engine under test.
type Harness struct {
	agent.Engine
	// Now is the engine's clock.
	Now func() time.Time
}

// Run runs the suite: what every engine must survive. open makes an empty engine; it
// is closed by the suite.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Harness){
		"StartingTwiceIsOnce":                     startTwice,
		"AnAnswerCompletesARun":                   answers,
		"AWriteWaitsIsGrantedAndSentOnce":         writes,
		"ADestructiveCallNeedsTwoKeys":            destroys,
		"ARefusalIsTerminalForTheCandidate":       refuses,
		"AnExpiredCandidateIsNotShownAgain":       expires,
		"ADeliveryKeyHasOneVerdict":               deliverTwice,
		"ForgedDecisionsAreNotedAndChangeNothing": forged,
		"APausedRunStartsNothing":                 pauses,
		"OneStepReleasesOneEffect":                steps,
		"ACancelWaitsForAWriteInFlight":           cancelInFlight,
		"AnUnknownOutcomeIsSettledByEvidence":     unknown,
		"AnUndecidedOutcomeIsAbandonedOrAttested": undecided,
		"AnInterruptionKeepsTheRunOpen":           interrupted,
		"AnInterruptionIntendsNothing":            interruptedIntent,
		"ManyRunsAtOnce":                          manyRuns,
		"TwoServersOfOneRun":                      servedTwice,
		"FollowSeesEveryEntryInOrder":             follows,
		"UnknownRunsAreNamed":                     noRun,
		"TheCallBudgetEndsARun":                   budget,
		"AFailingNodeLeavesTheEffectOpen":         failingNode,
		"AForkGoesOnWithMoreCalls":                forkAfterBudget,
		"AForkGoesOnFromEveryEntry":               forkEverywhere,
		"AForkKeepsWhatNobodyKnows":               forkUnknown,
		"AForkThatCannotBeIsRefused":              forkWrong,
		"AnOperatorSubstitutesInAForkOnly":        substitutes,
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t)
			t.Cleanup(func() {
				if err := h.Close(); err != nil {
					t.Errorf("close the engine: %v", err)
				}
			})
			test(t, h)
		})
	}
}

func (h Harness) begin(t *testing.T, spec agent.Spec) agent.Run {
	t.Helper()
	run, err := h.Start(t.Context(), spec, "tester", []agent.Body{Task})
	if err != nil {
		t.Fatalf("start %s: %v", spec.Run, err)
	}
	return run
}

// serve drives a run until it rests, and returns it.
func (h Harness) serve(t *testing.T, id string, w *World, s Script) agent.Run {
	t.Helper()
	if err := h.Serve(t.Context(), agent.ServeOptions{Runs: []string{id}}, w.Nodes(s)); err != nil {
		t.Fatalf("serve %s: %v", id, err)
	}
	return h.replay(t, id)
}

// replay is the run as its journal gives it, checked.
func (h Harness) replay(t *testing.T, id string) agent.Run {
	t.Helper()
	run, err := agent.Replay(h.Journal(t.Context(), id, 1, false))
	if err != nil {
		t.Fatalf("replay %s: %v", id, err)
	}
	return run
}

func (h Harness) deliver(t *testing.T, id string, d agent.Decision, key string) agent.Verdict {
	t.Helper()
	v, err := h.Deliver(t.Context(), id, Deliver(d, key))
	if err != nil {
		t.Fatalf("deliver %T to %s: %v", d, id, err)
	}
	return v
}

// accepted delivers and expects the row.
func (h Harness) accepted(t *testing.T, id string, d agent.Decision, key string, want agent.Row) {
	t.Helper()
	if v := h.deliver(t, id, d, key); v.Refusal != nil || v.Row != want {
		t.Fatalf("deliver %T: got row %q, refusal %v; want %q", d, v.Row, v.Refusal, want)
	}
}

func (h Harness) refused(t *testing.T, id string, d agent.Decision, key, code string) {
	t.Helper()
	if v := h.deliver(t, id, d, key); v.Refusal == nil || v.Refusal.Code != code {
		t.Fatalf("deliver %T: got row %q, refusal %v; want refusal %s", d, v.Row, v.Refusal, code)
	}
}

func in(t *testing.T, run agent.Run, want agent.State) {
	t.Helper()
	if run.State != want {
		t.Fatalf("run %s is in %s (%s), want %s", run.ID, run.State, run.Reason, want)
	}
}

func startTwice(t *testing.T, h Harness) {
	first := h.begin(t, Spec("one"))
	again := h.begin(t, Spec("one"))
	if first.Head != again.Head || again.Seq != 1 {
		t.Errorf("the second start gave entry %d, %s; want the first again", again.Seq, again.Head)
	}
	other := Spec("one")
	other.Budget.Calls++
	if _, err := h.Start(t.Context(), other, "tester", nil); !errors.Is(err, agent.ErrExists) {
		t.Errorf("start with another spec: %v, want ErrExists", err)
	}
	bare := Spec("bare")
	bare.Tools, bare.Servers, bare.Approvers = nil, nil, nil
	h.begin(t, bare)
	h.begin(t, bare)
	in(t, h.serve(t, "bare", &World{}, nil), agent.StateCompleted)
	bad := Spec("Not-A-Run")
	if _, err := h.Start(t.Context(), bad, "tester", nil); err == nil {
		t.Errorf("a run id with capitals was accepted")
	}
}

func answers(t *testing.T, h Harness) {
	h.begin(t, Spec("r"))
	w := &World{}
	run := h.serve(t, "r", w, Script{{ToolRead}, {ToolRead, ToolRead}})
	in(t, run, agent.StateCompleted)
	if run.Used.Calls != 3 || run.Used.Turns != 3 || w.TotalSent() != 3 {
		t.Errorf("calls %d, turns %d, sent %d; want 3, 3, 3", run.Used.Calls, run.Used.Turns, w.TotalSent())
	}
	if body, err := h.Body(t.Context(), "r", run.Answer); err != nil || len(body) == 0 {
		t.Errorf("the answer's body: %q, %v", body, err)
	}
	if _, err := h.Body(t.Context(), "r", agent.NewBody([]byte("no")).Ref); !errors.Is(err, agent.ErrNoBody) {
		t.Errorf("an unknown body: %v, want ErrNoBody", err)
	}
}

func writes(t *testing.T, h Harness) {
	h.begin(t, Spec("w"))
	w := &World{}
	script := Script{{ToolWrite}}
	run := h.serve(t, "w", w, script)
	in(t, run, agent.StateAwaitingApproval)
	if w.TotalSent() != 0 {
		t.Fatalf("%d requests were sent before the approval", w.TotalSent())
	}
	h.accepted(t, "w", Sign(run, "alice", h.Now()), "", agent.RowGranted)
	run = h.serve(t, "w", w, script)
	in(t, run, agent.StateCompleted)
	if w.TotalSent() != 1 || run.Used.Calls != 1 {
		t.Errorf("sent %d, counted %d; want 1, 1", w.TotalSent(), run.Used.Calls)
	}
}

func destroys(t *testing.T, h Harness) {
	h.begin(t, Spec("d"))
	w := &World{}
	script := Script{{ToolDestroy}}
	run := h.serve(t, "d", w, script)
	h.accepted(t, "d", Sign(run, "alice", h.Now()), "", agent.RowEndorsed)
	in(t, h.serve(t, "d", w, script), agent.StateAwaitingApproval)
	h.refused(t, "d", Sign(run, "alice", h.Now().Add(time.Second)), "", agent.CodeTwice)
	if w.TotalSent() != 0 {
		t.Fatalf("a destructive call was sent with one signature")
	}
	h.accepted(t, "d", Sign(run, "bob", h.Now()), "", agent.RowGranted)
	in(t, h.serve(t, "d", w, script), agent.StateCompleted)
	if w.TotalSent() != 1 {
		t.Errorf("sent %d, want 1", w.TotalSent())
	}
}

func refuses(t *testing.T, h Harness) {
	h.begin(t, Spec("n"))
	w := &World{}
	script := Script{{ToolWrite, ToolRead}}
	run := h.serve(t, "n", w, script)
	h.refused(t, "n", agent.Refuse{Candidate: "other"}, "k0", agent.CodeOther)
	h.accepted(t, "n", agent.Refuse{Candidate: run.Call.Candidate.ID}, "k1", agent.RowRefused)
	h.refused(t, "n", Sign(run, "alice", h.Now()), "", agent.CodeNotWaiting)
	in(t, h.serve(t, "n", w, script), agent.StateCompleted)
	if w.TotalSent() != 1 {
		t.Errorf("sent %d, want the read only", w.TotalSent())
	}
}

func expires(t *testing.T, h Harness) {
	spec := Spec("e")
	for i := range spec.Tools {
		if spec.Tools[i].Approvers > 0 {
			spec.Tools[i].Expires = 1
		}
	}
	h.begin(t, spec)
	shown := 0
	w := &World{Presenting: func() { shown++ }}
	script := Script{{ToolWrite}}
	run := h.serve(t, "e", w, script)
	in(t, run, agent.StateAwaitingApproval)
	for h.Now().Before(run.Deadline) {
		time.Sleep(time.Until(run.Deadline)) // the engine's clock is its own
	}
	h.refused(t, "e", Sign(run, "alice", h.Now()), "", agent.CodeLate)
	in(t, h.serve(t, "e", w, script), agent.StateCompleted)
	if shown != 1 || w.TotalSent() != 0 {
		t.Errorf("shown %d times, sent %d; want 1, 0", shown, w.TotalSent())
	}
}

func deliverTwice(t *testing.T, h Harness) {
	h.begin(t, Spec("k"))
	w := &World{}
	run := h.serve(t, "k", w, Script{{ToolWrite}})
	grant := Sign(run, "alice", h.Now())
	first := h.deliver(t, "k", grant, "")
	second := h.deliver(t, "k", grant, "")
	if first.Seq != second.Seq || second.Row != agent.RowGranted {
		t.Errorf("the same delivery gave %+v, then %+v", first, second)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			v, err := h.Deliver(t.Context(), "k", Deliver(agent.Pause{}, "pause-once"))
			if err != nil || v.Row != agent.RowPaused {
				t.Errorf("eight deliveries of one pause: %+v, %v", v, err)
			}
		})
	}
	wg.Wait()
}

func forged(t *testing.T, h Harness) {
	h.begin(t, Spec("f"))
	w := &World{}
	run := h.serve(t, "f", w, Script{{ToolWrite}})
	good := Sign(run, "alice", h.Now())
	cand := *run.Call.Candidate
	cand.Scope = "desk/other"
	h.refused(t, "f", Sign(run, "mallory", h.Now()), "", agent.CodeForged)
	h.refused(t, "f", agent.Approve{Grant: good.Grant[:len(good.Grant)-2] + "AA"}, "", agent.CodeForged)
	h.refused(t, "f", agent.Approve{Grant: SignCandidate(cand, "alice", h.Now())}, "", agent.CodeOther)
	h.refused(t, "f", Sign(run, "alice", h.Now().Add(-time.Hour)), "", agent.CodeLate)
	after := h.replay(t, "f")
	in(t, after, agent.StateAwaitingApproval)
	if after.Noted != 4 || after.Call.Candidate.ID != run.Call.Candidate.ID {
		t.Errorf("noted %d, want 4, and the same candidate", after.Noted)
	}
}

func pauses(t *testing.T, h Harness) {
	h.begin(t, Spec("p"))
	w := &World{}
	h.accepted(t, "p", agent.Pause{}, "p1", agent.RowPaused)
	h.serve(t, "p", w, Script{{ToolRead}})
	if w.Asked() != 0 {
		t.Fatalf("a paused run asked the model")
	}
	h.refused(t, "p", agent.Pause{}, "p2", agent.CodeIllegal)
	h.accepted(t, "p", agent.Resume{}, "r1", agent.RowResumed)
	in(t, h.serve(t, "p", w, Script{{ToolRead}}), agent.StateCompleted)
	if w.Asked() != 2 || w.TotalSent() != 1 {
		t.Errorf("asked %d, sent %d; want 2, 1", w.Asked(), w.TotalSent())
	}
}

func steps(t *testing.T, h Harness) {
	h.begin(t, Spec("s"))
	w := &World{}
	script := Script{{ToolRead}}
	h.accepted(t, "s", agent.Pause{}, "p", agent.RowPaused)
	path := []agent.State{agent.StateExecute, agent.StateObserve, agent.StateModel, agent.StateCompleted}
	for i, want := range path {
		h.accepted(t, "s", agent.StepOnce{}, fmt.Sprint("step", i), agent.RowStepped)
		in(t, h.serve(t, "s", w, script), want)
	}
	if w.TotalSent() != 1 || w.Asked() != 2 {
		t.Errorf("asked %d, sent %d; want 2, 1", w.Asked(), w.TotalSent())
	}
}

// inFlight serves a run whose write blocks at the server, runs during meanwhile, lets
// the write go, and returns the run at rest.
func inFlight(t *testing.T, h Harness, id string, during func()) (*World, agent.Run) {
	t.Helper()
	reached, reply := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w := &World{Sending: func(string) (agent.Status, bool) {
		once.Do(func() { close(reached) })
		<-reply
		return agent.StatusOK, true
	}}
	script := Script{{ToolWrite, ToolRead}}
	h.begin(t, Spec(id))
	run := h.serve(t, id, w, script)
	h.accepted(t, id, Sign(run, "alice", h.Now()), "", agent.RowGranted)
	served := make(chan error, 1)
	go func() { served <- h.Serve(t.Context(), agent.ServeOptions{Runs: []string{id}}, w.Nodes(script)) }()
	<-reached
	during()
	close(reply)
	if err := <-served; err != nil {
		t.Fatalf("serve: %v", err)
	}
	return w, h.replay(t, id)
}

func cancelInFlight(t *testing.T, h Harness) {
	w, run := inFlight(t, h, "c", func() {
		h.accepted(t, "c", agent.Cancel{}, "c1", agent.RowCancelAsked)
		h.refused(t, "c", agent.Cancel{}, "c2", agent.CodeUnknown)
	})
	in(t, run, agent.StateCancelled)
	if w.TotalSent() != 1 {
		t.Errorf("sent %d, want 1: the call after the write is not begun", w.TotalSent())
	}
	h.refused(t, "c", agent.Resume{}, "c3", agent.CodeEnded)

	w, run = inFlight(t, h, "c-paused", func() {
		h.accepted(t, "c-paused", agent.Pause{}, "p1", agent.RowPaused)
	})
	in(t, run, agent.StateObserve)
	h.accepted(t, "c-paused", agent.Resume{}, "p2", agent.RowResumed)
	in(t, h.serve(t, "c-paused", w, Script{{ToolWrite, ToolRead}}), agent.StateCompleted)
	if w.TotalSent() != 2 {
		t.Errorf("sent %d, want the write and the read once each", w.TotalSent())
	}
}

// lost serves a run until its write has an unknown outcome.
func lost(t *testing.T, h Harness, id string, w *World, script Script) agent.Run {
	t.Helper()
	h.begin(t, Spec(id))
	run := h.serve(t, id, w, script)
	h.accepted(t, id, Sign(run, "alice", h.Now()), "", agent.RowGranted)
	return h.serve(t, id, w, script)
}

func unknown(t *testing.T, h Harness) {
	for _, committed := range []bool{true, false} {
		w := &World{Sending: func(string) (agent.Status, bool) { return agent.StatusResultUnknown, committed }}
		run := lost(t, h, fmt.Sprintf("u-%t", committed), w, Script{{ToolWrite}})
		in(t, run, agent.StateCompleted)
		if w.TotalSent() != 1 {
			t.Errorf("committed %t: sent %d, want 1", committed, w.TotalSent())
		}
	}
}

func undecided(t *testing.T, h Harness) {
	w := &World{Blind: true, Sending: func(string) (agent.Status, bool) { return agent.StatusResultUnknown, true }}
	run := lost(t, h, "b", w, Script{{ToolWrite, ToolRead}})
	in(t, run, agent.StateNeedsVerification)
	if w.TotalSent() != 1 {
		t.Fatalf("sent %d, want 1: nothing runs while an outcome is unknown", w.TotalSent())
	}
	h.accepted(t, "b", agent.Cancel{}, "c1", agent.RowCancelAsked)
	h.refused(t, "b", agent.Cancel{}, "c2", agent.CodeUnknown)
	h.accepted(t, "b", agent.Cancel{Abandon: true}, "c3", agent.RowCancelled)
	if run = h.replay(t, "b"); run.Reason != agent.ReasonAbandoned {
		t.Errorf("reason %q, want %q", run.Reason, agent.ReasonAbandoned)
	}
	list, err := h.List(t.Context(), agent.Filter{})
	if err != nil || len(list) != 1 || !list[0].Unknown {
		t.Errorf("the list does not name the unknown outcome: %+v, %v", list, err)
	}

	run = lost(t, h, "a", w, Script{{ToolWrite, ToolRead}})
	in(t, run, agent.StateNeedsVerification)
	h.accepted(t, "a", Statement(run, "bob", agent.StillUnknown, h.Now()), "", agent.RowUndecided)
	h.accepted(t, "a", Statement(run, "bob", string(agent.NotApplied), h.Now()), "", agent.RowSettled)
	in(t, h.serve(t, "a", &World{}, Script{{ToolWrite, ToolRead}}), agent.StateCompleted)
}

func interrupted(t *testing.T, h Harness) {
	asked := make(chan struct{}, 1)
	w := &World{Asking: func(ctx context.Context) error {
		asked <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}}
	h.begin(t, Spec("i"))
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- h.Serve(ctx, agent.ServeOptions{Runs: []string{"i"}}, w.Nodes(nil)) }()
	<-asked
	cancel()
	if err := <-served; !errors.Is(err, context.Canceled) {
		t.Fatalf("an interrupted Serve returned %v", err)
	}
	in(t, h.replay(t, "i"), agent.StateModel)
	in(t, h.serve(t, "i", &World{}, nil), agent.StateCompleted)
}

// interruptedIntent: what Prepare brings back after an interruption opens no Send.
func interruptedIntent(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &World{Preparing: cancel}
	h.begin(t, Spec("ii"))
	script := Script{{ToolRead}}
	if err := h.Serve(ctx, agent.ServeOptions{Runs: []string{"ii"}}, w.Nodes(script)); !errors.Is(err, context.Canceled) {
		t.Fatalf("an interrupted Serve returned %v", err)
	}
	run := h.replay(t, "ii")
	if run.Open == nil || run.Open.Kind != agent.Prepare || run.Used.Calls != 0 {
		t.Fatalf("open %+v, %d calls counted; want Prepare, none", run.Open, run.Used.Calls)
	}
	in(t, h.serve(t, "ii", &World{}, script), agent.StateCompleted)
}

func manyRuns(t *testing.T, h Harness) {
	const runs = 32
	w := &World{}
	var ids []string
	for i := range runs {
		id := fmt.Sprintf("m-%d", i)
		ids = append(ids, id)
		h.begin(t, Spec(id))
	}
	script := Script{{ToolRead, ToolRead}, {ToolWrite}}
	if err := h.Serve(t.Context(), agent.ServeOptions{Runs: ids}, w.Nodes(script)); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		run := h.replay(t, id)
		in(t, run, agent.StateAwaitingApproval)
		h.accepted(t, id, Sign(run, "alice", h.Now()), "", agent.RowGranted)
	}
	if err := h.Serve(t.Context(), agent.ServeOptions{Runs: ids}, w.Nodes(script)); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		in(t, h.replay(t, id), agent.StateCompleted)
	}
	if w.TotalSent() != 3*runs {
		t.Errorf("sent %d, want %d", w.TotalSent(), 3*runs)
	}
	list, err := h.List(t.Context(), agent.Filter{State: agent.StateCompleted, Limit: 5})
	if err != nil || len(list) != 5 {
		t.Errorf("list of five completed runs: %d, %v", len(list), err)
	}
	if list, err = h.List(t.Context(), agent.Filter{Open: true}); err != nil || len(list) != 0 {
		t.Errorf("open runs: %d, %v; want none", len(list), err)
	}
}

func servedTwice(t *testing.T, h Harness) {
	inFlight(t, h, "t", func() {
		err := h.Serve(t.Context(), agent.ServeOptions{Runs: []string{"t"}}, (&World{}).Nodes(nil))
		if !errors.Is(err, agent.ErrServed) {
			t.Errorf("a second Serve of the run: %v, want ErrServed", err)
		}
	})
}

func follows(t *testing.T, h Harness) {
	h.begin(t, Spec("o"))
	seen := make(chan []int64, 1)
	go func() {
		var seqs []int64
		for e, err := range h.Journal(t.Context(), "o", 1, true) {
			if err != nil {
				t.Errorf("follow: %v", err)
				break
			}
			seqs = append(seqs, e.Seq)
		}
		seen <- seqs
	}()
	run := h.serve(t, "o", &World{}, Script{{ToolRead}})
	seqs := <-seen
	if int64(len(seqs)) != run.Seq {
		t.Fatalf("saw %d entries of %d", len(seqs), run.Seq)
	}
	for i, seq := range seqs {
		if seq != int64(i)+1 {
			t.Fatalf("entry %d came as number %d", seq, i+1)
		}
	}
}

func noRun(t *testing.T, h Harness) {
	if _, err := h.Deliver(t.Context(), "nobody", Deliver(agent.Pause{}, "x")); !errors.Is(err, agent.ErrNoRun) {
		t.Errorf("deliver: %v, want ErrNoRun", err)
	}
	if err := h.Serve(t.Context(), agent.ServeOptions{Runs: []string{"nobody"}}, (&World{}).Nodes(nil)); !errors.Is(err, agent.ErrNoRun) {
		t.Errorf("serve: %v, want ErrNoRun", err)
	}
	for _, err := range h.Journal(t.Context(), "nobody", 1, true) {
		if !errors.Is(err, agent.ErrNoRun) {
			t.Errorf("journal: %v, want ErrNoRun", err)
		}
	}
}

func budget(t *testing.T, h Harness) {
	spec := Spec("g")
	spec.Budget.Calls = 2
	h.begin(t, spec)
	w := &World{}
	run := h.serve(t, "g", w, Script{{ToolRead, ToolRead, ToolRead, ToolRead}})
	in(t, run, agent.StateFailed)
	if run.Reason != "budget:tool_calls" || w.TotalSent() != 2 {
		t.Errorf("reason %q, sent %d; want budget:tool_calls, 2", run.Reason, w.TotalSent())
	}

	spec = Spec("g-answer")
	spec.Budget.Calls = 2
	h.begin(t, spec)
	in(t, h.serve(t, "g-answer", w, Script{{ToolRead, ToolRead}}), agent.StateCompleted)
}

func failingNode(t *testing.T, h Harness) {
	h.begin(t, Spec("x"))
	broken := errors.New("the desk is on fire")
	w := &World{Asking: func(context.Context) error { return broken }}
	err := h.Serve(t.Context(), agent.ServeOptions{Runs: []string{"x"}}, w.Nodes(nil))
	if !errors.Is(err, broken) {
		t.Fatalf("serve: %v, want the node's error", err)
	}
	in(t, h.replay(t, "x"), agent.StateModel)
	in(t, h.serve(t, "x", &World{}, nil), agent.StateCompleted)
}
