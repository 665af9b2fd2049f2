package bridge

import (
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes puts a child into a session of its own, without a terminal to read
// answers from, and has the kernel kill it when the Host dies.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// becomeReaper makes the Host the parent of every descendant whose own parent ends, so
// that none leaves the tree of processes below it. It is an attribute of the whole
// process and stays set. Before Linux 3.4 there is none; then only what is still
// below a child is found.
var becomeReaper = sync.OnceFunc(func() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
})

// alive counts the descendants that are left, the child apart, and reaps those that ended
// as the Host's own children. One that ended and still hangs below another counts: it
// becomes the Host's when that one ends. No process is waited for by any other name
// than its own id, so that no other wait in the Host is robbed.
func (p *process) alive() int {
	left := 0
	for _, d := range p.descendants() {
		if !d.zombie() || d.parent != unix.Getpid() || !reap(d.pid) {
			left++
		}
	}
	return left
}

// reap takes an ended child out of the process table. It reports false while threads of
// it are still ending, though its first one shows as a zombie.
func reap(pid int) bool {
	for {
		got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if err != unix.EINTR {
			return err != nil || got == pid // an error: somebody else has reaped it
		}
	}
}

// signal asks the child and its descendants to end, or makes them.
func (p *process) signal(kill bool) {
	sig := unix.SIGTERM
	if kill {
		sig = unix.SIGKILL
	}
	if !p.reaped() {
		_ = p.cmd.Process.Signal(sig) // os.Process does not confuse an ended child with a new one
	}
	for _, d := range p.descendants() {
		if !d.zombie() && !d.undecided {
			d.signal(sig)
		}
	}
}

// signal goes to the process that was seen, not to one that has its id since.
func (d proc) signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(d.pid, 0)
	if err != nil {
		if err == unix.ENOSYS || err == unix.EPERM { // before Linux 5.3, or forbidden by a sandbox
			_ = unix.Kill(d.pid, sig)
		}
		return
	}
	defer func() { _ = unix.Close(fd) }()
	if now, ok := readProc(d.pid); ok && now.started == d.started {
		_ = unix.PidfdSendSignal(fd, sig, nil, 0)
	}
}
