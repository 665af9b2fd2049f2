package llm

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"sallyport/agent"
	"sallyport/nodes"
)

// Expect says what the model must be offered.
type Expect struct {
	Tool  string   `yaml:"tool"`  // one tool that must be among them
	Tools []string `yaml:"tools"` // all of them, in their order
	Line  int      `yaml:"-"`
}

// ExpectMessage says what the last message must hold. Texts are looked for in the
// message as it is, and in each text inside it if it is JSON.
type ExpectMessage struct {
	Status   string `yaml:"status"`   // of a tool message
	Contains Texts  `yaml:"contains"` // each must be there
	Lacks    Texts  `yaml:"lacks"`    // none may be there
	Line     int    `yaml:"-"`
}

// Texts is one text or a list of them.
type Texts []string

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (x *Texts) UnmarshalYAML(node ast.Node) error {
	if _, ok := node.(*ast.SequenceNode); ok {
		return yaml.NodeToValue(node, (*[]string)(x), yaml.Strict())
	}
	var one string
	if err := yaml.NodeToValue(node, &one, yaml.Strict()); err != nil {
		return err
	}
	*x = Texts{one}
	return nil
}

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (e *Expect) UnmarshalYAML(node ast.Node) error {
	type plain Expect
	var p plain
	if err := decodeMapping(node, &p, "expect"); err != nil {
		return err
	}
	*e = Expect(p)
	e.Line = lineOf(node)
	return nil
}

// UnmarshalYAML implements [yaml.NodeUnmarshaler].
func (e *ExpectMessage) UnmarshalYAML(node ast.Node) error {
	type plain ExpectMessage
	var p plain
	if err := decodeMapping(node, &p, "expect_message"); err != nil {
		return err
	}
	*e = ExpectMessage(p)
	e.Line = lineOf(node)
	switch {
	case e.Status != "" && !slices.Contains(statuses, e.Status):
		return unknownAt(valueOf(node, "status"), e.Status, "status", statuses)
	case e.Status == "" && len(e.Contains)+len(e.Lacks) == 0:
		return wrongAt(node, "a message of which nothing is expected: add status, contains or lacks")
	}
	return nil
}

// statuses are those that a tool message can have.
var statuses = []string{
	string(agent.StatusOK), string(agent.StatusRejected), string(agent.StatusFailed), string(agent.StatusResultUnknown),
	string(agent.StatusUnavailable), string(agent.StatusWaitingApproval),
}

// expect checks what the turn expects before it is played.
func (p *play) expect() error {
	if e := p.turn.Expect; e != nil {
		if err := p.expectTools(*e); err != nil {
			return err
		}
	}
	if e := p.turn.ExpectMessage; e != nil {
		return p.expectMessage(*e)
	}
	return nil
}

func (p *play) expectTools(e Expect) error {
	names := p.names()
	if e.Tool != "" && !slices.Contains(names, e.Tool) {
		return p.wrong(e.Line, "it expects the tool %q, which is not offered; offered are %q", e.Tool, names)
	}
	if len(e.Tools) > 0 && !slices.Equal(e.Tools, names) {
		return p.wrong(e.Line, "it expects the tools %q, offered are %q", e.Tools, names)
	}
	return nil
}

func (p *play) expectMessage(e ExpectMessage) error {
	m := last(p.request.Messages)
	texts := []string{m.Content}
	if o, err := nodes.ParseObservation(m.Content); m.Role == nodes.RoleTool && err == nil {
		texts = append(texts, o.Message)
		texts = append(texts, untrustedTexts(o)...)
		if e.Status != "" && string(o.Status) != e.Status {
			return p.wrong(e.Line, "it expects a message of status %q, and the last has %q", e.Status, o.Status)
		}
	} else if e.Status != "" {
		return p.wrong(e.Line, "it expects a tool message of status %q, and the last message is of the %s", e.Status, m.Role)
	}
	has := func(want string) bool {
		return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(t, want) })
	}
	for _, want := range e.Contains {
		if !has(want) {
			return p.wrong(e.Line, "it expects a message that contains %q, and the last message does not", want)
		}
	}
	for _, not := range e.Lacks {
		if has(not) {
			return p.wrong(e.Line, "it expects a message without %q, and the last message contains it", not)
		}
	}
	return nil
}
