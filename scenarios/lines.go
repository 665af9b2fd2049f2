package scenarios

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"sallyport/agent"
)

// Line is an entry of a journal in words, without what differs between two runs of the
// same scenario: times, ids and hashes.
func Line(e agent.Entry) string {
	parts := []string{fmt.Sprint(e.Seq)}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if e.Kind != agent.EntryEvent {
		add("%s", e.Kind)
	}
	if e.Event != "" {
		add("%s", e.Event)
	}
	if e.Row != "" {
		add("→ %s", e.Row)
	}
	if e.State != "" {
		add("(%s)", e.State)
	}
	if e.Code != "" {
		add("refused: %s", e.Code)
	}
	if d := detail(e); d != "" {
		add("%s", d)
	}
	return strings.Join(parts, " ")
}

// detail is what an entry's event says, in fixed words.
func detail(e agent.Entry) string {
	p, err := e.Payload()
	if err != nil {
		return ""
	}
	switch p := p.(type) {
	case agent.Turned:
		var names []string
		for _, c := range p.Calls {
			name := c.Tool
			if name == "" {
				name = "no tool of the run"
			}
			names = append(names, name)
		}
		if names == nil {
			return "an answer"
		}
		return strings.Join(names, ", ")
	case agent.TurnRefused:
		return p.Reason
	case agent.Unreached:
		return p.Reason
	case agent.Returned:
		return outcomeOf(p.Outcome)
	case agent.Observed:
		return strings.TrimSpace(fmt.Sprintf("%s %s", p.Status, p.Reason))
	case agent.Verified:
		return strings.TrimSpace(fmt.Sprintf("%s %s", p.Finding, p.Reason))
	}
	return ""
}

func outcomeOf(o agent.Outcome) string {
	text := fmt.Sprintf("%s %s %s", o.Status, o.Class, o.Reason)
	if o.Sent {
		text += " sent"
	}
	return strings.Join(strings.Fields(text), " ")
}

// lines are all entries in words.
func lines(entries []agent.Entry) []string {
	out := make([]string, len(entries))
	for i, e := range entries {
		out[i] = Line(e)
	}
	return out
}

// tailRows is how many entries a result shows.
const tailRows = 8

func tail(entries []agent.Entry) []string {
	return lines(entries[max(0, len(entries)-tailRows):])
}

// goldenFirst is how the first line of every golden journal begins.
var goldenFirst = regexp.MustCompile(`^1 [a-z_]+ → [a-z_]+ \([a-z_]+\)`)

// goldenFile is an error if the file is there and is no golden journal: it is not ours to
// rewrite.
func goldenFile(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at the golden journal: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is no ordinary file", filepath.Base(path))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the golden journal: %w", err)
	}
	if !goldenFirst.Match(data) {
		return fmt.Errorf("%q is there, and is no golden journal", filepath.Base(path))
	}
	return nil
}

// golden holds the journal against a file of the scenario's folder, or rewrites it.
func (x *facts) golden(m *mismatches, name string) error {
	path := filepath.Join(filepath.Dir(x.stage.Scenario.File), name)
	got := strings.Join(lines(x.entries), "\n") + "\n"
	want, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("read the golden journal: %w", err)
	}
	switch {
	case string(want) == got:
		return nil
	case !x.update && os.IsNotExist(err):
		m.at("the file "+name, "it is not there: write it with --update", "expect", "golden")
		return nil
	case !x.update:
		m.at(string(want), got, "expect", "golden")
		return nil
	}
	if err := goldenFile(path); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
		return fmt.Errorf("write the golden journal: %w", err)
	}
	x.updated = path
	return nil
}
