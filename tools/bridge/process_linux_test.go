package bridge

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func init() {
	parts["tell-environment"] = func([]string) {
		say(os.Environ())
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	parts["stubborn"] = func([]string) { stubborn(nil) }
	parts["family"] = func([]string) { stubborn(startFamily()) }
	parts["grandchild"] = func([]string) { stubborn(nil) }
	parts["daemon"] = func([]string) {
		pid := startDetached("grandchild", os.Environ())
		say([]int{pid})
	}
	parts["host"] = func(args []string) {
		p, err := startProcess(command{args: args, run: "killed-host"})
		if err != nil {
			panic(err)
		}
		_, _ = io.Copy(os.Stdout, p.stdout)
	}
}

// stubborn says pids and its own, ignores SIGTERM and end of input, and floods stderr.
func stubborn(pids []int) {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	if pids != nil {
		say(append(pids, os.Getpid()))
	}
	line := bytes.Repeat([]byte("noise \x1b[2J"), 1000)
	for {
		if _, err := os.Stderr.Write(line); err != nil {
			select {}
		}
	}
}

// startFamily starts one grandchild that keeps the environment, in a session of its
// own, and one without any environment.
func startFamily() []int {
	return []int{startDetached("grandchild", os.Environ()), startDetached("grandchild", []string{"NOTHING=here"})}
}

func startDetached(part string, env []string) int {
	cmd := exec.Command(os.Args[0], part)
	cmd.Env, cmd.Stderr = env, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	return cmd.Process.Pid
}

// hold opens a handle on a process, to see it end without a race.
func hold(t *testing.T, pid int) int {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatalf("process %d: %v", pid, err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// ended waits for a held process to end.
func ended(t *testing.T, fd int, within time.Duration) bool {
	t.Helper()
	for deadline := time.Now().Add(within); ; {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(max(0, time.Until(deadline)).Milliseconds()))
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	}
}

func start(t *testing.T, c command) (*process, *bufio.Reader) {
	t.Helper()
	p, err := startProcess(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.close() })
	return p, bufio.NewReader(p.stdout)
}

func TestProcess_PassesOnlyListedVariables(t *testing.T) {
	t.Setenv("BRIDGE_LISTED", "yes")
	t.Setenv("BRIDGE_SECRET", "no")
	p, out := start(t, command{args: child(t, "tell-environment"), run: "run-1", pass: []string{"BRIDGE_LISTED", "BRIDGE_ABSENT", RunMark}})
	got := hear[[]string](t, out)
	slices.Sort(got)
	want := []string{"BRIDGE_LISTED=yes", ChildMark + "=" + p.token, RunMark + "=run-1"}
	if !slices.Equal(got, want) {
		t.Errorf("the child's environment is %q, want %q", got, want)
	}
}

func TestProcess_EndsByEndOfInput(t *testing.T) {
	p, out := start(t, command{args: child(t, "tell-environment"), run: "r"})
	hear[[]string](t, out)
	p.grace = patient
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	if got := p.ending(); got != "exit status 0" {
		t.Errorf("a server that ends by end of input has ended: %q", got)
	}
}

// The whole of X5: a child and its descendants, one in a session of its own, one more
// without the mark, all ignoring SIGTERM and flooding stderr.
func TestProcess_CloseLeavesNoDescendant(t *testing.T) {
	p, out := start(t, command{args: child(t, "family"), run: "r"})
	pids := hear[[]int](t, out)
	var held []int
	for _, pid := range pids {
		held = append(held, hold(t, pid))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for tick := time.Tick(time.Millisecond); p.errors.lost() < 16<<20; { // it has sent more than 16 MiB
		<-tick
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("the heap grew by %d bytes while stderr was flooded", grown)
	}
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	for i, fd := range held {
		if !ended(t, fd, 0) {
			t.Errorf("process %d of %v is alive after close", pids[i], pids)
		}
	}
	for _, pid := range pids {
		if d, ok := readProc(pid); ok {
			t.Errorf("process %d was not reaped: state %c, parent %d", pid, d.state, d.parent)
		}
	}
	if text := p.errors.text(); len(p.errors.ring) != stderrTail || strings.ContainsRune(text, 0x1b) || !strings.Contains(text, "⟦U+001B⟧") {
		t.Errorf("stderr: %d bytes kept, begins %.60q", len(p.errors.ring), text)
	}
}

// A child that leaves a daemon behind and ends by itself: the Host has inherited the
// daemon and ends it.
func TestProcess_CloseEndsWhatAnEndedChildLeftBehind(t *testing.T) {
	p, out := start(t, command{args: child(t, "daemon"), run: "r"})
	pid := hear[[]int](t, out)[0]
	fd := hold(t, pid)
	<-p.exited
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
	if !ended(t, fd, 0) {
		t.Errorf("the daemon %d is alive after close", pid)
	}
}

// A process of somebody else in the Host is neither ended nor waited for.
func TestProcess_CloseLeavesOtherChildrenAlone(t *testing.T) {
	other := exec.Command(child(t, "tell-environment")[0], "tell-environment")
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	first, out := start(t, command{args: child(t, "tell-environment"), run: "r"})
	hear[[]string](t, out)
	second, out := start(t, command{args: child(t, "tell-environment"), run: "r"})
	hear[[]string](t, out)
	fd := hold(t, second.cmd.Process.Pid)
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	if ended(t, fd, 0) {
		t.Error("closing one server ended another of the same run")
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := other.Wait(); err != nil {
		t.Errorf("another child of the process: %v", err)
	}
}

// The Host is killed: its child dies by the parent-death signal, though it ignores end
// of input and SIGTERM.
func TestProcess_ChildDiesWithTheHost(t *testing.T) {
	host := exec.Command(child(t, "host")[0], append([]string{"host"}, child(t, "family")...)...)
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	pids := hear[[]int](t, bufio.NewReader(out))
	last := pids[len(pids)-1]
	fd := hold(t, last)
	t.Cleanup(func() { // what a killed Host cannot end: its grandchildren
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	if !ended(t, fd, time.Minute) {
		t.Errorf("the child %d outlives its killed Host", last)
	}
}

// The thread that starts children stays, whatever becomes of the Host's other threads.
func TestProcess_ChildOutlivesThreads(t *testing.T) {
	var held []int
	for range 24 { // on one thread or another, if it is not always the same
		p, out := start(t, command{args: child(t, "tell-environment"), run: "r"})
		hear[[]string](t, out)
		held = append(held, hold(t, p.cmd.Process.Pid))
		endThreads(32)
	}
	for _, fd := range held {
		if ended(t, fd, 10*time.Millisecond) {
			t.Error("a child died with a thread of the Host")
		}
	}
}

// endThreads ends every thread that is idle, and more: each of n goroutines takes one
// for itself, and all of them end with it.
func endThreads(n int) {
	var taken, ended sync.WaitGroup
	taken.Add(n)
	for range n {
		ended.Go(func() {
			runtime.LockOSThread()
			taken.Done()
			taken.Wait()
		})
	}
	ended.Wait()
}

func TestProcess_FailedStartLeavesNoDescriptor(t *testing.T) {
	before := descriptors(t)
	for range 50 {
		if p, err := startProcess(command{args: []string{"/nonexistent/server"}, run: "r"}); err == nil {
			_ = p.close()
			t.Fatal("a program that does not exist was started")
		}
	}
	if after := descriptors(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func descriptors(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}
