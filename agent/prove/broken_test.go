package prove_test

import (
	"errors"
	"slices"
	"testing"

	"sallyport/agent"
	"sallyport/agent/enginetest"
	"sallyport/agent/prove"
)

// A step from which something is missing: the proof must find what it lets through, and
// show the path. Each is made around the real Step.
func TestProve_FindsWhatIsMissingFromStep(t *testing.T) {
	for name, c := range map[string]struct {
		tool string
		rule string
		step prove.StepFunc
		with string // a sentence of the path
	}{
		"the gate": {
			enginetest.ToolWrite, "unsigned", withoutGate,
			"The Host finds nothing against the call: the intent to send desk__write.",
		},
		"that two signatures are two people's": {
			enginetest.ToolDestroy, "unsigned", oneKeyTwice,
			"alice signs exactly the candidate of desk__destroy.",
		},
		"the comparison of bytes": {
			enginetest.ToolWrite, "unsigned", anyBytes,
			"The Host intends to send desk__write with other bytes.",
		},
		"the comparison of an edit": {
			enginetest.ToolWrite, "edited", anyBytes,
			"alice puts other arguments in place of those of desk__write.",
		},
		"the comparison of definitions": {
			enginetest.ToolRead, "changed", anyDefinition,
			"The Host intends to send desk__read although its definition has changed.",
		},
		"the budget": {
			enginetest.ToolRead, "budget", withoutBudget,
			"The Host finds nothing against the call: the intent to send desk__read.",
		},
		"the cancel": {
			enginetest.ToolRead, "cancelled", deafTo(agent.KindCancel),
			"The operator cancels the run.",
		},
		"the refusal": {
			enginetest.ToolWrite, "refused", deafTo(agent.KindRefuse),
			"The operator refuses the candidate of desk__write.",
		},
		"the pause": {
			enginetest.ToolRead, "held", withoutHold,
			"The operator pauses the run.",
		},
		"that an unknown outcome is waited for": {
			enginetest.ToolWrite, "unknown", unknownIsFailed,
			"The outcome is stored: result_unknown.",
		},
		"that a call is sent once": {
			enginetest.ToolRead, "twice", triesAgain,
			"The call returns unavailable.",
		},
		"that only persons end a wait": {
			enginetest.ToolWrite, "left unasked", modelApproves,
			"The Host answers present with something else.",
		},
		"the deadline": {
			enginetest.ToolWrite, "unsigned", withoutDeadline,
			"alice signs the candidate of desk__write, so late that the candidate has expired.",
		},
		"that an answer is to what was asked": {
			enginetest.ToolRead, "stale", anyAnswer,
			"An intent to send comes late, or twice.",
		},
		"that an end is an end": {
			enginetest.ToolRead, "after the end", resurrects,
			"The operator resumes the run.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := proven(t, prove.Options{Spec: spec(c.tool), Step: c.step})
			at := slices.IndexFunc(r.Failures, func(f prove.Failure) bool { return f.Rule == c.rule })
			if r.Verdict != prove.Broken || at < 0 {
				t.Fatalf("%s; want rule %q broken:\n%s", r.Verdict, c.rule, r.Text())
			}
			steps := r.Failures[at].Path.Steps
			if !slices.ContainsFunc(steps, func(s prove.Step) bool { return s.Says == c.with }) {
				t.Errorf("no step of the path says %q: %+v", c.with, steps)
			}
		})
	}
}

// approvers is the run with another number of signatures pinned.
func approvers(r agent.Run, n int) agent.Run {
	r.Spec.Tools = slices.Clone(r.Spec.Tools)
	for i := range r.Spec.Tools {
		r.Spec.Tools[i].Approvers = n
	}
	return r
}

// withoutGate lets every intent pass without a signature.
func withoutGate(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
	if ev.Kind() != agent.KindChecked {
		return agent.Step(r, ev)
	}
	next, effects, err := agent.Step(approvers(r, 0), ev)
	next.Spec = r.Spec
	return next, effects, err
}

// oneKeyTwice forgets who has signed already.
func oneKeyTwice(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
	if ev.Kind() != agent.KindApprove || r.Call == nil {
		return agent.Step(r, ev)
	}
	blind, call := r, *r.Call
	call.Grants = slices.Clone(call.Grants)
	for i := range call.Grants {
		call.Grants[i].Key, call.Grants[i].Approver = "", ""
	}
	blind.Call = &call
	next, effects, err := agent.Step(blind, ev)
	if err != nil {
		return r, nil, err
	}
	next.Call.Grants = append(slices.Clone(r.Call.Grants), next.Call.Grants[len(r.Call.Grants):]...)
	return next, effects, nil
}

