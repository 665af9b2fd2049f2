package embedded

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"sallyport/agent"
)

// MaxKey bounds a delivery's key, in bytes.
const MaxKey = 128

// deliverPoll is how often who waits for a verdict tries to give it: the process
// that served the run may have let go of it, which nothing else shows.
const deliverPoll = 10 * time.Millisecond

// Deliver implements [agent.Engine]. The delivery is durable before anybody judges
// it. Who serves the run gives the verdict; if nobody does, this call gives it. If ctx
// ends first, the delivery stays and is judged by whoever next serves the run or
// delivers to it; delivering it again waits for the same verdict.
func (e *Engine) Deliver(ctx context.Context, run string, d agent.Delivery) (agent.Verdict, error) {
	ctx, done, err := e.enter(ctx)
	if err != nil {
		return agent.Verdict{}, err
	}
	defer done()
	if d.Actor == "" {
		d.Actor = e.config.Actor
	}
	r, err := e.find(ctx, run)
	if err != nil {
		return agent.Verdict{}, err
	}
	if err := e.post(ctx, r, d); err != nil {
		return agent.Verdict{}, fmt.Errorf("deliver to run %s: %w", run, err)
	}
	e.crash(Delivered)
	e.serving.hint(run)
	v, err := e.answer(ctx, r, d.Key)
	if err != nil {
		return v, fmt.Errorf("deliver to run %s: the decision is in its inbox, its verdict is not there: %w", run, err)
	}
	return v, nil
}

// post puts a delivery into the inbox, once.
func (e *Engine) post(ctx context.Context, r row, d agent.Delivery) error {
	if d.Key == "" || len(d.Key) > MaxKey {
		return fmt.Errorf("a key of %d bytes, want 1 to %d", len(d.Key), MaxKey)
	}
	raw, err := encodeDelivery(d)
	if err != nil {
		return err
	}
	if err := checkBodies(d.Bodies); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return e.writer.do(r.id, func(tx *transaction) error { return tx.post(r, d, raw) })
}

func (t *transaction) post(r row, d agent.Delivery, raw []byte) error {
	// The run may have been collected since it was found, and another have its number.
	var id string
	if err := t.scan("SELECT id FROM runs WHERE num = ?", []any{r.num}, &id); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if id != r.id {
		return fmt.Errorf("run %q: %w", r.id, agent.ErrNoRun)
	}
	n, err := t.exec("INSERT INTO inbox (run, key, delivery) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", r.num, d.Key, raw)
	if err != nil || n == 0 {
		return err
	}
	var num int64
	if err := t.scan("SELECT num FROM inbox WHERE run = ? AND key = ?", []any{r.num, d.Key}, &num); err != nil {
		return err
	}
	for _, b := range d.Bodies {
		sum, err := hex.DecodeString(b.Ref.SHA256)
		if err != nil {
			return fmt.Errorf("body %s: %w", b.Ref, err)
		}
		if _, err := t.exec("INSERT INTO parcels (delivery, sha256, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", num, sum, blob(b.Data)); err != nil {
			return err
		}
	}
	return nil
}

// verdict writes the verdict beside its delivery, whose content is not kept there.
func (t *transaction) verdict(r row, c agent.Commit) error {
	raw, err := json.Marshal(c.Verdict)
	if err != nil {
		return fmt.Errorf("encode the verdict: %w", err)
	}
	n, err := t.exec("UPDATE inbox SET verdict = ?, seq = ? WHERE run = ? AND key = ? AND verdict IS NULL",
		raw, sql.NullInt64{Int64: c.Verdict.Seq, Valid: c.Verdict.Seq > 0}, r.num, c.Key)
	if err != nil {
		return err
	}
	if n == 0 {
		return fmt.Errorf("%w: run %s has no delivery %q without a verdict", agent.ErrIntegrity, r.id, c.Key)
	}
	_, err = t.exec("DELETE FROM parcels WHERE delivery = (SELECT num FROM inbox WHERE run = ? AND key = ?)", r.num, c.Key)
	return err
}

// answer waits for the verdict, or gives it.
func (e *Engine) answer(ctx context.Context, r row, key string) (agent.Verdict, error) {
	defer e.topics.listen()()
	timer := time.NewTicker(deliverPoll)
	defer timer.Stop()
	for {
		changed := e.topics.next(r.id)
		v, ok, err := e.given(ctx, r, key)
		if err != nil || ok {
			return v, err
		}
		if ok, err := e.judge(ctx, r.id); err != nil {
			return agent.Verdict{}, err
		} else if ok {
			continue
		}
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
			return agent.Verdict{}, ctx.Err()
		}
	}
}

