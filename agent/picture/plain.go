package picture

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// maxCombined is how many combining marks may follow one another: more would cover the
// lines around them.
const maxCombined = 4

// plain replaces every character that does not plainly show by ⟦U+202E⟧ or the like:
// controls, bidirectional and zero-width characters, tags, fillers, private and
// unassigned ones. What is left is text that XML can hold and a reader can trust.
func plain(text string) string {
	var b strings.Builder
	combined := 0
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		combined++
		if !unicode.Is(unicode.M, r) {
			combined = 0
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "⟦byte %02X⟧", text[i])
		case combined > maxCombined || !shows(r):
			fmt.Fprintf(&b, "⟦U+%04X⟧", r)
		default:
			b.WriteString(text[i : i+size])
		}
		i += size
	}
	return b.String()
}

// shows reports whether a character may stand as it is. Those of scripts that run from
// right to left may not: in one line with others they would move what stands beside them.
func shows(r rune) bool {
	switch r {
	case ' ':
		return true
	case '⟦', '\u2800', '\u180F':
		return false
	}
	return unicode.IsPrint(r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) &&
		!unicode.Is(unicode.Variation_Selector, r) && !leftward(r)
}

// leftward reports whether a character is of a script that runs from right to left.
func leftward(r rune) bool {
	return 0x0590 <= r && r <= 0x08FF || 0xFB1D <= r && r <= 0xFDFF || 0xFE70 <= r && r <= 0xFEFF ||
		0x10800 <= r && r <= 0x10FFF || 0x1E800 <= r && r <= 0x1EFFF
}

// cells is how wide text is, in the widths of one Latin letter of a monospaced font.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += cell(r)
	}
	return n
}

func cell(r rune) int {
	switch {
	case unicode.Is(unicode.M, r):
		return 0
	case 0x1100 <= r && r <= 0x115F, 0x2E80 <= r && r <= 0xA4CF, 0xAC00 <= r && r <= 0xD7A3, 0xF900 <= r && r <= 0xFAFF,
		0xFE30 <= r && r <= 0xFE6F, 0xFF00 <= r && r <= 0xFF60, 0xFFE0 <= r && r <= 0xFFE6, 0x1F000 <= r && r <= 0x1FAFF, 0x20000 <= r && r <= 0x3FFFD:
		return 2
	}
	return 1
}

// cut shortens plain text to a number of cells; what was cut is shown by an ellipsis.
func cut(text string, most int) string {
	if cells(text) <= most {
		return text
	}
	n := 0
	for i, r := range text {
		if n += cell(r); n > most-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// maxName bounds a name that others chose, in cells.
const maxName = 48

// named is a name that others chose, fit to be shown.
func named(text string) string { return cut(plain(text), maxName) }

// duration is a length of time as people say it, in at most two units.
func duration(d time.Duration) string {
	two := func(big, small int64, bigUnit, smallUnit string) string {
		if small == 0 {
			return fmt.Sprintf("%d %s", big, bigUnit)
		}
		return fmt.Sprintf("%d %s %d %s", big, bigUnit, small, smallUnit)
	}
	switch s := int64(d.Round(time.Second) / time.Second); {
	case d <= 0:
		return "0 s"
	case d < time.Millisecond:
		return "< 1 ms"
	case d < 995*time.Millisecond:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond)/time.Millisecond)
	case d < 9950*time.Millisecond:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + " s"
	case s < 60:
		return fmt.Sprintf("%d s", s)
	case s < 3600:
		return two(s/60, s%60, "min", "s")
	case s < 24*3600:
		return two(s/3600, s%3600/60, "h", "min")
	default:
		return two(s/86400, s%86400/3600, "d", "h")
	}
}

// count is a number with its thousands apart.
func count(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// several is a count with its noun.
func several(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(int64(n)) + " " + more
}

func clock(t time.Time) string { return t.UTC().Format("15:04:05") }

func moment(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04:05 UTC") }
