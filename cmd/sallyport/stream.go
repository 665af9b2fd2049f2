package main

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"sallyport/cmd/sallyport/terminal"
)

// stream is stdout or stderr as commands write to it. That nobody reads it any more,
// as after `| head`, is no error: what a command has begun it finishes.
type stream struct {
	file *os.File
	gone atomic.Bool // nobody reads it

	mu   sync.Mutex
	live *terminal.Live // what comes piece by piece; nil if nothing does
	to   io.Writer      // instead of the file, if it is not nil
}

// divert has what is written go elsewhere until the returned function is called.
func (s *stream) divert(to io.Writer) (back func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.to
	s.to = to
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.to = was
	}
}

// Write implements io.Writer. A line that comes piece by piece is ended first.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live != nil {
		s.live.End()
	}
	return s.write(p)
}

// piece writes a piece of what somebody else says.
func (s *stream) piece(label, text string, width int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live = terminal.NewLive(writerFunc(s.write), label, width)
	}
	s.live.Text(text)
}

// writerFunc is a function as an [io.Writer].
type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func (s *stream) write(p []byte) (int, error) {
	if s.to != nil {
		return s.to.Write(p)
	}
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
