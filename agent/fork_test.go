package agent_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

// forkSpec is a fork of the run at one of its entries, with budget to spare.
func (tr *trace) forkSpec(at int64) agent.Spec {
	tr.t.Helper()
	point, was, err := agent.ForkPoint(each(tr.entries), at)
	if err != nil {
		tr.t.Fatal(err)
	}
	spec := enginetest.Spec("fork")
	spec.Fork, spec.Budget = &point, was.Budget
	spec.Budget.Calls, spec.Budget.Turns = spec.Budget.Calls+10, spec.Budget.Turns+10
	spec.Budget.Tokens, spec.Budget.Wall = spec.Budget.Tokens+10_000, spec.Budget.Wall+10_000
	return spec
}

// fork goes on from an entry of the run in a run of its own.
func fork(t *testing.T, parent *trace, at int64) *trace {
	t.Helper()
	return parent.carried(parent.forkSpec(at))
}

func (tr *trace) carried(spec agent.Spec) *trace {
	tr.t.Helper()
	fork := &trace{t: tr.t, now: tr.tickTock()}
	commits, _, err := agent.Carry(spec, "operator", each(tr.entries), fork.now)
	if err != nil {
		tr.t.Fatal(err)
	}
	for _, c := range commits {
		fork.run, fork.entries = c.Run, append(fork.entries, c.Entry)
	}
	return fork
}

// refused expects that a fork cannot be, for the reason of that code.
func (tr *trace) refusedFork(name string, spec agent.Spec, code string) {
	tr.t.Helper()
	_, _, err := agent.Carry(spec, "operator", each(tr.entries), tr.now)
	var no *agent.Refusal
	if !errors.As(err, &no) || no.Code != code {
		tr.t.Errorf("%s: %v, want refusal %s", name, err, code)
	}
}

// TestFork_OfEveryEntryOfAWalk: whatever a run came to, a fork of any of its entries
// replays, has heard and used what the run had there, holds no approval, has sent
// nothing, and lets no write out of sight whose request had left.
func TestFork_OfEveryEntryOfAWalk(t *testing.T) {
	seen := map[agent.State]int{}
	var flying int
	rapid.Check(t, func(rt *rapid.T) {
		w := &walker{rt: rt, trace: &trace{t: t, now: epoch}, sends: map[string]int{}}
		spec := enginetest.Spec("walk")
		spec.Budget.Calls, spec.Budget.Turns = rapid.IntRange(0, 4).Draw(rt, "calls"), rapid.IntRange(1, 6).Draw(rt, "turns")
		w.take(agent.Begin(spec, "operator", w.now))
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			if w.run.State.Final() {
				break
			}
			w.likely()
		}
		var was agent.Run
		for _, e := range w.entries {
			var err error
			if was, err = agent.Apply(was, e); err != nil {
				rt.Fatal(err)
			}
			if was.State == agent.StateCompleted {
				w.refusedFork("completed", withFork(enginetest.Spec("fork"), agent.Fork{Run: "walk", Seq: was.Seq, Head: was.Head}), agent.CodeEnded)
				continue
			}
			f := fork(t, w.trace, was.Seq)
			seen[f.run.State]++
			flying += sound(rt, f, was)
		}
	})
	for _, s := range []agent.State{agent.StateModel, agent.StateExecute, agent.StateObserve, agent.StateNeedsVerification} {
		if seen[s] == 0 {
			t.Errorf("no fork began in %s: %v", s, seen)
		}
	}
	if flying < 20 {
		t.Errorf("%d forks had a write whose request had left", flying)
	}
}

// likely moves the walk on as a run would go, most of the time, so that it comes far.
func (w *walker) likely() {
	if rapid.IntRange(0, 4).Draw(w.rt, "unlikely") == 0 || w.run.Open == nil {
		w.step()
		return
	}
	w.now = w.now.Add(time.Second)
	switch tool, _ := w.run.Spec.Tool(toolInHand(w.run)); {
	case !w.run.Open.Released:
		w.try(agent.FromOutside(agent.Resume{}, "operator", w.now))
	case w.run.Open.Kind == agent.Ask:
		w.try(agent.FromNode(w.run.Open.Effect, proposes(enginetest.ToolWrite, enginetest.ToolRead), w.now))
	case w.run.Open.Kind == agent.Present:
		by := []string{"alice", "bob"}[len(w.run.Call.Grants)%2]
		w.try(agent.FromOutside(enginetest.Sign(w.run, by, w.now), "x", w.now))
	case w.run.Open.Kind == agent.Prepare && len(w.run.Call.Grants) < tool.Approvers:
		args := arguments
		if w.run.Call.Edited {
			args = w.run.Call.Arguments
		}
		w.try(agent.FromNode(w.run.Open.Effect, enginetest.Waiting(w.task(), args), w.now))
	case w.run.Open.Kind == agent.Prepare && tool.Name != "":
		c := w.checked()
		if w.run.Call.Edited {
			c.Arguments = w.run.Call.Arguments
		}
		w.try(agent.FromNode(w.run.Open.Effect, c, w.now))
	default:
		w.step()
	}
}

