package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/nodes/llm"
	"sallyport/scenarios/config"
	"sallyport/tools"
	"sallyport/tools/bridge"
)

// Host begins and serves runs on one engine. Its methods may be called by many
// goroutines at once.
type Host struct {
	Engine agent.Engine
	// StateDir holds the ledgers of builtin servers.
	StateDir string
	// Self is the path of the executable that builtin servers are started from.
	Self string
	// Model, if set, answers in place of the setup's script. It may serve many runs at
	// once; it is asked for again when a run is resumed.
	Model func(agent.Run) nodes.Model
	// Endpoint makes the model of runs that ask an endpoint, and decides whether it may
	// be asked; it is called before a run begins, and by every process that serves it.
	// Nil is [ErrNoEndpoints].
	Endpoint func(config.Endpoint) (nodes.Model, error)
	// Record, if set, records what the model of a run answers.
	Record func(agent.Run, nodes.Model) nodes.Model
	// Actor names the operator: who begins runs, and refuses without a signature. Where
	// several must sign, the approver of this name is none of them (unless a contract
	// says `own_key`).
	Actor string
	// Log takes one line per step of a call (SPEC C3).
	Log zerolog.Logger
	// Now is the clock; nil is time.Now.
	Now func() time.Time

	// hear, if set, listens to what a model is asked; direct, if set, acts between the
	// effects of a run.
	hear   func(nodes.Model) nodes.Model
	direct func(agent.Nodes) agent.Nodes

	// serverKeys, if set, are what builtin servers are given in place of the approvers'
	// keys: to see that they refuse.
	serverKeys []string

	// programs, if set, are servers that run in this process: see [bridge.Config].
	programs map[string]bridge.Program
}

// Plan is a run that is to begin.
type Plan struct {
	Run       string // its id
	Task      string
	Setup     Setup
	Approvers []agent.Approver
	Budget    agent.Budget
	Model     string        // a label
	Prices    *agent.Prices // of its tokens; nil if nobody said
	// Config, if set, is where mistakes that are found at the discovery have their place.
	Config *config.Config
}

// Discover asks every server of a setup for its tools, once, and closes them again.
// Builtin servers do not start without the approvers' keys. It returns an
// [Unreachable] if a required server cannot be discovered.
func (h *Host) Discover(ctx context.Context, s Setup, approvers []agent.Approver) (bridge.Found, error) {
	found, err := bridge.Discover(ctx, h.bridge(s, approvers))
	if err != nil {
		return found, fmt.Errorf("discover the tools: %w", err)
	}
	if missing := found.Missing(); len(missing) > 0 {
		return found, &Unreachable{Problems: missing}
	}
	if problems := tools.CheckExposed(found.Exposed); len(problems) > 0 {
		return found, &Clash{problems}
	}
	return found, nil
}

// Clash says that tools, as their servers describe them, cannot be told apart by a
// model (SPEC C6). No run is begun with them.
type Clash struct{ Problems []tools.Problem }

// Error names the first of them.
func (c *Clash) Error() string { return "discover the tools: " + c.Problems[0].Error() }

// placed puts what a discovery found about a configuration at its place there.
func placed(c *config.Config, err error) error {
	var clash *Clash
	if c != nil && errors.As(err, &clash) {
		return c.Problems(clash.Problems)
	}
	return err
}

// Unreachable says that required servers cannot be discovered: no run was created.
type Unreachable struct{ Problems []bridge.Problem }

// Error names the servers and the reasons, and the end of what each said.
func (u *Unreachable) Error() string {
	texts := make([]string, len(u.Problems))
	for i, p := range u.Problems {
		texts[i] = p.Error()
		if p.Detail != "" {
			texts[i] += ": " + strings.TrimSpace(p.Detail)
		}
	}
	return "discover the tools: " + strings.Join(texts, "; ")
}