// intends steps another intent than the one that came.
func intends(r agent.Run, ev agent.Event, change func(*agent.Checked)) (agent.Run, []agent.Effect, error) {
	c, ok := ev.Payload().(agent.Checked)
	if !ok || r.Open == nil || r.Open.Kind != agent.Prepare {
		return agent.Step(r, ev)
	}
	change(&c)
	return agent.Step(r, agent.FromNode(r.Open.Effect, c, ev.Time()))
}

// anyBytes takes an intent for whatever bytes as one for those that were signed.
func anyBytes(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
	return intends(r, ev, func(c *agent.Checked) {
		if cand := r.Call.Candidate; cand != nil {
			c.Arguments = agent.BodyRef{SHA256: cand.Arguments, Bytes: cand.Bytes}
		}
	})
}

// anyDefinition takes a changed definition for the pinned one.
func anyDefinition(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
	return intends(r, ev, func(c *agent.Checked) {
		if t, ok := r.Spec.Tool(r.Call.Proposal.Tool); ok {
			c.Definition = t.Definition
		}
	})
}

// withoutBudget counts no calls.
func withoutBudget(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
	if ev.Kind() != agent.KindChecked {
		return agent.Step(r, ev)
	}
	rich := r
	rich.Budget.Calls += 100
	next, effects, err := agent.Step(rich, ev)
	next.Budget = r.Budget
	return next, effects, err
}

// deafTo takes events of a kind, and does nothing about them.
func deafTo(kind agent.Kind) prove.StepFunc {
	return func(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
		next, effects, err := agent.Step(r, ev)
		if err != nil || ev.Kind() != kind {
			return next, effects, err
		}
		r.Seq, r.Time = next.Seq, next.Time
		return r, nil, nil
	}
}

// withoutHold takes an intent while the run is paused.
func withoutHold(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
	if ev.Kind() == agent.KindChecked && r.Open != nil {
		open := *r.Open
		open.Released = true
		r.Open = &open
	}
	return agent.Step(r, ev)
}

// unknownIsFailed takes an unknown outcome for a failure.
func unknownIsFailed(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
	o, ok := ev.Payload().(agent.Observed)
	if !ok || r.Open == nil || o.Status != agent.StatusResultUnknown || r.Call == nil || r.Call.Outcome == nil {
		return agent.Step(r, ev)
	}
	call, out := *r.Call, *r.Call.Outcome
	out.Status = agent.StatusFailed
	call.Outcome = &out
	r.Call = &call
	o.Status, o.Message = agent.StatusFailed, enginetest.Task.Ref
	return agent.Step(r, agent.FromNode(r.Open.Effect, o, ev.Time()))
}

// triesAgain prepares a call once more that came back unavailable.
func triesAgain(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
	next, effects, err := agent.Step(r, ev)
	if back, ok := ev.Payload().(agent.Returned); err != nil || !ok || !back.Sent || back.Status != agent.StatusUnavailable {
		return next, effects, err
	}
	e := agent.Effect{Kind: agent.Prepare, Seq: next.Seq, Call: next.Call.ID}
	next.State, next.Open, next.Budget.Calls = agent.StateExecute, &agent.OpenEffect{Effect: e, Released: true}, next.Budget.Calls+1
	return next, []agent.Effect{e}, nil
}

// modelApproves lets what the model says end a wait.
func modelApproves(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
	if r.State != agent.StateAwaitingApproval || ev.Kind() != agent.KindTurned {
		return agent.Step(r, ev)
	}
	e := agent.Effect{Kind: agent.Prepare, Seq: r.Seq + 1, Call: r.Call.ID}
	r.Seq, r.State, r.Open = r.Seq+1, agent.StateExecute, &agent.OpenEffect{Effect: e, Released: true}
	return r, []agent.Effect{e}, nil
}

// resurrects resumes a run that has ended.
func resurrects(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
	if !r.State.Final() || ev.Kind() != agent.KindResume {
		return agent.Step(r, ev)
	}
	e := agent.Effect{Kind: agent.Ask, Seq: r.Seq + 1}
	r.Seq, r.State, r.Call, r.Open = r.Seq+1, agent.StateModel, nil, &agent.OpenEffect{Effect: e, Released: true}
	return r, []agent.Effect{e}, nil
}

// withoutDeadline takes a grant for a candidate that has expired.
func withoutDeadline(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
	if ev.Kind() != agent.KindApprove {
		return agent.Step(r, ev)
	}
	patient := r
	patient.Deadline = ev.Time().Add(1)
	next, effects, err := agent.Step(patient, ev)
	next.Deadline = r.Deadline
	return next, effects, err
}

// anyAnswer takes an answer to a closed effect for one to the open effect.
func anyAnswer(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
	next, effects, err := agent.Step(r, ev)
	var no *agent.Refusal
	said, ok := ev.Payload().(agent.Result)
	if !errors.As(err, &no) || no.Code != agent.CodeStale || !ok || r.Open == nil {
		return next, effects, err
	}
	return agent.Step(r, agent.FromNode(r.Open.Effect, said, ev.Time()))
}
