package main

import (
	"github.com/spf13/cobra"

	"sallyport/scenarios"
)

// legCommand serves one leg of a scenario with faults: it dies where it is told to.
func (a *app) legCommand() *cobra.Command {
	return &cobra.Command{
		Use: scenarios.LegCommand, Hidden: true, Args: cobra.NoArgs, Short: "Serve a run until the fault that a scenario tells",
		RunE: func(c *cobra.Command, _ []string) error {
			me, err := self()
			if err != nil {
				return err
			}
			a.code = exit(scenarios.Leg(c.Context(), scenarios.StageOptions{Self: me, Endpoint: a.endpoint}, a.in, a.out, fillDisk))
			return nil
		},
	}
}
