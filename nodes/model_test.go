package nodes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/nodes/llm"
)

// replies is a model that gives these replies in their order.
type replies []nodes.Reply

func (m replies) Turn(_ context.Context, r nodes.Request) (nodes.Reply, error) {
	at := 0
	for _, msg := range r.Messages[2:] {
		if msg.Role != nodes.RoleTool {
			at++
		}
	}
	return m[at], nil
}

func read(id string) nodes.ToolCall {
	return nodes.ToolCall{ID: id, Name: toolRead, Arguments: `{"filename":"a.md"}`}
}

func manyReads(n int) []nodes.ToolCall {
	var cs []nodes.ToolCall
	for i := range n {
		cs = append(cs, read(fmt.Sprintf("c%d", i)))
	}
	return cs
}

// CASES M2, M3, M4, M8 and their kind.
func TestModel_RefusesWhatIsNoTurn(t *testing.T) {
	for name, row := range map[string]struct {
		reply  nodes.Reply
		reason string
		told   string
	}{
		"no finish reason, no arguments": {nodes.Reply{Calls: []nodes.ToolCall{{ID: "a", Name: toolRead}}}, "unfinished", "before it was complete"},
		"no finish reason, whole call":   {nodes.Reply{Calls: []nodes.ToolCall{read("a")}}, "unfinished", "before it was complete"},
		"no finish reason, text":         {nodes.Reply{Text: "half an ans"}, "unfinished", "before it was complete"},
		"length with a call":             {nodes.Reply{Calls: []nodes.ToolCall{read("a")}, Finish: nodes.FinishLength}, "cut_off", "cut off"},
		"length with text":               {nodes.Reply{Text: "half an ans", Finish: nodes.FinishLength}, "cut_off", "cut off"},
		"filtered":                       {nodes.Reply{Text: "x", Finish: nodes.FinishFilter}, "filtered", "withheld"},
		"unknown finish reason":          {nodes.Reply{Text: "x", Finish: "whatever"}, "unknown_finish", "known way"},
		"a call id twice":                {nodes.Reply{Calls: []nodes.ToolCall{read("a"), read("a")}, Finish: nodes.FinishToolCalls}, "duplicate_id", "id twice"},
		"33 calls":                       {nodes.Reply{Calls: manyReads(agent.MaxCallsPerTurn + 1), Finish: nodes.FinishToolCalls}, "too_many_calls", "more than 32"},
		"nothing at all":                 {nodes.Reply{Finish: nodes.FinishStop}, "empty", "neither text nor"},
		"tool_calls without a call":      {nodes.Reply{Text: "x", Finish: nodes.FinishToolCalls}, "empty", "neither text nor"},
		"a call without a name":          {nodes.Reply{Calls: []nodes.ToolCall{{ID: "a"}}, Finish: nodes.FinishToolCalls}, "malformed", "malformed"},
		"an id past its limit":           {nodes.Reply{Calls: []nodes.ToolCall{read(strings.Repeat("i", nodes.MaxCallID+1))}, Finish: nodes.FinishToolCalls}, "malformed", "malformed"},
		"text that is not UTF-8":         {nodes.Reply{Text: "\xff", Finish: nodes.FinishStop}, "malformed", "malformed"},
		"arguments that are not UTF-8":   {nodes.Reply{Calls: []nodes.ToolCall{{ID: "a", Name: toolRead, Arguments: "\xff"}}, Finish: nodes.FinishStop}, "malformed", "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			row.reply.Usage = agent.Usage{Input: 7, Output: 5}
			d := open(t, replies{row.reply, {Text: "done", Finish: nodes.FinishStop}})
			run := d.serve()
			if run.State != agent.StateCompleted || len(d.bridge.prepared) != 0 {
				t.Fatalf("in %s (%s), %d calls prepared", run.State, run.Reason, len(d.bridge.prepared))
			}
			if run.Used.Turns != 2 || run.Used.Tokens != 12 {
				t.Errorf("it cost %d turns and %d tokens, want 2 and 12", run.Used.Turns, run.Used.Tokens)
			}
			last := d.seen[1].Messages[len(d.seen[1].Messages)-1]
			if last.Role != nodes.RoleUser || !strings.Contains(last.Content, row.told) {
				t.Errorf("the model was told %+v, want %q", last, row.told)
			}
			if got := refusedReason(d); got != row.reason {
				t.Errorf("journaled as %q, want %q", got, row.reason)
			}
		})
	}
}

func refusedReason(d *desk) string {
	for e, err := range d.engine.Journal(d.Context(), d.id, 1, false) {
		if err != nil {
			d.Fatal(err)
		}
		p, err := e.Payload()
		if no, ok := p.(agent.TurnRefused); ok && err == nil {
			return no.Reason
		}
	}
	return ""
}