func toolInHand(run agent.Run) string {
	if run.Call == nil {
		return ""
	}
	return run.Call.Proposal.Tool
}

// try takes the event if the run does.
func (w *walker) try(ev agent.Event) {
	if next, entry, err := agent.Advance(w.run, ev); err == nil {
		w.run, w.entries = next, append(w.entries, entry)
	}
}

func withFork(spec agent.Spec, f agent.Fork) agent.Spec {
	spec.Fork = &f
	return spec
}

// sound checks a fork against its parent at the entry. It returns 1 if a write of the
// parent was under way there.
func sound(rt *rapid.T, f *trace, was agent.Run) (flying int) {
	again, err := agent.Replay(each(f.entries))
	if err != nil || again.Head != f.run.Head {
		rt.Fatalf("the fork replays to %s, %v", again.Head, err)
	}
	kinds := []agent.Kind{agent.KindTurned, agent.KindTurnRefused, agent.KindReturned, agent.KindObserved}
	for _, e := range f.entries[1:] {
		if !slices.Contains(kinds, e.Event) || e.Carried < 1 || e.Carried > was.Seq || !e.Time.Equal(f.entries[0].Time) {
			rt.Fatalf("entry %d: %s of entry %d at %s", e.Seq, e.Event, e.Carried, e.Time)
		}
	}
	if f.run.Transcript != was.Transcript {
		rt.Fatalf("the fork has heard %+v, the parent %+v", f.run.Transcript, was.Transcript)
	}
	used, want := f.run.Used, was.Used
	c := was.Call
	out := c != nil && c.Sent
	writes := out && risk(was, c).Writes()
	if out && !writes && was.Open != nil && was.Open.Kind == agent.Send || was.State.Final() && out && !writes && f.run.State == agent.StateExecute {
		want.Calls-- // a read in flight is sent, and counted, again
	}
	if used.Calls != want.Calls || used.Turns != want.Turns || used.Tokens != want.Tokens || used.Wall != want.Wall.Truncate(time.Second) {
		rt.Fatalf("the fork has used %+v, the parent %+v", used, was.Used)
	}
	if f.run.Call != nil && len(f.run.Call.Grants) > 0 {
		rt.Fatalf("the fork holds an approval")
	}
	if f.run.Open == nil || f.run.Open.Kind == agent.Send || f.run.Open.Kind == agent.Present {
		rt.Fatalf("the fork waits for %+v", f.run.Open)
	}
	if !writes {
		return 0
	}
	if f.run.State == agent.StateExecute || f.run.State == agent.StateModel || !f.run.Call.Sent {
		rt.Fatalf("a write had left in %s, the fork is in %s", was.State, f.run.State)
	}
	return 1
}

func risk(run agent.Run, c *agent.Call) agent.Risk {
	tool, ok := run.Spec.Tool(c.Proposal.Tool)
	if !ok {
		return agent.RiskRead
	}
	return tool.Risk
}

