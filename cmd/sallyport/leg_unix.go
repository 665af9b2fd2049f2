//go:build unix

package main

import (
	"fmt"
	"os/signal"
	"syscall"
)

// fillDisk lets this process, and those that it starts, write nothing more to any file.
func fillDisk() error {
	signal.Ignore(syscall.SIGXFSZ) // a write then fails, as on a full disk
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	limit.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return fmt.Errorf("fill the disk: %w", err)
	}
	return nil
}
