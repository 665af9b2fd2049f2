//go:build linux || darwin

package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// draftPrefix begins the temporary names of the portable way; [ValidName] refuses them.
const draftPrefix = ".sallyport-draft-"

// draft is a new file before and while it gets its name.
type draft struct {
	folder int
	fd     int    // -1 once closed
	temp   string // the temporary name, empty for a file without one
	file   identity
}

// newNamedDraft creates an empty file under a temporary name, which no other draft has.
func newNamedDraft(folder int) (*draft, error) {
	temp := draftPrefix + rand.Text()
	fd, err := retry(func() (int, error) {
		return unix.Openat(folder, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	})
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	return &draft{folder: folder, fd: fd, temp: temp}, nil
}

// fill writes content with mode 0600 and makes it durable.
func (d *draft) fill(content []byte) error {
	if err := writeAll(d.fd, content); err != nil {
		return err
	}
	if _, err := retry(func() (int, error) { return 0, unix.Fchmod(d.fd, 0o600) }); err != nil {
		return fmt.Errorf("set mode: %w", err)
	}
	var stat unix.Stat_t
	if err := fstat(d.fd, &stat); err != nil {
		return fmt.Errorf("examine: %w", err)
	}
	d.file = identityOf(&stat)
	if err := syncFile(d.fd); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

// link gives the draft its name. It fails with ErrExists when an entry of any kind has it.
func (d *draft) link(name string) error {
	if d.temp == "" {
		return linkUnnamed(d.fd, d.folder, name)
	}
	if err := unix.Linkat(d.folder, d.temp, d.folder, name, 0); err != nil {
		return linkError(err)
	}
	return nil
}

// settle removes the temporary name, makes the folder durable and closes the file.
func (d *draft) settle() error {
	if err := d.unlink(); err != nil {
		_ = closeAll(d.fd)
		return err
	}
	if err := syncFile(d.folder); err != nil {
		_ = closeAll(d.fd)
		return fmt.Errorf("sync folder: %w", err)
	}
	return errors.Join(closeAll(d.fd)...)
}

// discard gives a draft up after cause: nothing was written if nothing is left behind. A close that
// fails is no doubt: the file has no name that anybody sees.
func (d *draft) discard(cause error) (SaveOutcome, error) {
	left := d.unlink()
	_ = closeAll(d.fd)
	if left != nil {
		return SaveUnknown, errors.Join(cause, left)
	}
	return SaveNotWritten, cause
}

func (d *draft) unlink() error {
	if d.temp == "" {
		return nil
	}
	if err := unix.Unlinkat(d.folder, d.temp, 0); err != nil {
		return fmt.Errorf("remove temporary name: %w", err)
	}
	return nil
}

func linkError(err error) error {
	if errors.Is(err, unix.EEXIST) {
		return ErrExists
	}
	return fmt.Errorf("link: %w", err)
}

// writeAll writes all of content, however short the single writes are.
func writeAll(fd int, content []byte) error {
	for len(content) > 0 {
		n, err := retry(func() (int, error) { return unix.Write(fd, content) })
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		content = content[n:]
	}
	return nil
}
