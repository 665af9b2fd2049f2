package scenarios

import (
	"context"

	"sallyport/agent"
)

// Nodes makes the nodes of a run from what it was begun with. It is for an
// [agent.Engine.Serve] that takes every open run; whoever calls it closes them.
func (h *Host) Nodes(ctx context.Context, run agent.Run) (agent.Nodes, error) {
	return h.nodes(ctx, run)
}