// TestFork_WhatIsNotFinal: where a fork of each situation of a call goes on.
func TestFork_WhatIsNotFinal(t *testing.T) {
	for _, s := range situations(t) {
		if strings.HasPrefix(s.name, "a fork") || s.tr.run.Seq == 0 || s.tr.run.State == agent.StateCompleted {
			continue
		}
		want, known := map[string]struct {
			state agent.State
			open  agent.EffectKind
			calls int
		}{
			"model":                                       {agent.StateModel, agent.Ask, 0},
			"execute, Prepare open":                       {agent.StateExecute, agent.Prepare, 0},
			"execute, Prepare open, paused":               {agent.StateExecute, agent.Prepare, 0},
			"execute, Prepare open, stepped":              {agent.StateExecute, agent.Prepare, 0},
			"execute, Prepare open, granted":              {agent.StateExecute, agent.Prepare, 0},
			"execute, Send of a read open":                {agent.StateExecute, agent.Prepare, 0},
			"execute, Send of a write open":               {agent.StateObserve, agent.Observe, 1}, // unknown, and about to be found so
			"execute, Send of a write open, cancel asked": {agent.StateObserve, agent.Observe, 1},
			"observe, ok":                                 {agent.StateObserve, agent.Observe, 1},
			"observe, write unknown":                      {agent.StateObserve, agent.Observe, 1},
			"observe, write settled":                      {agent.StateObserve, agent.Observe, 1},
			"awaiting_approval":                           {agent.StateExecute, agent.Prepare, 0},
			"awaiting_approval, one of two":               {agent.StateExecute, agent.Prepare, 0},
			"needs_verification, Verify open":             {agent.StateNeedsVerification, agent.Verify, 1},
			"needs_verification, undecided":               {agent.StateNeedsVerification, agent.Verify, 1},
		}[s.name]
		if !known {
			t.Errorf("%s: where does a fork go on?", s.name)
			continue
		}
		f := fork(t, s.tr, s.tr.run.Seq)
		if f.run.State != want.state || f.run.Open.Kind != want.open || f.run.Used.Calls != want.calls || !f.run.Open.Released || f.run.Cancelling {
			t.Errorf("%s: in %s, waits for %+v, %d calls; want %+v", s.name, f.run.State, f.run.Open, f.run.Used.Calls, want)
		}
	}
}

// TestFork_AWriteInFlightIsUnknown: nobody knows, and it is judged by what was signed.
func TestFork_AWriteInFlightIsUnknown(t *testing.T) {
	tr := upToSend(t)
	f := fork(t, tr, tr.run.Seq)
	c := f.run.Call
	if c.Outcome.Status != agent.StatusResultUnknown || c.Outcome.Reason != agent.ReasonCrashed || c.Carried != tr.run.Seq {
		t.Errorf("it is carried as %+v of entry %d, want an unknown outcome of entry %d", c.Outcome, c.Carried, tr.run.Seq)
	}
	if c.Candidate == nil || c.Candidate.ID != tr.run.Call.Candidate.ID || c.Arguments != arguments {
		t.Errorf("the candidate is %+v for %s, want the parent's", c.Candidate, c.Arguments)
	}
	f.node(agent.Observed{Status: agent.StatusResultUnknown, Class: agent.ClassProtocolError})
	f.outside(agent.Cancel{})
	if f.run.State != agent.StateNeedsVerification || !f.run.Cancelling {
		t.Fatalf("in %s, cancelling %t; want needs_verification, waiting for its settlement", f.run.State, f.run.Cancelling)
	}
	f.outside(enginetest.Statement(f.run, "bob", string(agent.Applied), f.now))
	f.node(observed(agent.StatusOK, agent.ClassOK))
	if f.run.State != agent.StateCancelled {
		t.Errorf("in %s, want cancelled", f.run.State)
	}
}

// TestFork_AStatementForTheParentIsNoneForTheFork and the other way round.
func TestFork_AStatementForTheParentIsNoneForTheFork(t *testing.T) {
	tr := upToSend(t)
	tr.node(came(agent.StatusResultUnknown, agent.ClassTimeout))
	tr.node(agent.Observed{Status: agent.StatusResultUnknown, Class: agent.ClassTimeout})
	f := fork(t, tr, tr.run.Seq)
	for _, pair := range [][2]*trace{{tr, f}, {f, tr}} {
		said := enginetest.Statement(pair[0].run, "bob", string(agent.NotApplied), pair[0].now)
		_, _, err := agent.Step(pair[1].run, agent.FromOutside(said, "x", pair[1].tickTock()))
		var no *agent.Refusal
		if !errors.As(err, &no) || no.Code != agent.CodeOther {
			t.Errorf("a statement about run %s in run %s: %v, want refusal %s", pair[0].run.ID, pair[1].run.ID, err, agent.CodeOther)
		}
	}
}

