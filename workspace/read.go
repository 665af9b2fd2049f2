package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"unicode/utf8"
)

// ReportStatus is what is known of one name in reports/, without its content (SPEC D12).
type ReportStatus struct {
	Exists bool
	// Bytes and SHA256 (lower-case hex) are set when Exists is.
	Bytes  int64
	SHA256 string
}

// Read returns the UTF-8 text of one file in sources/, unchanged, at most [MaxFileBytes] (SPEC D4, D6). It
// returns one of the errors of this package when the file may not be read; it never blocks on a FIFO or
// device and never follows a link.
func (w *Workspace) Read(ctx context.Context, name string) ([]byte, error) {
	done, err := w.use()
	if err != nil {
		return nil, err
	}
	defer done()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read source %q: %w", name, err)
	}
	return w.readText(name)
}

// readText reads one source whose bytes must be UTF-8.
func (w *Workspace) readText(name string) ([]byte, error) {
	content, _, err := w.readFile(w.sources, name)
	if err == nil && !utf8.Valid(content) {
		err = ErrNotText
	}
	if err != nil {
		return nil, fmt.Errorf("read source %q: %w", name, err)
	}
	return content, nil
}

// Report returns size and digest of one file in reports/, or Exists false if there is no such entry. An
// entry that is there but may not be read (a link, a special file, over the limit) is an error (SPEC D12).
func (w *Workspace) Report(ctx context.Context, name string) (ReportStatus, error) {
	done, err := w.use()
	if err != nil {
		return ReportStatus{}, err
	}
	defer done()
	if err := ctx.Err(); err != nil {
		return ReportStatus{}, fmt.Errorf("examine report %q: %w", name, err)
	}
	content, _, err := w.readFile(w.reports, name)
	switch {
	case errors.Is(err, ErrNotFound):
		return ReportStatus{}, nil
	case err != nil:
		return ReportStatus{}, fmt.Errorf("examine report %q: %w", name, err)
	}
	sum := sha256.Sum256(content)
	return ReportStatus{Exists: true, Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:])}, nil
}

// readFile opens name in a folder, examines the opened object, reads at most one byte more than the
// limit, and examines it again. Its descriptor is closed whatever the object is.
func (w *Workspace) readFile(folder int, name string) (content []byte, file identity, err error) {
	if !ValidName(name) {
		return nil, identity{}, ErrName
	}
	fd, err := w.calls.openFile(folder, name)
	if err != nil {
		return nil, identity{}, err
	}
	defer func() { _ = closeAll(fd) }() // nothing was written: a failing close loses nothing
	before, err := examine(fd)
	if err != nil {
		return nil, identity{}, err
	}
	if w.examined != nil {
		w.examined()
	}
	content, err = readUpTo(fd, MaxFileBytes+1)
	if err != nil {
		return nil, identity{}, err
	}
	after, err := examine(fd)
	if err != nil {
		return nil, identity{}, err
	}
	if after != before || int64(len(content)) != before.size {
		return nil, identity{}, ErrChanged
	}
	return content, before.identity, nil
}

// identity names a file for as long as it exists.
type identity struct{ device, inode uint64 }

// examination is what must stay the same while a file is read.
type examination struct {
	identity
	size              int64
	modified, changed int64 // nanoseconds since 1970
}
