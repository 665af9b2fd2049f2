package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sallyport/agent"
	"sallyport/agent/enginetest"
	"sallyport/nodes"
	"sallyport/tools"
	"sallyport/tools/grant"
)

// bench is a bridge to three tools that have no server: docs__list takes nothing,
// docs__read a file name, docs__save waits for a person. Arguments are read as the real
// bridge reads them.
type bench struct {
	schemas  map[string]*tools.Schema
	failing  bool
	prepared []string // tool and arguments, as the model sent them
	sent     []string // what went out
}

const (
	listSchema = `{"additionalProperties":false,"properties":{},"type":"object"}`
	readSchema = `{"additionalProperties":false,"properties":{"filename":{"type":"string"}},"required":["filename"],"type":"object"}`
	saveSchema = `{"additionalProperties":false,"properties":{"content":{"type":"string"},"filename":{"type":"string"}},"required":["content","filename"],"type":"object"}`
)

func newBench(t testing.TB) *bench {
	b := &bench{schemas: map[string]*tools.Schema{}}
	for _, tool := range b.Exposed() {
		s, err := tools.NewSchema(tool.Parameters, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.schemas[tool.Name] = s
	}
	return b
}

func (b *bench) Exposed() []nodes.Tool {
	return []nodes.Tool{
		{Name: "docs__list", Description: "Lists the documents.", Parameters: json.RawMessage(listSchema)},
		{Name: "docs__read", Description: "Reads a document.", Parameters: json.RawMessage(readSchema)},
		{Name: "docs__save", Description: "Saves a report.", Parameters: json.RawMessage(saveSchema)},
	}
}

func (b *bench) Close() error { return nil }

func refused(class agent.Class, reason string) agent.Returned {
	return agent.Returned{Outcome: agent.Outcome{Status: agent.StatusRejected, Class: class, Reason: reason}}
}

func (b *bench) Prepare(_ context.Context, c nodes.Call) (agent.Result, []agent.Body, error) {
	b.prepared = append(b.prepared, c.Name+" "+c.Arguments)
	schema := b.schemas[c.Name]
	if schema == nil {
		schema = b.schemas["docs__list"]
	}
	canonical, err := tools.DecodeArguments(c.Arguments, schema)
	var wrong *tools.ArgumentError
	switch {
	case errors.As(err, &wrong) && wrong.Row == 1:
		return refused(agent.ClassToolError, "arguments_not_object"), nil, nil
	case b.schemas[c.Name] == nil:
		return refused(agent.ClassToolError, "unknown_tool"), nil, nil
	case err != nil:
		return refused(agent.ClassToolError, "arguments_invalid"), nil, nil
	case c.Run.Used.Calls >= c.Run.Budget.Calls:
		return refused(agent.ClassBudget, "budget"), nil, nil
	}
	body := agent.NewBody(canonical)
	tool, _ := c.Run.Spec.Tool(c.Name)
	if tool.Approvers > len(c.Run.Call.Grants) {
		candidate, err := grant.Candidate{
			Audience: "docs-1", Scope: "desk/reading", Run: c.Run.ID, Tool: tool.Remote,
			Call: c.Run.Call.ID, Definition: tool.Definition, Head: c.Head,
		}.Bind(canonical)
		if err != nil {
			return nil, nil, err
		}
		return agent.Returned{
			Outcome:   agent.Outcome{Status: agent.StatusWaitingApproval, Class: agent.ClassPermissionRefused},
			Arguments: body.Ref, Candidate: &candidate,
		}, []agent.Body{body}, nil
	}
	return agent.Checked{Arguments: body.Ref, Definition: tool.Definition}, []agent.Body{body}, nil
}

func (b *bench) Send(_ context.Context, c nodes.Call) (agent.Returned, []agent.Body, error) {
	b.sent = append(b.sent, c.Name+" "+c.Run.Call.Arguments.SHA256)
	result := `{"structuredContent":{"status":"ok","message":"done","data":{}}}`
	if b.failing {
		result = `{"structuredContent":{"status":"failed","message":"no","data":{}}}`
	}
	body := agent.NewBody([]byte(result))
	out := agent.Outcome{Status: agent.StatusOK, Class: agent.ClassOK, Sent: true, Request: fmt.Sprint(len(b.sent)), Body: body.Ref}
	if b.failing {
		out.Status, out.Class = agent.StatusFailed, agent.ClassToolError
	}
	return agent.Returned{Outcome: out}, []agent.Body{body}, nil
}

func (b *bench) ReadBack(context.Context, nodes.Call) (agent.Verified, []agent.Body, error) {
	return agent.Verified{Finding: agent.Undecided}, nil, nil
}

// run is a run in an engine that keeps it in memory, with the client under test as its
// model.
type run struct {
	*testing.T
	engine *enginetest.Memory
	bench  *bench
	model  nodes.Model
	log    bytes.Buffer
}

// begin starts a run of 6 tool calls at most.
func begin(t *testing.T, m nodes.Model) *run {
	t.Helper()
	task := agent.NewBody([]byte("Write a report."))
	digest := func(name string) string { return agent.NewBody([]byte(name)).Ref.SHA256 }
	spec := agent.Spec{
		Run: "run-7", Rules: agent.Rules, Task: task.Ref, Config: digest("config"), Model: "openai",
		Servers:   []agent.Server{{Prefix: "docs", Audience: "docs-1", Scope: "desk/reading", Protocol: "2026-07-28"}},
		Approvers: []agent.Approver{{Key: enginetest.Key("alice").Public().String()}}, Budget: agent.DefaultBudget,
	}
	spec.Budget.Calls = 6
	for _, name := range []string{"list", "read", "save"} {
		tool := agent.Tool{Name: "docs__" + name, Server: "docs", Remote: name, Risk: agent.RiskRead, Definition: digest(name)}
		if name == "save" {
			tool.Risk, tool.Approvers, tool.Expires, tool.UseWithin = agent.RiskWrite, 1, 3600, 600
		}
		spec.Tools = append(spec.Tools, tool)
	}
	r := &run{T: t, engine: enginetest.NewMemory(nil, nil), bench: newBench(t), model: m}
	if _, err := r.engine.Start(t.Context(), spec, "tester", []agent.Body{task}); err != nil {
		t.Fatal(err)
	}
	return r
}

// start is when the run was begun.
func (r *run) start() time.Time {
	r.Helper()
	now, err := agent.Replay(r.engine.Journal(r.Context(), "run-7", 1, false))
	if err != nil {
		r.Fatal(err)
	}
	return now.Time
}

// serve serves until the run rests.
func (r *run) serve() agent.Run {
	r.Helper()
	err := r.engine.Serve(r.Context(), agent.ServeOptions{Runs: []string{"run-7"}}, func(agent.Run) (agent.Nodes, error) {
		return nodes.New(nodes.Config{Model: r.model, Bridge: r.bench, Log: zerolog.New(&r.log)}), nil
	})
	if err != nil {
		r.Fatal(err)
	}
	now, err := agent.Replay(r.engine.Journal(r.Context(), "run-7", 1, false))
	if err != nil {
		r.Fatal(err)
	}
	return now
}

func (r *run) approve(now agent.Run) {
	r.Helper()
	d := enginetest.Deliver(enginetest.Sign(now, "alice", now.Time), "key")
	if v, err := r.engine.Deliver(r.Context(), "run-7", d); err != nil || v.Refusal != nil {
		r.Fatal(v.Refusal, err)
	}
}

// journal is what became of the model's turns, one word each: a turn, or why there was
// none.
func (r *run) journal() []string {
	r.Helper()
	var words []string
	for e, err := range r.engine.Journal(r.Context(), "run-7", 1, false) {
		if err != nil {
			r.Fatal(err)
		}
		p, err := e.Payload()
		if err != nil {
			continue // an entry that holds none
		}
		switch p := p.(type) {
		case agent.Turned:
			words = append(words, fmt.Sprintf("turned %d", len(p.Calls)))
		case agent.TurnRefused:
			words = append(words, "turn_refused "+p.Reason)
		case agent.Unreached:
			word := fmt.Sprintf("unreached %s %ds", p.Reason, p.After)
			if p.Final {
				word = "unreached " + p.Reason + " final"
			}
			words = append(words, word)
		}
	}
	return words
}

// messages are what the model would be told now.
func (r *run) messages() []nodes.Message {
	r.Helper()
	body := func(ref agent.BodyRef) ([]byte, error) { return r.engine.Body(r.Context(), "run-7", ref) }
	ms, err := nodes.Context(nodes.Rules, nodes.Window{}, r.engine.Journal(r.Context(), "run-7", 1, false), body)
	if err != nil {
		r.Fatal(err)
	}
	return ms
}

// told are the tool messages so far, by status, and the last word that was not a tool's.
func (r *run) told() (statuses []string, hosts string) {
	r.Helper()
	for _, m := range r.messages() {
		switch m.Role {
		case nodes.RoleTool:
			o, err := nodes.ParseObservation(m.Content)
			if err != nil {
				r.Fatal(err)
			}
			statuses = append(statuses, string(o.Status))
			hosts = o.Message
		case nodes.RoleUser:
			hosts = m.Content
		case nodes.RoleSystem, nodes.RoleAssistant:
		}
	}
	return statuses, hosts
}
