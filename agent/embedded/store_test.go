package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"modernc.org/sqlite"

	"sallyport/agent"
)

// opened opens an engine and closes it with the test.
func opened(t testing.TB, dir string, config Config) *Engine {
	t.Helper()
	e, err := Open(dir, config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close the engine: %v", err)
		}
	})
	return e
}

// raw opens the state file without the engine, to look at it or to damage it.
func raw(t testing.TB, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, stateFile))
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func query(t testing.TB, db *sql.DB, q string, args ...any) string {
	t.Helper()
	var got string
	if err := db.QueryRow(q, args...).Scan(&got); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return got
}

func execute(t testing.TB, db *sql.DB, q string, args ...any) {
	t.Helper()
	if _, err := db.Exec(q, args...); err != nil {
		t.Fatalf("%s: %v", q, err)
	}
}

func TestOpen_CreatesTheFileAsPromised(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "state")
	e := opened(t, dir, Config{})
	db := raw(t, dir)
	for q, want := range map[string]string{
		"PRAGMA journal_mode":   "wal",
		"PRAGMA auto_vacuum":    "2",
		"PRAGMA application_id": fmt.Sprint(applicationID),
		"PRAGMA user_version":   fmt.Sprint(len(migrations)),
		"PRAGMA quick_check":    "ok",
	} {
		if got := query(t, db, q); got != want {
			t.Errorf("%s: %s, want %s", q, got, want)
		}
	}
	if runtime.GOOS == "windows" {
		return
	}
	for path, want := range map[string]os.FileMode{
		dir: 0o700, filepath.Join(dir, lockFolder): 0o700, e.writer.path: 0o600, e.writer.path + "-wal": 0o600, e.writer.path + "-shm": 0o600,
	} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %04o, want %04o", path, got, want)
		}
	}
}

// Every connection that is used keeps the promises, and one that does not is refused.
func TestConnections_AreDurableOrRefused(t *testing.T) {
	dir := t.TempDir()
	e := opened(t, dir, Config{})
	if err := e.writer.connect(); err != nil {
		t.Fatal(err)
	}
	reading, err := e.reads.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = reading.Close() }()
	for name, conn := range map[string]*sql.Conn{"the writer's": e.writer.tx.conn, "a reader's": reading} {
		for setting, want := range promises {
			var got string
			if err := conn.QueryRowContext(t.Context(), "PRAGMA "+setting).Scan(&got); err != nil || got != want {
				t.Errorf("%s connection: %s is %s, want %s: %v", name, setting, got, want, err)
			}
		}
	}
	if _, err := reading.ExecContext(t.Context(), "DELETE FROM entries"); err == nil {
		t.Error("a reader's connection deleted entries")
	}
	for setting, broken := range map[string]string{
		"synchronous": "synchronous(normal)", "fullfsync": "fullfsync(0)", "checkpoint_fullfsync": "checkpoint_fullfsync(0)",
		"secure_delete": "secure_delete(0)",
	} {
		settings := durable()
		settings["_pragma"] = append(slices.DeleteFunc(settings["_pragma"], func(p string) bool { return strings.HasPrefix(p, setting+"(") }), broken)
		db := open(e.writer.path, 1, settings)
		err := db.PingContext(t.Context())
		if err == nil || !strings.Contains(err.Error(), setting) {
			t.Errorf("a connection with %s was let in: %v", broken, err)
		}
		_ = db.Close()
	}
}

// A journal mode that is not WAL is refused too: here of a file in another mode, read
// without the settings.
func TestConnections_RefuseAnotherJournalMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, db, "CREATE TABLE x (y)")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	inner, err := sqlite.NewConnector(dsn(path, url.Values{"_pragma": {"synchronous(full)", "fullfsync(1)", "checkpoint_fullfsync(1)", "secure_delete(1)"}}))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := (&connector{inner, path}).Connect(t.Context())
	if err == nil || !strings.Contains(err.Error(), "journal_mode") {
		t.Errorf("got %v, want a refusal that names journal_mode", err)
		if conn != nil {
			_ = conn.Close()
		}
	}
}

