package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/agent/enginetest"
)

func init() { verbs["backup"] = backUp }

// backUp writes a backup. Arguments: state, file.
func backUp(ctx context.Context, args []string) (err error) {
	e, err := embedded.Open(args[0], embedded.Config{Crash: crashing()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return e.Backup(ctx, args[1])
}

// fromBackup opens a state directory made from a backup.
func fromBackup(t *testing.T, file string) *embedded.Engine {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "restored")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "state.db"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, dir, embedded.Config{})
}

// content lists what is in a folder.
func content(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// Runs go on from a backup that was made while two processes wrote and one run was in
// flight.
func TestBackup_RunsGoOnFromIt(t *testing.T) {
	dir, out := filepath.Join(t.TempDir(), "state"), t.TempDir()
	e := open(t, dir, embedded.Config{})
	script := enginetest.Script{{enginetest.ToolWrite}}
	begin(t, e, "parked")
	begin(t, e, "ended")
	serve(t, e, &enginetest.World{}, script, "parked")
	serve(t, e, &enginetest.World{}, nil, "ended")
	begin(t, e, "held")
	holder := spawn(t, command("hold", dir, "held"))
	holder.expect("serving")
	var writers []*child
	for i := range 2 {
		writers = append(writers, spawn(t, command("write", dir, fmt.Sprintf("w%d", i))))
		writers[i].expect("writing")
	}
	file := filepath.Join(out, "state backup?#.db")
	if err := e.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	for _, w := range writers {
		if err := w.stdin.Close(); err != nil {
			t.Fatal(err)
		}
		if w.line() == "0" || w.wait() != nil {
			t.Errorf("a writer wrote nothing: %v", w.err)
		}
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup's mode: %v, %v", info.Mode(), err)
	}
	if got := content(t, out); len(got) != 1 {
		t.Errorf("beside the backup: %q", got)
	}

	after := fromBackup(t, file)
	list, err := after.List(t.Context(), agent.Filter{})
	if err != nil || len(list) < 3 {
		t.Fatalf("%d runs: %v", len(list), err)
	}
	for _, s := range list {
		replayed(t, after, s.ID)
	}
	if got, want := replayed(t, after, "parked").Head, replayed(t, e, "parked").Head; got != want {
		t.Errorf("the parked run is at %s, want %s", got, want)
	}
	grant := enginetest.Sign(replayed(t, after, "parked"), "alice", time.Now())
	if v, err := after.Deliver(t.Context(), "parked", enginetest.Deliver(grant, "")); err != nil || v.Row != agent.RowGranted {
		t.Fatalf("a grant: %+v, %v", v, err)
	}
	w := &enginetest.World{}
	serve(t, after, w, script, "parked")
	serve(t, after, w, nil, "held") // nobody serves the copy
	for _, id := range []string{"parked", "held"} {
		if run := replayed(t, after, id); run.State != agent.StateCompleted {
			t.Errorf("%s is in %s", id, run.State)
		}
	}
	if run := replayed(t, e, "parked"); run.State != agent.StateAwaitingApproval || w.TotalSent() != 1 {
		t.Errorf("the original is in %s, sent %d", run.State, w.TotalSent())
	}
	if err := after.Backup(t.Context(), filepath.Join(out, "second")); err != nil {
		t.Errorf("a backup of what was restored: %v", err)
	}
}

func TestBackup_OverwritesNothing(t *testing.T) {
	dir, out := filepath.Join(t.TempDir(), "state"), t.TempDir()
	e := open(t, dir, embedded.Config{})
	begin(t, e, "r")
	at := func(name string) string { return filepath.Join(out, name) }
	if err := errors.Join(os.WriteFile(at("file"), []byte("theirs"), 0o600), os.WriteFile(at("empty"), nil, 0o600),
		os.Mkdir(at("folder"), 0o700), os.Symlink(at("nowhere"), at("dangling"))); err != nil {
		t.Fatal(err)
	}
	before := content(t, out)
	for _, file := range []string{at("file"), at("empty"), at("folder"), at("dangling"), filepath.Join(dir, "state.db")} {
		if err := e.Backup(t.Context(), file); !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want fs.ErrExist", file, err)
		}
	}
	if got := content(t, out); !slices.Equal(got, before) {
		t.Errorf("the folder holds %q, held %q", got, before)
	}
	if got, err := os.ReadFile(at("file")); err != nil || string(got) != "theirs" {
		t.Errorf("the file is now %q: %v", got, err)
	}
	if err := e.Backup(t.Context(), filepath.Join(out, "none", "b")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a folder that is not there: %v", err)
	}
}

// Whoever takes the name while the copy is written keeps it.
func TestBackup_LosesARaceForItsName(t *testing.T) {
	out := t.TempDir()
	file := filepath.Join(out, "b")
	e := open(t, filepath.Join(t.TempDir(), "state"), embedded.Config{Crash: func(point string) {
		if point == embedded.BackupWritten {
			if err := os.WriteFile(file, []byte("theirs"), 0o600); err != nil {
				t.Error(err)
			}
		}
	}})
	if err := e.Backup(t.Context(), file); !errors.Is(err, fs.ErrExist) {
		t.Errorf("got %v, want fs.ErrExist", err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != "theirs" || len(content(t, out)) != 1 {
		t.Errorf("the file is now %q beside %q: %v", got, content(t, out), err)
	}
}

func TestBackup_LeavesNothingPartialBehind(t *testing.T) {
	out := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	e := open(t, filepath.Join(t.TempDir(), "state"), embedded.Config{Crash: func(point string) {
		if point == embedded.BackupWritten {
			cancel()
		}
	}})
	begin(t, e, "r")
	if err := e.Backup(ctx, filepath.Join(out, "b")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if got := content(t, out); len(got) != 0 {
		t.Errorf("left behind: %q", got)
	}
}

// A process that is killed leaves no file under the name that was asked for.
func TestBackup_AKilledOneHasNoName(t *testing.T) {
	dir, out := filepath.Join(t.TempDir(), "state"), t.TempDir()
	begin(t, open(t, dir, embedded.Config{}), "r")
	file := filepath.Join(out, "b")
	cmd := command("backup", dir, file)
	cmd.Env = append(cmd.Env, crashVariable+"=1")
	c := spawn(t, cmd)
	if said := c.rest(); len(said) > 0 || c.wait() == nil {
		t.Fatalf("the child was not killed, and said %q", said)
	}
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the name is taken: %v", err)
	}
	if c := spawn(t, command("backup", dir, file)); len(c.rest()) > 0 || c.wait() != nil {
		t.Errorf("again: %v", c.err)
	}
	if run := replayed(t, fromBackup(t, file), "r"); run.Seq != 1 {
		t.Errorf("the run has %d entries", run.Seq)
	}
}

// What was erased before a backup is not in it.
func TestBackup_HoldsNoErasedContent(t *testing.T) {
	e := open(t, filepath.Join(t.TempDir(), "state"), embedded.Config{})
	begin(t, e, "r")
	serve(t, e, &enginetest.World{}, nil, "r")
	file := filepath.Join(t.TempDir(), "b")
	if err := errors.Join(e.Erase(t.Context(), "r", enginetest.Task.Ref, "anna"), e.Backup(t.Context(), file)); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(file); err != nil || bytes.Contains(data, enginetest.Task.Data) {
		t.Errorf("the content is in the backup: %v", err)
	}
}
