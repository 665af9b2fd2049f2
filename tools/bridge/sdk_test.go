package bridge

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"sallyport/agent"
	"sallyport/tools"
)

// A server made with the SDK, with the tools that scripted servers list.
func init() {
	parts["sdk-server"] = func([]string) {
		server := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
		for _, text := range []string{findTool, saveTool, settleTool} {
			var tool mcp.Tool
			if err := json.Unmarshal([]byte(text), &tool); err != nil {
				panic(err)
			}
			server.AddTool(&tool, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{
					Content:           []mcp.Content{&mcp.TextContent{Text: "done"}},
					StructuredContent: map[string]any{"status": "ok", "message": "done", "data": map[string]any{"arguments": req.Params.Arguments}},
				}, nil
			})
		}
		if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			os.Exit(1)
		}
	}
}

// sdkStand is a stand whose server is made with the SDK; it records nothing.
func sdkStand(t testing.TB) *stand {
	s := newStand(t, script{})
	s.cfg.Servers[0].Command = child(t, "sdk-server")
	return s
}

// CHECKS 5: with a server of the SDK the newest version is negotiated, and calls go
// through.
func TestBridge_WithAServerOfTheSDK(t *testing.T) {
	t.Parallel()
	s := sdkStand(t)
	r := s.begin(t)
	if got := r.run.Spec.Servers[0].Protocol; got != "2026-07-28" {
		t.Errorf("negotiated %q", got)
	}
	r.is(r.read().Outcome, agent.StatusOK, agent.ClassOK, "")
	out, bodies, err := r.bridge.Send(t.Context(), r.approved(`{"filename":"a.md","content":"9007199254740993"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.is(out.Outcome, agent.StatusOK, agent.ClassOK, "")
	if len(bodies) != 1 {
		t.Error("no body")
	}
	s.cfg.Servers[0].Protocol = "2025-11-25"
	older := s.begin(t)
	if got := older.run.Spec.Servers[0].Protocol; got != "2025-11-25" {
		t.Errorf("pinned to 2025-11-25, negotiated %q", got)
	}
	older.is(older.read().Outcome, agent.StatusOK, agent.ClassOK, "")
}

// ours prepares and sends one read.
func ours(b *testing.B) func() {
	s := sdkStand(b)
	s.cfg.Log = zerolog.New(nil).Level(zerolog.Disabled)
	found, err := Discover(b.Context(), s.cfg)
	if err != nil {
		b.Fatal(err)
	}
	spec := agent.Spec{Run: "run-1", Tools: found.Tools, Servers: found.Servers, Budget: agent.DefaultBudget}
	bridge, err := New(s.cfg, spec)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = bridge.Close() })
	return func() {
		run := agent.Run{ID: "run-1", Spec: spec, Budget: spec.Budget, Call: &agent.Call{ID: "call-1"}}
		c := Call{Run: run, Name: "s__find", Arguments: `{"query":"x"}`}
		result, _, err := bridge.Prepare(b.Context(), c)
		checked, ok := result.(agent.Checked)
		if err != nil || !ok {
			b.Fatal(result, err)
		}
		c.Run.Call.Arguments = checked.Arguments
		out, _, err := bridge.Send(b.Context(), c)
		if err != nil || out.Status != agent.StatusOK {
			b.Fatal(out, err)
		}
	}
}

// theirs lists and calls with the SDK alone. The server allows no caching, so the SDK
// asks each time.
func theirs(b *testing.B) func() {
	command := child(b, "sdk-server")
	cmd := exec.Command(command[0], command[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	client := mcp.NewClient(self, &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}})
	session, err := client.Connect(b.Context(), &mcp.IOTransport{Reader: out, Writer: in}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = session.Close(); _ = cmd.Wait() })
	return func() {
		if _, err := session.ListTools(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		result, err := session.CallTool(b.Context(), &mcp.CallToolParams{Name: "find", Arguments: map[string]any{"query": "x", "max": 3}})
		if err != nil || result.IsError {
			b.Fatal(result, err)
		}
	}
}

// BenchmarkPrepareSend compares a whole call of ours, every check included, with the
// SDK's own list and call. Rounds alternate, so that noise of the machine meets both;
// the ratio is of the medians of the rounds' times.
func BenchmarkPrepareSend(b *testing.B) {
	we, they := ours(b), theirs(b)
	var mine, its []time.Duration
	timed := func(f func()) time.Duration {
		began := time.Now()
		f()
		return time.Since(began)
	}
	for range 20 { // warm
		we()
		they()
	}
	for b.Loop() {
		mine, its = append(mine, timed(we)), append(its, timed(they))
	}
	b.ReportMetric(float64(median(mine).Microseconds()), "ours-µs")
	b.ReportMetric(float64(median(its).Microseconds()), "sdk-µs")
	b.ReportMetric(float64(median(mine))/float64(median(its)), "ratio")
}

// BenchmarkStart measures a server's start to its first answer.
func BenchmarkStart(b *testing.B) {
	s := sdkStand(b)
	cmd, err := s.cfg.launch(s.cfg.Servers[0], nil, "bench")
	if err != nil {
		b.Fatal(err)
	}
	var first []time.Duration
	for b.Loop() {
		began := time.Now()
		c, err := dial(b.Context(), s.cfg.Servers[0], cmd)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := c.list(b.Context(), new(requestIDs), time.Second, tools.DefaultMaxTools); err != nil {
			b.Fatal(err)
		}
		first = append(first, time.Since(began))
		if err := c.close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(median(first).Microseconds()), "first-answer-µs")
}

func median(d []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(d))
	return sorted[len(sorted)/2]
}
