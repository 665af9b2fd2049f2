package embedded

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"sallyport/agent"
)

// What was deleted is overwritten at once (secure_delete), but two kinds of copies are
// not: frames of the write-ahead log, and cells that SQLite moved between the pages of
// a table when a neighbour was deleted. scrub removes both.

// shrinkStep is how many free pages are given back in one turn to write.
const shrinkStep = 512

// readerPatience is how long the readers of the write-ahead log are waited for; nobody
// writes meanwhile.
const readerPatience = 2 * time.Second

// errReader says that the write-ahead log could not be emptied.
var errReader = errors.New("somebody, perhaps a backup, has been reading the state file for a while; wait for it")

// scrub sees to it that what is no longer stored is in no file.
func (e *Engine) scrub(ctx context.Context) error {
	if _, err := e.shrink(ctx); err != nil {
		return err
	}
	clean, err := e.clean(ctx)
	if err != nil {
		return err
	}
	return e.writer.maintain("clean", func(tx *transaction) error {
		if !clean {
			if _, err := tx.exec("VACUUM"); err != nil {
				return err
			}
		}
		return tx.checkpoint()
	})
}

// shrink gives free pages back to the file system, and returns by how many bytes the
// state file is shorter. Others may write in between.
func (e *Engine) shrink(ctx context.Context) (freed int64, err error) {
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return freed, err
		}
		err := e.writer.maintain("shorten", func(tx *transaction) error {
			n, err := tx.vacuum()
			freed, more = freed+n, n > 0
			return err
		})
		if err != nil {
			return freed, err
		}
	}
	return freed, nil
}

// vacuum cuts at most shrinkStep free pages off the file and returns their bytes.
func (t *transaction) vacuum() (int64, error) {
	var before, after, size int64
	if err := errors.Join(t.scan("PRAGMA page_count", nil, &before), t.scan("PRAGMA page_size", nil, &size)); err != nil {
		return 0, err
	}
	rows, err := t.query(fmt.Sprintf("PRAGMA incremental_vacuum(%d)", shrinkStep))
	if err != nil {
		return 0, err
	}
	// Each row that is read frees a page.
	if _, err := all(rows, func(func(...any) error) (struct{}, error) { return struct{}{}, nil }); err != nil {
		return 0, err
	}
	err = t.scan("PRAGMA page_count", nil, &after)
	return (before - after) * size, err
}

// checkpoint moves the write-ahead log into the file and cuts it to nothing.
func (t *transaction) checkpoint() error {
	var busy, frames, moved int64
	err := t.patience(readerPatience)
	if err == nil {
		err = t.scan("PRAGMA wal_checkpoint(TRUNCATE)", nil, &busy, &frames, &moved)
	}
	if err == nil && busy != 0 {
		err = errReader
	}
	return errors.Join(err, t.patience(busyTimeout))
}

// patience sets how long SQLite waits for a lock.
func (t *transaction) patience(d time.Duration) error {
	var set int64
	return t.scan(fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds()), nil, &set)
}

// settle moves what it can of the write-ahead log into the file, waiting for nobody.
func (t *transaction) settle() error {
	var busy, frames, moved int64
	return t.scan("PRAGMA wal_checkpoint(PASSIVE)", nil, &busy, &frames, &moved)
}

// clean reports whether the pages that hold content hold nothing besides what is stored.
func (e *Engine) clean(ctx context.Context) (_ bool, err error) {
	rows, err := e.reads.QueryContext(ctx, `SELECT p.data FROM dbstat s JOIN sqlite_dbpage p ON p.pgno = s.pageno
		WHERE s.name IN ('bodies', 'parcels') AND s.pagetype = 'leaf'`)
	if err != nil {
		return false, e.explainRead(ctx, err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var page sql.RawBytes
		if err := rows.Scan(&page); err != nil {
			return false, e.explainRead(ctx, err)
		}
		ok, err := cleanLeaf(page)
		if err != nil || !ok {
			return false, err
		}
	}
	return true, e.explainRead(ctx, rows.Err())
}

// The header of a leaf page of a table, as in SQLite's file format.
const (
	leafTable  = 0x0d
	leafHeader = 8
)

// cleanLeaf reports whether the space of a page that no cell uses is all zero: the gap
// between the cell pointers and the cells, and the free blocks behind their headers.
func cleanLeaf(page []byte) (bool, error) {
	damaged := fmt.Errorf("%w: a damaged page in the state file", agent.ErrIntegrity)
	if len(page) < 512 || page[0] != leafTable {
		return false, damaged
	}
	number := func(at int) int { return int(binary.BigEndian.Uint16(page[at:])) }
	from, to := leafHeader+2*number(3), number(5)
	if to == 0 {
		to = 1 << 16
	}
	if from > to || to > len(page) {
		return false, damaged
	}
	if !zero(page[from:to]) {
		return false, nil
	}
	for at := number(1); at != 0; {
		if at < to || at+4 > len(page) || at+number(at+2) > len(page) || number(at+2) < 4 {
			return false, damaged
		}
		if !zero(page[at+4 : at+number(at+2)]) {
			return false, nil
		}
		next := number(at)
		if next != 0 && next <= at {
			return false, damaged
		}
		at = next
	}
	return true, nil
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
