package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/agent/enginetest"
)

func init() { verbs["idle"] = idle }

// parkedRun is the journal of a run that waits with a candidate.
func parkedRun(tb testing.TB, id string, at time.Time) []agent.Commit {
	tb.Helper()
	var out []agent.Commit
	var run agent.Run
	move := func(ev agent.Event, bodies ...agent.Body) {
		next, entry, err := agent.Advance(run, ev)
		if err != nil {
			tb.Fatal(err)
		}
		run = next
		out = append(out, agent.Commit{Run: run, Entry: entry, Bodies: bodies})
	}
	answer := func(r agent.Result, bodies ...agent.Body) { move(agent.FromNode(run.Open.Effect, r, at), bodies...) }
	move(agent.Begin(enginetest.Spec(id), "bench", at), enginetest.Task)
	said := agent.NewBody([]byte(`{"role":"assistant","turn":0}`))
	proposal, body := enginetest.Propose(enginetest.ToolWrite, "c0_0", `{"n":1}`)
	answer(agent.Turned{Message: said.Ref, Calls: []agent.Proposal{proposal}}, said, body)
	arguments := agent.NewBody(enginetest.Arguments)
	answer(enginetest.Waiting(agent.Task{Run: run, Effect: *run.Open}, arguments.Ref), arguments)
	answer(agent.Observed{Status: agent.StatusWaitingApproval, Class: agent.ClassPermissionRefused})
	return out
}

// park fills a state directory with parked runs.
func park(tb testing.TB, dir string, runs int) {
	tb.Helper()
	e, err := embedded.Open(dir, embedded.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	at := time.Now()
	for done := 0; done < runs; {
		var batch [][]agent.Commit
		for ; len(batch) < 500 && done < runs; done++ {
			batch = append(batch, parkedRun(tb, fmt.Sprintf("run-%d", done), at.Add(time.Duration(done)*time.Microsecond)))
		}
		if err := e.Put(batch); err != nil {
			tb.Fatal(err)
		}
	}
	if err := e.Close(); err != nil {
		tb.Fatal(err)
	}
}

// idle serves a state directory in which there is nothing to do, lists its newest runs,
// and says how much memory the process has. Arguments: state.
func idle(ctx context.Context, args []string) (err error) {
	e, err := embedded.Open(args[0], embedded.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- e.Serve(ctx, agent.ServeOptions{}, (&enginetest.World{}).Nodes(nil)) }()
	for range 5 {
		if _, err := e.Scan(ctx, time.Now()); err != nil {
			cancel()
			return errors.Join(err, <-served)
		}
	}
	_, err = e.List(ctx, agent.Filter{Open: true, Limit: 50})
	fmt.Println(resident())
	cancel()
	if stopped := <-served; stopped != context.Canceled { // exactly this
		err = errors.Join(err, stopped)
	}
	return err
}

// resident is the memory of this process in bytes.
func resident() int64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil { // not Linux: what Go has taken
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.Sys)
	}
	var kilobytes int64
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			_, _ = fmt.Sscan(rest, &kilobytes)
		}
	}
	return kilobytes << 10
}

// BenchmarkParked is a state directory with 100,000 runs that wait for a person (5,000
// with -short): what each costs on the disk, what a process that serves them all has in
// memory, and how long it takes to list them and to go on with one.
func BenchmarkParked(b *testing.B) {
	runs := 100_000
	if testing.Short() {
		runs = 5_000
	}
	base, err := os.MkdirTemp(os.Getenv("SALLYPORT_BENCH_DIR"), "parked")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(base) })
	dir := filepath.Join(base, "state")
	park(b, dir, runs)
	b.Run("idle", func(b *testing.B) {
		info, err := os.Stat(filepath.Join(dir, "state.db"))
		if err != nil {
			b.Fatal(err)
		}
		var memory int64
		for b.Loop() {
			out, err := command("idle", dir).Output()
			if _, scanned := fmt.Sscan(string(out), &memory); err != nil || scanned != nil {
				b.Fatalf("the child said %q: %v", out, err)
			}
		}
		b.ReportMetric(float64(info.Size())/float64(runs), "disk-B/run")
		b.ReportMetric(float64(memory)/(1<<20), "process-MB")
		b.ReportMetric(float64(runs), "runs")
	})
	e := open(b, dir, embedded.Config{})
	for name, filter := range map[string]agent.Filter{
		"list-all": {}, "list-50": {Limit: 50}, "list-parked-50": {State: agent.StateAwaitingApproval, Limit: 50},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				list, err := e.List(b.Context(), filter)
				if err != nil || filter.Limit == 0 && len(list) != runs || filter.Limit > 0 && len(list) != filter.Limit {
					b.Fatal(len(list), err)
				}
			}
		})
	}
	b.Run("scan", func(b *testing.B) {
		for b.Loop() {
			if n, err := e.Scan(b.Context(), time.Now()); err != nil || n != 0 {
				b.Fatal(n, err)
			}
		}
	})
	next := 0
	b.Run("resume", func(b *testing.B) { // approved here, and served by its name
		w := &enginetest.World{}
		for b.Loop() {
			id := fmt.Sprintf("run-%d", next%runs)
			next++
			approve(b, e, id)
			serve(b, e, w, enginetest.Script{{enginetest.ToolWrite}}, id)
		}
	})
	b.Run("resume-served", func(b *testing.B) { // approved here, found by who serves all
		w := &enginetest.World{}
		ctx, cancel := context.WithCancel(b.Context())
		served := make(chan error, 1)
		go func() { // ends with cancel
			served <- e.Serve(ctx, agent.ServeOptions{}, w.Nodes(enginetest.Script{{enginetest.ToolWrite}}))
		}()
		for b.Loop() {
			id := fmt.Sprintf("run-%d", next%runs)
			next++
			approve(b, e, id)
			await(b, e, id, agent.StateCompleted)
		}
		cancel()
		if err := <-served; err != context.Canceled { // exactly this
			b.Fatal(err)
		}
	})
}

// approve signs what a run waits with.
func approve(tb testing.TB, e *embedded.Engine, id string) {
	tb.Helper()
	grant := enginetest.Sign(replayed(tb, e, id), "alice", time.Now())
	if v, err := e.Deliver(context.Background(), id, enginetest.Deliver(grant, "")); err != nil || v.Row != agent.RowGranted {
		tb.Fatalf("%+v, %v", v, err)
	}
}

// What the benchmark puts into the file is what an engine writes.
func TestParked_TheBenchmarksRunsAreRuns(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	park(t, dir, 3)
	e := open(t, dir, embedded.Config{})
	begin(t, e, "served")
	serve(t, e, &enginetest.World{}, enginetest.Script{{enginetest.ToolWrite}}, "served")
	if got, want := kinds(t, e, "run-2"), kinds(t, e, "served"); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("a parked run's journal says %v, want %v", got, want)
	}
	approve(t, e, "run-2")
	w := &enginetest.World{}
	serve(t, e, w, enginetest.Script{{enginetest.ToolWrite}}, "run-2")
	if run := replayed(t, e, "run-2"); run.State != agent.StateCompleted || w.TotalSent() != 1 {
		t.Errorf("%s, sent %d", run.State, w.TotalSent())
	}
}
