package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/scenarios"
)

// stateFile is what makes a folder a state directory.
const stateFile = "state.db"

// opened gives the engine on the state directory to use, and closes it. The directory
// is made if need be.
func (a *app) opened(use func(e agent.Engine, dir string) error) (err error) {
	dir, err := a.statePath()
	if err != nil {
		return err
	}
	return openedAt(dir, use)
}

func openedAt(dir string, use func(e agent.Engine, dir string) error) (err error) {
	config := engineConfig()
	if config.Now == nil {
		config.Now = time.Now
	}
	config.Door = door(dir, config.Now)
	e, err := embedded.Open(dir, config)
	switch {
	case errors.Is(err, agent.ErrIntegrity) || errors.Is(err, agent.ErrNewer):
		return fmt.Errorf("open the state directory: %w", err)
	case err != nil:
		return usage("give a folder of your own on a local disk with --state DIR", "open the state directory: %w", err)
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return use(e, dir)
}

// reading is opened for commands that only look: they make no state directory.
func (a *app) reading(use func(e agent.Engine) error) error {
	dir, err := a.statePath()
	if err != nil {
		return err
	}
	switch _, err := os.Stat(filepath.Join(dir, stateFile)); {
	case errors.Is(err, fs.ErrNotExist):
		return usage("name it with --state DIR; a first run makes it", "read the state directory: %q holds no %s: %w", dir, stateFile, agent.ErrNoRun)
	case err != nil:
		return usage("name it with --state DIR", "read the state directory: %w", err)
	}
	return openedAt(dir, func(e agent.Engine, _ string) error { return use(e) })
}

// oneRun wants the id of a run.
func oneRun(c *cobra.Command, args []string) error {
	if err := cobra.ExactArgs(1)(c, args); err != nil {
		return err
	}
	return agent.CheckRunID(args[0])
}

// atMostOneRun wants the id of a run, or nothing.
func atMostOneRun(c *cobra.Command, args []string) error {
	if len(args) == 1 {
		return oneRun(c, args)
	}
	return cobra.MaximumNArgs(1)(c, args)
}

// visited counts how often a run entered each state.
func visited(ctx context.Context, e agent.Engine, id string) (agent.Visits, agent.State, error) {
	run, entries, err := scenarios.Load(ctx, e, id)
	if err != nil {
		return nil, agent.StateNone, err
	}
	visits, was := agent.Visits{}, agent.StateNone
	for _, entry := range entries {
		if entry.Kind == agent.EntryEvent && entry.State != was {
			visits[entry.State]++
			was = entry.State
		}
	}
	return visits, run.State, nil
}
