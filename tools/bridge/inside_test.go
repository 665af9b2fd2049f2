package bridge

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"sallyport/agent"
	"sallyport/tools"
)

// clock is a server inside.
func clock(args []string, stdin, stdout *os.File, stderr io.Writer) int {
	_, _ = io.WriteString(stderr, "started as "+strings.Join(args, " "))
	server := mcp.NewServer(&mcp.Implementation{Name: "clock", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "now", Description: "Says what time it is."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, map[string]string, error) {
			return nil, map[string]string{"time": "noon"}, nil
		})
	if server.Run(context.Background(), &mcp.IOTransport{Reader: stdin, Writer: stdout}) != nil {
		return 1
	}
	return 0
}

func insideConfig(p Program) Config {
	return Config{
		Servers:   []tools.Server{{Prefix: "clock", Command: []string{"not-there"}}},
		Contracts: []tools.Contract{{Name: "clock__now", Owner: "me", Risk: agent.RiskRead, Output: tools.OutputNone}},
		Programs:  map[string]Program{"clock": p}, Log: zerolog.Nop(),
	}
}

// A server inside the Host is asked like a child, and has ended when the bridge is
// closed.
func TestProgram_ServesInPlaceOfAChild(t *testing.T) {
	t.Parallel()
	ended := make(chan int, 2)
	cfg := insideConfig(func(args []string, stdin, stdout *os.File, stderr io.Writer) int {
		code := clock(args, stdin, stdout, stderr)
		ended <- code
		return code
	})
	found, err := Discover(t.Context(), cfg)
	if err != nil || len(found.Exposed) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	<-ended
	b, err := New(cfg, agent.Spec{Run: "r", Tools: found.Tools, Servers: found.Servers, Budget: agent.DefaultBudget})
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Exposed(); len(got) != 1 || !strings.Contains(b.Stderr("clock"), "started as not-there") {
		t.Errorf("%v, %q", got, b.Stderr("clock"))
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	<-ended
}

// A server inside that ends at once is lost, like a child that does.
func TestProgram_ThatEndsIsLost(t *testing.T) {
	t.Parallel()
	found, err := Discover(t.Context(), insideConfig(func([]string, *os.File, *os.File, io.Writer) int { return 1 }))
	if err != nil || len(found.Problems) == 0 || found.Problems[0].Reason != ReasonLost {
		t.Errorf("%+v, %v", found.Problems, err)
	}
}
