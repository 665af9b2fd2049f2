//go:build linux || darwin

package bridge

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// firstSealed is the first descriptor that no child inherits.
const firstSealed = 3

// sealListed marks what a folder of descriptors lists to be closed by an exec.
func sealListed(folder string) error {
	dir, err := os.Open(folder)
	if err != nil {
		return fmt.Errorf("keep open descriptors from a child: %w", err)
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return fmt.Errorf("keep open descriptors from a child: %w", err)
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd >= firstSealed {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
