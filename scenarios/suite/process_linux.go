package suite

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// childAttributes puts a player into a process group of its own: Ctrl-C on the
// terminal is for the suite, which tells its players.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// becomeReaper makes this process the parent of what players leave behind.
var becomeReaper = sync.OnceFunc(func() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
})

// sweepTime bounds how long a sweep takes: after SIGKILL only the kernel is waited for.
const sweepTime = 5 * time.Second

// killAll ends a player with all that is below it. The player is stopped first, so that
// it starts nothing meanwhile.
func killAll(pid int) {
	_ = unix.Kill(pid, unix.SIGSTOP)
	for _, below := range descendants(pid) {
		_ = unix.Kill(below, unix.SIGKILL)
	}
	_ = unix.Kill(-pid, unix.SIGKILL)
	_ = unix.Kill(pid, unix.SIGKILL)
}

// sweep ends what players that have ended left behind: it has become a child of this
// process, is no player, and is not of this process's own group.
func sweep(_ int, live map[int]string) {
	self, group := os.Getpid(), unix.Getpgrp()
	for deadline := time.Now().Add(sweepTime); time.Now().Before(deadline); {
		orphans := 0
		for child, parent := range parents() {
			if parent != self || live[child] != "" || groupOf(child) == group {
				continue
			}
			orphans++
			for _, below := range descendants(child) {
				_ = unix.Kill(below, unix.SIGKILL)
			}
			_ = unix.Kill(child, unix.SIGKILL)
			_, _ = unix.Wait4(child, nil, unix.WNOHANG, nil)
		}
		if orphans == 0 {
			return
		}
		time.Sleep(time.Millisecond) // the kernel says nothing of an orphan that could be waited for
	}
}

// endBelow ends all that is below this process.
func endBelow() {
	for _, below := range descendants(os.Getpid()) {
		_ = unix.Kill(below, unix.SIGKILL)
	}
	sweep(0, nil)
}

// endSelf ends this process.
func endSelf() { os.Exit(1) }

// groupOf is the process group of a child; one that has ended is in none of ours.
func groupOf(pid int) int {
	group, err := unix.Getpgid(pid)
	if err != nil {
		return 0
	}
	return group
}

// descendants lists what is below a process.
func descendants(pid int) []int {
	of := parents()
	var found []int
	below := map[int]bool{pid: true}
	for grown := true; grown; {
		grown = false
		for child, parent := range of {
			if below[parent] && !below[child] {
				below[child], grown = true, true
				found = append(found, child)
			}
		}
	}
	return found
}

// parents maps every process to its parent.
func parents() map[int]int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	of := map[int]int{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue
		}
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 {
			continue
		}
		if parent, err := strconv.Atoi(string(fields[1])); err == nil {
			of[pid] = parent
		}
	}
	return of
}