// TestFork_RemembersWhatAPersonRefused: the fork does not ask again for the same call.
func TestFork_RemembersWhatAPersonRefused(t *testing.T) {
	tr := upToWaiting(t, enginetest.ToolWrite)
	tr.outside(agent.Refuse{Candidate: tr.run.Call.Candidate.ID})
	refused := agent.Observed{Status: agent.StatusRejected, Class: agent.ClassPermissionRefused, Reason: agent.ReasonRefused, Message: ref("told")}
	tr.node(refused)
	f := fork(t, tr, tr.run.Seq)
	f.node(f.checked()) // the read that follows
	f.node(came(agent.StatusOK, agent.ClassOK))
	f.node(observed(agent.StatusOK, agent.ClassOK))
	f.node(proposes(enginetest.ToolWrite))
	f.node(enginetest.Waiting(f.task(), arguments))
	if out := f.run.Call.Outcome; out.Reason != agent.ReasonRefusedBefore {
		t.Errorf("the same call again is %+v, want %s", out, agent.ReasonRefusedBefore)
	}
}

// TestFork_OfAnotherConfiguration: a fork pins anew, and what the parent's tools did
// stays what it was.
func TestFork_OfAnotherConfiguration(t *testing.T) {
	tr := upToSend(t)
	inFlight := tr.run.Seq
	tr.node(came(agent.StatusOK, agent.ClassOK))
	tr.node(observed(agent.StatusOK, agent.ClassOK))
	without := func(at int64) agent.Spec {
		spec := tr.forkSpec(at)
		spec.Tools = slices.DeleteFunc(spec.Tools, func(p agent.Tool) bool { return p.Name == enginetest.ToolWrite })
		return spec
	}
	as := func(at int64, risk agent.Risk) agent.Spec {
		spec := tr.forkSpec(at)
		for i := range spec.Tools {
			if spec.Tools[i].Name == enginetest.ToolWrite {
				spec.Tools[i].Risk, spec.Tools[i].Approvers = risk, 0
			}
		}
		return spec
	}
	for name, spec := range map[string]agent.Spec{"gone": without(tr.run.Seq), "a read now": as(tr.run.Seq, agent.RiskRead)} {
		f := tr.carried(spec)
		turned, ok := f.payload(2).(agent.Turned)
		if !ok || turned.Calls[0].Tool != "" || turned.Calls[1].Tool != enginetest.ToolRead {
			t.Errorf("%s: the turn is carried as %+v, want the first call without its tool", name, turned)
		}
		if f.run.State != agent.StateExecute || f.run.Used.Calls != 1 || f.run.Call.Proposal.Tool != enginetest.ToolRead {
			t.Errorf("%s: in %s with %+v, want the read to be prepared", name, f.run.State, f.run.Call)
		}
	}
	tr.refusedFork("in flight, gone", without(inFlight), agent.CodeUnknown)
	tr.refusedFork("in flight, a read now", as(inFlight, agent.RiskRead), agent.CodeUnknown)
	f := tr.carried(without(inFlight - 1)) // granted, nothing sent
	if f.run.State != agent.StateExecute || f.run.Call.Proposal.Tool != "" {
		t.Errorf("not sent, gone: in %s with %+v, want the call prepared, for no tool", f.run.State, f.run.Call)
	}
}

func (tr *trace) payload(seq int64) any {
	tr.t.Helper()
	p, err := tr.entries[seq-1].Payload()
	if err != nil {
		tr.t.Fatal(err)
	}
	return p
}

// TestFork_BudgetsCountWhatTheParentUsed: exactly what was used passes; less is refused.
func TestFork_BudgetsCountWhatTheParentUsed(t *testing.T) {
	tr := begin(t, func() agent.Spec {
		s := enginetest.Spec("r")
		s.Prices = &agent.Prices{Currency: "EUR", Input: 1_000_000, Cached: 1_000_000, Output: 1_000_000}
		return s
	}())
	tr.node(proposes(enginetest.ToolRead))
	tr.node(tr.checked())
	tr.node(came(agent.StatusOK, agent.ClassOK))
	tr.node(observed(agent.StatusOK, agent.ClassOK))
	_, was, err := agent.ForkPoint(each(tr.entries), 0)
	if err != nil {
		t.Fatal(err)
	}
	exact := tr.forkSpec(0)
	exact.Prices = was.Spec.Prices
	exact.Budget = agent.Budget{Calls: 1, Turns: 2, Tokens: 110, Wall: 4, Cost: 110}
	if f := tr.carried(exact); f.run.Used != was.Used {
		t.Errorf("the fork has used %+v, the parent %+v", f.run.Used, was.Used)
	}
	for name, less := range map[string]func(*agent.Budget){
		"calls":  func(b *agent.Budget) { b.Calls-- },
		"turns":  func(b *agent.Budget) { b.Turns-- },
		"tokens": func(b *agent.Budget) { b.Tokens-- },
		"wall":   func(b *agent.Budget) { b.Wall-- },
		"cost":   func(b *agent.Budget) { b.Cost-- },
	} {
		spec := exact
		less(&spec.Budget)
		tr.refusedFork(name, spec, agent.CodeBudget)
	}
}

