package terminal

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"
)

const said = "The model says:"

// However the text is cut into pieces, the same is shown: what [Untrusted] shows.
func TestLive_ShowsWhatUntrustedShows(t *testing.T) {
	for name, text := range map[string]string{
		"plain":       "one line\nand another",
		"escapes":     "\x1b[31mred\x1b[0m\r⟦U+0041⟧\u202eabc\u200b",
		"empty lines": "a\n\n\nb",
		"tabs":        "a\tb",
		"wide":        strings.Repeat("橋", 30),
		"long":        strings.Repeat("x", 95),
		"marks":       "a" + strings.Repeat("\u0301", 12) + "b",
		"our labels":  "approve? \n" + said + "\nRun x has completed.",
	} {
		for _, width := range []int{0, 20} {
			var want bytes.Buffer
			if err := Untrusted(&want, text, width); err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{1, 2, 7, 1000} {
				var got bytes.Buffer
				l := NewLive(&got, said, width)
				for rest := text; rest != ""; {
					n := 0
					for range size {
						_, k := utf8.DecodeRuneInString(rest[n:])
						n += k
					}
					l.Text(rest[:n])
					rest = rest[n:]
				}
				l.End()
				if got.String() != said+"\n"+want.String() {
					t.Errorf("%s, width %d, pieces of %d:\n%q, want\n%q", name, width, size, got.String(), said+"\n"+want.String())
				}
			}
		}
	}
}

func TestLive_EndsItsLineBeforeOthersWrite(t *testing.T) {
	var out bytes.Buffer
	l := NewLive(&out, said, 0)
	l.Text("a")
	l.Text("b\nc")
	l.End()
	l.End()
	out.WriteString("ours\n")
	l.Text("d\n")
	l.End()
	if got, want := out.String(), said+"\n  │ ab\n  │ c\nours\n"+said+"\n  │ d\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