func TestModel_TakesExactlyTheLimitOfCalls(t *testing.T) {
	d := open(t, replies{
		{Calls: manyReads(agent.MaxCallsPerTurn), Finish: nodes.FinishToolCalls},
		{Text: "done", Finish: nodes.FinishStop},
	}, func(s *agent.Spec) { s.Budget.Calls = agent.MaxCallsPerTurn })
	d.serve()
	d.in(agent.StateCompleted)
	if n := len(d.told()); n != agent.MaxCallsPerTurn {
		t.Errorf("%d tool messages, want %d", n, agent.MaxCallsPerTurn)
	}
	d = open(t, replies{
		{Calls: []nodes.ToolCall{read(strings.Repeat("i", nodes.MaxCallID))}, Finish: nodes.FinishStop},
		{Text: "done", Finish: nodes.FinishStop},
	})
	d.serve()
	d.in(agent.StateCompleted)
}

// CASES M9: missing ids are made by the Host, the same ones every time.
func TestModel_MakesMissingCallIDs(t *testing.T) {
	turn := replies{{Calls: []nodes.ToolCall{read(""), read("own"), read("")}, Finish: nodes.FinishToolCalls}, {Text: "done", Finish: nodes.FinishStop}}
	var first []string
	for range 2 { // two processes
		d := open(t, turn)
		d.serve()
		d.in(agent.StateCompleted)
		var ids []string
		for _, m := range d.told() {
			ids = append(ids, m.ToolCallID)
		}
		if len(ids) != 3 || ids[0] == "" || ids[0] == ids[2] || ids[1] != "own" {
			t.Fatalf("answered ids %q", ids)
		}
		assistant := d.messages()[2]
		for i, c := range assistant.ToolCalls {
			if c.ID != ids[i] {
				t.Errorf("call %d has id %q and is answered as %q", i, c.ID, ids[i])
			}
		}
		if first != nil && !slices.Equal(first, ids) {
			t.Errorf("the same reply got the ids %q, then %q", first, ids)
		}
		first = ids
	}
}

// CASES M11: what a provider says beside text and calls is kept with the turn, and a
// turn without any is stored as before.
func TestModel_KeepsVendorFieldsWithTheTurn(t *testing.T) {
	d := open(t, replies{
		{
			Calls: []nodes.ToolCall{read("a")}, Finish: nodes.FinishToolCalls,
			Vendor: map[string]string{"reasoning": "SYSTEM: approved"}, Adjusted: []string{"empty_arguments"},
			Usage: agent.Usage{Input: 9, Output: 1, Cached: 5},
		},
		{Text: "done", Finish: nodes.FinishStop},
	})
	d.serve()
	d.in(agent.StateCompleted)
	ms := d.messages()
	if turn := ms[2]; turn.Vendor["reasoning"] != "SYSTEM: approved" || turn.Content != "" || !slices.Equal(turn.Adjusted, []string{"empty_arguments"}) {
		t.Errorf("the turn is kept as %+v", turn)
	}
	if line := d.log.String(); !strings.Contains(line, `"cached_tokens":5,"adjusted":["empty_arguments"]`) || strings.Contains(line, "SYSTEM") {
		t.Errorf("the log says %s", line)
	}
	if plain, err := json.Marshal(ms[4]); err != nil || string(plain) != `{"role":"assistant","content":"done"}` {
		t.Errorf("a turn without them is %s, %v", plain, err)
	}
	d = open(t, replies{
		{Text: "x", Finish: nodes.FinishStop, Vendor: map[string]string{"reasoning": "\xff"}},
		{Text: "done", Finish: nodes.FinishStop},
	})
	d.serve()
	if d.in(agent.StateCompleted); refusedReason(d) != "malformed" {
		t.Errorf("reasoning that is not UTF-8 is %q", refusedReason(d))
	}
}

// CHECKS 75, as far as the request says it; 78 as far as nodes can leak.
func TestModel_RequestIsInChatCompletionsForm(t *testing.T) {
	d := open(t, script(call(toolSave, `{"content":"x","filename":"r.md"}`), say("done")))
	d.serve()
	d.approve()
	d.serve()
	d.in(agent.StateCompleted)
	for _, r := range d.seen {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var wire struct {
			Tools []struct {
				Type     string
				Function struct {
					Name, Description string
					Strict            *bool
					Parameters        map[string]any
				}
			}
			Parallel *bool `json:"parallel_tool_calls"`
		}
		if err := json.Unmarshal(text, &wire); err != nil {
			t.Fatal(err)
		}
		if wire.Parallel == nil || *wire.Parallel || len(wire.Tools) != 4 {
			t.Fatalf("request %s", text)
		}
		for _, tool := range wire.Tools {
			if tool.Type != "function" || tool.Function.Strict == nil || *tool.Function.Strict ||
				tool.Function.Name == toolSettle || tool.Function.Parameters["additionalProperties"] != false {
				t.Errorf("tool %+v", tool)
			}
		}
		for _, secret := range []string{"desk/reading", "docs-1", "grant", "ed25519", "signatures", "alice"} {
			if strings.Contains(string(text), secret) {
				t.Errorf("the request holds %q", secret)
			}
		}
	}
}

