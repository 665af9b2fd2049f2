package terminal

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxMarks is how many combining marks may follow one another: more could cover the
// lines around them, and no script needs more.
const maxMarks = 4

// Escape returns text fit for a terminal: every character that is not plainly visible
// is shown as ⟦U+202E⟧ and counted. These are control characters, bidi controls,
// zero-width and tag characters, variation selectors, fillers, unusual spaces, private
// and unassigned code points; a byte that is not UTF-8 is shown as ⟦byte FF⟧. The
// bracket ⟦ itself is escaped too, so that no text can look as if it had been escaped.
// Newline and tab are kept: they are content.
func Escape(text string) (shown string, escaped int) { return escape(text, true) }

// Inline is [Escape] for text that must stay within its line: newline and tab are
// escaped as well.
func Inline(text string) (shown string, escaped int) { return escape(text, false) }

// Line is Inline without the count, for fields of tables and messages.
func Line(text string) string {
	shown, _ := Inline(text)
	return shown
}

func escape(text string, layout bool) (string, int) {
	var b strings.Builder
	b.Grow(len(text))
	escaped, marks := 0, 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "⟦byte %02X⟧", text[i])
			escaped++
		case layout && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case marks > maxMarks || !Visible(r):
			b.WriteString(hidden(r))
			escaped++
		default:
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String(), escaped
}

// hidden is a character that is not shown.
func hidden(r rune) string { return fmt.Sprintf("⟦U+%04X⟧", r) }

// Visible reports whether a character may be shown as it is.
func Visible(r rune) bool {
	switch r {
	case ' ', '\u3000': // the ideographic space is as wide as it looks
		return true
	case '⟦', '\u2800', '\u180F': // our own bracket; a blank pattern; a selector younger than the tables
		return false
	}
	return unicode.IsPrint(r) &&
		!unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) &&
		!unicode.Is(unicode.Variation_Selector, r)
}

// Unescape undoes [Escape] and [Inline]. It is what tests and scripts compare a shown
// text with; text that no Escape wrote comes back unchanged.
func Unescape(shown string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(shown, "⟦")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		inner, after, closed := strings.Cut(rest, "⟧")
		var r rune
		var by byte
		switch {
		case closed && scan(inner, "U+%X", &r):
			b.WriteRune(r)
		case closed && scan(inner, "byte %X", &by):
			b.WriteByte(by)
		default:
			b.WriteString("⟦")
			after = rest
		}
		shown = after
	}
}

func scan(text, format string, into any) bool {
	n, err := fmt.Sscanf(text, format, into)
	return err == nil && n == 1
}

// marked is what [Inline] and the packages below, which show hidden characters in the
// same way, put in place of one.
var marked = regexp.MustCompile(`⟦(?:U\+[0-9A-F]{4,6}|byte [0-9A-F]{2}|0x[0-9A-F]{2})⟧`)

// Message is [Line] for a message of which parts may have been escaped already: what
// stands for an escaped character stays as it is. It is not for text that somebody else
// wrote alone, which could be written to look as if it had been escaped.
func Message(text string) string {
	var b strings.Builder
	from := 0
	for _, at := range marked.FindAllStringIndex(text, -1) {
		b.WriteString(Line(text[from:at[0]]) + text[at[0]:at[1]])
		from = at[1]
	}
	return b.String() + Line(text[from:])
}
