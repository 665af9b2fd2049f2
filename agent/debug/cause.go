package debug

import (
	"context"

	"sallyport/agent"
)

// Cause is an entry of the answer to "why are we here".
type Cause struct {
	Step  int
	Entry agent.Entry
	Word  string // what it was: turn, proposal, check, candidate, approval, intent, result, outcome, ...
	Says  string // the table's sentence about its row
}

// maxCauses bounds a chain: a call that was edited, or checked, very often.
const maxCauses = 1000

// Causes says why a run is where a step left it: that step, then the one that led to it,
// and so on to the turn of the model in which it all was proposed, and the start.
func (s *Session) Causes(ctx context.Context, step int) ([]Cause, error) {
	var chain []Cause
	for step > 0 && len(chain) < maxCauses {
		m, err := s.At(ctx, step)
		if err != nil {
			return chain, err
		}
		chain = append(chain, causeOf(m))
		if m.Entry.Event == agent.KindTurned && len(chain) > 1 && step > 1 {
			step = 1 // what the model was asked with is the whole run before
			continue
		}
		step = s.ledTo(m)
	}
	return chain, nil
}

// ledTo is the step that a step follows from; 0 if it is the first.
func (s *Session) ledTo(m Moment) int {
	if m.Step == 1 {
		return 0
	}
	if m.Entry.Event == agent.KindApprove && s.Mark(m.Step-1).Row == agent.RowEndorsed {
		return m.Step - 1
	}
	seq := m.Entry.Effect
	if seq == 0 && m.Was.Open != nil {
		seq = m.Was.Open.Seq
	}
	by := s.StepOf(seq)
	switch {
	case by < 1 || by >= m.Step:
		return m.Step - 1
	case s.Mark(by).Row == agent.RowNextCall && m.Was.Turn != nil:
		return s.StepOf(m.Was.Turn.Seq) // the call before is not why this one is made
	}
	return by
}

func causeOf(m Moment) Cause {
	c := Cause{Step: m.Step, Entry: m.Entry, Word: word(m)}
	for _, t := range agent.Table() {
		if t.Row == m.Entry.Row && (c.Says == "" || contains(t.From, m.Was.State)) {
			c.Says = t.Says
		}
	}
	return c
}

func contains(states []agent.State, s agent.State) bool {
	for _, o := range states {
		if o == s {
			return true
		}
	}
	return false
}

// said are the words for kinds of events of which there is one.
var said = map[agent.Kind]string{
	agent.KindStart: "start", agent.KindTurned: "turn", agent.KindTurnRefused: "turn refused", agent.KindUnreached: "model unreached",
	agent.KindChecked: "intent", agent.KindVerified: "evidence", agent.KindApprove: "approval", agent.KindRefuse: "refusal",
	agent.KindEdit: "edit", agent.KindAttest: "statement", agent.KindCancel: "cancel", agent.KindPause: "pause", agent.KindResume: "resume",
	agent.KindStepOnce: "single step", agent.KindExtend: "extension", agent.KindSubstitute: "substitute", agent.KindTick: "deadline",
}

func word(m Moment) string {
	switch m.Entry.Row {
	case agent.RowProposed:
		return "proposal"
	case agent.RowAnswered:
		return "answer"
	case agent.RowApprovalRequired:
		return "candidate"
	case agent.RowOutcomeUnknown:
		return "unknown outcome"
	}
	switch m.Entry.Event {
	case agent.KindReturned:
		if m.Was.Open != nil && m.Was.Open.Kind == agent.Prepare {
			return "check"
		}
		return "result"
	case agent.KindObserved:
		return "outcome"
	}
	return said[m.Entry.Event]
}