// TestFork_NeedsMoreTimeThanTheParentUsed: what was used counts, exactly at the limit too.
func TestFork_NeedsMoreTimeThanTheParentUsed(t *testing.T) {
	tr := begin(t, enginetest.Spec("r"))
	tr.now = tr.now.Add(3 * time.Second)
	tr.node(proposes(enginetest.ToolRead))
	entries := slices.Values(tr.entries)
	for wall, fits := range map[int64]bool{3: false, 4: true} {
		spec := enginetest.Spec("fork")
		spec.Budget.Wall = wall
		spec.Fork = &agent.Fork{Run: "r", Seq: tr.run.Seq, Head: tr.run.Head, Wall: 4}
		_, _, err := agent.Carry(spec, "carol", func(yield func(agent.Entry, error) bool) {
			for e := range entries {
				if !yield(e, nil) {
					return
				}
			}
		}, tr.now)
		if no := new(agent.Refusal); fits != (err == nil) || !fits && (!errors.As(err, &no) || no.Code != agent.CodeBudget) {
			t.Errorf("with %d s: %v", wall, err)
		}
	}
}

// TestFork_GoesOnWhereABudgetEnded: by each budget, under more of it.
func TestFork_GoesOnWhereABudgetEnded(t *testing.T) {
	overdone := func(spec agent.Spec, end func(*trace)) *trace {
		tr := begin(t, spec)
		end(tr)
		return tr
	}
	read := func(tr *trace) {
		tr.node(tr.checked())
		tr.node(came(agent.StatusOK, agent.ClassOK))
		tr.node(observed(agent.StatusOK, agent.ClassOK))
	}
	limited := func(b agent.Budget) agent.Spec {
		s := enginetest.Spec("r")
		s.Budget = b
		return s
	}
	most := agent.DefaultBudget
	for reason, row := range map[string]struct {
		tr   *trace
		open agent.EffectKind
	}{
		"budget:tool_calls": {overdone(limited(agent.Budget{Turns: 9, Tokens: most.Tokens, Wall: most.Wall}), func(tr *trace) {
			tr.node(proposes(enginetest.ToolRead, enginetest.ToolRead))
			tr.node(agent.Returned{Outcome: agent.Outcome{Status: agent.StatusRejected, Class: agent.ClassBudget}})
			tr.node(agent.Observed{Status: agent.StatusRejected, Class: agent.ClassBudget, Message: ref("no calls left")})
		}), agent.Prepare},
		"budget:model_turns": {overdone(limited(agent.Budget{Calls: 9, Turns: 1, Tokens: most.Tokens, Wall: most.Wall}), func(tr *trace) {
			tr.node(proposes(enginetest.ToolRead))
			read(tr)
		}), agent.Ask},
		"budget:tokens": {overdone(limited(agent.Budget{Calls: 9, Turns: 9, Tokens: 5, Wall: most.Wall}), func(tr *trace) {
			tr.node(proposes(enginetest.ToolRead))
		}), agent.Prepare},
		"budget:wall_time": {overdone(limited(agent.Budget{Calls: 9, Turns: 9, Tokens: most.Tokens, Wall: 2}), func(tr *trace) {
			tr.now = tr.now.Add(3 * time.Second)
			tr.take(agent.FromClock(tr.now))
		}), agent.Ask},
	} {
		if row.tr.run.Reason != reason {
			t.Fatalf("the parent ended by %q, want %s", row.tr.run.Reason, reason)
		}
		f := fork(t, row.tr, 0+row.tr.run.Seq)
		if f.run.Open == nil || f.run.Open.Kind != row.open || f.run.Carried.Last > row.tr.run.Seq {
			t.Errorf("%s: the fork waits for %+v, want %s", reason, f.run.Open, row.open)
		}
	}
}