// Begin starts a run after one discovery, which it pins. Beginning an id twice with
// the same plan and the same tools is once. Nothing is created if a required server
// cannot be discovered, or if a tool needs approvals that nobody could give: then the
// error is a [*NotApprovable].
func (h *Host) Begin(ctx context.Context, p Plan) (agent.Run, bridge.Found, error) {
	if err := agent.CheckRunID(p.Run); err != nil {
		return agent.Run{}, bridge.Found{}, err
	}
	if err := p.CheckApprovers(h.Actor, h.time()); err != nil {
		return agent.Run{}, bridge.Found{}, err
	}
	spec, bodies, found, err := h.pin(ctx, p)
	if err != nil {
		return agent.Run{}, found, err
	}
	run, err := h.Engine.Start(ctx, spec, h.Actor, bodies)
	return run, found, err
}

// pin makes what a run is begun with, after one discovery: its Spec, and the bodies that
// this names.
func (h *Host) pin(ctx context.Context, p Plan) (agent.Spec, []agent.Body, bridge.Found, error) {
	kept, err := h.prepared(p.Setup)
	if err != nil {
		return agent.Spec{}, nil, bridge.Found{}, err
	}
	found, err := h.Discover(ctx, p.Setup, p.Approvers)
	if err != nil {
		return agent.Spec{}, nil, found, placed(p.Config, err)
	}
	if found, err = p.Setup.withOwn(found); err != nil {
		return agent.Spec{}, nil, found, placed(p.Config, err)
	}
	p.Setup.Definitions = nil
	for _, d := range found.Definitions {
		p.Setup.Definitions = append(p.Setup.Definitions, d.Ref)
	}
	setup, err := p.Setup.body()
	if err != nil {
		return agent.Spec{}, nil, found, err
	}
	task := agent.NewBody([]byte(p.Task))
	return agent.Spec{
		Run: p.Run, Rules: agent.Rules, Task: task.Ref, Config: setup.Ref.String(), Model: p.Model,
		Tools: full(found.Tools), Servers: full(pinnedServers(found)), Approvers: full(p.Approvers), Budget: p.Budget,
		Prices: p.Prices,
	}, append(append(kept, task, setup), found.Definitions...), found, nil
}

func (h *Host) time() time.Time {
	if h.Now != nil {
		return h.Now()
	}
	return time.Now()
}

// Serve performs the effects of a run until it rests or has ended. It returns
// [agent.ErrServed] if another does that.
func (h *Host) Serve(ctx context.Context, run string) error {
	return h.Engine.Serve(ctx, agent.ServeOptions{Runs: []string{run}}, func(r agent.Run) (agent.Nodes, error) {
		return h.nodes(ctx, r)
	})
}

// full is a list that is never null: a journal keeps an empty list as one.
func full[T any](list []T) []T { return append([]T{}, list...) }

// Deliver hands a person's decision about the call in hand of a run in, and logs
// it with the correlation id of the call (SPEC C3).
func (h *Host) Deliver(ctx context.Context, run agent.Run, d agent.Delivery) (agent.Verdict, error) {
	v, err := h.Engine.Deliver(ctx, run.ID, d)
	if err != nil {
		return v, err
	}
	line := h.Log.Info().Str("event", "approval").Str("run", run.ID).Str("approval_decision", said(d.Decision)).Str("approver", d.Actor)
	if run.Call != nil {
		line = line.Str("correlation_id", run.Call.ID).Str("tool", run.Call.Proposal.Tool)
	}
	if v.Refusal != nil {
		line = line.Str("reason", v.Refusal.Code)
	}
	line.Str("verdict", string(v.Row)).Msg("approval")
	return v, nil
}

// said names a person's decision in the log.
func said(d agent.Decision) string {
	switch d.(type) {
	case agent.Approve:
		return "approve"
	case agent.Refuse:
		return "refuse"
	case agent.Edit:
		return "edit"
	case agent.Attest:
		return "attest"
	case agent.Cancel, agent.Pause, agent.Resume, agent.StepOnce, agent.Extend, agent.Substitute:
	}
	return "operate"
}

