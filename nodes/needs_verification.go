package nodes

import (
	"context"
	"fmt"

	"sallyport/agent"
)

// reasonNoReadBack says that the contract declares no way to check.
const reasonNoReadBack = "no_read_back"

// verify brings evidence about a write whose outcome is unknown (state
// needs_verification, effect Verify). It judges nothing that the evidence does not
// decide, and where the check could not be made the effect stays open.
func (n *Nodes) verify(ctx context.Context, t agent.Task) (agent.Report, error) {
	p, call, err := callInHand(ctx, t)
	if err != nil {
		return agent.Report{}, err
	}
	if pin, ok := t.Run.Spec.Tool(t.Run.Call.Proposal.Tool); !ok || !pin.Settle {
		return agent.Report{Result: agent.Verified{Finding: agent.Undecided, Reason: reasonNoReadBack}}, nil
	}
	found, bodies, err := n.bridge.ReadBack(ctx, call)
	if err != nil {
		return agent.Report{}, fmt.Errorf("read back call %s: %w", t.Run.Call.ID, err)
	}
	n.logFinding(t, p, found)
	return agent.Report{Result: found, Bodies: bodies}, nil
}
