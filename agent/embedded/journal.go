package embedded

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"time"

	"sallyport/agent"
)

// readBatch is how many entries are read in one go: reads are short, so that the write-
// ahead log can be emptied beside them.
const readBatch = 256

// row is what the table of runs says of one.
type row struct {
	num   int64
	id    string
	seq   int64
	head  string
	fresh int64
	ended bool
}

// find reads the row of a run, or returns [agent.ErrNoRun].
func (e *Engine) find(ctx context.Context, id string) (row, error) {
	r := row{id: id}
	var head []byte
	err := e.reads.QueryRowContext(ctx, "SELECT num, seq, head, fresh, ended FROM runs WHERE id = ?", id).
		Scan(&r.num, &r.seq, &head, &r.fresh, &r.ended)
	if errors.Is(err, sql.ErrNoRows) {
		return r, fmt.Errorf("run %q: %w", id, agent.ErrNoRun)
	}
	r.head = hex.EncodeToString(head)
	return r, e.explainRead(ctx, err)
}

// explainRead explains an error of the reading side; an interruption stays one.
func (e *Engine) explainRead(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return explain(e.writer.path, "read", err)
}

// loaded is a run as its journal gives it.
type loaded struct {
	row
	run agent.Run
}

// load replays a run from its first entry, which checks all of it.
func (e *Engine) load(ctx context.Context, id string) (loaded, error) {
	r, err := e.find(ctx, id)
	if err != nil {
		return loaded{}, err
	}
	run, err := agent.Replay(e.entries(ctx, r, 1, r.seq))
	if err != nil {
		return loaded{}, fmt.Errorf("replay the journal in %s: %w", e.writer.path, err)
	}
	if run.Seq != r.seq || run.Head != r.head {
		return loaded{}, fmt.Errorf("replay the journal in %s: %w: run %s ends with entry %d, its last is %d", e.writer.path, agent.ErrIntegrity, id, run.Seq, r.seq)
	}
	return loaded{r, run}, nil
}

// entries yields the entries of a run from one sequence to another, checked against
// their stored hashes. A missing one ends it, as a break, unless the run was collected
// meanwhile.
func (e *Engine) entries(ctx context.Context, r row, from, to int64) iter.Seq2[agent.Entry, error] {
	return func(yield func(agent.Entry, error) bool) {
		for seq := max(from, 1); seq <= to; {
			part, err := e.part(ctx, r, seq, min(to, seq+readBatch-1))
			for _, it := range part {
				if !yield(it, nil) {
					return
				}
			}
			if err != nil {
				if now, gone := e.find(ctx, r.id); errors.Is(gone, agent.ErrNoRun) || gone == nil && now.num != r.num {
					err = fmt.Errorf("run %q: it was collected: %w", r.id, agent.ErrNoRun)
				}
				yield(agent.Entry{}, err)
				return
			}
			seq += int64(len(part))
		}
	}
}

// part reads the entries from one sequence to another; an error comes with those
// before it.
func (e *Engine) part(ctx context.Context, r row, from, to int64) ([]agent.Entry, error) {
	rows, err := e.reads.QueryContext(ctx,
		"SELECT bytes, hash FROM entries WHERE run = ? AND seq BETWEEN ? AND ? ORDER BY seq", r.num, from, to)
	if err != nil {
		return nil, e.explainRead(ctx, err)
	}
	type stored struct{ bytes, hash []byte }
	found, err := all(rows, func(scan func(...any) error) (s stored, err error) { return s, scan(&s.bytes, &s.hash) })
	if err != nil {
		return nil, e.explainRead(ctx, err)
	}
	var out []agent.Entry
	for i, s := range found {
		entry, err := agent.ParseEntry(s.bytes)
		switch {
		case err != nil:
			return out, fmt.Errorf("run %s, entry %d: %w", r.id, from+int64(i), err)
		case entry.Hash() != hex.EncodeToString(s.hash):
			return out, fmt.Errorf("%w: run %s, entry %d: its bytes are not those that were hashed", agent.ErrIntegrity, r.id, from+int64(i))
		case entry.Seq != from+int64(i) || entry.Run != r.id:
			return out, fmt.Errorf("%w: run %s, entry %d: it is missing", agent.ErrIntegrity, r.id, from+int64(i))
		}
		out = append(out, entry)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%w: run %s, entry %d: it is missing", agent.ErrIntegrity, r.id, from)
	}
	return out, nil
}

