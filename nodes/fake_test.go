package nodes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"sallyport/agent"
	"sallyport/agent/enginetest"
	"sallyport/nodes"
	"sallyport/nodes/llm"
	"sallyport/tools/grant"
	"sallyport/tools/strictjson"
)

var update = flag.Bool("update", false, "rewrite the files under testdata")

// The tools of the desk that the tests work at.
const (
	toolSearch = "docs__search_documents"
	toolRead   = "docs__read_document"
	toolSave   = "docs__save_report"
	toolSettle = "docs__settle_report"
	toolPost   = "desk__post" // a write of somebody else's server: no shape, no read-back
)

// fakeBridge is a bridge without servers. It keeps the order of refusals that the
// nodes can tell apart, and serves results by tool.
type fakeBridge struct {
	results  map[string]string // raw results by exposed name
	outcome  *agent.Outcome    // what Send brings instead
	prepErr  error
	finding  agent.Finding
	readErr  error
	closeErr error

	mu        sync.Mutex
	prepared  []nodes.Call
	sent      []nodes.Call
	readBacks int
	closed    int
}

func (b *fakeBridge) Exposed() []nodes.Tool {
	schema := json.RawMessage(`{"additionalProperties":false,"properties":{},"type":"object"}`)
	return []nodes.Tool{
		{Name: toolSearch, Description: "Finds text.", Parameters: schema},
		{Name: toolRead, Description: "Reads one document.", Parameters: schema},
		{Name: toolSave, Description: "Saves a report.", Parameters: schema},
		{Name: toolPost, Description: "Posts a note.", Parameters: schema},
	}
}

func (b *fakeBridge) Close() error { b.closed++; return b.closeErr }

func rejected(class agent.Class, reason string) agent.Returned {
	return agent.Returned{Outcome: agent.Outcome{Status: agent.StatusRejected, Class: class, Reason: reason}}
}

func (b *fakeBridge) Prepare(_ context.Context, c nodes.Call) (agent.Result, []agent.Body, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.prepared = append(b.prepared, c)
	if b.prepErr != nil {
		return nil, nil, b.prepErr
	}
	args := c.Edited
	if args == nil {
		canonical, err := strictjson.Canonical([]byte(c.Arguments))
		if err != nil || canonical[0] != '{' {
			return rejected(agent.ClassToolError, "arguments_not_object"), nil, nil
		}
		args = canonical
	}
	tool, ok := c.Run.Spec.Tool(c.Name)
	switch {
	case !ok || tool.HostOnly:
		return rejected(agent.ClassToolError, "unknown_tool"), nil, nil
	case bytes.Contains(args, []byte(`"grant":`)), bytes.Contains(args, []byte(`"approved":`)):
		return rejected(agent.ClassToolError, "arguments_invalid"), nil, nil
	case c.Run.Used.Calls >= c.Run.Budget.Calls:
		return rejected(agent.ClassBudget, "budget"), nil, nil
	}
	body := agent.NewBody(args)
	if tool.Approvers > len(c.Run.Call.Grants) {
		return waiting(c, tool, body), []agent.Body{body}, nil
	}
	return agent.Checked{Arguments: body.Ref, Definition: tool.Definition}, []agent.Body{body}, nil
}

func waiting(c nodes.Call, tool agent.Tool, args agent.Body) agent.Returned {
	server, _ := c.Run.Spec.Server(tool.Server)
	candidate, err := grant.Candidate{
		Audience: server.Audience, Scope: server.Scope, Run: c.Run.ID, Tool: tool.Remote,
		Call: c.Run.Call.ID, Definition: tool.Definition, Head: c.Head,
	}.Bind(args.Data)
	if err != nil {
		panic(err) // the tests propose small arguments
	}
	return agent.Returned{
		Outcome:   agent.Outcome{Status: agent.StatusWaitingApproval, Class: agent.ClassPermissionRefused},
		Arguments: args.Ref, Candidate: &candidate,
	}
}

