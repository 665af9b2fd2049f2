package scenarios

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/nodes/llm"
	"sallyport/tools/grant"
)

// A scenario with faults is served by processes of their own, one after the other: each
// is a leg, which ends by the fault that befalls it; the last has none. What happens in
// a leg comes back over its stdout, record by record.

// LegCommand is the command of the executable that serves a leg.
const LegCommand = "scenario-leg"

// crashPoints are the points of the runtime at which a process can die.
func crashPoints() []string {
	points := []string{agent.BeforeCommit, agent.AfterCommit, embedded.InCommit, embedded.Delivered}
	for _, k := range []agent.EffectKind{agent.Ask, agent.Prepare, agent.Send, agent.Observe, agent.Present, agent.Verify} {
		points = append(points, agent.BeforePerform+":"+string(k), agent.AfterPerform+":"+string(k))
	}
	return points
}

// order is what a leg is to do; it comes over stdin.
type order struct {
	File   string   `json:"file"`
	Name   string   `json:"name"` // of the case
	Config string   `json:"config,omitempty"`
	Dir    string   `json:"dir"` // of the stage
	State  string   `json:"state"`
	Run    string   `json:"run"`
	Actor  string   `json:"actor"`
	Decide Verb     `json:"decide,omitempty"`
	Fault  *Fault   `json:"fault,omitempty"`
	Tape   []record `json:"tape"` // what happened before
}

// elsewhere serves the run in legs.
func (p *play) elsewhere(ctx context.Context) (*facts, error) {
	s, began := p.stage.Scenario, time.Now()
	for i := 0; i <= len(s.Faults); i++ {
		var fault *Fault
		if i < len(s.Faults) {
			fault = &s.Faults[i]
		}
		befallen, err := p.leg(ctx, fault)
		if err != nil {
			return nil, err
		}
		if !befallen {
			break
		}
		if err := p.remove(fault.Removes); err != nil {
			return nil, err
		}
	}
	p.took.Serve = time.Since(began)
	run, entries, err := Load(ctx, p.stage.Host.Engine, p.stage.Run)
	if err != nil {
		return nil, err
	}
	return p.facts(run, entries, nil)
}

// remove takes a file off the stage, between two processes.
func (p *play) remove(name string) error {
	if name == "" {
		return nil
	}
	if err := os.Remove(p.stage.path(name)); err != nil {
		return fmt.Errorf("play %q: take %q off the stage: %w", p.stage.Scenario.File, name, err)
	}
	return nil
}

// leg runs one process and takes its tape in. It reports whether the fault befell it.
func (p *play) leg(ctx context.Context, fault *Fault) (bool, error) {
	o := order{
		File: p.stage.Scenario.File, Name: p.stage.Scenario.Name(), Config: p.stage.Scenario.Config.File,
		Dir: p.stage.Dir, State: p.stage.State, Run: p.stage.Run, Actor: p.stage.Host.Actor, Decide: p.options.Decide,
		Fault: fault, Tape: p.tape.kept,
	}
	in, err := json.Marshal(o)
	if err != nil {
		return false, fmt.Errorf("play %q: order a process: %w", o.File, err)
	}
	before := p.tape.faults
	said := &lastWords{}
	c := exec.CommandContext(ctx, p.options.Self, LegCommand)
	c.Stdin, c.Stderr, c.WaitDelay = bytes.NewReader(in), said, legDelay
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		return false, fmt.Errorf("play %q: start a process: %w", o.File, err)
	}
	end, err := p.listen(out)
	exit := c.Wait()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	befallen := p.tape.faults > before
	switch {
	case befallen && fault.Crash != "" && exit == nil:
		return false, fmt.Errorf("play %q: the process that was to be killed at %q was not", o.File, fault.Crash)
	case befallen:
		return true, nil
	case err != nil:
		return false, fmt.Errorf("play %q: hear the process that serves the run: %w", o.File, err)
	case end.Script != nil:
		return false, &llm.ScriptError{File: end.Script.File, Line: end.Script.Line, Reason: end.Script.Reason}
	case end.Error != "":
		return false, fmt.Errorf("play %q: %s", o.File, end.Error)
	case exit != nil:
		return false, fmt.Errorf("play %q: the process that serves the run: %w: %s", o.File, exit, said)
	}
	return false, nil
}

// legDelay is how long the pipes of a leg may stay open after its process.
const legDelay = 5 * time.Second

// maxRecord bounds one record of a tape, in bytes: a request of a model, written twice.
const maxRecord = 64 << 20

