package embedded

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

// attempt is one commit that somebody tries, from a run as it once was.
type attempt struct {
	run    int
	commit agent.Commit
	body   agent.Body
	err    error
}

// Whatever commits come together in whatever order: of those that go on from one entry
// one wins, the others are told so; the journal has no gap, and a commit is there with
// its body or not at all.
func TestGroupCommit_IsAllOrNothingAndGapless(t *testing.T) {
	const runs = 3
	e, logs, movers := started(t, filepath.Join(t.TempDir(), "state"), runs)
	for i := range logs {
		logs[i].served = nil
	}
	serial := 0
	rapid.Check(t, func(rt *rapid.T) {
		before := make([]agent.Run, runs)
		for i, m := range movers {
			before[i] = m.run
		}
		tries := rapid.SliceOfN(rapid.IntRange(0, runs-1), 1, 24).Draw(rt, "runs")
		ahead := rapid.SliceOfN(rapid.Bool(), len(tries), len(tries)).Draw(rt, "from an entry that is not there yet")
		var all []*attempt
		for i, run := range tries {
			m := newMover(before[run])
			c := m.next(t)
			if ahead[i] {
				c = m.next(t)
			}
			serial++
			body := agent.NewBody(fmt.Appendf(nil, "body %d", serial))
			c.Bodies = []agent.Body{body}
			all = append(all, &attempt{run: run, commit: c, body: body})
		}
		var wg sync.WaitGroup
		for _, a := range all {
			wg.Go(func() {
				l := *logs[a.run]
				a.err = l.Commit(t.Context(), a.commit)
			})
		}
		wg.Wait()
		for i := range runs {
			movers[i].run = checkCommits(rt, e, logs[i], before[i], slices.DeleteFunc(slices.Clone(all), func(a *attempt) bool { return a.run != i }))
		}
	})
}

// checkCommits compares the journal of a run with what its commits were told.
func checkCommits(t *rapid.T, e *Engine, l *log, before agent.Run, all []*attempt) agent.Run {
	was, err := e.load(t.Context(), l.row.id)
	if err != nil {
		t.Fatalf("the journal does not hold together: %v", err)
	}
	var won []*attempt
	for _, a := range all {
		_, found := e.body(t.Context(), l.row, a.body.Ref)
		switch {
		case a.err == nil && found == nil:
			won = append(won, a)
		case errors.Is(a.err, agent.ErrConflict) && errors.Is(found, agent.ErrNoBody):
		default:
			t.Fatalf("entry %d of %s: told %v, its body: %v", a.commit.Entry.Seq, l.row.id, a.err, found)
		}
	}
	if int64(len(won)) != was.run.Seq-before.Seq {
		t.Fatalf("run %s has %d new entries, %d commits were told they are there", l.row.id, was.run.Seq-before.Seq, len(won))
	}
	first := slices.ContainsFunc(all, func(a *attempt) bool { return a.commit.Entry.Seq == before.Seq+1 })
	if first && len(won) == 0 {
		t.Fatalf("run %s: nobody won", l.row.id)
	}
	return was.run
}

// A commit whose fault is its own does not take the others with it.
func TestGroupCommit_AFaultyWriteFailsAlone(t *testing.T) {
	e, logs, movers := started(t, filepath.Join(t.TempDir(), "state"), 2)
	fault := errors.New("its own fault")
	good := &write{run: "run-0", result: make(chan error, 1)}
	c := movers[0].next(t)
	good.do = func(tx *transaction) error { return tx.append(logs[0].row, c) }
	bad := &write{run: "run-1", result: make(chan error, 1)}
	half := movers[1].next(t)
	bad.do = func(tx *transaction) error { return errors.Join(tx.append(logs[1].row, half), fault) }
	e.writer.baton <- struct{}{}
	e.writer.commit([]*write{good, bad})
	<-e.writer.baton
	if err := <-good.result; err != nil {
		t.Errorf("the good write: %v", err)
	}
	if err := <-bad.result; !errors.Is(err, fault) {
		t.Errorf("the faulty write: %v", err)
	}
	for id, want := range map[string]int64{"run-0": 2, "run-1": 1} {
		if was, err := e.load(t.Context(), id); err != nil || was.run.Seq != want {
			t.Errorf("%s has %d entries, want %d: %v", id, was.run.Seq, want, err)
		}
	}
}

// Another process that writes to the same run is seen by the expected sequence.
func TestCommit_AConflictIsAnErrorNeverAMerge(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	_, logs, movers := started(t, dir, 1)
	other := opened(t, dir, Config{})
	theirs := &log{engine: other, row: logs[0].row}
	same := newMover(movers[0].run)
	if err := theirs.Commit(t.Context(), same.next(t)); err != nil {
		t.Fatal(err)
	}
	if err := logs[0].Commit(t.Context(), movers[0].next(t)); !errors.Is(err, agent.ErrConflict) {
		t.Errorf("got %v, want ErrConflict", err)
	}
	// The right sequence on another history is one too.
	fork := newMover(same.run)
	fork.run.Head = agent.NewBody([]byte("elsewhere")).Ref.SHA256
	if err := logs[0].Commit(t.Context(), fork.next(t)); !errors.Is(err, agent.ErrConflict) {
		t.Errorf("with another head: %v, want ErrConflict", err)
	}
}

func TestCommit_RefusesABodyThatIsNotWhatItIsCalled(t *testing.T) {
	e, logs, movers := started(t, filepath.Join(t.TempDir(), "state"), 1)
	c := movers[0].next(t)
	c.Bodies = []agent.Body{{Ref: enginetest.Task.Ref, Data: []byte("something else")}}
	if err := logs[0].Commit(t.Context(), c); err == nil {
		t.Error("it was accepted")
	}
	if _, err := e.Start(t.Context(), enginetest.Spec("new"), "", c.Bodies); err == nil {
		t.Error("it was accepted by Start")
	}
}

func TestTurnstile_WhoWaitsIsNext(t *testing.T) {
	folder := t.TempDir()
	one, err := openTurnstile(folder)
	if err != nil {
		t.Fatal(err)
	}
	two, err := openTurnstile(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := one.enter(); err != nil {
		t.Fatal(err)
	}
	entered := make(chan error)
	go func() { entered <- two.enter() }()
	for gateIsFree(t, folder) { // until the other waits inside it
		time.Sleep(turnPoll)
	}
	if err := one.leave(); err != nil {
		t.Fatal(err)
	}
	again := make(chan error)
	go func() { again <- one.enter() }()
	if err := <-entered; err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-again:
		t.Fatalf("who had written entered beside who waited: %v", err)
	default:
	}
	if err := two.leave(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-again, one.leave(), one.close(), two.close()); err != nil {
		t.Fatal(err)
	}
}

func gateIsFree(t *testing.T, folder string) bool {
	t.Helper()
	probe, err := openTurnstile(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = probe.close() }()
	return lockFile(probe.gate) == nil
}
