package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The names in a state directory.
const (
	stateFile  = "state.db"
	lockFolder = "locks"
)

// The modes of what a state directory holds: nobody else reads it.
const (
	folderMode = 0o700
	fileMode   = 0o600
)

// prepareDirectory makes the state directory fit to hold journals and returns its
// path without symbolic links, so that two ways to name it are one.
func prepareDirectory(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("open state directory: no path")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("open state directory %q: %w", dir, err)
	}
	if err := os.MkdirAll(dir, folderMode); err != nil {
		return "", fmt.Errorf("create state directory: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", fmt.Errorf("open state directory: %w", err)
	}
	if err := checkFileSystem(dir); err != nil {
		return "", err
	}
	if err := ours(dir); err != nil {
		return "", err
	}
	locks := filepath.Join(dir, lockFolder)
	if err := os.Mkdir(locks, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("create the folder of locks: %w", err)
	}
	if err := ours(locks); err != nil {
		return "", err
	}
	return dir, prepareFile(filepath.Join(dir, stateFile))
}

// ours refuses a folder that is none, that somebody else owns, or that others may
// write to: whoever can write there can change what was decided.
func ours(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("open state directory: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("state directory %s: not a directory", dir)
	}
	if !mine(info) {
		return fmt.Errorf("state directory %s: another user owns it; name one of your own with --state", dir)
	}
	if writable(info) {
		return fmt.Errorf("state directory %s: others may write to it (mode %04o); run: chmod 700 %s", dir, info.Mode().Perm(), dir)
	}
	return nil
}

// prepareFile creates the state file if there is none, for its owner only; SQLite
// gives its own files the same mode. A file that exists is not opened by hand:
// closing it would drop the locks that SQLite holds in this process.
func prepareFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, fileMode)
	switch {
	case errors.Is(err, fs.ErrExist):
		return checkFile(path)
	case err != nil:
		return fmt.Errorf("create the state file: %w", err)
	}
	// Whatever the umask took away.
	if err := errors.Join(f.Chmod(fileMode), f.Close()); err != nil {
		return fmt.Errorf("create the state file: %w", err)
	}
	return nil
}

func checkFile(path string) error {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return fmt.Errorf("open the state file: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("state file %s: not a regular file", path)
	case !mine(info):
		return fmt.Errorf("state file %s: another user owns it", path)
	case writable(info):
		return fmt.Errorf("state file %s: others may write to it (mode %04o); run: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	return nil
}

// errNetwork is the refusal of a file system that does not lock as a local one does.
func errNetwork(dir, kind string) error {
	return fmt.Errorf("state directory %s: %s is a network file system, on which locks and durable writes cannot be relied on; name a local one with --state", dir, kind)
}
