package scenarios

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"sallyport/agent"
)

// PlayOptions say how a scenario is played.
type PlayOptions struct {
	StageOptions
	// Decide, if not empty, replaces every decision of the scenario. Then the end is
	// not compared with what the scenario expects of its own decisions.
	Decide Verb
	// Keep leaves the folder of the stage; KeepFailed does if something was otherwise.
	Keep, KeepFailed bool
	// Remove removes the folder although the run rests and could be gone on with.
	Remove bool
	// Update rewrites the golden journal that the scenario names, if it is otherwise.
	Update bool
	// Began, if set, is told of the run before it is served; what it returns is called
	// when the serving is over. A scenario with faults serves its run elsewhere.
	Began func(*Stage, agent.Run) (over func(agent.Run))
	// Present, if set, shows a pending candidate before a decision is given.
	Present func(context.Context, *Stage, agent.Run) error
}

// Result is how a play ended.
type Result struct {
	Scenario   string      `json:"scenario"`
	Case       string      `json:"case,omitempty"`
	File       string      `json:"file"`
	Run        string      `json:"run"`
	State      agent.State `json:"state"`
	Reason     string      `json:"reason,omitempty"`
	Held       bool        `json:"-"`
	Compared   bool        `json:"compared"` // with what the scenario expects
	Mismatches []Mismatch  `json:"mismatches"`
	Calls      []Call      `json:"calls"`
	Tail       []string    `json:"-"`                   // the last entries of the journal, in words
	Took       Timings     `json:"-"`                   // how long each part was
	Updated    string      `json:"updated,omitempty"`   // the golden journal that was rewritten
	Dir        string      `json:"dir,omitempty"`       // of the stage, if it was kept
	StateDir   string      `json:"state_dir,omitempty"` // likewise

	Last agent.Run `json:"-"`
}

// Timings are how long the parts of a play took.
type Timings struct {
	SetUp, Begin, Serve, Compare, Total time.Duration
}

// Passed reports whether everything was as expected.
func (r Result) Passed() bool { return len(r.Mismatches) == 0 }

// Play sets a scenario up with real parts, serves its run, gives its decisions and
// compares the end with what it expects. The folder is removed unless the run parked
// or the options keep it. An error means that the play could not be finished; a
// scenario that does not hold is a Result with mismatches. Beside an error the result
// holds what there was.
func Play(ctx context.Context, s *Scenario, o PlayOptions) (result Result, err error) {
	start := time.Now()
	o.Scripted = o.Decide != VerbWait
	if o.Name == "" {
		o.Name = s.base() // a case may have a long name, and a grant holds the run's
	}
	result = Result{Scenario: s.Title, Case: s.Case, File: s.File, Compared: o.Decide == "", Mismatches: []Mismatch{}, Calls: []Call{}}
	st, err := SetUp(s, o.StageOptions)
	if err != nil {
		return result, err
	}
	result.Run = st.Run
	p := newPlay(st, o)
	p.took.SetUp = time.Since(start)
	defer func() {
		result.Took = p.took
		result.Took.Total = time.Since(start)
		parked := err == nil && result.State.Open()
		err = errors.Join(err, st.Close())
		if o.Keep || parked && !o.Remove || o.KeepFailed && (err != nil || !result.Passed()) {
			result.Dir, result.StateDir = st.Dir, st.State
			return
		}
		err = errors.Join(err, st.Remove())
	}()
	x, err := p.perform(ctx)
	if err != nil {
		result.Tail = p.tail()
		return result, err
	}
	err = p.result(ctx, &result, x)
	return result, err
}

// play is a scenario under way.
type play struct {
	stage   *Stage
	options PlayOptions
	tape    *tape
	watch   *watch
	took    Timings
	ctx     context.Context // of the whole play, for what is delivered between effects
}

func newPlay(st *Stage, o PlayOptions) *play {
	p := &play{stage: st, options: o, tape: &tape{waits: &patience{clock: &st.clock}}}
	p.watch = newWatch(p)
	return p
}

// perform serves the run, here or, where it has faults, in processes of its own.
func (p *play) perform(ctx context.Context) (*facts, error) {
	if len(p.stage.Scenario.Faults) > 0 {
		return p.elsewhere(ctx)
	}
	p.ctx = ctx
	p.attach()
	began := time.Now()
	run, found, err := p.stage.Begin(ctx)
	p.took.Begin = time.Since(began)
	if err != nil {
		if p.stage.Scenario.Expect.Begin == nil || ctx.Err() != nil {
			return nil, err
		}
		return p.facts(agent.Run{}, nil, err)
	}
	p.tape.missing = missingOf(found)
	defer func() { p.took.Serve = time.Since(began) - p.took.Begin }()
	if run, err = p.served(ctx, run); err != nil {
		return nil, err
	}
	_, entries, err := Load(ctx, p.stage.Host.Engine, run.ID)
	if err != nil {
		return nil, err
	}
	return p.facts(run, entries, nil)
}

// attach makes the host tell the play what happens.
func (p *play) attach() {
	p.stage.Host.hear = p.tape.hear
	p.stage.Host.direct = p.watch.direct
	p.stage.passed = p.tape.waits.pass
}