// Journal implements [agent.Engine]. It checks the hash of each entry, and that each
// names the one before it; [agent.Replay] checks what they say.
func (e *Engine) Journal(ctx context.Context, run string, from int64, follow bool) iter.Seq2[agent.Entry, error] {
	return func(yield func(agent.Entry, error) bool) {
		ctx, done, err := e.enter(ctx)
		if err != nil {
			yield(agent.Entry{}, err)
			return
		}
		defer done()
		if follow {
			defer e.topics.listen()()
		}
		f := follower{engine: e, run: run, next: max(from, 1)}
		for {
			changed := e.topics.next(run)
			ended, more := f.drain(ctx, yield)
			if !more || ended || !follow {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(agent.Entry{}, ctx.Err())
				return
			}
		}
	}
}

// follower reads on where it stopped.
type follower struct {
	engine *Engine
	run    string
	next   int64  // sequence of the next entry
	head   string // hash of the one before; empty if it was not read
}

// drain yields what there is. It reports whether the run has ended, and whether the
// caller wants more.
func (f *follower) drain(ctx context.Context, yield func(agent.Entry, error) bool) (ended, more bool) {
	r, err := f.engine.find(ctx, f.run)
	if err != nil {
		yield(agent.Entry{}, err)
		return false, false
	}
	for entry, err := range f.engine.entries(ctx, r, f.next, r.seq) {
		if err == nil && (f.head != "" && entry.Prev != f.head || entry.Seq == 1 && entry.Prev != "") {
			err = fmt.Errorf("%w: run %s, entry %d: it does not name the entry before it", agent.ErrIntegrity, f.run, entry.Seq)
		}
		if err != nil {
			yield(agent.Entry{}, err)
			return false, false
		}
		f.next, f.head = entry.Seq+1, entry.Hash()
		if !yield(entry, nil) {
			return false, false
		}
	}
	return r.ended, true
}

// Body implements [agent.Engine]. What it returns has the hash that was asked for.
func (e *Engine) Body(ctx context.Context, run string, ref agent.BodyRef) ([]byte, error) {
	ctx, done, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	r, err := e.find(ctx, run)
	if err != nil {
		return nil, err
	}
	return e.body(ctx, r, ref)
}

func (e *Engine) body(ctx context.Context, r row, ref agent.BodyRef) ([]byte, error) {
	sum, err := hex.DecodeString(ref.SHA256)
	if err != nil || ref.IsZero() {
		return nil, fmt.Errorf("body %q of run %s: %w", ref.SHA256, r.id, agent.ErrNoBody)
	}
	var data []byte
	err = e.reads.QueryRowContext(ctx, "SELECT data FROM bodies WHERE run = ? AND sha256 = ?", r.num, sum).Scan(&data)
	gone := errors.Is(err, sql.ErrNoRows)
	if err != nil && !gone {
		return nil, e.explainRead(ctx, err)
	}
	if gone || len(data) == 0 { // an erased body keeps its row, without content
		if err := e.erasure(ctx, r, ref); err != nil {
			return nil, err
		}
	}
	if gone {
		return nil, fmt.Errorf("body %s of run %s: %w", ref, r.id, agent.ErrNoBody)
	}
	if agent.NewBody(data).Ref != ref {
		return nil, fmt.Errorf("%w: body %s of run %s: its bytes are not those that were hashed", agent.ErrIntegrity, ref, r.id)
	}
	return data, nil
}

// checkBodies refuses a body that is not what its reference names.
func checkBodies(bodies []agent.Body) error {
	for _, b := range bodies {
		if got := agent.NewBody(b.Data).Ref; got != b.Ref {
			return fmt.Errorf("a body named %s is %s", b.Ref, got)
		}
	}
	return nil
}

// log is the journal of one run whose lock is held: [agent.Log].
type log struct {
	engine *Engine
	row    row
	served *served // nil where only a verdict is given
	// resting says that the driver may stop before the next hint: it must look.
	resting bool
}

var _ agent.Log = (*log)(nil)

// Entries implements [agent.Reader]: those there are when it begins.
func (l *log) Entries(ctx context.Context) iter.Seq2[agent.Entry, error] {
	return func(yield func(agent.Entry, error) bool) {
		r, err := l.engine.find(ctx, l.row.id)
		if err != nil {
			yield(agent.Entry{}, err)
			return
		}
		l.engine.entries(ctx, r, 1, r.seq)(yield)
	}
}

// Body implements [agent.Reader].
func (l *log) Body(ctx context.Context, ref agent.BodyRef) ([]byte, error) {
	return l.engine.body(ctx, row{num: l.row.num, id: l.row.id}, ref)
}

