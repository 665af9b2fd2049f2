package audit_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

// walker takes random steps that are each possible where it stands.
type walker struct {
	*desk
	*rand.Rand
}

func (w walker) one(of ...func()) { of[w.IntN(len(of))]() }

// tries delivers a decision, and notes it where Step refuses.
func (w walker) tries(ev agent.Event) {
	if _, _, err := agent.Step(w.run, ev); err != nil {
		if w.run.Noted < agent.MaxNoted {
			w.note(ev)
		}
		return
	}
	w.take(ev)
}

func (w walker) outside(d agent.Decision) { w.tries(agent.FromOutside(d, "operator", w.tick())) }

func (w walker) node(r agent.Result) {
	w.tries(agent.FromNode(w.run.Open.Effect, r, w.tick()))
}

// step takes one step, or lets a person or the clock have a word.
func (w walker) step() {
	switch {
	case w.IntN(8) == 0:
		w.meddles()
	case w.run.Open == nil || !w.run.Startable():
		w.one(func() { w.outside(agent.Resume{}) }, func() { w.outside(agent.StepOnce{}) }, w.decides)
	default:
		w.performs()
	}
}

func (w walker) meddles() {
	w.one(
		func() { w.outside(agent.Pause{}) },
		func() { w.outside(agent.Resume{}) },
		func() { w.outside(agent.StepOnce{}) },
		func() {
			w.outside(agent.Extend{Budget: agent.Budget{Calls: w.IntN(2), Turns: w.IntN(3), Wall: int64(w.IntN(9)), Cost: int64(w.IntN(2)) * min(w.run.Budget.Cost, 200)}})
		},
		func() {
			if w.IntN(4) == 0 {
				w.outside(agent.Cancel{Abandon: w.IntN(2) == 0})
			}
		},
		func() { w.now = w.now.Add(time.Duration(w.IntN(700)) * time.Second) },
		func() { w.tries(agent.FromClock(w.tick())) },
		w.again,
	)
}

// again attempts what is open, as a process does that starts anew.
func (w walker) again() {
	o := w.run.Open
	if o == nil || w.run.State.Final() || o.Kind == agent.Present || !o.Released {
		return
	}
	if o.Kind == agent.Send && w.writes() {
		w.node(agent.Returned{Outcome: agent.Outcome{Status: agent.StatusResultUnknown, Class: agent.ClassProtocolError, Reason: agent.ReasonCrashed, Sent: true}})
		return
	}
	w.attempt()
}

func (w walker) writes() bool {
	tool, known := w.run.Spec.Tool(w.run.Call.Proposal.Tool)
	return known && tool.Risk.Writes()
}

func (w walker) performs() {
	switch w.run.Open.Kind {
	case agent.Ask:
		w.one(w.proposesSome, w.proposesSome, w.proposesSome, func() { w.node(agent.Turned{Message: w.store("answer")}) },
			func() {
				w.node(agent.TurnRefused{Reason: "length", Message: w.store("cut off"), Usage: agent.Usage{Output: 9}})
			},
			func() { w.node(agent.Unreached{Reason: "timeout", After: 1, Final: w.IntN(4) == 0}) })
	case agent.Prepare:
		w.prepares()
	case agent.Send:
		w.one(func() { w.node(w.came(agent.StatusOK, agent.ClassOK)) }, func() { w.node(w.came(agent.StatusFailed, agent.ClassToolError)) },
			func() { w.node(w.came(agent.StatusResultUnknown, agent.ClassTimeout)) },
			func() { w.node(w.came(agent.StatusUnavailable, agent.ClassTimeout)) })
	case agent.Observe:
		w.observes()
	case agent.Present:
		w.decides()
	case agent.Verify:
		finding := []agent.Finding{agent.Applied, agent.NotApplied, agent.Undecided}[w.IntN(3)]
		w.node(agent.Verified{Finding: finding, Evidence: w.store("evidence")})
	}
}

func (w walker) proposesSome() {
	var tools []string
	for range 1 + w.IntN(3) {
		tools = append(tools, []string{enginetest.ToolRead, enginetest.ToolWrite, enginetest.ToolDestroy, ""}[w.IntN(4)])
	}
	w.node(w.proposes(tools...))
}

