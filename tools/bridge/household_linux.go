package bridge

import (
	"math"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// birth is when a process was started, in clock ticks since boot; empty if unknown.
func birth(pid int) string {
	d, _ := readProc(pid)
	return d.started
}

// ticks is a time as [proc.started] has it; what cannot be read is before everything.
func ticks(started string) uint64 {
	n, err := strconv.ParseUint(started, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// members are the ids of the children that have not been reaped, and the start of the
// oldest server that is still open: an orphan from before it belongs to none of them.
func (h *household) members() (ids map[int]bool, oldest uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	ids, oldest = map[int]bool{}, math.MaxUint64
	for p := range h.live {
		oldest = min(oldest, ticks(p.started))
		if !p.reaped() {
			ids[p.cmd.Process.Pid] = true
		}
	}
	return ids, oldest
}

// strike kills the orphans that belong to no open server, with what is below them, and
// reaps those that have ended. doomed is what it has met so far, and is added to: what
// is below an orphan is an orphan next, and younger. It returns how many were left, and
// whether that is sure to be none.
func (h *household) strike(doomed map[int]string) (left int, sure bool) {
	if !h.starting.TryLock() {
		return 0, false // a child that is being started is not one of live yet
	}
	defer h.starting.Unlock()
	ids, oldest := h.members()
	self, below := proc{}, map[int][]proc{}
	for _, d := range processes() {
		below[d.parent] = append(below[d.parent], d)
		if d.pid == os.Getpid() {
			self = d
		}
	}
	var kill func(d proc)
	kill = func(d proc) {
		doomed[d.pid] = d.started
		left++
		if !d.zombie() {
			d.signal(unix.SIGKILL)
		}
		for _, next := range below[d.pid] {
			kill(next)
		}
	}
	if self.pid == 0 {
		return 0, true // there is no /proc to look at
	}
	children := below[self.pid]
	sure = len(children) > 0 || childless()
	for _, d := range children {
		// No server's descendant is in the Host's session: a session can be left, not joined.
		if ids[d.pid] || d.session == self.session {
			continue
		}
		if d.zombie() && reap(d.pid) {
			sure = false // what was below it when it was looked at is the Host's child now
			continue
		}
		if ticks(d.started) < oldest || doomed[d.pid] == d.started {
			kill(d)
		}
	}
	return left, sure && left == 0
}

// childless reports whether the Host has no child at all, which /proc alone cannot
// tell: a process that forks and ends again and again is easily missed there.
func childless() bool {
	return unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil) == unix.ECHILD
}