func TestForkPoint_IsTheLatestThatServes(t *testing.T) {
	tr := story(t) // completed with its last entry, erased before
	point, was, err := agent.ForkPoint(each(tr.entries), 0)
	last := tr.run.Seq - 1
	if err != nil || point.Seq != last || point.Head != tr.entries[last-1].Hash() || was.State != agent.StateModel {
		t.Errorf("%+v in %s, %v; want entry %d", point, was.State, err, last)
	}
	run, erased, err := agent.Erase(tr.run, ref("told"), "operator", tr.tickTock())
	if err != nil {
		t.Fatal(err)
	}
	tr.run, tr.entries = run, append(tr.entries, erased)
	if point, _, err := agent.ForkPoint(each(tr.entries), 0); err != nil || point.Seq != last {
		t.Errorf("after an erasure: entry %d, %v; want %d", point.Seq, err, last)
	}
	for at, code := range map[int64]string{last + 1: agent.CodeEnded, last + 2: agent.CodeEnded, last + 3: agent.CodeInvalid, -1: agent.CodeInvalid} {
		_, _, err := agent.ForkPoint(each(tr.entries), at)
		var no *agent.Refusal
		if !errors.As(err, &no) || no.Code != code {
			t.Errorf("entry %d: %v, want refusal %s", at, err, code)
		} else if code == agent.CodeEnded && !strings.HasSuffix(no.Message, fmt.Sprint(" is ", last)) {
			t.Errorf("entry %d: %q does not name entry %d", at, no.Message, last)
		}
	}
}

// TestStep_RefusesWhatNoParentSaid: a carried event stands behind the start of a fork, in
// the parent's order, from before the fork point, in the place of a call that was
// prepared, and says nothing that the parent cannot have come to.
func TestStep_RefusesWhatNoParentSaid(t *testing.T) {
	parent := begin(t, enginetest.Spec("r"))
	parent.node(proposes(enginetest.ToolWrite, enginetest.ToolRead))
	f := fork(t, parent, parent.run.Seq) // carries entry 2, the last that it may
	point := *f.run.Spec.Fork
	later := point
	later.Seq = 9
	// The same fork of a longer parent, for what comes behind.
	spec := f.run.Spec
	spec.Fork = &later
	g := &trace{t: t, now: f.now}
	g.run, g.entries = f.run, f.entries
	g.run.Spec = spec
	mine := begin(t, enginetest.Spec("r"))
	mine.node(proposes(enginetest.ToolWrite))
	gone := g.clone()
	gone.node(agent.Returned{Outcome: agent.Outcome{Status: agent.StatusRejected, Class: agent.ClassToolError}})
	gone.node(observed(agent.StatusRejected, agent.ClassToolError))
	ok := agent.Returned{Outcome: agent.Outcome{Status: agent.StatusOK, Class: agent.ClassOK, Sent: true}, Arguments: arguments, Counted: true}
	with := func(change func(*agent.Returned)) agent.Returned { r := ok; change(&r); return r }
	candidate := *enginetest.Waiting(parent.task(), arguments).Candidate
	foreign := candidate
	foreign.Arguments = ref("other").SHA256
	if _, _, err := agent.Step(g.run, agent.FromParent(g.run.Open.Effect, ok, 4, g.now)); err != nil {
		t.Fatalf("the case needs an outcome that is carried: %v", err)
	}
	for name, row := range map[string]struct {
		tr   *trace
		said agent.Result
		seq  int64
		code string
	}{
		"at the start of a run that is no fork": {begin(t, enginetest.Spec("r")), proposes(enginetest.ToolRead), 2, agent.CodeInvalid},
		"in a run that is no fork":              {mine, ok, 2, agent.CodeInvalid},
		"from behind the fork point":            {f, ok, 3, agent.CodeInvalid},
		"from before the last":                  {g, ok, 2, agent.CodeInvalid},
		"from no entry":                         {g, ok, -1, agent.CodeInvalid},
		"after the fork went on":                {gone, ok, 5, agent.CodeInvalid},
		"an intent":                             {g, g.checked(), 4, agent.CodeInvalid},
		"a wait for approval":                   {g, enginetest.Waiting(g.task(), arguments), 4, agent.CodeInvalid},
		"the end of the budget": {g, with(func(r *agent.Returned) {
			r.Status, r.Class, r.Sent, r.Counted = agent.StatusRejected, agent.ClassBudget, false, false
		}), 4, agent.CodeInvalid},
		"sent, and did not count":             {g, with(func(r *agent.Returned) { r.Counted = false }), 4, agent.CodeInvalid},
		"settled, and did not count":          {g, with(func(r *agent.Returned) { r.Counted, r.Sent, r.Settled = false, false, true }), 4, agent.CodeInvalid},
		"a write that is ok and was not sent": {g, with(func(r *agent.Returned) { r.Sent = false }), 4, agent.CodeInvalid},
		"a write merely unavailable":          {g, with(func(r *agent.Returned) { r.Status, r.Class = agent.StatusUnavailable, agent.ClassTimeout }), 4, agent.CodeInvalid},
		"a write made to look done": {g, with(func(r *agent.Returned) {
			r.Counted, r.Sent, r.Substituted, r.Reason = false, false, true, agent.ReasonSubstituted
		}), 4, agent.CodeInvalid},
		"a candidate for other bytes":      {g, with(func(r *agent.Returned) { r.Candidate = &foreign }), 4, agent.CodeInvalid},
		"what it was elsewhere, by a node": {g, ok, 0, agent.CodeInvalid},
		"given, though nobody gave it":     {g, agent.Returned{Outcome: agent.Outcome{Status: agent.StatusRejected, Class: agent.ClassToolError, Reason: agent.ReasonSubstituted}, Substituted: true}, 0, agent.CodeInvalid},
	} {
		ev := agent.FromNode(row.tr.run.Open.Effect, row.said, row.tr.now)
		if row.seq != 0 {
			ev = agent.FromParent(row.tr.run.Open.Effect, row.said, row.seq, row.tr.now)
		}
		_, _, err := agent.Step(row.tr.run, ev)
		var no *agent.Refusal
		if !errors.As(err, &no) || no.Code != row.code {
			t.Errorf("%s: %v, want refusal %s", name, err, row.code)
		}
	}
}

