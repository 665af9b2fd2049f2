package workspace

import "golang.org/x/sys/unix"

// available: macOS has neither openat2 nor O_TMPFILE.
func (calls) available(_, _ int) calls { return calls{} }

func (calls) openFile(folder int, name string) (int, error) { return openFileNoFollow(folder, name) }

func (calls) newDraft(folder int) (*draft, error) { return newNamedDraft(folder) }

// linkUnnamed is never reached: no draft is unnamed here.
func linkUnnamed(_, _ int, _ string) error { return ErrUnsupported }

// syncFile also flushes the drive's own cache, which fsync leaves alone on macOS.
func syncFile(fd int) error {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0)
	return err
}
