package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func newClock() *clock { return &clock{at: time.Now().UTC().Truncate(time.Second)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func begin(t testing.TB, e *Engine, id string) {
	t.Helper()
	if _, err := e.Start(context.Background(), enginetest.Spec(id), "tester", []agent.Body{enginetest.Task}); err != nil {
		t.Fatal(err)
	}
}

func serve(t testing.TB, e *Engine, w *enginetest.World, s enginetest.Script, ids ...string) {
	t.Helper()
	if err := e.Serve(context.Background(), agent.ServeOptions{Runs: ids}, w.Nodes(s)); err != nil {
		t.Fatal(err)
	}
}

func loadRun(t testing.TB, e *Engine, id string) agent.Run {
	t.Helper()
	was, err := e.load(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return was.run
}

// words lists the rows of a journal, and the kinds of entries without one.
func words(t testing.TB, e *Engine, id string) []string {
	t.Helper()
	var out []string
	for entry, err := range e.Journal(context.Background(), id, 1, false) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Row != "" {
			out = append(out, string(entry.Row))
		} else {
			out = append(out, string(entry.Kind))
		}
	}
	return out
}

func deliver(t testing.TB, e *Engine, id string, d agent.Decision, key string) agent.Verdict {
	t.Helper()
	v, err := e.Deliver(context.Background(), id, enginetest.Deliver(d, key))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// What was never started needs no recovery: a run that is granted by one process and
// sent by another has no attempt in its journal, unless it waited in between.
func TestPickUp_WhatWasNeverStartedIsNoAttempt(t *testing.T) {
	c := newClock()
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{Now: c.now})
	w := &enginetest.World{Now: c.now}
	script := enginetest.Script{{enginetest.ToolWrite}}
	begin(t, e, "r")
	serve(t, e, w, script, "r")
	deliver(t, e, "r", enginetest.Sign(loadRun(t, e, "r"), "alice", c.now()), "")
	serve(t, e, w, script, "r")
	want := []string{"started", "proposed", "returned", "approval_required", "granted", "checked", "returned", "next_turn", "answered"}
	if got := words(t, e, "r"); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// SPEC A8: parked time is free. A grant that waits a night for somebody to serve the
// run does not use up its working time.
func TestPickUp_TimeUntilSomebodyServesIsFree(t *testing.T) {
	c := newClock()
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{Now: c.now})
	begin(t, e, "r")
	c.add(9 * time.Hour)
	serve(t, e, &enginetest.World{Now: c.now}, nil, "r")
	run := loadRun(t, e, "r")
	if run.State != agent.StateCompleted || run.Used.Wall > time.Second {
		t.Errorf("the run is %s (%s) and has worked for %s", run.State, run.Reason, run.Used.Wall)
	}
	if got := words(t, e, "r"); !slices.Equal(got, []string{"started", "attempt", "answered"}) {
		t.Errorf("the journal says %v", got)
	}
}

// An interruption between the intent and the request: the intent is carried out, since
// only these nodes have the connection that it was prepared on. Fifty runs and a SIGTERM
// found runs whose save was given up as "lost" by whoever took them up.
func TestServe_AnInterruptedIntentIsCarriedOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	ctx, cancel := context.WithCancel(context.Background())
	w := &enginetest.World{}
	script := enginetest.Script{{enginetest.ToolWrite}}
	var armed, prepared atomic.Bool
	e := opened(t, dir, Config{Crash: func(point string) {
		switch {
		case armed.Load() && point == agent.AfterPerform+":"+string(agent.Prepare):
			prepared.Store(true)
		case prepared.Load() && point == agent.AfterCommit:
			cancel()
		}
	}})
	begin(t, e, "r")
	serve(t, e, w, script, "r")
	deliver(t, e, "r", enginetest.Sign(loadRun(t, e, "r"), "alice", time.Now()), "")
	armed.Store(true)
	if err := e.Serve(ctx, agent.ServeOptions{Runs: []string{"r"}}, w.Nodes(script)); err != context.Canceled { // exactly this
		t.Fatalf("Serve returned %v", err)
	}
	run := loadRun(t, e, "r")
	if run.Open == nil || run.Open.Kind == agent.Send || w.TotalSent() != 1 {
		t.Fatalf("open %+v, sent %d; want the Send made, and nothing after it", run.Open, w.TotalSent())
	}
	armed.Store(false)
	serve(t, e, w, script, "r")
	run = loadRun(t, e, "r")
	if run.State != agent.StateCompleted || w.TotalSent() != 1 {
		t.Errorf("%s, sent %d; want completed, 1", run.State, w.TotalSent())
	}
	if slices.Contains(words(t, e, "r"), string(agent.RowOutcomeUnknown)) {
		t.Errorf("the outcome was unknown: %v", words(t, e, "r"))
	}
}

// The same, but begun: after a crash nobody knows, whatever was marked before.
func TestPickUp_AMarkIsTakenOffBeforeTheSend(t *testing.T) {
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{})
	begin(t, e, "r")
	was, err := e.load(t.Context(), "r")
	if err != nil || was.fresh != 1 {
		t.Fatalf("a started run: fresh %d, want 1: %v", was.fresh, err)
	}
	during := int64(-1)
	w := &enginetest.World{Asking: func(ctx context.Context) error {
		r, err := e.find(ctx, "r")
		during = r.fresh
		return err
	}}
	serve(t, e, w, nil, "r")
	if during != 0 {
		t.Errorf("while the effect was performed the run was marked as fresh (%d)", during)
	}
}

