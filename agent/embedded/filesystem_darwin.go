package embedded

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// checkFileSystem refuses whatever is not a local volume.
func checkFileSystem(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("state directory %s: ask for its file system: %w", dir, err)
	}
	if st.Flags&unix.MNT_LOCAL == 0 {
		return errNetwork(dir, unix.ByteSliceToString(st.Fstypename[:]))
	}
	return nil
}
