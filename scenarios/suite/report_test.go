package suite

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	junitreader "github.com/joshdk/go-junit"
)

// nasty is text that breaks what is written carelessly: markup, quotes, escapes,
// directives of TAP, control characters that XML cannot hold, what reorders a line, and
// bytes that are no text.
const nasty = "a]]>b<c>&\"'\\ # SKIP %s\x1b[2J\x00\r\n\u202eevil\U000e0041\ufffe\xff…"

// told is a suite in which everything has happened.
func told() Summary {
	seed := uint64(7)
	results := []Result{
		{Name: "pack/good", Title: "It holds", File: "pack/good.yaml", Status: StatusPassed, Seconds: 0.25, Run: "good-1", State: "completed", Failures: []Failure{}},
		{
			Name: "pack/bad" + nasty, Title: "Title " + nasty, File: "pack/bad.yaml", Status: StatusFailed, Seconds: 1.5, Run: "bad-1", State: "failed",
			Failures: []Failure{
				{File: "pack/bad.yaml", Line: 12, What: "expect.state", Want: "completed", Got: "failed" + nasty},
				{File: "pack/bad.yaml", Line: 14, What: "expect.files.reports/a.md", Diff: "-wanted\n+came" + nasty + "\n"},
				{Message: "audit: broken" + nasty},
			},
			Journal: []string{"   8  model", "   9  failed " + nasty}, Rows: 9,
			StateDir: "/tmp/x/state", Opens: []string{"sallyport show bad-1 --state /tmp/x/state", "sallyport journal bad-1 --state /tmp/x/state"},
		},
		{Name: "other/slow", Title: "It ends", File: "other/slow.yaml", Status: StatusTimeout, Seconds: 60, Run: "slow-1", Failures: []Failure{{File: "other/slow.yaml", Message: "it did not end within 1m0s and was stopped"}}},
		{Name: "other/odd", Title: "It starts", File: "other/odd.yaml", Status: StatusError, Seconds: 0.1, Run: "odd-1", Failures: []Failure{{Message: "start the server \"x\": no such file\nsecond line"}}},
		{Name: "other/cut", Title: "It is cut", File: "other/cut.yaml", Status: StatusInterrupted, Seconds: 0.2, Failures: []Failure{{Message: "it was stopped with the suite"}}},
		{Name: "top", Title: "It waits", File: "top.yaml", Status: StatusNotRun, Failures: []Failure{}},
	}
	s := Summary{Total: len(results), Seconds: 61.5, Seed: &seed, Interrupted: true, Results: results}
	for _, r := range results {
		s.count(r)
	}
	return s
}

