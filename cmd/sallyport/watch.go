package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"sallyport/agent"
)

// How often the runs of a state directory are looked over for what other processes have
// done: once in a watchGap, and at most a watchShare-th of the time.
const (
	watchGap   = time.Second
	watchShare = 20
)

// watcher tells each entry of the open runs of a state directory, once and in order.
// What it did not see open at all it does not tell.
type watcher struct {
	engine agent.Engine
	tell   func(agent.Entry)           // called by one goroutine at a time
	lost   func(run string, err error) // the journal of a run cannot be followed

	reached map[string]reached // by run

	mu     sync.Mutex
	hinted map[string]bool
	wake   chan struct{}
}

// reached is how far a run was told.
type reached struct {
	seq   int64
	ended bool
	lost  bool // it cannot be followed
}

// watch makes a watcher that tells what comes after now.
func watch(ctx context.Context, e agent.Engine) (*watcher, []agent.Summary, error) {
	w := &watcher{engine: e, reached: map[string]reached{}, hinted: map[string]bool{}, wake: make(chan struct{}, 1)}
	open, err := e.List(ctx, agent.Filter{Open: true})
	for _, s := range open {
		w.reached[s.ID] = reached{seq: s.Seq}
	}
	return w, open, err
}

// hint says that a run has moved on.
func (w *watcher) hint(run string) {
	w.mu.Lock()
	w.hinted[run] = true
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// follow tells until ctx is done.
func (w *watcher) follow(ctx context.Context) {
	gap := watchGap
	timer := time.NewTimer(gap)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
			w.those(ctx)
			continue
		case <-timer.C:
		}
		began := time.Now()
		w.all(ctx)
		timer.Reset(max(gap, watchShare*time.Since(began)))
	}
}

// those catches up with the runs that were hinted.
func (w *watcher) those(ctx context.Context) {
	w.mu.Lock()
	hinted := w.hinted
	w.hinted = map[string]bool{}
	w.mu.Unlock()
	for id := range hinted {
		w.catchUp(ctx, id) // one that was not seen before is told from its beginning
	}
}

// all catches up with every run that is open, or was when it was looked at last.
func (w *watcher) all(ctx context.Context) {
	listed, err := w.engine.List(ctx, agent.Filter{Open: true})
	if err != nil {
		return // whoever serves meets it too
	}
	open := make(map[string]bool, len(listed))
	for _, s := range listed {
		open[s.ID] = true
		at := w.reached[s.ID]
		if at.ended || s.Seq < at.seq { // removed, and begun anew
			delete(w.reached, s.ID)
		}
		if at.ended || s.Seq != at.seq {
			w.catchUp(ctx, s.ID)
		}
	}
	for id, at := range w.reached {
		if !at.ended && !open[id] {
			w.catchUp(ctx, id)
		}
	}
}

// catchUp tells what a run has come to since it was told of last.
func (w *watcher) catchUp(ctx context.Context, id string) {
	at := w.reached[id]
	if at.ended || at.lost {
		return
	}
	for e, err := range w.engine.Journal(ctx, id, at.seq+1, false) {
		if err != nil {
			switch {
			case ctx.Err() != nil:
			case errors.Is(err, agent.ErrNoRun): // it was removed
				at.ended = true
			default:
				at.lost = true
				w.lost(id, err)
			}
			break
		}
		w.tell(e)
		at.seq, at.ended = e.Seq, e.Kind == agent.EntryEvent && e.State.Final()
	}
	w.reached[id] = at
}
