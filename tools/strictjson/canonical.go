package strictjson

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// formLimits bound what has a canonical form. Texts of our own may be larger
// than a frame, but nothing of ours nests deeper or counts higher.
var formLimits = Limits{Depth: FrameLimits.Depth, NumberLen: FrameLimits.NumberLen, Exponent: FrameLimits.Exponent}

// Canonical returns the one form of data that is hashed and signed: members
// sorted by the bytes of their UTF-8 names, no white space, minimal escapes,
// the text of numbers as sent. Two texts have the same canonical form exactly
// if they differ only in member order, white space and escapes; the form of
// the form is the form. It refuses what [Check] refuses under [FrameLimits],
// except that the size is not bounded. The result shares no memory with data.
func Canonical(data []byte) ([]byte, error) { return form(data, true, formLimits) }

// Compact is [Canonical] with the members left in the order of data. Sizes
// that are compared with a limit are sizes of this form.
func Compact(data []byte) ([]byte, error) { return form(data, false, formLimits) }

// Digest returns the SHA-256 of the bytes as given, in lower-case hex. It does
// not bring data into canonical form first.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

func form(data []byte, sorted bool, l Limits) ([]byte, error) {
	s, err := newScanner(data, l)
	if err != nil {
		return nil, err
	}
	w := writer{scanner: s, sorted: sorted, out: make([]byte, 0, len(data))}
	if err := w.value(); err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	return w.out, nil
}

// writer copies a text token by token into out. An object is written as it
// comes and put in order when it closes, so that a byte is moved at most once
// for each level of nesting.
type writer struct {
	*scanner
	sorted  bool
	out     []byte
	scratch []byte
}

// span is where one member was written.
type span struct {
	name       string
	start, end int
}

func (w *writer) value() error {
	raw, err := w.next()
	if err != nil {
		return err
	}
	switch raw[0] {
	case '{':
		return w.object()
	case '[':
		return w.array()
	case '"':
		return w.text(raw)
	default:
		w.out = append(w.out, raw...)
		return nil
	}
}

func (w *writer) array() error {
	w.out = append(w.out, '[')
	for first := true; w.dec.PeekKind() != jsontext.KindEndArray; first = false {
		if !first {
			w.out = append(w.out, ',')
		}
		if err := w.value(); err != nil {
			return err
		}
	}
	w.out = append(w.out, ']')
	_, err := w.next()
	return err
}

func (w *writer) object() error {
	w.out = append(w.out, '{')
	start := len(w.out)
	var members []span
	for w.dec.PeekKind() != jsontext.KindEndObject {
		if len(members) > 0 {
			w.out = append(w.out, ',')
		}
		m, err := w.member()
		if err != nil {
			return err
		}
		members = append(members, m)
	}
	if w.sorted {
		w.sort(members, start)
	}
	w.out = append(w.out, '}')
	_, err := w.next()
	return err
}

func (w *writer) member() (span, error) {
	m := span{start: len(w.out)}
	raw, err := w.next()
	if err != nil {
		return span{}, err
	}
	if err := w.text(raw); err != nil {
		return span{}, err
	}
	if w.sorted {
		name, err := unquote(raw)
		if err != nil {
			return span{}, err
		}
		m.name = name
	}
	w.out = append(w.out, ':')
	if err := w.value(); err != nil {
		return span{}, err
	}
	m.end = len(w.out)
	return m, nil
}

// sort puts the members that were written from start on in the order of their names.
func (w *writer) sort(members []span, start int) {
	byName := func(a, b span) int { return cmp.Compare(a.name, b.name) }
	if slices.IsSortedFunc(members, byName) {
		return
	}
	slices.SortFunc(members, byName)
	w.scratch = append(w.scratch[:0], w.out[start:]...)
	w.out = w.out[:start]
	for i, m := range members {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		w.out = append(w.out, w.scratch[m.start-start:m.end-start]...)
	}
}

// text writes a JSON string with minimal escapes. A valid string without a
// backslash has them already.
func (w *writer) text(raw []byte) error {
	if bytes.IndexByte(raw, '\\') < 0 {
		w.out = append(w.out, raw...)
		return nil
	}
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return ErrSyntax
	}
	if w.out, err = jsontext.AppendQuote(w.out, s); err != nil {
		return ErrUTF8
	}
	return nil
}

// unquote returns the text that a JSON string stands for.
func unquote(raw []byte) (string, error) {
	s, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return "", ErrSyntax
	}
	return string(s), nil
}
