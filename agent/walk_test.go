package agent_test

import (
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/agent"
	"sallyport/agent/enginetest"
	"sallyport/tools/grant"
)

// TestWalk_OpenSendOfAWriteIsSigned walks at random over reachable runs, with results,
// decisions, forgeries and ticks, and checks after each step what must hold of every
// reachable run: an open Send of a write carries the required signatures, by
// different keys, over exactly its bytes; nothing is sent while an outcome is unknown;
// a call is sent once; budgets hold; the journal replays to the same run.
func TestWalk_OpenSendOfAWriteIsSigned(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &walker{rt: rt, trace: &trace{t: t, now: epoch}, sends: map[string]int{}}
		spec := enginetest.Spec("walk")
		spec.Budget.Calls = rapid.IntRange(0, 4).Draw(rt, "calls")
		spec.Budget.Turns = rapid.IntRange(1, 6).Draw(rt, "turns")
		w.take(agent.Begin(spec, "operator", w.now))
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			if w.run.State.Final() {
				break
			}
			w.step()
			w.check()
		}
		again, err := agent.Replay(each(w.entries))
		if err != nil {
			rt.Fatalf("replay: %v", err)
		}
		if again.Head != w.run.Head || again.State != w.run.State || again.Used != w.run.Used {
			rt.Fatalf("replay came to %s %v, the walk to %s %v", again.State, again.Used, w.run.State, w.run.Used)
		}
	})
}

