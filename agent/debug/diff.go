package debug

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sallyport/agent"
)

// Difference is how two runs differ.
type Difference struct {
	Same bool // every step is, but for what always differs
	// A and B are the first steps that differ. One is nil if that run has no further step.
	A, B   *Moment
	Fields []Field // in which they do
	Pinned []Field // what the runs were begun with that is not the same
	Equal  int     // steps that are the same, before
}

// Field is a value in two runs, or before and after a step.
type Field struct{ Path, A, B string }

// Diff finds the first step in which two runs differ. Ids, times, hashes, signatures and
// what is made of them are left out, and so is that an operator paused, stepped or
// extended a run, or gave what the next step brings. Of a run and a fork of it, what the fork carries is
// the same: they are compared from there.
func Diff(ctx context.Context, a, b *Session) (Difference, error) {
	var d Difference
	var err error
	if d.Pinned, err = fields(pinned(a.Spec()), pinned(b.Spec())); err != nil {
		return d, err
	}
	i, j := 2, 2 // behind the starts
	switch {
	case forkOf(b, a):
		i, j = a.left(b), b.own()
	case forkOf(a, b):
		i, j = a.own(), b.left(a)
	}
	for ; ; i, j = i+1, j+1 {
		i, j = a.telling(i), b.telling(j)
		left, err := a.ifThere(ctx, i)
		if err != nil {
			return d, err
		}
		right, err := b.ifThere(ctx, j)
		if err != nil {
			return d, err
		}
		if left == nil && right == nil {
			d.Same = true
			return d, nil
		}
		if left != nil && right != nil {
			if d.Fields, err = stepFields(ctx, a, b, left, right); err != nil {
				return d, err
			}
		}
		if left == nil || right == nil || len(d.Fields) > 0 {
			d.A, d.B = left, right
			return d, nil
		}
		d.Equal++
	}
}

func forkOf(s, parent *Session) bool {
	f := s.Spec().Fork
	return f != nil && f.Run == parent.ID()
}

// left is the first step that a fork of this run does not carry. A fork from within a
// call carries nothing of that call: it begins it again.
func (s *Session) left(fork *Session) int { return max(s.StepOf(fork.Last().Carried.Last), 1) + 1 }

// own is the first step behind what a fork carries.
func (s *Session) own() int {
	n := 2
	for s.Mark(n).Carried {
		n++
	}
	return n
}

// telling is the step, or the first behind it, that says more than how the run was driven.
func (s *Session) telling(step int) int {
	for {
		switch s.Mark(step).Event {
		case agent.KindPause, agent.KindResume, agent.KindStepOnce, agent.KindExtend, agent.KindSubstitute:
			step++
		default:
			return step
		}
	}
}

func (s *Session) ifThere(ctx context.Context, step int) (*Moment, error) {
	if step > len(s.marks) {
		return nil, nil
	}
	m, err := s.At(ctx, step)
	if err != nil {
		return nil, err
	}
	return &m, nil
}

// pinned is a Spec without what always differs.
func pinned(s agent.Spec) any {
	s.Run, s.Fork = "", nil
	return s
}

// stepFields are those in which two steps differ.
func stepFields(ctx context.Context, a, b *Session, left, right *Moment) ([]Field, error) {
	out, err := fields(compared(left), compared(right))
	if err != nil || len(out) == 0 || left.Entry.Event != agent.KindObserved || right.Entry.Event != agent.KindObserved {
		return out, err
	}
	if told := a.told(ctx, left); told == "" || told != b.told(ctx, right) {
		return out, nil
	}
	return slices.DeleteFunc(out, func(f Field) bool { return strings.HasPrefix(f.Path, "said.message.") }), nil
}

// hash is what differs wherever an id is part of it.
var hash = regexp.MustCompile(`[0-9a-f]{32,64}`)

// told is what the model was told of a call, without ids and hashes; empty if it cannot
// be read.
func (s *Session) told(ctx context.Context, m *Moment) string {
	p, err := m.Entry.Payload()
	if err != nil {
		return ""
	}
	o, ok := p.(agent.Observed)
	if !ok {
		return ""
	}
	body, err := s.Body(ctx, o.Message)
	if err != nil {
		return ""
	}
	own := regexp.MustCompile(`\b` + regexp.QuoteMeta(s.run) + `\b`)
	return hash.ReplaceAllString(own.ReplaceAllString(string(body), ""), "")
}

// compared is what of a step is compared.
func compared(m *Moment) any {
	data := json.RawMessage(m.Entry.Data)
	if len(data) == 0 {
		data = json.RawMessage("null")
	}
	c := map[string]any{"event": m.Entry.Event, "row": m.Entry.Row, "state": m.Entry.State, "said": data}
	if call := inHand(m.Was, m.Run); call != nil {
		c["tool"] = call.Proposal.Tool
	}
	return c
}

// passing are the members that differ between any two runs: ids, hashes over them, times
// and signatures. An outcome's body and what is quoted of it may hold such, and status,
// class and reason say what they amount to.
var passing = map[string]bool{
	"id": true, "run": true, "call": true, "head": true, "grant": true, "signed": true, "request": true, "candidate": true,
	"evidence": true, "read_back": true, "config": true,
}

// fields compares two values member by member.
func fields(a, b any) ([]Field, error) {
	left, err := flat(a)
	if err != nil {
		return nil, err
	}
	right, err := flat(b)
	if err != nil {
		return nil, err
	}
	names := maps.Clone(left)
	maps.Copy(names, right)
	var out []Field
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if left[name] != right[name] {
			out = append(out, Field{name, left[name], right[name]})
		}
	}
	return out, nil
}

// flat is a value as paths and their leaves.
func flat(v any) (map[string]string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("compare two runs: %w", err)
	}
	var tree any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, fmt.Errorf("compare two runs: %w", err)
	}
	out := map[string]string{}
	flatten(out, "", tree)
	return out, nil
}

func flatten(out map[string]string, at string, v any) {
	below := func(name string) string {
		if at == "" {
			return name
		}
		return at + "." + name
	}
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			if !passing[name] {
				flatten(out, below(name), inner)
			}
		}
	case []any:
		for i, inner := range v {
			flatten(out, below(strconv.Itoa(i)), inner)
		}
	default:
		leaf, err := json.Marshal(v)
		if err == nil {
			out[at] = string(leaf)
		}
	}
}
