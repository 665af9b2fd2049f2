//go:build !unix

package suite

import "syscall"

// detached asks for nothing special: this system is compiled for, not tested.
func detached() *syscall.SysProcAttr { return nil }
