package suite

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// tap writes the Test Anything Protocol, version 14, as results come.
type tap struct {
	w io.Writer
	n int
}

func (t *tap) Begin(s Summary) error {
	return t.write(fmt.Sprintf("TAP version 14\n1..%d\n", s.Total))
}

func (t *tap) Result(r Result) error {
	t.n++
	var b strings.Builder
	if r.Status.bad() || r.Status == StatusInterrupted {
		b.WriteString("not ")
	}
	fmt.Fprintf(&b, "ok %d - %s", t.n, tapText(r.Name+": "+r.Title))
	switch r.Status {
	case StatusPassed, StatusFailed, StatusError, StatusTimeout:
	case StatusInterrupted:
		fmt.Fprintf(&b, " # %s", r.Status)
	case StatusNotRun:
		fmt.Fprintf(&b, " # SKIP %s", strings.ToLower(verdicts[r.Status]))
	}
	b.WriteString("\n  ---\n")
	fmt.Fprintf(&b, "  duration_ms: %.0f\n", r.Seconds*1000)
	if r.Status.bad() {
		fmt.Fprintf(&b, "  severity: %s\n", r.Status)
		b.WriteString(tapList("failures", r.Failures))
		b.WriteString(tapList("journal", lines(r.Journal)))
		b.WriteString(tapList("opens", r.Opens))
	}
	b.WriteString("  ...\n")
	return t.write(b.String())
}

func (t *tap) End(s Summary) error {
	text := "# " + s.sentence() + "\n"
	if s.Interrupted {
		text += "Bail out! interrupted\n"
	}
	return t.write(text)
}

// tapList is a list of a YAML block, each item in JSON, which YAML includes.
func tapList[T any](key string, items []T) string {
	if len(items) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("  " + key + ":\n")
	for _, item := range items {
		data, err := json.Marshal(item)
		if err != nil {
			continue // no item holds what JSON cannot
		}
		b.WriteString("    - " + plainJSON(string(data)) + "\n")
	}
	return b.String()
}

// tapText escapes what would begin a directive or an escape.
func tapText(text string) string {
	return strings.NewReplacer(`\`, `\\`, "#", `\#`).Replace(line(text))
}

func (t *tap) write(text string) error {
	_, err := io.WriteString(t.w, text)
	return written(err)
}
