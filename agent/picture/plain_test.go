package picture

import (
	"strings"
	"testing"
	"time"

	"sallyport/agent"
)

func TestPlain_ShowsWhatDoesNotShow(t *testing.T) {
	for text, want := range map[string]string{
		"docs__save_report":               "docs__save_report",
		"漢字 and ä":                        "漢字 and ä",
		"a\nb":                            "a⟦U+000A⟧b",
		"\u202egnp":                       "⟦U+202E⟧gnp",
		"a\u200bb":                        "a⟦U+200B⟧b",
		"\U000e0041":                      "⟦U+E0041⟧",
		"⟦U+0041⟧":                        "⟦U+27E6⟧U+0041⟧",
		"\xff":                            "⟦byte FF⟧",
		"שלום":                            "⟦U+05E9⟧⟦U+05DC⟧⟦U+05D5⟧⟦U+05DD⟧",
		"e\u0301\u0301\u0301\u0301":       "e\u0301\u0301\u0301\u0301",
		"e\u0301\u0301\u0301\u0301\u0301": "e\u0301\u0301\u0301\u0301⟦U+0301⟧",
		"\ufffe\U0010ffff\ue000":          "⟦U+FFFE⟧⟦U+10FFFF⟧⟦U+E000⟧",
	} {
		if got := plain(text); got != want {
			t.Errorf("plain(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestCut_KeepsWithinItsCells(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"abcd", 4, "abcd"}, {"abcde", 4, "abc…"}, {"漢字漢字", 8, "漢字漢字"}, {"漢字漢字", 7, "漢字漢…"}, {"漢字漢字", 6, "漢字…"}, {"", 0, ""},
	} {
		if got := cut(c.text, c.most); got != c.want || cells(got) > c.most {
			t.Errorf("cut(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func TestDuration_IsAsPeopleSayIt(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", -time.Second: "0 s", time.Microsecond: "< 1 ms", 999 * time.Microsecond: "< 1 ms", time.Millisecond: "1 ms", 994 * time.Millisecond: "994 ms",
		995 * time.Millisecond: "1 s", 1500 * time.Millisecond: "1.5 s", 9949 * time.Millisecond: "9.9 s", 9950 * time.Millisecond: "10 s",
		59499 * time.Millisecond: "59 s", 59500 * time.Millisecond: "1 min", 90 * time.Second: "1 min 30 s", time.Hour: "1 h", 252 * time.Minute: "4 h 12 min",
		24 * time.Hour: "1 d", 26 * time.Hour: "1 d 2 h", 50*time.Hour + 59*time.Minute: "2 d 2 h",
	} {
		if got := duration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func TestCount_SetsThousandsApart(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000", -999: "-999"} {
		if got := count(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestMoney_KeepsMillionths(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "0.000001", 1_500_000: "1.5", 2_000_000: "2"} {
		if got := money(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

func TestPath_FoldsLoops(t *testing.T) {
	for text, want := range map[string]string{
		"a b c":                     "a → b → c",
		"a b a b a b c":             "(a → b) ×3 → c",
		"m e o e o e o m e o":       "m → (e → o) ×3 → m → e → o",
		"m e o m e o x":             "(m → e → o) ×2 → x",
		"m e o e o a m e o e o a x": "(m → (e → o) ×2 → a) ×2 → x",
	} {
		if got := strings.Join(loops(loops(strings.Fields(text))), " → "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// A path that has no loops leaves its middle out, exactly past its bound.
func TestPath_LeavesOutTheMiddle(t *testing.T) {
	of := func(n int) string {
		s := &Story{}
		for i := range n {
			s.stays = append(s.stays, stay{state: agent.State(strings.Repeat("x", i+1))})
		}
		return s.Path()
	}
	if got := of(maxParts); strings.Contains(got, "left out") {
		t.Errorf("a path of %d: %s", maxParts, got)
	}
	if got := of(maxParts + 1); !strings.Contains(got, "→ … 1 part left out … →") {
		t.Errorf("a path of %d: %s", maxParts+1, got)
	}
}
