package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Log is a run's journal as a [Driver] needs it: what engines that keep a journal of
// their own share lies above it.
type Log interface {
	Reader
	// Commit makes one entry durable, with the bodies that it names and the verdict
	// that it gives, all or nothing. It returns [ErrConflict] if the journal has an
	// entry of that sequence. After any other error nobody knows: the driver stops.
	Commit(ctx context.Context, c Commit) error
	// Inbox returns the deliveries that have no verdict yet, oldest first.
	Inbox(ctx context.Context) ([]Delivery, error)
}

// Commit is one durable write.
type Commit struct {
	Run    Run   // as it is after the entry
	Entry  Entry // zero where only a verdict is written
	Bodies []Body
	// Key is the delivery that Verdict answers; empty if the entry answers none.
	Key     string
	Verdict Verdict
}

// Driver moves one run on until it rests: it steps, commits, performs, in that
// order, and owns the one goroutine that performs an effect. Whoever drives holds
// the run's lock.
type Driver struct {
	Log Log
	// Open makes the run's nodes when the first effect is to be performed. They are
	// closed before Drive returns.
	Open func(Run) (Nodes, error)
	Now  func() time.Time
	// Door, if set, is asked before a decision is stepped: it refuses what the
	// configuration of today no longer allows, a revoked key above all. What it lets
	// pass, Step still judges.
	Door func(Run, Decision) *Refusal
	// Wake says that the inbox may hold something new. It may be nil.
	Wake <-chan struct{}
	// Crash, if set, is called at the named points; tests end the process there.
	Crash func(point string)
}

// The crash points of a driver, in the order of a call.
const (
	BeforeCommit  = "before_commit"
	AfterCommit   = "after_commit"
	BeforePerform = "before_perform"
	AfterPerform  = "after_perform"
)

// Recover makes a run that was read from a journal fit to be driven: the open Send of
// a write becomes an unknown outcome, whatever the hold, and any other effect that
// had been started, or may have been, is an attempt more. It performs nothing.
func (d *Driver) Recover(ctx context.Context, run Run) (Run, error) {
	switch {
	case run.Open == nil || run.State.Final() || run.Open.Kind == Present:
		return run, nil
	case !run.repeatable():
		out := Returned{Outcome: Outcome{Status: StatusResultUnknown, Class: ClassProtocolError, Reason: ReasonCrashed, Sent: true}}
		return d.take(ctx, run, FromNode(run.Open.Effect, out, d.at(run)), Commit{})
	case !run.Open.Released:
		return run, nil
	}
	next, entry, err := Attempt(run, d.at(run))
	if err != nil {
		return run, err
	}
	return d.commit(ctx, run, Commit{Run: next, Entry: entry})
}

// Drive takes deliveries, performs effects and appends what comes back until the run
// rests and its inbox is empty, or ctx is done. Then it starts nothing new, ends what
// may be repeated, waits for a Send, appends its outcome and returns ctx.Err(). A Send
// counts as begun once its intent is in the journal: nobody else has the connection that
// it was prepared on.
func (d *Driver) Drive(ctx context.Context, run Run) (_ Run, err error) {
	w := &work{driver: d, run: run, done: make(chan performed, 1)}
	defer func() { err = errors.Join(err, w.close()) }()
	// What came due while nobody drove comes first: an expired candidate is not shown.
	if due, ok := run.Due(); ok && !d.Now().Before(due) {
		if err := w.tick(context.WithoutCancel(ctx)); err != nil {
			return w.run, err
		}
	}
	for {
		if err := w.inbox(ctx); err != nil {
			return w.run, err
		}
		if ctx.Err() == nil || w.intended() {
			given, err := w.start(ctx)
			if err != nil {
				return w.run, err
			}
			if given {
				continue
			}
		}
		if w.busy == nil && (ctx.Err() != nil || w.run.Rests()) {
			return w.run, ctx.Err()
		}
		if err := w.wait(ctx); err != nil {
			return w.run, err
		}
	}
}

// work is one Drive under way.
type work struct {
	driver *Driver
	run    Run
	nodes  Nodes
	busy   *inFlight
	done   chan performed
	shown  int64 // the Present that was performed
	intent int64 // the Send that was opened here
}

// inFlight is the effect that the one goroutine performs.
type inFlight struct {
	effect Effect
	cancel context.CancelFunc
}

type performed struct {
	effect Effect
	report Report
	err    error
}

