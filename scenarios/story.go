package scenarios

import (
	"sallyport/agent"
)

// Call is what became of one tool call, as a run's journal tells it.
type Call struct {
	ID        string       `json:"id"`
	Tool      string       `json:"tool"` // empty: the model named none that the run has
	Status    agent.Status `json:"status,omitempty"`
	Class     agent.Class  `json:"class,omitempty"`
	Reason    string       `json:"reason,omitempty"`
	Arguments string       `json:"arguments,omitempty"` // SHA-256 of the exact bytes
	Sent      bool         `json:"sent"`                // a request left the Host, or may have
	Carried   int64        `json:"carried,omitempty"`   // of a fork: the parent's entry that the outcome is from
	Request   string       `json:"request,omitempty"`   // the MCP request id
	Approvers []string     `json:"approvers,omitempty"` // who signed

	arguments agent.BodyRef
}

// Calls tells the calls of a run from its entries, in order.
func Calls(entries []agent.Entry) ([]Call, error) {
	var told []Call
	var run agent.Run
	for _, e := range entries {
		var err error
		if run, err = agent.Apply(run, e); err != nil {
			return nil, err
		}
		if e.Kind != agent.EntryEvent {
			continue
		}
		if e.Event == agent.KindObserved && len(told) > 0 {
			told[len(told)-1].observed(e)
		}
		if run.Call == nil {
			continue
		}
		if len(told) == 0 || told[len(told)-1].ID != run.Call.ID {
			told = append(told, Call{ID: run.Call.ID, Tool: run.Call.Proposal.Tool})
		}
		told[len(told)-1].follow(run.Call)
	}
	return told, nil
}

// follow takes what the run knows of its call in hand.
func (c *Call) follow(now *agent.Call) {
	c.Sent, c.Carried = now.Sent, now.Carried
	if !now.Arguments.IsZero() {
		c.Arguments, c.arguments = now.Arguments.SHA256, now.Arguments
	}
	if len(now.Grants) > 0 {
		c.Approvers = nil
	}
	for _, g := range now.Grants {
		c.Approvers = append(c.Approvers, g.Approver)
	}
	if o := now.Outcome; o != nil {
		c.Status, c.Class, c.Reason = o.Status, o.Class, o.Reason
		if o.Request != "" {
			c.Request = o.Request
		}
	}
}

// observed takes the last word on a call, which may be worse than what was returned.
func (c *Call) observed(e agent.Entry) {
	p, err := e.Payload()
	if o, ok := p.(agent.Observed); err == nil && ok {
		c.Status, c.Class, c.Reason = o.Status, o.Class, o.Reason
	}
}
