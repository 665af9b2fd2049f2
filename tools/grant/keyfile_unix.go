//go:build unix

package grant

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// openKeyFile opens a private key file without following a symbolic link at its
// end and without waiting for the other side of a FIFO.
func openKeyFile(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, fmt.Errorf("%w: it is a symbolic link", ErrKeyFile)
	}
	if err != nil {
		return nil, withoutPath(err)
	}
	info, err := file.Stat()
	if err == nil {
		err = checkKeyFile(info, os.Geteuid())
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// checkKeyFile decides whether a file may hold the private key of the user euid.
func checkKeyFile(info fs.FileInfo, euid int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("%w: not a regular file", ErrKeyFile)
	case info.Mode()&^keyFileMode != 0:
		return fmt.Errorf("%w: mode %#o is wider than 0600 (chmod 600 it)", ErrKeyFile, info.Mode().Perm())
	case !ok || stat.Nlink != 1:
		return fmt.Errorf("%w: it has more than one name (hard link)", ErrKeyFile)
	case int64(stat.Uid) != int64(euid):
		return fmt.Errorf("%w: it belongs to another user", ErrKeyFile)
	}
	return nil
}
