//go:build linux || darwin

package workspace

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxLevels bounds how far a ledger is followed upwards.
const maxLevels = 512

// openLedgerFolder opens dir and refuses one that others may write or that lies in the workspace.
func openLedgerFolder(dir string, w *Workspace) (int, error) {
	if dir == "" {
		return -1, errors.New("is not configured")
	}
	folder, err := openFolder(unix.AT_FDCWD, filepath.Clean(dir))
	if err != nil {
		return -1, err
	}
	if err := checkLedgerFolder(folder, w); err != nil {
		_ = closeAll(folder)
		return -1, err
	}
	return folder, nil
}

func checkLedgerFolder(folder int, w *Workspace) error {
	var stat unix.Stat_t
	if err := fstat(folder, &stat); err != nil {
		return err
	}
	if stat.Mode&0o022 != 0 {
		return ErrOthersWrite
	}
	done, err := w.use()
	if err != nil {
		return err
	}
	defer done()
	var inside []identity
	for _, fd := range []int{w.root, w.sources, w.reports} {
		if err := fstat(fd, &stat); err != nil {
			return err
		}
		inside = append(inside, identityOf(&stat))
	}
	return outside(folder, inside)
}

// outside follows ".." from folder to the root of the file system and refuses to meet one of inside.
func outside(folder int, inside []identity) error {
	var below identity
	for level := range maxLevels {
		var stat unix.Stat_t
		if err := unix.Fstatat(folder, "./"+strings.Repeat("../", level), &stat, 0); err != nil {
			return fmt.Errorf("examine the folders above: %w", err)
		}
		here := identityOf(&stat)
		for _, part := range inside {
			if here == part {
				return ErrInsideWorkspace
			}
		}
		if here == below {
			return nil
		}
		below = here
	}
	return errors.New("lies too deep")
}

// openLock opens the folder once more: a lock belongs to one opening. The folder itself is locked, so
// that a full disk cannot stand in the way of the lock.
func openLock(folder int) (int, error) { return openFolder(folder, ".") }

// tryLock takes the lock if nobody has it.
func tryLock(fd int) (bool, error) {
	_, err := retry(func() (int, error) { return 0, unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func readEntry(folder int, name string, max int) ([]byte, error) {
	fd, err := openFileNoFollow(folder, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = closeAll(fd) }() // read only
	if _, err := examine(fd); err != nil {
		return nil, err
	}
	return readUpTo(fd, max)
}

// writeEntry creates one entry and makes it and its name durable.
func writeEntry(folder int, name, entry string) error {
	fd, err := retry(func() (int, error) {
		return unix.Openat(folder, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return fmt.Errorf("create: %w", named(err))
	}
	err = writeAll(fd, []byte(entry))
	if err == nil {
		err = unix.Fchmod(fd, 0o600) // whatever the umask: the entry must stay readable
	}
	if err == nil {
		err = syncFile(fd)
	}
	if err := errors.Join(append(closeAll(fd), err)...); err != nil {
		return err
	}
	return syncFile(folder)
}
