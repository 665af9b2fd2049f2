package embedded

import (
	"context"
	"database/sql"
)

// look reads from the state file. The error that it returns is explained.
func (e *Engine) look(ctx context.Context, read func(db *sql.DB) error) error {
	return e.explainRead(ctx, read(e.reads))
}
