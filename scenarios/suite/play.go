package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"sallyport/nodes/llm"
	"sallyport/scenarios"
)

// order is what the child that plays a case is told, one JSON object on its stdin. The
// end of stdin tells it to stop.
type order struct {
	File   string `json:"file"`
	Name   string `json:"name"` // of the scenario within the file
	Config string `json:"config,omitempty"`
	Dir    string `json:"dir"`
	Run    string `json:"run"`
	Update bool   `json:"update,omitempty"`
}

// Play is the child: it reads an order, plays that case on a stage as base says, but for
// where it lies, and writes what came of it. The folder stays; whoever
// gave the order removes it. It returns an error only if it could not answer.
func Play(ctx context.Context, in io.Reader, out io.Writer, base scenarios.StageOptions) error {
	var o order
	dec := json.NewDecoder(in)
	if err := dec.Decode(&o); err != nil {
		return fmt.Errorf("read what to play: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parent := os.Getppid()
	go func() { // ends with stdin, which is the process's own; nobody waits
		_, _ = io.Copy(io.Discard, in)
		cancel()
		o.orphaned(parent)
	}()
	if err := json.NewEncoder(out).Encode(o.play(ctx, base)); err != nil {
		return fmt.Errorf("tell what came of %q: %w", o.Name, err)
	}
	return nil
}

// orphanEvery is how often a player that was told to stop looks whether whoever told it
// is still there, and orphanGrace how long it goes on in any case: a suite ends its
// player long before.
const (
	orphanEvery = 20 * time.Millisecond
	orphanGrace = 2 * endGrace
)

// orphaned ends this process, with all that is below it, when its parent is gone: a
// suite that was killed sees to nothing any more. It returns only by that end. A signal
// from the kernel at the parent's death would leave what the servers have started, and
// the folders.
func (o order) orphaned(parent int) {
	for deadline := time.Now().Add(orphanGrace); os.Getppid() == parent && time.Now().Before(deadline); {
		time.Sleep(orphanEvery) // not every system says when a parent ends
	}
	endBelow()
	_ = errors.Join(removeAll(o.Dir), removeAll(o.Dir+tempEnding), os.Remove(filepath.Dir(o.Dir)))
	endSelf()
}

// play plays the case.
func (o order) play(ctx context.Context, base scenarios.StageOptions) Result {
	s, err := o.load()
	if err != nil {
		return unplayed(err)
	}
	if assertsNothing(s.Expect) {
		return Result{Status: StatusFailed, Failures: []Failure{{File: o.File, What: "expect", Message: "the scenario expects nothing, so that it shows nothing: say under `expect` what must hold"}}}
	}
	golden := o.golden(s)
	base.Dir, base.Run = o.Dir, o.Run
	played, err := scenarios.Play(ctx, s, scenarios.PlayOptions{StageOptions: base, Keep: true, Update: o.Update})
	r := Result{Status: StatusPassed, State: string(played.State)}
	for _, m := range played.Mismatches {
		r.Failures = append(r.Failures, failureOf(m))
	}
	if played.Updated != "" {
		r.Updated = changed(played.Updated, golden)
	}
	var script *llm.ScriptError
	switch {
	case errors.As(err, &script): // what the script expects of a message, or that it ends too early
		r.Status = StatusFailed
		r.Failures = append(r.Failures, Failure{File: o.named(script.File), Line: script.Line, Message: "the script: " + script.Reason})
	case err != nil:
		r.Status = StatusError
		r.Failures = append(r.Failures, Failure{File: o.File, Message: err.Error()})
	case len(r.Failures) > 0:
		r.Status = StatusFailed
	}
	return r
}

// named is a file as the suite names it.
func (o order) named(file string) string {
	if a, err := os.Stat(file); err == nil {
		if b, err := os.Stat(o.File); err == nil && os.SameFile(a, b) {
			return o.File
		}
	}
	return file
}

// assertsNothing reports whether an expectation holds whatever happens: it says
// nothing, or lists nothing where only what is listed is looked at.
func assertsNothing(e scenarios.Expect) bool {
	v := reflect.ValueOf(&e).Elem()
	for _, name := range []string{"NotSent", "NoCall", "Files", "Only", "Events", "NoEvents", "Counts", "Servers", "Quarantined"} {
		if f := v.FieldByName(name); f.Len() == 0 {
			f.SetZero()
		}
	}
	return v.IsZero()
}

// failureOf is a mismatch as a report has it. Texts of several lines are shown as their
// difference.
func failureOf(m scenarios.Mismatch) Failure {
	f := Failure{File: m.File, Line: m.Line, What: m.Path, Want: m.Want, Got: m.Got}
	if strings.Contains(strings.TrimSuffix(m.Want, "\n"), "\n") && m.Got != "" {
		f.Diff = difference(m.Want, m.Got)
	}
	return f
}

// maxDiff bounds how many lines of a difference are shown.
const maxDiff = 60

// difference is the unified difference of two texts without its head.
func difference(was, is string) string {
	lines := strings.Split(strings.TrimSuffix(udiff.Unified("was", "is", ended(was), ended(is)), "\n"), "\n")
	if len(lines) > 2 {
		lines = lines[2:]
	}
	if over := len(lines) - maxDiff; over > 0 {
		lines = append(lines[:maxDiff], fmt.Sprintf("… and %s", plural(over, "more line")))
	}
	return strings.Join(lines, "\n")
}

// ended is a text that ends its last line.
func ended(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// golden is the golden journal of a case as it is before it is rewritten.
func (o order) golden(s *scenarios.Scenario) string {
	if !o.Update || s.Expect.Golden == "" {
		return ""
	}
	data, err := os.ReadFile(filepath.Join(filepath.Dir(o.File), s.Expect.Golden))
	if err != nil {
		return "" // it is new
	}
	return string(data)
}

// changed says what was changed about a golden journal.
func changed(file, was string) string {
	is, err := os.ReadFile(file)
	if err != nil {
		return "rewritten: " + file
	}
	if was == "" {
		return fmt.Sprintf("written: %s, %s", file, plural(strings.Count(string(is), "\n"), "line"))
	}
	return "rewritten: " + file + "\n" + difference(was, string(is))
}

// load loads the case again: the child has a memory of its own.
func (o order) load() (*scenarios.Scenario, error) {
	cases, err := scenarios.LoadCases(o.File, scenarios.LoadOptions{Config: o.Config})
	if err != nil {
		return nil, err
	}
	for _, s := range cases {
		if s.Name() == o.Name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("play %q: the file does not hold that case any more", o.Name)
}

// unplayed is the result of a case that could not be played.
func unplayed(err error) Result {
	return Result{Status: StatusError, Failures: []Failure{{Message: err.Error()}}}
}
