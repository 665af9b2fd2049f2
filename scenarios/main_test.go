package scenarios

import (
	"context"
	"io"
	"os"
	"testing"

	"sallyport/agent"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/tools/calcserver"
	"sallyport/tools/docserver"
	"sallyport/tools/scriptserver"
)

// The test binary is also the executable that builtin servers are started from, as
// `mcp docs --config FILE` and `mcp calc`.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "shelf" {
		serveShelf()
	}
	if len(os.Args) > 1 && os.Args[1] == LegCommand {
		os.Exit(Leg(context.Background(), StageOptions{Self: os.Args[0], Show: shown}, os.Stdin, os.Stdout, fillDisk))
	}
	if len(os.Args) > 2 && os.Args[1] == "mcp" {
		switch os.Args[2] {
		case "docs":
			os.Exit(docserver.Serve(context.Background(), os.Args[4], os.Stdin, os.Stdout, os.Stderr))
		case "script":
			os.Exit(serveScript(os.Args[4], os.Args[6]))
		case "calc":
			os.Exit(calcserver.Serve(context.Background(), os.Stdin, os.Stdout, os.Stderr))
		}
	}
	os.Exit(m.Run())
}

// shown shows a candidate as the command does.
func shown(ctx context.Context, h *Host, run agent.Run, w io.Writer) error {
	args, err := h.Engine.Body(ctx, run.ID, run.Call.Arguments)
	if err != nil {
		return err
	}
	setup, err := ReadSetup(ctx, h.Engine, run)
	if err != nil {
		return err
	}
	tool, _ := run.Spec.Tool(run.Call.Proposal.Tool)
	contract, _ := setup.Contract(tool.Name)
	p := terminal.Pending{
		Candidate: *run.Call.Candidate, Arguments: args, Tool: tool, Deadline: run.Deadline,
		SideEffect: contract.SideEffect, Rollback: contract.Rollback, Sends: contract.Effect != "", Recipients: contract.Recipients,
	}
	return p.Write(w, 0)
}

func serveScript(file, folder string) int {
	data, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	s, err := scriptserver.Parse(file, data)
	if err != nil {
		panic(err)
	}
	return scriptserver.Serve(context.Background(), s, scriptserver.Options{Folder: folder}, os.Stdin, os.Stdout, os.Stderr)
}

func executable(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
