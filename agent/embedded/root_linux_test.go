//go:build root

package embedded_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/agent/enginetest"
)

// These tests mount file systems and change users: go test -tags root.

// disk mounts a small file system.
func disk(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// CASES A8, on a disk that is really full.
func TestFull_ADiskWithoutRoom(t *testing.T) {
	mount := disk(t, "size=16m,mode=0700")
	dir, filler, seen := filepath.Join(mount, "state"), filepath.Join(mount, "filler"), filepath.Join(t.TempDir(), "seen")
	e := open(t, dir, embedded.Config{})
	inner := (&enginetest.World{}).Nodes(readings)
	nodes := func(run agent.Run) (agent.Nodes, error) {
		n, err := inner(run)
		return witness{n, seen}, err
	}
	failed := 0
	for i := range 40 {
		id := fmt.Sprintf("r-%d", i)
		begin(t, e, id)
		if err := os.RemoveAll(seen); err != nil {
			t.Fatal(err)
		}
		fill(t, filler, i)
		err := e.Serve(t.Context(), agent.ServeOptions{Runs: []string{id}}, nodes)
		checkPerformed(t, e, id, seen, id)
		var store *embedded.StoreError
		switch {
		case errors.As(err, &store):
			failed++
			if !strings.Contains(err.Error(), "free some space") || store.Path != filepath.Join(dir, "state.db") {
				t.Errorf("no file or no remedy: %v", err)
			}
		case err != nil:
			t.Fatalf("another error than the store's: %v", err)
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		if err := e.Serve(t.Context(), agent.ServeOptions{Runs: []string{id}}, nodes); err != nil {
			t.Fatalf("with room again: %v", err)
		}
		if run := replayed(t, e, id); run.State != agent.StateCompleted {
			t.Errorf("with room again the run is in %s", run.State)
		}
	}
	if failed == 0 {
		t.Error("the disk was never full")
	}
}

// fill leaves room for n pages.
func fill(t *testing.T, path string, n int) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	page := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(page)
	}
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(max(0, info.Size()-int64(n)*4096)), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestOpen_OnAReadOnlyDisk(t *testing.T) {
	mount := disk(t, "size=4m,mode=0700")
	dir := filepath.Join(mount, "state")
	e, err := embedded.Open(dir, embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	begin(t, e, "r")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", mount, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err = embedded.Open(dir, embedded.Config{})
	if !errors.Is(err, unix.EROFS) || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want that %s is read-only", err, dir)
	}
}

// Another user reaches neither a state directory nor what is in it, and root is told
// when it is about to use a user's.
func TestOpen_RefusesTheStateOfAnotherUser(t *testing.T) {
	const nobody = 65534
	base, err := os.MkdirTemp("", "users")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	binary := filepath.Join(base, "binary")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(base, 0o777), os.WriteFile(binary, content, 0o700), os.Chmod(binary, 0o755)); err != nil {
		t.Fatal(err)
	}
	asNobody := func(dir string) string {
		cmd := command("openall", dir)
		cmd.Path, cmd.Dir = binary, base
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		c := spawn(t, cmd)
		said := strings.Join(c.rest(), "; ")
		_ = c.wait()
		return said
	}
	ours, theirs, shared := filepath.Join(base, "ours"), filepath.Join(base, "theirs"), filepath.Join(base, "shared")
	open(t, ours, embedded.Config{})
	if said := asNobody(ours); !strings.Contains(said, "error") || !strings.Contains(said, ours) {
		t.Errorf("nobody opened root's state: %q", said)
	}
	if said := asNobody(theirs); said != "" {
		t.Fatalf("nobody could not make a state of its own: %q", said)
	}
	if _, err := embedded.Open(theirs, embedded.Config{}); err == nil || !strings.Contains(err.Error(), "another user owns it") {
		t.Errorf("root opened nobody's state: %v", err)
	}
	if err := errors.Join(os.Mkdir(shared, 0o700), os.Chmod(shared, 0o755)); err != nil {
		t.Fatal(err)
	}
	if said := asNobody(shared); !strings.Contains(said, "another user owns it") {
		t.Errorf("nobody used root's readable directory: %q", said)
	}
}

// A disk too full for the files beside the state file is called that.
func TestOpen_OnAFullDisk(t *testing.T) {
	mount := disk(t, "size=2m,mode=0700")
	dir := filepath.Join(mount, "state")
	e, err := embedded.Open(dir, embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	begin(t, e, "r")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	fill(t, filepath.Join(mount, "filler"), 0)
	_, err = embedded.Open(dir, embedded.Config{})
	if err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Errorf("got %v, want that the disk is full", err)
	}
}
