package nodes

import (
	"context"
	"fmt"

	"sallyport/agent"
)

// Presentation is a pending candidate as a person must see it: whole.
type Presentation struct {
	// Run is the run that waits; Run.Call holds the candidate and the grants that it
	// has, Run.Deadline when it expires.
	Run agent.Run
	// Arguments are the exact canonical bytes that would be sent, without the grant
	// field. Their digest is the candidate's.
	Arguments []byte
	// Proposal is the call as the model sent it.
	Proposal agent.ProposalBody
}

// showCandidate presents the pending candidate (state awaiting_approval, effect
// Present). It has nothing to report: whatever is shown or answered, only a signed
// decision that reaches the run through its engine moves it (SPEC A5).
func (n *Nodes) showCandidate(ctx context.Context, t agent.Task) (agent.Report, error) {
	p, err := proposal(ctx, t)
	if err != nil {
		return agent.Report{}, err
	}
	c := t.Run.Call.Candidate
	if c == nil {
		return agent.Report{}, fmt.Errorf("present call %s: it has no candidate", t.Run.Call.ID)
	}
	args, err := arguments(ctx, t)
	if err != nil {
		return agent.Report{}, err
	}
	if err := c.Matches(args); err != nil {
		return agent.Report{}, fmt.Errorf("present call %s: the stored arguments: %w", t.Run.Call.ID, err)
	}
	if n.present == nil {
		return agent.Report{}, nil
	}
	if err := n.present(ctx, Presentation{Run: t.Run, Arguments: args, Proposal: p}); err != nil {
		return agent.Report{}, fmt.Errorf("present call %s: %w", t.Run.Call.ID, err)
	}
	return agent.Report{}, nil
}
