package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/cmd/sallyport/terminal"
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
	if err != nil {
		return stateErr(dir, err)
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return use(e, dir)
}

// stateErr is the failure to open a state directory.
func stateErr(dir string, err error) error {
	switch {
	case errors.Is(err, agent.ErrIntegrity) || errors.Is(err, agent.ErrNewer):
		return err
	case errors.Is(err, fs.ErrPermission):
		return usage("use a state directory of your own with --state DIR; or, if this one is yours: chmod -R u+rwX "+quoted(dir), "%w", err)
	}
	return usage("give a folder of your own on a local disk with --state DIR", "%w", err)
}

// reading is opened for commands that only look: they make no state directory.
func (a *app) reading(use func(e agent.Engine) error) error {
	if a.shared != nil {
		return use(a.shared)
	}
	dir, err := a.statePath()
	if err != nil {
		return err
	}
	switch _, err := os.Stat(filepath.Join(dir, stateFile)); {
	case errors.Is(err, fs.ErrNotExist) && a.stateDir != "" && !there(dir):
		return usage("name the state directory of a run; `sallyport runs` without --state lists those of the usual one", "there is no state at %q", dir)
	case errors.Is(err, fs.ErrNotExist):
		return usage("name it with --state DIR; a first run makes it", "there is no state at %q yet: %w", dir, agent.ErrNoRun)
	case err != nil:
		return stateErr(dir, fmt.Errorf("read the state directory: %w", err))
	}
	return openedAt(dir, func(e agent.Engine, _ string) error { return use(e) })
}

func there(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// none says that a list is empty, and whether nothing has run with its state directory
// at all. It returns the error of the list if that is another.
func (a *app) none(what string, err error) error {
	switch {
	case err == nil:
		a.say("%s.", what)
	case errors.Is(err, agent.ErrNoRun):
		dir, _ := a.statePath() // it was found just now
		a.say("%s: there is no state at %s yet.", what, terminal.Line(dir))
	default:
		return err
	}
	return nil
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
