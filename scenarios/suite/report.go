package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"sallyport/tools"
)

// Reporter writes down what comes of a suite. Its methods are called in this order, by
// one goroutine, with as many results as the suite has cases.
type Reporter interface {
	Begin(s Summary) error // of which only Total and Seed are known
	Result(r Result) error
	End(s Summary) error
}

// multi is several reporters: all are told, whatever the others do.
type multi []Reporter

func (m multi) each(tell func(Reporter) error) error {
	var errs []error
	for _, r := range m {
		errs = append(errs, tell(r))
	}
	return errors.Join(errs...)
}

func (m multi) Begin(s Summary) error { return m.each(func(r Reporter) error { return r.Begin(s) }) }
func (m multi) Result(res Result) error {
	return m.each(func(r Reporter) error { return r.Result(res) })
}
func (m multi) End(s Summary) error { return m.each(func(r Reporter) error { return r.End(s) }) }

// Format names a form of report.
type Format string

// The formats. Table is for people and may change; the others are for programs.
const (
	FormatTable Format = "table" // what did not pass, as it comes, and a summary
	FormatJSON  Format = "json"  // one object at the end
	FormatJSONL Format = "jsonl" // one object per result as it comes, then the summary
	FormatJUnit Format = "junit" // XML at the end
	FormatTAP   Format = "tap"   // version 14, as it comes
)

// Formats lists all.
func Formats() []Format {
	return []Format{FormatTable, FormatJSON, FormatJSONL, FormatJUnit, FormatTAP}
}

// NewReporter makes the reporter of a format that writes to w. Verbose matters to the
// table only: it lists what passed too, and the slowest.
func NewReporter(f Format, w io.Writer, verbose bool) (Reporter, error) {
	switch f {
	case FormatTable:
		return &table{w: w, verbose: verbose}, nil
	case FormatJSON:
		return &objects{w: w, whole: true}, nil
	case FormatJSONL:
		return &objects{w: w}, nil
	case FormatJUnit:
		return &junit{w: w}, nil
	case FormatTAP:
		return &tap{w: w}, nil
	}
	return nil, fmt.Errorf("there is no format %q; there are %q", f, Formats())
}

// written is the error of a report that could not be written.
func written(err error) error {
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

// objects writes JSON.
type objects struct {
	w     io.Writer
	whole bool
}

func (o *objects) Begin(Summary) error { return nil }

func (o *objects) Result(r Result) error {
	if o.whole {
		return nil
	}
	return o.write(r)
}

func (o *objects) End(s Summary) error {
	if !o.whole {
		s.Results = nil
		return o.write(struct {
			Summary `json:"summary"`
		}{s})
	}
	return o.write(s)
}

func (o *objects) write(v any) error {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if o.whole {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	_, err := io.WriteString(o.w, plainJSON(b.String()))
	return written(err)
}

// plainJSON escapes, in JSON text, what a terminal would not plainly show: it means the
// same, and can be looked at.
func plainJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		if _, hidden := tools.Visible(string(r)); r < 0x80 || hidden == 0 || r == '⟦' || r == '⟧' {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, "\\u%04x", unit)
		}
	}
	return b.String()
}

// line is text fit for one line of a report.
func line(text string) string {
	shown, _ := tools.Visible(text)
	return shown
}

// lines is line for each of some lines. What packages below have escaped already stays
// as it is.
func lines(all []string) []string {
	out := make([]string, len(all))
	for i, text := range all {
		out[i] = message(text)
	}
	return out
}

// message is line for text that may hold what was escaped already.
func message(text string) string {
	var b strings.Builder
	for i, part := range strings.Split(text, "⟦") {
		if i == 0 {
			b.WriteString(line(part))
			continue
		}
		mark, rest, closed := strings.Cut(part, "⟧")
		if !closed || !isMark(mark) {
			b.WriteString(line("⟦" + part))
			continue
		}
		b.WriteString("⟦" + mark + "⟧" + line(rest))
	}
	return b.String()
}

// isMark reports whether a text stands for an escaped character.
func isMark(mark string) bool {
	for _, start := range []string{"U+", "0x", "byte "} {
		if digits, ok := strings.CutPrefix(mark, start); ok {
			return digits != "" && strings.Trim(digits, "0123456789ABCDEF") == ""
		}
	}
	return false
}
