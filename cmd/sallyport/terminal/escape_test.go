package terminal

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	tests := []struct {
		name, text, shown string
		escaped           int
	}{
		{"plain text is kept", "a report, 证据 café 🙂", "a report, 证据 café 🙂", 0},
		{"newline and tab are content", "a\n\tb\n", "a\n\tb\n", 0},
		{"carriage return", "safe\rEVIL", "safe⟦U+000D⟧EVIL", 1},
		{"escape sequence", "\x1b[31mred", "⟦U+001B⟧[31mred", 1},
		{"hyperlink", "\x1b]8;;http://x\x07y", "⟦U+001B⟧]8;;http://x⟦U+0007⟧y", 2},
		{"C1 control", "\u009b31m", "⟦U+009B⟧31m", 1},
		{"NUL and DEL", "a\x00b\x7f", "a⟦U+0000⟧b⟦U+007F⟧", 2},
		{"right-to-left override", "a\u202Eb", "a⟦U+202E⟧b", 1},
		{"isolate", "\u2066x\u2069", "⟦U+2066⟧x⟦U+2069⟧", 2},
		{"zero width", "a\u200Bb\u200Dc\uFEFF", "a⟦U+200B⟧b⟦U+200D⟧c⟦U+FEFF⟧", 3},
		{"word joiner, soft hyphen", "\u2060\u00AD", "⟦U+2060⟧⟦U+00AD⟧", 2},
		{"tag characters", "\U000E0041\U000E007F", "⟦U+E0041⟧⟦U+E007F⟧", 2},
		{"variation selectors", "a\uFE0F\U000E0100\u180B\u180F", "a⟦U+FE0F⟧⟦U+E0100⟧⟦U+180B⟧⟦U+180F⟧", 4},
		{"grapheme joiner", "\u034F", "⟦U+034F⟧", 1},
		{"fillers", "\u115F\u3164\uFFA0\u2800", "⟦U+115F⟧⟦U+3164⟧⟦U+FFA0⟧⟦U+2800⟧", 4},
		{"line and paragraph separators", "\u2028\u2029", "⟦U+2028⟧⟦U+2029⟧", 2},
		{"no-break space", "a\u00A0b", "a⟦U+00A0⟧b", 1},
		{"private use", "\uE000", "⟦U+E000⟧", 1},
		{"not UTF-8", "a\xff\xfeb", "a⟦byte FF⟧⟦byte FE⟧b", 2},
		{"a true replacement character", "\uFFFD", "\uFFFD", 0},
		{"text that plays escaped", "⟦U+202E⟧", "⟦U+27E6⟧U+202E⟧", 1},
		{"four marks are kept, a fifth is not", "a\u0301\u0301\u0301\u0301\u0301", "a\u0301\u0301\u0301\u0301⟦U+0301⟧", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			shown, n := Escape(tt.text)
			if shown != tt.shown || n != tt.escaped {
				t.Errorf("Escape(%q) = %q, %d, want %q, %d", tt.text, shown, n, tt.shown, tt.escaped)
			}
			if back := Unescape(shown); back != tt.text {
				t.Errorf("Unescape(%q) = %q, want %q", shown, back, tt.text)
			}
		})
	}
}

func TestInline_KeepsWithinItsLine(t *testing.T) {
	shown, n := Inline("a\tb\nc")
	if want := "a⟦U+0009⟧b⟦U+000A⟧c"; shown != want || n != 2 {
		t.Errorf("Inline = %q, %d, want %q, 2", shown, n, want)
	}
}

// FuzzDisplay: whatever is displayed, no character reaches the terminal that is not
// plainly visible, every line of it stands behind the gutter, and the text can be had
// back from what was shown.
func FuzzDisplay(f *testing.F) {
	for _, seed := range []string{"", "a\n", "\x1b[2J", "a\u202Eb\r\n", "\xff⟦U+0041⟧", strings.Repeat("证", 90), "\t\U000E0041"} {
		f.Add(seed, 40)
	}
	f.Fuzz(func(t *testing.T, text string, width int) {
		var b strings.Builder
		if _, err := untrusted(&b, text, width); err != nil {
			t.Fatal(err)
		}
		shown := b.String()
		if !utf8.ValidString(shown) {
			t.Fatalf("not UTF-8: %q", shown)
		}
		for _, r := range strings.NewReplacer("⟦", "", "\n", "", "\t", "").Replace(shown) {
			if !Visible(r) {
				t.Fatalf("%U reached the terminal in %q", r, shown)
			}
		}
		if back := undisplay(t, shown); back != strings.TrimSuffix(text, "\n") {
			t.Fatalf("shown %q, read back %q, want %q", shown, back, text)
		}
		if inline, _ := Inline(text); strings.ContainsAny(inline, "\n\t\r\x1b") {
			t.Fatalf("Inline let layout through: %q", inline)
		}
	})
}

// undisplay takes the gutter away again.
func undisplay(t *testing.T, shown string) string {
	t.Helper()
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSuffix(shown, "\n"), "\n") {
		first, isFirst := strings.CutPrefix(line, gutter)
		next, isNext := strings.CutPrefix(line, carried)
		switch {
		case isFirst && i > 0:
			b.WriteString("\n" + first)
		case isFirst:
			b.WriteString(first)
		case isNext:
			b.WriteString(next)
		default:
			t.Fatalf("a line without its gutter: %q", line)
		}
	}
	return Unescape(b.String())
}

// A message may hold what packages below have escaped: that stays as it is, and all else
// is escaped once.
func TestMessage_EscapesOnce(t *testing.T) {
	for text, want := range map[string]string{
		"plain":  "plain",
		"a\x1bb": "a⟦U+001B⟧b",
		"a⟦U+001B⟧b\u202e⟦0xFF⟧⟦byte FF⟧":    "a⟦U+001B⟧b⟦U+202E⟧⟦0xFF⟧⟦byte FF⟧",
		"⟦U+27E6⟧U+001B⟦U+27E7⟧ was written": "⟦U+27E6⟧U+001B⟦U+27E7⟧ was written",
		"⟦U+1⟧ ⟦ x⟧ ⟦⟦U+001B⟧":               "⟦U+27E6⟧U+1⟧ ⟦U+27E6⟧ x⟧ ⟦U+27E6⟧⟦U+001B⟧",
		"two\nlines":                         "two⟦U+000A⟧lines",
	} {
		if got := Message(text); got != want {
			t.Errorf("Message(%q) = %q, want %q", text, got, want)
		}
	}
}
