package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sallyport/agent"
)

// ServedError is an [agent.ErrServed] that says who has the run.
type ServedError struct {
	Run string
	PID int // of the process that serves it; 0 if it is not known
}

// Error implements error.
func (s *ServedError) Error() string {
	if s.PID == 0 {
		return fmt.Sprintf("run %s: %v", s.Run, agent.ErrServed)
	}
	return fmt.Sprintf("run %s: %v: process %d has it", s.Run, agent.ErrServed, s.PID)
}

// Unwrap returns [agent.ErrServed].
func (s *ServedError) Unwrap() error { return agent.ErrServed }

// errHeld says that somebody has the lock.
var errHeld = errors.New("the lock is held")

// holder is who has, or had, a lock, and what for.
type holder struct {
	pid     int
	serving bool // else it gives a verdict, erases or collects, which takes milliseconds
}

// String is the content of a lock file.
func (h holder) String() string {
	if h.serving {
		return fmt.Sprintf("%d serve\n", h.pid)
	}
	return fmt.Sprintf("%d deliver\n", h.pid)
}

func parseHolder(content []byte) holder {
	var h holder
	var purpose string
	if n, err := fmt.Sscanf(string(content), "%d %s\n", &h.pid, &purpose); n != 2 || err != nil {
		return holder{}
	}
	h.serving = purpose == "serve"
	return h
}

// runLock is the right to append to a run's journal. It is an OS lock on a file of
// its own, never on the database: the system drops it when the process ends.
type runLock struct {
	file  *os.File
	path  string
	ended bool // the run can never be served again: the file goes
}

func (e *Engine) lockPath(run string) string { return filepath.Join(e.dir, lockFolder, run) }

// takeLock takes the lock of a run, or returns errHeld.
func takeLock(path string, h holder) (*runLock, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, fileMode)
		if err != nil {
			return nil, fmt.Errorf("open lock: %w", err)
		}
		if err := lockFile(f); err != nil {
			_ = f.Close() // nothing was written
			if errors.Is(err, errHeld) {
				return nil, errHeld
			}
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !names(path, f) {
			_ = f.Close() // its last holder removed it between our open and our lock
			continue
		}
		// Who has it is a courtesy to the others: the lock holds without.
		if f.Truncate(0) == nil {
			_, _ = f.WriteAt([]byte(h.String()), 0)
		}
		return &runLock{file: f, path: path}, nil
	}
}

// names reports whether the path leads to the open file.
func names(path string, f *os.File) bool {
	a, err := os.Lstat(path)
	if err != nil {
		return false
	}
	b, err := f.Stat()
	return err == nil && os.SameFile(a, b)
}

// release gives the lock back.
func (l *runLock) release() {
	_ = l.file.Truncate(0)
	if l.ended {
		_ = os.Remove(l.path) // under the lock; takers look whether the path still leads to theirs
	}
	_ = l.file.Close() // drops the lock
}

// Waiting for a lock that is held for a moment only.
const (
	lockPoll  = 5 * time.Millisecond
	lockGrace = 10 * time.Second
)

// lockFor takes the lock of a run, in order to serve it or for a moment. A process
// that has it for a moment is waited for; one that serves the run is named, once it was
// seen twice: a lock file may still show the holder before.
func (e *Engine) lockFor(ctx context.Context, run string, serving bool) (*runLock, error) {
	path := e.lockPath(run)
	var seen holder
	for deadline := time.Now().Add(lockGrace); ; {
		l, err := takeLock(path, holder{os.Getpid(), serving})
		if !errors.Is(err, errHeld) {
			return l, err
		}
		content, _ := os.ReadFile(path) // unreadable: nobody is known
		now := parseHolder(content)
		if now.serving && now == seen || time.Now().After(deadline) {
			return nil, &ServedError{Run: run, PID: now.pid}
		}
		seen = now
		if err := pause(ctx, lockPoll); err != nil {
			return nil, err
		}
	}
}

// pause waits, or returns the context's error.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
