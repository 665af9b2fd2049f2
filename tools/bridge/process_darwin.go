package bridge

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes puts a child into a session and process group of its own. There is
// no parent-death signal here: a child of a killed Host ends by end of input.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// becomeReaper does nothing: only the process group of a child is followed.
func becomeReaper() {}

func sealDescriptors() error { return sealListed("/dev/fd") }

func birth(int) string { return "" }

// strike finds no orphans: they are not the Host's children here.
func (h *household) strike(map[int]string) (left int, sure bool) { return 0, true }

// alive counts the child's process group as one as long as it has a member.
func (p *process) alive() int {
	if unix.Kill(-p.cmd.Process.Pid, 0) != nil {
		return 0
	}
	return 1
}

// signal asks the process group to end, or makes it.
func (p *process) signal(kill bool) {
	sig := unix.SIGTERM
	if kill {
		sig = unix.SIGKILL
	}
	_ = unix.Kill(-p.cmd.Process.Pid, sig)
}
