package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/agent/enginetest"
)

// begin starts a run of the suite.
func begin(t testing.TB, e *embedded.Engine, id string) agent.Run {
	t.Helper()
	run, err := e.Start(context.Background(), enginetest.Spec(id), "tester", []agent.Body{enginetest.Task})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// replayed is a run as its journal gives it.
func replayed(t testing.TB, e *embedded.Engine, id string) agent.Run {
	t.Helper()
	run, err := agent.Replay(e.Journal(context.Background(), id, 1, false))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// serve serves runs with a script until they rest.
func serve(t testing.TB, e *embedded.Engine, w *enginetest.World, s enginetest.Script, ids ...string) {
	t.Helper()
	if err := e.Serve(context.Background(), agent.ServeOptions{Runs: ids}, w.Nodes(s)); err != nil {
		t.Fatal(err)
	}
}

// CASES A7.
func TestTwoProcesses_OneServesTheOtherIsToldWho(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := open(t, dir, embedded.Config{})
	begin(t, e, "r")
	winner := spawn(t, command("hold", dir, "r"))
	winner.expect("serving")

	err := e.Serve(t.Context(), agent.ServeOptions{Runs: []string{"r"}}, (&enginetest.World{}).Nodes(nil))
	var served *embedded.ServedError
	if !errors.Is(err, agent.ErrServed) || !errors.As(err, &served) {
		t.Fatalf("the second to serve got %v, want ErrServed", err)
	}
	if served.PID != winner.cmd.Process.Pid || served.Run != "r" {
		t.Errorf("told that process %d has run %q, want %d and r", served.PID, served.Run, winner.cmd.Process.Pid)
	}
	if !strings.Contains(err.Error(), fmt.Sprint(winner.cmd.Process.Pid)) {
		t.Errorf("the message does not name the process: %v", err)
	}
	if err := e.Erase(t.Context(), "r", enginetest.Task.Ref, "anna"); !errors.Is(err, agent.ErrServed) {
		t.Errorf("to erase meanwhile: %v, want ErrServed", err)
	}

	if err := winner.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	winner.expect("rests")
	if run := replayed(t, e, "r"); run.State != agent.StateCompleted {
		t.Errorf("the run is in %s, want completed by the winner", run.State)
	}
}

func TestTwoProcesses_TheLockGoesWithItsHolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := open(t, dir, embedded.Config{})
	begin(t, e, "r")
	c := spawn(t, command("hold", dir, "r"))
	c.expect("serving")
	c.kill()
	w := &enginetest.World{}
	serve(t, e, w, nil, "r")
	run := replayed(t, e, "r")
	if run.State != agent.StateCompleted || w.Asked() != 1 {
		t.Errorf("after the first server was killed: %s, asked %d times; want completed, once", run.State, w.Asked())
	}
	if got := kinds(t, e, "r"); !slices.Equal(got, []string{"started", "attempt", "answered"}) {
		t.Errorf("the journal says %v", got)
	}
}

// kinds lists the rows of a journal, and the kinds of entries without one.
func kinds(t testing.TB, e *embedded.Engine, id string) []string {
	t.Helper()
	var out []string
	for entry, err := range e.Journal(context.Background(), id, 1, false) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Row != "" {
			out = append(out, string(entry.Row))
			continue
		}
		out = append(out, string(entry.Kind))
	}
	return out
}

func TestTwoProcesses_ADecisionReachesTheServer(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := open(t, dir, embedded.Config{})
	begin(t, e, "r")
	asked, reply := make(chan struct{}), make(chan struct{})
	w := &enginetest.World{Asking: func(context.Context) error { close(asked); <-reply; return nil }}
	served := make(chan error, 1)
	go func() {
		served <- e.Serve(context.Background(), agent.ServeOptions{Runs: []string{"r"}}, w.Nodes(enginetest.Script{{enginetest.ToolRead}}))
	}()
	<-asked
	c := spawn(t, command("pause", dir, "r", "k"))
	c.expect("paused 2") // judged here, while the effect is in flight
	spawn(t, command("pause", dir, "r", "k")).expect("paused 2")
	spawn(t, command("pause", dir, "r", "other")).expect("refused illegal")
	close(reply)
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if run := replayed(t, e, "r"); !run.Held || w.TotalSent() != 0 {
		t.Errorf("held %t, sent %d; want held before the call", run.Held, w.TotalSent())
	}
}

