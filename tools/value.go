package tools

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// value is a JSON value whose numbers are still text. It is made of data that
// strictjson has accepted, so names are unique and nesting is bounded.
type value struct {
	kind    jsontext.Kind
	raw     []byte // the canonical text of a scalar
	text    string // of a string, escapes undone
	members []field
	items   []*value
}

// field is one member of an object.
type field struct {
	name  string
	value *value
}

// Kinds of values, as jsontext names them.
const (
	kindNull   = jsontext.KindNull
	kindFalse  = jsontext.KindFalse
	kindTrue   = jsontext.KindTrue
	kindString = jsontext.KindString
	kindNumber = jsontext.KindNumber
	kindObject = jsontext.KindBeginObject
	kindArray  = jsontext.KindBeginArray
)

// parse reads compact data and counts its tokens: delimiters, names and scalars.
func parse(data []byte) (v *value, tokens int, err error) {
	p := parser{dec: jsontext.NewDecoder(bytes.NewBuffer(data))}
	v, err = p.value()
	return v, p.tokens, err
}

type parser struct {
	dec    *jsontext.Decoder
	tokens int
}

func (p *parser) token() (jsontext.Token, error) {
	p.tokens++
	return p.dec.ReadToken()
}

func (p *parser) value() (*value, error) {
	switch p.dec.PeekKind() {
	case kindObject:
		return p.object()
	case kindArray:
		return p.array()
	}
	p.tokens++
	raw, err := p.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	v := &value{kind: raw.Kind(), raw: bytes.Clone(raw)}
	if v.kind == kindString {
		text, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return nil, err
		}
		v.text = string(text)
	}
	return v, nil
}

func (p *parser) object() (*value, error) {
	if _, err := p.token(); err != nil {
		return nil, err
	}
	v := &value{kind: kindObject}
	for p.dec.PeekKind() != jsontext.KindEndObject {
		name, err := p.token()
		if err != nil {
			return nil, err
		}
		f := field{name: name.String()}
		if f.value, err = p.value(); err != nil {
			return nil, err
		}
		v.members = append(v.members, f)
	}
	_, err := p.token()
	return v, err
}

func (p *parser) array() (*value, error) {
	if _, err := p.token(); err != nil {
		return nil, err
	}
	v := &value{kind: kindArray}
	for p.dec.PeekKind() != jsontext.KindEndArray {
		item, err := p.value()
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
	}
	_, err := p.token()
	return v, err
}

// member returns the member of that name.
func (v *value) member(name string) (*value, bool) {
	for _, f := range v.members {
		if f.name == name {
			return f.value, true
		}
	}
	return nil, false
}

// append writes the value as compact JSON, members in their order.
func (v *value) append(out []byte) []byte {
	switch v.kind {
	case kindObject:
		out = append(out, '{')
		for i, f := range v.members {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendName(out, f.name)
			out = f.value.append(out)
		}
		return append(out, '}')
	case kindArray:
		out = append(out, '[')
		for i, item := range v.items {
			if i > 0 {
				out = append(out, ',')
			}
			out = item.append(out)
		}
		return append(out, ']')
	}
	return append(out, v.raw...)
}

// appendName writes a member's name and its colon. The name was JSON before.
func appendName(out []byte, name string) []byte {
	out, _ = jsontext.AppendQuote(out, name) // fails only for what is not UTF-8
	return append(out, ':')
}

// literal reports whether a number is written without fraction and exponent.
func (v *value) literal() bool { return !bytes.ContainsAny(v.raw, ".eE") }

// exponent reports whether a number is written with an exponent.
func (v *value) exponent() bool { return bytes.ContainsAny(v.raw, "eE") }