// TestAdvance_AForkBeginsWithWhatItCarries: an engine that knows of no forks cannot begin
// one by accident.
func TestAdvance_AForkBeginsWithWhatItCarries(t *testing.T) {
	spec := withFork(enginetest.Spec("f"), agent.Fork{Run: "r", Seq: 1, Head: strings.Repeat("0", 64)})
	_, _, err := agent.Advance(agent.Run{}, agent.Begin(spec, "operator", epoch))
	var no *agent.Refusal
	if !errors.As(err, &no) || !strings.Contains(no.Message, "cannot fork") {
		t.Errorf("%v, want a refusal that says so", err)
	}
	for name, change := range map[string]func(*agent.Fork){
		"of itself":       func(f *agent.Fork) { f.Run = "f" },
		"of no run":       func(f *agent.Fork) { f.Run = "" },
		"from no entry":   func(f *agent.Fork) { f.Seq = 0 },
		"without a hash":  func(f *agent.Fork) { f.Head = "" },
		"of time to come": func(f *agent.Fork) { f.Wall = -1 },
	} {
		point := *spec.Fork
		change(&point)
		if bad := withFork(spec, point); bad.Check() == nil {
			t.Errorf("a fork %s was taken", name)
		}
	}
}

// TestSubstitute_IsExactlyWhatComes: while something is given, nothing else answers the
// effect; and it goes with the effect.
func TestSubstitute_IsExactlyWhatComes(t *testing.T) {
	parent := begin(t, enginetest.Spec("r"))
	f := fork(t, parent, 1)
	give := f.substitute()
	before := f.run.Open.Effect
	f.outside(give)
	if f.run.Open.Seq == before.Seq || f.run.Open.Kind != agent.Ask {
		t.Errorf("the effect is %+v, want another Ask", f.run.Open)
	}
	other := proposes(enginetest.ToolDestroy)
	for name, r := range map[string]agent.Result{"another turn": other, "a refused turn": agent.TurnRefused{Message: ref("x")}, "no turn": agent.Unreached{}} {
		var no *agent.Refusal
		if _, _, err := agent.Step(f.run, agent.FromNode(f.run.Open.Effect, r, f.now)); !errors.As(err, &no) || no.Code != agent.CodeStale {
			t.Errorf("%s: %v, want refusal %s", name, err, agent.CodeStale)
		}
	}
	f.node(give.Answer())
	if f.run.State != agent.StateExecute || f.run.Open.Substitute != nil || f.run.Used.Tokens != 0 {
		t.Errorf("in %s, given %v, used %+v; want the call prepared, nothing given, no tokens", f.run.State, f.run.Open.Substitute, f.run.Used)
	}
	f.node(f.checked())
	var no *agent.Refusal
	if _, _, err := agent.Step(f.run, agent.FromOutside(f.substitute(), "o", f.now)); !errors.As(err, &no) || no.Code != agent.CodeIllegal {
		t.Errorf("given for a Send: %v, want refusal %s", err, agent.CodeIllegal)
	}
	again, err := agent.Replay(each(f.entries))
	if err != nil || again.Head != f.run.Head {
		t.Errorf("replay: %s, %v", again.Head, err)
	}
}