func TestServe_ParkedRunsHoldNoLock(t *testing.T) {
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	w := &enginetest.World{}
	go func() {
		served <- e.Serve(ctx, agent.ServeOptions{}, w.Nodes(enginetest.Script{{enginetest.ToolWrite}}))
	}()
	const runs = 20
	for i := range runs {
		begin(t, e, fmt.Sprintf("r-%d", i))
	}
	for i := range runs {
		id := fmt.Sprintf("r-%d", i)
		awaitState(t, e, id, agent.StateAwaitingApproval)
		for {
			lock, err := takeLock(e.lockPath(id), holder{os.Getpid(), false})
			if err == nil {
				lock.release()
				break
			}
			if !errors.Is(err, errHeld) {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond) // it is about to let go
		}
	}
	cancel()
	if err := <-served; err != context.Canceled { // exactly this
		t.Errorf("Serve returned %v", err)
	}
	if e.serving.any() {
		t.Error("runs are still enlisted")
	}
}

// awaitState follows a run until it is in a state.
func awaitState(t testing.TB, e *Engine, id string, want agent.State) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for entry, err := range e.Journal(ctx, id, 1, true) {
		if err != nil {
			t.Fatalf("run %s does not come to %s: %v", id, want, err)
		}
		if entry.State == want {
			return
		}
	}
	t.Fatalf("run %s ended before %s", id, want)
}

func TestServeAll_TakesDeadlinesOfParkedRuns(t *testing.T) {
	c := newClock()
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{Now: c.now})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	served := make(chan error, 1)
	w := &enginetest.World{Now: c.now}
	go func() {
		served <- e.Serve(ctx, agent.ServeOptions{}, w.Nodes(enginetest.Script{{enginetest.ToolWrite}}))
	}()
	begin(t, e, "r")
	awaitState(t, e, "r", agent.StateAwaitingApproval)
	c.add(time.Hour) // the contract's expiry, exactly
	awaitState(t, e, "r", agent.StateCompleted)
	if got := words(t, e, "r"); !slices.Contains(got, string(agent.RowExpired)) || w.TotalSent() != 0 {
		t.Errorf("sent %d; the journal says %v", w.TotalSent(), got)
	}
	cancel()
	if err := <-served; err != context.Canceled { // exactly this
		t.Errorf("Serve returned %v", err)
	}
}

