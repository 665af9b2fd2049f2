//go:build !linux && !darwin

package bridge

import "syscall"

// childAttributes asks for nothing special: this system is compiled for, not tested.
func childAttributes() *syscall.SysProcAttr { return nil }

// becomeReaper does nothing: only the child itself is followed.
func becomeReaper() {}

// sealDescriptors does nothing: Go lists what a child inherits.
func sealDescriptors() error { return nil }

func birth(int) string { return "" }

// strike finds no orphans: they are not the Host's children here.
func (h *household) strike(map[int]string) (left int, sure bool) { return 0, true }

func (p *process) alive() int { return 0 }

// signal ends the child at once; there is no gentler way that every system has.
func (p *process) signal(bool) {
	if !p.reaped() {
		_ = p.cmd.Process.Kill()
	}
}
