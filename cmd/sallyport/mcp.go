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
		Long: `Serve the documents of a folder to any MCP host. FILE is YAML:

  root: ./desk              # holds sources/ and reports/
  scope: desk/reading       # what grants are bound to, besides the audience
  audience: docs@my-desk    # names this server
  ledger: ./ledger          # remembers used grants; outside of root, and there already
  keys: ["ed25519 BASE64 NAME"]  # who may sign; see sallyport keys list -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
			a.code = exit(docserver.Serve(c.Context(), file, a.in, a.out, a.stderr))
			if a.code == exitUsage { // it has said what is wrong
				a.say("  next: see sallyport help mcp docs, which shows the file")
			}
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
	mcp.AddCommand(docs, calc, a.scriptCommand(), a.muteCommand(), a.idleCommand())
	return mcp
}
