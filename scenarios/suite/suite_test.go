package suite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// recorder is a reporter that remembers.
type recorder struct {
	begun   Summary
	results []Result
	ended   *Summary
	err     error
	heard   func(Result)
}

func (r *recorder) Begin(s Summary) error { r.begun = s; return nil }

func (r *recorder) Result(res Result) error {
	r.results = append(r.results, res)
	if r.heard != nil {
		r.heard(res)
	}
	return r.err
}

func (r *recorder) End(s Summary) error { r.ended = &s; return r.err }

// oddCases are cases for the odd player, by what they do.
func oddCases(names ...string) []Case {
	cases := make([]Case, len(names))
	for i, n := range names {
		cases[i] = Case{Name: "odd/" + n, Title: "It " + n, File: "odd/" + n + Ending, name: n}
	}
	return cases
}

// oddSuite plays in a temporary folder that must be empty in the end, or hold what is
// kept and nothing else.
func oddSuite(t *testing.T, names ...string) *Suite {
	t.Helper()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left := named(lingerMark); len(left) > 0 {
			t.Errorf("still alive: %q", left)
		}
		left, err := filepath.Glob(temp + "/*/*" + tempEnding)
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %q, %v", left, err)
		}
	})
	return &Suite{Player: []string{self, "odd"}, Cases: oddCases(names...), Jobs: 4}
}

// named lists the command lines of processes that mention a text.
func named(text string) []string {
	var found []string
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if data, err := os.ReadFile(path); err == nil && strings.Contains(string(data), text) {
			found = append(found, strings.ReplaceAll(string(data), "\x00", " "))
		}
	}
	return found
}

func empty(t *testing.T, dir string) {
	t.Helper()
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%s holds %v, %v", dir, left, err)
	}
}

func TestRun_EveryCaseHasItsResult(t *testing.T) {
	s := oddSuite(t, "passes", "fails", "panics", "exits", "floods", "leaves", "locks", "passes-2")
	s.Tail = func(string, string, int) ([]string, int64, error) { return []string{"last"}, 9, nil }
	s.Opens = func(state, run string) []string { return []string{"show " + run + " " + state} }
	var rec recorder
	sum, err := s.Run(t.Context(), &rec)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]struct {
		status Status
		text   string
	}{
		"odd/passes":   {StatusPassed, ""},
		"odd/passes-2": {StatusPassed, ""},
		"odd/fails":    {StatusFailed, `odd/fails.yaml:3: expect.state: got "completed", want "failed"`},
		"odd/panics":   {StatusError, "the process that played it ended early: exit status 2"},
		"odd/exits":    {StatusError, "the process that played it ended early: read what came of it"},
		"odd/floods":   {StatusError, "the process that played it ended early: read what came of it"},
		"odd/leaves":   {StatusPassed, ""},
		"odd/locks":    {StatusPassed, ""},
	}
	for i, r := range sum.Results {
		w := want[r.Name]
		if r.Name != s.Cases[i].Name || r.Status != w.status || r.Run == "" || r.Seconds <= 0 && r.Status == StatusPassed {
			t.Errorf("result %d: %+v, want %q", i, r, w.status)
		}
		if (len(r.Failures) > 0) != (w.text != "") || w.text != "" && !strings.HasPrefix(r.Failures[0].String(), w.text) {
			t.Errorf("%s: %q", r.Name, r.Failures)
		}
	}
	if sum.Passed != 4 || sum.Failed != 4 || sum.NotRun != 0 || sum.Total != 8 || sum.OK() || len(rec.results) != 8 || rec.ended == nil {
		t.Errorf("%+v", sum)
	}
	floods := sum.Results[4].Failures[0].Message
	if !strings.HasSuffix(floods, "the end") || len(floods) > maxSaid+200 {
		t.Errorf("%d bytes of what a player said", len(floods))
	}
	failed := sum.Results[1]
	if _, err := os.Stat(failed.StateDir); err != nil || len(failed.Opens) != 1 || !slices.Equal(failed.Journal, []string{"last"}) || failed.Rows != 9 {
		t.Errorf("%+v: %v", failed, err)
	}
	if dirs, err := os.ReadDir(sum.Kept); err != nil || len(dirs) != 1 {
		t.Errorf("kept %v, %v", dirs, err)
	}
}

func TestRun_HangingCaseIsEndedWhole(t *testing.T) {
	s := oddSuite(t, "hangs", "passes")
	s.Timeout = 100 * time.Millisecond
	began := time.Now()
	sum, err := s.Run(t.Context())
	if err != nil || sum.Results[0].Status != StatusTimeout || sum.Results[1].Status != StatusPassed {
		t.Fatalf("%+v, %v", sum, err)
	}
	if text := sum.Results[0].Failures[0].Message; text != "it did not end within 100ms and was stopped" {
		t.Error(text)
	}
	if took := time.Since(began); took > hungGrace+sweepLimit {
		t.Errorf("it took %s", took)
	}
	empty(t, os.Getenv("TMPDIR"))
}

