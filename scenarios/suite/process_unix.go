//go:build unix && !linux

package suite

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes puts a player into a process group of its own.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// becomeReaper does nothing: only the process group of a player is followed.
func becomeReaper() {}

func killAll(pid int) { _ = unix.Kill(-pid, unix.SIGKILL) }

func sweep(pid int, _ map[int]string) { killAll(pid) }