func report(t *testing.T, f Format, verbose bool, s Summary) string {
	t.Helper()
	var b bytes.Buffer
	r, err := NewReporter(f, &b, verbose)
	if err != nil {
		t.Fatal(err)
	}
	err = r.Begin(Summary{Total: s.Total, Seed: s.Seed})
	for _, res := range s.Results {
		err = errors.Join(err, r.Result(res))
	}
	if err = errors.Join(err, r.End(s)); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// plain fails if a report holds what a terminal would not plainly show.
func plain(t *testing.T, text string) {
	t.Helper()
	for _, hidden := range []string{"\x1b", "\x00", "\r", "\u202e", "\U000e0041", "\ufffe", "\xff"} {
		if strings.Contains(text, hidden) {
			t.Errorf("it holds %q", hidden)
		}
	}
}

func TestTable(t *testing.T) {
	const shown = "a]]>b<c>&\"'\\ # SKIP %s⟦U+001B⟧[2J⟦U+0000⟧⟦U+000D⟧⟦U+000A⟧⟦U+202E⟧evil⟦U+E0041⟧⟦U+FFFE⟧⟦0xFF⟧…"
	want := strings.ReplaceAll(`FAIL    pack/bad$  Title $ (1.50 s)
    pack/bad.yaml:12: expect.state
      - want  completed
      + got   faileda]]>b<c>&"'\ # SKIP %s⟦U+001B⟧[2J⟦U+0000⟧⟦U+000D⟧
              ⟦U+202E⟧evil⟦U+E0041⟧⟦U+FFFE⟧⟦0xFF⟧…
    pack/bad.yaml:14: expect.files.reports/a.md
      - want, + got
      -wanted
      +camea]]>b<c>&"'\ # SKIP %s⟦U+001B⟧[2J⟦U+0000⟧⟦U+000D⟧
      ⟦U+202E⟧evil⟦U+E0041⟧⟦U+FFFE⟧⟦0xFF⟧…
    audit: brokena]]>b<c>&"'\ # SKIP %s⟦U+001B⟧[2J⟦U+0000⟧⟦U+000D⟧
    ⟦U+202E⟧evil⟦U+E0041⟧⟦U+FFFE⟧⟦0xFF⟧…
    the journal, 2 of 9 rows:
       8  model
       9  failed $
    look at it: sallyport show bad-1 --state /tmp/x/state
                sallyport journal bad-1 --state /tmp/x/state
TIMEOUT other/slow  It ends (60.00 s)
    other/slow.yaml: it did not end within 1m0s and was stopped
ERROR   other/odd  It starts (0.10 s)
    start the server "x": no such file
    second line
STOPPED other/cut  It is cut (0.20 s)
    it was stopped with the suite
6 scenarios: 1 passed, 3 failed, 1 stopped, 1 not run, in 61.50 s, interrupted
`, "$", shown)
	got := report(t, FormatTable, false, told())
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	plain(t, got)
	verbose := report(t, FormatTable, true, told())
	for _, line := range []string{
		"PASS    pack/good  It holds (0.25 s)\n", "NOT RUN top  It waits\n",
	} {
		if !strings.Contains(verbose, line) {
			t.Errorf("the long table lacks %q:\n%s", line, verbose)
		}
	}
}

func TestTable_NamesTheSlowestFive(t *testing.T) {
	s := told()
	s.Results = append(s.Results, Result{Name: "seventh", Status: StatusPassed, Seconds: 0.15}, Result{Name: "eighth", Status: StatusPassed, Seconds: 90})
	text := report(t, FormatTable, true, s)
	_, slow, _ := strings.Cut(text, "slowest:\n")
	if !regexp.MustCompile(`^ 90.00 s  eighth\n 60.00 s  other/slow\n  1.50 s  pack/bad.*\n  0.25 s  pack/good\n  0.20 s  other/cut\n\d`).MatchString(slow) {
		t.Errorf("%s", text)
	}
	if strings.Contains(report(t, FormatTable, false, s), "slowest") {
		t.Error("the short table names them too")
	}
}

func TestJSON_IsTheSummary(t *testing.T) {
	text := report(t, FormatJSON, false, told())
	plain(t, text)
	var got Summary
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if want := told(); got.Total != 6 || got.Passed != 1 || got.Failed != 3 || got.Stopped != 1 || got.NotRun != 1 || *got.Seed != 7 || !got.Interrupted || len(got.Results) != 6 ||
		got.Results[1].Name != strings.ToValidUTF8(want.Results[1].Name, "\ufffd") || got.Results[1].Failures[0].Line != 12 {
		t.Errorf("%+v", got)
	}
}

func TestJSONL_IsOneObjectPerResultAndTheSummary(t *testing.T) {
	text := report(t, FormatJSONL, false, told())
	plain(t, text)
	rows := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if strings.Contains(rows[len(rows)-1], `"results"`) {
		t.Errorf("the summary repeats the results: %s", rows[len(rows)-1])
	}
	if len(rows) != 7 {
		t.Fatalf("%d rows", len(rows))
	}
	for i, row := range rows {
		var got struct {
			Result
			Summary *Summary `json:"summary"`
		}
		if err := json.Unmarshal([]byte(row), &got); err != nil {
			t.Fatal(err)
		}
		if last := i == 6; last != (got.Summary != nil) || last == (got.Status != "") || last && got.Summary.Failed != 3 {
			t.Errorf("row %d: %s", i, row)
		}
	}
}

// The elements, where they stand, and what they must have, as the readers of the common
// services take them.
func TestJUnit_Structure(t *testing.T) {
	text := report(t, FormatJUnit, false, told())
	plain(t, text)
	allowed := map[string][]string{
		"":           {"testsuites"},
		"testsuites": {"testsuite"},
		"testsuite":  {"testcase"},
		"testcase":   {"failure", "error", "skipped", "system-out"},
	}
	must := map[string][]string{
		"testsuites": {"name", "tests", "failures", "errors", "skipped", "time"},
		"testsuite":  {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"},
		"testcase":   {"name", "classname", "file", "time"},
		"failure":    {"message", "type"},
		"error":      {"message", "type"},
		"skipped":    {"message"},
		"system-out": {},
	}
	var path []string
	count := map[string]int{}
	dec := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("it is not XML: %v\n%s", err, text)
		}
		switch e := token.(type) {
		case xml.StartElement:
			parent := ""
			if len(path) > 0 {
				parent = path[len(path)-1]
			}
			name := e.Name.Local
			if !slices.Contains(allowed[parent], name) {
				t.Errorf("<%s> stands in <%s>", name, parent)
			}
			var has []string
			for _, a := range e.Attr {
				has = append(has, a.Name.Local)
			}
			if !slices.Equal(has, must[name]) {
				t.Errorf("<%s> has %q, want %q", name, has, must[name])
			}
			count[name]++
			path = append(path, name)
		case xml.EndElement:
			path = path[:len(path)-1]
		}
	}
	if want := map[string]int{"testsuites": 1, "testsuite": 3, "testcase": 6, "failure": 1, "error": 3, "skipped": 1, "system-out": 6}; fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", count, want)
	}
	if !strings.Contains(text, `<error message="interrupted" type="interrupted">`) {
		t.Error("nothing says that a case was interrupted")
	}
	if !strings.Contains(text, `<testsuites name="sallyport" tests="6" failures="1" errors="3" skipped="1" time="61.500">`) {
		t.Errorf("%.300s", text)
	}
}

