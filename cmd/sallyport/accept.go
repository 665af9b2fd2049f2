package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios"
)

func (a *app) acceptCommand() *cobra.Command {
	var o scenarios.AcceptOptions
	c := &cobra.Command{
		Use: "accept SERVER", Short: "Try a tool server before an agent uses it", Args: cobra.ExactArgs(1),
		Long: `Run the fixed acceptance against a server of the configuration: one discovery, one
call that succeeds, one without permission, one that times out; then rebuild the chain
of each call from the log alone. Nothing is written: a write is tried only with a
grant that the server must refuse, or is kept from the server.`,
		RunE: func(c *cobra.Command, args []string) error { return a.accept(c.Context(), args[0], o) },
	}
	c.Flags().StringVar(&o.Tool, "tool", "", "the read `TOOL` to call, such as docs__search_documents (default: the first)")
	c.Flags().StringVar(&o.Args, "args", "", "its arguments as `JSON` (default: guessed from its schema)")
	return c
}

func (a *app) accept(ctx context.Context, server string, o scenarios.AcceptOptions) error {
	conf, err := a.loadConfig()
	if err != nil {
		return err
	}
	if o.Self, err = self(); err != nil {
		return err
	}
	if a.logFile != "" && a.logFile != "-" {
		o.Log = a.logFile
	}
	o.Mute = []string{o.Self, "mcp", muteName, "--"}
	r, err := scenarios.Accept(ctx, conf, server, o)
	if err != nil {
		return acceptErr(ctx, err)
	}
	if !r.Passed() {
		a.code = exitFailed
	}
	if a.output != formatTable {
		return a.json(r, a.output == formatJSON)
	}
	return a.acceptance(r)
}

func acceptErr(ctx context.Context, err error) error {
	err = beginErr(ctx, err)
	if code, _ := codeOf(err); code == exitFailed {
		return usage("", "%w", err)
	}
	return err
}

// acceptance writes the report for people.
func (a *app) acceptance(r scenarios.Acceptance) error {
	if err := a.print("Server %s, MCP %s\n", terminal.Line(r.Server), terminal.Line(r.Protocol)); err != nil {
		return err
	}
	for _, t := range r.Tools {
		if err := a.print("  tool %s\n", terminal.Line(t)); err != nil {
			return err
		}
	}
	for _, p := range r.Problems {
		if err := a.print("  not usable: %s\n", terminal.Line(p)); err != nil {
			return err
		}
	}
	for _, c := range r.Checks {
		word := map[bool]string{true: "PASS", false: "FAIL"}[c.Passed]
		if !c.Applies {
			word = "  – "
		}
		if err := a.print("%s  %s: %s\n", word, c.Name, terminal.Line(c.Says)); err != nil {
			return err
		}
	}
	for _, c := range r.Chains {
		line := fmt.Sprintf("%s %s: proposed, %q, %q, requests %q, %s (%s)", c.ID[:8], c.Tool, c.Decisions, c.Approvals, c.Requests, c.Status, c.Class)
		if err := a.print("  chain %s\n", terminal.Line(line)); err != nil {
			return err
		}
	}
	return nil
}
