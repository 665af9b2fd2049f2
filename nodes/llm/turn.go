package llm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"sallyport/nodes"
	"sallyport/nodes/llm/chat"
)

// Turn is one turn of a [Script]: text, calls, or both; or it obeys. In YAML it is a
// mapping, read strictly, and Line is filled in as it is read:
//
//   - call: {tool: docs__read_document, args: {filename: notes.md}}
//   - expect_message: {status: ok, contains: evidence}
//     say: The notes hold the evidence.
type Turn struct {
	Say   string `yaml:"say"`
	Call  *Call  `yaml:"call"`  // one call
	Calls []Call `yaml:"calls"` // several in one turn; not beside Call
	// Obey makes the turn do what the last tool message's untrusted data asks for:
	// every JSON or YAML object in it that names a tool and its arguments becomes a
	// call, offered or not. It is an error if there is none.
	Obey bool `yaml:"obey"`
	// Expect is checked against the tools that the model is offered.
	Expect *Expect `yaml:"expect"`
	// ExpectMessage is checked against the last message: the tool message of the last
	// call, or the Host's note about a refused turn.
	ExpectMessage *ExpectMessage `yaml:"expect_message"`
	// Finish replaces the finish reason, which else is stop or tool_calls; none is a
	// turn that ended without one.
	Finish string `yaml:"finish"`
	Usage  Usage  `yaml:"usage"`
	// Raw is a provider's whole response body, Chunks the events of a streamed one, the
	// end marker included; Profile says of which kind of provider.
	Raw     Bytes   `yaml:"raw" json:"Raw,omitzero"`
	Chunks  []Bytes `yaml:"chunks" json:"Chunks,omitzero"`
	Profile string  `yaml:"profile" json:"Profile,omitzero"`
	// Unavailable is an attempt at a turn that gives none.
	Unavailable *Unreachable `yaml:"unavailable" json:"Unavailable,omitzero"`
	Line        int          `yaml:"-"` // where the turn begins; 1 is the first line
}

// Usage is what a turn says that it cost, in tokens.
type Usage struct {
	Input  int64 `yaml:"input"`
	Output int64 `yaml:"output"`
}

// Call is a scripted tool call.
type Call struct {
	Tool string `yaml:"tool"`
	// Args are the arguments as YAML; the model sends them as JSON, in this order.
	Args Args `yaml:"args"`
	// Arguments is the argument text as it is sent, whatever it is; not beside Args.
	Arguments *string `yaml:"arguments"`
	// ID is the model's id of the call. Absent, it is made of turn and index; empty,
	// the call has none.
	ID *string `yaml:"id"`
	// Offered says whether the tool must be among those that the model was told of;
	// absent, it must. False is for scripts that call a tool that does not exist.
	Offered *bool `yaml:"offered"`
	Line    int   `yaml:"-"`
}

// FinishNone in [Turn.Finish] stands for a turn that ended without a finish reason.
const FinishNone = "none"

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (t *Turn) UnmarshalYAML(node ast.Node) error {
	type plain Turn
	var p plain
	if err := decodeMapping(node, &p, "a turn"); err != nil {
		return err
	}
	*t = Turn(p)
	t.Line = lineOf(node)
	if why := t.mistake(hasKey(node, "say")); why != "" {
		return wrongAt(node, why)
	}
	if _, nothing := valueOf(node, "say").(*ast.NullNode); nothing {
		return wrongAt(node, `say what? Write a text, or "" for an empty one`)
	}
	if t.Profile != "" && !slices.Contains(chat.Profiles(), t.Profile) {
		return unknownAt(valueOf(node, "profile"), t.Profile, "profile", chat.Profiles())
	}
	return nil
}

// mistake says what is wrong with a turn as it was written, if anything.
func (t *Turn) mistake(says bool) string {
	called := t.Call != nil || len(t.Calls) > 0
	if why := t.foreign(says); why != "" {
		return why
	}
	switch {
	case t.provided() || t.Unavailable != nil:
		return ""
	case t.Call != nil && len(t.Calls) > 0:
		return "a turn has call or calls, not both"
	case t.Obey && called:
		return "a turn that obeys makes no calls of its own"
	case !t.Obey && !called && !says:
		return "a turn must say, call or obey"
	}
	return ""
}

// blank reports whether nothing was written where a turn should be: YAML hands a null
// to nobody.
func (t *Turn) blank() bool {
	return t.Line == 0 && t.Say == "" && !t.Obey && t.Finish == "" && len(t.calls()) == 0 && !t.provided() && t.Unavailable == nil
}

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (c *Call) UnmarshalYAML(node ast.Node) error {
	type plain Call
	var p plain
	if err := decodeMapping(node, &p, "a call"); err != nil {
		return err
	}
	*c = Call(p)
	c.Line = lineOf(node)
	switch {
	case c.Tool == "":
		return wrongAt(node, "a call must name its tool")
	case c.Args != nil && c.Arguments != nil:
		return wrongAt(node, "a call has args or arguments, not both")
	}
	return nil
}

// calls are the turn's calls, however they are written.
func (t *Turn) calls() []Call {
	if t.Call != nil {
		return []Call{*t.Call}
	}
	return t.Calls
}

func (t *Turn) finish(calls bool) string {
	switch {
	case t.Finish == FinishNone:
		return ""
	case t.Finish != "":
		return t.Finish
	case calls:
		return nodes.FinishToolCalls
	}
	return nodes.FinishStop
}

func (c *Call) id(turn, index int) string {
	if c.ID != nil {
		return *c.ID
	}
	return fmt.Sprintf("call_%d_%d", turn, index)
}

// text is the argument text that the model sends.
func (c *Call) text() string {
	switch {
	case c.Arguments != nil:
		return *c.Arguments
	case len(c.Args) > 0:
		return string(c.Args)
	}
	return "{}"
}

// decodeMapping decodes a mapping strictly; errors keep their place in the file.
func decodeMapping(node ast.Node, v any, what string) error {
	switch node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return yaml.NodeToValue(node, v, yaml.Strict())
	}
	return wrongAt(node, what+" must be a mapping")
}

func hasKey(node ast.Node, name string) bool {
	for _, m := range mappingValues(node) {
		if m.Key.GetToken().Value == name {
			return true
		}
	}
	return false
}

// valueOf is the value of a key; the node itself if it is no mapping with that key.
func valueOf(node ast.Node, name string) ast.Node {
	for _, m := range mappingValues(node) {
		if m.Key.GetToken().Value == name {
			return m.Value
		}
	}
	return node
}

func mappingValues(node ast.Node) []*ast.MappingValueNode {
	switch n := node.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

func lineOf(node ast.Node) int { return node.GetToken().Position.Line }

// unknownAt is the error of a word that is none of a closed set.
func unknownAt(node ast.Node, word, what string, all []string) error {
	return wrongAt(node, fmt.Sprintf("%q is no %s: there are %s", word, what, strings.Join(all, ", ")))
}

// wrongAt is an error at a place of the YAML file; goccy/go-yaml shows the lines
// around it.
func wrongAt(node ast.Node, message string) error {
	return &yaml.SyntaxError{Message: message, Token: node.GetToken()}
}
