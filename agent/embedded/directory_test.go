//go:build unix

package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

func TestOpen_RefusesADirectoryThatOthersMayWriteTo(t *testing.T) {
	for _, mode := range []os.FileMode{0o720, 0o702, 0o777} {
		for _, part := range []string{".", lockFolder, stateFile} {
			dir := filepath.Join(t.TempDir(), "state")
			e, err := Open(dir, Config{})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, part)
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			e, err = Open(dir, Config{})
			if err == nil {
				_ = e.Close()
				t.Errorf("%s with mode %04o was opened", part, mode)
				continue
			}
			if !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "chmod") {
				t.Errorf("the error does not name the place and the remedy: %v", err)
			}
		}
	}
}

func TestOpen_MakesFilesForTheirOwnerWhateverTheUmask(t *testing.T) {
	for _, mask := range []int{0, 0o077, 0o277} {
		dir := filepath.Join(t.TempDir(), "state")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, lockFolder), 0o700); err != nil {
			t.Fatal(err)
		}
		was := syscall.Umask(mask)
		e, err := Open(dir, Config{})
		syscall.Umask(was)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(dir, stateFile))
		if err != nil || info.Mode().Perm() != fileMode {
			t.Errorf("umask %04o: mode %04o, want %04o: %v", mask, info.Mode().Perm(), fileMode, err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Two ways to name a state directory are one: the same runs, the same locks.
func TestOpen_ALinkToTheDirectoryIsTheDirectory(t *testing.T) {
	base := t.TempDir()
	dir, link := filepath.Join(base, "state"), filepath.Join(base, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	one := opened(t, dir, Config{})
	two := opened(t, link, Config{})
	if _, err := one.Start(t.Context(), enginetest.Spec("r"), "tester", nil); err != nil {
		t.Fatal(err)
	}
	lock, err := takeLock(one.lockPath("r"), holder{os.Getpid(), true})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.release()
	err = two.Serve(t.Context(), agent.ServeOptions{Runs: []string{"r"}}, nil)
	if !errors.Is(err, agent.ErrServed) {
		t.Errorf("served through the link: %v", err)
	}
}

func TestOpen_RefusesAFileInPlaceOfADirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, Config{}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v, want an error that names %s", err, path)
	}
	if _, err := Open("", Config{}); err == nil {
		t.Error("no path was accepted")
	}
}
