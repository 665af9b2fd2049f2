//go:build unix && !linux

package suite

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes puts a player into a process group of its own.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// becomeReaper does nothing: only the process group of a player is followed.
func becomeReaper() {}

func killAll(pid int) { _ = unix.Kill(-pid, unix.SIGKILL) }

// endBelow does nothing: what is below is in the group that endSelf ends.
func endBelow() {}

// endSelf ends this process with its group.
func endSelf() {
	killAll(os.Getpid())
	os.Exit(1)
}

func sweep(pid int, _ map[int]string) { killAll(pid) }
