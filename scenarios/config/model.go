package config

import (
	"fmt"
	"strings"

	"sallyport/tools"
)

// Model says which model answers. One of Script, OpenAI and Replay is set, or none
// where another file says it. Context and OpenBody stand beside it.
type Model struct {
	// Script is a scripted model: what it proposes and answers is written down.
	Script *Script `yaml:"script" json:"script,omitempty"`
	// OpenAI is an endpoint that speaks Chat Completions.
	OpenAI *OpenAI `yaml:"openai" json:"openai,omitempty"`
	// Replay is a cassette: what a model answered once is answered again.
	Replay *Replay `yaml:"replay" json:"replay,omitempty"`
	// Context bounds what the model is given of its run.
	Context *Context `yaml:"context" json:"context,omitempty"`
	// OpenBody offers the model the Host's own tool that opens data again which left
	// the context. Unsaid, it is offered to an endpoint, and to no other model.
	OpenBody *bool `yaml:"open_body" json:"open_body,omitempty"`
	// Prices are what the model costs, whichever it is: a script and a cassette tell
	// tokens too. An endpoint may hold them itself.
	Prices *Prices `yaml:"prices" json:"prices,omitempty"`

	own bool // the user's own file says it
}

// The kinds of models.
const (
	KindScript = "script"
	KindOpenAI = "openai"
	KindReplay = "replay"
)

// Kind names the member that is set; empty if none is.
func (m Model) Kind() string {
	switch {
	case m.Script != nil:
		return KindScript
	case m.OpenAI != nil:
		return KindOpenAI
	case m.Replay != nil:
		return KindReplay
	}
	return ""
}

// Own reports whether the user's own file says which model answers.
func (m Model) Own() bool { return m.own }

// Over is what m says, completed by what base says: which model, how much context,
// and whether data is opened again are three things.
func (m Model) Over(base Model) Model {
	if m.Kind() == "" {
		m.Script, m.OpenAI, m.Replay, m.own = base.Script, base.OpenAI, base.Replay, base.own
		if m.Prices == nil {
			m.Prices = base.Prices
		}
	}
	if m.Context == nil {
		m.Context = base.Context
	}
	if m.OpenBody == nil {
		m.OpenBody = base.OpenBody
	}
	return m
}

// Problems lists what is wrong with a model as a project's or task's file writes it,
// with paths from the root of that file.
func (m Model) Problems() []tools.Problem { return m.problems(false) }

// problems is Problems; own says that it is the user's own file.
func (m Model) problems(own bool) []tools.Problem {
	var found []tools.Problem
	kinds := 0
	for _, set := range []bool{m.Script != nil, m.OpenAI != nil, m.Replay != nil} {
		if set {
			kinds++
		}
	}
	if kinds > 1 {
		found = append(found, tools.Problem{Path: []string{"model"}, Message: "one model answers: write script, openai or replay, and remove the others"})
	}
	if m.OpenAI != nil {
		found = append(found, m.OpenAI.problems(own)...)
		if m.Prices != nil && m.OpenAI.Prices != nil {
			found = append(found, tools.Problem{Path: []string{"model", "prices"}, Message: "the endpoint has prices already: remove one of the two"})
		}
	}
	return append(found, m.Prices.problems("model", "prices")...)
}

// Costs are the prices of the model, wherever they stand; nil if nothing says them.
func (m Model) Costs() *Prices {
	if m.OpenAI != nil && m.OpenAI.Prices != nil {
		return m.OpenAI.Prices
	}
	return m.Prices
}

// beside resolves the files that a model names: relative to the file that names them.
func (m Model) beside(file string) Model {
	if m.Script != nil && m.Script.File != "" {
		s := *m.Script
		s.File = beside(file, s.File)
		m.Script = &s
	}
	if m.OpenAI != nil && m.OpenAI.KeyFile != "" {
		o := *m.OpenAI
		o.KeyFile = beside(file, o.KeyFile)
		m.OpenAI = &o
	}
	if m.Replay != nil {
		r := *m.Replay
		r.File = beside(file, r.File)
		m.Replay = &r
	}
	return m
}

// Context bounds what a model is given of its run, as people write it. What is absent
// is not said; package nodes knows the default and the limits.
type Context struct {
	Bytes  *int64 `yaml:"bytes" check:"positive" json:"bytes,omitempty"`
	Tokens *int64 `yaml:"tokens" check:"positive" json:"tokens,omitempty"`
}

// Replay names a cassette.
type Replay struct {
	// File is the path of the cassette; absolute once loaded.
	File string `json:"file"`

	at Node
}

// Errorf is an error at the place that names the cassette.
func (r *Replay) Errorf(format string, args ...any) error { return r.at.Errorf(format, args...) }

// UnmarshalConfig reads the name of a file.
func (r *Replay) UnmarshalConfig(n Node) error {
	file, named := n.Text()
	if !named || strings.TrimSpace(file) == "" {
		return fmt.Errorf("a cassette is the name of a file, as `sallyport run --record FILE` makes it")
	}
	*r = Replay{File: file, at: n}
	return nil
}

// Beside is the cassette with its path from the folder of the file that names it.
func (r *Replay) Beside(file string) string { return beside(file, r.File) }

// Script is a scripted model: the name of a file, or the turns themselves.
type Script struct {
	// File is the path of the script; absolute once loaded.
	File string `json:"file,omitempty"`
	// Inline holds the turns where they are written in place. Package scenarios decodes
	// them.
	Inline Node `json:"inline,omitzero"`

	at Node // where it is said
}

// Errorf is an error at the place that names the script.
func (s *Script) Errorf(format string, args ...any) error { return s.at.Errorf(format, args...) }

// UnmarshalConfig reads a text, the name of a file, or a list or mapping, the script.
func (s *Script) UnmarshalConfig(n Node) error {
	s.at = n
	file, named := n.Text()
	switch {
	case named && file != "":
		s.File = file
	case n.IsList() || n.IsMapping():
		s.Inline = n
	default:
		return fmt.Errorf("a script is the name of a file, or the list of its turns")
	}
	return nil
}
