//go:build !unix

package scriptserver

import (
	"errors"
	"os/exec"
)

// detach is not possible here.
func detach(*exec.Cmd) error {
	return errors.New("spawn a process in a new session: this system has no sessions")
}