// start begins the open effect, unless it is withheld, not due, or begun already. It
// reports whether an operator had given what the effect brings: then that is taken in.
func (w *work) start(ctx context.Context) (given bool, err error) {
	if w.busy != nil || !w.run.Startable() || w.early() > 0 {
		return false, nil
	}
	open := *w.run.Open
	if open.Kind == Present && w.shown == open.Seq {
		return false, nil
	}
	if open.Substitute != nil {
		return true, w.came(ctx, performed{effect: open.Effect, report: Report{Result: open.Substitute.Answer()}})
	}
	if w.nodes == nil {
		nodes, err := w.driver.Open(w.run)
		if err != nil {
			return false, fmt.Errorf("open the nodes of run %s: %w", w.run.ID, err)
		}
		w.nodes = nodes
	}
	if open.Kind == Send {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	w.busy = &inFlight{effect: open.Effect, cancel: cancel}
	task := Task{Run: w.run, Effect: open, Reader: w.driver.Log}
	w.driver.crash(BeforePerform, open.Kind)
	go func() { // owned by this work: close waits for it
		report, err := w.nodes.Perform(ctx, task)
		w.driver.crash(AfterPerform, open.Kind)
		w.done <- performed{open.Effect, report, err}
	}()
	return false, nil
}

// early is how long the open effect has to wait yet.
func (w *work) early() time.Duration {
	if w.run.Open.After.IsZero() {
		return 0
	}
	return w.run.Open.After.Sub(w.driver.Now())
}

// wait blocks until something happens and takes it in.
func (w *work) wait(ctx context.Context) error {
	timer := w.timer()
	if timer != nil {
		defer timer.Stop()
	}
	stop := ctx.Done()
	if ctx.Err() != nil {
		stop = nil // asked to stop already: only the effect in flight counts
		w.interrupt()
	}
	select {
	case p := <-w.done:
		return w.settle(ctx, p)
	case <-w.driver.Wake:
	case <-stop:
	case <-tickOf(timer):
		return w.tick(ctx)
	}
	return nil
}

func tickOf(t *time.Timer) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C
}

// timer fires when a deadline of the run passes, or a delayed effect may start.
func (w *work) timer() *time.Timer {
	next := time.Duration(-1)
	if due, ok := w.run.Due(); ok {
		next = max(0, due.Sub(w.driver.Now()))
	}
	if w.busy == nil && w.run.Startable() {
		if early := w.early(); early > 0 && (next < 0 || early < next) {
			next = early
		}
	}
	if next < 0 {
		return nil
	}
	return time.NewTimer(next)
}

// interrupt ends the effect in flight if it may be repeated. A Send ends by its own
// limit: its outcome is worth waiting for.
func (w *work) interrupt() {
	if w.busy != nil && w.busy.effect.Kind != Send {
		w.busy.cancel()
	}
}

// settle ends the effect in flight, and takes in what it brought back.
func (w *work) settle(ctx context.Context, p performed) error {
	w.busy.cancel()
	w.busy = nil
	return w.came(ctx, p)
}

// came takes in what an effect brought.
func (w *work) came(ctx context.Context, p performed) error {
	switch {
	case p.err != nil && w.run.Open != nil && w.run.Open.Seq == p.effect.Seq:
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("run %s: %s: %w", w.run.ID, p.effect.Kind, p.err)
	case p.err != nil:
		return nil // its effect was closed meanwhile: a cancelled Ask
	case p.report.Result == nil:
		w.shown = p.effect.Seq
		return nil
	}
	if _, intent := p.report.Result.(Checked); intent && ctx.Err() != nil {
		return nil // nothing new is started: the call is prepared again on resume
	}
	ev := FromNode(p.effect, p.report.Result, w.driver.at(w.run))
	next, err := w.driver.take(context.WithoutCancel(ctx), w.run, ev, Commit{Bodies: p.report.Bodies})
	var no *Refusal
	if errors.As(err, &no) {
		return w.dropped(ctx, ev, no)
	}
	if err != nil {
		return err
	}
	w.run = next
	if _, intent := p.report.Result.(Checked); intent && next.Open != nil {
		w.intent = next.Open.Seq
	}
	return nil
}

// intended reports whether the open effect is a Send that was prepared here.
func (w *work) intended() bool {
	return w.run.Open != nil && w.run.Open.Kind == Send && w.run.Open.Seq == w.intent
}

// dropped notes a result that came too late, or an intent that a pause or an expiry
// overtook: the call is prepared again. Any other refused result is a fault of a node.
func (w *work) dropped(ctx context.Context, ev Event, why *Refusal) error {
	switch why.Code {
	case CodeStale, CodeEnded, CodeHeld, CodeLate:
	default:
		return fmt.Errorf("run %s: a node returned what the run cannot take: %w", w.run.ID, why)
	}
	run, entry, ok, err := Note(w.run, ev, why)
	if err != nil || !ok {
		return err
	}
	w.run, err = w.driver.commit(context.WithoutCancel(ctx), w.run, Commit{Run: run, Entry: entry})
	return err
}

