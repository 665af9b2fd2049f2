package embedded

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"sallyport/agent"
)

// ErrOpen: the run has not ended, and may still need what was to be removed.
var ErrOpen = errors.New("the run has not ended")

// ErasedError is an [agent.ErrNoBody] that says who erased the content, and when.
type ErasedError struct {
	Run string
	Ref agent.BodyRef
	At  time.Time
	By  string // the name that the operator gave
}

// Error implements error.
func (e *ErasedError) Error() string {
	return fmt.Sprintf("body %s of run %s was erased at %s by %q: %v", e.Ref, e.Run, e.At.Format(time.RFC3339), e.By, agent.ErrNoBody)
}

// Unwrap returns [agent.ErrNoBody].
func (*ErasedError) Unwrap() error { return agent.ErrNoBody }

// Erase removes the content of a body for good and appends an erased entry with the
// actor's name; the chain of the journal holds, since entries name content by its hash
// only. Afterwards Body is an [ErasedError], and the bytes are in no file of the state
// directory, unless another run holds the same content. Erasing twice is once, and
// finishes what an interruption left undone: as long as Erase returns an error the bytes
// may still be there.
//
// Only content of a run that has ended can be erased, else it is [ErrOpen]: an open run
// goes on from what was said before. A body that no entry names, or that is missing
// without an erasure, is [agent.ErrNoBody], the latter [agent.ErrIntegrity] too. It is [agent.ErrServed] while somebody
// serves the run.
//
// Usually it costs a look at every page of bodies. After runs were collected it may
// rewrite the state file, for which the disk needs room; nobody writes meanwhile.
// Backups, and what the file system keeps of old blocks, are beyond its reach.
func (e *Engine) Erase(ctx context.Context, run string, ref agent.BodyRef, actor string) error {
	ctx, done, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	if actor == "" {
		actor = e.config.Actor
	}
	if err := e.erase(ctx, run, ref, actor); err != nil {
		return fmt.Errorf("erase body %s of run %s: %w", ref, run, err)
	}
	e.crash(Erased)
	if err := e.scrub(ctx); err != nil {
		return fmt.Errorf("erase body %s of run %s: it is gone from the run, its bytes may still be in the file; erase it again: %w", ref, run, err)
	}
	return nil
}

// erase takes the content out of the run, durably, under its lock.
func (e *Engine) erase(ctx context.Context, id string, ref agent.BodyRef, actor string) error {
	if _, err := e.find(ctx, id); err != nil {
		return err // before there is a lock file
	}
	lock, err := e.lockFor(ctx, id, false)
	if err != nil {
		return err
	}
	defer lock.release()
	was, err := e.load(ctx, id)
	if err != nil {
		return err
	}
	lock.ended = was.run.State.Final()
	if !lock.ended {
		return fmt.Errorf("%w (%s), and may need it to go on", ErrOpen, was.run.State)
	}
	c, err := e.erased(ctx, was, ref, actor)
	if err != nil {
		return err
	}
	sum, err := hex.DecodeString(ref.SHA256)
	if err != nil {
		return err // no entry names such a body
	}
	return e.writer.do(id, func(tx *transaction) error { return tx.erase(was.row, sum, c) })
}

// erased is the commit of an erasure: empty if the journal has it already.
func (e *Engine) erased(ctx context.Context, was loaded, ref agent.BodyRef, actor string) (agent.Commit, error) {
	var named, gone int64
	for entry, err := range e.entries(ctx, was.row, 1, was.seq) {
		if err != nil {
			return agent.Commit{}, err
		}
		names, err := entry.Bodies()
		if err != nil {
			return agent.Commit{}, err
		}
		for _, it := range names {
			if it == ref {
				named = entry.Seq
			}
		}
		if entry.Kind == agent.EntryErased && entry.Body == ref {
			gone = entry.Seq
		}
	}
	switch {
	case named == 0 || ref.IsZero():
		return agent.Commit{}, fmt.Errorf("no entry names it: %w", agent.ErrNoBody)
	case gone > named:
		return agent.Commit{}, nil
	}
	if _, err := e.body(ctx, was.row, ref); errors.Is(err, agent.ErrNoBody) {
		return agent.Commit{}, fmt.Errorf("it is missing, and no entry says that it was erased: %w", err)
	} else if err != nil && !errors.Is(err, agent.ErrIntegrity) { // damaged content can go
		return agent.Commit{}, err
	}
	run, entry, err := agent.Erase(was.run, ref, actor, e.at(was.run))
	return agent.Commit{Run: run, Entry: entry}, err
}

// erase empties the content in place: to delete the row could move its neighbours, and
// leave copies of them behind that a later erasure would not find.
func (t *transaction) erase(r row, sum []byte, c agent.Commit) error {
	if _, err := t.exec("UPDATE bodies SET data = x'' WHERE run = ? AND sha256 = ?", r.num, sum); err != nil {
		return err
	}
	if _, err := t.exec("UPDATE parcels SET data = x'' WHERE sha256 = ? AND delivery IN (SELECT num FROM inbox WHERE run = ?)", sum, r.num); err != nil {
		return err
	}
	return t.append(r, c)
}

// erasure returns an ErasedError if the journal says that the body was erased, else the
// last entry that names the body; 0 if none does.
func (e *Engine) erasure(ctx context.Context, r row, ref agent.BodyRef) (named int64, err error) {
	var found [][]byte
	err = e.look(ctx, func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "SELECT bytes FROM entries WHERE run = ? AND instr(bytes, ?) > 0 ORDER BY seq DESC",
			r.num, []byte(ref.SHA256))
		if err != nil {
			return err
		}
		found, err = all(rows, func(scan func(...any) error) (b []byte, err error) { return b, scan(&b) })
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, raw := range found {
		entry, err := agent.ParseEntry(raw)
		if err != nil {
			return 0, fmt.Errorf("run %s: %w", r.id, err)
		}
		if entry.Kind == agent.EntryErased && entry.Body == ref {
			return 0, &ErasedError{Run: r.id, Ref: ref, At: entry.Time, By: entry.Actor}
		}
		names, err := entry.Bodies()
		if err != nil {
			return 0, fmt.Errorf("run %s: %w", r.id, err)
		}
		if slices.Contains(names, ref) {
			named = max(named, entry.Seq)
		}
	}
	return named, nil
}
