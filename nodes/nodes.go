package nodes

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"sallyport/agent"
)

// Config is what the nodes of one run are made of.
type Config struct {
	// Model answers Ask. It may serve many runs at once.
	Model Model
	// Bridge belongs to this run alone (SPEC A7); Close closes it.
	Bridge Bridge
	// System is the operator's own text for the model. It follows [Rules], which the
	// model is always told, and may be empty.
	System string
	// Window bounds the messages of a request; zero is [DefaultWindow].
	Window Window
	// Derived reports whether the Host derives the status of a tool's results, by the
	// tool's exposed name (SPEC B13): then all of its structured content is data. Nil
	// goes by what a result looks like, which matters for a tool only whose own
	// results happen to look like {status, message, data}.
	Derived func(tool string) bool
	// Present shows a pending candidate. It decides nothing: a decision reaches the
	// run through its engine. It should end soon after ctx is done. Nil shows nothing.
	Present func(ctx context.Context, p Presentation) error
	// Log takes one line per step of a call (SPEC C3). The zero value discards them.
	Log zerolog.Logger
	// Now times the model's turns for the log. Nil is time.Now.
	Now func() time.Time
}

// Nodes perform the effects of one run: one file for each state that works. They
// return results and never write the run's state.
type Nodes struct {
	model   Model
	bridge  Bridge
	system  string
	window  Window
	derived func(string) bool
	present func(context.Context, Presentation) error
	log     zerolog.Logger
	now     func() time.Time
}

var _ agent.Nodes = (*Nodes)(nil)

// New wires the nodes of one run. It does no I/O.
func New(c Config) *Nodes {
	n := &Nodes{
		model: c.Model, bridge: c.Bridge, system: SystemText(c.System), window: c.Window,
		derived: c.Derived, present: c.Present, log: c.Log, now: c.Now,
	}
	if n.now == nil {
		n.now = time.Now
	}
	return n
}

// Perform does what the task's effect says. An error means that the runtime could
// not do its job: the effect stays open and is performed again.
func (n *Nodes) Perform(ctx context.Context, t agent.Task) (agent.Report, error) {
	switch t.Effect.Kind {
	case agent.Ask:
		return n.ask(ctx, t)
	case agent.Prepare:
		return n.prepare(ctx, t)
	case agent.Send:
		return n.send(ctx, t)
	case agent.Observe:
		return n.observe(ctx, t)
	case agent.Present:
		return n.showCandidate(ctx, t)
	case agent.Verify:
		return n.verify(ctx, t)
	}
	return agent.Report{}, fmt.Errorf("perform %q: no node does that", t.Effect.Kind)
}

// Close closes the bridge, and with it the run's connections.
func (n *Nodes) Close() error {
	if err := n.bridge.Close(); err != nil {
		return fmt.Errorf("close the bridge: %w", err)
	}
	return nil
}