func (w *work) tick(ctx context.Context) error {
	next, err := w.driver.take(ctx, w.run, FromClock(w.driver.at(w.run)), Commit{})
	var no *Refusal
	if errors.As(err, &no) {
		return nil // not due yet: the timer was early, or an effect's turn has come
	}
	if err != nil {
		return err
	}
	w.moved(next)
	return nil
}

// inbox takes the deliveries that wait and gives each its verdict.
func (w *work) inbox(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	waiting, err := w.driver.Log.Inbox(ctx)
	if err != nil {
		return fmt.Errorf("read the inbox of run %s: %w", w.run.ID, err)
	}
	for _, del := range waiting {
		next, _, err := w.driver.Judge(ctx, w.run, del)
		if err != nil {
			return err
		}
		w.moved(next)
	}
	return nil
}

// moved takes the run that a decision or the clock made, and ends an effect in
// flight that the run no longer waits for.
func (w *work) moved(next Run) {
	w.run = next
	if w.busy != nil && (next.Open == nil || next.Open.Seq != w.busy.effect.Seq) {
		w.busy.cancel()
	}
}

// close waits for the goroutine and closes the nodes.
func (w *work) close() error {
	if w.busy != nil {
		w.interrupt()
		<-w.done
	}
	if w.nodes == nil {
		return nil
	}
	if err := w.nodes.Close(); err != nil {
		return fmt.Errorf("close the nodes of run %s: %w", w.run.ID, err)
	}
	return nil
}

// Judge steps a delivery and commits its verdict: with the event if the run takes
// it, else with a note.
func (d *Driver) Judge(ctx context.Context, run Run, del Delivery) (Run, Verdict, error) {
	ev := FromOutside(del.Decision, del.Actor, d.at(run))
	if no := d.atDoor(run, del); no != nil {
		return d.turnDown(ctx, run, ev, del.Key, no)
	}
	next, entry, err := Advance(run, ev)
	var no *Refusal
	if errors.As(err, &no) {
		return d.turnDown(ctx, run, ev, del.Key, no)
	}
	if err != nil {
		return run, Verdict{}, err
	}
	v := Verdict{Seq: entry.Seq, Row: entry.Row, State: next.State}
	next, err = d.commit(ctx, run, Commit{Run: next, Entry: entry, Bodies: del.Bodies, Key: del.Key, Verdict: v})
	return next, v, err
}

// atDoor refuses a decision before it is stepped: one that today's configuration does
// not allow, or an edit or a substitute whose bodies were not delivered with it.
func (d *Driver) atDoor(run Run, del Delivery) *Refusal {
	for _, ref := range named(del.Decision) {
		if !ref.IsZero() && !slices.ContainsFunc(del.Bodies, func(b Body) bool { return b.Ref == ref }) {
			return refuse(CodeInvalid, "the %s came without the body %s", del.Decision.kind(), ref)
		}
	}
	if d.Door == nil {
		return nil
	}
	return d.Door(run, del.Decision)
}

func (d *Driver) turnDown(ctx context.Context, run Run, ev Event, key string, no *Refusal) (Run, Verdict, error) {
	v := Verdict{State: run.State, Refusal: no}
	c := Commit{Run: run, Key: key}
	if !run.State.Final() {
		noted, entry, ok, err := Note(run, ev, no)
		if err != nil {
			return run, Verdict{}, err
		}
		if ok {
			v.Seq, c.Run, c.Entry = entry.Seq, noted, entry
		}
	}
	c.Verdict = v
	next, err := d.commit(ctx, run, c)
	return next, v, err
}

// take advances the run and commits.
func (d *Driver) take(ctx context.Context, run Run, ev Event, c Commit) (Run, error) {
	next, entry, err := Advance(run, ev)
	if err != nil {
		return run, err
	}
	c.Run, c.Entry = next, entry
	return d.commit(ctx, run, c)
}

func (d *Driver) commit(ctx context.Context, was Run, c Commit) (Run, error) {
	d.crash(BeforeCommit, "")
	if err := d.Log.Commit(ctx, c); err != nil {
		return was, fmt.Errorf("append entry %d of run %s: %w", c.Entry.Seq, c.Run.ID, err)
	}
	d.crash(AfterCommit, "")
	return c.Run, nil
}

// at is the engine's clock, never earlier than the run.
func (d *Driver) at(run Run) time.Time {
	now := stamp(d.Now())
	if now.Before(run.Time) {
		return run.Time
	}
	return now
}

func (d *Driver) crash(point string, kind EffectKind) {
	if d.Crash == nil {
		return
	}
	if kind != "" {
		point += ":" + string(kind)
	}
	d.Crash(point)
}