func (b *fakeBridge) Send(_ context.Context, c nodes.Call) (agent.Returned, []agent.Body, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, c)
	out := agent.Outcome{Status: agent.StatusOK, Class: agent.ClassOK, Sent: true, Request: fmt.Sprintf("mcp-%d", len(b.sent))}
	raw, served := b.results[c.Name]
	if !served {
		raw = `{"structuredContent":{"status":"ok","message":"done","data":{}}}`
	}
	if b.outcome != nil {
		request := out.Request
		out = *b.outcome
		out.Sent, out.Request = true, request
	}
	body := agent.NewBody([]byte(raw))
	out.Body = body.Ref
	return agent.Returned{Outcome: out}, []agent.Body{body}, nil
}

func (b *fakeBridge) ReadBack(context.Context, nodes.Call) (agent.Verified, []agent.Body, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readBacks++
	if b.readErr != nil {
		return agent.Verified{}, nil, b.readErr
	}
	evidence := agent.NewBody([]byte(`{"exists":true}`))
	return agent.Verified{Finding: b.finding, Evidence: evidence.Ref}, []agent.Body{evidence}, nil
}

// spec is a run at the desk.
func spec(run string, task agent.Body) agent.Spec {
	digest := func(name string) string { return agent.NewBody([]byte(name)).Ref.SHA256 }
	tool := func(name string, risk agent.Risk) agent.Tool {
		server, remote, _ := strings.Cut(name, "__")
		return agent.Tool{Name: name, Server: server, Remote: remote, Risk: risk, Definition: digest(name)}
	}
	write := func(name string, settle bool) agent.Tool {
		t := tool(name, agent.RiskWrite)
		t.Approvers, t.Expires, t.UseWithin, t.Settle = 1, 3600, 600, settle
		return t
	}
	settle := tool(toolSettle, agent.RiskSettle)
	settle.HostOnly = true
	return agent.Spec{
		Run: run, Rules: agent.Rules, Task: task.Ref, Config: digest("config"), Model: "script",
		Tools: []agent.Tool{
			tool(toolSearch, agent.RiskRead), tool(toolRead, agent.RiskRead),
			write(toolSave, true), write(toolPost, false), settle,
		},
		Servers: []agent.Server{
			{Prefix: "docs", Audience: "docs-1", Scope: "desk/reading", Protocol: "2026-07-28"},
			{Prefix: "desk", Audience: "desk-1", Scope: "desk/post", Protocol: "2026-07-28"},
		},
		Approvers: []agent.Approver{{Key: enginetest.Key("alice").Public().String()}},
		Budget:    agent.DefaultBudget,
	}
}

// desk is a run in an engine that keeps it in memory.
type desk struct {
	*testing.T
	engine  *enginetest.Memory
	bridge  *fakeBridge
	model   nodes.Model
	config  nodes.Config // changed before the first serve
	log     *bytes.Buffer
	id      string
	started agent.Run
	seen    []nodes.Request // what the model was given, by turn
}

// Turn records the request and passes it on.
func (d *desk) Turn(ctx context.Context, r nodes.Request) (nodes.Reply, error) {
	d.seen = append(d.seen, r)
	return d.model.Turn(ctx, r)
}

func open(t *testing.T, model nodes.Model, change ...func(*agent.Spec)) *desk {
	t.Helper()
	d := &desk{
		T: t, engine: enginetest.NewMemory(nil, nil), id: "desk", model: model,
		bridge: &fakeBridge{finding: agent.Applied, results: map[string]string{}}, log: &bytes.Buffer{},
	}
	task := agent.NewBody([]byte("Write a report about the evidence."))
	s := spec(d.id, task)
	for _, f := range change {
		f(&s)
	}
	run, err := d.engine.Start(t.Context(), s, "tester", []agent.Body{task})
	if err != nil {
		t.Fatalf("start: %v", err)
	}
	d.started = run
	return d
}

