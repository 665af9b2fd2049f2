//go:build unix

package suite

import "syscall"

// detached puts a process into a session of its own.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
