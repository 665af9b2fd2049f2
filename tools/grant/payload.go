package grant

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// A payload is the canonical JSON of one signed value, written by hand in the
// order of the names. Parsing decodes, writes again and compares: only the
// canonical bytes of exactly these members come out equal, so one comparison
// refuses duplicates, extra, missing and mistyped members, names in another
// case, white space, escapes that are not minimal, and trailing data.

// ParseClaims reads the payload of a grant and checks every claim that needs no
// context. It returns [ErrClaims]. It does not know who signed: see [Keys.OpenGrant].
func ParseClaims(payload []byte) (Claims, error) { return parse[Claims](payload) }

// ParseEdit reads the payload of an edit. It returns [ErrClaims].
func ParseEdit(payload []byte) (Edit, error) { return parse[Edit](payload) }

// ParseRefusal reads the payload of a refusal. It returns [ErrClaims].
func ParseRefusal(payload []byte) (Refusal, error) { return parse[Refusal](payload) }

// ParseStatement reads the payload of a statement. It returns [ErrClaims].
func ParseStatement(payload []byte) (Statement, error) { return parse[Statement](payload) }

// signed is a value that is signed as a payload.
type signed interface {
	kind() Kind
	approver() string
	check() error
	payload() []byte
}

func parse[T signed](payload []byte) (T, error) {
	var v, zero T
	if err := json.Unmarshal(payload, &v); err != nil {
		return zero, refused("not the members of this kind")
	}
	if !bytes.Equal(v.payload(), payload) {
		return zero, refused("not the canonical form")
	}
	if err := v.check(); err != nil {
		return zero, err
	}
	return v, nil
}

func (Claims) kind() Kind    { return KindGrant }
func (Edit) kind() Kind      { return KindEdit }
func (Refusal) kind() Kind   { return KindRefusal }
func (Statement) kind() Kind { return KindStatement }

func (c Claims) approver() string    { return c.Approver }
func (e Edit) approver() string      { return e.Approver }
func (r Refusal) approver() string   { return r.Approver }
func (s Statement) approver() string { return s.Approver }

func (c Claims) payload() []byte {
	out := appendText(make([]byte, 0, 1024), `{"approver":`, c.Approver)
	out = c.Candidate.append(append(out, `,"candidate":`...))
	out = appendNumber(out, `,"expires":`, c.Expires)
	out = appendText(out, `,"grant":`, c.Grant)
	out = appendNumber(out, `,"not_before":`, c.NotBefore)
	return append(out, '}')
}

func (c Candidate) append(out []byte) []byte {
	out = appendText(out, `{"arguments":`, c.Arguments)
	out = appendText(out, `,"audience":`, c.Audience)
	out = appendNumber(out, `,"bytes":`, c.Bytes)
	out = appendText(out, `,"call":`, c.Call)
	out = appendText(out, `,"definition":`, c.Definition)
	out = append(out, `,"fields":[`...)
	for i, f := range c.Fields {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendNumber(out, `{"bytes":`, f.Bytes), `,"name":`...)
		out = appendText(appendQuoted(out, f.Name), `,"sha256":`, f.SHA256)
		out = append(out, '}')
	}
	out = appendText(out, `],"head":`, c.Head)
	out = appendText(out, `,"id":`, c.ID)
	out = appendText(out, `,"run":`, c.Run)
	out = appendText(out, `,"scope":`, c.Scope)
	out = appendText(out, `,"tool":`, c.Tool)
	return append(out, '}')
}

func (e Edit) payload() []byte {
	out := appendText(nil, `{"approver":`, e.Approver)
	out = appendText(out, `,"arguments":`, e.Arguments)
	out = appendNumber(out, `,"bytes":`, e.Bytes)
	out = appendText(out, `,"candidate":`, e.Candidate)
	out = appendText(out, `,"head":`, e.Head)
	out = appendText(out, `,"run":`, e.Run)
	out = appendNumber(out, `,"time":`, e.Time)
	return append(out, '}')
}

func (r Refusal) payload() []byte {
	out := appendText(nil, `{"approver":`, r.Approver)
	out = appendText(out, `,"candidate":`, r.Candidate)
	out = appendText(out, `,"head":`, r.Head)
	out = appendText(out, `,"run":`, r.Run)
	out = appendNumber(out, `,"time":`, r.Time)
	return append(out, '}')
}

func (s Statement) payload() []byte {
	out := appendText(nil, `{"approver":`, s.Approver)
	out = appendText(out, `,"call":`, s.Call)
	out = appendText(out, `,"candidate":`, s.Candidate)
	out = appendText(out, `,"head":`, s.Head)
	out = appendText(out, `,"run":`, s.Run)
	out = appendNumber(out, `,"time":`, s.Time)
	out = appendText(out, `,"verdict":`, s.Verdict)
	return append(out, '}')
}

func appendText(out []byte, before, text string) []byte {
	return appendQuoted(append(out, before...), text)
}

func appendNumber(out []byte, before string, n int64) []byte {
	return strconv.AppendInt(append(out, before...), n, 10)
}

// appendQuoted writes a JSON string with minimal escapes: quote, backslash and
// the characters below U+0020, the short form where there is one.
func appendQuoted(out []byte, text string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for _, c := range []byte(text) {
		switch {
		case c == '"' || c == '\\':
			out = append(out, '\\', c)
		case c >= 0x20:
			out = append(out, c)
		case shortEscape[c] != 0:
			out = append(out, '\\', shortEscape[c])
		default:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(out, '"')
}

var shortEscape = [0x20]byte{'\b': 'b', '\t': 't', '\n': 'n', '\f': 'f', '\r': 'r'}
