package main

import (
	"context"
	"sync"

	"sallyport/agent"
)

// progress writes one line per transition of a run, while somebody attends to it.
type progress struct {
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu   sync.Mutex
	seen *sync.Cond
	last int64
	over bool
}

// progress follows the run's journal from after its last entry so far, or from the
// first if the run is new. The caller stops it.
func (a *app) progress(ctx context.Context, e agent.Engine, run string) *progress {
	from := int64(1)
	for entry, err := range e.Journal(ctx, run, 1, false) {
		if err != nil {
			break
		}
		from = entry.Seq
	}
	return watching(ctx, e, run, from, func(entry agent.Entry) { a.say("%s", entryLine(entry)) })
}

// watching has every entry written as it is recorded, from one on. The caller stops it.
func watching(ctx context.Context, e agent.Engine, run string, from int64, write func(agent.Entry)) *progress {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p := &progress{cancel: cancel, last: from - 1}
	p.seen = sync.NewCond(&p.mu)
	p.done.Go(func() { // ends with ctx; stop waits for it
		for entry, err := range e.Journal(ctx, run, from, true) {
			if err != nil {
				break
			}
			write(entry)
			p.saw(entry.Seq)
		}
		p.end()
	})
	return p
}

func (p *progress) saw(seq int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = seq
	p.seen.Broadcast()
}

func (p *progress) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	p.seen.Broadcast()
}

// reach waits until the entry of that sequence has been written, so that a question
// comes after it.
func (p *progress) reach(seq int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.last < seq && !p.over {
		p.seen.Wait()
	}
}

// stop ends it.
func (p *progress) stop() {
	p.cancel()
	p.done.Wait()
}
