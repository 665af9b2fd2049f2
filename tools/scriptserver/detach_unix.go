//go:build unix

package scriptserver

import (
	"os/exec"
	"syscall"
)

// detach gives a process a session of its own.
func detach(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return nil
}
