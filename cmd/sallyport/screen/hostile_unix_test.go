//go:build unix

package screen_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"sallyport/agent"
)

// known are the sequences that the screen's own library writes: what moves the cursor,
// erases, scrolls, colours and sets modes of the terminal, and asks it for those.
var known = regexp.MustCompile(`^(?:` +
	`\x1b\[[0-9;:]*[ABCDEFGHJKLMPSTXZ@abdehrm]` + // move, erase, insert, scroll, repeat, region, colour
	`|\x1b\[\?[0-9;]+[hl]` + // modes of the terminal
	`|\x1b\[\?[0-9;]*\$p|\x1b\[\?u|\x1b\[[<=>][0-9;]*[umq]` + // which modes and keys it has
	`|\x1b\[0?c|\x1b\[>0?q` +
	`|\x1b\[\?5W|\x1bM` + // tab stops; up, scrolling
	`)`)

// strange are what is in a stream and is neither text nor a known sequence.
func strange(stream string) []string {
	var found []string
	for stream != "" {
		if seq := known.FindString(stream); seq != "" {
			stream = stream[len(seq):]
			continue
		}
		r, size := utf8.DecodeRuneInString(stream)
		switch {
		case r == utf8.RuneError && size == 1:
			found = append(found, fmt.Sprintf("%q", stream[:1]))
		case r == '\n' || r == '\r' || r == '\b' || r == '\t': // the library's own: none is in what it is given
		case r < 0x20 || r == 0x7f || r >= 0x80 && r < 0xa0, strings.ContainsRune("\u202e\u202c\u200b\u200d\u2066\u00ad\U000e0041", r):
			found = append(found, fmt.Sprintf("%q", stream[:min(len(stream), 24)]))
		}
		stream = stream[size:]
	}
	return found
}

// The test of the test: it must find what would be wrong.
func TestStrange_FindsWhatTheScreenDoesNotWrite(t *testing.T) {
	for _, bad := range []string{"\x1b]0;owned\x07", "\x1bc", "\x9b31m", "\u009b31m", "\x1b[6n", "\x1bP+q\x1b\\", "\u202e", "\x00", "\x1b[21t"} {
		if len(strange("plain "+bad+" text")) == 0 {
			t.Errorf("%q is not found", bad)
		}
	}
	if found := strange("\x1b[1;7m text \x1b[m\x1b[?25l\x1b[H\x1b[2J\x1b[10X"); len(found) > 0 {
		t.Error(found)
	}
}

// CASES: a candidate with hostile characters is shown in full, and safely: whatever is in
// it, the terminal is sent text, and the sequences of the screen's own.
func TestRun_ShowsAHostileCandidateSafely(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {200, 60}} {
		t.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(t *testing.T) {
			d := newDesk(t)
			args, err := json.Marshal(map[string]string{"content": strings.ToValidUTF8(hostile, "\uFFFD"), "filename": "a.md"})
			if err != nil {
				t.Fatal(err)
			}
			d.saves = canonical(t, args)
			d.waiting("hostile")
			c := d.config("hostile")
			c.Detail = func(agent.Entry) string { return hostile }
			c.Context = hostileContext
			m := watch(t, c, size[0], size[1])
			m.shows("awaiting_approval")
			m.keys("2")
			m.shows("hostile words")
			m.keys(":hostile\r")
			m.shows(":hostile ──")
			m.keys("3")
			m.shows("(attempt)")
			m.keys("4")
			m.shows("here is the candidate")
			m.keys("1\t\r") // the candidate over the whole screen
			seen := m.until("the whole pane", func(text string) bool {
				return strings.Contains(text, "[1 Call]") && !strings.Contains(text, "leads on")
			})
			for text := seen; !strings.Contains(text, "Used of the budget"); seen += text {
				m.keys(" ")
				was := text
				text = m.until("the next page", func(now string) bool { return now != was })
			}
			for _, want := range []string{"⟦U+001B⟧]0;owned⟦U+0007⟧", "⟦U+202E⟧evil", "⟦U+27E6⟧U+0041⟧", "⟦U+0000⟧", "⟦U+E0041⟧", "日本語"} {
				if !strings.Contains(joined(seen), want) {
					t.Errorf("the screen does not show %q", want)
				}
			}
			if !strings.Contains(seen, "  │ ── What an approval allows") {
				t.Error("a line that looks like ours is not behind the gutter")
			}
			m.keys("q")
			if err := m.ended(); err != nil {
				t.Fatal(err)
			}
			for _, s := range strange(m.stream()) {
				t.Errorf("the terminal was sent %s", s)
			}
		})
	}
}

var carriedOver = regexp.MustCompile(` *\n[^┊\n]*┊ `)

// joined undoes the wrapping of lines.
func joined(screen string) string { return carriedOver.ReplaceAllString(screen, "") }
