package bridge

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// The variables that mark a child and what descends from it, besides those that
// configuration passes on. The first names the run, for whoever looks at a process
// list; the second is different for every child and finds its descendants.
const (
	RunMark   = "SALLYPORT_RUN"
	ChildMark = "SALLYPORT_CHILD"
)

// How long a child may take to end, at each step of [process.close].
const (
	endGrace  = 500 * time.Millisecond // after end of input, and again after SIGTERM
	killGrace = 5 * time.Second        // after SIGKILL: only the kernel is waited for
)

// command says which child to start.
type command struct {
	args []string // the program, looked up in the Host's own PATH, and its arguments
	dir  string   // working directory; empty is the Host's
	pass []string // names of the variables that are passed on
	run  string   // for RunMark

	program Program // runs inside the Host in place of a child
}

// environment is all that the child gets: what is listed, where it is set, and the
// marks.
func (c command) environment(token string) []string {
	env := []string{ChildMark + "=" + token, RunMark + "=" + c.run}
	for _, name := range c.pass {
		if v, ok := os.LookupEnv(name); ok && name != ChildMark && name != RunMark {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// process is a running child in a session of its own, with our ends of its three
// pipes. On Linux it dies with the Host, and its descendants are found wherever they
// went.
type process struct {
	cmd     *exec.Cmd
	token   string   // its ChildMark
	started string   // when, as [birth] says
	stdin   *os.File // takes write deadlines
	stdout  *os.File
	errors  *tail // what it wrote to stderr

	seen    map[int]string // descendants found so far, with their start: by close only
	grace   time.Duration  // for each step of close
	forced  bool           // it did not end by end of input: for after close
	drained chan struct{}  // stderr has been read to its end
	exited  chan struct{}  // the child has been reaped
	once    sync.Once
	err     error // of close

	inside bool // a [Program]: there is no child
}

// startProcess starts a child. The caller must close it.
func startProcess(c command) (*process, error) {
	if c.program != nil {
		return startInside(c)
	}
	if len(c.args) == 0 {
		return nil, errors.New("start a server: no command")
	}
	becomeReaper()
	p := &process{
		cmd: exec.Command(c.args[0], c.args[1:]...), token: rand.Text(), errors: &tail{},
		seen: map[int]string{}, grace: endGrace,
		drained: make(chan struct{}), exited: make(chan struct{}),
	}
	p.cmd.Dir, p.cmd.Env = c.dir, c.environment(p.token)
	p.cmd.SysProcAttr = childAttributes()
	stderr, err := p.start()
	if err != nil {
		return nil, fmt.Errorf("start the server %q: %w", c.args[0], err)
	}
	go func() { // ends with the pipe; close waits for it
		defer close(p.drained)
		p.errors.drain(stderr)
	}()
	go func() { // ends with the child; close waits for it
		defer close(p.exited)
		_ = p.cmd.Wait() // how it ended is seen in what it answered
	}()
	return p, nil
}

// start opens the pipes and starts the child on the thread that outlives it.
func (p *process) start() (stderr *os.File, err error) {
	var theirs, ours []*os.File
	shut := func(files []*os.File) {
		for _, f := range files {
			_ = f.Close()
		}
	}
	defer func() {
		shut(theirs)
		if err != nil {
			shut(ours)
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	for _, f := range []*os.File{inR, outW, errW} {
		if f != nil {
			theirs = append(theirs, f)
		}
	}
	for _, f := range []*os.File{inW, outR, errR} {
		if f != nil {
			ours = append(ours, f)
		}
	}
	if err != nil {
		return nil, err
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = inR, outW, errW
	p.stdin, p.stdout = inW, outR
	return errR, host.start(p)
}

// starter runs what it is sent on one operating system thread that lives as long as
// the Host: a parent-death signal is sent when the thread that started the child ends,
// not the process. Nobody waits for its goroutine; it holds nothing.
var starter = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func onStarterThread(f func() error) error {
	done := make(chan error)
	starter() <- func() { done <- f() }
	return <-done
}

// close ends the child and every descendant that can be found, and waits for them:
// end of input, then SIGTERM, then SIGKILL, each given its time. It closes the pipes
// last, and returns an error if something is still alive. Later calls give the first
// answer.
func (p *process) close() error {
	p.once.Do(func() { p.err = p.end() })
	return p.err
}

func (p *process) end() error {
	if p.inside {
		return p.endInside()
	}
	_ = p.stdin.Close()
	left := p.gone(p.grace)
	if p.forced = left > 0; p.forced {
		p.signal(false)
		left = p.gone(p.grace)
	}
	if left > 0 {
		left = p.kill()
	}
	left += host.leave(p)
	_ = p.stdout.Close()
	select {
	case <-p.drained:
	case <-time.After(p.grace): // somebody else holds the other end
	}
	p.errors.stop()
	<-p.drained
	if left > 0 {
		return fmt.Errorf("server %q: %d processes outlive a kill", p.cmd.Path, left)
	}
	return nil
}

// kill sends SIGKILL until nothing is left, so that what forks meanwhile is met too.
func (p *process) kill() (left int) {
	for deadline := time.Now().Add(killGrace); time.Now().Before(deadline); {
		p.signal(true)
		if left = p.gone(20 * time.Millisecond); left == 0 {
			return 0
		}
	}
	return left
}

// gone waits until neither the child nor a descendant is alive, and returns how many
// still are when the time is over.
func (p *process) gone(within time.Duration) int {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	select {
	case <-p.exited:
	case <-deadline.C:
		return 1 + p.alive()
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		left := p.alive()
		if left == 0 {
			return 0
		}
		select {
		case <-time.After(pause):
		case <-deadline.C:
			return left
		}
	}
}

// ending says how the child ended, if it was not made to: after close.
func (p *process) ending() string {
	if p.inside || p.forced || p.cmd.ProcessState == nil {
		return ""
	}
	return p.cmd.ProcessState.String()
}

// reaped reports whether the child itself has ended and its id may be anybody's.
func (p *process) reaped() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}
