package embedded

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sallyport/agent"
)

// idleGap is how long an effect may wait between the entry that opened it and its
// start and still count as work. What waited longer is journaled as an attempt, from
// which the clock of the budget runs anew: parked time is free (SPEC A8).
const idleGap = time.Second

// rescan is how often Serve without names looks for runs that another process has
// let go of, which nothing else shows.
const rescan = time.Second

// scanPause lies between two scans, so that many busy runs do not make one at each of
// their commits.
const scanPause = 5 * time.Millisecond

// Serve implements [agent.Engine]. Each run is served in a goroutine of its own; one
// that fails does not stop the others. A run that another process serves is a
// [ServedError].
//
// Without names it serves every open run as soon as there is something to do: an
// effect, a delivery, a deadline. Runs that others serve are left to them. A run whose
// nodes fail is set aside until its journal moves on, and reported; if the state file
// cannot be written, Serve ends.
func (e *Engine) Serve(ctx context.Context, opts agent.ServeOptions, open func(agent.Run) (agent.Nodes, error)) error {
	ctx, done, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	defer e.topics.listen()()
	if len(opts.Runs) > 0 {
		return e.serveNamed(ctx, opts.Runs, open)
	}
	s := &server{engine: e, open: open, running: map[string]bool{}, aside: map[string]place{}, ended: make(chan departure, e.config.Parallel)}
	return s.serve(ctx)
}

