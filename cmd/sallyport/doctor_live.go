package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sallyport/nodes"
	"sallyport/nodes/llm/chat"
	"sallyport/nodes/llm/openai"
	"sallyport/scenarios/config"
)

// What providers do differently, tried at an endpoint: see docs/providers.md.

// trial is one way to ask, and what came of it.
type trial struct {
	name string // of the way, as the page has it
	fits func(chat.Profile) bool
	took bool
	why  string // it did not
}

// probeTokens bounds what the model writes in a trial that bounds it.
const probeTokens = 300

// The parts of a conversation in which a tool was called.
var (
	probeTool = nodes.Tool{
		Name: "calc__add", Description: "Add two integers.",
		Parameters: []byte(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false}`),
	}
	probeAsk  = nodes.Message{Role: nodes.RoleUser, Content: sumTask}
	probeCall = nodes.Message{Role: nodes.RoleAssistant, ToolCalls: []nodes.ToolCall{{ID: "call_1", Name: "calc__add", Arguments: `{"a":7,"b":5}`}}}
	probeSum  = nodes.Message{Role: nodes.RoleTool, ToolCallID: "call_1", Content: "12"}
	probeOK   = nodes.Message{Role: nodes.RoleUser, Content: "Say ok."}
)

// quirks asks what fits the endpoint. first is the first turn of the sum; nil if that
// did not come about.
func (d *doctor) quirks(ctx context.Context, m *openai.Model, e config.Endpoint, first *nodes.Reply) {
	d.streams(ctx, m)
	d.usage(first)
	trials := []trial{
		maxTokens("max_completion_tokens"), maxTokens("max_tokens"), emptyContent("null"), emptyContent(`""`),
	}
	tries := []func() error{
		d.bounded(ctx, m, "max_completion_tokens"), d.bounded(ctx, m, "max_tokens"),
		d.remembers(ctx, m, "null"), d.remembers(ctx, m, `""`),
	}
	for i, try := range tries {
		err := try()
		if ctx.Err() != nil {
			return
		}
		trials[i].took = err == nil
		if err != nil {
			trials[i].why = unavailableText(err)
		}
	}
	d.oddities(first)
	d.parallel(ctx, m, first)
	d.profile(m.Profile(), e, trials)
}

func maxTokens(name string) trial {
	return trial{name: name, fits: func(p chat.Profile) bool { return p.MaxTokens == name }}
}

func emptyContent(json string) trial {
	return trial{name: "content " + json + " beside calls", fits: func(p chat.Profile) bool { return p.EmptyContent == json }}
}

// bounded asks with a bound on what the model writes, in a field of that name.
func (d *doctor) bounded(ctx context.Context, m *openai.Model, field string) func() error {
	return func() error {
		other := m.Otherwise(func(p *chat.Profile, o *chat.Options) { p.MaxTokens, o.MaxTokens, o.Stream = field, probeTokens, false })
		_, err := other.Turn(ctx, nodes.Request{Messages: []nodes.Message{probeOK}})
		return err
	}
}

// remembers asks with a call behind it whose turn had no text.
func (d *doctor) remembers(ctx context.Context, m *openai.Model, empty string) func() error {
	return func() error {
		other := m.Otherwise(func(p *chat.Profile, o *chat.Options) { p.EmptyContent, o.Stream = empty, false })
		_, err := other.Turn(ctx, nodes.Request{Messages: []nodes.Message{probeAsk, probeCall, probeSum}, Tools: []nodes.Tool{probeTool}})
		return err
	}
}

// streams asks for a streamed turn.
func (d *doctor) streams(ctx context.Context, m *openai.Model) {
	other := m.Otherwise(func(_ *chat.Profile, o *chat.Options) { o.Stream = true })
	reply, err := other.Turn(ctx, nodes.Request{Messages: []nodes.Message{probeOK}})
	switch {
	case ctx.Err() != nil:
	case err != nil:
		d.warn("streaming", "leave --stream away with this endpoint", "a streamed turn did not come: %s", unavailableText(err))
	case reply.Finish == "":
		d.warn("streaming", "leave --stream away with this endpoint", "a streamed turn ended without its finish reason, or without the end marker [DONE], so that it would be refused")
	case slices.Contains(reply.Adjusted, chat.AdjustedUsage):
		d.warn("streaming", "budgets of tokens and cost go by an estimate with --stream", "it works, and a streamed turn does not say what it cost")
	default:
		d.pass("streaming", "a streamed turn came, with its finish reason and what it cost")
	}
}

func (d *doctor) usage(first *nodes.Reply) {
	switch {
	case first == nil:
		d.skip("usage", "there was no turn that could say it")
	case slices.Contains(first.Adjusted, chat.AdjustedUsage):
		d.warn("usage", "bound the turns as well: budgets of tokens and cost go by an estimate", "turns do not say what they cost")
	default:
		d.pass("usage", "a turn says what it cost: %d tokens in, of which %d cached, and %d out", first.Usage.Input, first.Usage.Cached, first.Usage.Output)
	}
}

// oddities tells what is taken as it comes.
func (d *doctor) oddities(first *nodes.Reply) {
	if first == nil {
		return
	}
	var odd []string
	if slices.Contains(first.Adjusted, chat.AdjustedObjectArguments) {
		odd = append(odd, "arguments come as an object")
	}
	if slices.ContainsFunc(first.Calls, func(c nodes.ToolCall) bool { return c.ID == "" }) {
		odd = append(odd, "calls have no ids")
	}
	for name := range first.Vendor {
		odd = append(odd, "a turn holds "+name)
	}
	slices.Sort(odd)
	if len(odd) > 0 {
		d.pass("oddities", "%s: all of it is understood", strings.Join(odd, ", "))
	}
}

// parallel looks, if the sum did not come about, whether the endpoint takes tools only
// without a field that says that one call is made at a time.
func (d *doctor) parallel(ctx context.Context, m *openai.Model, first *nodes.Reply) {
	if first != nil {
		return
	}
	ask := func(serial []string) error {
		other := m.Otherwise(func(p *chat.Profile, o *chat.Options) { p.SerialModels, o.Stream = serial, false })
		_, err := other.Turn(ctx, nodes.Request{Messages: []nodes.Message{probeAsk}, Tools: []nodes.Tool{probeTool}})
		return err
	}
	if err := ask(nil); err != nil && ask([]string{""}) == nil {
		d.fail("one call", exitUnreachable, "use a model that takes the field, or a proxy that drops it", "tools are taken only without parallel_tool_calls: %s", unavailableText(err))
	}
}

// profile says whether the profile in use fits what was seen, and which would.
func (d *doctor) profile(name string, e config.Endpoint, trials []trial) {
	var seen []string
	for _, t := range trials {
		if t.took {
			seen = append(seen, t.name+" is taken")
		} else {
			seen = append(seen, t.name+" is not ("+t.why+")")
		}
	}
	evidence := strings.Join(seen, "; ")
	misfits := func(name string) []string {
		p, err := chat.For(name)
		if err != nil {
			return []string{err.Error()}
		}
		var against []string
		for _, t := range trials {
			if t.fits(p) && !t.took {
				against = append(against, t.name)
			}
		}
		return against
	}
	against := misfits(name)
	if len(against) == 0 {
		d.pass("profile", "%s fits: %s", name, evidence)
		return
	}
	for _, other := range append([]string{chat.Guess(e.BaseURL)}, chat.Profiles()...) {
		if other != "azure" && len(misfits(other)) == 0 {
			d.warn("profile", "write `profile: "+other+"` under model.openai", "%s does not fit, which sends %s; %s would: %s", name, strings.Join(against, " and "), other, evidence)
			return
		}
	}
	d.warn("profile", "leave max_tokens out if it is that; else see docs/providers.md", "%s does not fit, which sends %s, nor does any other: %s", name, strings.Join(against, " and "), evidence)
}

// unavailableText is why a turn did not come, in one line.
func unavailableText(err error) string {
	var u *nodes.Unavailable
	if errors.As(err, &u) && u.Err != nil {
		return fmt.Sprintf("%s: %s", u.Reason, u.Err)
	}
	return err.Error()
}