// sweepLimit is more than ending what hangs takes.
const sweepLimit = 8 * time.Second

func TestRun_KeepsWhatItIsToldTo(t *testing.T) {
	for keep, want := range map[Keep]int{KeepFailed: 1, KeepAll: 2, KeepNone: 0} {
		s := oddSuite(t, "fails", "locks")
		s.Keep = keep
		sum, err := s.Run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		kept := 0
		for _, r := range sum.Results {
			if r.StateDir != "" {
				kept++
				_ = os.Chmod(filepath.Join(r.StateDir, "locked"), 0o700)
			}
		}
		if kept != want || (sum.Kept == "") != (want == 0) {
			t.Errorf("keep %d: %d kept in %q", keep, kept, sum.Kept)
		}
		if keep == KeepNone {
			empty(t, os.Getenv("TMPDIR"))
		}
	}
}

func TestRun_FailFastStartsNothingNew(t *testing.T) {
	s := oddSuite(t, "passes", "fails", "passes-2", "passes-3")
	s.FailFast, s.Jobs, s.Keep = true, 1, KeepNone
	sum, err := s.Run(t.Context())
	if err != nil || sum.Passed != 1 || sum.Failed != 1 || sum.NotRun != 2 || sum.Results[3].Status != StatusNotRun || sum.Results[3].Name != "odd/passes-3" {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestRun_InterruptedSaysWhatWasDone(t *testing.T) {
	s := oddSuite(t, "passes", "obeys", "hangs", "passes-2")
	s.Jobs = 1
	ctx, cancel := context.WithCancel(t.Context())
	s.Watch = &follow{started: func(c Case) {
		if c.name == "obeys" {
			cancel()
		}
	}}
	sum, err := s.Run(ctx)
	if err != nil || !sum.Interrupted || sum.Passed != 1 || sum.Stopped != 1 || sum.NotRun != 2 || sum.Results[1].Status != StatusInterrupted || sum.Results[2].Status != StatusNotRun {
		t.Errorf("%+v, %v", sum, err)
	}
	empty(t, os.Getenv("TMPDIR"))
}

// follow is a watcher.
type follow struct {
	started func(Case)
	now     int
	most    int
}

func (f *follow) Started(c Case) {
	f.now++
	f.most = max(f.most, f.now)
	if f.started != nil {
		f.started(c)
	}
}

func (f *follow) Finished(Case, Result) { f.now-- }

func TestRun_PlaysAsManyAtOnceAsItMay(t *testing.T) {
	names := []string{"passes", "passes-1", "passes-2", "passes-3", "passes-4", "passes-5"}
	for jobs, want := range map[int]int{0: 1, 1: 1, 3: 3, MaxJobs: 6} {
		s := oddSuite(t, names...)
		f := &follow{}
		s.Jobs, s.Watch = jobs, f
		if sum, err := s.Run(t.Context()); err != nil || !sum.OK() {
			t.Fatalf("%+v, %v", sum, err)
		}
		if f.most > want || want == 1 && f.most != 1 || f.now != 0 {
			t.Errorf("%d jobs: %d at once", jobs, f.most)
		}
	}
}

// What cannot be reported does not end the suite.
func TestRun_ReporterThatFailsIsAnError(t *testing.T) {
	s := oddSuite(t, "passes", "passes-2")
	full := errors.New("no space left")
	var rec recorder
	sum, err := s.Run(t.Context(), &recorder{err: full}, &rec)
	if !errors.Is(err, full) || sum.Passed != 2 || len(rec.results) != 2 || rec.ended == nil {
		t.Errorf("%+v, %v", sum, err)
	}
}

func TestAbandon_EndsEverythingAtOnce(t *testing.T) {
	s := oddSuite(t, "hangs", "hangs-2")
	started := make(chan struct{}, 2)
	s.Watch = &follow{started: func(Case) { started <- struct{}{} }}
	done := make(chan Summary)
	go func() { // ends with the suite, which is abandoned
		sum, _ := s.Run(context.Background())
		done <- sum
	}()
	<-started
	<-started
	for len(named(lingerMark)) < 2 {
		runtime.Gosched()
	}
	Abandon()
	if sum := <-done; sum.Failed != 2 || sum.Results[0].Status != StatusError {
		t.Errorf("%+v", sum)
	}
	empty(t, os.Getenv("TMPDIR"))
}