// listen takes the records of a leg, and returns what it said at its end.
func (p *play) listen(out io.Reader) (end record, err error) {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxRecord)
	for lines.Scan() {
		var r record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return end, fmt.Errorf("read a record: %w", err)
		}
		if r.Error != "" || r.Script != nil {
			end = r
		}
		p.tape.add(r)
	}
	return end, lines.Err()
}

// lastWords keeps the end of what a process writes to stderr.
type lastWords struct{ text string }

// Write implements [io.Writer].
func (w *lastWords) Write(data []byte) (int, error) {
	const most = 2000
	w.text += string(data)
	w.text = w.text[max(0, len(w.text)-most):]
	return len(data), nil
}

// String is what was kept, in one line.
func (w *lastWords) String() string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(w.text, "\ufffd")), " ")
}

// Leg serves one leg of a scenario, on a stage that is as base says but for where it
// lies: it reads its order from in, and tells what happens on out. fill makes the process's disk full. It returns the exit code; a fault may end
// the process before.
func Leg(ctx context.Context, base StageOptions, in io.Reader, out io.Writer, fill func() error) int {
	t := &tape{to: out}
	if err := serveLeg(ctx, base, in, t, fill); err != nil {
		r := record{Error: err.Error()}
		var script *llm.ScriptError
		if errors.As(err, &script) {
			r.Script = &mistake{script.File, script.Line, script.Reason}
		}
		t.add(r)
	}
	if t.failed != nil {
		return 1
	}
	return 0
}

func serveLeg(ctx context.Context, base StageOptions, in io.Reader, t *tape, fill func() error) (err error) {
	var o order
	if err := json.NewDecoder(in).Decode(&o); err != nil {
		return fmt.Errorf("read the order of a leg: %w", err)
	}
	s, err := caseOf(o)
	if err != nil {
		return err
	}
	st, err := restage(s, o, base)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	p := newPlay(st, PlayOptions{StageOptions: base, Decide: o.Decide})
	p.ctx = ctx
	p.tape.to = t.to
	p.recall(o.Tape)
	p.attach()
	p.befall(o.Fault, fill)
	if _, _, err := Load(ctx, st.Host.Engine, st.Run); errors.Is(err, agent.ErrNoRun) {
		_, found, err := st.Begin(ctx)
		if err != nil {
			return err
		}
		p.tape.add(record{Missing: missingOf(found)})
	} else if err != nil {
		return err
	}
	if _, err := p.serve(ctx); err != nil {
		return err
	}
	return p.tape.failed
}

// caseOf loads the case that an order names.
func caseOf(o order) (*Scenario, error) {
	cases, err := LoadCases(o.File, LoadOptions{Config: o.Config})
	if err != nil {
		return nil, err
	}
	for _, s := range cases {
		if s.Name() == o.Name {
			return s, nil
		}
	}
	return nil, fmt.Errorf("load %q: it has no case %q any more", o.File, o.Name)
}

// restage opens a stage that is set up already.
func restage(s *Scenario, o order, base StageOptions) (*Stage, error) {
	st := &Stage{
		Scenario: s, Run: o.Run, Dir: o.Dir, Desk: filepath.Join(o.Dir, deskFolder), State: o.State,
		scripted: true, closeLog: func() error { return nil },
	}
	st.clock.jump(-s.ahead())
	for _, name := range st.keyNames() {
		key, err := grant.LoadPrivateKey(filepath.Join(st.State, keysFolder, name+".json"), nil)
		if err != nil {
			return nil, fmt.Errorf("read a key of the stage: %w", err)
		}
		st.Keys = append(st.Keys, key)
	}
	base.Actor = o.Actor
	if err := st.open(base); err != nil {
		return nil, err
	}
	return st, st.openLog(nil)
}

// recall takes what happened in earlier legs.
func (p *play) recall(before []record) {
	for _, r := range before {
		p.tape.take(r)
		p.stage.clock.jump(time.Duration(r.Jump))
		if r.Jumped != nil {
			p.watch.jumped[*r.Jumped] = true
		}
		if r.Reached != "" {
			p.watch.reached[r.Reached]++
		}
	}
}

// befall lets a fault come over this process.
func (p *play) befall(f *Fault, fill func() error) {
	if f == nil {
		return
	}
	left, pass := f.nth(), p.stage.passed
	p.stage.passed = func(point string) {
		pass(point)
		if point != f.point() {
			return
		}
		p.tape.mu.Lock()
		left--
		due := left == 0
		p.tape.mu.Unlock()
		if !due {
			return
		}
		p.tape.add(record{Fault: point})
		if f.Crash != "" {
			die()
		}
		if err := fill(); err != nil {
			panic(err) // the scenario could not be played as it is written
		}
	}
}

// die ends this process as SIGKILL does: nothing of it runs any more.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {} // until it has arrived
}
