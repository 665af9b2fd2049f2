//go:build !unix

package workspace

import (
	"errors"
	"fmt"
)

// MakeFIFO is not possible on this system.
func MakeFIFO(path string) error {
	return fmt.Errorf("make the pipe %q: %w", path, errors.ErrUnsupported)
}
