package scenarios

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/agent/audit"
	"sallyport/nodes"
	"sallyport/nodes/llm"
)

// Three documents do not fit into the window at once: the first leaves it, and the model
// opens it again by its reference. Every part but the model is real.
func TestOpenBody_ADocumentThatLeftTheWindow(t *testing.T) {
	long := func(word string) string { return word + strings.Repeat(" and so on", 500) + " " + word + ".\n" }
	_, ref := documentData(t, "a.md", long("first"))
	offset := 4_900 // within the last of the text
	s := scenarioFrom(t, fmt.Sprintf(`scenario: a window of two documents
task: read all three
files:
  sources/a.md: %q
  sources/b.md: %q
  sources/c.md: %q
model:
  script:
    - expect: {tools: [docs__search_documents, docs__read_document, docs__save_report, host__open_body]}
      call: {tool: docs__read_document, args: {filename: a.md}}
    - expect_message: {status: ok, contains: first}
      call: {tool: docs__read_document, args: {filename: b.md}}
    - call: {tool: docs__read_document, args: {filename: c.md}}
    - expect_message: {status: ok, contains: third}
      call: {tool: host__open_body, args: {ref: %q, offset: %d}}
    - expect_message: {status: ok, contains: "on first."}
      call: {tool: host__open_body, args: {ref: "sha256:%s#0-1"}}
    - expect_message: {status: rejected, contains: No observation of this run has this ref.}
      say: read all three
expect: {state: completed}
`, long("first"), long("second"), long("third"), ref, offset, strings.Repeat("0", 64)))
	s.setup.OpenBody, s.setup.Window = true, nodes.Window{Bytes: 15_000}
	st, heard, log := staged(t, s)
	ctx := t.Context()
	run, found, err := st.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if found.Exposed[len(found.Exposed)-1].Name != nodes.OpenBody || len(found.Servers) != 1 {
		t.Errorf("found %v of %v", found.Exposed, found.Servers)
	}
	if _, ok := run.Spec.Server(nodes.HostServer); !ok {
		t.Error("the Host is not pinned")
	}
	if tool, err := PinnedTool(ctx, st.Host.Engine, run, nodes.OpenBody); err != nil || tool.Contract.Risk != agent.RiskRead {
		t.Errorf("pinned as %+v, %v", tool, err)
	}
	if err := st.Host.Serve(ctx, st.Run); err != nil {
		t.Fatal(err)
	}
	run, entries, err := Load(ctx, st.Host.Engine, st.Run)
	if err != nil || run.State != agent.StateCompleted || run.Used.Calls != 5 {
		t.Fatalf("%s (%s), %d calls, %v", run.State, run.Reason, run.Used.Calls, err)
	}
	calls, err := Calls(entries)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{
		"docs__read_document ok  true", "docs__read_document ok  true", "docs__read_document ok  true",
		"host__open_body ok  true", "host__open_body rejected unknown_ref true",
	} {
		c := calls[i]
		if got := fmt.Sprint(c.Tool, " ", c.Status, " ", c.Reason, " ", c.Sent); got != want {
			t.Errorf("call %d: %s, want %s", i+1, got, want)
		}
	}
	checkShrunk(t, *heard, ref)
	checkTrail(t, st, log.Bytes(), calls)
}

// checkShrunk: the first document is whole in the second request, and a reference from
// the fourth on.
func checkShrunk(t *testing.T, heard [][]byte, ref agent.BodyRef) {
	t.Helper()
	for i, request := range heard {
		var r nodes.Request
		if err := json.Unmarshal(request, &struct{ Messages *[]nodes.Message }{&r.Messages}); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			continue
		}
		o, err := nodes.ParseObservation(r.Messages[3].Content)
		if err != nil {
			t.Fatal(err)
		}
		if whole := o.Untrusted.Data != nil; whole != (i < 3) || o.Untrusted.Ref != ref.String() || o.Untrusted.Bytes != ref.Bytes {
			t.Errorf("request %d: whole %t, %+v", i+1, whole, o.Untrusted.Ref)
		}
	}
}

// checkTrail: the audit finds nothing, and the log tells every call.
func checkTrail(t *testing.T, st *Stage, log []byte, calls []Call) {
	t.Helper()
	report, err := audit.Check(st.Host.Engine.Journal(t.Context(), st.Run, 1, false), func(ref agent.BodyRef) ([]byte, error) {
		return st.Host.Engine.Body(t.Context(), st.Run, ref)
	})
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("audit: %v, %v", report.Findings, err)
	}
	chains, err := Chains(log)
	if err != nil || len(chains) != len(calls) {
		t.Fatalf("%d chains of %d calls, %v", len(chains), len(calls), err)
	}
	for i, c := range chains {
		if gap := c.gap(calls[i].Sent, false); gap != "" || c.Tool != calls[i].Tool {
			t.Errorf("call %d of %s: %s", i+1, c.Tool, gap)
		}
	}
}

// documentData is what the document server returns of a file, and how it is referred to.
func documentData(t *testing.T, name, content string) ([]byte, agent.BodyRef) {
	t.Helper()
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(struct {
		Content  string `json:"content"`
		Filename string `json:"filename"`
	}{content, name}); err != nil {
		t.Fatal(err)
	}
	data := []byte(strings.TrimSpace(b.String()))
	return data, agent.NewBody(data).Ref
}

// scenarioFrom loads a scenario with the tools of the shipped ones.
func scenarioFrom(t *testing.T, source string) *Scenario {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scenario.yaml")
	if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := LoadFile(path, LoadOptions{Config: filepath.Join("research", "sallyport.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The setup holds commands and folders, and stays the operator's.
func TestOpenBody_TheSetupIsNotOpened(t *testing.T) {
	s := shippedScenario(t, "hidden-instruction")
	s.setup.OpenBody = true
	st, heard, _ := staged(t, s)
	var setup string
	st.Host.Model = func(r agent.Run) nodes.Model {
		setup = r.Spec.Config
		args := fmt.Sprintf(`{"ref":%q}`, setup)
		return listening{&llm.Script{Turns: []llm.Turn{
			{Call: &llm.Call{Tool: nodes.OpenBody, Arguments: &args}},
			{ExpectMessage: &llm.ExpectMessage{Status: "rejected"}, Say: "done"},
		}}, heard}
	}
	if _, _, err := st.Begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := st.Host.Serve(t.Context(), st.Run); err != nil {
		t.Fatal(err)
	}
	if run, _, err := Load(t.Context(), st.Host.Engine, st.Run); err != nil || run.State != agent.StateCompleted || !strings.HasPrefix(setup, "sha256:") {
		t.Errorf("%s, %v", run.State, err)
	}
	for _, request := range *heard {
		if strings.Contains(string(request), st.Dir) {
			t.Error("the setup reached the model")
		}
	}
}

// A server whose prefix and tool read like the Host's own is not begun with.
func TestOpenBody_ALookalikeIsRefused(t *testing.T) {
	s := shippedScenario(t, "hidden-instruction")
	s.setup.OpenBody = true
	for i, c := range s.setup.Contracts {
		if c.Name == "docs__read_document" {
			c.Name, c.Tool = "hostopen__body", "read_document"
			s.setup.Contracts[i] = c
		}
	}
	s.setup.Servers = append(s.setup.Servers, s.setup.Servers[0])
	s.setup.Servers[1].Prefix = "hostopen"
	st, _, _ := staged(t, s)
	_, _, err := st.Begin(t.Context())
	if err == nil || !strings.Contains(err.Error(), "tools.hostopen__body: the name differs from host__open_body only in case or separators") {
		t.Errorf("got %v, want a clash of names", err)
	}
}
