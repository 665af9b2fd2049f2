package tools

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Visible returns text with every character that could hide, reorder or control what
// a person sees written as ⟦U+202E⟧, and how many there were: control characters,
// newline and tab included, format characters (bidirectional, zero-width, tags),
// other invisible ones, and bytes that are not UTF-8.
func Visible(text string) (string, int) {
	var out strings.Builder
	hidden := 0
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
				hidden++
				fmt.Fprintf(&out, "⟦0x%02X⟧", text[i])
				continue
			}
		}
		if isHidden(r) {
			hidden++
			fmt.Fprintf(&out, "⟦U+%04X⟧", r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String(), hidden
}

// isHidden reports whether a character shows nothing of itself, or moves others.
// Combining marks and variation selectors of ordinary text are shown; the brackets of
// the notation itself are not, so that nobody can fake it.
func isHidden(r rune) bool {
	switch {
	case r == ' ', r == '\u3000': // the spaces of Latin and of Chinese text
		return false
	case r == '⟦', r == '⟧':
		return true
	case r == '\u034f', r == '\u115f', r == '\u1160', r == '\u3164', r == '\uffa0', r == '\u17b4', r == '\u17b5', r == '\u2800':
		return true // fillers that print as nothing
	case r >= 0xe0100 && r <= 0xe01ef:
		return true // variation selectors that can carry a message
	}
	return unicode.Is(unicode.C, r) || unicode.Is(unicode.Z, r) || !unicode.IsGraphic(r)
}