func (e *Engine) serveNamed(ctx context.Context, ids []string, open func(agent.Run) (agent.Nodes, error)) error {
	ids = slices.Compact(slices.Sorted(slices.Values(ids)))
	for _, id := range ids {
		if _, err := e.find(ctx, id); err != nil {
			return err
		}
	}
	errs := make([]error, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			lock, err := e.lockFor(ctx, id, true)
			if err == nil {
				err = e.serveLocked(ctx, lock, id, open)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return outcome(ctx, errs)
}

// outcome is what Serve returns: the context's error as it is, unless something else
// went wrong too.
func outcome(ctx context.Context, errs []error) error {
	stopped := ctx.Err()
	if stopped == nil {
		return errors.Join(errs...)
	}
	errs = slices.DeleteFunc(errs, func(err error) bool {
		return err == nil || errors.Is(err, stopped) && err.Error() == stopped.Error() // else it says more
	})
	if len(errs) == 0 {
		return stopped
	}
	return errors.Join(append(errs, stopped)...)
}

// driver is the loop over a journal.
func (e *Engine) driver(l *log) *agent.Driver {
	return &agent.Driver{Log: l, Now: e.config.Now, Door: e.config.Door, Crash: e.crash}
}

// serveLocked drives a run until it rests, and gives the lock back.
func (e *Engine) serveLocked(ctx context.Context, lock *runLock, id string, open func(agent.Run) (agent.Nodes, error)) error {
	defer lock.release()
	it := e.serving.enlist(id)
	defer e.serving.dismiss(id)
	was, err := e.load(ctx, id)
	if err != nil {
		return err
	}
	l := &log{engine: e, row: was.row, served: it, resting: was.run.Rests()}
	var begun atomic.Int64
	d := e.driver(l)
	d.Wake = it.wake
	d.Open = func(run agent.Run) (agent.Nodes, error) {
		nodes, err := open(run)
		if err != nil {
			return nil, err
		}
		return &watched{Nodes: nodes, begun: &begun}, nil
	}
	run, err := e.pickUp(ctx, d, l, was)
	if err != nil {
		return err
	}
	run, err = d.Drive(ctx, run)
	lock.ended = run.State.Final()
	var store *StoreError
	if errors.As(err, &store) {
		return err // nothing more is written to what could not be
	}
	if marked := l.leave(run, was, begun.Load()); marked != nil {
		return errors.Join(err, marked)
	}
	return err
}

// watched notes which effect was begun last.
type watched struct {
	agent.Nodes
	begun *atomic.Int64
}

// Perform implements [agent.Nodes].
func (w *watched) Perform(ctx context.Context, t agent.Task) (agent.Report, error) {
	w.begun.Store(t.Effect.Seq)
	return w.Nodes.Perform(ctx, t)
}

// pickUp makes a run from the file fit to be driven: what may have been started is
// recovered, what was certainly not is only taken up, and what is due comes first.
func (e *Engine) pickUp(ctx context.Context, d *agent.Driver, l *log, was loaded) (agent.Run, error) {
	run, err := was.run, error(nil)
	if run.Open != nil && was.fresh == run.Open.Seq {
		run, err = e.takeUp(ctx, l, run)
	} else {
		run, err = d.Recover(ctx, run)
	}
	if err != nil || !passed(run, e.config.Now()) {
		return run, err
	}
	next, entry, err := agent.Advance(run, agent.FromClock(e.at(run)))
	if err != nil {
		return run, err
	}
	return next, l.Commit(ctx, agent.Commit{Run: next, Entry: entry})
}

// takeUp takes the mark off an effect that was never started. From then on it may be.
func (e *Engine) takeUp(ctx context.Context, l *log, run agent.Run) (agent.Run, error) {
	if err := l.mark(0); err != nil {
		return run, err
	}
	if !run.Startable() || run.Open.Kind == agent.Send || run.Open.Kind == agent.Present ||
		e.config.Now().Sub(run.Time) <= idleGap {
		return run, nil
	}
	next, entry, err := agent.Attempt(run, e.at(run))
	if err != nil {
		return run, err
	}
	return next, l.Commit(ctx, agent.Commit{Run: next, Entry: entry})
}

// passed reports whether the candidate of a parked run has expired.
func passed(run agent.Run, now time.Time) bool {
	t := due(run)
	return !t.IsZero() && !now.Before(t)
}

// at is the engine's clock, never earlier than the run.
func (e *Engine) at(run agent.Run) time.Time {
	if now := e.config.Now(); now.After(run.Time) {
		return now
	}
	return run.Time
}

// leave marks an open effect that was certainly not started, so that it needs no
// recovery: begun is the last that was.
func (l *log) leave(run agent.Run, was loaded, begun int64) error {
	o := run.Open
	if o == nil || o.Kind == agent.Present || o.Seq == begun {
		return nil
	}
	if o.Seq <= was.run.Seq && o.Seq != was.fresh {
		return nil // it was open before, and may have been started then
	}
	return l.mark(o.Seq)
}

// place is where a run stood when it was set aside: the sequence of its last entry
// and of its newest delivery.
type place struct{ seq, delivery int64 }

// candidate is a run with something to do.
type candidate struct {
	id string
	place
}

// departure is how the serving of one run ended.
type departure struct {
	candidate
	err error
}

// server is one Serve without names.
type server struct {
	engine  *Engine
	open    func(agent.Run) (agent.Nodes, error)
	running map[string]bool
	aside   map[string]place
	ended   chan departure
}

// serve scans for runs with something to do and serves each in a goroutine. It waits
// for all of them before it returns.
func (s *server) serve(asked context.Context) error {
	ctx, cancel := context.WithCancel(asked)
	defer cancel()
	for {
		changed := s.engine.topics.nextAny()
		next, err := s.scan(ctx)
		if err == nil {
			err = s.wait(ctx, changed, next)
		}
		if err == nil {
			err = pause(ctx, scanPause)
		}
		if err != nil {
			cancel()
			return outcome(asked, append(s.drain(), err))
		}
	}
}

// wait blocks until there may be something to do. It returns what must end Serve.
func (s *server) wait(ctx context.Context, changed <-chan struct{}, next time.Duration) error {
	timer := time.NewTimer(next)
	defer timer.Stop()
	select {
	case it := <-s.ended:
		if err := s.settle(ctx, it); err != nil {
			return err
		}
	case <-changed:
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	for { // what has ended meanwhile
		select {
		case it := <-s.ended:
			if err := s.settle(ctx, it); err != nil {
				return err
			}
		default:
			return nil
		}
	}
}

// scan starts what there is to do, and returns how long nothing else is due.
func (s *server) scan(ctx context.Context) (time.Duration, error) {
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	now := s.engine.config.Now()
	found, err := s.engine.candidates(ctx, now)
	if err != nil {
		return 0, err
	}
	for _, c := range found {
		if s.running[c.id] || len(s.running) >= s.engine.config.Parallel {
			continue
		}
		if at, ok := s.aside[c.id]; ok && at == c.place {
			continue
		}
		delete(s.aside, c.id)
		s.begin(ctx, c)
	}
	return s.engine.untilDue(ctx, now)
}

// begin serves a run in a goroutine, which serve waits for. Whoever else has the run
// may keep it: the next scan looks again.
func (s *server) begin(ctx context.Context, c candidate) {
	lock, err := takeLock(s.engine.lockPath(c.id), holder{os.Getpid(), true})
	if errors.Is(err, errHeld) {
		return
	}
	s.running[c.id] = true
	go func() {
		if err == nil {
			err = s.engine.serveLocked(ctx, lock, c.id, s.open)
		}
		s.ended <- departure{c, err}
	}()
}

// settle takes in how the serving of a run ended. It returns what must end Serve.
func (s *server) settle(ctx context.Context, it departure) error {
	delete(s.running, it.id)
	var store *StoreError
	switch {
	case it.err == nil || ctx.Err() != nil && errors.Is(it.err, ctx.Err()):
		return nil
	case errors.As(it.err, &store):
		return it.err
	}
	s.aside[it.id] = s.engine.placeOf(ctx, it.candidate)
	if s.engine.config.Report != nil {
		s.engine.config.Report(it.id, it.err)
	}
	return nil
}

// drain waits for the runs that are being served.
func (s *server) drain() (errs []error) {
	for len(s.running) > 0 {
		it := <-s.ended
		delete(s.running, it.id)
		if it.err != nil && !errors.Is(it.err, context.Canceled) && !errors.Is(it.err, context.DeadlineExceeded) {
			errs = append(errs, it.err)
		}
	}
	return errs
}

// candidatesQuery and dueQuery look at what there is to do, not at every run.
const (
	candidatesQuery = `SELECT id, seq, (SELECT coalesce(max(i.num), 0) FROM inbox i WHERE i.run = r.num)
		FROM runs r WHERE ended = 0 AND num IN (
			SELECT num FROM runs WHERE ready = 1
			UNION ALL SELECT num FROM runs WHERE deadline <= ?
			UNION ALL SELECT run FROM inbox WHERE verdict IS NULL)
		ORDER BY num`
	dueQuery = "SELECT min(deadline) FROM runs WHERE deadline > ?"
)

// candidates are the open runs with an effect, a delivery or a deadline that waits.
func (e *Engine) candidates(ctx context.Context, now time.Time) ([]candidate, error) {
	rows, err := e.reads.QueryContext(ctx, candidatesQuery, now.UnixMicro())
	if err != nil {
		return nil, e.explainRead(ctx, err)
	}
	found, err := all(rows, func(scan func(...any) error) (c candidate, err error) { return c, scan(&c.id, &c.seq, &c.delivery) })
	return found, e.explainRead(ctx, err)
}

// placeOf is where a run stands now; where it stood before, if that cannot be read.
func (e *Engine) placeOf(ctx context.Context, c candidate) place {
	at := c.place
	err := e.reads.QueryRowContext(ctx, `SELECT seq, (SELECT coalesce(max(i.num), 0) FROM inbox i WHERE i.run = r.num)
		FROM runs r WHERE id = ?`, c.id).Scan(&at.seq, &at.delivery)
	if err != nil {
		return c.place
	}
	return at
}

// untilDue is how long no deadline of a parked run passes, at most rescan.
func (e *Engine) untilDue(ctx context.Context, now time.Time) (time.Duration, error) {
	var next *int64
	err := e.reads.QueryRowContext(ctx, dueQuery, now.UnixMicro()).Scan(&next)
	if err != nil {
		return 0, e.explainRead(ctx, err)
	}
	if next == nil {
		return rescan, nil
	}
	return min(rescan, max(0, time.UnixMicro(*next).Sub(now))), nil
}
