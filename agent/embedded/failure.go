package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"sallyport/agent"
)

// StoreError says that the state file could not be read or written. What was to be
// appended counts as not appended, and nothing that depended on it was performed.
type StoreError struct {
	Path   string
	Doing  string // what was attempted
	Remedy string // what a person can do
	Err    error
}

// Error implements error.
func (s *StoreError) Error() string {
	return fmt.Sprintf("%s %s: %s: %v", s.Doing, s.Path, s.Remedy, s.Err)
}

// Unwrap returns the cause.
func (s *StoreError) Unwrap() error { return s.Err }

// Is makes a permission problem an fs.ErrPermission.
func (s *StoreError) Is(target error) bool {
	return target == fs.ErrPermission && (code(s.Err) == sqlite3.SQLITE_READONLY || code(s.Err) == sqlite3.SQLITE_CANTOPEN)
}

// remedies are what a person can do about each of SQLite's primary result codes.
var remedies = map[int]string{
	sqlite3.SQLITE_FULL:     "the disk is full; free some space, then resume the run",
	sqlite3.SQLITE_READONLY: "it cannot be written; make it writable for you, then resume the run",
	sqlite3.SQLITE_IOERR:    "the disk failed, or a limit on file sizes was met; see to it, then resume the run",
	sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check that the directory and the file are yours and writable",
	sqlite3.SQLITE_CORRUPT:  "the file is damaged; restore it from a backup",
	sqlite3.SQLITE_NOTADB:   "it is not a state file of sallyport; name another directory with --state",
	sqlite3.SQLITE_BUSY:     "another program keeps it locked; end that, then resume the run",
	sqlite3.SQLITE_PERM:     "it may not be opened; check that the directory and the file are yours",
}

// code is SQLite's primary result code, 0 if the error is not SQLite's.
func code(err error) int {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return 0
	}
	return e.Code() & 0xff
}

// explain says of an error of the store which file it concerns and what to do. A
// damaged or foreign file is [agent.ErrIntegrity] too.
func explain(path, doing string, err error) error {
	var known *StoreError
	if err == nil || errors.As(err, &known) {
		return err
	}
	remedy, ok := remedies[code(err)]
	corrupt := code(err) == sqlite3.SQLITE_CORRUPT || lacking(err)
	if corrupt {
		remedy = remedies[sqlite3.SQLITE_CORRUPT]
	} else if (code(err) == sqlite3.SQLITE_IOERR || code(err) == sqlite3.SQLITE_CANTOPEN) && full(filepath.Dir(path)) {
		remedy = remedies[sqlite3.SQLITE_FULL] // SQLite says so of its main files only
	} else if !ok {
		return fmt.Errorf("%s %s: %w", doing, path, err)
	}
	s := &StoreError{Path: path, Doing: doing, Remedy: remedy, Err: err}
	if corrupt {
		return fmt.Errorf("%w: %w", agent.ErrIntegrity, s)
	}
	return s
}

// lacking reports whether the file has not the tables and columns of its schema: what we
// ask of it is constant.
func lacking(err error) bool {
	return code(err) == sqlite3.SQLITE_ERROR &&
		(strings.Contains(err.Error(), "no such table") || strings.Contains(err.Error(), "no such column") || strings.Contains(err.Error(), "has no column"))
}
