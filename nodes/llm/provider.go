package llm

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"sallyport/nodes"
	"sallyport/nodes/llm/chat"
)

// Bytes are a provider's own: a text as it stands, or YAML that becomes JSON.
type Bytes []byte

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (b *Bytes) UnmarshalYAML(node ast.Node) error {
	switch n := node.(type) {
	case *ast.StringNode:
		*b = Bytes(n.Value)
		return nil
	case *ast.LiteralNode:
		*b = Bytes(n.Value.Value)
		return nil
	}
	var text Args
	if err := text.UnmarshalYAML(node); err != nil {
		return err
	}
	*b = Bytes(text)
	return nil
}

// Unreachable is a turn that the model does not give.
type Unreachable struct {
	Reason string `yaml:"reason"`
	// After is the least pause before the next attempt; 0 leaves it to the Host.
	After Pause `yaml:"after"`
	Final bool  `yaml:"final"`
}

// Pause is a length of time as people write it: 5s, 1m.
type Pause time.Duration

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (p *Pause) UnmarshalYAML(node ast.Node) error {
	d, err := time.ParseDuration(node.GetToken().Value)
	if err != nil || d < 0 {
		return wrongAt(node, "this is no length of time: write a number with a unit, such as 5s")
	}
	*p = Pause(d)
	return nil
}

// UnmarshalYAML reads a reason as a text, or a mapping.
func (u *Unreachable) UnmarshalYAML(node ast.Node) error {
	if text, ok := node.(*ast.StringNode); ok {
		*u = Unreachable{Reason: text.Value, Final: chat.Final(text.Value)}
	} else {
		type plain Unreachable
		var p plain
		if err := decodeMapping(node, &p, "unavailable"); err != nil {
			return err
		}
		*u = Unreachable(p)
	}
	switch {
	case u.Reason == "":
		return wrongAt(node, "say why: unavailable: {reason: rate_limited}")
	case !slices.Contains(chat.Reasons(), u.Reason):
		return unknownAt(valueOf(node, "reason"), u.Reason, "reason", chat.Reasons())
	}
	return nil
}

var _ yaml.NodeUnmarshaler = (*Unreachable)(nil)

// provided reports whether the turn is a provider's bytes.
func (t *Turn) provided() bool { return t.Raw != nil || len(t.Chunks) > 0 }

// profile is how the provider's bytes are read.
func (t *Turn) profile() (chat.Profile, error) {
	if t.Profile == "" {
		return chat.For(chat.Profiles()[0])
	}
	return chat.For(t.Profile)
}

// turn is the turn that a provider's bytes are; what it cost is estimated where they do
// not say so.
func (t *Turn) turn(r nodes.Request) (nodes.Reply, error) {
	p, err := t.profile()
	if err != nil {
		return nodes.Reply{}, fmt.Errorf("%w: %w", nodes.ErrModelFault, err)
	}
	request, err := p.Encode(r, chat.Options{})
	if err != nil {
		return nodes.Reply{}, fmt.Errorf("%w: %w", nodes.ErrModelFault, err)
	}
	reply, err := t.read(r.Tools)
	if err != nil {
		return nodes.Reply{}, err
	}
	return chat.Estimate(reply, request), nil
}

// read makes a reply of a provider's bytes.
func (t *Turn) read(tools []nodes.Tool) (nodes.Reply, error) {
	p, err := t.profile()
	if err != nil {
		return nodes.Reply{}, fmt.Errorf("%w: %w", nodes.ErrModelFault, err)
	}
	if t.Raw != nil {
		return p.Decode(tools, t.Raw)
	}
	a := p.Assemble(tools)
	for _, c := range t.Chunks {
		if _, err := a.Add(c); err != nil {
			return nodes.Reply{}, err
		}
	}
	return a.Reply()
}

// fails is the failure that the turn is, if it is none that counts.
func (t *Turn) fails(tools []nodes.Tool) *nodes.Unavailable {
	if u := t.Unavailable; u != nil {
		return &nodes.Unavailable{Reason: u.Reason, After: time.Duration(u.After), Final: u.Final}
	}
	if !t.provided() {
		return nil
	}
	_, err := t.read(tools)
	var u *nodes.Unavailable
	if errors.As(err, &u) {
		return u
	}
	return nil
}

// due is the index of the turn that is played next. A transcript shows only the turns
// that counted: of those that failed, the request tells how many there were in a row.
func (s *Script) due(r nodes.Request) int {
	left, at := r.Taken(), 0
	for at < len(s.Turns) && left > 0 {
		if s.Turns[at].fails(r.Tools) == nil {
			left--
		}
		at++
	}
	at += left // past the end
	for range r.Attempt {
		if at >= len(s.Turns) || s.Turns[at].fails(r.Tools) == nil {
			break
		}
		at++
	}
	return at
}

// foreign says what is wrong with a turn that is a provider's, or none, if anything.
func (t *Turn) foreign(says bool) string {
	kinds := 0
	for _, set := range []bool{t.Raw != nil, len(t.Chunks) > 0, t.Unavailable != nil} {
		if set {
			kinds++
		}
	}
	own := says || t.Call != nil || len(t.Calls) > 0 || t.Obey || t.Finish != "" || t.Usage != Usage{}
	switch {
	case kinds > 1:
		return "a turn has raw, chunks or unavailable, not several"
	case kinds == 1 && own:
		return "what a provider sends, or does not, is the whole turn: remove the other keys"
	case t.Profile != "" && !t.provided():
		return "profile says how raw or chunks are read"
	}
	return ""
}
