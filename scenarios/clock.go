package scenarios

import (
	"sync/atomic"
	"time"
)

// clock is the Host's clock on a stage: the real one, set ahead by jumps. Its zero value
// is the real one.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// jump sets the clock ahead.
func (c *clock) jump(d time.Duration) { c.ahead.Add(int64(d)) }
