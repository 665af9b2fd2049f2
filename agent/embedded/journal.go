package embedded

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
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
	// What repeats the journal.
	said listing
}

// find reads the row of a run, or returns [agent.ErrNoRun]. A row that is not where the
// run's entries end is [agent.ErrIntegrity].
func (e *Engine) find(ctx context.Context, id string) (row, error) {
	r := row{id: id}
	var what string
	var found int
	err := e.look(ctx, func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, findQuery, id)
		if err != nil {
			return err
		}
		whats, err := all(rows, func(scan func(...any) error) (string, error) { return r.scan(scan) })
		what, found = strings.Join(whats, ""), len(whats)
		return err
	})
	switch {
	case err != nil:
		return r, err
	case found == 0:
		return r, fmt.Errorf("run %q: %w", id, agent.ErrNoRun)
	case what != "":
		return r, e.damaged(id, what)
	}
	return r, nil
}

// findQuery reads a run's row, and the ends of its journal as of the same moment.
const findQuery = "SELECT num, head, fresh, " + listingColumns + ", " + endsColumns + " FROM runs r WHERE id = ?"

// scan reads a line of findQuery, and says what is wrong with it.
func (r *row) scan(scan func(...any) error) (what string, err error) {
	var head sql.RawBytes
	var at ends
	if err := scan(slices.Concat([]any{&r.num, &head, &r.fresh}, r.said.columns(), at.columns())...); err != nil {
		return "", err
	}
	r.seq, r.head, r.ended = r.said.seq, hex.EncodeToString(head), r.said.ended != 0
	return at.broken(head, &r.said), nil
}

// damaged is the integrity error of a run whose rows do not agree.
func (e *Engine) damaged(id, what string) error {
	return fmt.Errorf("read %s: %w: run %s: %s; restore it from a backup", e.path, agent.ErrIntegrity, id, what)
}

// explainRead explains an error of the reading side; an interruption stays one.
func (e *Engine) explainRead(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return explain(e.path, "read", err)
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
	var started time.Time
	run, err := agent.Replay(func(yield func(agent.Entry, error) bool) {
		for entry, err := range e.entries(ctx, r, 1, r.seq) {
			if entry.Seq == 1 {
				started = entry.Time
			}
			if !yield(entry, err) {
				return
			}
		}
	})
	if err != nil {
		return loaded{}, fmt.Errorf("replay the journal in %s: %w", e.path, err)
	}
	if run.Seq != r.seq || run.Head != r.head {
		return loaded{}, fmt.Errorf("replay the journal in %s: %w: run %s ends with entry %d, its last is %d", e.path, agent.ErrIntegrity, id, run.Seq, r.seq)
	}
	if what := r.said.differs(listingOf(run, started)); what != "" {
		return loaded{}, e.damaged(id, what)
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
	type stored struct{ bytes, hash []byte }
	var found []stored
	err := e.look(ctx, func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx,
			"SELECT bytes, hash FROM entries WHERE run = ? AND seq BETWEEN ? AND ? ORDER BY seq", r.num, from, to)
		if err != nil {
			return err
		}
		found, err = all(rows, func(scan func(...any) error) (s stored, err error) { return s, scan(&s.bytes, &s.hash) })
		return err
	})
	if err != nil {
		return nil, err
	}
	var out []agent.Entry
	for i, s := range found {
		entry, err := agent.ParseEntry(s.bytes)
		switch {
		case err != nil:
			return out, fmt.Errorf("run %s, entry %d: %w", r.id, from+int64(i), err)
		case entry.Hash() != hex.EncodeToString(s.hash):
			return out, fmt.Errorf("%w: run %s, entry %d: its bytes are not those that were hashed", agent.ErrIntegrity, r.id, from+int64(i))
		case entry.Run != r.id:
			return out, fmt.Errorf("%w: run %s, entry %d: it belongs to run %q", agent.ErrIntegrity, r.id, from+int64(i), entry.Run)
		case entry.Seq != from+int64(i):
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
	next   int64       // sequence of the next entry
	head   string      // hash of the one before; empty if it was not read
	state  agent.State // after the last event that was read
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
		if entry.Kind == agent.EntryEvent {
			f.state = entry.State
		}
		if !yield(entry, nil) {
			return false, false
		}
	}
	if f.state != agent.StateNone && string(f.state) != r.said.state {
		yield(agent.Entry{}, f.engine.damaged(f.run, fmt.Sprintf("it is listed as %q, its last event led to %s", r.said.state, f.state)))
		return false, false
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
	err = e.look(ctx, func(db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT data FROM bodies WHERE run = ? AND sha256 = ?", r.num, sum).Scan(&data)
	})
	gone := errors.Is(err, sql.ErrNoRows)
	if err != nil && !gone {
		return nil, err
	}
	var named int64
	if gone || len(data) == 0 { // an erased body keeps its row, without content
		if named, err = e.erasure(ctx, r, ref); err != nil {
			return nil, err
		}
	}
	if gone && named != 0 {
		return nil, fmt.Errorf("%w: %w", e.damaged(r.id, fmt.Sprintf("entry %d names body %s, which is missing though no entry says that it was erased", named, ref)), agent.ErrNoBody)
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

// begin writes the first entries of a run, or returns errTaken. The effect that the last
// of them opens was never started.
func (t *transaction) begin(commits []agent.Commit) (row, error) {
	run := commits[0].Run
	n, err := t.exec(`INSERT INTO runs (id, seq, head, fresh, state, reason, ended, ready, held, unknown, tool, started, updated, parent)
		VALUES (?, 0, x'', 0, '', '', 0, 0, 0, 0, '', ?, 0, ?) ON CONFLICT (id) DO NOTHING`,
		run.ID, run.Time.UnixMicro(), agent.Summarize(run, run.Time).Parent)
	if err != nil {
		return row{}, err
	}
	if n == 0 {
		return row{}, errTaken
	}
	r := row{id: run.ID}
	if err := t.scan("SELECT num FROM runs WHERE id = ?", []any{run.ID}, &r.num); err != nil {
		return row{}, err
	}
	for _, c := range commits {
		r.fresh = c.Entry.Seq
		if err := t.append(r, c); err != nil {
			return row{}, err
		}
	}
	return r, nil
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
