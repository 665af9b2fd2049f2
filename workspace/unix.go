//go:build linux || darwin

package workspace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// open opens root with at most the calls of wanted; fewer when the system lacks some.
func open(root string, wanted calls) (*Workspace, error) {
	if root == "" {
		return nil, &OpenError{Part: "root", Path: root, Err: errors.New("is not configured")}
	}
	// Cleaned, because a trailing slash would make the kernel follow a link.
	root = filepath.Clean(root)
	rootFD, err := openFolder(unix.AT_FDCWD, root)
	if err != nil {
		return nil, &OpenError{Part: "root", Path: root, Err: err}
	}
	sources, err := openFolder(rootFD, sourcesFolder)
	if err != nil {
		_ = closeAll(rootFD)
		return nil, &OpenError{Part: "sources", Path: filepath.Join(root, sourcesFolder), Err: err}
	}
	reports, err := openFolder(rootFD, reportsFolder)
	if err != nil {
		_ = closeAll(sources, rootFD)
		return nil, &OpenError{Part: "reports", Path: filepath.Join(root, reportsFolder), Err: err}
	}
	return &Workspace{calls: wanted.available(sources, reports), root: rootFD, sources: sources, reports: reports}, nil
}

// openFolder opens a directory whose last component is no symbolic link.
func openFolder(parent int, path string) (int, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(parent, path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err == nil {
		return fd, nil
	}
	// The look at the path only words the refusal; nothing is opened after it.
	var stat unix.Stat_t
	if unix.Fstatat(parent, path, &stat, unix.AT_SYMLINK_NOFOLLOW) == nil {
		switch stat.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			return -1, ErrSymlink
		case unix.S_IFDIR:
		default:
			return -1, ErrNotDirectory
		}
	}
	return -1, named(err)
}

// openFileNoFollow is the portable way to open a file of a folder: the name is one component, the
// last one may not be a link, and nothing blocks.
func openFileNoFollow(folder int, name string) (int, error) {
	fd, err := retry(func() (int, error) {
		return unix.Openat(folder, name, readFlags, 0)
	})
	if err != nil {
		return -1, named(err)
	}
	return fd, nil
}

const readFlags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC

// entries returns up to n names of a folder, in the order of the file system, through a descriptor of its own.
func (calls) entries(folder, n int) ([]string, error) {
	fd, err := openFolder(folder, ".")
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "folder")
	defer func() { _ = file.Close() }() // read only
	var names []string
	for len(names) < n {
		more, err := file.Readdirnames(n - len(names))
		names = append(names, more...)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// examine refuses every object that is not a regular file with one name, within the limit.
func examine(fd int) (examination, error) {
	var stat unix.Stat_t
	if err := fstat(fd, &stat); err != nil {
		return examination{}, err
	}
	switch {
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return examination{}, ErrNotRegular
	case stat.Nlink != 1:
		return examination{}, ErrManyLinks
	case stat.Size > MaxFileBytes:
		return examination{}, ErrTooLarge
	}
	return examination{
		identity: identityOf(&stat),
		size:     stat.Size,
		modified: stat.Mtim.Nano(),
		changed:  stat.Ctim.Nano(),
	}, nil
}

// readUpTo reads until the end of the file or until max bytes are read.
func readUpTo(fd, max int) ([]byte, error) {
	content := make([]byte, max)
	read := 0
	for read < max {
		n, err := retry(func() (int, error) { return unix.Read(fd, content[read:]) })
		if err != nil {
			return nil, named(err)
		}
		if n == 0 {
			break
		}
		read += n
	}
	return content[:read:read], nil
}

func fstat(fd int, stat *unix.Stat_t) error {
	_, err := retry(func() (int, error) { return 0, unix.Fstat(fd, stat) })
	return err
}

func identityOf(stat *unix.Stat_t) identity {
	return identity{device: uint64(stat.Dev), inode: stat.Ino}
}

// closeAll closes descriptors and returns what failed. A close is never repeated: the descriptor is gone
// even when it reports an error.
func closeAll(fds ...int) []error {
	var failed []error
	for _, fd := range fds {
		if err := unix.Close(fd); err != nil {
			failed = append(failed, fmt.Errorf("close: %w", err))
		}
	}
	return failed
}

// named turns an errno into an error of this package where there is one for it.
func named(err error) error {
	for _, known := range []struct{ errno, is error }{
		{unix.ENOENT, ErrNotFound},
		{unix.ELOOP, ErrSymlink},
		{unix.EXDEV, ErrForeign},
		{unix.ENXIO, ErrNotRegular},
		{unix.EOPNOTSUPP, ErrNotRegular}, // a socket, on macOS
		{unix.ENOTDIR, ErrNotDirectory},
		{unix.EEXIST, ErrExists},
	} {
		if errors.Is(err, known.errno) {
			return known.is
		}
	}
	return err
}

// retry repeats a call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
