package bridge

import (
	"sync"
	"time"
)

// host is every child of this process that a bridge has started and not yet closed.
var host = household{live: map[*process]bool{}}

// household is what the Host knows of its own children.
type household struct {
	starting sync.Mutex // held while a child is started, until it is one of live
	mu       sync.Mutex // guards the rest
	live     map[*process]bool
	adopting bool
}

// AdoptOrphans says that this process starts no children in sessions of their own but
// those of bridges. Then whatever a server has left behind is ended too, though it
// dropped its environment and left the session, so that nothing tells whose it was: on
// Linux it became this process's child when its own parent ended, and nobody else can
// have made it one. It is killed and reaped when a server is closed and no other is
// left, in any bridge of the process; or when every other server was started after it.
//
// It is for a program that is a Host and nothing else, which calls it before its first
// bridge. Children in the program's own session are never touched. A program that may be
// given orphans by others, such as the first of a PID namespace, loses those. Elsewhere
// than on Linux it does nothing.
func AdoptOrphans() {
	becomeReaper()
	host.mu.Lock()
	defer host.mu.Unlock()
	host.adopting = true
}

// start starts a child that inherits nothing but its pipes, on the thread that outlives
// it, and counts it as one of the household.
func (h *household) start(p *process) error {
	h.starting.Lock()
	defer h.starting.Unlock()
	if err := sealDescriptors(); err != nil {
		return err
	}
	if err := onStarterThread(p.cmd.Start); err != nil {
		return err
	}
	p.started = birth(p.cmd.Process.Pid)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live[p] = true
	return nil
}

// leave ends the membership of a child that has ended, and what it and others before it
// left behind, if that is wanted. It returns how many orphans outlive a kill.
func (h *household) leave(p *process) (left int) {
	h.mu.Lock()
	delete(h.live, p)
	adopting := h.adopting
	h.mu.Unlock()
	if !adopting {
		return 0
	}
	deadline := time.Now().Add(killGrace)
	doomed := map[int]string{}
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		var sure bool
		if left, sure = h.strike(doomed); sure || time.Now().After(deadline) {
			return left
		}
		time.Sleep(pause) // the kernel says of a child's orphans nothing that could be waited for
	}
}