func TestServe_AnExpiredCandidateIsNotPresented(t *testing.T) {
	c := newClock()
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{Now: c.now})
	w := &enginetest.World{Now: c.now}
	script := enginetest.Script{{enginetest.ToolWrite}}
	begin(t, e, "r")
	serve(t, e, w, script, "r")
	c.add(time.Hour - time.Microsecond)
	serve(t, e, w, script, "r")
	if run := loadRun(t, e, "r"); run.State != agent.StateAwaitingApproval {
		t.Fatalf("just before the deadline it is in %s", run.State)
	}
	c.add(time.Microsecond)
	var shown atomic.Int32
	err := e.Serve(t.Context(), agent.ServeOptions{Runs: []string{"r"}}, func(run agent.Run) (agent.Nodes, error) {
		nodes, err := w.Nodes(script)(run)
		return presenting{nodes, &shown}, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if run := loadRun(t, e, "r"); run.State != agent.StateCompleted || shown.Load() != 0 {
		t.Errorf("at the deadline it is in %s, shown %d times", run.State, shown.Load())
	}
}

// presenting counts how often a candidate was shown.
type presenting struct {
	agent.Nodes
	shown *atomic.Int32
}

func (p presenting) Perform(ctx context.Context, t agent.Task) (agent.Report, error) {
	if t.Effect.Kind == agent.Present {
		p.shown.Add(1)
	}
	return p.Nodes.Perform(ctx, t)
}

// faulty nodes fail until they are mended.
type faulty struct {
	agent.Nodes
	mended *atomic.Bool
	tries  *atomic.Int32
}

func (f faulty) Perform(ctx context.Context, t agent.Task) (agent.Report, error) {
	if f.mended.Load() {
		return f.Nodes.Perform(ctx, t)
	}
	f.tries.Add(1)
	return agent.Report{}, errors.New("the model's key is missing")
}

func TestServeAll_SetsAFailingRunAsideAndServesTheOthers(t *testing.T) {
	reported := make(chan string, 10)
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{Report: func(run string, err error) { reported <- run + ": " + err.Error() }})
	var mended atomic.Bool
	var tries atomic.Int32
	good := (&enginetest.World{}).Nodes(nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	served := make(chan error, 1)
	go func() {
		served <- e.Serve(ctx, agent.ServeOptions{}, func(run agent.Run) (agent.Nodes, error) {
			nodes, err := good(run)
			if run.ID == "bad" {
				nodes = faulty{nodes, &mended, &tries}
			}
			return nodes, err
		})
	}()
	begin(t, e, "bad")
	if got := <-reported; !strings.HasPrefix(got, "bad: ") || !strings.Contains(got, "key is missing") {
		t.Errorf("reported %q", got)
	}
	begin(t, e, "good")
	awaitState(t, e, "good", agent.StateCompleted)
	if n := tries.Load(); n != 1 {
		t.Errorf("the failing run was tried %d times, want once", n)
	}
	mended.Store(true)
	deliver(t, e, "bad", agent.Extend{Budget: agent.Budget{Turns: 1}}, "k") // its journal moves on
	awaitState(t, e, "bad", agent.StateCompleted)
	cancel()
	if err := <-served; err != context.Canceled { // exactly this
		t.Errorf("Serve returned %v", err)
	}
}

func TestServe_OneFailingRunDoesNotStopTheOthers(t *testing.T) {
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{})
	begin(t, e, "bad")
	begin(t, e, "good")
	good := (&enginetest.World{}).Nodes(enginetest.Script{{enginetest.ToolRead}})
	err := e.Serve(t.Context(), agent.ServeOptions{Runs: []string{"bad", "good", "good"}}, func(run agent.Run) (agent.Nodes, error) {
		if run.ID == "bad" {
			return nil, errors.New("no such server")
		}
		return good(run)
	})
	if err == nil || !strings.Contains(err.Error(), "bad") || !strings.Contains(err.Error(), "no such server") {
		t.Errorf("Serve returned %v", err)
	}
	if run := loadRun(t, e, "good"); run.State != agent.StateCompleted {
		t.Errorf("the other run is in %s", run.State)
	}
	if err := e.Serve(t.Context(), agent.ServeOptions{Runs: []string{"good", "none"}}, good); !errors.Is(err, agent.ErrNoRun) {
		t.Errorf("a run that is not there: %v, want ErrNoRun", err)
	}
}

