package scriptserver

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Span is a range of counts, both ends included: 3, "2-4", "2-" or "-4".
type Span struct{ From, To int }

// holds reports whether n lies within. A nil span holds always.
func (s *Span) holds(n int) bool { return s == nil || s.From <= n && n <= s.To }

// UnmarshalJSON reads a whole number or one of the texts.
func (s *Span) UnmarshalJSON(data []byte) error {
	text := string(data)
	switch {
	case len(data) > 0 && data[0] == '"':
		if json.Unmarshal(data, &text) != nil {
			return wrongSpan(text)
		}
	case len(data) == 0 || data[0] == '-': // a negative number, or nothing
		return wrongSpan(text)
	}
	from, to, open := strings.Cut(text, "-")
	if !open {
		to = from
	}
	out := Span{From: 1, To: math.MaxInt}
	if from == "" && to == "" || !bound(from, &out.From) || !bound(to, &out.To) || out.From > out.To {
		return wrongSpan(text)
	}
	*s = out
	return nil
}

// bound reads a count from 1, if there is one.
func bound(text string, into *int) bool {
	if text == "" {
		return true
	}
	n, err := strconv.ParseUint(text, 10, 31)
	*into = int(n)
	return err == nil && n > 0
}

func wrongSpan(text string) error {
	return fmt.Errorf("%q is no range of counts: write 2, \"2-4\", \"2-\" or \"-4\"; the first is 1", text)
}

// MarshalJSON writes what UnmarshalJSON reads.
func (s Span) MarshalJSON() ([]byte, error) {
	switch {
	case s.From == s.To:
		return strconv.AppendInt(nil, int64(s.From), 10), nil
	case s.To == math.MaxInt:
		return fmt.Appendf(nil, `"%d-"`, s.From), nil
	}
	return fmt.Appendf(nil, `"%d-%d"`, s.From, s.To), nil
}
