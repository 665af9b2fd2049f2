package embedded_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/agent/enginetest"
)

// Many tests need several processes on one state directory: they are this test binary
// again, told by its environment what to do.

const (
	verbVariable  = "SALLYPORT_TEST_CHILD"
	crashVariable = "SALLYPORT_TEST_CRASH" // kill this process at its n-th crash point
)

func TestMain(m *testing.M) {
	if verb := os.Getenv(verbVariable); verb != "" {
		if err := verbs[verb](context.Background(), os.Args[1:]); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// verbs are what a child can do. The first argument is the state directory.
var verbs = map[string]func(context.Context, []string) error{
	"live":    live,
	"hold":    hold,
	"serve":   serveAll,
	"pause":   deliverPause,
	"follow":  follow,
	"write":   writeOn,
	"openall": openAndRead,
}

// child is a process of ours.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
	once  sync.Once
	err   error
}

// command prepares a child.
func command(verb string, args ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		panic(err) // the binary that runs
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), verbVariable+"="+verb)
	cmd.Stderr = os.Stderr
	return cmd
}

// spawn starts a child. It is killed when the test ends.
func spawn(t *testing.T, cmd *exec.Cmd) *child {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: cmd, stdin: in, lines: bufio.NewScanner(out)}
	t.Cleanup(c.kill)
	return c
}

// line waits for a line of the child's output; empty at its end.
func (c *child) line() string {
	c.lines.Scan()
	return c.lines.Text()
}

// expect waits for a line and compares.
func (c *child) expect(want string) {
	c.t.Helper()
	if got := c.line(); got != want {
		c.t.Fatalf("the child said %q, want %q", got, want)
	}
}

// rest is what else the child says until its end.
func (c *child) rest() []string {
	var out []string
	for c.lines.Scan() {
		out = append(out, c.lines.Text())
	}
	return out
}

func (c *child) wait() error {
	c.once.Do(func() { c.err = c.cmd.Wait() })
	return c.err
}

// kill ends the child as SIGKILL does.
func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it may have ended
	_ = c.wait()
}

// crashing reads from the environment at which point this process is to die.
func crashing() func(string) {
	n, err := strconv.Atoi(os.Getenv(crashVariable))
	if err != nil {
		return nil
	}
	var mu sync.Mutex
	return func(string) {
		mu.Lock()
		defer mu.Unlock()
		if n--; n > 0 {
			return
		}
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			panic(err)
		}
		select {} // until it has arrived
	}
}

// ledger is a world that outlives processes: requests are counted in a file.
type ledger struct {
	path  string
	inner func(agent.Run) (agent.Nodes, error)
}

func newLedger(path string, script enginetest.Script) ledger {
	w := &enginetest.World{}
	return ledger{path, w.Nodes(script)}
}

func (l ledger) nodes(run agent.Run) (agent.Nodes, error) {
	inner, err := l.inner(run)
	return ledgerNodes{inner, l}, err
}

type ledgerNodes struct {
	agent.Nodes
	ledger ledger
}

func (n ledgerNodes) Perform(ctx context.Context, t agent.Task) (agent.Report, error) {
	switch t.Effect.Kind {
	case agent.Send:
		if err := n.ledger.add(t.Run.Call); err != nil {
			return agent.Report{}, err
		}
	case agent.Verify:
		finding := agent.NotApplied
		if n.ledger.count(t.Run.Call.ID) > 0 {
			finding = agent.Applied
		}
		return agent.Report{Result: agent.Verified{Finding: finding}}, nil
	case agent.Ask, agent.Prepare, agent.Observe, agent.Present:
	}
	return n.Nodes.Perform(ctx, t)
}

func (l ledger) add(c *agent.Call) error {
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, c.ID, c.Proposal.Tool)
	return errors.Join(err, f.Close())
}

func (l ledger) lines() []string {
	data, err := os.ReadFile(l.path)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func (l ledger) count(call string) int {
	n := 0
	for _, line := range l.lines() {
		if strings.HasPrefix(line, call) {
			n++
		}
	}
	return n
}

// lives are scripts of whole runs: reads, a write that is signed for, and a
// destructive call that two sign for.
var lives = map[string]enginetest.Script{
	"short": {{enginetest.ToolRead, enginetest.ToolWrite}},
	"long":  {{enginetest.ToolRead, enginetest.ToolWrite}, {enginetest.ToolDestroy, enginetest.ToolRead}},
}

// witness notes in a file which effects were performed.
type witness struct {
	agent.Nodes
	path string
}

func (w witness) Perform(ctx context.Context, t agent.Task) (agent.Report, error) {
	f, err := os.OpenFile(w.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return agent.Report{}, err
	}
	_, err = fmt.Fprintln(f, t.Effect.Seq, t.Effect.Kind)
	if err := errors.Join(err, f.Close()); err != nil {
		return agent.Report{}, err
	}
	return w.Nodes.Perform(ctx, t)
}

// checkPerformed sees to it that what was performed is journaled, and nothing beyond.
func checkPerformed(t *testing.T, e *embedded.Engine, id, path, what string) {
	t.Helper()
	journaled := map[string]bool{}
	for entry, err := range e.Journal(context.Background(), id, 1, false) {
		if err != nil {
			t.Fatal(err)
		}
		for _, eff := range entry.Effects {
			journaled[fmt.Sprintln(eff.Seq, eff.Kind)] = true
		}
	}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if !journaled[line] {
			t.Errorf("%s: effect %q was performed and is not in the journal", what, line)
		}
	}
}

