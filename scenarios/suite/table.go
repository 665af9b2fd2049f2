package suite

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// slowest is how many of the slowest cases a verbose table names.
const slowest = 5

// table writes for people.
type table struct {
	w       io.Writer
	verbose bool
}

func (t *table) Begin(Summary) error { return nil }

var verdicts = map[Status]string{
	StatusPassed: "PASS", StatusFailed: "FAIL", StatusError: "ERROR", StatusTimeout: "TIMEOUT",
	StatusInterrupted: "STOPPED", StatusNotRun: "NOT RUN",
}

func (t *table) Result(r Result) error {
	if !t.verbose && r.Updated == "" && (r.Status == StatusPassed || r.Status == StatusNotRun) {
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-7s %s  %s", verdicts[r.Status], line(r.Name), line(r.Title))
	if r.Status != StatusNotRun {
		fmt.Fprintf(&b, " (%s)", took(r.Seconds))
	}
	b.WriteByte('\n')
	for _, l := range details(r) {
		b.WriteString("    " + l + "\n")
	}
	return t.write(b.String())
}

// details says why a case did not pass, and how to look at it.
func details(r Result) []string {
	var all []string
	for _, f := range r.Failures {
		all = append(all, lines(f.text())...)
	}
	if r.Updated != "" {
		all = append(all, lines(strings.Split(strings.TrimRight(r.Updated, "\n"), "\n"))...)
	}
	if len(r.Journal) > 0 {
		all = append(all, fmt.Sprintf("the journal, %d of %d rows:", len(r.Journal), r.Rows))
		all = append(all, lines(r.Journal)...)
	}
	for i, command := range r.Opens {
		what := "look at it: "
		if i > 0 {
			what = strings.Repeat(" ", len(what))
		}
		all = append(all, what+command)
	}
	return all
}

func (t *table) End(s Summary) error {
	var b strings.Builder
	if t.verbose {
		b.WriteString(t.slow(s.Results))
	}
	b.WriteString(s.sentence() + "\n")
	return t.write(b.String())
}

// slow names what took longest.
func (t *table) slow(results []Result) string {
	sorted := slices.DeleteFunc(slices.Clone(results), func(r Result) bool { return r.Status == StatusNotRun })
	slices.SortStableFunc(sorted, func(a, b Result) int {
		switch {
		case a.Seconds > b.Seconds:
			return -1
		case a.Seconds < b.Seconds:
			return 1
		}
		return 0
	})
	var b strings.Builder
	if len(sorted) > slowest {
		b.WriteString("slowest:\n")
		for _, r := range sorted[:slowest] {
			fmt.Fprintf(&b, "%8s  %s\n", took(r.Seconds), line(r.Name))
		}
	}
	return b.String()
}

func (t *table) write(text string) error {
	_, err := io.WriteString(t.w, text)
	return written(err)
}