// Commit implements [agent.Log].
func (l *log) Commit(_ context.Context, c agent.Commit) error {
	if err := checkBodies(c.Bodies); err != nil {
		return err
	}
	r := l.row
	r.fresh = l.freshAfter(c.Run)
	err := l.engine.writer.do(r.id, func(tx *transaction) error { return tx.append(r, c) })
	if err != nil {
		return err
	}
	l.row.fresh, l.resting = r.fresh, c.Run.Rests()
	return nil
}

// freshAfter is what the row says of the open effect after a commit. Who serves may
// start it at any time; who only gives a verdict never does.
func (l *log) freshAfter(run agent.Run) int64 {
	switch {
	case l.served != nil || run.Open == nil:
		return 0
	case run.Open.Seq == run.Seq:
		return run.Seq
	}
	return l.row.fresh
}

// mark says durably that the open effect of that sequence was never started; 0 takes
// it back, which must be durable before it is.
func (l *log) mark(fresh int64) error {
	if l.row.fresh == fresh {
		return nil
	}
	err := l.engine.writer.do(l.row.id, func(tx *transaction) error {
		_, err := tx.exec("UPDATE runs SET fresh = ? WHERE num = ?", fresh, l.row.num)
		return err
	})
	if err == nil {
		l.row.fresh = fresh
	}
	return err
}

// begin writes the first entry of a run, or returns errTaken.
func (t *transaction) begin(run agent.Run, entry agent.Entry, bodies []agent.Body) error {
	n, err := t.exec(`INSERT INTO runs (id, seq, head, fresh, state, reason, ended, ready, held, unknown, tool, started, updated)
		VALUES (?, 0, x'', 0, '', '', 0, 0, 0, 0, '', ?, 0) ON CONFLICT (id) DO NOTHING`, run.ID, run.Time.UnixMicro())
	if err != nil {
		return err
	}
	if n == 0 {
		return errTaken
	}
	r := row{id: run.ID, fresh: run.Seq}
	if err := t.scan("SELECT num FROM runs WHERE id = ?", []any{run.ID}, &r.num); err != nil {
		return err
	}
	return t.append(r, agent.Commit{Run: run, Entry: entry, Bodies: bodies})
}

// append writes what a commit says. The row of the run is what a conflict is seen
// by: it must be where the entry goes on from.
func (t *transaction) append(r row, c agent.Commit) error {
	if c.Entry.Seq != 0 {
		if err := t.entry(r, c); err != nil {
			return err
		}
	}
	for _, b := range c.Bodies {
		sum, err := hex.DecodeString(b.Ref.SHA256)
		if err != nil {
			return fmt.Errorf("body %s: %w", b.Ref, err)
		}
		if _, err := t.exec("INSERT INTO bodies (run, sha256, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", r.num, sum, blob(b.Data)); err != nil {
			return err
		}
	}
	if c.Key != "" {
		return t.verdict(r, c)
	}
	return nil
}

func (t *transaction) entry(r row, c agent.Commit) error {
	head, err := hex.DecodeString(c.Entry.Hash())
	if err != nil {
		return fmt.Errorf("entry %d: %w", c.Entry.Seq, err)
	}
	prev, err := hex.DecodeString(c.Entry.Prev)
	if err != nil {
		return fmt.Errorf("entry %d: %w", c.Entry.Seq, err)
	}
	s := agent.Summarize(c.Run, time.Time{}) // begin has written when it started
	n, err := t.exec(`UPDATE runs SET seq = ?, head = ?, fresh = ?, state = ?, reason = ?, ended = ?, ready = ?,
		held = ?, unknown = ?, tool = ?, updated = ?, deadline = ? WHERE num = ? AND seq = ? AND head = ?`,
		c.Entry.Seq, head, r.fresh, string(s.State), s.Reason, s.State.Final(), !c.Run.Rests(),
		s.Held, s.Unknown, s.Tool, s.Updated.UnixMicro(), micros(due(c.Run)), r.num, c.Entry.Seq-1, blob(prev))
	if err != nil {
		return err
	}
	if n == 0 {
		return agent.ErrConflict
	}
	_, err = t.exec("INSERT INTO entries (run, seq, bytes, hash) VALUES (?, ?, ?, ?)", r.num, c.Entry.Seq, c.Entry.Bytes(), head)
	return err
}

// blob is data that is never NULL.
func blob(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}
