package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/agent/enginetest"
	"sallyport/nodes"
	"sallyport/nodes/llm/openai"
	"sallyport/scenarios"
	"sallyport/tools"
	"sallyport/tools/docserver"
)

// The test binary is also the document server that a run starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 4 && os.Args[1] == "mcp" && os.Args[2] == "docs" {
		os.Exit(docserver.Serve(context.Background(), os.Args[4], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// clerk is a provider that reads a document and saves a report of it, and keeps every
// byte that it is sent.
type clerk struct {
	t  *testing.T
	mu sync.Mutex

	headers []http.Header
	bodies  []string
}

func (c *clerk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body bytes.Buffer
	if _, err := body.ReadFrom(r.Body); err != nil {
		c.t.Error(err)
	}
	c.mu.Lock()
	turn := len(c.bodies)
	c.headers, c.bodies = append(c.headers, r.Header.Clone()), append(c.bodies, body.String())
	c.mu.Unlock()
	turns := []string{
		calls(call("call_read", "docs__read_document", `"{\"filename\":\"notes.md\"}"`)),
		calls(call("call_save", "docs__save_report", `"{\"filename\":\"report.md\",\"content\":\"The bridge is shut.\"}"`)),
		`{"role":"assistant","content":"It is saved."}`,
	}
	if turn >= len(turns) {
		http.Error(w, "{}", http.StatusBadRequest)
		return
	}
	finish := "tool_calls"
	if turn == 2 {
		finish = "stop"
	}
	whole(message(turns[turn], finish))(w, r)
}

// With every part real: the endpoint, the client, the engine, the document server as a
// child. CHECKS 75: the request is in the form of Chat Completions; 76: each call is
// answered once, by its own id; 78: no request holds key, grant, grant field, scope or path.
func TestWire_OfAnApprovedSave(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"desk/sources/notes.md": "The bridge is shut.", "desk/reports/.keep": ""} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	heard := &clerk{t: t}
	endpoint := httptest.NewServer(heard)
	defer endpoint.Close()
	m, err := openai.New(openai.Config{Model: "test-model", BaseURL: endpoint.URL + "/v1", Key: func() (string, error) { return testKey, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	engine, err := embedded.Open(filepath.Join(dir, "state"), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	host := &scenarios.Host{
		Engine: engine, StateDir: filepath.Join(dir, "state"), Self: self, Actor: "tester", Log: zerolog.New(&log),
		Model: func(agent.Run) nodes.Model { return m },
	}
	alice := enginetest.Key("alice")
	run, _, err := host.Begin(t.Context(), scenarios.Plan{
		Run: "wire", Task: "Read notes.md and report.", Budget: agent.DefaultBudget,
		Approvers: []agent.Approver{{Key: alice.Public().String()}},
		Setup: scenarios.Setup{
			Servers: []tools.Server{{Prefix: "docs", Builtin: "docs", Root: filepath.Join(dir, "desk"), Scope: "desk/reading"}},
			Contracts: []tools.Contract{
				{Name: "docs__read_document", Owner: "desk", Risk: agent.RiskRead, Result: tools.ResultStatus},
				{
					Name: "docs__save_report", Owner: "desk", Risk: agent.RiskWrite, Result: tools.ResultStatus,
					Approval:   &tools.Approval{Approvers: 1, Expires: tools.Duration(time.Hour), UseWithin: tools.Duration(time.Minute)},
					SideEffect: "creates a file", Rollback: "delete it", GrantField: "grant", Redact: []string{"content"},
				},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Serve(t.Context(), "wire"); err != nil {
		t.Fatal(err)
	}
	run = replayed(t, engine)
	if run.State != agent.StateAwaitingApproval || len(heard.bodies) != 2 {
		t.Fatalf("the run is %s (%s) after %d requests", run.State, run.Reason, len(heard.bodies))
	}
	d, err := scenarios.Approval(run, alice, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if v, err := host.Deliver(t.Context(), run, d); err != nil || v.Refusal != nil {
		t.Fatal(v.Refusal, err)
	}
	if err := host.Serve(t.Context(), "wire"); err != nil {
		t.Fatal(err)
	}
	if run = replayed(t, engine); run.State != agent.StateCompleted || run.Used.Tokens != 360 {
		t.Fatalf("the run is %s (%s), %d tokens", run.State, run.Reason, run.Used.Tokens)
	}
	if saved, err := os.ReadFile(filepath.Join(dir, "desk/reports/report.md")); err != nil || string(saved) != "The bridge is shut." {
		t.Errorf("saved %q, %v", saved, err)
	}
	for i, text := range heard.bodies {
		wireForm(t, text)
		for _, secret := range []string{testKey, "TESTKEY", `"grant"`, d.Decision.(agent.Approve).Grant[:40], "desk/reading", dir, "alice", "ed25519", `"wire"`, "signatures"} {
			if strings.Contains(text, secret) {
				t.Errorf("request %d holds %q", i+1, secret)
			}
		}
		if got := heard.headers[i].Get("Authorization"); got != "Bearer "+testKey {
			t.Errorf("request %d came with %q", i+1, got)
		}
	}
	var last map[string]any
	if err := json.Unmarshal([]byte(heard.bodies[2]), &last); err != nil {
		t.Fatal(err)
	}
	answered(t, last)
	for _, secret := range []string{testKey, "The bridge is shut."} {
		if strings.Contains(log.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
	for e, err := range engine.Journal(t.Context(), "wire", 1, false) {
		if err != nil || bytes.Contains(e.Bytes(), []byte("TESTKEY")) {
			t.Errorf("entry %d: %v", e.Seq, err)
		}
	}
}

func replayed(t *testing.T, e agent.Engine) agent.Run {
	t.Helper()
	run, err := agent.Replay(e.Journal(t.Context(), "wire", 1, false))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// wireForm checks the tools of a request.
func wireForm(t *testing.T, text string) {
	t.Helper()
	var body struct {
		Model    string
		Parallel *bool `json:"parallel_tool_calls"`
		Stream   *bool
		Tools    []struct {
			Type     string
			Function struct {
				Name       string
				Strict     *bool
				Parameters struct {
					AdditionalProperties *bool
					Properties           map[string]any
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &body); err != nil {
		t.Fatal(err)
	}
	if body.Model != "test-model" || body.Parallel == nil || *body.Parallel || body.Stream == nil || *body.Stream || len(body.Tools) != 2 {
		t.Fatalf("request %s", text)
	}
	for _, tool := range body.Tools {
		f := tool.Function
		_, granted := f.Parameters.Properties["grant"]
		if tool.Type != "function" || f.Strict == nil || *f.Strict || granted || f.Parameters.AdditionalProperties == nil || *f.Parameters.AdditionalProperties {
			t.Errorf("tool %+v", tool)
		}
	}
}
