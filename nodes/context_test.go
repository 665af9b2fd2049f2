package nodes_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/nodes/llm"
)

// reader reads the desk's journal as a node does.
type reader struct{ d *desk }

func (r reader) Entries(ctx context.Context) iter.Seq2[agent.Entry, error] {
	return r.d.engine.Journal(ctx, r.d.id, 1, false)
}

func (r reader) Body(ctx context.Context, ref agent.BodyRef) ([]byte, error) {
	return r.d.engine.Body(ctx, r.d.id, ref)
}

// golden compares got with the file under testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs (-update writes it anew); got:\n%s", path, got)
	}
}

func written(t *testing.T, messages []nodes.Message) string {
	t.Helper()
	var b strings.Builder
	for _, m := range messages {
		text, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n", text)
	}
	return b.String()
}

// research is a whole run: a search, a turn that is cut off, two calls in one turn of
// which the second is refused by a person, an unknown tool, a save that is approved.
func research(t *testing.T) *desk {
	no := false
	wrong := `{"q":1}`
	d := open(t, script(
		llm.Turn{Say: "I look for it.", Call: &llm.Call{Tool: toolSearch, Args: llm.Args(`{"query":"证据"}`)}},
		llm.Turn{Say: "I will now", Finish: nodes.FinishLength},
		calls(call(toolRead, `{"filename":"notes.md"}`), call(toolSave, `{"content":"one","filename":"r.md"}`)),
		llm.Turn{Call: &llm.Call{Tool: "docs__delete", Arguments: &wrong, Offered: &no}},
		call(toolSave, `{"content":"two","filename":"r.md"}`),
		say("Saved."),
	))
	d.bridge.results[toolSearch] = ok("One hit.", `{"hits":[{"filename":"notes.md","excerpt":"the 证据"}],"skipped":0,"examined":1,"truncated":false}`)
	d.bridge.results[toolRead] = ok("Read.", `{"filename":"notes.md","content":"line one\nline two"}`)
	d.bridge.results[toolSave] = ok("Saved.", `{"filename":"r.md","bytes":3}`)
	run := d.serve()
	d.deliver(agent.Refuse{Candidate: run.Call.Candidate.ID})
	d.serve()
	d.approve()
	d.serve()
	d.in(agent.StateCompleted)
	return d
}

func TestContext_IsTheJournalInOrder(t *testing.T) {
	golden(t, "context.txt", written(t, research(t).messages()))
}

// The same journal gives the same context, and the context of a turn is the start of
// that of the next.
func TestContext_OnlyGrows(t *testing.T) {
	d := research(t)
	all := d.messages()
	for i, r := range d.seen {
		if len(r.Messages) > len(all) || written(t, r.Messages) != written(t, all[:len(r.Messages)]) {
			t.Errorf("turn %d was given what the journal does not say", i+1)
		}
	}
}

func TestContext_RefusedDeliveriesLeaveNoTrace(t *testing.T) {
	d := open(t, script(call(toolSave, `{"content":"x","filename":"r.md"}`), say("done")))
	d.serve()
	before := written(t, d.messages())
	v, err := d.engine.Deliver(t.Context(), d.id, agent.Delivery{Key: "forged", Decision: agent.Approve{Grant: "AAAA"}})
	if err != nil || v.Refusal == nil {
		t.Fatalf("a forged grant: %+v, %v", v, err)
	}
	if after := written(t, d.messages()); after != before {
		t.Errorf("the context changed:\n%s", after)
	}
}

// CHECKS 76, 80: every call is answered once, in order, with its own id.
func TestContext_EveryCallIsAnsweredOnceInOrder(t *testing.T) {
	var open []string
	for _, m := range research(t).messages() {
		switch m.Role {
		case nodes.RoleTool:
			if len(open) == 0 || open[0] != m.ToolCallID {
				t.Fatalf("message for %q, open are %q", m.ToolCallID, open)
			}
			open = open[1:]
		case nodes.RoleAssistant, nodes.RoleUser, nodes.RoleSystem:
			if len(open) > 0 {
				t.Fatalf("the %s speaks while %q is unanswered", m.Role, open)
			}
		}
		for _, c := range m.ToolCalls {
			if slices.Contains(open, c.ID) {
				t.Fatalf("id %q twice", c.ID)
			}
			open = append(open, c.ID)
		}
	}
	if len(open) > 0 {
		t.Errorf("never answered: %q", open)
	}
}

func TestContext_ABodyThatIsGoneIsAnError(t *testing.T) {
	d := research(t)
	gone := func(ref agent.BodyRef) ([]byte, error) { return nil, agent.ErrNoBody }
	if _, err := nodes.Context("", nodes.Window{}, d.engine.Journal(t.Context(), d.id, 1, false), gone); err == nil {
		t.Error("a context without its bodies")
	}
	swapped := func(ref agent.BodyRef) ([]byte, error) { return []byte(`{"role":"system","content":"x"}`), nil }
	if _, err := nodes.Context("", nodes.Window{}, d.engine.Journal(t.Context(), d.id, 1, false), swapped); err == nil {
		t.Error("a stored message took another role")
	}
}

// A turn that came too late is noted in the journal; the model never said it.
func TestContext_ANotedTurnIsNotSaid(t *testing.T) {
	d := open(t, nil)
	late := agent.FromNode(d.started.Open.Effect, agent.Turned{Message: d.started.Spec.Task}, d.started.Time)
	_, noted, ok, err := agent.Note(d.started, late, &agent.Refusal{Code: agent.CodeStale})
	if err != nil || !ok {
		t.Fatal(err)
	}
	entries := func(yield func(agent.Entry, error) bool) {
		for e, err := range d.engine.Journal(t.Context(), d.id, 1, false) {
			if !yield(e, err) {
				return
			}
		}
		yield(noted, nil)
	}
	body := func(ref agent.BodyRef) ([]byte, error) { return d.engine.Body(t.Context(), d.id, ref) }
	ms, err := nodes.Context(nodes.Rules, d.config.Window, entries, body)
	if err != nil || len(ms) != 2 {
		t.Errorf("%d messages, %v; want the rules and the task", len(ms), err)
	}
}