func script(turns ...llm.Turn) *llm.Script { return &llm.Script{File: "test", Turns: turns} }

func call(tool, args string) llm.Turn {
	return llm.Turn{Call: &llm.Call{Tool: tool, Arguments: &args}}
}

func calls(cs ...llm.Turn) llm.Turn {
	var t llm.Turn
	for _, c := range cs {
		t.Calls = append(t.Calls, *c.Call)
	}
	return t
}

func say(text string) llm.Turn { return llm.Turn{Say: text} }

// tryServe serves until the run rests, with nodes made anew as another process would.
func (d *desk) tryServe() error {
	d.Helper()
	return d.engine.Serve(d.Context(), agent.ServeOptions{Runs: []string{d.id}}, func(agent.Run) (agent.Nodes, error) {
		c := d.config
		c.Model, c.Bridge, c.Log = d, d.bridge, zerolog.New(d.log)
		return nodes.New(c), nil
	})
}

func (d *desk) serve() agent.Run {
	d.Helper()
	if err := d.tryServe(); err != nil {
		d.Fatalf("serve: %v", err)
	}
	return d.run()
}

// run is the run as its journal gives it.
func (d *desk) run() agent.Run {
	d.Helper()
	run, err := agent.Replay(d.engine.Journal(d.Context(), d.id, 1, false))
	if err != nil {
		d.Fatalf("replay: %v", err)
	}
	return run
}

func (d *desk) in(want agent.State) agent.Run {
	d.Helper()
	run := d.run()
	if run.State != want {
		d.Fatalf("the run is in %s (%s), want %s", run.State, run.Reason, want)
	}
	return run
}

func (d *desk) deliver(dec agent.Decision, bodies ...agent.Body) {
	d.Helper()
	del := enginetest.Deliver(dec, "key")
	del.Bodies = bodies
	v, err := d.engine.Deliver(d.Context(), d.id, del)
	if err != nil || v.Refusal != nil {
		d.Fatalf("deliver %T: %v, %v", dec, v.Refusal, err)
	}
}

func (d *desk) approve() {
	d.Helper()
	d.deliver(enginetest.Sign(d.in(agent.StateAwaitingApproval), "alice", time.Now()))
}

// messages are what the model would be told now.
func (d *desk) messages() []nodes.Message {
	d.Helper()
	body := func(ref agent.BodyRef) ([]byte, error) { return d.engine.Body(d.Context(), d.id, ref) }
	ms, err := nodes.Context(nodes.Rules, d.config.Window, d.engine.Journal(d.Context(), d.id, 1, false), body)
	if err != nil {
		d.Fatalf("context: %v", err)
	}
	return ms
}

// told are the tool messages so far.
func (d *desk) told() []nodes.Message {
	d.Helper()
	return slices.DeleteFunc(d.messages(), func(m nodes.Message) bool { return m.Role != nodes.RoleTool })
}

// lastTold is the last tool message, taken apart.
func (d *desk) lastTold() nodes.Observation {
	d.Helper()
	told := d.told()
	if len(told) == 0 {
		d.Fatal("the model was told nothing")
	}
	o, err := nodes.ParseObservation(told[len(told)-1].Content)
	if err != nil {
		d.Fatal(err)
	}
	return o
}

// observed is the last observed event.
func (d *desk) observed() agent.Observed {
	d.Helper()
	var o agent.Observed
	for e, err := range d.engine.Journal(d.Context(), d.id, 1, false) {
		if err != nil {
			d.Fatal(err)
		}
		if p, err := e.Payload(); err == nil {
			if got, ok := p.(agent.Observed); ok {
				o = got
			}
		}
	}
	return o
}

func ok(message, data string) string {
	return fmt.Sprintf(`{"content":[{"type":"text","text":%q}],"structuredContent":{"status":"ok","message":%q,"data":%s}}`, message, message, data)
}

// quote is text as JSON.
func quote(text string) (string, error) {
	data, err := strictjson.Encode(text)
	return string(data), err
}
