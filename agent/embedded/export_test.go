package embedded

import (
	"context"
	"time"

	"sallyport/agent"
)

// AddMigration makes this process a later version, which knows one schema more. It
// returns the number of that schema.
func AddMigration(script string) int {
	migrations = append(migrations[:len(migrations):len(migrations)], script)
	return len(migrations)
}

// Put writes the journals of whole runs, many in a transaction: each is the commits from
// its first entry on.
func (e *Engine) Put(runs [][]agent.Commit) error {
	return e.writer.do("", func(tx *transaction) error {
		for _, commits := range runs {
			if _, err := tx.begin(commits); err != nil {
				return err
			}
		}
		return nil
	})
}

// Scan looks for runs with something to do, as Serve without names does.
func (e *Engine) Scan(ctx context.Context, now time.Time) (int, error) {
	found, err := e.candidates(ctx, now)
	if err == nil {
		_, err = e.untilDue(ctx, now)
	}
	return len(found), err
}
