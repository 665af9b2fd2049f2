//go:build unix

package scenarios

import (
	"os/signal"
	"syscall"
)

// fillDisk is the command's: see cmd/sallyport.
func fillDisk() error {
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{})
}
