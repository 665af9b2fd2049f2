//go:build !unix

package main

import (
	"errors"
	"fmt"
)

// fillDisk is not possible on this system.
func fillDisk() error { return fmt.Errorf("fill the disk: %w", errors.ErrUnsupported) }
