package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf16"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sallyport/cmd/sallyport/terminal"
)

// format is the value of -o.
type format string

// The formats. Table is for people and may change; json and jsonl are for programs.
const (
	formatTable   format = "table"
	formatJSON    format = "json"
	formatJSONL   format = "jsonl"
	formatMermaid format = "mermaid"
	formatDot     format = "dot"
	formatJUnit   format = "junit"
	formatTAP     format = "tap"
	formatText    format = "text"
	formatSVG     format = "svg"
	formatHTML    format = "html"
)

var formats = []format{formatTable, formatJSON, formatJSONL}

// formatsKey annotates a command that has formats of its own.
const formatsKey = "formats"

// Set implements the flag.
func (f *format) Set(s string) error {
	all := append(slices.Clone(formats), formatMermaid, formatDot, formatJUnit, formatTAP, formatText, formatSVG, formatHTML)
	if !slices.Contains(all, format(s)) {
		return fmt.Errorf("there is no format %q; there are %s, and for graph %s, for timeline %s, for test %s and %s, for prove %s",
			s, "table, json, jsonl", "mermaid, dot, svg and text", "svg and html", formatJUnit, formatTAP, formatText)
	}
	*f = format(s)
	return nil
}

// String implements the flag.
func (f *format) String() string { return string(*f) }

// Type implements the flag.
func (f *format) Type() string { return "FORMAT" }

// formatFits refuses a format that the command does not have, and fills in the
// default, which is the first.
func (a *app) formatFits(c *cobra.Command) error {
	fits := make([]string, len(formats))
	for i, f := range formats {
		fits[i] = string(f)
	}
	if own, ok := c.Annotations[formatsKey]; ok {
		fits = strings.Fields(own)
	}
	switch {
	case a.output == "":
		a.output = format(fits[0])
	case !slices.Contains(fits, string(a.output)):
		return fmt.Errorf("-o %s: this command writes %s", a.output, strings.Join(fits, ", "))
	}
	return nil
}

// row is one thing that a command lists: as JSON it is itself, in a table its cells.
type row interface{ cells() []string }

// list writes rows in the chosen format.
func list[R row](a *app, head []string, rows []R) error {
	switch a.output {
	case formatJSON:
		if rows == nil {
			rows = []R{}
		}
		return a.json(rows, true)
	case formatJSONL:
		for _, r := range rows {
			if err := a.json(r, false); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 8, 2, ' ', 0)
	if len(rows) > 0 {
		fmt.Fprintln(w, strings.Join(head, "\t"))
	}
	for _, r := range rows {
		cells := r.cells()
		for i := range cells {
			cells[i] = terminal.Line(cells[i])
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the table: %w", err)
	}
	return nil
}

// json writes one value, on one line or indented.
func (a *app) json(v any, indent bool) error {
	text, err := shownJSON(v, indent)
	if err != nil {
		return fmt.Errorf("encode the output: %w", err)
	}
	return a.print("%s", text)
}

// shownJSON is a value as JSON for people: on one line or indented, with a newline, and
// nothing in it that a terminal would obey.
func shownJSON(v any, indent bool) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if indent {
		enc.SetIndent("", "  ")
	}
	if err := enc.Encode(v); err != nil {
		return "", err
	}
	return escapeJSON(b.String()), nil
}

// escapeJSON escapes, in JSON text, what a terminal would not plainly show: it means
// the same, and can be looked at.
func escapeJSON(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < 0x80 || terminal.Visible(r) || r == '⟦' || r == '\u2800':
			b.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, "\\u%04x\\u%04x", high, low)
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

// modelText writes what a model wrote. On a terminal it stands behind a gutter, under a
// line that says what it is; elsewhere it is the text itself, so that it can be used.
// In both what a terminal would not plainly show is escaped.
func (a *app) modelText(what, text string) error {
	if a.onTerminal() {
		if err := a.print("%s, in the model's words (untrusted):\n", what); err != nil {
			return err
		}
		return terminal.Untrusted(a.stdout, text, a.width())
	}
	shown, _ := terminal.Escape(text)
	return a.print("%s\n", strings.TrimSuffix(shown, "\n"))
}

// onTerminal reports whether stdout is read by a person.
func (a *app) onTerminal() bool { return term.IsTerminal(int(a.out.Fd())) }

// width is that of the terminal that stdout is, in cells; 0 if it is none.
func (a *app) width() int { return terminal.Console{Out: a.out}.Width() }

// print writes lines of a table or text.
func (a *app) print(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.stdout, format, args...); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