func TestDeliver_TheDeliveryOfAKilledProcessGetsItsVerdict(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := open(t, dir, embedded.Config{})
	begin(t, e, "r")
	cmd := command("pause", dir, "r", "k")
	cmd.Env = append(cmd.Env, crashVariable+"=2") // in_commit, then delivered
	c := spawn(t, cmd)
	if rest := c.rest(); len(rest) > 0 || c.wait() == nil {
		t.Fatalf("the child was not killed, and said %q", rest)
	}
	if run := replayed(t, e, "r"); run.Seq != 1 {
		t.Fatalf("the run has %d entries, want its first only", run.Seq)
	}
	v, err := e.Deliver(t.Context(), "r", agent.Delivery{Key: "k", Actor: "somebody else", Decision: agent.Pause{}})
	if err != nil || v.Row != agent.RowPaused || v.Seq != 2 {
		t.Fatalf("delivered again: %+v, %v", v, err)
	}
	for entry, err := range e.Journal(t.Context(), "r", 2, false) {
		if err != nil || entry.Actor != "child" {
			t.Errorf("the entry is by %q, want the first to deliver: %v", entry.Actor, err)
		}
	}
}

func TestServeAll_TakesWhatOtherProcessesBring(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	count := filepath.Join(t.TempDir(), "ledger")
	e := open(t, dir, embedded.Config{})
	server := spawn(t, command("serve", dir, count))
	server.expect("serving")
	// A new run is found, and parks.
	begin(t, e, "r")
	await(t, e, "r", agent.StateAwaitingApproval)
	// A grant, judged in this process since nobody holds a parked run, goes on there.
	grant := enginetest.Sign(replayed(t, e, "r"), "alice", time.Now())
	v, err := e.Deliver(t.Context(), "r", enginetest.Deliver(grant, ""))
	if err != nil || v.Row != agent.RowGranted {
		t.Fatalf("the grant: %+v, %v", v, err)
	}
	await(t, e, "r", agent.StateCompleted)
	if err := server.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if rest := server.rest(); len(rest) > 0 || server.wait() != nil {
		t.Errorf("the server said %q and ended with %v", rest, server.err)
	}
	if n := len(newLedger(count, nil).lines()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// await follows a run until it is in a state.
func await(t testing.TB, e *embedded.Engine, id string, want agent.State) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var state agent.State
	for entry, err := range e.Journal(ctx, id, 1, true) {
		if err != nil {
			t.Fatalf("run %s is in %s, want %s: %v", id, state, want, err)
		}
		if entry.State != "" {
			state = entry.State
		}
		if state == want {
			return
		}
	}
	t.Fatalf("run %s ended in %s, want %s", id, state, want)
}

func TestServeAll_TakesOverFromAKilledProcess(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := open(t, dir, embedded.Config{})
	begin(t, e, "r")
	c := spawn(t, command("hold", dir, "r"))
	c.expect("serving")
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- e.Serve(ctx, agent.ServeOptions{}, (&enginetest.World{}).Nodes(nil)) }()
	c.kill()
	await(t, e, "r", agent.StateCompleted)
	cancel()
	if err := <-served; err != context.Canceled { // exactly this
		t.Errorf("Serve returned %v, want context.Canceled", err)
	}
}

func TestJournal_FollowersInOtherProcessesSeeAllInOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := open(t, dir, embedded.Config{})
	begin(t, e, "r")
	var followers []*child
	for range 3 {
		followers = append(followers, spawn(t, command("follow", dir, "r")))
	}
	for _, f := range followers {
		if !strings.HasPrefix(f.line(), "1 ") {
			t.Fatal("a follower did not begin with the first entry")
		}
	}
	serve(t, e, &enginetest.World{}, enginetest.Script{{enginetest.ToolRead, enginetest.ToolRead}, {enginetest.ToolRead}}, "r")
	var want []string
	for entry, err := range e.Journal(t.Context(), "r", 2, false) {
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprint(entry.Seq, " ", entry.Hash()))
	}
	for i, f := range followers {
		if got := f.rest(); !slices.Equal(got, want) || f.wait() != nil {
			t.Errorf("follower %d saw %d entries, want %d: %v", i, len(got), len(want), f.err)
		}
	}
}

