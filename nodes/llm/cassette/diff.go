package cassette

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"sallyport/nodes"
)

// The size of a difference that is shown.
const (
	maxDiffLines = 60
	maxDiffLine  = 200 // characters
)

// differs says how a request is not the recorded one.
func (p *Player) differs(r record, q nodes.Request, messages []nodes.Message) error {
	was, now := render(r.messages), render(messages)
	e := &Error{File: p.file, Line: r.line, Reason: fmt.Sprintf("turn %d is asked for otherwise than it was recorded", r.Turn)}
	if tools, err := toolsOf(q); err == nil {
		if why := differentTools(p.header.Tools, tools); why != "" {
			e.Reason += ": " + why
		}
	}
	if was != now {
		e.Diff = shorten(udiff.Unified("recorded", "now", was, now))
	}
	return e
}

// differentTools names the first difference between what was offered and what is.
func differentTools(was, now []tool) string {
	digests := map[string]string{}
	for _, t := range was {
		digests[t.Name] = t.SHA256
	}
	for _, t := range now {
		switch then, there := digests[t.Name]; {
		case !there:
			return fmt.Sprintf("the tool %q was not offered then", t.Name)
		case then != t.SHA256:
			return fmt.Sprintf("the tool %q is described otherwise", t.Name)
		}
		delete(digests, t.Name)
	}
	for _, t := range was {
		if _, gone := digests[t.Name]; gone {
			return fmt.Sprintf("the tool %q is not offered now", t.Name)
		}
	}
	for i := range now {
		if now[i].Name != was[i].Name {
			return "the tools are in another order"
		}
	}
	return ""
}

// render writes messages so that a difference is found by lines.
func render(messages []nodes.Message) string {
	var b strings.Builder
	for i, m := range messages {
		fmt.Fprintf(&b, "message %d, of the %s", i+1, m.Role)
		if m.ToolCallID != "" {
			fmt.Fprintf(&b, ", about %s", m.ToolCallID)
		}
		b.WriteString("\n")
		if m.Content != "" {
			b.WriteString(indented(m.Content) + "\n")
		}
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, "calls %q as %s\n%s\n", c.Name, c.ID, indented(c.Arguments))
		}
		if len(m.Vendor)+len(m.Adjusted) > 0 {
			beside, _ := json.Marshal(map[string]any{"vendor": m.Vendor, "adjusted": m.Adjusted}) // texts only
			b.WriteString(string(beside) + "\n")
		}
	}
	return b.String()
}

// indented spreads JSON over lines, and leaves all else as it is.
func indented(text string) string {
	var b bytes.Buffer
	if !strings.HasPrefix(text, "{") || json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return b.String()
}

func shorten(diff string) string {
	lines := strings.Split(strings.TrimRight(diff, "\n"), "\n")
	if n := len(lines); n > maxDiffLines {
		lines = append(lines[:maxDiffLines], fmt.Sprintf("… and %d lines more", n-maxDiffLines))
	}
	for i, line := range lines {
		if text := []rune(line); len(text) > maxDiffLine {
			lines[i] = string(text[:maxDiffLine]) + "…"
		}
	}
	return strings.Join(lines, "\n")
}
