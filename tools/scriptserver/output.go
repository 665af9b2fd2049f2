package scriptserver

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"
)

// output is stdout. What a reply writes stays together.
type output struct {
	mu   sync.Mutex
	to   io.WriteCloser
	held []heldAnswer
}

// heldAnswer waits until left other requests were answered.
type heldAnswer struct {
	left   int
	answer []byte
}

// batch is how much of a repeated frame is written at once, in bytes.
const batch = 64 << 10

// write writes bytes whatever becomes of them: a reader that has gone is no business of the script.
func (o *output) write(data []byte) { _, _ = o.to.Write(data) }

// answer writes an answer, or keeps it back, and releases what was kept back for so long.
func (o *output) answer(line []byte, hold int) {
	if hold > 0 {
		o.held = append(o.held, heldAnswer{hold, line})
		return
	}
	for due := [][]byte{line}; len(due) > 0; due = due[1:] {
		o.write(due[0])
		waiting := o.held
		o.held = nil
		for _, h := range waiting {
			if h.left--; h.left > 0 {
				o.held = append(o.held, h)
				continue
			}
			due = append(due, h.answer)
		}
	}
}

// frame writes a frame to an output as often as it says. $ID in it is the id.
func (s scene) frame(ctx context.Context, to io.Writer, f Frame, id []byte) error {
	once, err := s.render(f.text())
	if err != nil {
		return err
	}
	once = bytes.ReplaceAll(once, []byte("$ID"), id)
	if f.Line != nil {
		once = append(bytes.Clone(once), '\n')
	}
	left := max(f.Times, 1)
	if f.Pause > 0 {
		for ; left > 0 && wait(ctx, time.Duration(f.Pause)); left-- {
			_, _ = to.Write(once) // as in output.write
		}
		return nil
	}
	many := max(1, min(left, batch/max(len(once), 1)))
	for block := bytes.Repeat(once, many); left > 0 && ctx.Err() == nil; left -= many {
		if left < many {
			block = block[:left*len(once)]
		}
		if _, err := to.Write(block); err != nil {
			return nil // the reader has gone
		}
	}
	return nil
}

// wait reports whether the time has passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
