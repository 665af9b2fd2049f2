package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios"
	"sallyport/scenarios/config"
)

func (a *app) scenarioCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "scenario", Short: "Write scenarios down", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.fromRunCommand())
	return c
}

func (a *app) fromRunCommand() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use: "from-run RUN", Short: "Write a scenario of a run: its words, its decisions, and what came of it", Args: oneRun,
		Long: `Write a scenario of a run: the task, the documents that were read, the model's turns
with their exact arguments as a script, the decisions in their order, and as what is
expected the end, the calls and the saved files. What of the run a scenario cannot say
stands in comments that begin with NOT SAID HERE, and on stderr; then it may not hold.

The documents that the run read are in the file, in full.`,
		Annotations:       map[string]string{formatsKey: string(formatTable)},
		ValidArgsFunction: a.completeRuns(agent.Filter{}),
		RunE:              func(c *cobra.Command, args []string) error { return a.fromRun(c.Context(), args[0], out) },
	}
	c.Flags().StringVar(&out, "out", "", "write `FILE`, which must not be there; default: stdout")
	return c
}

func (a *app) fromRun(ctx context.Context, id, out string) error {
	return a.reading(func(e agent.Engine) error {
		configuration, err := a.configurationOf(ctx, e, id, out)
		if err != nil {
			return err
		}
		w, err := scenarios.FromRun(ctx, e, id, configuration)
		if errors.Is(err, scenarios.ErrNotWritable) {
			return fail(exitFailed, "", "%w", err)
		}
		if err != nil {
			return err
		}
		for _, n := range w.Notes {
			a.say("Not said in the scenario: %s.", terminal.Line(n))
		}
		if out == "" {
			return a.print("%s", w.YAML)
		}
		return writeNew(out, w.YAML)
	})
}

// configurationOf is the path of the configuration that a run was begun with, if it is
// still where it was, from where the scenario will lie; empty if it would be found there
// anyway, or cannot be found.
func (a *app) configurationOf(ctx context.Context, e agent.Engine, id, out string) (string, error) {
	run, _, err := scenarios.Load(ctx, e, id)
	if err != nil {
		return "", err
	}
	setup, err := scenarios.ReadSetup(ctx, e, run)
	if err != nil {
		return "", err
	}
	has := a.configFile
	if has == "" {
		if has, err = config.Find(setup.File); err != nil {
			return "", nil // it is said in the file
		}
	}
	if out == "" {
		out = "scenario.yaml"
	}
	if found, err := config.Find(out); err == nil && oneFile(found, has) {
		return "", nil
	}
	dir, err := filepath.Abs(filepath.Dir(out))
	if err != nil {
		return "", fmt.Errorf("find the folder of %q: %w", out, err)
	}
	if has, err = filepath.Abs(has); err != nil {
		return "", fmt.Errorf("find the configuration %q: %w", has, err)
	}
	path, err := filepath.Rel(dir, has)
	if err != nil {
		return "", nil // it is said in the file
	}
	return filepath.ToSlash(path), nil
}

// oneFile reports whether two paths lead to one file.
func oneFile(a, b string) bool {
	one, err1 := os.Stat(a)
	two, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(one, two)
}

// writeNew writes a file that is not there yet.
func writeNew(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usage("choose another file", "write %q: it is there already", path)
	}
	if err != nil {
		return usage("give a file that can be written", "write the scenario: %w", err)
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	return nil
}
