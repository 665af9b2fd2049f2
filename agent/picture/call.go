package picture

import (
	"time"

	"sallyport/agent"
)

// call is a tool call as the journal has it: names, numbers and fixed words.
type call struct {
	tool     string
	risk     agent.Risk
	from, to time.Time
	first    int64
	open     bool
	status   agent.Status
	reason   string
	attempts int // performed again
	sent     bool
	edited   bool
	settled  bool
	carried  bool
	replaced bool // an operator gave the outcome
}

// unnamed is shown for a call whose tool the run does not have: what the model called it
// is the model's text.
const unnamed = "(no such tool)"

// call follows the call in hand over one entry.
func (s *Story) call(was agent.Run, e agent.Entry) error {
	if was.Call != nil && len(s.calls) > 0 {
		if err := s.close(was, e); err != nil {
			return err
		}
	}
	c := s.run.Call
	if c == nil || s.run.State.Final() && was.Call == nil {
		return nil
	}
	if was.Call == nil || was.Call.ID != c.ID {
		tool, _ := s.run.Spec.Tool(c.Proposal.Tool)
		name := c.Proposal.Tool
		if name == "" {
			name = unnamed
		}
		s.calls = append(s.calls, call{tool: name, risk: tool.Risk, from: e.Time, to: e.Time, first: e.Seq, open: true})
	}
	if last := &s.calls[len(s.calls)-1]; last.open {
		last.fill(c)
		last.to = e.Time
		if e.Kind == agent.EntryAttempt {
			last.attempts++
		}
	}
	return nil
}

// close ends the call that was in hand, if the entry did.
func (s *Story) close(was agent.Run, e agent.Entry) error {
	last := &s.calls[len(s.calls)-1]
	last.to = e.Time
	if s.run.Call != nil && s.run.Call.ID == was.Call.ID && !s.run.State.Final() {
		return nil
	}
	last.fill(was.Call)
	last.open = false
	p, err := e.Payload()
	if err != nil {
		return err
	}
	if o, ok := p.(agent.Observed); ok {
		last.status, last.reason = o.Status, o.Reason
	}
	return nil
}

func (c *call) fill(from *agent.Call) {
	c.sent, c.edited, c.settled, c.carried, c.replaced = from.Sent, from.Edited, from.Settled, from.Carried != 0, from.Substituted
	c.status, c.reason = "", ""
	if o := from.Outcome; o != nil {
		c.status, c.reason = o.Status, o.Reason
	}
}

func (c *call) long() time.Duration { return c.to.Sub(c.from) }

// came is the outcome that the picture shows. A call that the run ended over keeps the
// outcome that it had; one that never had any is unfinished.
func (c *call) came() outcome {
	switch c.status {
	case agent.StatusOK:
		return wentWell
	case agent.StatusRejected:
		return rejected
	case agent.StatusFailed:
		return failed
	case agent.StatusResultUnknown:
		return unknown
	case agent.StatusUnavailable:
		return unavailable
	case agent.StatusWaitingApproval:
		return waiting
	}
	return unfinished
}
