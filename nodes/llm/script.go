package llm

import (
	"context"
	"fmt"
	"slices"

	"sallyport/agent"
	"sallyport/nodes"
)

// Script is a scripted model. It may serve many runs at once and is not changed by
// them.
type Script struct {
	File  string // names the script in errors
	Line  int    // of the script in File, for the error of an empty one
	Turns []Turn
}

var _ nodes.Model = (*Script)(nil)

// ScriptError says where a script does not fit the run: it has ended, or expects or
// calls what is not there. It wraps [nodes.ErrModelFault]: the run stays as it is and
// can be resumed with a better script.
type ScriptError struct {
	File   string
	Line   int // 1 is the first; 0 if the script was not read from a file
	Reason string
}

// Error implements error: FILE:LINE: REASON.
func (e *ScriptError) Error() string {
	file := e.File
	if file == "" {
		file = "script"
	}
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", file, e.Reason)
	}
	return fmt.Sprintf("%s:%d: %s", file, e.Line, e.Reason)
}

// Unwrap makes the error a [nodes.ErrModelFault].
func (e *ScriptError) Unwrap() error { return nodes.ErrModelFault }

// Turn plays the turn that is due.
func (s *Script) Turn(ctx context.Context, r nodes.Request) (nodes.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nodes.Reply{}, err
	}
	at := s.due(r)
	if at >= len(s.Turns) {
		return nodes.Reply{}, s.ended(at)
	}
	t := s.Turns[at]
	p := play{script: s, turn: t, number: at + 1, request: r}
	if t.blank() {
		return nodes.Reply{}, p.wrong(s.Line, "turn %d is blank: a turn must say, call or obey", p.number)
	}
	if err := p.expect(); err != nil {
		return nodes.Reply{}, err
	}
	if u := t.fails(r.Tools); u != nil {
		return nodes.Reply{}, u
	}
	if t.provided() {
		return t.turn(r)
	}
	return p.reply()
}

// ended names the last line of the script that was played.
func (s *Script) ended(at int) error {
	line := s.Line
	if n := len(s.Turns); n > 0 {
		line = s.Turns[n-1].Line
	}
	return &ScriptError{File: s.File, Line: line, Reason: fmt.Sprintf(
		"the script has ended: turn %d is asked for, and it has %d", at+1, len(s.Turns))}
}

// play is one turn under way.
type play struct {
	script  *Script
	turn    Turn
	number  int // 1 is the first
	request nodes.Request
}

// wrong is an error at a line of the turn.
func (p *play) wrong(line int, format string, args ...any) error {
	if line == 0 {
		line = p.turn.Line
	}
	return &ScriptError{File: p.script.File, Line: line, Reason: fmt.Sprintf(format, args...)}
}

func (p *play) reply() (nodes.Reply, error) {
	calls := p.turn.calls()
	if p.turn.Obey {
		calls = instructions(last(p.request.Messages))
		if len(calls) == 0 {
			return nodes.Reply{}, p.wrong(0, "there is nothing to obey: the last tool message asks for no call")
		}
	}
	reply := nodes.Reply{Text: p.turn.Say, Usage: agent.Usage{Input: p.turn.Usage.Input, Output: p.turn.Usage.Output}}
	for i, c := range calls {
		if err := p.offered(c); err != nil {
			return nodes.Reply{}, err
		}
		reply.Calls = append(reply.Calls, nodes.ToolCall{
			ID: c.id(p.number, i), Name: c.Tool, Arguments: c.text(),
		})
	}
	reply.Finish = p.turn.finish(len(calls) > 0)
	return reply, nil
}

// offered checks that a scripted call is for a tool that the model was told of, or,
// if it says so, for one that it was not. An obedient model does not look.
func (p *play) offered(c Call) error {
	is, want := slices.Contains(p.names(), c.Tool), c.Offered == nil || *c.Offered
	switch {
	case p.turn.Obey || is == want:
		return nil
	case want:
		return p.wrong(c.Line, "it calls %q, which is not offered; offered are %q", c.Tool, p.names())
	}
	return p.wrong(c.Line, "it calls %q as a tool that is not offered, but it is", c.Tool)
}

func (p *play) names() []string {
	names := make([]string, len(p.request.Tools))
	for i, t := range p.request.Tools {
		names[i] = t.Name
	}
	return names
}

func last(messages []nodes.Message) nodes.Message {
	if len(messages) == 0 {
		return nodes.Message{}
	}
	return messages[len(messages)-1]
}
