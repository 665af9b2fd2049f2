package main

import (
	"github.com/spf13/cobra"

	"sallyport/tools/calcserver"
	"sallyport/tools/docserver"
)

// mcpCommand starts our own tool servers on stdin and stdout, for the Host and for any
// other MCP host. Their stdout carries protocol frames only.
func (a *app) mcpCommand() *cobra.Command {
	mcp := &cobra.Command{Use: "mcp", Short: "Serve tools over MCP on stdin and stdout", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	var file string
	docs := &cobra.Command{
		Use: "docs --config FILE", Short: "The document server: search, read, and save what was signed", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.code = exit(docserver.Serve(c.Context(), file, a.in, a.out, a.errs))
			return nil
		},
	}
	docs.Flags().StringVar(&file, "config", "", "the server's own configuration `FILE`: root, scope, audience, keys, ledger")
	calc := &cobra.Command{
		Use: "calc", Short: "The calculator: add(a, b) over 64-bit integers", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a.code = exit(calcserver.Serve(c.Context(), a.in, a.out, a.errs))
			return nil
		},
	}
	mcp.AddCommand(docs, calc, a.muteCommand())
	return mcp
}
