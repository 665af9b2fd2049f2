package workspace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// CandidateState is what the ledger knows about one candidate.
type CandidateState int

// The states of a candidate. Spent and voided are final.
const (
	// CandidateUnused: there is no entry.
	CandidateUnused CandidateState = iota
	// CandidateSpent: its effect was begun, or may have been.
	CandidateSpent
	// CandidateVoided: it can never be used.
	CandidateVoided
)

// String returns the state in one word.
func (s CandidateState) String() string {
	switch s {
	case CandidateUnused:
		return "unused"
	case CandidateSpent:
		return "spent"
	case CandidateVoided:
		return "voided"
	}
	return "undefined"
}

// What a ledger refuses. All are matched with errors.Is.
var (
	// ErrCandidate reports an id that is not 64 lower-case hex digits; no system call was made.
	ErrCandidate = errors.New("candidate id is not allowed")
	// ErrInsideWorkspace reports a ledger that is the workspace or lies in it.
	ErrInsideWorkspace = errors.New("lies inside the workspace: choose a folder of its own outside")
	// ErrOthersWrite reports a ledger that other users may write.
	ErrOthersWrite = errors.New("can be written by other users: take the permission away (chmod go-w)")
)

// voidedEntry and spentEntry are the contents of an entry. Whatever is not exactly voidedEntry counts as
// spent: an entry cut short by a crash must not free a candidate.
const (
	spentEntry  = "spent\n"
	voidedEntry = "voided\n"
)

// Ledger remembers which candidates were used, one file for each, named by its id, in a folder of its own.
// Entries are created exclusively, made durable, and never changed or removed. Several processes may share
// a ledger; a [LedgerLock] puts them in turn.
type Ledger struct {
	folder int
	turn   chan struct{} // holds one token: the goroutines of this process queue here, not at the OS lock

	mu     sync.Mutex
	closed bool
	// doubtful holds the ids whose entry could not be made durable; they count as spent (SPEC D5).
	doubtful map[string]bool
}

// OpenLedger opens the ledger at dir, which must exist, be a directory that only its owner may write, and
// lie outside of w. Nothing is created: a mistyped path would be an empty ledger, in which every spent
// candidate is unused again. A failure is an [*OpenError].
func OpenLedger(dir string, w *Workspace) (*Ledger, error) {
	folder, err := openLedgerFolder(dir, w)
	if err != nil {
		return nil, &OpenError{Part: "ledger", Path: dir, Err: err}
	}
	l := &Ledger{folder: folder, turn: make(chan struct{}, 1), doubtful: map[string]bool{}}
	l.turn <- struct{}{}
	return l, nil
}

// Close releases the descriptor. A lock that is held stays held until its Release. It may be called twice.
func (l *Ledger) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	return errors.Join(closeAll(l.folder)...)
}

// State looks a candidate up. Without the lock the answer may be old the moment it is given.
func (l *Ledger) State(candidate string) (CandidateState, error) {
	if !validCandidate(candidate) {
		return CandidateUnused, ErrCandidate
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return CandidateUnused, ErrClosed
	}
	if l.doubtful[candidate] {
		return CandidateSpent, nil
	}
	entry, err := readEntry(l.folder, candidate, len(voidedEntry)+1)
	switch {
	case errors.Is(err, ErrNotFound):
		return CandidateUnused, nil
	case err != nil:
		return CandidateUnused, fmt.Errorf("look up candidate: %w", err)
	case string(entry) == voidedEntry:
		return CandidateVoided, nil
	}
	return CandidateSpent, nil
}

// How long to pause between two attempts at a lock that another process holds.
const (
	firstPause = time.Millisecond
	lastPause  = 20 * time.Millisecond
)

// Lock waits until no other goroutine or process holds the ledger, or until ctx ends. Save and settle
// hold it from the look-up until the effect is known (SPEC D12a).
func (l *Ledger) Lock(ctx context.Context) (*LedgerLock, error) {
	select {
	case <-l.turn:
	case <-ctx.Done():
		return nil, fmt.Errorf("lock ledger: %w", ctx.Err())
	}
	held, err := l.lockFolder(ctx)
	if err != nil {
		l.turn <- struct{}{}
		return nil, fmt.Errorf("lock ledger: %w", err)
	}
	return &LedgerLock{ledger: l, held: held}, nil
}

func (l *Ledger) lockFolder(ctx context.Context) (int, error) {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return -1, ErrClosed
	}
	held, err := openLock(l.folder)
	l.mu.Unlock()
	if err != nil {
		return -1, err
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		locked, err := tryLock(held)
		if locked {
			return held, nil
		}
		if err == nil {
			// The system has no lock that waits and can be given up, so it is asked again.
			select {
			case <-time.After(pause):
				continue
			case <-ctx.Done():
				err = ctx.Err()
			}
		}
		_ = closeAll(held)
		return -1, err
	}
}

// LedgerLock is the right to change a ledger, held by one goroutine of one process.
type LedgerLock struct {
	ledger *Ledger
	held   int
}

// Release gives the lock back. It is called once.
func (k *LedgerLock) Release() {
	_ = closeAll(k.held) // closing the only descriptor of a lock releases it
	k.ledger.turn <- struct{}{}
}

// Spend makes the entry of an unused candidate, durable when it returns nil. After an error the candidate
// counts as spent in this process, and for ever if an entry was left.
func (k *LedgerLock) Spend(candidate string) error {
	return k.ledger.enter(candidate, spentEntry)
}

// Void makes a candidate unusable and tells whether it had been spent before. A spent one stays spent, so
// that asking again gives the same answer.
func (k *LedgerLock) Void(candidate string) (spent bool, err error) {
	state, err := k.ledger.State(candidate)
	if err != nil {
		return false, err
	}
	if state == CandidateUnused {
		return false, k.ledger.enter(candidate, voidedEntry)
	}
	return state == CandidateSpent, nil
}

func (l *Ledger) enter(candidate, entry string) error {
	if !validCandidate(candidate) {
		return ErrCandidate
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	if err := writeEntry(l.folder, candidate, entry); err != nil {
		l.doubtful[candidate] = true
		return fmt.Errorf("enter candidate: %w", err)
	}
	return nil
}

// validCandidate: 64 lower-case hex digits, so an id is one path component.
func validCandidate(id string) bool {
	if len(id) != 64 {
		return false
	}
	for _, c := range []byte(id) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
