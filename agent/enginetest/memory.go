// Package enginetest holds what every engine must survive, as one suite ([Run]), and
// the in-memory engine that is the second engine from the start: it keeps nothing
// when the process ends, and serves for tests, proofs and examples.
package enginetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"sallyport/agent"
)

// Memory is an engine that keeps its runs in memory. The zero value is not usable:
// see [NewMemory]. Its methods may be called from many goroutines.
type Memory struct {
	now   func() time.Time
	crash func(point string)

	mu   sync.Mutex
	runs map[string]*record
	wake *sync.Cond // something changed in any run
}

// record is one run: its journal, its bodies and its inbox.
type record struct {
	id       string
	run      agent.Run
	entries  []agent.Entry
	bodies   map[string][]byte
	inbox    []agent.Delivery
	verdicts map[string]agent.Verdict
	served   bool
	wake     chan struct{} // to the driver, if one serves
	started  time.Time
}

// NewMemory makes an empty engine. A nil now is time.Now. crash, if not nil, is
// called at the points of [agent.Driver].
func NewMemory(now func() time.Time, crash func(point string)) *Memory {
	if now == nil {
		now = time.Now
	}
	m := &Memory{now: now, crash: crash, runs: map[string]*record{}}
	m.wake = sync.NewCond(&m.mu)
	return m
}

// Start implements [agent.Engine].
func (m *Memory) Start(_ context.Context, spec agent.Spec, actor string, bodies []agent.Body) (agent.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.runs[spec.Run]; ok {
		if !r.run.Spec.Equal(spec) {
			return agent.Run{}, fmt.Errorf("start run %s: %w", spec.Run, agent.ErrExists)
		}
		return r.run, nil
	}
	commits, err := m.beginning(spec, actor, bodies)
	if err != nil {
		return agent.Run{}, fmt.Errorf("start run %s: %w", spec.Run, err)
	}
	r := &record{
		id: spec.Run, bodies: map[string][]byte{}, verdicts: map[string]agent.Verdict{},
		wake: make(chan struct{}, 1), started: commits[0].Run.Time,
	}
	m.runs[spec.Run] = r
	for _, c := range commits {
		m.append(r, c)
	}
	return r.run, nil
}

// beginning is what a run's journal begins with; the lock is held.
func (m *Memory) beginning(spec agent.Spec, actor string, bodies []agent.Body) ([]agent.Commit, error) {
	if spec.Fork == nil {
		run, entry, err := agent.Advance(agent.Run{}, agent.Begin(spec, actor, m.now()))
		return []agent.Commit{{Run: run, Entry: entry, Bodies: bodies}}, err
	}
	parent, err := m.record(spec.Fork.Run)
	if err != nil {
		return nil, err
	}
	commits, refs, err := agent.Carry(spec, actor, stored(parent.entries), m.now())
	if err != nil {
		return nil, err
	}
	commits[0].Bodies = slices.Clone(bodies)
	for _, ref := range refs {
		if slices.ContainsFunc(bodies, func(b agent.Body) bool { return b.Ref == ref }) {
			continue
		}
		data, ok := parent.bodies[ref.SHA256]
		if !ok {
			return nil, fmt.Errorf("body %s of run %s, which the fork carries: %w", ref, parent.id, agent.ErrNoBody)
		}
		commits[0].Bodies = append(commits[0].Bodies, agent.Body{Ref: ref, Data: data})
	}
	return commits, nil
}