func each(entries []agent.Entry) iter.Seq2[agent.Entry, error] {
	return func(yield func(agent.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

type walker struct {
	*trace
	rt    *rapid.T
	sends map[string]int // intents by call
}

// step tries one event; a refusal must leave the run as it was.
func (w *walker) step() {
	ev := w.event()
	before := w.run
	next, entry, err := agent.Advance(w.run, ev)
	if err != nil {
		if next.Head != before.Head || next.State != before.State || next.Seq != before.Seq {
			w.rt.Fatalf("a refused %s changed the run", ev.Kind())
		}
		return
	}
	if before.State == agent.StateNeedsVerification && len(entry.Effects) > 0 &&
		entry.Effects[0].Kind == agent.Send {
		w.rt.Fatalf("a Send opened while an outcome was unknown")
	}
	if entry.Row == agent.RowChecked {
		w.sends[next.Call.ID]++
	}
	w.run, w.entries = next, append(w.entries, entry)
}

func (w *walker) event() agent.Event {
	w.now = w.now.Add(time.Duration(rapid.IntRange(0, 90).Draw(w.rt, "seconds")) * time.Second)
	if rapid.IntRange(0, 3).Draw(w.rt, "outside") == 0 || w.run.Open == nil || w.run.Open.Kind == agent.Present {
		return w.fromOutside()
	}
	return agent.FromNode(w.run.Open.Effect, w.result(), w.now)
}

func (w *walker) result() agent.Result {
	pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(w.rt, "result") }
	switch w.run.Open.Kind {
	case agent.Ask:
		tools := []string{enginetest.ToolRead, enginetest.ToolWrite, enginetest.ToolDestroy, ""}
		switch pick(8) {
		case 0:
			return agent.Turned{Message: ref("answer")}
		case 1:
			return agent.TurnRefused{Reason: "length", Message: ref("cut")}
		case 2:
			return agent.Unreached{Reason: "timeout"}
		}
		return proposes(rapid.SliceOfN(rapid.SampledFrom(tools), 1, 3).Draw(w.rt, "tools")...)
	case agent.Prepare:
		args := arguments
		if w.run.Call.Edited {
			args = w.run.Call.Arguments
		}
		switch pick(5) {
		case 0:
			return agent.Returned{Outcome: agent.Outcome{Status: agent.StatusRejected, Class: agent.ClassToolError}}
		case 1, 2:
			return enginetest.Waiting(w.task(), args)
		case 3: // a bridge gone wrong: an intent for other bytes
			c := w.checked()
			c.Arguments = ref("other")
			return c
		}
		c := w.checked()
		c.Arguments = args
		return c
	case agent.Send:
		return came(rapid.SampledFrom([]agent.Status{agent.StatusOK, agent.StatusFailed, agent.StatusRejected,
			agent.StatusResultUnknown, agent.StatusUnavailable}).Draw(w.rt, "status"), agent.ClassOK)
	case agent.Observe:
		out := w.run.Call.Outcome
		o := observed(out.Status, out.Class)
		if out.Status == agent.StatusOK && pick(3) == 0 {
			o.Status = agent.StatusResultUnknown
		}
		return o
	case agent.Verify:
		return agent.Verified{Finding: rapid.SampledFrom([]agent.Finding{agent.Applied, agent.NotApplied, agent.Undecided}).Draw(w.rt, "finding")}
	}
	w.rt.Fatalf("no result for %s", w.run.Open.Kind)
	return nil
}

func (w *walker) fromOutside() agent.Event {
	kinds := []agent.Kind{agent.KindApprove, agent.KindApprove, agent.KindRefuse, agent.KindEdit, agent.KindAttest, agent.KindCancel,
		agent.KindPause, agent.KindResume, agent.KindStepOnce, agent.KindExtend, agent.KindTick}
	switch k := rapid.SampledFrom(kinds).Draw(w.rt, "decision"); k {
	case agent.KindApprove:
		return w.approval()
	case agent.KindTick:
		return agent.FromClock(w.now)
	default:
		return w.sample(k)
	}
}

// approval is a grant by anybody for the pending candidate, or nearly.
func (w *walker) approval() agent.Event {
	c := grant.Candidate{Fields: []grant.Field{}}
	if w.run.Call != nil && w.run.Call.Candidate != nil {
		c = *w.run.Call.Candidate
	}
	if c.ID == "" {
		return w.sample(agent.KindApprove)
	}
	switch rapid.IntRange(0, 5).Draw(w.rt, "grant") {
	case 0:
		c.Scope += "x"
	case 1:
		c.Arguments = ref("other").SHA256
		c.ID = grant.CandidateID(c.Run, c.Call, c.Arguments, c.Definition)
	}
	by := rapid.SampledFrom([]string{"alice", "bob", "mallory"}).Draw(w.rt, "by")
	return agent.FromOutside(agent.Approve{Grant: enginetest.SignCandidate(c, by, w.now)}, "x", w.now)
}

// check asserts the invariants of a reachable run, from the journal's own signatures.
func (w *walker) check() {
	r := w.run
	if r.Used.Calls > r.Budget.Calls || r.Used.Turns > r.Budget.Turns {
		w.rt.Fatalf("used %+v of %+v", r.Used, r.Budget)
	}
	for call, n := range w.sends {
		if n > 1 {
			w.rt.Fatalf("call %s was intended %d times", call, n)
		}
	}
	if r.Open == nil || r.Open.Kind != agent.Send {
		return
	}
	tool, ok := r.Spec.Tool(r.Call.Proposal.Tool)
	if !ok {
		w.rt.Fatalf("a Send of a tool that the run does not expose")
	}
	if !tool.Risk.Writes() {
		return
	}
	keys := grant.Keys{enginetest.Key("alice").Public(), enginetest.Key("bob").Public()}
	signers := map[string]bool{}
	for _, g := range r.Call.Grants {
		claims, by, err := keys.OpenGrant(g.Wire)
		if err != nil {
			w.rt.Fatalf("an open Send with a bad grant: %v", err)
		}
		if claims.Candidate.Arguments != r.Call.Arguments.SHA256 || claims.Candidate.Definition != tool.Definition ||
			claims.Candidate.Call != r.Call.ID || claims.Candidate.Run != r.ID {
			w.rt.Fatalf("an open Send with a grant for something else")
		}
		signers[by.ID()] = true
	}
	if len(signers) < tool.Approvers || tool.Approvers < 1 {
		w.rt.Fatalf("an open Send of %s with %d signers, needs %d", tool.Name, len(signers), tool.Approvers)
	}
}

// TestStep_SixtyFourGoroutines shares one run among goroutines that try legal and
// illegal events: pooled machines must never accept an illegal one.
func TestStep_SixtyFourGoroutines(t *testing.T) {
	spots := situations(t)
	var events []agent.Event
	var runs []agent.Run
	for _, s := range spots {
		for _, k := range agent.Kinds() {
			if slices.Contains([]agent.Kind{agent.KindApprove, agent.KindEdit, agent.KindAttest}, k) {
				continue // signatures only slow this down
			}
			events, runs = append(events, s.tr.sample(k)), append(runs, s.tr.run)
		}
	}
	legal := make([]bool, len(events))
	for i := range events {
		_, _, err := agent.Step(runs[i], events[i])
		legal[i] = err == nil
	}
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Go(func() {
			for i := range 2000 {
				at := (i*31 + g*17) % len(events)
				if _, _, err := agent.Step(runs[at], events[at]); (err == nil) != legal[at] {
					t.Errorf("%s in %s: accepted %t, want %t", events[at].Kind(), runs[at].State, err == nil, legal[at])
					return
				}
			}
		})
	}
	wg.Wait()
}
