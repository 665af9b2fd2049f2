package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/tools/strictjson"
)

// What a response may hold at most.
const (
	// MaxResponse bounds a whole response, and what is put together from a streamed one,
	// in bytes.
	MaxResponse = 4 << 20
	// MaxCalls bounds the calls of a response that are read; the Host takes fewer.
	MaxCalls = 256

	maxCount = 1 << 40 // a count of tokens
)

// How a turn was read otherwise than it was sent; kept with it as [nodes.Reply.Adjusted].
const (
	AdjustedEmptyArguments  = "empty_arguments"  // no arguments were read as {} (CASES M1)
	AdjustedObjectArguments = "object_arguments" // arguments came as an object instead of a text (CASES M10)
	AdjustedRefusal         = "refusal_as_text"  // the model declined in a field of its own
	AdjustedUsage           = "usage_estimated"  // the provider did not say what the turn cost
)

// reasoningFields are the fields in which providers send what a model thought.
var reasoningFields = []string{"reasoning", "reasoning_content"}

// part is what one message, or one delta of it, adds to a turn.
type part struct {
	text    string
	refusal string
	vendor  map[string]string
	calls   []callPart
}

func (p part) empty() bool {
	return p.text == "" && p.refusal == "" && len(p.vendor) == 0 && len(p.calls) == 0
}

// callPart is one element of tool_calls.
type callPart struct {
	index     int64 // -1 if none is given
	id        string
	name      string
	arguments string
	object    bool // the arguments came as an object
}

// readPart reads a message or a delta.
func readPart(o object) (part, error) {
	var p part
	if role, ok, err := o.text("role"); err != nil || ok && role != "assistant" && role != "" {
		return p, bad("its role is not the assistant's")
	}
	var err error
	if p.text, err = contentText(o); err != nil {
		return p, err
	}
	if p.refusal, _, err = o.text("refusal"); err != nil {
		return p, err
	}
	for _, name := range reasoningFields {
		text, ok, err := o.text(name)
		if err != nil {
			return p, err
		}
		if ok && text != "" {
			if p.vendor == nil {
				p.vendor = map[string]string{}
			}
			p.vendor[name] = text
		}
	}
	calls, err := o.list("tool_calls")
	if err != nil {
		return p, err
	}
	for _, c := range calls {
		call, err := readCall(c)
		if err != nil {
			return p, err
		}
		p.calls = append(p.calls, call)
	}
	return p, nil
}

