package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sallyport/agent"
)

// ErrUnknown: the outcome of a write of the run stayed unknown, and its journal is the
// only record of that.
var ErrUnknown = errors.New("the outcome of a write is unknown")

// CollectOptions say what Collect may do beyond the usual.
type CollectOptions struct {
	// Unknown lets runs go that ended with the outcome of a write unknown.
	Unknown bool
	// Dry removes nothing: what would go is counted.
	Dry bool
}

// Collected is what Collect removed, or would.
type Collected struct {
	Runs, Entries, Bodies, Deliveries int64
	// Bytes is by how much the state file became shorter.
	Bytes int64
	// Kept are runs that ended before the time and stay.
	Kept []Kept
}

// Kept is a run that Collect left, and why: [ErrUnknown], [agent.ErrServed],
// [agent.ErrIntegrity] or [agent.ErrNewer].
type Kept struct {
	Run string
	Why error
}

// The bounds of one transaction of Collect. A run goes as a whole, so that none is ever
// found in part.
const (
	collectRuns = 64
	collectRows = 4096 // of the runs before the last
)

// Collect removes runs that ended before a time: their entries, bodies, deliveries and
// locks. When a run ended, and that it did, is taken from its replayed journal; one whose
// journal does not hold together is kept, as evidence. It works in short transactions,
// beside others, and what it has removed stays removed if it is interrupted.
//
// What is removed is overwritten, but copies of it that SQLite has moved between pages
// may stay in the file until the next Erase: erase first what must be gone for certain.
// The id of a removed run can be begun anew.
func (e *Engine) Collect(ctx context.Context, endedBefore time.Time, opts CollectOptions) (Collected, error) {
	ctx, done, err := e.enter(ctx)
	if err != nil {
		return Collected{}, err
	}
	defer done()
	c := collector{engine: e, before: endedBefore, opts: opts}
	err = c.all(ctx)
	if c.sum.Runs > 0 && !opts.Dry {
		var shrunk error
		c.sum.Bytes, shrunk = e.shrink(ctx)
		err = errors.Join(err, shrunk, e.writer.maintain("shorten", (*transaction).settle))
	}
	if err != nil {
		return c.sum, fmt.Errorf("collect runs: %w", err)
	}
	return c.sum, nil
}

// collector is one Collect under way.
type collector struct {
	engine *Engine
	before time.Time
	opts   CollectOptions
	sum    Collected

	batch []condemned
	rows  int64 // of the batch
}

// condemned is a run that goes with the batch.
type condemned struct {
	row
	lock *runLock
}

// all goes over the ended runs, oldest first.
func (c *collector) all(ctx context.Context) (err error) {
	defer c.release()
	ids, err := c.engine.endedRuns(ctx, c.before)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.take(ctx, id); err != nil {
			return err
		}
		if len(c.batch) >= collectRuns || c.rows >= collectRows {
			if err := c.remove(); err != nil {
				return err
			}
		}
	}
	return c.remove()
}

// endedRuns are the runs that may have ended before a time.
func (e *Engine) endedRuns(ctx context.Context, before time.Time) ([]string, error) {
	rows, err := e.reads.QueryContext(ctx, "SELECT id FROM runs WHERE ended AND started < ? ORDER BY num", before.UnixMicro())
	if err != nil {
		return nil, e.explainRead(ctx, err)
	}
	ids, err := all(rows, func(scan func(...any) error) (id string, err error) { return id, scan(&id) })
	return ids, e.explainRead(ctx, err)
}

// take puts a run into the batch, with its lock, or notes why it is kept.
func (c *collector) take(ctx context.Context, id string) error {
	lock, err := c.engine.lockFor(ctx, id, false)
	if errors.Is(err, agent.ErrServed) {
		c.keep(id, err)
		return nil
	}
	if err != nil {
		return err
	}
	r, goes, err := c.judge(ctx, id)
	lock.ended = r.ended
	if err != nil || !goes {
		lock.release()
	}
	switch {
	case errors.Is(err, agent.ErrNoRun):
		return nil // somebody else has collected it
	case errors.Is(err, agent.ErrIntegrity) || errors.Is(err, agent.ErrNewer):
		c.keep(id, err)
		return nil
	case err != nil || !goes:
		return err
	}
	c.batch = append(c.batch, condemned{r, lock})
	c.rows += r.seq
	return nil
}

func (c *collector) keep(id string, why error) {
	c.sum.Kept = append(c.sum.Kept, Kept{Run: id, Why: why})
}

// judge reads the journal of a run whose lock is held and says whether it goes.
func (c *collector) judge(ctx context.Context, id string) (_ row, goes bool, err error) {
	was, ended, err := c.engine.lived(ctx, id)
	switch {
	case err != nil:
		return was.row, false, err
	case !was.run.State.Final():
		return was.row, false, fmt.Errorf("%w: run %s is listed as ended and is in state %s", agent.ErrIntegrity, id, was.run.State)
	case !ended.Before(c.before):
		return was.row, false, nil
	case agent.Summarize(was.run, time.Time{}).Unknown && !c.opts.Unknown:
		c.keep(id, ErrUnknown)
		return was.row, false, nil
	}
	return was.row, true, nil
}

// lived loads a run, and says when its last event was: an erasure may have followed.
func (e *Engine) lived(ctx context.Context, id string) (_ loaded, last time.Time, err error) {
	was, err := e.load(ctx, id)
	if err != nil {
		return was, last, err
	}
	for seq := was.seq; seq > 0; seq-- {
		part, err := e.part(ctx, was.row, seq, seq)
		if err != nil {
			return was, last, err
		}
		if part[0].Kind == agent.EntryEvent {
			return was, part[0].Time, nil
		}
	}
	return was, last, fmt.Errorf("%w: run %s has no event", agent.ErrIntegrity, id)
}

// remove removes the batch in one transaction, and gives its locks back.
func (c *collector) remove() error {
	defer c.release()
	if len(c.batch) == 0 {
		return nil
	}
	var gone Collected
	err := c.engine.writer.do("", func(tx *transaction) error {
		gone = Collected{}
		for _, it := range c.batch {
			if err := tx.remove(it.row, c.opts.Dry, &gone); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.sum.Runs += gone.Runs
	c.sum.Entries += gone.Entries
	c.sum.Bodies += gone.Bodies
	c.sum.Deliveries += gone.Deliveries
	return nil
}

// release gives the locks of the batch back, and forgets it.
func (c *collector) release() {
	for _, it := range c.batch {
		it.lock.release()
	}
	c.batch, c.rows = nil, 0
}

// remove removes all that there is of a run, or only counts it.
func (t *transaction) remove(r row, dry bool, gone *Collected) error {
	for _, part := range []struct {
		of    string
		count *int64
	}{
		{"parcels WHERE delivery IN (SELECT num FROM inbox WHERE run = ?)", new(int64)},
		{"inbox WHERE run = ?", &gone.Deliveries},
		{"bodies WHERE run = ?", &gone.Bodies},
		{"entries WHERE run = ?", &gone.Entries},
		{"runs WHERE num = ?", &gone.Runs},
	} {
		n, err := int64(0), error(nil)
		if dry {
			err = t.scan("SELECT count(*) FROM "+part.of, []any{r.num}, &n)
		} else {
			n, err = t.exec("DELETE FROM "+part.of, r.num)
		}
		if err != nil {
			return err
		}
		*part.count += n
	}
	return nil
}
