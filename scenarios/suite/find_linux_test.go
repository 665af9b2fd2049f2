package suite

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/scenarios"
)

// A pipe that nobody writes to does not hold the search up.
func TestFind_PipeIsNoFile(t *testing.T) {
	tree(t, map[string]string{"sallyport.yaml": calcConfig})
	if err := unix.Mkfifo("pipe.yaml", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{".", "pipe.yaml"} {
		if _, err := Find([]string{path}, scenarios.LoadOptions{}); err == nil || !strings.Contains(err.Error(), "\"pipe.yaml\" is no ordinary file") {
			t.Errorf("%q: %v", path, err)
		}
	}
}

// A folder or file that may not be read is no empty one.
func TestFind_WhatMayNotBeReadIsAnError(t *testing.T) {
	tree(t, map[string]string{"sallyport.yaml": calcConfig, "good.yaml": calcScenario, "open/secret.yaml": calcScenario, "closed/one.yaml": calcScenario})
	for name, mode := range map[string]fs.FileMode{".": 0o755, "open": 0o755, "good.yaml": 0o644, "sallyport.yaml": 0o644, "open/secret.yaml": 0, "closed": 0} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod("closed", 0o700) })
	for _, path := range []string{"closed", ".", "open", "open/secret.yaml"} {
		errs := make(chan error)
		go func() { // ends with its thread, which is nobody from here on where the test is root
			runtime.LockOSThread()
			_ = unix.Setfsuid(65534) // an ordinary user is one already
			_, err := Find([]string{path}, scenarios.LoadOptions{})
			errs <- err
		}()
		if err := <-errs; !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%q: %v", path, err)
		}
	}
}
