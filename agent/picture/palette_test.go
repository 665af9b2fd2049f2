package picture

import (
	"math"
	"strconv"
	"testing"
)

// luminance is the relative luminance of WCAG 2.2.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(colour[1:], 16, 32)
	if err != nil || len(colour) != 7 {
		t.Fatalf("colour %q", colour)
	}
	linear := func(v uint64) float64 {
		c := float64(v&0xFF) / 255
		if c <= 0.04045 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(n>>16) + 0.7152*linear(n>>8) + 0.0722*linear(n)
}

// contrast is the ratio of WCAG 2.2.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// What is read is at least 4.5:1, what is looked at 3:1, in both schemes, on every ground
// that it stands on.
func TestPalette_HasContrastInLightAndDark(t *testing.T) {
	if got := contrast(t, "#000000", "#ffffff"); math.Abs(got-21) > 0.01 {
		t.Fatalf("black on white is %.2f", got)
	}
	grounds := []tone{paper, panel, lit}
	for _, k := range classes {
		if k.size > 0 {
			for _, g := range grounds {
				apart(t, k.name+" text", *k.fill, g, 4.5)
			}
		}
	}
	for what, shape := range map[string]tone{
		"frame": faint, "line": ink, "last": accent, "work": accent, "wait": away, "tear": soft,
	} {
		for _, g := range grounds[:2] {
			apart(t, what, shape, g, 3)
		}
	}
	for _, l := range looks {
		for _, g := range grounds[:2] {
			apart(t, l.word, *l.tone, g, 3)
		}
	}
}

func apart(t *testing.T, what string, a, ground tone, least float64) {
	t.Helper()
	if got := contrast(t, a.light, ground.light); got < least {
		t.Errorf("%s, light: %s on %s is %.2f, want %.1f", what, a.light, ground.light, got, least)
	}
	if got := contrast(t, a.dark, ground.dark); got < least {
		t.Errorf("%s, dark: %s on %s is %.2f, want %.1f", what, a.dark, ground.dark, got, least)
	}
}

// Whoever sees no colours tells outcomes apart by pattern and by mark.
func TestPalette_OutcomesDifferWithoutColour(t *testing.T) {
	patterns, signs, words := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, l := range looks {
		if patterns[l.pattern] || signs[l.sign] || words[l.word] {
			t.Errorf("%s looks like another outcome", l.word)
		}
		patterns[l.pattern], signs[l.sign], words[l.word] = true, true, true
	}
	if len(words) != int(outcomes) {
		t.Errorf("%d looks for %d outcomes", len(words), outcomes)
	}
}