func (w walker) prepares() {
	tool, known := w.run.Spec.Tool(w.run.Call.Proposal.Tool)
	switch {
	case !known:
		w.node(agent.Returned{Outcome: agent.Outcome{Status: agent.StatusRejected, Class: agent.ClassToolError}})
	case w.run.Used.Calls >= w.run.Budget.Calls:
		w.node(agent.Returned{Outcome: agent.Outcome{Status: agent.StatusRejected, Class: agent.ClassBudget}})
	case tool.Approvers > len(w.run.Call.Grants) || w.IntN(8) == 0 && tool.Approvers > 0:
		w.node(w.waiting())
	default:
		was := w.run.Seq
		if w.node(w.checked()); w.run.State == agent.StateExecute && !w.run.Call.Sent && w.run.Seq > was && !w.run.Held {
			w.node(w.waiting()) // the grant has expired
		}
	}
}

func (w walker) observes() {
	o := w.told()
	if o.Status == agent.StatusOK && !w.run.Call.Settled && w.IntN(5) == 0 { // the result does not hold
		o.Status, o.Class, o.Reason = agent.StatusUnavailable, agent.ClassProtocolError, "invalid_result"
		if w.writes() {
			o.Status, o.Message = agent.StatusResultUnknown, agent.BodyRef{}
		}
	}
	if w.run.Call.Outcome.Status == agent.StatusResultUnknown {
		if !w.writes() {
			o.Message = w.store("told")
		}
	}
	w.node(o)
}

// decides has a person say something, which may be wrong.
func (w walker) decides() {
	c := w.run.Call
	if c == nil || c.Candidate == nil {
		return
	}
	by := []string{"alice", "bob", "alice", "bob", "mallory"}[w.IntN(5)]
	w.one(
		func() { w.outside(w.sign(by)) }, func() { w.outside(w.sign(by)) }, func() { w.outside(w.sign(by)) },
		func() { w.outside(w.refusal(by)) },
		func() { w.outside(agent.Refuse{Candidate: c.Candidate.ID}) },
		func() { w.outside(w.edit(by, []string{`{"n":2}`, `{"n":3}`}[w.IntN(2)])) },
		func() {
			verdict := []string{"applied", "not_applied", "unknown"}[w.IntN(3)]
			w.outside(enginetest.Statement(w.run, by, verdict, w.now))
		},
	)
}

// What Step lets pass, the witness lets pass, and both count alike, wherever a run
// may get to.
func TestWitness_AgreesWithStep(t *testing.T) {
	states := map[agent.State]int{}
	var writes, statements, unknown int
	for seed := range uint64(300) {
		spec := enginetest.Spec("r")
		spec.Budget = agent.Budget{Calls: 2 + int(seed%5), Turns: 2 + int(seed%7), Tokens: 200 + int64(seed%9)*100, Wall: 20 + int64(seed%11)*200}
		if seed%3 == 0 {
			spec.Prices = &agent.Prices{Currency: "EUR", Input: 1_500_000, Cached: 700_001, Output: 9_000_000}
			spec.Budget.Cost = int64(seed%4) * 400
		}
		w := walker{begin(t, spec), rand.New(rand.NewPCG(seed, 1))}
		for range 60 {
			if w.run.State.Final() {
				break
			}
			w.step()
		}
		states[w.run.State]++
		r := w.clean()
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		writes, statements = writes+r.Counts.Writes, statements+r.Counts.Statements
		for _, e := range w.entries {
			if e.Row == agent.RowOutcomeUnknown {
				unknown++
			}
		}
	}
	for _, s := range []agent.State{agent.StateCompleted, agent.StateFailed, agent.StateCancelled} {
		if states[s] == 0 {
			t.Errorf("no walk ended %s: %v", s, states)
		}
	}
	if writes < 50 || statements < 50 || unknown < 10 {
		t.Errorf("the walks saw %d writes, %d statements, %d unknown outcomes", writes, statements, unknown)
	}
	t.Logf("ended %v; %d writes, %d statements, %d unknown outcomes", states, writes, statements, unknown)
}