// served serves a run that has begun.
func (p *play) served(ctx context.Context, run agent.Run) (_ agent.Run, err error) {
	if p.options.Began != nil {
		over := p.options.Began(p.stage, run)
		defer func() { over(run) }()
	}
	run, err = p.serve(ctx)
	return run, err
}

// maxRests bounds how often a play goes on with a run that rests.
const maxRests = 1000

// serve moves the run on until nothing of the scenario moves it any more.
func (p *play) serve(ctx context.Context) (run agent.Run, err error) {
	for range maxRests {
		ended := p.stage.Host.Serve(ctx, p.stage.Run)
		var entries []agent.Entry
		if run, entries, err = Load(context.WithoutCancel(ctx), p.stage.Host.Engine, p.stage.Run); err != nil {
			return run, errors.Join(ended, err)
		}
		if ended != nil && ctx.Err() == nil && unchecked(run) {
			if again, err := p.watch.reach(ctx, PointUnchecked, run); err != nil || !again {
				return run, err
			}
			continue
		}
		if ended != nil {
			return run, fmt.Errorf("play %q: %w", p.stage.Scenario.File, ended)
		}
		if run.State.Final() {
			return run, nil
		}
		if moved, err := p.rests(ctx, run, entries); err != nil || !moved {
			return run, err
		}
	}
	return run, fmt.Errorf("play %q: the run has rested %d times and has not ended", p.stage.Scenario.File, maxRests)
}

// unchecked reports whether the read-back of a write could not be made: the run stays as
// it is until somebody has it made again.
func unchecked(run agent.Run) bool {
	return run.State == agent.StateNeedsVerification && run.Startable() && run.Open.Kind == agent.Verify
}

// rests does what the scenario does where a run rests; false if it does nothing more.
func (p *play) rests(ctx context.Context, run agent.Run, entries []agent.Entry) (bool, error) {
	at := restOf(run)
	if at == "" {
		return false, nil
	}
	if acted, err := p.watch.reach(ctx, at, run); err != nil || acted {
		return acted, err
	}
	if at != PointWaiting {
		return false, nil
	}
	return p.decide(ctx, run, candidates(entries)-1)
}

// restOf is the point at which a run rests; empty where nothing could be done.
func restOf(run agent.Run) Point {
	switch {
	case run.Held:
		return PointHeld
	case run.State == agent.StateAwaitingApproval:
		return PointWaiting
	case run.State == agent.StateNeedsVerification:
		return PointUnknown
	}
	return ""
}

// candidates counts how often a candidate came up.
func candidates(entries []agent.Entry) int {
	n := 0
	for _, e := range entries {
		if e.Kind == agent.EntryEvent && e.Row == agent.RowApprovalRequired {
			n++
		}
	}
	return n
}

// facts are what the play came to.
func (p *play) facts(run agent.Run, entries []agent.Entry, refused error) (*facts, error) {
	calls, err := Calls(entries)
	if err != nil {
		return nil, err
	}
	x := &facts{
		stage: p.stage, run: run, entries: entries, calls: calls, refused: refused, update: p.options.Update,
		missing: p.tape.missing, heard: p.tape.heard, given: p.tape.given, shown: p.tape.shown, asked: candidates(entries), faults: p.tape.faults,
		jumped: p.tape.jumped, handed: p.tape.handed,
	}
	x.secrets, err = p.secrets(entries)
	return x, err
}

// result fills in how the play ended.
func (p *play) result(ctx context.Context, r *Result, x *facts) error {
	began := time.Now()
	r.State, r.Reason, r.Held, r.Last = x.run.State, x.run.Reason, x.run.Held, x.run
	r.Calls, r.Tail = append(r.Calls, x.calls...), tail(x.entries)
	x.body = func(ref agent.BodyRef) ([]byte, error) { return p.stage.Host.Engine.Body(ctx, x.run.ID, ref) }
	if !r.Compared {
		return nil
	}
	found, err := p.stage.Scenario.Expect.compare(ctx, x)
	r.Mismatches, r.Updated = append(r.Mismatches, found...), x.updated
	p.took.Compare = time.Since(began)
	return err
}

// tail is the end of the journal, as far as it can be read.
func (p *play) tail() []string {
	_, entries, _ := Load(context.WithoutCancel(p.context()), p.stage.Host.Engine, p.stage.Run) // what there is
	return tail(entries)
}

func (p *play) context() context.Context {
	if p.ctx == nil {
		return context.Background()
	}
	return p.ctx
}

// index is a path's step.
func index(i int) string { return strconv.Itoa(i) }

// Load replays a run's journal and returns its entries too. The run need not have
// begun in this process.
func Load(ctx context.Context, e agent.Engine, id string) (agent.Run, []agent.Entry, error) {
	var run agent.Run
	var entries []agent.Entry
	for entry, err := range e.Journal(ctx, id, 1, false) {
		if err != nil {
			return run, entries, err
		}
		if run, err = agent.Apply(run, entry); err != nil {
			return run, entries, fmt.Errorf("read run %s: %w", id, err)
		}
		entries = append(entries, entry)
	}
	if run.Seq == 0 {
		return run, nil, fmt.Errorf("read run %s: %w", id, agent.ErrNoRun)
	}
	return run, entries, nil
}
