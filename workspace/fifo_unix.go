//go:build unix

package workspace

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// MakeFIFO makes a named pipe, mode 0600, for those who try what a workspace does with
// one.
func MakeFIFO(path string) error {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return fmt.Errorf("make the pipe %q: %w", path, err)
	}
	return nil
}
