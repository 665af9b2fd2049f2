package embedded

import (
	"context"
	"database/sql"
	"errors"
	"slices"
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
const listQuery = "SELECT id, head, " + listingColumns + ", " + endsColumns + `
	FROM runs r WHERE (NOT ? OR ended = 0) AND (? = '' OR state = ?) ORDER BY started DESC, id LIMIT ?`

// List implements [agent.Engine]. It reads one state of the file: it lags behind no
// commit that has returned. A run whose line does not fit the ends of its journal is
// left out and named by an [agent.ErrIntegrity], which comes with the others.
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
	var found []agent.Summary
	var broken []error
	err = e.look(ctx, func(db *sql.DB) error {
		found, broken = nil, nil
		rows, err := db.QueryContext(ctx, listQuery, filter.Open, string(filter.State), string(filter.State), limit)
		if err != nil {
			return err
		}
		lines, err := all(rows, scanLine)
		for _, l := range lines {
			if l.what != "" {
				broken = append(broken, e.damaged(l.summary.ID, l.what))
				continue
			}
			found = append(found, l.summary)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, errors.Join(broken...)
}

// line is a run in a list, and what is wrong with it.
type line struct {
	summary agent.Summary
	what    string
}

func scanLine(scan func(...any) error) (l line, err error) {
	var id string
	var head sql.RawBytes
	var said listing
	var at ends
	err = scan(slices.Concat([]any{&id, &head}, said.columns(), at.columns())...)
	if err != nil {
		return l, err
	}
	return line{said.summary(id), at.broken(head, &said)}, nil
}
