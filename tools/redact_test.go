package tools

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"sallyport/tools/grant"
)

func TestSanitize(t *testing.T) {
	c := saveContract()
	content := "Secret\ntext"
	args := []byte(`{"content":"Secret\ntext","filename":"a.md","grant":"signed"}`)
	fields, err := grant.Fields(args)
	if err != nil {
		t.Fatal(err)
	}
	got := string(Sanitize(args, c))
	want := `{"content":{"bytes":11,"sha256":"` + fields[0].SHA256 + `"},"filename":"a.md"}`
	if got != want {
		t.Errorf("sanitized %s\nwant %s", got, want)
	}
	for _, raw := range []string{string(args) + "x", `["` + content + `"]`, `{"content":"Secret`, ""} {
		got := Sanitize([]byte(raw), c)
		if !json.Valid(got) || strings.Contains(string(got), "Secret") || !strings.Contains(string(got), `"sha256"`) {
			t.Errorf("%q became %s", raw, got)
		}
	}
	hidden := string(Sanitize([]byte(`{"filename":"a\u202emd\u001b","x":{"\u200b":["\n"]}}`), c))
	if want := `{"filename":"a⟦U+202E⟧md⟦U+001B⟧","x":{"⟦U+200B⟧":["⟦U+000A⟧"]}}`; hidden != want {
		t.Errorf("hidden characters: %s, want %s", hidden, want)
	}
}

func TestVisible(t *testing.T) {
	for text, want := range map[string]string{
		"plain, 証拠、 é 😀":       "plain, 証拠、 é 😀",
		"a\x1b[2J":             "a⟦U+001B⟧[2J",
		"a\rb\n\t":             "a⟦U+000D⟧b⟦U+000A⟧⟦U+0009⟧",
		"\u202eevil":           "⟦U+202E⟧evil",
		"a\u200bb\ufeff":       "a⟦U+200B⟧b⟦U+FEFF⟧",
		"\U000e0041\U000e0100": "⟦U+E0041⟧⟦U+E0100⟧",
		"\u2028\u00a0":         "⟦U+2028⟧⟦U+00A0⟧",
		"\x80x":                "⟦0x80⟧x",
		"\ufffd":               "\ufffd",
		"⟦U+202E⟧":             "⟦U+27E6⟧U+202E⟦U+27E7⟧",
		"\u3164\u3000":         "⟦U+3164⟧\u3000",
	} {
		got, hidden := Visible(text)
		if got != want || hidden != strings.Count(want, "⟦") {
			t.Errorf("Visible(%q) = %q, %d; want %q", text, got, hidden, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\x1b[31m\u202e⟦")
	f.Fuzz(func(t *testing.T, text string) {
		got, hidden := Visible(text)
		if !utf8.ValidString(got) {
			t.Fatalf("%q is not UTF-8", got)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0x202e }) {
			t.Fatalf("%q is not visible", got)
		}
		if (hidden == 0) != (got == text) {
			t.Fatalf("%q: %d hidden, shown as %q", text, hidden, got)
		}
	})
}

func TestDuration(t *testing.T) {
	var d Duration
	if err := d.UnmarshalText([]byte("1m30s")); err != nil || d.Seconds() != 90 || d.String() != "1m30s" {
		t.Errorf("%s, %v", d, err)
	}
	for _, text := range []string{"5", "", "5 s", "fast", "1d"} {
		if err := d.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "write a number with a unit") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
