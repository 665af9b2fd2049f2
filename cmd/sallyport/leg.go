package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/scenarios"
)

// shown writes a pending candidate as a terminal shows it, for scenarios that look at it.
func (a *app) shown(ctx context.Context, h *scenarios.Host, run agent.Run, w io.Writer) error {
	p, err := (&desk{app: a, host: h, run: run.ID}).candidate(ctx, run)
	if err != nil {
		return err
	}
	return p.Write(w, 0)
}

// legCommand serves one leg of a scenario with faults: it dies where it is told to.
func (a *app) legCommand() *cobra.Command {
	return &cobra.Command{
		Use: scenarios.LegCommand, Hidden: true, Args: cobra.NoArgs, Short: "Serve a run until the fault that a scenario tells",
		RunE: func(c *cobra.Command, _ []string) error {
			me, err := self()
			if err != nil {
				return err
			}
			a.code = exit(scenarios.Leg(c.Context(), scenarios.StageOptions{Self: me, Endpoint: a.endpoint, Show: a.shown}, a.in, a.out, fillDisk))
			return nil
		},
	}
}
