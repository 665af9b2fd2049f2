// Package workspace owns the files of a desk: sources/, which is only ever read, and reports/, in
// which new files are created and nothing is replaced. It also owns the ledger, which remembers which
// approved candidates were used.
//
// Every file is reached through a directory descriptor that was opened once, without following
// links, and every opened object is examined through its own descriptor: there is no check by path
// followed by a second use of that path. This is the only package of the project that makes system
// calls with paths on a workspace. It knows nothing about grants, tools or protocols: those are in
// tools/docserver.
//
// Linux is the platform that is tested. macOS builds and takes the portable calls; on every other
// system [Open] returns [ErrUnsupported].
package workspace

import (
	"errors"
	"fmt"
	"sync"
)

// Limits of one file.
const (
	// MaxFileBytes is the size of the largest file that is read or created, in bytes (SPEC D4, D5).
	MaxFileBytes = 24_000
	// MaxStem is the length of the longest name before its ".md", in bytes (SPEC D2).
	MaxStem = 64
)

// The folders below the root.
const (
	sourcesFolder = "sources"
	reportsFolder = "reports"
)

// Why a file or a folder was not used. All are matched with errors.Is.
var (
	// ErrName reports a name outside the rule of [ValidName]; no system call was made.
	ErrName = errors.New("name is not allowed")
	// ErrNotFound reports that there is no such entry.
	ErrNotFound = errors.New("does not exist")
	// ErrNotRegular reports an entry that is no regular file: a directory, FIFO, socket or device.
	ErrNotRegular = errors.New("is not a regular file")
	// ErrNotDirectory reports a root or folder that is something else.
	ErrNotDirectory = errors.New("is not a directory")
	// ErrSymlink reports a symbolic link where none may be.
	ErrSymlink = errors.New("is a symbolic link")
	// ErrManyLinks reports a regular file with more or fewer than one name.
	ErrManyLinks = errors.New("has more than one link")
	// ErrForeign reports an entry that lies on another mount.
	ErrForeign = errors.New("is on another file system")
	// ErrTooLarge reports more than [MaxFileBytes] bytes.
	ErrTooLarge = errors.New("is over the size limit")
	// ErrNotText reports content that is not UTF-8.
	ErrNotText = errors.New("is not UTF-8 text")
	// ErrChanged reports a file that changed while it was read.
	ErrChanged = errors.New("changed while it was read")
	// ErrExists reports that the name of a new file is taken, by an entry of any kind.
	ErrExists = errors.New("already exists")
	// ErrClosed reports a use after Close.
	ErrClosed = errors.New("workspace is closed")
	// ErrUnsupported reports an operating system on which a workspace cannot be held safely.
	ErrUnsupported = errors.New("workspaces are not supported on this operating system: use Linux (or, untested, macOS)")
)

// OpenError tells which part of a workspace could not be opened, and why.
type OpenError struct {
	// Part is "root", "sources", "reports" or "ledger".
	Part string
	// Path is where that part was looked for.
	Path string
	// Err is the reason; it matches [ErrNotFound], [ErrNotDirectory], [ErrSymlink] and others.
	Err error
}

// Error names the part, its path and the reason.
func (e *OpenError) Error() string {
	return fmt.Sprintf("open workspace: %s %q %v", e.Part, e.Path, e.Err)
}

// Unwrap returns the reason.
func (e *OpenError) Unwrap() error { return e.Err }

// Workspace is an open root with its two folders. It is safe for use by several goroutines.
type Workspace struct {
	calls   calls
	root    int
	sources int
	reports int

	mu     sync.RWMutex // held for reading while a descriptor is in use
	closed bool

	// examined, when set by a test, runs after a file was examined and before it is read.
	examined func()
}

// Open opens the workspace at root. The root, sources/ and reports/ must exist and be directories,
// not symbolic links; nothing is created. A failure is an [*OpenError] that names the part, and
// leaves no descriptor open (SPEC D11).
func Open(root string) (*Workspace, error) {
	return open(root, calls{openat2: true, tmpfile: true})
}

// Close releases the descriptors after the uses in progress have ended. It may be called twice.
func (w *Workspace) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil
	}
	w.closed = true
	return errors.Join(closeAll(w.reports, w.sources, w.root)...)
}

// Fallbacks names, one sentence each, the system calls that the kernel or the file system lacks and
// what is done instead. It is empty on a current Linux.
func (w *Workspace) Fallbacks() []string {
	var said []string
	if !w.calls.openat2 {
		said = append(said, "openat2 is missing: files are opened with openat and O_NOFOLLOW, and a file mounted over another is not noticed")
	}
	if !w.calls.tmpfile {
		said = append(said, "O_TMPFILE is missing: reports are written under a temporary name and then linked, and a crash can leave that name behind")
	}
	return said
}

// use keeps the descriptors open until the returned function is called.
func (w *Workspace) use() (done func(), err error) {
	w.mu.RLock()
	if w.closed {
		w.mu.RUnlock()
		return nil, ErrClosed
	}
	return w.mu.RUnlock, nil
}

// calls tells which of the better system calls may be used.
type calls struct {
	openat2 bool // openat2 with RESOLVE flags; else openat with O_NOFOLLOW
	tmpfile bool // O_TMPFILE and linkat through /proc; else a temporary name and linkat
}
