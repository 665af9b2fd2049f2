package scenarios

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/agent"
)

// PlayOptions say how a scenario is played.
type PlayOptions struct {
	StageOptions
	// Decide, if not empty, replaces every decision of the scenario. Then the end is
	// not compared with what the scenario expects of its own decisions.
	Decide Verb
	// Keep leaves the folder of the stage.
	Keep bool
	// Began, if set, is told of the run before it is served; what it returns is called
	// when the serving is over.
	Began func(*Stage, agent.Run) (over func(agent.Run))
	// Present, if set, shows a pending candidate before a decision is given.
	Present func(context.Context, *Stage, agent.Run) error
}

// Result is how a play ended.
type Result struct {
	Scenario   string      `json:"scenario"`
	File       string      `json:"file"`
	Run        string      `json:"run"`
	State      agent.State `json:"state"`
	Reason     string      `json:"reason,omitempty"`
	Held       bool        `json:"-"`
	Compared   bool        `json:"compared"` // with what the scenario expects
	Mismatches []string    `json:"mismatches"`
	Calls      []Call      `json:"calls"`
	Dir        string      `json:"dir,omitempty"`       // of the stage, if it was kept
	StateDir   string      `json:"state_dir,omitempty"` // likewise

	Last agent.Run `json:"-"`
}

// Passed reports whether everything was as expected.
func (r Result) Passed() bool { return len(r.Mismatches) == 0 }

// Play sets a scenario up with real parts, serves its run, gives its decisions and
// compares the end with what it expects. The folder is removed unless the run parked
// or Keep is set. An error means that the play could not be finished; a scenario that
// does not hold is a Result with mismatches.
func Play(ctx context.Context, s *Scenario, o PlayOptions) (result Result, err error) {
	o.Scripted = o.Decide != VerbWait
	if o.Name == "" {
		o.Name = s.Name()
	}
	st, err := SetUp(s, o.StageOptions)
	if err != nil {
		return Result{}, err
	}
	p := &play{stage: st, options: o}
	defer func() {
		parked := err == nil && result.State.Open()
		err = errors.Join(err, st.Close())
		if o.Keep || parked {
			result.Run, result.Dir, result.StateDir = st.Run, st.Dir, st.State
			return
		}
		err = errors.Join(err, st.Remove())
	}()
	run, err := p.run(ctx)
	if err != nil {
		return Result{}, err
	}
	return p.result(ctx, run)
}

// play is a scenario under way.
type play struct {
	stage   *Stage
	options PlayOptions
	given   int  // decisions so far
	verdict Verb // the last of them, which stands until the candidate has all signatures
}

func (p *play) run(ctx context.Context) (run agent.Run, err error) {
	run, _, err = p.stage.Begin(ctx)
	if err != nil {
		return run, err
	}
	if p.options.Began != nil {
		over := p.options.Began(p.stage, run)
		defer func() { over(run) }()
	}
	for {
		if err := p.stage.Host.Serve(ctx, p.stage.Run); err != nil {
			return run, fmt.Errorf("play %q: %w", p.stage.Scenario.File, err)
		}
		if run, _, err = Load(ctx, p.stage.Host.Engine, p.stage.Run); err != nil {
			return run, err
		}
		if run.State != agent.StateAwaitingApproval {
			return run, nil
		}
		if went, err := p.decide(ctx, run); err != nil || !went {
			return run, err
		}
	}
}

// decide gives the next decision; false if there is none and the run parks.
func (p *play) decide(ctx context.Context, run agent.Run) (bool, error) {
	if p.options.Present != nil {
		if err := p.options.Present(ctx, p.stage, run); err != nil {
			return false, err
		}
	}
	var d agent.Delivery
	if len(run.Call.Grants) == 0 {
		p.verdict = p.verb()
	}
	switch p.verdict {
	case VerbApprove:
		var err error
		if d, err = Approval(run, p.stage.Keys[len(run.Call.Grants)], time.Now()); err != nil {
			return false, err
		}
	case VerbReject:
		d = Refusal(run, p.stage.Host.Actor)
	case VerbWait:
		return false, nil
	}
	v, err := p.stage.Host.Deliver(ctx, run, d)
	if err == nil && v.Refusal != nil {
		err = v.Refusal
	}
	if err != nil {
		return false, fmt.Errorf("play %q: decision %d: %w", p.stage.Scenario.File, p.given, err)
	}
	return true, nil
}

// verb is the next decision: a scenario that has no more of them waits.
func (p *play) verb() Verb {
	given := p.given
	p.given++
	switch {
	case p.options.Decide != "":
		return p.options.Decide
	case given < len(p.stage.Scenario.Approvals):
		return p.stage.Scenario.Approvals[given]
	}
	return VerbWait
}

func (p *play) result(ctx context.Context, run agent.Run) (Result, error) {
	s := p.stage.Scenario
	r := Result{
		Scenario: s.Title, File: s.File, Run: run.ID, State: run.State, Reason: run.Reason, Held: run.Held,
		Compared: p.options.Decide == "", Mismatches: []string{}, Last: run,
	}
	run, entries, err := Load(ctx, p.stage.Host.Engine, run.ID)
	if err != nil {
		return r, err
	}
	if r.Calls, err = Calls(entries); err != nil {
		return r, err
	}
	if r.Compared {
		r.Mismatches = append(r.Mismatches, s.Expect.compare(outcome{
			run: run, calls: r.Calls, desk: p.stage.Desk, decided: p.given, decisions: len(s.Approvals),
		})...)
	}
	return r, nil
}

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