func stored(entries []agent.Entry) iter.Seq2[agent.Entry, error] {
	return func(yield func(agent.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// append takes a commit in; the lock is held.
func (m *Memory) append(r *record, c agent.Commit) {
	if c.Entry.Seq != 0 {
		r.entries = append(r.entries, c.Entry)
	}
	for _, b := range c.Bodies {
		r.bodies[b.Ref.SHA256] = b.Data
	}
	r.run = c.Run
	if c.Key != "" {
		r.verdicts[c.Key] = c.Verdict
		r.inbox = slices.DeleteFunc(slices.Clone(r.inbox), func(d agent.Delivery) bool { return d.Key == c.Key })
	}
	m.wake.Broadcast()
}

func (m *Memory) record(id string) (*record, error) {
	r, ok := m.runs[id]
	if !ok {
		return nil, fmt.Errorf("run %s: %w", id, agent.ErrNoRun)
	}
	return r, nil
}

// Deliver implements [agent.Engine].
func (m *Memory) Deliver(ctx context.Context, id string, d agent.Delivery) (agent.Verdict, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.record(id)
	if err != nil {
		return agent.Verdict{}, err
	}
	if _, given := r.verdicts[d.Key]; !given && !slices.ContainsFunc(r.inbox, func(o agent.Delivery) bool { return o.Key == d.Key }) {
		r.inbox = append(r.inbox, d)
	}
	defer context.AfterFunc(ctx, m.broadcast)()
	for {
		if v, ok := r.verdicts[d.Key]; ok {
			return v, nil
		}
		if err := ctx.Err(); err != nil {
			return agent.Verdict{}, err
		}
		if r.served {
			r.poke()
			m.wake.Wait()
			continue
		}
		if err := m.judge(ctx, r, d); err != nil {
			return agent.Verdict{}, err
		}
	}
}

// judge gives the verdict of a run that nobody serves. The lock is held, and given
// away meanwhile; the run counts as served.
func (m *Memory) judge(ctx context.Context, r *record, d agent.Delivery) error {
	r.served = true
	run := r.run
	m.mu.Unlock()
	_, _, err := m.driver(r, nil).Judge(ctx, run, d)
	m.mu.Lock()
	r.served = false
	m.wake.Broadcast()
	return err
}

func (m *Memory) broadcast() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wake.Broadcast()
}

func (r *record) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (m *Memory) driver(r *record, open func(agent.Run) (agent.Nodes, error)) *agent.Driver {
	return &agent.Driver{Log: &log{m, r, r.id}, Open: open, Now: m.now, Wake: r.wake, Crash: m.crash}
}

// Journal implements [agent.Engine].
func (m *Memory) Journal(ctx context.Context, id string, from int64, follow bool) iter.Seq2[agent.Entry, error] {
	return func(yield func(agent.Entry, error) bool) {
		next := max(from, 1)
		for {
			batch, ended, err := m.read(ctx, id, next, follow)
			if err != nil {
				yield(agent.Entry{}, err)
				return
			}
			for _, e := range batch {
				if !yield(e, nil) {
					return
				}
			}
			next += int64(len(batch))
			if ended {
				return
			}
		}
	}
}

// read returns the entries from next on; with follow it waits for one. ended says
// that no more will come.
func (m *Memory) read(ctx context.Context, id string, next int64, follow bool) ([]agent.Entry, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.record(id)
	if err != nil {
		return nil, false, err
	}
	defer context.AfterFunc(ctx, m.broadcast)()
	for follow && int64(len(r.entries)) < next && !r.run.State.Final() {
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		m.wake.Wait()
	}
	if int64(len(r.entries)) < next {
		return nil, true, nil
	}
	return slices.Clone(r.entries[next-1:]), !follow, nil
}

// Body implements [agent.Engine].
func (m *Memory) Body(_ context.Context, id string, ref agent.BodyRef) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, err := m.record(id)
	if err != nil {
		return nil, err
	}
	data, ok := r.bodies[ref.SHA256]
	if !ok {
		return nil, fmt.Errorf("run %s, body %s: %w", id, ref, agent.ErrNoBody)
	}
	return data, nil
}

// List implements [agent.Engine].
func (m *Memory) List(_ context.Context, f agent.Filter) ([]agent.Summary, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []agent.Summary
	for _, r := range m.runs {
		if s := agent.Summarize(r.run, r.started); f.Selects(s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, agent.Newest)
	if f.Limit > 0 && len(out) > f.Limit {
		out = out[:f.Limit]
	}
	return out, nil
}

// Serve implements [agent.Engine].
func (m *Memory) Serve(ctx context.Context, opts agent.ServeOptions, open func(agent.Run) (agent.Nodes, error)) error {
	if len(opts.Runs) > 0 {
		return m.serveThese(ctx, opts.Runs, open)
	}
	for {
		m.mu.Lock()
		ready := m.ready()
		if len(ready) == 0 {
			stop := context.AfterFunc(ctx, m.broadcast)
			if ctx.Err() == nil {
				m.wake.Wait()
			}
			stop()
		}
		m.mu.Unlock()
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := m.serveThese(ctx, ready, open); err != nil {
			return err
		}
	}
}

// ready lists the runs that nobody serves and that have something to do.
func (m *Memory) ready() []string {
	var ids []string
	for id, r := range m.runs {
		if !r.served && !r.run.State.Final() && (!r.run.Rests() || len(r.inbox) > 0) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (m *Memory) serveThese(ctx context.Context, ids []string, open func(agent.Run) (agent.Nodes, error)) error {
	errs := make([]error, len(ids))
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() { errs[i] = m.serve(ctx, id, open) })
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (m *Memory) serve(ctx context.Context, id string, open func(agent.Run) (agent.Nodes, error)) error {
	m.mu.Lock()
	r, err := m.record(id)
	if err == nil && r.served {
		err = fmt.Errorf("run %s: %w", id, agent.ErrServed)
	}
	if err != nil {
		m.mu.Unlock()
		return err
	}
	r.served = true
	run := r.run
	m.mu.Unlock()
	defer m.release(r)
	d := m.driver(r, open)
	run, err = d.Recover(ctx, run)
	if err != nil {
		return err
	}
	_, err = d.Drive(ctx, run)
	return err
}

func (m *Memory) release(r *record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.served = false
	m.wake.Broadcast()
}

// Crashed is the engine that finds what this one had made durable: as after SIGKILL
// and a restart. What this one still has under way must not be let go on.
func (m *Memory) Crashed() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	after := NewMemory(m.now, nil)
	for id, r := range m.runs {
		after.runs[id] = &record{
			id: id, run: r.run, entries: slices.Clone(r.entries), bodies: maps.Clone(r.bodies),
			inbox: slices.Clone(r.inbox), verdicts: maps.Clone(r.verdicts),
			wake: make(chan struct{}, 1), started: r.started,
		}
	}
	return after
}

// Close implements [agent.Engine].
func (*Memory) Close() error { return nil }

// log is a run's journal for its driver.
type log struct {
	m  *Memory
	r  *record
	id string
}

func (l *log) Commit(_ context.Context, c agent.Commit) error {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	if c.Entry.Seq != 0 && c.Entry.Seq != int64(len(l.r.entries))+1 {
		return agent.ErrConflict
	}
	l.m.append(l.r, c)
	return nil
}

func (l *log) Inbox(context.Context) ([]agent.Delivery, error) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	return slices.Clone(l.r.inbox), nil
}

func (l *log) Entries(ctx context.Context) iter.Seq2[agent.Entry, error] {
	return l.m.Journal(ctx, l.id, 1, false)
}

func (l *log) Body(ctx context.Context, ref agent.BodyRef) ([]byte, error) {
	return l.m.Body(ctx, l.id, ref)
}
