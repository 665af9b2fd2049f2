package llm

import (
	"context"

	"sallyport/nodes"
)

// Adversary is a model that tries everything.
type Adversary struct{ Seed int64 }

// Turn tries.
func (a Adversary) Turn(ctx context.Context, r nodes.Request) (nodes.Reply, error) {
	return Obedient{}.Turn(ctx, r)
}