// given reads the verdict of a delivery, if there is one.
func (e *Engine) given(ctx context.Context, r row, key string) (v agent.Verdict, ok bool, err error) {
	var raw []byte
	err = e.reads.QueryRowContext(ctx, "SELECT verdict FROM inbox WHERE run = ? AND key = ?", r.num, key).Scan(&raw)
	if errors.Is(err, sql.ErrNoRows) {
		return v, false, fmt.Errorf("run %q: it was collected: %w", r.id, agent.ErrNoRun)
	}
	if err != nil {
		return v, false, e.explainRead(ctx, err)
	}
	if raw == nil {
		return v, false, nil
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, false, fmt.Errorf("%w: run %s: the verdict of delivery %q: %w", agent.ErrIntegrity, r.id, key, err)
	}
	return v, true, nil
}

// judge gives the verdicts that a run owes, if nobody serves it. It performs nothing.
func (e *Engine) judge(ctx context.Context, run string) (ok bool, err error) {
	lock, err := takeLock(e.lockPath(run), holder{os.Getpid(), false})
	if errors.Is(err, errHeld) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer lock.release()
	was, err := e.load(ctx, run)
	if err != nil {
		return false, err
	}
	l := &log{engine: e, row: was.row}
	d := e.driver(l)
	waiting, err := l.waiting(ctx)
	if err != nil {
		return false, err
	}
	for _, del := range waiting {
		if was.run, _, err = d.Judge(ctx, was.run, del); err != nil {
			return false, err
		}
	}
	lock.ended = was.run.State.Final()
	return true, nil
}

// Inbox implements [agent.Log]. It asks the file when there was a hint, and when the
// driver may stop after it.
func (l *log) Inbox(ctx context.Context) ([]agent.Delivery, error) {
	if !l.served.seen() && !l.resting {
		return nil, nil
	}
	return l.waiting(ctx)
}

// waiting are the deliveries without a verdict, oldest first.
func (l *log) waiting(ctx context.Context) ([]agent.Delivery, error) {
	rows, err := l.engine.reads.QueryContext(ctx,
		"SELECT num, key, delivery FROM inbox WHERE run = ? AND verdict IS NULL ORDER BY num", l.row.num)
	if err != nil {
		return nil, l.engine.explainRead(ctx, err)
	}
	type stored struct {
		num int64
		key string
		raw []byte
	}
	found, err := all(rows, func(scan func(...any) error) (s stored, err error) { return s, scan(&s.num, &s.key, &s.raw) })
	if err != nil {
		return nil, l.engine.explainRead(ctx, err)
	}
	var out []agent.Delivery
	for _, s := range found {
		d, err := decodeDelivery(s.raw)
		if err != nil {
			return nil, fmt.Errorf("delivery %q: %w", s.key, err)
		}
		d.Key = s.key
		if err := l.engine.unpack(ctx, l.row, s.num, d.Bodies); err != nil {
			return nil, fmt.Errorf("delivery %q: %w", s.key, err)
		}
		out = append(out, d)
	}
	return out, nil
}

// unpack reads the content of the bodies that a delivery brought.
func (e *Engine) unpack(ctx context.Context, r row, num int64, bodies []agent.Body) error {
	for i, b := range bodies {
		sum, err := hex.DecodeString(b.Ref.SHA256)
		if err != nil {
			return fmt.Errorf("%w: body %s", agent.ErrIntegrity, b.Ref)
		}
		err = e.reads.QueryRowContext(ctx, "SELECT data FROM parcels WHERE delivery = ? AND sha256 = ?", num, sum).Scan(&bodies[i].Data)
		gone := errors.Is(err, sql.ErrNoRows)
		if err != nil && !gone {
			return e.explainRead(ctx, err)
		}
		if !gone && agent.NewBody(bodies[i].Data).Ref == b.Ref {
			continue
		}
		// What was erased from the run went from its deliveries too.
		var erased *ErasedError
		if _, err := e.erasure(ctx, r, b.Ref); err != nil && !errors.As(err, &erased) {
			return err
		}
		if gone || erased == nil || len(bodies[i].Data) != 0 {
			return fmt.Errorf("%w: run %s: body %s that it brings is missing, or not the bytes that were hashed", agent.ErrIntegrity, r.id, b.Ref)
		}
	}
	return nil
}
