package bridge

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	// A server that leaves a daemon behind, and the daemon's child: each in a session of
	// its own, without environment, the daemon's parent ended. Nothing tells whose it was.
	parts["daemon-maker"] = func([]string) {
		cmd := exec.Command(os.Args[0], "daemon-forker")
		cmd.Env, cmd.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
		said, err := cmd.Output()
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.Write(said)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	parts["daemon-forker"] = func([]string) {
		cmd := exec.Command(os.Args[0], "daemon-parent")
		cmd.Env, cmd.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			panic(err)
		}
		said, err := bufio.NewReader(out).ReadBytes('\n')
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.Write(said)
	}
	parts["daemon-parent"] = func([]string) {
		cmd := exec.Command(os.Args[0], "idle")
		cmd.Env, cmd.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		say([]int{os.Getpid(), cmd.Process.Pid})
		time.Sleep(time.Minute)
	}
	parts["idle"] = func([]string) { time.Sleep(time.Minute) } // should nobody end it
	parts["keeper"] = func(args []string) { say(keep(args[0])) }
	parts["busy-keeper"] = func([]string) { say(keepMany()) }
	parts["crowded-keeper"] = func([]string) { say(keepAtOnce()) }
	parts["tell-descriptors"] = func([]string) {
		open := map[string]string{}
		names, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			panic(err)
		}
		for _, n := range names {
			if target, err := os.Readlink("/proc/self/fd/" + n.Name()); err == nil {
				open[n.Name()] = target
			}
		}
		say(open)
	}
}

// kept is what a Host says of its children.
type kept struct {
	Adopted     bool // the daemon was the Host's child
	Daemon, Own bool // alive after close
	Problem     string
}

// server starts a part and reads what it says first.
func server[T any](part string) (*process, T) {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	p, err := startProcess(command{args: []string{exe, part}, run: "kept"})
	if err != nil {
		panic(err)
	}
	var said T
	if err := json.NewDecoder(p.stdout).Decode(&said); err != nil {
		panic(err)
	}
	return p, said
}

// anyAlive reports whether one of these is there, if only to be reaped.
func anyAlive(pids ...int) bool {
	return slices.ContainsFunc(pids, func(pid int) bool {
		_, ok := readProc(pid)
		return ok
	})
}

func killAll(pids ...int) {
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// keep is a Host with one server and a child of its own, which is in a session of its
// own if the Host has not promised otherwise.
func keep(how string) (k kept) {
	own := exec.Command(os.Args[0], "idle")
	if how == "adopt" {
		AdoptOrphans()
	} else {
		own.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	}
	if err := own.Start(); err != nil {
		panic(err)
	}
	p, daemon := server[[]int]("daemon-maker")
	d, _ := readProc(daemon[0])
	k.Adopted = d.parent == os.Getpid()
	if err := p.close(); err != nil {
		k.Problem = err.Error()
	}
	k.Daemon, k.Own = anyAlive(daemon...), anyAlive(own.Process.Pid)
	if k.Daemon {
		killAll(daemon...)
	}
	_ = own.Process.Kill()
	_ = own.Wait()
	return k
}

// keepMany is a Host of several servers, two of which leave daemons behind. It says
// after each close which daemons are alive.
func keepMany() (alive [][]bool) {
	AdoptOrphans()
	a, first := server[[]int]("daemon-maker")
	d, _ := readProc(first[0])
	b, _ := server[[]string]("tell-environment")
	for ticks(b.started) <= ticks(d.started) { // the clock is coarse
		_ = b.close()
		b, _ = server[[]string]("tell-environment")
	}
	c, second := server[[]int]("daemon-maker")
	for _, p := range []*process{a, c, b} {
		if err := p.close(); err != nil {
			panic(err)
		}
		alive = append(alive, []bool{anyAlive(first...), anyAlive(second...)})
	}
	return alive
}

// keepAtOnce is a Host that closes several servers at the same time, and says whether
// anything is left.
func keepAtOnce() bool {
	AdoptOrphans()
	var servers []*process
	var daemons []int
	for range 4 {
		p, said := server[[]int]("daemon-maker")
		servers, daemons = append(servers, p), append(daemons, said...)
	}
	var all sync.WaitGroup
	for _, p := range servers {
		all.Go(func() { _ = p.close() }) // waited for below
	}
	all.Wait()
	return anyAlive(daemons...)
}

// told runs a part and returns what it says.
func told[T any](t *testing.T, args ...string) (v T) {
	t.Helper()
	command := child(t, args[0], args[1:]...)
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, &v)
	}
	if err != nil {
		t.Fatalf("%v: %v, said %q", args, err, out)
	}
	return v
}

// A daemon that nothing connects with its server is ended if the program has no such
// children of its own; else it is left alone, and so are the program's in any case.
func TestAdoptOrphans_EndsWhatCannotBeTraced(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]kept{
		"adopt": {Adopted: true, Own: true},
		"plain": {Adopted: true, Own: true, Daemon: true},
	} {
		if got := told[kept](t, "keeper", how); got != want {
			t.Errorf("%s: %+v, want %+v", how, got, want)
		}
	}
}

// What may be of a server that is still open is left until that is closed; what is
// older than every one of those is not.
func TestAdoptOrphans_SparesOpenServers(t *testing.T) {
	t.Parallel()
	got := fmt.Sprint(told[[][]bool](t, "busy-keeper"))
	if want := "[[false true] [false true] [false false]]"; got != want {
		t.Errorf("alive after each close: %s, want %s", got, want)
	}
}

func TestAdoptOrphans_TheLastOfManyClosesCounts(t *testing.T) {
	t.Parallel()
	if told[bool](t, "crowded-keeper") {
		t.Error("a daemon outlives every server")
	}
}

// What the Host's own parent left open is not passed on to a server.
func TestProcess_InheritsNoDescriptor(t *testing.T) {
	t.Parallel()
	secret, err := os.CreateTemp(t.TempDir(), "secret")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = secret.Close() }()
	command := child(t, "host", child(t, "tell-descriptors")...)
	host := exec.Command(command[0], command[1:]...)
	host.Stderr = os.Stderr
	for range 7 { // 3 to 9
		host.ExtraFiles = append(host.ExtraFiles, secret)
	}
	out, err := host.Output()
	var open map[string]string
	if err == nil {
		err = json.Unmarshal(out, &open)
	}
	if err != nil {
		t.Fatalf("%v, said %q", err, out)
	}
	for fd, target := range open {
		standard := fd == "0" || fd == "1" || fd == "2"
		runtimes := strings.HasPrefix(target, "anon_inode:[event") || strings.HasPrefix(target, "/proc/") || strings.HasPrefix(target, "/sys/fs/cgroup/")
		if standard != strings.HasPrefix(target, "pipe:") || !standard && !runtimes {
			t.Errorf("the child has %s open on %s", fd, target)
		}
	}
}

// Where the kernel cannot do it at once, each descriptor is marked.
func TestSealListed(t *testing.T) {
	fd, err := unix.Dup(0) // is inherited
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := sealListed("/proc/self/fd"); err != nil {
		t.Fatal(err)
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("descriptor %d has flags %#x, %v", fd, flags, err)
	}
	if flags, err := unix.FcntlInt(2, unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC != 0 {
		t.Errorf("stderr has flags %#x, %v", flags, err)
	}
	if sealListed("/nonexistent") == nil {
		t.Error("a folder that cannot be read passes")
	}
}
