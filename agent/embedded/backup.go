package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sallyport/agent"
)

// BackupWritten is a crash point: a backup is whole and does not have its name yet.
const BackupWritten = "backup_written"

// Backup writes a consistent copy of the state file: all runs, bodies and deliveries as
// they are at one moment, while others go on writing. The copy has mode 0600, was
// checked, and is on the disk when Backup returns nil; only then does it have its name.
// It never overwrites: a file that exists is an fs.ErrExist. After an error nothing is
// left behind; after a kill, at most a hidden file NAME.*.partial beside it.
//
// To restore, put the copy as state.db into an empty folder of mode 0700, and open that.
// It holds no ledger of a server: to resume a run from it beside the original is safe
// for writes only where both use the same ledger.
func (e *Engine) Backup(ctx context.Context, file string) error {
	ctx, done, err := e.enter(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.backup(ctx, file); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("back up to %q: %w", file, err)
	}
	return nil
}

func (e *Engine) backup(ctx context.Context, file string) (err error) {
	file, err = filepath.Abs(file)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("it is there already: %w", fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	partial, err := emptyFile(file)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, removeFiles(partial, partial+"-wal", partial+"-shm", partial+"-journal"))
	}()
	if err := e.copyInto(ctx, partial); err != nil {
		return err
	}
	if err := checkCopy(ctx, partial); err != nil {
		return err
	}
	if err := syncPath(partial); err != nil {
		return err
	}
	e.crash(BackupWritten)
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := name(partial, file); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(file))
}

// emptyFile makes a hidden file beside the one that is to be, for its owner only.
func emptyFile(beside string) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(beside), "."+filepath.Base(beside)+".*.partial") // 0600
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// copyInto writes one state of the file, as of its beginning, into an empty one.
func (e *Engine) copyInto(ctx context.Context, partial string) (err error) {
	db := open(e.writer.path, 1, durable()) // of its own: readers may not write anywhere
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.ExecContext(ctx, "VACUUM INTO ?", partial)
	return explain(partial, "write", err)
}

// checkCopy makes the copy fit for Open, and reads all of it.
func checkCopy(ctx context.Context, partial string) (err error) {
	settings := durable()
	settings.Add("_pragma", "journal_mode(wal)") // kept in the file; Open insists on it
	db := open(partial, 1, settings)
	defer func() { err = errors.Join(err, db.Close()) }() // takes the write-ahead log in
	var said string
	if err := db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&said); err != nil {
		return explain(partial, "check", err)
	}
	if said != "ok" {
		return fmt.Errorf("%w: the copy is damaged, and so may be the state file: %s", agent.ErrIntegrity, said)
	}
	version, err := inspect(partial)
	if err == nil && version != len(migrations) {
		err = fmt.Errorf("the copy has schema %d, must have %d", version, len(migrations))
	}
	return err
}

// name gives a whole file its name, if that is free.
func name(partial, file string) error {
	err := os.Link(partial, file)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	// A file system without links: take the name, then replace what took it.
	taken, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, fileMode)
	if err != nil {
		return err
	}
	if err := errors.Join(taken.Close(), os.Rename(partial, file)); err != nil {
		return errors.Join(err, removeFiles(file))
	}
	return nil
}

// removeFiles removes those that there are.
func removeFiles(paths ...string) error {
	var errs []error
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// syncPath makes a file that nobody has open durable.
func syncPath(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
