package terminal

import (
	"io"
	"strings"
	"unicode"
)

// The gutter stands before every line of untrusted text, so that none of it can look
// like a line of ours. A line that was wrapped goes on behind the second one.
const (
	gutter  = "  │ "
	carried = "  ┊ "
	cells   = 4 // width of each
)

// untrusted writes text line by line behind the gutter and returns how many characters
// it escaped. Lines longer than width cells are wrapped here, since the terminal would
// go on in column one; width 0 wraps nothing.
func untrusted(w io.Writer, text string, width int) (escaped int, err error) {
	shown, escaped := Escape(text)
	var b strings.Builder
	for line := range strings.SplitSeq(strings.TrimSuffix(shown, "\n"), "\n") {
		lead := gutter
		for _, part := range wrap(line, room(width)) {
			b.WriteString(lead + part + "\n")
			lead = carried
		}
	}
	_, err = io.WriteString(w, b.String())
	return escaped, err
}

// room is what a terminal of that width has behind the gutter; 0 is without end.
func room(width int) int {
	if width <= 0 {
		return 0
	}
	return max(width-cells, 1)
}

// wrap cuts a line into parts of at most width cells, or of one character. It counts a
// tab as eight cells, anything beyond Latin as two and marks as none: rather too wide
// than too narrow. Width 0 cuts nothing.
func wrap(line string, width int) []string {
	if width == 0 {
		return []string{line}
	}
	var parts []string
	start, used := 0, 0
	for i, r := range line {
		n := breadth(r)
		if used+n > width && i > start {
			parts = append(parts, line[start:i])
			start, used = i, 0
		}
		used += n
	}
	return append(parts, line[start:])
}

func breadth(r rune) int {
	switch {
	case r == '\t':
		return 8
	case unicode.Is(unicode.Mn, r):
		return 0
	case r < 0x250:
		return 1
	}
	return 2
}

// Untrusted writes text that somebody else wrote, escaped and behind the gutter.
func Untrusted(w io.Writer, text string, width int) error {
	_, err := untrusted(w, text, width)
	return err
}

// Wrap cuts a line that is fit for a terminal into parts of at most width cells, or of
// one character; rather too short than too long. Width 0 cuts nothing.
func Wrap(line string, width int) []string { return wrap(line, width) }
