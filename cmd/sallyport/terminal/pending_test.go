package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
	"sallyport/tools/strictjson"
)

var hex64 = strings.Repeat("ab", 32)

func pending(t *testing.T, args map[string]any) Pending {
	t.Helper()
	data, err := strictjson.Encode(args)
	if err != nil {
		t.Fatal(err)
	}
	c, err := grant.Candidate{
		Audience: "docs:/desk", Scope: "desk/reading", Run: "r1", Tool: "save_report",
		Call: "c1", Definition: hex64, Head: hex64,
	}.Bind(data)
	if err != nil {
		t.Fatal(err)
	}
	return Pending{
		Candidate: c, Arguments: data,
		Tool:       agent.Tool{Name: "docs__save_report", Server: "docs", Remote: "save_report", Risk: agent.RiskWrite, Approvers: 1, UseWithin: 60},
		Deadline:   time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		SideEffect: "creates one new file under reports/",
	}
}

func show(t *testing.T, p Pending, width int) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b, width); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// content is the argument called content as it can be read back from the screen.
func content(t *testing.T, screen string) string {
	t.Helper()
	_, after, found := strings.Cut(screen, "\nargument content (")
	if !found {
		t.Fatalf("no content in\n%s", screen)
	}
	_, after, _ = strings.Cut(after, "\n")
	var lines strings.Builder
	for line := range strings.SplitAfterSeq(after, "\n") {
		if !strings.HasPrefix(line, gutter) && !strings.HasPrefix(line, carried) {
			break
		}
		lines.WriteString(line)
	}
	return undisplay(t, lines.String())
}

func TestPending_ShowsExactlyWhatWillBeWritten(t *testing.T) {
	long := strings.Repeat("one line of a report, 证据\n", 333)[:8_000]
	tests := map[string]string{
		"short":                 "# Report\n\nText.",
		"8,000 characters":      strings.Repeat("x", 8_000),
		"8,000 CJK characters":  strings.Repeat("证", 8_000),
		"many lines":            strings.ToValidUTF8(long, ""),
		"controls and bidi":     "a\x1b[2Jb\r\nc\u202Ed\u200b\U000E0041",
		"plays the block":       "── What an approval allows, this call only: ──\n  file        other.md\napprove> approve",
		"plays the gutter":      "  │ x\n  ┊ y\n\n",
		"markup":                "<b>&amp;</b>\u2028\"\\",
		"tabs":                  strings.Repeat("\t", 50),
		"literal escape look":   "⟦U+0041⟧",
		"no line break at end":  "a\nb",
		"leading empty content": "\n\na",
	}
	for name, text := range tests {
		for _, width := range []int{0, 1, 7, 40, 80} {
			t.Run(name, func(t *testing.T) {
				screen := show(t, pending(t, map[string]any{"filename": "report.md", "content": text}), width)
				if got := content(t, screen); got != strings.TrimSuffix(text, "\n") {
					t.Errorf("width %d: shown as %q, want %q", width, got, text)
				}
			})
		}
	}
}

func TestPending_LastComesWhatTheSignatureIsBoundTo(t *testing.T) {
	text := "x\n── What an approval allows, this call only: ──\n  file        evil.md\n"
	p := pending(t, map[string]any{"filename": "report.md", "content": text})
	screen := show(t, p, 80)
	const heading = "\n── What an approval allows, this call only: ──\n"
	if n := strings.Count(screen, heading); n != 1 {
		t.Fatalf("%d authoritative blocks in\n%s", n, screen)
	}
	_, facts, _ := strings.Cut(screen, heading)
	for _, want := range []string{
		"run         r1", "tool        save_report of server docs (docs:/desk), risk write", "scope       desk/reading",
		"file        report.md · 9 bytes, sha256 " + strictjson.Digest([]byte("report.md")),
		"bytes, sha256 " + strictjson.Digest([]byte(text)),
		"definition  sha256 " + hex64,
		"arguments   ", "sha256 " + p.Candidate.Arguments,
		"expires     2026-03-01T12:00:00Z; a grant holds for 1m0s from signing",
		"approvers   1 needed, none has signed", "side effect creates one new file under reports/",
	} {
		if !strings.Contains(facts, want) {
			t.Errorf("the block lacks %q:\n%s", want, facts)
		}
	}
	if strings.Contains(facts, "evil.md") {
		t.Errorf("untrusted text in the block:\n%s", facts)
	}
}

func TestPending_RepeatsOnlyPlainArgumentsNextToTheQuestion(t *testing.T) {
	sly := "a.md · 4 bytes, sha256 " + hex64
	screen := show(t, pending(t, map[string]any{"filename": sly, "to": "ann@example.org"}), 0)
	_, facts, _ := strings.Cut(screen, "── What an approval allows")
	if strings.Contains(facts, "a.md ·") {
		t.Errorf("an argument passes for facts:\n%s", facts)
	}
	if !strings.Contains(facts, ".to         ann@example.org · 15 bytes, sha256 ") {
		t.Errorf("a plain argument is not repeated:\n%s", facts)
	}
}

func TestPending_CountsWhatItEscapes(t *testing.T) {
	screen := show(t, pending(t, map[string]any{"filename": "r.md", "content": "a\u202Eb\u200b"}), 0)
	if want := "argument content (text, 4 characters, 8 bytes, 2 characters shown as ⟦…⟧)"; !strings.Contains(screen, want) {
		t.Errorf("lacks %q:\n%s", want, screen)
	}
}

func TestPending_HostileNamesStayWithinTheirLine(t *testing.T) {
	p := pending(t, map[string]any{"scope": "evil", "n": 7})
	screen := show(t, p, 0)
	if !strings.Contains(screen, "  .scope ") || strings.Count(screen, "\n  scope ") != 1 {
		t.Errorf("an argument passes for a fact:\n%s", screen)
	}
	if !strings.Contains(screen, "argument n (JSON, 1 byte)\n  │ 7\n") {
		t.Errorf("a number is not shown as JSON:\n%s", screen)
	}
}

func TestPending_HostileArgumentNames(t *testing.T) {
	name := strings.Repeat(" ", 70) + "── What an approval allows, this call only: ──\n  file  evil.md"
	screen := show(t, pending(t, map[string]any{name: "x"}), 80)
	if n := strings.Count(screen, "\n── What an approval"); n != 1 {
		t.Errorf("%d authoritative blocks:\n%s", n, screen)
	}
	if !strings.Contains(screen, "argument 1 is called\n  │ ") || !strings.Contains(screen, "\n  .#1 ") {
		t.Errorf("the name is not shown as untrusted text:\n%s", screen)
	}
	for line := range strings.SplitSeq(screen, "\n") {
		if strings.Contains(line, "evil.md") && !strings.HasPrefix(line, gutter) && !strings.HasPrefix(line, carried) {
			t.Errorf("outside its gutter: %q", line)
		}
	}
}

func TestPending_RefusesBytesThatAreNotTheCandidates(t *testing.T) {
	p := pending(t, map[string]any{"filename": "report.md", "content": "a"})
	p.Arguments = bytes.Replace(p.Arguments, []byte(`"a"`), []byte(`"b"`), 1)
	var b bytes.Buffer
	if err := p.Write(&b, 0); err == nil || b.Len() > 0 {
		t.Errorf("shown %q, %v", b.String(), err)
	}
}
