//go:build linux || darwin

package terminal

import (
	"io"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestConsole_SecretIsNotShown(t *testing.T) {
	keyboard, c := console(t)
	type read struct {
		secret []byte
		err    error
	}
	got := make(chan read, 1)
	go func() {
		s, err := c.Secret(t.Context(), "passphrase> ")
		got <- read{s, err}
	}()
	waitFor(t, keyboard, "passphrase> ")
	if _, err := io.WriteString(keyboard, "hunter2\n"); err != nil {
		t.Fatal(err)
	}
	if r := <-got; r.err != nil || string(r.secret) != "hunter2" {
		t.Fatalf("read %q, %v", r.secret, r.err)
	}
	if _, err := io.WriteString(c.Out, "end"); err != nil {
		t.Fatal(err)
	}
	if seen := waitFor(t, keyboard, "end"); strings.Contains(seen, "hunter2") {
		t.Errorf("the screen shows %q", seen)
	}
	if !echoes(t, c) {
		t.Error("the echo was left off")
	}
}

func echoes(t *testing.T, c Console) bool {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(c.In.Fd()), getSettings)
	if err != nil {
		t.Fatal(err)
	}
	return s.Lflag&unix.ECHO != 0
}
