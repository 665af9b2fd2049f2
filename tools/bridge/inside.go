package bridge

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Program is a server that runs inside the Host, on pipes in place of a child's streams.
// It ends when stdin ends, and returns what would be its exit code. args are those that
// the child would have been started with. Whoever gives one trusts its code like the
// Host's own: nothing contains it, and what does not end cannot be ended.
type Program func(args []string, stdin, stdout *os.File, stderr io.Writer) int

// startInside starts a program in a goroutine. The caller must close it.
func startInside(c command) (*process, error) {
	p := &process{inside: true, errors: &tail{}, drained: make(chan struct{}), exited: make(chan struct{})}
	theirIn, in, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start a server inside: %w", err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a server inside: %w", err), theirIn.Close(), in.Close())
	}
	p.stdin, p.stdout = in, out
	close(p.drained)
	go func() { // ends with its input; close waits for it
		defer close(p.exited)
		c.program(c.args, theirIn, theirOut, p.errors)
		_ = theirIn.Close() // it may have been closed by the program
		_ = theirOut.Close()
	}()
	return p, nil
}

// endInside ends a program's streams and waits for it.
func (p *process) endInside() error {
	_ = p.stdin.Close()
	_ = p.stdout.Close()
	select {
	case <-p.exited:
		return nil
	case <-time.After(killGrace):
		return errors.New("a server inside does not end at the end of its input")
	}
}
