package main

import (
	"github.com/spf13/cobra"

	"sallyport/agent"
)

func (a *app) graphCommand() *cobra.Command {
	return &cobra.Command{
		Use: "graph [RUN]", Short: "Draw the state machine, or where a run has been", Args: atMostOneRun,
		Long: `Draw the state machine from the transition table that the runtime itself uses.
With a run, each state shows how often it was entered, and where the run is now.`,
		Annotations: map[string]string{formatsKey: "mermaid dot"},
		RunE: func(c *cobra.Command, args []string) error {
			var visits agent.Visits
			now := agent.StateNone
			if len(args) == 1 {
				err := a.reading(func(e agent.Engine) (err error) {
					visits, now, err = visited(c.Context(), e, args[0])
					return err
				})
				if err != nil {
					return err
				}
			}
			if a.output == formatDot {
				return a.print("%s", agent.Dot(visits, now))
			}
			return a.print("%s", agent.Mermaid(visits, now))
		},
	}
}