func TestOpen_RefusesWhatIsNotOurs(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"another program's database": func(t *testing.T, dir string) {
			db := raw(t, dir)
			execute(t, db, "CREATE TABLE theirs (x)")
			_ = db.Close()
		},
		"another program's database, marked": func(t *testing.T, dir string) {
			db := raw(t, dir)
			execute(t, db, "PRAGMA application_id = 7; CREATE TABLE theirs (x)")
			_ = db.Close()
		},
		"a text": func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, stateFile), []byte(strings.Repeat("a shopping list\n", 300)), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"a folder": func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, stateFile), 0o700); err != nil {
				t.Fatal(err)
			}
		},
		"a link": func(t *testing.T, dir string) {
			if err := os.Symlink(filepath.Join(dir, "elsewhere"), filepath.Join(dir, stateFile)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			prepare(t, dir)
			path := filepath.Join(dir, stateFile)
			if err := os.Chmod(path, 0o700); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path) // a folder and a link have no content
			e, err := Open(dir, Config{})
			if err == nil {
				_ = e.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), path) {
				t.Errorf("the error does not name the file: %v", err)
			}
			if after, _ := os.ReadFile(path); string(before) != string(after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestOpen_RefusesANewerFileByName(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	db := raw(t, dir)
	execute(t, db, fmt.Sprintf("PRAGMA user_version = %d", len(migrations)+1))
	_ = db.Close()
	_, err = Open(dir, Config{})
	if !errors.Is(err, agent.ErrNewer) || !strings.Contains(err.Error(), filepath.Join(dir, stateFile)) {
		t.Errorf("got %v, want ErrNewer and the file", err)
	}
}

// A process that was killed while it created the file leaves one that goes on.
func TestOpen_GoesOnWithAnEmptyFile(t *testing.T) {
	for name, content := range map[string]string{"no bytes": "", "a header": "PRAGMA auto_vacuum = 2; PRAGMA journal_mode = wal"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, stateFile), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if content != "" {
				db := raw(t, dir)
				execute(t, db, content)
				_ = db.Close()
			}
			opened(t, dir, Config{})
		})
	}
}

func TestOpen_MigratesForward(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e, err := Open(dir, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	was := migrations
	defer func() { migrations = was }()
	migrations = append(was[:len(was):len(was)], "CREATE TABLE later (x INTEGER) STRICT")
	opened(t, dir, Config{})
	db := raw(t, dir)
	if got := query(t, db, "SELECT count(*) FROM later"); got != "0" {
		t.Errorf("the new table has %s rows", got)
	}
	if got := query(t, db, "PRAGMA user_version"); got != fmt.Sprint(len(migrations)) {
		t.Errorf("user_version is %s", got)
	}
}

func TestOpen_ThePathMayHoldAnything(t *testing.T) {
	for _, name := range []string{"a b", "a?mode=memory", "a#b", "a%20b", "ü", "a&b=c"} {
		if runtime.GOOS == "windows" && strings.ContainsAny(name, "?") {
			continue
		}
		dir := filepath.Join(t.TempDir(), name)
		opened(t, dir, Config{})
		if info, err := os.Stat(filepath.Join(dir, stateFile)); err != nil || info.Size() == 0 {
			t.Errorf("%q: the state is not in its directory: %v", name, err)
		}
	}
}

func TestEngine_RefusesCallsAfterClose(t *testing.T) {
	e, err := Open(filepath.Join(t.TempDir(), "state"), Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.List(context.Background(), agent.Filter{}); !errors.Is(err, errClosed) {
		t.Errorf("List: %v", err)
	}
	if err := e.Serve(context.Background(), agent.ServeOptions{}, nil); !errors.Is(err, errClosed) {
		t.Errorf("Serve: %v", err)
	}
}
