package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// turnstile lets the writers of several processes take turns. SQLite's own wait is a
// sleep that a busy writer beside it can starve; here whoever waits holds the gate,
// and who has just written must pass the gate to write again.
type turnstile struct {
	gate, room *os.File
}

// The names of the turnstile's files. No run can have them: a run id has no dot.
const (
	gateFile = ".gate"
	roomFile = ".room"
)

// Waiting at the turnstile. A transaction takes about a millisecond; one that is
// still open after turnPatience belongs to a process that was stopped in it.
const (
	turnPoll     = 100 * time.Microsecond
	turnPollMost = 2 * time.Millisecond
	turnPatience = 30 * time.Second
)

func openTurnstile(folder string) (*turnstile, error) {
	gate, err := os.OpenFile(filepath.Join(folder, gateFile), os.O_RDWR|os.O_CREATE|noFollow, fileMode)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	room, err := os.OpenFile(filepath.Join(folder, roomFile), os.O_RDWR|os.O_CREATE|noFollow, fileMode)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open lock: %w", err), gate.Close())
	}
	return &turnstile{gate, room}, nil
}

// enter waits for the turn of this process. It must leave before it enters again.
func (t *turnstile) enter() error {
	if err := await(t.gate); err != nil {
		return err
	}
	err := await(t.room)
	return errors.Join(err, unlockFile(t.gate))
}

func (t *turnstile) leave() error { return unlockFile(t.room) }

func (t *turnstile) close() error { return errors.Join(t.gate.Close(), t.room.Close()) }

func await(f *os.File) error {
	wait := turnPoll
	for deadline := time.Now().Add(turnPatience); ; {
		err := lockFile(f)
		if !errors.Is(err, errHeld) {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("wait for the turn to write: another process has been writing for %s; see who has %s open", turnPatience, f.Name())
		}
		time.Sleep(wait)
		wait = min(2*wait, turnPollMost)
	}
}
