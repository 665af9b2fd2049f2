//go:build !linux && !darwin

package bridge

import "syscall"

// childAttributes asks for nothing special: this system is compiled for, not tested.
func childAttributes() *syscall.SysProcAttr { return nil }

// adoptOrphans does nothing: only the child itself is followed.
func adoptOrphans() {}

func (p *process) alive() int { return 0 }

// signal ends the child at once; there is no gentler way that every system has.
func (p *process) signal(bool) {
	if !p.reaped() {
		_ = p.cmd.Process.Kill()
	}
}
