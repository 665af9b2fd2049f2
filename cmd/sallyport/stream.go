package main

import (
	"errors"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// stream is stdout or stderr as commands write to it. That nobody reads it any more,
// as after `| head`, is no error: what a command has begun it finishes.
type stream struct {
	file *os.File
	gone atomic.Bool // nobody reads it
}

// Write implements io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	n, err := s.file.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		s.gone.Store(true)
		return len(p), nil
	}
	return n, err
}

// survivePipes makes a write to a pipe that nobody reads an error of that write; else
// the first one to stdout or stderr would end the process in the middle of an effect.
// The signal is heard and dropped, not ignored: children would inherit that.
func survivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
