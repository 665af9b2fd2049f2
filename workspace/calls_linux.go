package workspace

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

// beneath refuses, inside the kernel, to leave the folder by "..", link, magic link or mount.
const beneath = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// maxAgain bounds the attempts when openat2 reports that a rename raced with it.
const maxAgain = 16

// available returns the calls of c that kernel and file system have. Nothing gets a name by asking.
func (c calls) available(sources, reports int) calls {
	if c.openat2 {
		fd, err := openat2(sources, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
		c.openat2 = err == nil
		if err == nil {
			_ = closeAll(fd)
		}
	}
	if c.tmpfile {
		c.tmpfile = hasTmpfile(reports)
	}
	return c
}

// hasTmpfile tells whether a file without a name can be made in folder and given one later. An error that
// is about permissions or space says nothing about that.
func hasTmpfile(folder int) bool {
	var stat unix.Stat_t
	if unix.Fstatat(unix.AT_FDCWD, procPath(folder), &stat, 0) != nil {
		return false // no /proc: linkat could not find the file
	}
	fd, err := openTmpfile(folder)
	if err == nil {
		_ = closeAll(fd)
		return true
	}
	for _, lacks := range []error{unix.EOPNOTSUPP, unix.EISDIR, unix.EINVAL, unix.ENOSYS, unix.ENOENT} {
		if errors.Is(err, lacks) {
			return false
		}
	}
	return true
}

// openFile opens one name of a folder for reading.
func (c calls) openFile(folder int, name string) (int, error) {
	if !c.openat2 {
		return openFileNoFollow(folder, name)
	}
	fd, err := openat2(folder, name, readFlags)
	if err != nil {
		return -1, named(err)
	}
	return fd, nil
}

func openat2(folder int, name string, flags uint64) (int, error) {
	how := unix.OpenHow{Flags: flags, Resolve: beneath}
	for attempt := 1; ; attempt++ {
		fd, err := retry(func() (int, error) { return unix.Openat2(folder, name, &how) })
		if errors.Is(err, unix.EAGAIN) && attempt < maxAgain {
			continue
		}
		return fd, err
	}
}

// newDraft creates an empty file in folder, without a name where that is possible.
func (c calls) newDraft(folder int) (*draft, error) {
	if !c.tmpfile {
		return newNamedDraft(folder)
	}
	fd, err := openTmpfile(folder)
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	return &draft{folder: folder, fd: fd}, nil
}

// openTmpfile never uses O_EXCL, which would forbid the later link.
func openTmpfile(folder int) (int, error) {
	return retry(func() (int, error) {
		return unix.Openat(folder, ".", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
	})
}

// linkUnnamed goes through /proc, because linkat on a bare descriptor wants a capability on older kernels.
func linkUnnamed(fd, folder int, name string) error {
	if err := unix.Linkat(unix.AT_FDCWD, procPath(fd), folder, name, unix.AT_SYMLINK_FOLLOW); err != nil {
		return linkError(err)
	}
	return nil
}

func procPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// syncFile makes a file or folder durable. It is called once: a sync that failed may have dropped the data
// that the next one would report as written.
func syncFile(fd int) error { return unix.Fsync(fd) }
