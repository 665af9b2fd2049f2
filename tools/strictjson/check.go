package strictjson

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Limits bound a text before anything is decoded. Exactly at a limit passes;
// a limit of zero or less is off.
type Limits struct {
	// Bytes bounds the whole text, white space included.
	Bytes int
	// Depth bounds how many objects and arrays are open at once: a scalar has
	// depth 0 and [] has depth 1. With Depth off the parser's own bound of
	// 10,000 still holds, and passing it is an [ErrDepth] too.
	Depth int
	// NumberLen bounds the characters of one number, sign and exponent included.
	NumberLen int
	// Exponent bounds the written exponent of a number either way.
	Exponent int
}

// FrameLimits are the limits on what a tool server or a model may send: 1 MiB,
// 64 levels, numbers of 32 characters with exponents to 308.
var FrameLimits = Limits{Bytes: 1 << 20, Depth: 64, NumberLen: 32, Exponent: 308}

// parserDepth is the nesting at which jsontext itself stops.
const parserDepth = 10_000

// Check reports why data is not exactly one acceptable JSON value, or nil. It
// refuses invalid UTF-8, escapes of lone surrogates, duplicate member names
// (however escaped), trailing data and whatever is past l. It takes time linear
// in len(data) and, besides the names of the objects open at one moment, constant
// memory; it never panics. The errors are the sentinels of this package.
func Check(data []byte, l Limits) error {
	s, err := newScanner(data, l)
	if err != nil {
		return err
	}
	for {
		if _, err := s.next(); err != nil {
			return err
		}
		if s.dec.StackDepth() == 0 {
			return s.end()
		}
	}
}

// scanner reads tokens and holds each of them against the limits.
type scanner struct {
	data   []byte
	limits Limits
	dec    *jsontext.Decoder
}

func newScanner(data []byte, l Limits) (*scanner, error) {
	if l.Bytes > 0 && len(data) > l.Bytes {
		return nil, ErrTooLarge
	}
	if !utf8.Valid(data) {
		return nil, ErrUTF8
	}
	// A bytes.Buffer is parsed in place, without a copy.
	return &scanner{data: data, limits: l, dec: jsontext.NewDecoder(bytes.NewBuffer(data))}, nil
}

// next consumes one token and returns its text: a delimiter, or a whole scalar
// as it was sent. The text is valid as long as the input.
func (s *scanner) next() ([]byte, error) {
	switch s.dec.PeekKind() {
	case jsontext.KindBeginObject, jsontext.KindBeginArray:
		if s.dec.StackDepth() >= s.maxDepth() {
			return nil, ErrDepth
		}
		return s.delimiter()
	case jsontext.KindEndObject, jsontext.KindEndArray:
		return s.delimiter()
	case jsontext.KindNumber:
		raw, err := s.scalar()
		if err != nil {
			return nil, err
		}
		return raw, checkNumber(raw, s.limits)
	default:
		return s.scalar()
	}
}

func (s *scanner) maxDepth() int {
	if s.limits.Depth > 0 {
		return min(s.limits.Depth, parserDepth)
	}
	return parserDepth
}

func (s *scanner) delimiter() ([]byte, error) {
	if _, err := s.dec.ReadToken(); err != nil {
		return nil, s.refusal(err)
	}
	end := s.dec.InputOffset()
	return s.data[end-1 : end], nil
}

func (s *scanner) scalar() ([]byte, error) {
	raw, err := s.dec.ReadValue()
	if err != nil {
		return nil, s.refusal(err)
	}
	end := int(s.dec.InputOffset())
	return s.data[end-len(raw) : end : end], nil // ours: raw is the decoder's and soon overwritten
}

// end is called after the value: only white space may be left.
func (s *scanner) end() error {
	if len(bytes.TrimLeft(s.data[s.dec.InputOffset():], " \t\r\n")) > 0 {
		return ErrTrailing
	}
	return nil
}

// refusal turns an error of the parser, which may quote the input, into ours.
func (s *scanner) refusal(err error) error {
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return ErrDuplicate
	}
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) && isSurrogateEscape(s.data, syntax.ByteOffset) {
		return ErrUTF8
	}
	return ErrSyntax
}

// isSurrogateEscape reports whether \uD800 to \uDFFF stands at the offset.
func isSurrogateEscape(data []byte, offset int64) bool {
	if offset < 0 || offset+6 > int64(len(data)) {
		return false
	}
	e := bytes.ToLower(data[offset : offset+6])
	return e[0] == '\\' && e[1] == 'u' && e[2] == 'd' && (e[3] == '8' || e[3] == '9' || 'a' <= e[3] && e[3] <= 'f') &&
		isHex(e[4]) && isHex(e[5])
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' }

// checkNumber holds the text of one valid JSON number against the limits. It
// does not compute the number: 1e999999 costs as much as its eight characters.
func checkNumber(raw []byte, l Limits) error {
	if l.NumberLen > 0 && len(raw) > l.NumberLen {
		return ErrNumber
	}
	if l.Exponent <= 0 {
		return nil
	}
	at := bytes.IndexAny(raw, "eE")
	if at < 0 {
		return nil
	}
	exponent := 0
	for _, c := range bytes.TrimLeft(raw[at+1:], "+-") {
		exponent = exponent*10 + int(c-'0')
		if exponent > l.Exponent {
			return ErrNumber
		}
	}
	return nil
}
