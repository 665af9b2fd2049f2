package embedded

import (
	"context"
	"database/sql"
	"time"

	"sallyport/agent"
)

// due is when a tick is due though the run rests: when its candidate expires.
func due(run agent.Run) time.Time {
	if run.State != agent.StateAwaitingApproval {
		return time.Time{}
	}
	return run.Deadline
}

// micros is how times are stored: microseconds, NULL for none.
func micros(t time.Time) sql.NullInt64 {
	return sql.NullInt64{Int64: t.UnixMicro(), Valid: !t.IsZero()}
}

// listQuery stops at the limit.
const listQuery = `SELECT id, state, reason, seq, held, unknown, tool, started, updated, deadline
	FROM runs WHERE (NOT ? OR ended = 0) AND (? = '' OR state = ?) ORDER BY started DESC, id LIMIT ?`

// List implements [agent.Engine]. It reads one state of the file: it lags behind no
// commit that has returned.
func (e *Engine) List(ctx context.Context, filter agent.Filter) ([]agent.Summary, error) {
	ctx, done, err := e.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	limit := -1
	if filter.Limit > 0 {
		limit = filter.Limit
	}
	rows, err := e.reads.QueryContext(ctx, listQuery, filter.Open, string(filter.State), string(filter.State), limit)
	if err != nil {
		return nil, e.explainRead(ctx, err)
	}
	found, err := all(rows, scanSummary)
	if err != nil {
		return nil, e.explainRead(ctx, err)
	}
	return found, nil
}

func scanSummary(scan func(...any) error) (s agent.Summary, err error) {
	var started, updated int64
	var deadline sql.NullInt64
	err = scan(&s.ID, &s.State, &s.Reason, &s.Seq, &s.Held, &s.Unknown, &s.Tool, &started, &updated, &deadline)
	s.Started, s.Updated = time.UnixMicro(started).UTC(), time.UnixMicro(updated).UTC()
	if deadline.Valid {
		s.Deadline = time.UnixMicro(deadline.Int64).UTC()
	}
	return s, err
}
