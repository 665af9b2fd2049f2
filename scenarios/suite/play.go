package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"

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

// Play is the child: it reads an order, plays that case with self as the executable
// that servers are started from, and writes what came of it. The folder stays; whoever
// gave the order removes it. It returns an error only if it could not answer.
func Play(ctx context.Context, in io.Reader, out io.Writer, self string) error {
	var o order
	dec := json.NewDecoder(in)
	if err := dec.Decode(&o); err != nil {
		return fmt.Errorf("read what to play: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with stdin, which is the process's own; nobody waits
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	if err := json.NewEncoder(out).Encode(o.play(ctx, self)); err != nil {
		return fmt.Errorf("tell what came of %q: %w", o.Name, err)
	}
	return nil
}

// play plays the case.
func (o order) play(ctx context.Context, self string) Result {
	s, err := o.load()
	if err != nil {
		return unplayed(err)
	}
	if reflect.ValueOf(s.Expect).IsZero() {
		return Result{Status: StatusFailed, Failures: []Failure{{File: o.File, What: "expect", Message: "the scenario expects nothing, so that it shows nothing: say under `expect` what must hold"}}}
	}
	played, err := scenarios.Play(ctx, s, playOptions(o, self))
	r := Result{Status: StatusPassed, State: string(played.State), Failures: mismatches(played)}
	switch {
	case err != nil:
		r.Status = StatusError
		r.Failures = append(r.Failures, Failure{File: o.File, Message: err.Error()})
	case len(r.Failures) > 0:
		r.Status = StatusFailed
	}
	return r
}

// load loads the case again: the child has a memory of its own.
func (o order) load() (*scenarios.Scenario, error) {
	cases, err := loadCases(o.File, scenarios.LoadOptions{Config: o.Config})
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

func playOptions(o order, self string) scenarios.PlayOptions {
	return scenarios.PlayOptions{StageOptions: scenarios.StageOptions{Self: self, Dir: o.Dir, Run: o.Run}, Keep: true}
}

// unplayed is the result of a case that could not be played.
func unplayed(err error) Result {
	return Result{Status: StatusError, Failures: []Failure{{Message: err.Error()}}}
}