func TestSubstitute_Refusals(t *testing.T) {
	parent := begin(t, enginetest.Spec("r"))
	model := fork(t, parent, 1)
	parent.node(proposes(enginetest.ToolWrite, enginetest.ToolRead))
	write := fork(t, parent, 2)
	read := write.clone()
	read.node(agent.Returned{Outcome: agent.Outcome{Status: agent.StatusRejected, Class: agent.ClassToolError}})
	read.node(observed(agent.StatusRejected, agent.ClassToolError))
	turn := model.substitute().Turn
	given := func(change func(*agent.Outcome)) agent.Substitute {
		out := agent.Outcome{Status: agent.StatusFailed, Class: agent.ClassToolError, Reason: agent.ReasonSubstituted}
		change(&out)
		return agent.Substitute{Outcome: &out}
	}
	ok := given(func(o *agent.Outcome) { o.Status, o.Class = agent.StatusOK, agent.ClassOK })
	paid, unexposed, mute := *turn, *turn, *turn
	paid.Usage.Output = 1
	unexposed.Calls = []agent.Proposal{{Tool: "desk__unheard"}}
	mute.Message = agent.BodyRef{}
	long := proposes(slices.Repeat([]string{enginetest.ToolRead}, agent.MaxCallsPerTurn+1)...)
	long.Usage = agent.Usage{}
	for name, row := range map[string]struct {
		tr   *trace
		give agent.Substitute
		code string // empty is taken
	}{
		"a turn":                        {model, agent.Substitute{Turn: turn}, ""},
		"an ok for a read":              {read, ok, ""},
		"a failure for a write":         {write, given(func(*agent.Outcome) {}), ""},
		"an ok for a write":             {write, ok, agent.CodeInvalid},
		"an unknown outcome":            {write, given(func(o *agent.Outcome) { o.Status = agent.StatusResultUnknown }), agent.CodeInvalid},
		"a wait":                        {write, given(func(o *agent.Outcome) { o.Status = agent.StatusWaitingApproval }), agent.CodeInvalid},
		"the end of the budget":         {read, given(func(o *agent.Outcome) { o.Class = agent.ClassBudget }), agent.CodeInvalid},
		"sent":                          {read, given(func(o *agent.Outcome) { o.Sent = true }), agent.CodeInvalid},
		"with a request":                {read, given(func(o *agent.Outcome) { o.Request = "1" }), agent.CodeInvalid},
		"without saying that it is one": {read, given(func(o *agent.Outcome) { o.Reason = "" }), agent.CodeInvalid},
		"nothing":                       {model, agent.Substitute{}, agent.CodeInvalid},
		"both":                          {model, agent.Substitute{Turn: turn, Outcome: ok.Outcome}, agent.CodeInvalid},
		"a turn in place of a call":     {read, agent.Substitute{Turn: turn}, agent.CodeIllegal},
		"a result in place of a turn":   {model, ok, agent.CodeIllegal},
		"a turn that cost something":    {model, agent.Substitute{Turn: &paid}, agent.CodeInvalid},
		"a turn without its message":    {model, agent.Substitute{Turn: &mute}, agent.CodeInvalid},
		"a tool that is not exposed":    {model, agent.Substitute{Turn: &unexposed}, agent.CodeInvalid},
		"33 calls":                      {model, agent.Substitute{Turn: &long}, agent.CodeInvalid},
		"in a run that is no fork":      {parent, ok, agent.CodeIllegal},
	} {
		_, _, err := agent.Step(row.tr.run, agent.FromOutside(row.give, "operator", row.tr.now))
		var no *agent.Refusal
		if row.code == "" && err != nil || row.code != "" && (!errors.As(err, &no) || no.Code != row.code) {
			t.Errorf("%s: %v, want %q", name, err, row.code)
		}
	}
}