func TestProcesses_ManyReadWhileOneWrites(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := open(t, dir, embedded.Config{})
	for i := range 5 {
		begin(t, e, fmt.Sprintf("r-%d", i))
	}
	writer := spawn(t, command("write", dir, "w"))
	writer.expect("writing")
	var readers []*child
	for range 4 {
		readers = append(readers, spawn(t, command("openall", dir)))
	}
	for _, r := range readers {
		if got := r.rest(); len(got) < 5 || r.wait() != nil {
			t.Errorf("a reader saw %d runs: %v: %v", len(got), got, r.err)
		}
	}
}

// Two processes that write without a pause both get their turns.
func TestProcesses_WritersTakeTurns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	open(t, dir, embedded.Config{})
	var writers []*child
	for i := range 3 {
		writers = append(writers, spawn(t, command("write", dir, fmt.Sprintf("w%d", i))))
	}
	for _, w := range writers {
		w.expect("writing")
	}
	// As long as it takes this fourth to write fifty times among them.
	e := open(t, dir, embedded.Config{})
	begun := time.Now()
	for i := range 50 {
		begin(t, e, fmt.Sprintf("here-%d", i))
	}
	t.Logf("50 writes among three busy writers took %s", time.Since(begun))
	for i, w := range writers {
		if err := w.stdin.Close(); err != nil {
			t.Fatal(err)
		}
		var n int
		if _, err := fmt.Sscan(w.line(), &n); err != nil || w.wait() != nil {
			t.Fatalf("writer %d: %v, %v", i, err, w.err)
		}
		if n < 10 {
			t.Errorf("writer %d wrote %d times while another wrote 50: it starves", i, n)
		}
	}
}

func TestOpen_ManyProcessesCreateOneStateDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "state")
	var all []*child
	for range 8 {
		all = append(all, spawn(t, command("openall", dir)))
	}
	for _, c := range all {
		if got := c.rest(); len(got) > 0 || c.wait() != nil {
			t.Errorf("a process that opened a new state directory said %q: %v", got, c.err)
		}
	}
}

// A process that is killed between the entry and the cleaning of the files leaves what
// another finishes, without a second entry.
func TestErase_FinishesWhatAKilledProcessLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := open(t, dir, embedded.Config{})
	begin(t, e, "r")
	serve(t, e, &enginetest.World{}, nil, "r")
	cmd := command("erase", dir, "r", "child")
	cmd.Env = append(cmd.Env, crashVariable+"=2") // in_commit, then erased
	c := spawn(t, cmd)
	if rest := c.rest(); len(rest) > 0 || c.wait() == nil {
		t.Fatalf("the child was not killed, and said %q", rest)
	}
	onDisk := func() (found bool) {
		for _, name := range []string{"state.db", "state.db-wal"} {
			data, err := exec.Command("cat", filepath.Join(dir, name)).Output()
			if err != nil {
				t.Fatal(err)
			}
			found = found || bytes.Contains(data, enginetest.Task.Data)
		}
		return found
	}
	if !onDisk() {
		t.Fatal("the case needs bytes that are still in the files")
	}
	spawn(t, command("erase", dir, "r", "second")).expect("erased")
	if onDisk() {
		t.Error("the bytes are still in the files")
	}
	if got := kinds(t, e, "r"); !slices.Equal(got, []string{"started", "answered", "erased"}) {
		t.Errorf("the journal says %v", got)
	}
	var gone *embedded.ErasedError
	if _, err := e.Body(t.Context(), "r", enginetest.Task.Ref); !errors.As(err, &gone) || gone.By != "child" {
		t.Errorf("Body: %v, want that it was erased by the child", err)
	}
}

func init() { verbs["erase"] = eraseTask }

// eraseTask erases the task of a run. Arguments: state, run, actor.
func eraseTask(ctx context.Context, args []string) (err error) {
	e, err := embedded.Open(args[0], embedded.Config{Crash: crashing()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := e.Erase(ctx, args[1], enginetest.Task.Ref, args[2]); err != nil {
		return err
	}
	fmt.Println("erased")
	return nil
}
