package suite

import (
	"fmt"
	"strings"
	"time"
)

// Status is what became of one case.
type Status string

// The statuses. Passed is the only good one.
const (
	StatusPassed      Status = "passed"
	StatusFailed      Status = "failed"      // something is otherwise than expected
	StatusError       Status = "error"       // it could not be played to its end
	StatusTimeout     Status = "timeout"     // it took longer than a scenario may
	StatusInterrupted Status = "interrupted" // the suite was ended while it was played
	StatusNotRun      Status = "not_run"     // the suite ended before its turn
)

// bad reports whether a case with this status makes the suite fail.
func (s Status) bad() bool {
	return s == StatusFailed || s == StatusError || s == StatusTimeout
}

// Result is what became of one case. Durations are in seconds.
type Result struct {
	Name     string    `json:"name"`
	Title    string    `json:"title"`
	File     string    `json:"file"`
	Status   Status    `json:"status"`
	Seconds  float64   `json:"seconds"`
	Run      string    `json:"run,omitempty"`
	State    string    `json:"state,omitempty"`     // in which the run ended
	Failures []Failure `json:"failures"`            // why it is not passed
	Journal  []string  `json:"journal,omitempty"`   // of one that is not passed, the last rows in words
	Rows     int64     `json:"rows,omitempty"`      // of the journal
	Updated  string    `json:"updated,omitempty"`   // the golden file that was rewritten
	StateDir string    `json:"state_dir,omitempty"` // if it is kept
	Opens    []string  `json:"opens,omitempty"`     // commands that show what is kept

	index int // its place in the suite
}

// Failure is one thing that does not hold, or why a case could not be played.
type Failure struct {
	File    string `json:"file,omitempty"` // with Line, the place of the expectation
	Line    int    `json:"line,omitempty"`
	What    string `json:"what,omitempty"` // the path of the expectation
	Want    string `json:"want,omitempty"`
	Got     string `json:"got,omitempty"`
	Diff    string `json:"diff,omitempty"`    // of longer texts
	Message string `json:"message,omitempty"` // in place of the four above
}

// place is where the expectation stands, as far as that is known.
func (f Failure) place() string {
	switch {
	case f.File == "":
		return ""
	case f.Line == 0:
		return f.File
	}
	return fmt.Sprintf("%s:%d", f.File, f.Line)
}

// String is the failure in one line.
func (f Failure) String() string {
	text := f.Message
	if text == "" {
		text = fmt.Sprintf("%s: got %q, want %q", f.What, f.Got, f.Want)
	}
	text, _, _ = strings.Cut(text, "\n")
	if at := f.place(); at != "" && !strings.HasPrefix(text, at) {
		text = at + ": " + text
	}
	return text
}

// text is the failure in full, line by line.
func (f Failure) text() []string {
	if f.Message != "" {
		lines := strings.Split(strings.TrimRight(f.Message, "\n"), "\n")
		if at := f.place(); at != "" && !strings.HasPrefix(lines[0], at) {
			lines[0] = at + ": " + lines[0]
		}
		return lines
	}
	lines := []string{strings.TrimPrefix(f.place()+": "+f.What, ": ")}
	if f.Diff != "" {
		return append(append(lines, "  - want, + got"), indented(f.Diff)...)
	}
	lines = append(lines, marked("- want", f.Want)...)
	return append(lines, marked("+ got ", f.Got)...)
}

// marked shows a value behind what it is, the lines after the first in its column.
func marked(mark, value string) []string {
	lines := strings.Split(strings.TrimSuffix(value, "\n"), "\n")
	for i, line := range lines {
		if i > 0 {
			mark = strings.Repeat(" ", len(mark))
		}
		lines[i] = strings.TrimRight("  "+mark+"  "+line, " ")
	}
	return lines
}

func indented(text string) []string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := range lines {
		lines[i] = "  " + lines[i]
	}
	return lines
}

// Summary is what became of a suite.
type Summary struct {
	Total       int     `json:"total"`
	Passed      int     `json:"passed"`
	Failed      int     `json:"failed"`            // failed, in error or out of time
	Stopped     int     `json:"stopped,omitempty"` // while they were played: the suite was interrupted
	NotRun      int     `json:"not_run"`
	Seconds     float64 `json:"seconds"`
	Seed        *uint64 `json:"seed,omitempty"` // of the order, if it was shuffled
	Interrupted bool    `json:"interrupted,omitempty"`
	Kept        string  `json:"kept,omitempty"` // the folder of what is kept

	Results []Result `json:"results,omitempty"` // in the order of the suite
}

// OK reports whether every case was run and passed.
func (s Summary) OK() bool { return s.Passed == s.Total }

// count adds a result.
func (s *Summary) count(r Result) {
	switch {
	case r.Status == StatusPassed:
		s.Passed++
	case r.Status.bad():
		s.Failed++
	case r.Status == StatusInterrupted:
		s.Stopped++
	default:
		s.NotRun++
	}
}

// sentence says it in one line.
func (s Summary) sentence() string {
	parts := []string{fmt.Sprintf("%d passed", s.Passed)}
	if s.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", s.Failed))
	}
	if s.Stopped > 0 {
		parts = append(parts, fmt.Sprintf("%d stopped", s.Stopped))
	}
	if s.NotRun > 0 {
		parts = append(parts, fmt.Sprintf("%d not run", s.NotRun))
	}
	text := fmt.Sprintf("%s: %s, in %s", plural(s.Total, "scenario"), strings.Join(parts, ", "), took(s.Seconds))
	if s.Interrupted {
		text += ", interrupted"
	}
	return text
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// took shows seconds with two digits behind the point.
func took(seconds float64) string { return fmt.Sprintf("%.2f s", seconds) }

// since are the seconds that have passed, to the millisecond.
func since(began time.Time) float64 { return inSeconds(time.Since(began)) }

// inSeconds divides once, so that the number is shown with three digits and no more.
func inSeconds(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond).Milliseconds()) / 1000
}
