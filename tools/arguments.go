package tools

import (
	"errors"
	"slices"

	"sallyport/tools/strictjson"
)

// MaxArguments is how many bytes the model's arguments may have, as sent and with
// defaults filled in (SPEC B6).
const MaxArguments = 32_000

// ArgumentError says why the model's arguments are refused.
type ArgumentError struct {
	// Row is the row of SPEC B10 that refuses: 1 for what is too large or no JSON
	// object, 3 for a wrong, missing or extra field.
	Row    int
	Reason Reason
	// Field is the schema's name of the field, for the operator; may be empty.
	Field string
}

// Error is the reason with the schema's name of the field.
func (e *ArgumentError) Error() string {
	return (&Invalid{Reason: e.Reason, Field: e.Field}).Error()
}

// Unwrap makes errors.Is find the [Reason].
func (e *ArgumentError) Unwrap() error { return e.Reason }

// CheckArguments is row 1 of SPEC B10, which comes before the tool is looked up: the
// text is at most [MaxArguments] bytes and one strict JSON object. The error is an
// [*ArgumentError].
func CheckArguments(text string) error {
	_, err := object(text)
	return err
}

func object(text string) (*value, error) {
	if len(text) > MaxArguments {
		return nil, &ArgumentError{Row: 1, Reason: ValueTooLarge}
	}
	compact, err := strictjson.Compact([]byte(text))
	switch {
	case errors.Is(err, strictjson.ErrNumber):
		return nil, &ArgumentError{Row: 1, Reason: ValueMalformed}
	case err != nil, compact[0] != '{':
		return nil, &ArgumentError{Row: 1, Reason: ValueNotObject}
	}
	v, _, err := parse(compact)
	if err != nil {
		return nil, &ArgumentError{Row: 1, Reason: ValueNotObject}
	}
	return v, nil
}

// DecodeArguments reads the arguments that a model or a person gave for a tool with
// this exposed schema, once and strictly, fills in the defaults and returns the
// canonical bytes: those that are logged, hashed, shown, approved and sent (SPEC B6).
// The error is an [*ArgumentError].
//
// It checks fields, types and limits at every level; patterns and alternatives are the
// server's schema, which [Tool.CheckArguments] asks after discovery (SPEC B10, row 7).
func DecodeArguments(text string, s *Schema) ([]byte, error) {
	v, err := object(text)
	if err != nil {
		return nil, err
	}
	f := filler{room: MaxArguments}
	if v, err = f.value(s.root, v); err != nil {
		return nil, fieldError(err)
	}
	compact := v.append(nil)
	if err := s.plain(compact); err != nil {
		return nil, fieldError(err)
	}
	out, err := strictjson.Canonical(compact)
	switch {
	case err != nil: // a default that nests too deeply where it was filled in
		return nil, fieldError(&Invalid{Reason: ValueMalformed})
	case len(out) > MaxArguments:
		return nil, fieldError(&Invalid{Reason: ValueTooLarge})
	}
	return out, nil
}

// plain checks fields, types and limits only.
func (s *Schema) plain(compact []byte) error {
	v, tokens, err := parse(compact)
	switch {
	case err != nil:
		return &Invalid{Reason: ValueMalformed}
	case !s.affordable(tokens):
		return &Invalid{Reason: ValueTooComplex}
	}
	c := checker{plain: true, grant: s.grant}
	return c.value(s.root, v)
}

func fieldError(err error) error {
	e := &ArgumentError{Row: 3, Reason: ValueMalformed}
	var invalid *Invalid
	if errors.As(err, &invalid) {
		e.Reason, e.Field = invalid.Reason, invalid.Field
	}
	return e
}

// filler fills in the defaults of absent properties, at the top and in the objects and
// lists below it that are there. It does not write to what it is given, and fills in
// nothing under anyOf, where it would have to guess the alternative.
type filler struct {
	room int // bytes of defaults that may still be added
}

func (f *filler) value(n *node, v *value) (*value, error) {
	switch {
	case v.kind == kindObject:
		return f.object(n, v)
	case v.kind == kindArray && n.items != nil:
		return f.array(n, v)
	}
	return v, nil
}

func (f *filler) array(n *node, v *value) (*value, error) {
	out := &value{kind: kindArray, items: make([]*value, len(v.items))}
	for i, item := range v.items {
		filled, err := f.value(n.items, item)
		if err != nil {
			return nil, err
		}
		out.items[i] = filled
	}
	return out, nil
}

func (f *filler) object(n *node, v *value) (*value, error) {
	out := &value{kind: kindObject, members: slices.Clone(v.members)}
	for i, m := range out.members {
		p, ok := n.property(m.name)
		if !ok {
			continue
		}
		filled, err := f.value(p, m.value)
		if err != nil {
			return nil, err
		}
		out.members[i].value = filled
	}
	for _, p := range n.properties {
		if _, given := v.member(p.name); given || p.node.fallback == nil {
			continue
		}
		if f.room -= len(p.name) + p.node.fallbackSize; f.room < 0 {
			return nil, &Invalid{Reason: ValueTooLarge}
		}
		filled, err := f.value(p.node, p.node.fallback)
		if err != nil {
			return nil, err
		}
		out.members = append(out.members, field{p.name, filled})
	}
	return out, nil
}
