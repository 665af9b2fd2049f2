package embedded

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"sallyport/agent"
)

// readers bounds the connections that read at once.
const readers = 8

// busyTimeout is how long SQLite itself waits for a lock. Our own writers take turns
// before they ask; it is for others, such as a backup.
const busyTimeout = 10 * time.Second

// dsn names the state file with settings for the connection. The driver applies
// _auto_vacuum first and _query_only last.
func dsn(path string, settings url.Values) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	q := url.Values{
		"mode":          {"rw"}, // the file is there: see prepareFile
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		"_error_rc":     {"1"},
		"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())},
	}
	maps.Copy(q, settings)
	u := url.URL{Scheme: "file", Path: slashed, RawQuery: q.Encode()}
	return u.String()
}

// durable are the settings of every connection that is used: a commit is on the disk,
// file and directory, before it returns. None of them writes. promises are what the
// settings must read back as.
func durable() url.Values {
	return url.Values{"_pragma": {
		"trusted_schema(0)", "synchronous(full)",
		"fullfsync(1)", "checkpoint_fullfsync(1)", // macOS: fsync alone leaves data in the drive's cache
		"secure_delete(1)", // what is deleted is overwritten: see Erase
		"journal_size_limit(67108864)",
	}}
}

// creating are the settings of the connection that makes the file: they stay with it.
func creating() url.Values {
	s := durable()
	s.Set("_auto_vacuum", "incremental") // possible while the file is empty only
	s.Add("_pragma", "journal_mode(wal)")
	return s
}

var promises = map[string]string{
	"journal_mode": "wal", "synchronous": "2", "fullfsync": "1", "checkpoint_fullfsync": "1",
	"secure_delete": "1",
}

// connector opens connections and asserts the promises on each: a build or a file
// that does not keep them is refused at open, not found out after a power cut or an
// erasure.
type connector struct {
	driver.Connector
	path string
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, explain(c.path, "open", err)
	}
	for name, want := range promises {
		got, err := pragma(ctx, conn, name)
		if err == nil && got != want {
			err = fmt.Errorf("open %s: %s is %s, must be %s", c.path, name, got, want)
		}
		if err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return conn, nil
}

// pragma reads one setting of a connection.
func pragma(ctx context.Context, conn driver.Conn, name string) (string, error) {
	q, ok := conn.(driver.QueryerContext)
	if !ok {
		return "", fmt.Errorf("read %s: the driver cannot query", name)
	}
	rows, err := q.QueryContext(ctx, "PRAGMA "+name, nil)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	row := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(row); err != nil && !errors.Is(err, io.EOF) {
		return "", errors.Join(fmt.Errorf("read %s: %w", name, err), rows.Close())
	}
	if err := rows.Close(); err != nil || len(row) != 1 {
		return "", fmt.Errorf("read %s: no value: %w", name, err)
	}
	return fmt.Sprint(row[0]), nil
}

// openPool opens connections for reading; they are made when needed.
func openPool(path string, most int) *sql.DB {
	settings := durable()
	settings.Set("_query_only", "1")
	return open(path, most, settings)
}

func open(path string, most int, settings url.Values) *sql.DB {
	inner, err := sqlite.NewConnector(dsn(path, settings))
	if err != nil {
		inner = broken{err} // a DSN of constants; the first use says so
	}
	db := sql.OpenDB(&connector{inner, path})
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db
}

// broken is a connector that never connects.
type broken struct{ err error }

func (b broken) Connect(context.Context) (driver.Conn, error) { return nil, b.err }
func (b broken) Driver() driver.Driver                        { return nil }

// prepareStore refuses a foreign or newer file, and creates or migrates ours. It
// runs in this process's turn to write: two processes that create one state
// directory at once do it one after the other.
func prepareStore(path string, turn *turnstile, crash func(point string)) (err error) {
	// As SQLite does wherever it is built by configure: the times of the file need
	// not be durable, its data and size do. Elsewhere the default stays.
	_, _ = sqlite.Fdatasync(true)
	if err := turn.enter(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.leave()) }()
	version, err := inspect(path)
	if err != nil {
		return err
	}
	return migrate(path, version, crash)
}

// inspect reads whose file it is, without changing a byte of it, and returns how many
// migrations it has had.
func inspect(path string) (version int, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, fmt.Errorf("open the state file: %w", err)
	}
	if info.Size() == 0 {
		return 0, nil
	}
	inner, err := sqlite.NewConnector(dsn(path, url.Values{"_query_only": {"1"}}))
	if err != nil {
		return 0, explain(path, "open", err)
	}
	db := sql.OpenDB(inner)
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxOpenConns(1)
	var app, tables int
	for _, read := range []struct {
		query string
		into  *int
	}{
		{"PRAGMA application_id", &app},
		{"PRAGMA user_version", &version},
		{"SELECT count(*) FROM sqlite_schema", &tables},
	} {
		if err := db.QueryRow(read.query).Scan(read.into); err != nil {
			return 0, explain(path, "open", err)
		}
	}
	switch {
	case app == 0 && version == 0 && tables == 0:
		return 0, nil // another process was killed while it created it
	case app != applicationID:
		return 0, fmt.Errorf("open %s: another program's database, not a state file of sallyport; name another directory with --state", path)
	case version > len(migrations):
		return 0, fmt.Errorf("open %s: schema %d, the newest known here is %d: %w", path, version, len(migrations), agent.ErrNewer)
	}
	return version, checkTables(db, path)
}

// tables are those that every schema has had.
var tables = []string{"runs", "entries", "bodies", "inbox", "parcels"}

// checkTables refuses a file from which a table was taken.
func checkTables(db *sql.DB, path string) error {
	for _, name := range tables {
		var there bool
		if err := db.QueryRow("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?", name).Scan(&there); err != nil {
			return explain(path, "open", err)
		}
		if !there {
			s := &StoreError{Path: path, Doing: "open", Remedy: remedies[sqlite3.SQLITE_CORRUPT], Err: fmt.Errorf("it has no table %s", name)}
			return fmt.Errorf("%w: %w", agent.ErrIntegrity, s)
		}
	}
	return nil
}

// migrate brings the file to the newest schema, in one transaction for each version: a
// process that ends in the middle leaves the version before, whole.
func migrate(path string, version int, crash func(point string)) (err error) {
	settings := durable()
	if version == 0 {
		settings = creating()
	}
	db := open(path, 1, settings)
	defer func() { err = errors.Join(err, db.Close()) }() // rolls back what is open
	for ; version < len(migrations); version++ {
		begin := fmt.Sprintf("BEGIN IMMEDIATE; %s; PRAGMA application_id = %d; PRAGMA user_version = %d",
			migrations[version], applicationID, version+1)
		if _, err := db.Exec(begin); err != nil {
			return explain(path, fmt.Sprintf("bring to schema %d", version+1), err)
		}
		crash(InMigration)
		if _, err := db.Exec("COMMIT"); err != nil {
			return explain(path, fmt.Sprintf("bring to schema %d", version+1), err)
		}
	}
	var vacuum int
	if err := db.QueryRow("PRAGMA auto_vacuum").Scan(&vacuum); err != nil {
		return explain(path, "open", err)
	}
	if vacuum != 2 {
		return fmt.Errorf("open %s: auto_vacuum is %d, must be 2: the file was not created by sallyport", path, vacuum)
	}
	return nil
}
