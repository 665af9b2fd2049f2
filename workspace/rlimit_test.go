//go:build linux || darwin

package workspace

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// limitFileSize makes every write past max bytes fail with EFBIG for the rest of the test.
func limitFileSize(t *testing.T, max uint64) {
	t.Helper()
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGXFSZ)
	must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: max, Max: old.Max}))
	t.Cleanup(func() {
		must(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &old))
		signal.Stop(ignored)
	})
}
