package bridge

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
)

// maxEnviron bounds what is read of another process's environment, in bytes.
const maxEnviron = 1 << 20

// proc is a process as /proc shows it.
type proc struct {
	pid, parent, session int
	state                byte
	started              string // in clock ticks since boot: with the pid, an identity
	execing              bool   // in the middle of an exec: it has no environment to show yet
	undecided            bool   // execing, so that nobody can say whose it is
}

func (d proc) zombie() bool { return d.state == 'Z' || d.state == 'X' }

// descendants lists what belongs to the child, itself excepted: what is below it, what
// is in its session, and what carries its mark in the environment, each with all that
// is below it. Only processes below the Host are looked at. What is in the middle of an
// exec may belong to it or not, and is listed as undecided; the next look will tell.
func (p *process) descendants() []proc {
	below := map[int][]proc{}
	for _, d := range processes() {
		below[d.parent] = append(below[d.parent], d)
	}
	child := p.cmd.Process.Pid
	mark := []byte(ChildMark + "=" + p.token)
	var found []proc
	var walk func(pid int, ours bool)
	walk = func(pid int, ours bool) {
		for _, d := range below[pid] {
			isChild := d.pid == child && !p.reaped()
			mine := ours || isChild || d.session == child || p.seen[d.pid] == d.started || carries(d.pid, mark)
			switch {
			case mine && !isChild:
				p.seen[d.pid] = d.started // one that ended has no environment to show
				found = append(found, d)
			case !mine && d.execing && !d.zombie():
				d.undecided = true
				found = append(found, d)
			}
			walk(d.pid, mine)
		}
	}
	walk(os.Getpid(), false)
	return found
}

// processes lists every process that /proc shows.
func processes() []proc {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil
	}
	all := make([]proc, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if d, ok := readProc(pid); ok {
			all = append(all, d)
		}
	}
	return all
}

// readProc reads one line of /proc/PID/stat. The name in it is the process's own
// choice and may hold spaces and parentheses: what counts begins after the last one.
func readProc(pid int) (proc, bool) {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, false
	}
	at := bytes.LastIndexByte(line, ')')
	if at < 0 {
		return proc{}, false
	}
	f := strings.Fields(string(line[at+1:]))
	if len(f) < 49 {
		return proc{}, false
	}
	parent, err1 := strconv.Atoi(f[1])
	session, err2 := strconv.Atoi(f[3])
	if err1 != nil || err2 != nil {
		return proc{}, false
	}
	d := proc{pid: pid, parent: parent, session: session, state: f[0][0], started: f[19]}
	d.execing = f[48] == "0" && mayRead(pid) // env_end, which shows as 0 to those who may not read it, too
	return d, true
}

// mayRead reports whether the process shows its environment to the Host.
func mayRead(pid int) bool {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

// carries reports whether the process was started with that variable.
func carries(pid int, variable []byte) bool {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	env, err := io.ReadAll(io.LimitReader(f, maxEnviron))
	if err != nil {
		return false
	}
	for one := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.Equal(one, variable) {
			return true
		}
	}
	return false
}
