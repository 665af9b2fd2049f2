package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"sallyport/agent/embedded"
	"sallyport/tools/docserver"
)

// The command as the kill tests start it: the same program, which ends itself by SIGKILL
// where it is told to. Without these variables and folders nothing here does anything.

const (
	killVariable  = "SALLYPORT_TEST_KILL"  // POINT#N: die at the n-th time that the point is reached
	traceVariable = "SALLYPORT_TEST_TRACE" // a file that takes the points that are reached
	clockVariable = "SALLYPORT_TEST_CLOCK" // how far the engine's clock is ahead
)

// orders is the folder beside a workspace in which a test tells the document server what
// to do. In it: `calls` takes a line for each call; `hold` holds back a call, "TOOL
// asked" before the server sees it, "TOOL done" before its answer leaves, until it is
// gone, and `held` says that this has come about; each line of `die` ends one server, "TOOL
// POINT".
const orders = "orders"

func init() {
	if filepath.Base(os.Args[0]) != "sallyport" {
		return
	}
	if os.Getenv(killVariable)+os.Getenv(traceVariable)+os.Getenv(clockVariable) != "" {
		tuned = mortal
	}
	if len(os.Args) == 5 && os.Args[1] == "mcp" && os.Args[2] == "docs" {
		if dir, reports := ordersFor(os.Args[4]); dir != "" {
			os.Exit(newObedient(dir, reports).serve(os.Args[4]))
		}
	}
}

// mortal makes an engine whose process dies as the environment says.
func mortal(c *embedded.Config) {
	if ahead, err := time.ParseDuration(os.Getenv(clockVariable)); err == nil {
		c.Now = func() time.Time { return time.Now().Add(ahead) }
	}
	fatal, nth, _ := strings.Cut(os.Getenv(killVariable), "#")
	left, _ := strconv.Atoi(nth)
	trace := os.Getenv(traceVariable)
	var mu sync.Mutex
	c.Crash = func(point string) {
		mu.Lock()
		defer mu.Unlock()
		if trace != "" {
			addLine(trace, point)
		}
		if point != fatal {
			return
		}
		if left--; left == 0 {
			die()
		}
	}
}

// die ends this process as SIGKILL does.
func die() {
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Kill()
	}
	if err != nil {
		panic(err)
	}
	select {} // until it has arrived
}

func addLine(path, line string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		panic(err)
	}
}

// ordersFor finds the folder of orders that belongs to a server's configuration, and the
// folder of its reports; empty if there is none.
func ordersFor(config string) (dir, reports string) {
	data, err := os.ReadFile(config)
	if err != nil {
		return "", ""
	}
	var c struct{ Root string }
	if err := json.Unmarshal(data, &c); err != nil {
		return "", ""
	}
	dir = filepath.Join(filepath.Dir(c.Root), orders)
	if _, err := os.Stat(dir); err != nil {
		return "", ""
	}
	return dir, filepath.Join(c.Root, "reports")
}

// The points of the document server at which it can be told to die.
const (
	dieAsked   = "asked"    // the request has arrived
	dieEntry   = "entry"    // the candidate's ledger entry is about to be made
	dieLink    = "link"     // the entry is durable, the report has no name yet
	dieVisible = "visible"  // the report has its name, which is not durable yet
	dieAnswer  = "answered" // all is done, the answer is not written
)

// armed, where the system has it, makes the process die at the next system call that
// belongs to the point.
var armed func(point, reports string) error

// obedient is the document server between two pipes, on which it is watched.
type obedient struct {
	dir, reports string
	parent       int

	mu    sync.Mutex
	after map[string]func() // by request id: done before its answer is passed on
}

func newObedient(dir, reports string) *obedient {
	return &obedient{dir: dir, reports: reports, parent: os.Getppid(), after: map[string]func(){}}
}

// serve runs the server as the command does, and returns its exit code.
func (o *obedient) serve(config string) int {
	requests, in, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	out, answers, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	go o.pass(os.Stdin, in, o.asked) // ends with the input
	done := make(chan struct{})
	go func() { // ends when the server has closed its output
		defer close(done)
		o.pass(out, os.Stdout, o.answered)
	}()
	code := docserver.Serve(context.Background(), config, requests, answers, os.Stderr)
	_ = answers.Close() // the server has, if it came to start
	<-done
	return code
}

// frame is what is looked at of a line.
type frame struct {
	ID     json.RawMessage
	Method string
	Params struct{ Name string }
}

// pass passes lines on, each after it was looked at.
func (o *obedient) pass(from io.Reader, to io.WriteCloser, look func(frame)) {
	defer func() { _ = to.Close() }()
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var f frame
			_ = json.Unmarshal(bytes.TrimSpace(line), &f) // else it is none of those that matter
			look(f)
			if _, err := to.Write(line); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (o *obedient) asked(f frame) {
	if f.Method != "tools/call" {
		return
	}
	addLine(filepath.Join(o.dir, "calls"), f.Params.Name)
	if tool, when, _ := strings.Cut(o.order("hold"), " "); tool == f.Params.Name {
		if when == "asked" {
			o.hold()
		} else {
			o.before(f, o.hold)
		}
	}
	o.mayDie(f)
}

// mayDie carries out the first line of `die`, if it is about this tool.
func (o *obedient) mayDie(f frame) {
	first, rest, _ := strings.Cut(o.order("die"), "\n")
	tool, point, _ := strings.Cut(first, " ")
	if tool != f.Params.Name {
		return
	}
	if err := os.WriteFile(filepath.Join(o.dir, "die"), []byte(rest), 0o600); err != nil {
		panic(err)
	}
	switch point {
	case dieAsked:
		die()
	case dieAnswer:
		o.before(f, die)
	default:
		if err := armed(point, o.reports); err != nil {
			panic(err)
		}
	}
}

// order is what a file of orders says; empty if it is not there.
func (o *obedient) order(name string) string {
	data, err := os.ReadFile(filepath.Join(o.dir, name))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// before has something done before the answer to a request is passed on.
func (o *obedient) before(f frame, do func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.after[string(f.ID)] = do
}

func (o *obedient) answered(f frame) {
	o.mu.Lock()
	do := o.after[string(f.ID)]
	delete(o.after, string(f.ID))
	o.mu.Unlock()
	if do != nil && f.Method == "" {
		do()
	}
}

// hold says that it is held, and waits until the order is gone, or the Host is: systems
// that do not end a child with its parent leave that to the child.
func (o *obedient) hold() {
	addLine(filepath.Join(o.dir, "held"), "held")
	for o.order("hold") != "" {
		if os.Getppid() != o.parent {
			os.Exit(3)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