// Many runs at once in a process.
func TestServe_SixtyFourRunsAtOnce(t *testing.T) {
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{})
	const runs = 64
	var ids []string
	for i := range runs {
		ids = append(ids, fmt.Sprintf("r-%d", i))
		begin(t, e, ids[i])
	}
	w := &enginetest.World{}
	script := enginetest.Script{{enginetest.ToolRead, enginetest.ToolRead}, {enginetest.ToolWrite}}
	var followed atomic.Int64
	var wg sync.WaitGroup
	for _, id := range ids {
		wg.Go(func() {
			next := int64(1)
			for entry, err := range e.Journal(context.Background(), id, 1, true) {
				if err != nil || entry.Seq != next {
					t.Errorf("%s: entry %d, want %d: %v", id, entry.Seq, next, err)
					return
				}
				next++
			}
			followed.Add(next - 1)
		})
	}
	serve(t, e, w, script, ids...)
	for _, id := range ids {
		deliver(t, e, id, enginetest.Sign(loadRun(t, e, id), "alice", time.Now()), "")
	}
	serve(t, e, w, script, ids...)
	wg.Wait()
	var entries int64
	for _, id := range ids {
		run := loadRun(t, e, id)
		if run.State != agent.StateCompleted {
			t.Errorf("%s is in %s", id, run.State)
		}
		entries += run.Seq
	}
	if w.TotalSent() != 3*runs || followed.Load() != entries {
		t.Errorf("sent %d, want %d; followed %d entries of %d", w.TotalSent(), 3*runs, followed.Load(), entries)
	}
}

// A pause that was asked while a write is in flight, and a crash: the outcome is
// unknown, whatever the hold, and the write is not sent again.
func TestCrash_WhilePausedWithAWriteInFlight(t *testing.T) {
	for name, decision := range map[string]agent.Decision{"paused": agent.Pause{}, "cancelling": agent.Cancel{}} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			first := opened(t, dir, Config{})
			script := enginetest.Script{{enginetest.ToolWrite, enginetest.ToolRead}}
			reached, reply := make(chan struct{}), make(chan struct{})
			w := &enginetest.World{Sending: func(string) (agent.Status, bool) { close(reached); <-reply; return agent.StatusOK, true }}
			begin(t, first, "r")
			serve(t, first, w, script, "r")
			deliver(t, first, "r", enginetest.Sign(loadRun(t, first, "r"), "alice", time.Now()), "")
			served := make(chan error, 1)
			go func() {
				served <- first.Serve(context.Background(), agent.ServeOptions{Runs: []string{"r"}}, w.Nodes(script))
			}()
			<-reached
			deliver(t, first, "r", decision, "k")

			// What another process finds in the files at this moment.
			after := opened(t, copied(t, dir), Config{})
			blind := &enginetest.World{Blind: true}
			serve(t, after, blind, script, "r")
			if name == "paused" {
				deliver(t, after, "r", agent.Resume{}, "k2")
				serve(t, after, blind, script, "r")
			}
			run := loadRun(t, after, "r")
			if run.State != agent.StateNeedsVerification || blind.TotalSent() != 0 {
				t.Errorf("after the crash: %s, sent %d again; want needs_verification, 0", run.State, blind.TotalSent())
			}
			close(reply)
			if err := <-served; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// copied copies a state directory as a power cut would leave it.
func copied(t testing.TB, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	// Read by a process of its own: to open and close the file here would drop the
	// locks that SQLite holds.
	for _, name := range []string{stateFile, stateFile + "-wal"} {
		copyFile(t, filepath.Join(dir, name), filepath.Join(to, name))
	}
	return to
}
