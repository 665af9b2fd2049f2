package scenarios

import (
	"errors"
	"sync/atomic"
	"time"

	"sallyport/agent"
	"sallyport/nodes"
)

// clock is the Host's clock on a stage: the real one, set ahead by jumps. Its zero value
// is the real one.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// jump sets the clock ahead.
func (c *clock) jump(d time.Duration) { c.ahead.Add(int64(d)) }

// patience sets the clock ahead instead of waiting until a model is asked again: the
// time is as long as it would be, and nobody waits for it.
type patience struct {
	clock *clock
	owed  atomic.Int64 // how long the next attempt is away, once it is journaled
}

// owe notes the pause after an attempt that gave no turn.
func (p *patience) owe(err error, attempt int) {
	var u *nodes.Unavailable
	if !errors.As(err, &u) || u.Final {
		return
	}
	own := min(time.Second<<min(attempt, 6), nodes.MaxPause*time.Second)
	p.owed.Store(int64(max(own, min(u.After, nodes.MaxRetryAfter*time.Second))))
}

// pass is called at the points of the engine.
func (p *patience) pass(point string) {
	if point == agent.AfterCommit {
		p.clock.jump(time.Duration(p.owed.Swap(0)))
	}
}
