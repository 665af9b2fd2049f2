package debug

import (
	"fmt"
	"time"

	"sallyport/agent"
)

// Position is a place in a run.
type Position struct {
	Step  int         // from 1
	Steps int         // recorded
	Seq   int64       // of the entry in the journal
	State agent.State // after it
}

// String is how a position is shown.
func (p Position) String() string {
	return fmt.Sprintf("@ step %d/%d · seq %d · %s", p.Step, p.Steps, p.Seq, p.State)
}

// Moment is a step with the run around it.
type Moment struct {
	Position
	Entry agent.Entry
	Was   agent.Run // before the entry; zero before the first
	Run   agent.Run // after it
}

// Mark is what is known of every step without reading it again.
type Mark struct {
	Seq     int64
	Time    time.Time
	Event   agent.Kind
	Row     agent.Row
	State   agent.State
	Opens   agent.EffectKind // the effect that it opened, if any
	Call    string           // id of the call that it is about
	Tool    string           // of that call; empty if the model named none that the run has
	Carried bool             // a fork took it over from its parent
}

// Call is a tool call as the journal has it.
type Call struct {
	ID          string // hash of run, sequence and index
	Tool        string // as the model knows it; empty if it named none that the run has
	Risk        agent.Risk
	First, Last int // steps: that began it, and that ended it; Last is 0 while it is open
	Status      agent.Status
	Class       agent.Class
	Reason      string
	Sent        bool // its intent is journaled: here, or, of a call that is carried, in the parent
	Edited      bool
	Settled     bool
	Substituted bool
	Carried     int64 // the parent's entry that the outcome is from
}

// Decision is what a person decided about a candidate, or about an unknown outcome.
type Decision struct {
	Step      int
	Row       agent.Row
	By        string // the name of the key that verified, or the operator
	Tool      string
	Call      string // id
	Candidate string // id; empty of a statement about a call that a fork carries
}

// account takes calls and decisions in.
func (s *Session) account(was, run agent.Run, e agent.Entry) error {
	step := len(s.marks)
	if was.Call != nil {
		if err := s.close(was, run, e, step); err != nil {
			return err
		}
	}
	if c := run.Call; c != nil {
		if was.Call == nil || was.Call.ID != c.ID {
			tool, _ := run.Spec.Tool(c.Proposal.Tool)
			s.calls = append(s.calls, Call{ID: c.ID, Tool: s.word(c.Proposal.Tool), Risk: tool.Risk, First: step})
		}
		s.calls[len(s.calls)-1].fill(c)
	}
	switch e.Event {
	case agent.KindApprove, agent.KindRefuse, agent.KindEdit, agent.KindAttest:
		d := Decision{Step: step, Row: e.Row, By: s.word(e.Actor)}
		if c := was.Call; c != nil {
			d.Tool, d.Call = s.word(c.Proposal.Tool), c.ID
			if c.Candidate != nil {
				d.Candidate = c.Candidate.ID
			}
		}
		s.decisions = append(s.decisions, d)
	}
	return nil
}

// close ends the call that was in hand, if the step did.
func (s *Session) close(was, run agent.Run, e agent.Entry, step int) error {
	last := &s.calls[len(s.calls)-1]
	if run.Call != nil && run.Call.ID == was.Call.ID && !run.State.Final() {
		return nil
	}
	last.Last = step
	p, err := e.Payload()
	if err != nil {
		return err
	}
	if o, ok := p.(agent.Observed); ok {
		last.Status, last.Class, last.Reason = o.Status, o.Class, s.word(o.Reason)
	}
	return nil
}

// fill takes what the run knows of the call.
func (c *Call) fill(from *agent.Call) {
	c.Sent, c.Edited, c.Settled, c.Substituted, c.Carried = from.Sent, from.Edited, from.Settled, from.Substituted, from.Carried
	c.Status, c.Class, c.Reason = "", "", ""
	if o := from.Outcome; o != nil {
		c.Status, c.Class, c.Reason = o.Status, o.Class, o.Reason
	}
}

// Calls are those that were begun by a step, oldest first, as they were then; 0 or less
// is all, as they are. Of one that was in hand at a step other than the cursor's, no
// more is told than that it was begun.
func (s *Session) Calls(step int) []Call {
	if step <= 0 {
		step = len(s.marks)
	}
	var out []Call
	for _, c := range s.calls {
		if c.First > step {
			break
		}
		if c.Last > step || c.Last == 0 && step < len(s.marks) {
			c = Call{ID: c.ID, Tool: c.Tool, Risk: c.Risk, First: c.First}
			if now := s.here.Run.Call; step == s.here.Step && now != nil {
				c.fill(now)
			}
		}
		out = append(out, c)
	}
	return out
}

// Decisions are those that were taken by a step; 0 or less is all.
func (s *Session) Decisions(step int) []Decision {
	if step <= 0 {
		step = len(s.marks)
	}
	n := 0
	for n < len(s.decisions) && s.decisions[n].Step <= step {
		n++
	}
	return s.decisions[:n:n]
}
