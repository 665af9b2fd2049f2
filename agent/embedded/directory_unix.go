//go:build unix

package embedded

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// mine reports whether the file belongs to the user of this process.
func mine(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// writable reports whether its group or everybody may write to the file.
func writable(info fs.FileInfo) bool { return info.Mode().Perm()&0o022 != 0 }

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
