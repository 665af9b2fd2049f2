package scenarios

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sallyport/agent"
	"sallyport/nodes/llm"
	"sallyport/scenarios/config"
	"sallyport/tools/bridge"
)

// Continuation is a fork that is to begin: its parent as it was at the entry that it
// goes on from, and a plan that is what the parent was begun with. Whoever begins it
// gives it an id, and may raise its budget or name another model.
type Continuation struct {
	Plan
	Point agent.Fork
	Was   agent.Run // the parent at that entry; its Used is what the fork begins with
	Last  agent.Run // the parent as it is
}

// Continue plans a fork of a run from an entry, or, with from 0, from the latest that
// serves ([agent.ForkPoint]). It reads the parent and changes nothing. The error is a
// [*agent.Refusal] where there is no such entry, or the run had completed by it.
func (h *Host) Continue(ctx context.Context, parent string, from int64) (Continuation, error) {
	last, entries, err := Load(ctx, h.Engine, parent)
	if err != nil {
		return Continuation{}, err
	}
	point, was, err := agent.ForkPoint(listed(entries), from)
	if err != nil {
		return Continuation{}, fmt.Errorf("fork run %s: %w", parent, err)
	}
	setup, err := ReadSetup(ctx, h.Engine, last)
	if err != nil {
		return Continuation{}, fmt.Errorf("fork run %s: %w", parent, err)
	}
	task, err := h.Engine.Body(ctx, parent, last.Spec.Task)
	if err != nil {
		return Continuation{}, fmt.Errorf("fork run %s: read its task: %w", parent, err)
	}
	if r := setup.Replay; r != nil {
		data, err := h.Engine.Body(ctx, parent, r.Body)
		if err != nil {
			return Continuation{}, fmt.Errorf("fork run %s: read its cassette: %w", parent, err)
		}
		r.body = agent.NewBody(data)
	}
	return Continuation{
		Point: point, Was: was, Last: last,
		Plan: Plan{
			Task: string(task), Setup: setup, Approvers: last.Spec.Approvers, Budget: was.Budget,
			Model: last.Spec.Model, Prices: last.Spec.Prices,
		},
	}, nil
}

func listed(entries []agent.Entry) func(func(agent.Entry, error) bool) {
	return func(yield func(agent.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Ask lets the fork ask an endpoint for the model of that name: the parent's endpoint,
// if it asked one; else the one that the user's own configuration and the environment
// say. The prices stay the parent's.
func (c *Continuation) Ask(name string, user *config.User, env config.Getenv) error {
	if err := config.CheckModelName(name); err != nil {
		return fmt.Errorf("fork run %s with the model %q: %w", c.Was.ID, name, err)
	}
	e := c.Setup.Endpoint
	if e != nil {
		next := *e
		next.Model = name
		e = &next
	} else {
		from := config.OpenAI{}
		if user.Model.OpenAI != nil {
			from = *user.Model.OpenAI
		}
		made, err := from.Resolve(name, env)
		if err != nil {
			return fmt.Errorf("fork run %s with the model %q: %w", c.Was.ID, name, err)
		}
		if key, err := user.Admit(made.BaseURL, env); err == nil { // else it is refused before the fork begins
			made.Keyed = key.Here(env)
		}
		e = &made
	}
	s := &c.Setup
	s.Script, s.Obedient, s.Random, s.Replay, s.Endpoint = llm.Script{}, false, nil, nil, e
	c.Model = e.Label()
	return nil
}

// ToolsGone says that tools which a run had pinned are not found any more: a fork of it
// would go on without them.
type ToolsGone struct {
	Run   string
	Names []string
}

// Error names the tools.
func (g *ToolsGone) Error() string {
	return fmt.Sprintf("fork run %s: it had tools that are not found any more: %s", g.Run, strings.Join(g.Names, ", "))
}

// Fork begins a fork after one discovery with the servers of the parent's setup, which
// it pins anew. Nothing of the parent changes. Beginning an id twice with the same
// continuation and the same tools is once. Besides the errors of [Host.Begin] it
// returns a [*ToolsGone], and those of [agent.Engine] about forks.
func (h *Host) Fork(ctx context.Context, c Continuation) (agent.Run, bridge.Found, error) {
	if err := agent.CheckRunID(c.Run); err != nil {
		return agent.Run{}, bridge.Found{}, err
	}
	if err := c.CheckApprovers(h.Actor, h.time()); err != nil {
		return agent.Run{}, bridge.Found{}, err
	}
	spec, bodies, found, err := h.pin(ctx, c.Plan)
	if err != nil {
		return agent.Run{}, found, err
	}
	if gone := c.gone(spec); len(gone) > 0 {
		return agent.Run{}, found, &ToolsGone{c.Was.ID, gone}
	}
	spec.Fork = &c.Point
	run, err := h.Engine.Start(ctx, spec, h.Actor, bodies)
	if err != nil && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("fork run %s at entry %d: %w", c.Point.Run, c.Point.Seq, err)
	}
	return run, found, err
}

// gone are the tools that the parent pinned and the fork would not.
func (c Continuation) gone(spec agent.Spec) []string {
	var names []string
	for _, t := range c.Last.Spec.Tools {
		if _, ok := spec.Tool(t.Name); !ok {
			names = append(names, t.Name)
		}
	}
	return names
}

// Changed are the tools whose definition differs from what the parent pinned. The fork
// has pinned what there is now.
func (c Continuation) Changed(fork agent.Run) []string {
	var names []string
	for _, t := range fork.Spec.Tools {
		if was, ok := c.Last.Spec.Tool(t.Name); ok && was.Definition != t.Definition {
			names = append(names, t.Name)
		}
	}
	slices.Sort(names)
	return names
}
