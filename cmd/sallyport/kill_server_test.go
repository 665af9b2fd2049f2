//go:build kill && linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"sallyport/agent"
)

// The document server dies at a system call: a seccomp filter, put on in the process
// itself once the request is there, has the kernel kill it on entry to the call. The
// product holds no hook for this.

var _ = func() bool { armed = killAtCall; return true }() // before any init

// byPerson is a write that no read-back can settle: the ledger says spent, and nothing
// is there.
var byPerson = plot{
	name: "found by a person", commands: 3, saves: true, from: 1, dies: []string{saveTool + " " + dieLink}, decide: approvesAs("ann"),
	want: want{state: agent.StateCompleted, nothing: true, uncertain: true, said: saidNot},
}

// call is the system call at which a point lies, with what an argument must be.
type call struct {
	number uint32
	arg    uint32 // which
	mask   uint32 // 0: whatever the argument is
	value  uint32
}

func callOf(point, reports string) (call, error) {
	switch point {
	case dieEntry:
		return call{number: unix.SYS_OPENAT, arg: 2, mask: unix.O_CREAT, value: unix.O_CREAT}, nil
	case dieLink:
		return call{number: unix.SYS_LINKAT}, nil
	case dieVisible: // the folder is synced after the link
		fd, err := descriptorOf(reports)
		return call{number: unix.SYS_FSYNC, mask: ^uint32(0), value: fd}, err
	}
	return call{}, fmt.Errorf("the document server has no point %q", point)
}

// descriptorOf finds the descriptor that this process has of a folder.
func descriptorOf(folder string) (uint32, error) {
	want, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return 0, err
	}
	found, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		return 0, err
	}
	for _, link := range found {
		if to, err := os.Readlink(link); err == nil && to == want {
			var fd uint32
			_, err := fmt.Sscan(filepath.Base(link), &fd)
			return fd, err
		}
	}
	return 0, fmt.Errorf("no descriptor of %q is open", folder)
}

// Offsets in the kernel's struct seccomp_data. The lower half of an argument comes first:
// the systems that the tests run on are little-endian.
const (
	offsetNumber = 0
	offsetArgs   = 16
)

// killAtCall installs the filter for every thread of this process.
func killAtCall(point, reports string) error {
	c, err := callOf(point, reports)
	if err != nil {
		return err
	}
	const load, equal, and, give = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	filter := []unix.SockFilter{
		{Code: load, K: offsetNumber},
		{Code: equal, K: c.number, Jf: 4},
		{Code: load, K: offsetArgs + 8*c.arg},
		{Code: and, K: c.mask},
		{Code: equal, K: c.value, Jf: 1},
		{Code: give, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: give, K: unix.SECCOMP_RET_ALLOW},
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, no := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	if no != 0 {
		return fmt.Errorf("install a filter: %w", no)
	}
	return nil
}