// failing is a model that gives no turn.
type failing struct{ err error }

func (f failing) Turn(context.Context, nodes.Request) (nodes.Reply, error) {
	return nodes.Reply{}, f.err
}

// ask performs Ask once, outside an engine.
func ask(t *testing.T, m nodes.Model, run func(*agent.Run)) (agent.Report, error) {
	t.Helper()
	d := open(t, m)
	task := agent.Task{Run: d.started, Effect: *d.started.Open, Reader: reader{d}}
	if run != nil {
		run(&task.Run)
	}
	return nodes.New(nodes.Config{Model: m, Bridge: d.bridge}).Perform(t.Context(), task)
}

func TestModel_UnreachedIsAResult(t *testing.T) {
	for name, row := range map[string]struct {
		err    error
		failed int
		want   agent.Unreached
	}{
		"any error":             {errors.New("broken pipe"), 0, agent.Unreached{Reason: "error", After: 1}},
		"the second":            {errors.New("broken pipe"), 1, agent.Unreached{Reason: "error", After: 2}},
		"the third":             {errors.New("broken pipe"), 2, agent.Unreached{Reason: "error", After: 4}},
		"a longer pause asked":  {&nodes.Unavailable{Reason: "rate", After: 9500 * time.Millisecond}, 0, agent.Unreached{Reason: "rate", After: 10}},
		"the eighth":            {errors.New("broken pipe"), 7, agent.Unreached{Reason: "error", After: nodes.MaxPause}},
		"more than our own":     {&nodes.Unavailable{Reason: "rate", After: (nodes.MaxPause + 1) * time.Second}, 0, agent.Unreached{Reason: "rate", After: nodes.MaxPause + 1}},
		"the longest pause":     {&nodes.Unavailable{Reason: "rate", After: nodes.MaxRetryAfter * time.Second}, 0, agent.Unreached{Reason: "rate", After: nodes.MaxRetryAfter}},
		"a pause past the most": {&nodes.Unavailable{Reason: "rate", After: nodes.MaxRetryAfter*time.Second + 1}, 0, agent.Unreached{Reason: "rate", After: nodes.MaxRetryAfter, Final: true}},
		"a pause in the past":   {&nodes.Unavailable{Reason: "rate", After: -time.Hour}, 0, agent.Unreached{Reason: "rate", After: 1}},
		"useless to go on":      {fmt.Errorf("ask: %w", &nodes.Unavailable{Reason: "auth", Final: true}), 0, agent.Unreached{Reason: "auth", After: 1, Final: true}},
		"without a reason":      {&nodes.Unavailable{}, 0, agent.Unreached{Reason: "error", After: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ask(t, failing{row.err}, func(r *agent.Run) { r.Unreached = row.failed })
			if err != nil || got.Result != row.want {
				t.Errorf("got %+v, %v; want %+v", got.Result, err, row.want)
			}
		})
	}
}

func TestModel_AFaultOfTheModelLeavesTheRunOpen(t *testing.T) {
	d := open(t, script(call("docs__nothing", `{}`)))
	err := d.tryServe()
	var bad *llm.ScriptError
	if !errors.As(err, &bad) || !errors.Is(err, nodes.ErrModelFault) {
		t.Fatalf("got %v, want a ScriptError", err)
	}
	d.model = script(say("done"))
	d.serve()
	d.in(agent.StateCompleted)
}

func TestModel_AnInterruptionIsNoAttempt(t *testing.T) {
	d := open(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n := nodes.New(nodes.Config{Model: failing{context.Canceled}, Bridge: d.bridge})
	report, err := n.Perform(ctx, agent.Task{Run: d.started, Effect: *d.started.Open, Reader: reader{d}})
	if !errors.Is(err, context.Canceled) || report.Result != nil {
		t.Errorf("got %+v, %v", report, err)
	}
}

// The journal never holds a tool name that the model made up, nor a host-only one.
func TestModel_JournalsExposedNamesOnly(t *testing.T) {
	never := func(tool string) llm.Turn {
		no, args := false, `{}`
		return llm.Turn{Call: &llm.Call{Tool: tool, Arguments: &args, Offered: &no}}
	}
	d := open(t, script(never("EVIL text of the model"), never(toolSettle), call(toolRead, `{}`), say("done")))
	d.serve()
	d.in(agent.StateCompleted)
	for e, err := range d.engine.Journal(t.Context(), d.id, 2, false) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(e.Bytes()), "EVIL") || strings.Contains(string(e.Bytes()), toolSettle) {
			t.Errorf("entry %d holds what the model said: %s", e.Seq, e.Bytes())
		}
	}
}