// live takes a run from its start to its end, whatever came before: it starts,
// serves, signs what waits, and serves again. Arguments: state, run, ledger, which life.
func live(ctx context.Context, args []string) (err error) {
	e, err := embedded.Open(args[0], embedded.Config{Crash: crashing()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if _, err := e.Start(ctx, enginetest.Spec(args[1]), "tester", []agent.Body{enginetest.Task}); err != nil {
		return err
	}
	l := newLedger(args[2], lives[args[3]])
	for {
		if err := e.Serve(ctx, agent.ServeOptions{Runs: args[1:2]}, l.nodes); err != nil {
			return err
		}
		run, err := agent.Replay(e.Journal(ctx, args[1], 1, false))
		if err != nil {
			return err
		}
		if run.State.Final() {
			fmt.Println(run.State)
			return nil
		}
		if run.State != agent.StateAwaitingApproval {
			return fmt.Errorf("the run rests in %s", run.State)
		}
		by := "alice"
		if slices.ContainsFunc(run.Call.Grants, func(g agent.Grant) bool { return g.Approver == "alice" }) {
			by = "bob"
		}
		// Signed again after a crash it is the same delivery: the time is the run's.
		if _, err := e.Deliver(ctx, args[1], enginetest.Deliver(enginetest.Sign(run, by, run.Time), "")); err != nil {
			return err
		}
	}
}

// hold serves a run whose first effect lasts until the parent closes our stdin, then
// to its end. Arguments: state, run.
func hold(ctx context.Context, args []string) (err error) {
	e, err := embedded.Open(args[0], embedded.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	var once sync.Once
	w := &enginetest.World{Asking: func(ctx context.Context) error {
		once.Do(func() {
			fmt.Println("serving")
			_, _ = io.Copy(io.Discard, os.Stdin)
		})
		return nil
	}}
	if err := e.Serve(ctx, agent.ServeOptions{Runs: args[1:2]}, w.Nodes(nil)); err != nil {
		return err
	}
	fmt.Println("rests")
	return nil
}

// serveAll serves every run until the parent closes our stdin. Arguments: state, and
// the file that counts requests.
func serveAll(ctx context.Context, args []string) (err error) {
	e, err := embedded.Open(args[0], embedded.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	fmt.Println("serving")
	err = e.Serve(ctx, agent.ServeOptions{}, newLedger(args[1], enginetest.Script{{enginetest.ToolWrite}}).nodes)
	if err == context.Canceled { // exactly this and nothing beside
		return nil
	}
	return err
}

// deliverPause pauses a run and says what became of it. Arguments: state, run, key.
func deliverPause(ctx context.Context, args []string) (err error) {
	e, err := embedded.Open(args[0], embedded.Config{Actor: "child", Crash: crashing()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	v, err := e.Deliver(ctx, args[1], agent.Delivery{Key: args[2], Decision: agent.Pause{}})
	if err != nil {
		return err
	}
	if v.Refusal != nil {
		fmt.Println("refused", v.Refusal.Code)
		return nil
	}
	fmt.Println(v.Row, v.Seq)
	return nil
}

// follow prints the hash of each entry until the run ends. Arguments: state, run.
func follow(ctx context.Context, args []string) (err error) {
	e, err := embedded.Open(args[0], embedded.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for entry, err := range e.Journal(ctx, args[1], 1, true) {
		if err != nil {
			return err
		}
		fmt.Println(entry.Seq, entry.Hash())
	}
	return nil
}

// writeOn starts runs as fast as it can until the parent closes our stdin, and says how
// many. Arguments: state, prefix of the ids.
func writeOn(ctx context.Context, args []string) (err error) {
	e, err := embedded.Open(args[0], embedded.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	stop := make(chan struct{})
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(stop)
	}()
	fmt.Println("writing")
	for n := 0; ; n++ {
		select {
		case <-stop:
			fmt.Println(n)
			return nil
		default:
		}
		if _, err := e.Start(ctx, enginetest.Spec(fmt.Sprintf("%s-%d", args[1], n)), "tester", nil); err != nil {
			return err
		}
	}
}

// openAndRead opens a state directory and lists its runs. Arguments: state.
func openAndRead(ctx context.Context, args []string) (err error) {
	e, err := embedded.Open(args[0], embedded.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	runs, err := e.List(ctx, agent.Filter{})
	if err != nil {
		return err
	}
	for _, r := range runs {
		run, err := agent.Replay(e.Journal(ctx, r.ID, 1, false))
		if err != nil {
			return err
		}
		fmt.Println(run.ID, run.State, run.Head)
	}
	return nil
}
