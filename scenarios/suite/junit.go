package suite

import (
	"encoding/xml"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// junit writes the XML that services of continuous integration read: one testsuite per
// folder, one testcase per case.
type junit struct {
	w     io.Writer
	began time.Time
}

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`

	seconds float64
}

type junitCase struct {
	Name      string      `xml:"name,attr"`
	ClassName string      `xml:"classname,attr"`
	File      string      `xml:"file,attr"`
	Time      string      `xml:"time,attr"`
	Failure   *junitFault `xml:"failure"`
	Error     *junitFault `xml:"error"`
	Skipped   *junitFault `xml:"skipped"`
	Out       *junitText  `xml:"system-out"`
}

type junitFault struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

type junitText struct {
	Text string `xml:",chardata"`
}

func (j *junit) Begin(Summary) error {
	j.began = time.Now()
	return nil
}

func (j *junit) Result(Result) error { return nil }

func (j *junit) End(s Summary) error {
	all := junitSuites{Name: "sallyport", Time: junitTime(s.Seconds)}
	at := map[string]int{}
	for _, r := range s.Results {
		folder, _ := split(r.Name)
		i, ok := at[folder]
		if !ok {
			i = len(all.Suites)
			at[folder] = i
			all.Suites = append(all.Suites, junitSuite{Name: line(folder), Timestamp: j.began.UTC().Format("2006-01-02T15:04:05")})
		}
		all.Suites[i].add(r)
	}
	for i := range all.Suites {
		one := &all.Suites[i]
		one.Time = junitTime(one.seconds)
		all.Tests += one.Tests
		all.Failures += one.Failures
		all.Errors += one.Errors
		all.Skipped += one.Skipped
	}
	data, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the report: %w", err)
	}
	_, err = io.WriteString(j.w, xml.Header+string(data)+"\n")
	return written(err)
}

// split is the folder of a case and the rest of its name: values of a matrix may hold slashes.
func split(name string) (folder, base string) {
	file, values, found := strings.Cut(name, "[")
	if found {
		values = "[" + values
	}
	return path.Dir(file), path.Base(file) + values
}

// add adds a case. What a service shows of it is escaped like a line for people, which
// also leaves nothing that XML cannot hold.
func (s *junitSuite) add(r Result) {
	folder, base := split(r.Name)
	c := junitCase{
		Name: line(base), ClassName: line(strings.ReplaceAll(folder, "/", ".")),
		File: line(r.File), Time: junitTime(r.Seconds),
		Out: &junitText{strings.Join(append([]string{line(r.Title)}, details(r)...), "\n")},
	}
	s.Tests++
	s.seconds += r.Seconds
	fault := &junitFault{Type: string(r.Status)}
	var text []string
	for i, f := range r.Failures {
		if i == 0 {
			fault.Message = message(f.String())
		}
		text = append(text, lines(f.text())...)
	}
	fault.Text = strings.Join(text, "\n")
	switch r.Status {
	case StatusPassed:
	case StatusFailed:
		s.Failures++
		c.Failure = fault
	case StatusInterrupted: // it was begun, and nobody knows how it would have ended
		s.Errors++
		fault.Message = string(r.Status)
		c.Error = fault
	case StatusError, StatusTimeout:
		s.Errors++
		c.Error = fault
	case StatusNotRun:
		s.Skipped++
		c.Skipped = &junitFault{Message: strings.ToLower(verdicts[r.Status])}
	}
	s.Cases = append(s.Cases, c)
}

func junitTime(seconds float64) string { return fmt.Sprintf("%.3f", seconds) }