// nodes makes the nodes of a run from what it was begun with.
func (h *Host) nodes(ctx context.Context, run agent.Run) (agent.Nodes, error) {
	s, err := ReadSetup(context.WithoutCancel(ctx), h.Engine, run)
	if err != nil {
		return nil, err
	}
	config := h.bridge(s, run.Spec.Approvers)
	config.Definition = func(digest string) []byte {
		data, err := h.Engine.Body(context.WithoutCancel(ctx), run.ID, s.definition(digest))
		if err != nil {
			return nil // the servers are asked again
		}
		return data
	}
	b, err := bridge.New(config, withoutOwn(run.Spec))
	if err != nil {
		return nil, fmt.Errorf("make the bridge of run %s: %w", run.ID, err)
	}
	model, err := h.model(context.WithoutCancel(ctx), run, s)
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	if h.hear != nil {
		model = h.hear(model)
	}
	made := nodes.New(nodes.Config{
		Model: model, Bridge: crossing{b}, System: s.System, Window: s.Window, Log: h.Log, Now: h.Now,
		Derived: func(tool string) bool {
			c, _ := s.Contract(tool)
			return c.Result != tools.ResultStatus
		},
	})
	if h.direct != nil {
		return h.direct(made), nil
	}
	return made, nil
}

// withOwn adds the Host's own tool to what a run pins, if the setup offers it and there
// is another whose data it could open.
func (s Setup) withOwn(found bridge.Found) (bridge.Found, error) {
	if !s.OpenBody || len(found.Exposed) == 0 {
		return found, nil
	}
	own := nodes.OwnTool()
	found.Tools = append(slices.Clip(found.Tools), own.Tool)
	found.Definitions = append(slices.Clip(found.Definitions), own.Definition)
	model := tools.ModelTool{Name: own.Model.Name, Description: own.Model.Description, Parameters: own.Model.Parameters}
	// The others have to differ from it: the problem is named at theirs.
	if problems := tools.CheckExposed(append([]tools.ModelTool{model}, found.Exposed...)); len(problems) > 0 {
		return found, &Clash{problems}
	}
	found.Exposed = append(slices.Clip(found.Exposed), model)
	return found, nil
}

// pinnedServers are the servers that answered, and the Host if a tool is its own.
func pinnedServers(found bridge.Found) []agent.Server {
	own := nodes.OwnTool()
	if !slices.ContainsFunc(found.Tools, func(t agent.Tool) bool { return t.Server == own.Server.Prefix }) {
		return found.Servers
	}
	return append(slices.Clip(found.Servers), own.Server)
}

// withoutOwn is the spec as the bridge needs it: with the tools that servers answer.
func withoutOwn(spec agent.Spec) agent.Spec {
	spec.Tools = slices.DeleteFunc(slices.Clone(spec.Tools), func(t agent.Tool) bool { return t.Server == nodes.HostServer })
	return spec
}

// written is the model that is written down in the setup itself.
func (s *Setup) written() nodes.Model {
	switch {
	case s.Obedient:
		return llm.Obedient{}
	case s.Random != nil:
		return llm.Adversary{Seed: *s.Random}
	}
	return &s.Script
}

func (h *Host) bridge(s Setup, approvers []agent.Approver) bridge.Config {
	keys := h.serverKeys
	if keys == nil {
		for _, a := range approvers {
			keys = append(keys, a.Key)
		}
	}
	return bridge.Config{
		Servers: slices.Clone(s.Servers), Contracts: slices.Clone(s.Contracts),
		Self: h.Self, StateDir: h.StateDir, Keys: keys, Programs: h.programs, Log: h.Log, Now: h.Now,
	}
}

// crossing lets the bridge be what the nodes need: each side names its own types.
type crossing struct{ b *bridge.Bridge }

func (c crossing) Prepare(ctx context.Context, call nodes.Call) (agent.Result, []agent.Body, error) {
	return c.b.Prepare(ctx, bridge.Call(call))
}

func (c crossing) Send(ctx context.Context, call nodes.Call) (agent.Returned, []agent.Body, error) {
	return c.b.Send(ctx, bridge.Call(call))
}

func (c crossing) ReadBack(ctx context.Context, call nodes.Call) (agent.Verified, []agent.Body, error) {
	return c.b.ReadBack(ctx, bridge.Call(call))
}

func (c crossing) Exposed() []nodes.Tool {
	exposed := c.b.Exposed()
	out := make([]nodes.Tool, len(exposed))
	for i, t := range exposed {
		out[i] = nodes.Tool{Name: t.Name, Description: t.Description, Parameters: t.Parameters}
	}
	return out
}

func (c crossing) Close() error { return c.b.Close() }
