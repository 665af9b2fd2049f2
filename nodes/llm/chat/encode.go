package chat

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/nodes"
	"sallyport/tools/strictjson"
)

// Options are what the operator chose beside the context. The zero value chooses nothing
// but the model's name, which must be there.
type Options struct {
	Model       string
	MaxTokens   int64 // of one turn; 0 leaves it to the provider
	Temperature *float64
	Seed        *int64
	Stream      bool
}

// Encode is the body of the request for a turn: canonical JSON, so that the same context
// gives the same bytes. It holds what r holds and the options, and nothing else.
func (p Profile) Encode(r nodes.Request, o Options) ([]byte, error) {
	var b body
	b.add("model", o.Model)
	b.add("messages", p.messages(r.Messages))
	if len(r.Tools) > 0 {
		b.add("tools", p.tools(r.Tools))
		// A provider may refuse the field in a request without tools.
		if !p.serial(o.Model) {
			b.add("parallel_tool_calls", false)
		}
	}
	if o.MaxTokens > 0 {
		b.add(p.MaxTokens, o.MaxTokens)
	}
	if o.Temperature != nil {
		b.add("temperature", *o.Temperature)
	}
	if o.Seed != nil {
		b.add("seed", *o.Seed)
	}
	b.add("stream", o.Stream)
	if o.Stream {
		b.add("stream_options", map[string]bool{"include_usage": true})
	}
	data, err := b.object()
	if err != nil {
		return nil, fmt.Errorf("encode a request to the model: %w", err)
	}
	return data, nil
}

func (p Profile) serial(model string) bool {
	return slices.ContainsFunc(p.SerialModels, func(prefix string) bool { return strings.HasPrefix(model, prefix) })
}

// body is an object under construction. The first error stays.
type body struct {
	members []strictjson.Member
	err     error
}

// raw is JSON text.
type raw []byte

// MarshalJSON implements json.Marshaler.
func (r raw) MarshalJSON() ([]byte, error) { return r, nil }

func (b *body) add(name string, value any) {
	if b.err != nil {
		return
	}
	if inner, ok := value.(lazy); ok {
		value, b.err = inner()
	}
	var text []byte
	if b.err == nil {
		text, b.err = strictjson.Encode(value)
	}
	b.members = append(b.members, strictjson.Member{Name: name, Value: text})
}

// lazy is a value whose making may fail.
type lazy func() (any, error)

func (b *body) object() ([]byte, error) {
	if b.err != nil {
		return nil, b.err
	}
	return strictjson.Object(b.members)
}

// messages are the messages as this provider wants them.
func (p Profile) messages(ms []nodes.Message) lazy {
	return func() (any, error) {
		var out []raw
		names := map[string]string{} // of the tools, by call id
		reasoned := slices.ContainsFunc(ms, func(m nodes.Message) bool { return p.replays(m) })
		for _, m := range p.merged(ms) {
			var b body
			b.add("role", m.Role)
			switch m.Role {
			case nodes.RoleSystem, nodes.RoleUser:
				b.add("content", m.Content)
			case nodes.RoleAssistant:
				p.assistant(&b, m, reasoned)
				for _, c := range m.ToolCalls {
					names[c.ID] = c.Name
				}
			case nodes.RoleTool:
				b.add("content", m.Content)
				b.add("tool_call_id", m.ToolCallID)
				if p.ToolName {
					b.add("name", names[m.ToolCallID])
				}
			}
			text, err := b.object()
			if err != nil {
				return nil, err
			}
			out = append(out, text)
		}
		return out, nil
	}
}

// merged joins messages of the user that follow one another, where that is wanted.
func (p Profile) merged(ms []nodes.Message) []nodes.Message {
	if !p.MergeUsers {
		return ms
	}
	var out []nodes.Message
	for _, m := range ms {
		last := len(out) - 1
		if last >= 0 && m.Role == nodes.RoleUser && out[last].Role == nodes.RoleUser {
			out[last].Content += "\n\n" + m.Content
			continue
		}
		out = append(out, m)
	}
	return out
}

// replays reports whether a turn holds a field that goes back.
func (p Profile) replays(m nodes.Message) bool {
	return slices.ContainsFunc(p.Replay, func(name string) bool { return m.Vendor[name] != "" })
}

// assistant writes a turn of the model. reasoned says that some turn has a field that
// goes back.
func (p Profile) assistant(b *body, m nodes.Message, reasoned bool) {
	if m.Content == "" && len(m.ToolCalls) > 0 {
		b.add("content", raw(p.EmptyContent))
	} else {
		b.add("content", m.Content)
	}
	for i, name := range p.Replay {
		text := m.Vendor[name]
		if text != "" || i == 0 && p.ReplayEmpty && reasoned && len(m.ToolCalls) > 0 {
			b.add(name, text)
		}
	}
	if len(m.ToolCalls) == 0 {
		return
	}
	calls := slices.Clone(m.ToolCalls)
	if p.ParsesHistory {
		for i, c := range calls {
			calls[i].Arguments = asObject(c.Arguments)
		}
	}
	b.add("tool_calls", calls)
}

// asObject is the arguments of an earlier call for a provider that reads them again. Those
// that are no object go as the text that they are, inside one: the call was rejected, and
// its tool message says so.
func asObject(arguments string) string {
	if canonical, err := strictjson.Canonical([]byte(arguments)); err == nil && canonical[0] == '{' {
		return arguments
	}
	text, err := strictjson.Encode(map[string]string{"not_an_object": strings.ToValidUTF8(arguments, "\uFFFD")})
	if err != nil {
		return "{}"
	}
	return string(text)
}
