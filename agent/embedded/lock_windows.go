package embedded

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

const noFollow = 0

// The locked byte lies far beyond the content: a lock on Windows also keeps others
// from reading what it covers.
const lockedByte = 1 << 30

// lockFile takes the exclusive lock of an open file, or returns errHeld at once.
func lockFile(f *os.File) error {
	at := &windows.Overlapped{Offset: lockedByte}
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return errHeld
	}
	return err
}

// unlockFile gives the lock back and keeps the file open.
func unlockFile(f *os.File) error {
	at := &windows.Overlapped{Offset: lockedByte}
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, at)
}
