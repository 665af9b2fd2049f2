package scenarios

import (
	"context"
	"errors"

	"sallyport/agent"
	"sallyport/agent/embedded"
)

// crashPoints are the points of the runtime at which a process can die.
func crashPoints() []string {
	points := []string{agent.BeforeCommit, agent.AfterCommit, embedded.InCommit, embedded.Delivered}
	for _, k := range []agent.EffectKind{agent.Ask, agent.Prepare, agent.Send, agent.Observe, agent.Present, agent.Verify} {
		points = append(points, agent.BeforePerform+":"+string(k), agent.AfterPerform+":"+string(k))
	}
	return points
}

func (p *play) elsewhere(context.Context) (*facts, error) {
	return nil, errors.New("not yet")
}