// A reader that is not ours finds everything again.
func TestJUnit_IsReadByAnotherProgram(t *testing.T) {
	suites, err := junitreader.Ingest([]byte(report(t, FormatJUnit, false, told())))
	if err != nil || len(suites) != 3 {
		t.Fatalf("%d suites, %v", len(suites), err)
	}
	pack, other, top := suites[0], suites[1], suites[2]
	if pack.Name != "pack" || pack.Totals.Tests != 2 || pack.Totals.Passed != 1 || pack.Totals.Failed != 1 ||
		other.Name != "other" || other.Totals.Error != 3 || other.Totals.Skipped != 0 || top.Totals.Skipped != 1 || top.Name != "." {
		t.Errorf("%+v", suites)
	}
	bad := pack.Tests[1]
	if bad.Classname != "pack" || bad.Status != junitreader.StatusFailed || bad.Duration.Seconds() != 1.5 || bad.Properties["file"] != "pack/bad.yaml" {
		t.Errorf("%+v", bad)
	}
	var fault junitreader.Error
	if !errors.As(bad.Error, &fault) || fault.Type != "failed" || !strings.Contains(fault.Message, "pack/bad.yaml:12: expect.state: got ") ||
		!strings.Contains(fault.Body, "- want  completed") || !strings.Contains(fault.Body, "audit: broken") {
		t.Errorf("%#v", bad.Error)
	}
	if !strings.Contains(bad.SystemOut, "sallyport journal bad-1") || !strings.Contains(bad.SystemOut, "the journal, 2 of 9 rows:") {
		t.Errorf("%q", bad.SystemOut)
	}
}

// TAP 14: a version, a plan, as many points in order, a YAML block under each that
// begins and ends as it must, and no directive but ours.
func TestTAP_Structure(t *testing.T) {
	text := report(t, FormatTAP, false, told())
	plain(t, text)
	rows := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if rows[0] != "TAP version 14" || rows[1] != "1..6" {
		t.Fatalf("%q", rows[:2])
	}
	point := regexp.MustCompile(`^(not )?ok (\d+) - ((?:[^#\\]|\\[#\\])*?)( # (?:SKIP .*|interrupted))?$`)
	n, block := 0, false
	var states []string
	for _, row := range rows[2:] {
		switch m := point.FindStringSubmatch(row); {
		case row == "  ---":
			block = true
		case row == "  ...":
			block = false
		case block:
			if !strings.HasPrefix(row, "  ") {
				t.Errorf("in a block: %q", row)
			}
		case m != nil:
			n++
			if m[2] != fmt.Sprint(n) {
				t.Errorf("point %d is numbered %s", n, m[2])
			}
			states = append(states, m[1]+m[4])
		case row != "Bail out! interrupted" && !strings.HasPrefix(row, "# "):
			t.Errorf("row %q", row)
		}
	}
	if want := []string{"", "not ", "not ", "not ", "not  # interrupted", " # SKIP not run"}; !slices.Equal(states, want) {
		t.Errorf("%q, want %q", states, want)
	}
}

// A report that cannot be written is an error in every format.
func TestReporters_FullDisk(t *testing.T) {
	for _, f := range Formats() {
		r, err := NewReporter(f, full{}, true)
		if err != nil {
			t.Fatal(err)
		}
		s := told()
		err = r.Begin(s)
		for _, res := range s.Results {
			err = errors.Join(err, r.Result(res))
		}
		if err = errors.Join(err, r.End(s)); !errors.Is(err, errFull) || !strings.Contains(err.Error(), "write the report: ") {
			t.Errorf("%s: %v", f, err)
		}
	}
	if _, err := NewReporter("xml", io.Discard, false); err == nil {
		t.Error("there is a format xml")
	}
}

var errFull = errors.New("no space left on device")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// What is divided once is shown with the digits that it has.
func TestInSeconds(t *testing.T) {
	for ms := range int64(100_000) {
		text, err := json.Marshal(inSeconds(time.Duration(ms)*time.Millisecond + 499*time.Microsecond))
		if err != nil {
			t.Fatal(err)
		}
		if _, behind, _ := strings.Cut(string(text), "."); len(behind) > 3 {
			t.Fatalf("%d ms are %s", ms, text)
		}
	}
}

func TestSummary_Sentence(t *testing.T) {
	for want, s := range map[string]Summary{
		"1 scenario: 1 passed, in 0.50 s":                                    {Total: 1, Passed: 1, Seconds: 0.5},
		"120 scenarios: 120 passed, in 31.20 s":                              {Total: 120, Passed: 120, Seconds: 31.2},
		"3 scenarios: 0 passed, 1 failed, 2 not run, in 1.00 s, interrupted": {Total: 3, Failed: 1, NotRun: 2, Seconds: 1, Interrupted: true},
	} {
		if got := s.sentence(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