// contentText is the text of a message: null, absent, a text, or an array whose parts
// of type text count.
func contentText(o object) (string, error) {
	if v := o["content"]; len(v) == 0 || v[0] != '[' {
		text, _, err := o.text("content")
		return text, err
	}
	parts, err := o.list("content")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range parts {
		if p.word("type") != "text" {
			continue
		}
		text, _, err := p.text("text")
		if err != nil {
			return "", err
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

func readCall(o object) (callPart, error) {
	c := callPart{index: -1}
	index, ok, err := o.whole("index")
	if err != nil {
		return c, err
	}
	if ok {
		c.index = index
	}
	if c.id, _, err = o.text("id"); err != nil {
		return c, err
	}
	f, err := o.object("function")
	if err != nil || f == nil {
		return c, err // a call without a function has no name, and refuses the turn
	}
	if c.name, _, err = f.text("name"); err != nil {
		return c, err
	}
	return c, c.readArguments(f)
}

// readArguments takes a text as it is and an object in its canonical form. Any other
// value stays the text that it is, and is refused as arguments like any other text.
func (c *callPart) readArguments(f object) error {
	v, ok := f["arguments"]
	switch {
	case !ok || string(v) == "null":
		return nil
	case v[0] == '"':
		text, _, err := f.text("arguments")
		c.arguments = text
		return err
	case v[0] == '{':
		canonical, err := strictjson.Canonical(v)
		if err != nil {
			return badJSON(err)
		}
		c.arguments, c.object = string(canonical), true
		return nil
	}
	c.arguments = string(v)
	return nil
}

// call is a call as it is put together.
type call struct {
	index     int64
	id        string
	name      string
	arguments strings.Builder
	object    bool // the arguments came as an object
	braces    braces
}

// turn is put together from one part or from many.
type turn struct {
	text    strings.Builder
	refusal strings.Builder
	vendor  map[string]*strings.Builder
	calls   []*call
	usage   agent.Usage
	size    int // bytes taken in
}

// add takes the part of a message in. Calls of a streamed part may go on with earlier
// ones; those of a whole message are all its own.
func (t *turn) add(p part, streamed bool) error {
	t.size += len(p.text) + len(p.refusal)
	t.text.WriteString(p.text)
	t.refusal.WriteString(p.refusal)
	for name, text := range p.vendor {
		t.size += len(text)
		if t.vendor == nil {
			t.vendor = map[string]*strings.Builder{}
		}
		if t.vendor[name] == nil {
			t.vendor[name] = &strings.Builder{}
		}
		t.vendor[name].WriteString(text)
	}
	for _, c := range p.calls {
		t.size += len(c.id) + len(c.name) + len(c.arguments)
		into, err := t.call(c, streamed)
		if err != nil {
			return err
		}
		if err := into.take(c); err != nil {
			return err
		}
	}
	if t.size > MaxResponse {
		return bad("it is too large")
	}
	return nil
}

// call is the call that a part belongs to: an earlier one or a new one.
func (t *turn) call(c callPart, streamed bool) (*call, error) {
	if streamed {
		if known := t.earlier(c); known != nil && known.goesOn(c) {
			return known, nil
		}
	}
	if len(t.calls) == MaxCalls {
		return nil, bad("it holds too many calls")
	}
	fresh := &call{index: c.index}
	t.calls = append(t.calls, fresh)
	return fresh, nil
}

// earlier is the last call of the part's index; without an index the one of its id,
// and without both the last.
func (t *turn) earlier(c callPart) *call {
	for _, known := range slices.Backward(t.calls) {
		if c.index >= 0 && known.index == c.index || c.index < 0 && (c.id == "" || known.id == c.id) {
			return known
		}
	}
	return nil
}

// goesOn reports whether a part that points at a call goes on with it. A new id starts a
// new call; so does another name, or the name again after whole arguments.
func (k *call) goesOn(c callPart) bool {
	switch {
	case c.id != "" && k.id != "":
		return c.id == k.id
	case c.name == "" || k.name == "":
		return true
	case c.id != "" || c.name != k.name:
		return false
	}
	return c.arguments == "" || !k.braces.closed
}

func (k *call) take(c callPart) error {
	if c.name != "" && k.name != "" && c.name != k.name {
		return bad("it gives one call two names")
	}
	if k.id == "" {
		k.id = c.id
	}
	if k.name == "" {
		k.name = c.name
	}
	k.arguments.WriteString(c.arguments)
	k.braces.read(c.arguments)
	k.object = k.object || c.object
	return nil
}

// braces follows whether the text so far closes what its first brace opens, those within
// quotes not counted. It decides where a call ends, never whether its arguments are JSON.
type braces struct {
	depth           int
	quoted, escaped bool
	closed          bool
}

func (b *braces) read(text string) {
	for i := range len(text) {
		switch c := text[i]; {
		case b.escaped:
			b.escaped = false
		case b.quoted && c == '\\':
			b.escaped = true
		case c == '"':
			b.quoted = !b.quoted
		case b.quoted:
		case c == '{':
			b.depth++
		case c == '}':
			b.depth--
			b.closed = b.closed || b.depth == 0
		}
	}
}

// reply is the turn as the Host takes it. Without a finish reason there are no calls
// in it.
func (t *turn) reply(p Profile, tools []nodes.Tool, finish string) nodes.Reply {
	r := nodes.Reply{Text: t.text.String(), Finish: finish, Usage: t.usage}
	var adjusted []string
	if t.vendor != nil {
		r.Vendor = map[string]string{}
		for name, text := range t.vendor {
			r.Vendor[name] = text.String()
		}
	}
	if finish != "" {
		for _, c := range t.calls {
			made, how := c.made(p, tools)
			r.Calls = append(r.Calls, made)
			adjusted = append(adjusted, how...)
		}
	}
	if r.Text == "" && len(t.calls) == 0 && t.refusal.Len() > 0 {
		r.Text = t.refusal.String()
		adjusted = append(adjusted, AdjustedRefusal)
	}
	slices.Sort(adjusted)
	r.Adjusted = slices.Compact(adjusted)
	return r
}

// made is the finished call, and how it was adjusted.
func (k *call) made(p Profile, tools []nodes.Tool) (nodes.ToolCall, []string) {
	c := nodes.ToolCall{ID: k.id, Name: k.name, Arguments: k.arguments.String()}
	switch {
	case k.object:
		return c, []string{AdjustedObjectArguments}
	case c.Arguments == "" && p.EmptyArguments && takesNothing(tools, k.name):
		c.Arguments = "{}"
		return c, []string{AdjustedEmptyArguments}
	}
	return c, nil
}

// takesNothing reports whether a tool is offered and has no required fields.
func takesNothing(tools []nodes.Tool, name string) bool {
	i := slices.IndexFunc(tools, func(t nodes.Tool) bool { return t.Name == name })
	if i < 0 {
		return false
	}
	schema, err := readObject(tools[i].Parameters)
	if err != nil || schema.has("anyOf") {
		return false
	}
	required, err := elements(schema["required"])
	return !schema.has("required") || err == nil && len(required) == 0
}

// readUsage reads what a response says that the turn cost.
func readUsage(o object) (agent.Usage, bool, error) {
	u, err := o.object("usage")
	if err != nil || u == nil {
		return agent.Usage{}, false, err
	}
	var used agent.Usage
	if used.Input, _, err = u.whole("prompt_tokens"); err != nil {
		return used, false, err
	}
	if used.Output, _, err = u.whole("completion_tokens"); err != nil {
		return used, false, err
	}
	used.Cached, err = readCached(u)
	used.Cached = min(used.Cached, used.Input)
	return used, used.Input+used.Output > 0, err
}

// readCached finds the tokens that came from a cache, by any of the names in use.
func readCached(u object) (int64, error) {
	if n, ok, err := u.whole("prompt_cache_hit_tokens"); ok || err != nil {
		return n, err
	}
	details, err := u.object("prompt_tokens_details")
	if err != nil || details == nil {
		return 0, err
	}
	n, _, err := details.whole("cached_tokens")
	return n, err
}

// BytesPerToken is the low guess by which a turn is counted whose provider does not
// say what it cost.
const BytesPerToken = 3

// Estimate fills in the usage of a reply that came without one, from the size of the
// request and of what came back, so that a budget of tokens holds with any provider.
func Estimate(r nodes.Reply, request []byte) nodes.Reply {
	if r.Usage != (agent.Usage{}) {
		return r
	}
	size := len(r.Text)
	for _, c := range r.Calls {
		size += len(c.Name) + len(c.Arguments)
	}
	for _, text := range r.Vendor {
		size += len(text)
	}
	r.Usage = agent.Usage{
		Input: int64(len(request)+BytesPerToken-1) / BytesPerToken, Output: int64(size+BytesPerToken-1) / BytesPerToken,
	}
	r.Adjusted = slices.Sorted(slices.Values(append(slices.Clone(r.Adjusted), AdjustedUsage)))
	return r
}

// elements are the elements of an array.
func elements(data []byte) ([]json.RawMessage, error) {
	var values []json.RawMessage
	err := strictjson.Decode(data, &values)
	return values, err
}
