package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

// ids lists the runs that there are, sorted.
func ids(t testing.TB, e *Engine) (out []string) {
	t.Helper()
	list, err := e.List(context.Background(), agent.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range list {
		out = append(out, s.ID)
	}
	slices.Sort(out)
	return out
}

// lost takes a run to where nobody knows the outcome of its write, and abandons it.
func lost(t testing.TB, e *Engine, c *clock, id string) {
	t.Helper()
	w := &enginetest.World{Now: c.now, Blind: true, Sending: func(string) (agent.Status, bool) { return agent.StatusResultUnknown, true }}
	begin(t, e, id)
	serve(t, e, w, keptScript, id)
	deliver(t, e, id, enginetest.Sign(loadRun(t, e, id), "alice", c.now()), "")
	serve(t, e, w, keptScript, id)
	deliver(t, e, id, agent.Cancel{Abandon: true}, "abandon")
}

func collect(t testing.TB, e *Engine, before time.Time, opts CollectOptions) Collected {
	t.Helper()
	c, err := e.Collect(t.Context(), before, opts)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCollect_RemovesWhatEndedBefore(t *testing.T) {
	c := newClock()
	dir := filepath.Join(t.TempDir(), "state")
	e := opened(t, dir, Config{Now: c.now})
	w := &enginetest.World{Now: c.now}
	told(t, e, "old", secret(1, 200_000))
	begin(t, e, "open")
	begin(t, e, "parked")
	serve(t, e, w, keptScript, "parked")
	lost(t, e, c, "unknown")
	begin(t, e, "long") // began before, ends after
	deliver(t, e, "old", agent.Cancel{}, "late")
	c.add(time.Hour)
	cut := c.now()
	serve(t, e, w, nil, "long")
	begin(t, e, "new")
	serve(t, e, w, nil, "new")

	db := raw(t, dir)
	count := func() string {
		return query(t, db, `SELECT (SELECT count(*) FROM runs) || ' ' || (SELECT count(*) FROM entries) || ' ' ||
			(SELECT count(*) FROM bodies) || ' ' || (SELECT count(*) FROM inbox)`)
	}
	was, before := count(), loadRun(t, e, "open").Head
	dry := collect(t, e, cut, CollectOptions{Dry: true})
	if now := count(); dry.Runs != 1 || dry.Entries != 2 || dry.Bodies != 2 || dry.Deliveries != 1 || dry.Bytes != 0 || now != was {
		t.Errorf("a dry one counts %+v; rows before %s, after %s", dry, was, now)
	}
	got := collect(t, e, cut, CollectOptions{})
	if got.Runs != 1 || got.Entries != 2 || got.Bodies != 2 || got.Deliveries != 1 || got.Bytes < 200_000 {
		t.Errorf("collected %+v; want 1 run with 2 entries, 2 bodies, 1 delivery", got)
	}
	if len(got.Kept) != 1 || got.Kept[0].Run != "unknown" || !errors.Is(got.Kept[0].Why, ErrUnknown) {
		t.Errorf("kept %+v, want the unknown one", got.Kept)
	}
	if left := ids(t, e); !slices.Equal(left, []string{"long", "new", "open", "parked", "unknown"}) {
		t.Errorf("left: %v", left)
	}
	for _, q := range []string{"entries WHERE run", "bodies WHERE run", "inbox WHERE run"} {
		if n := query(t, db, "SELECT count(*) FROM "+q+" NOT IN (SELECT num FROM runs)"); n != "0" {
			t.Errorf("%s %s of no run are left", n, q)
		}
	}
	if _, err := e.Body(t.Context(), "old", enginetest.Task.Ref); !errors.Is(err, agent.ErrNoRun) {
		t.Errorf("a body of the collected run: %v, want ErrNoRun", err)
	}
	if loadRun(t, e, "open").Head != before {
		t.Error("the open run has moved")
	}
	if query(t, db, "PRAGMA integrity_check") != "ok" || query(t, db, "PRAGMA freelist_count") != "0" {
		t.Error("the file is damaged, or keeps free pages")
	}
	serve(t, e, w, nil, "open") // and the others go on
	// Only where it is asked for, an unknown outcome is forgotten.
	if got := collect(t, e, cut, CollectOptions{Unknown: true}); got.Runs != 1 || len(got.Kept) != 0 {
		t.Errorf("with unknown ones: %+v", got)
	}
	entries, err := os.ReadDir(filepath.Join(dir, lockFolder))
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range entries {
		if n := it.Name(); n == "old" || n == "unknown" {
			t.Errorf("the lock of %s is left", n)
		}
	}
	told(t, e, "old", secret(2, 10)) // the id is free again
}

// The time is when the run ended: exactly then is not before.
func TestCollect_TheTimeIsWhenTheRunEnded(t *testing.T) {
	c := newClock()
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{Now: c.now})
	begin(t, e, "r")
	c.add(time.Minute)
	serve(t, e, &enginetest.World{Now: c.now}, nil, "r")
	ended := c.now()
	c.add(time.Hour)
	if err := e.Erase(t.Context(), "r", enginetest.Task.Ref, "anna"); err != nil { // later than its end
		t.Fatal(err)
	}
	if got := collect(t, e, ended, CollectOptions{}); got.Runs != 0 {
		t.Errorf("at the time it ended: %+v", got)
	}
	if got := collect(t, e, ended.Add(time.Microsecond), CollectOptions{}); got.Runs != 1 {
		t.Errorf("just after: %+v", got)
	}
}

func TestCollect_KeepsWhatIsServedOrDamaged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := opened(t, dir, Config{})
	for i, id := range []string{"served", "damaged", "pretender", "good"} {
		told(t, e, id, secret(uint64(i), 100))
	}
	begin(t, e, "running")
	lock, err := takeLock(e.lockPath("served"), holder{os.Getpid(), true})
	if err != nil {
		t.Fatal(err)
	}
	defer lock.release()
	db := raw(t, dir)
	execute(t, db, "UPDATE entries SET bytes = x'00' WHERE seq = 2 AND run = (SELECT num FROM runs WHERE id = 'damaged')")
	execute(t, db, "UPDATE runs SET ended = 1 WHERE id = 'running'") // its journal says otherwise
	got := collect(t, e, time.Now().Add(time.Hour), CollectOptions{Unknown: true})
	why := map[string]error{}
	for _, k := range got.Kept {
		why[k.Run] = k.Why
	}
	if got.Runs != 2 || len(why) != 3 || !errors.Is(why["served"], agent.ErrServed) ||
		!errors.Is(why["damaged"], agent.ErrIntegrity) || !errors.Is(why["running"], agent.ErrIntegrity) {
		t.Errorf("%d went; kept: %v", got.Runs, why)
	}
	if left := query(t, db, "SELECT group_concat(id) FROM (SELECT id FROM runs ORDER BY id)"); left != "damaged,running,served" {
		t.Errorf("left: %v", left)
	}
}

// A run is there as a whole or not at all, wherever the process ends.
func TestCollect_ManyRunsInBatches(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	const runs = 2*collectRuns + 3
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	commits := 0
	armed := false
	e := opened(t, dir, Config{Crash: func(point string) {
		if armed && point == InCommit {
			if commits++; commits == 2 {
				cancel()
			}
		}
	}})
	for i := range runs {
		told(t, e, fmt.Sprintf("r-%d", i), secret(uint64(i), 50))
	}
	armed = true
	got, err := e.Collect(ctx, time.Now().Add(time.Hour), CollectOptions{})
	armed = false
	if !errors.Is(err, context.Canceled) || got.Runs != 2*collectRuns {
		t.Errorf("interrupted in the second batch: %+v, %v", got, err)
	}
	left := ids(t, e)
	if len(left) != runs-2*collectRuns {
		t.Errorf("%d runs are left", len(left))
	}
	for _, id := range left {
		loadRun(t, e, id)
	}
	if got := collect(t, e, time.Now().Add(time.Hour), CollectOptions{}); got.Runs != runs-2*collectRuns {
		t.Errorf("again: %+v", got)
	}
	if got := query(t, raw(t, dir), "SELECT count(*) FROM entries"); got != "0" {
		t.Errorf("%s entries are left", got)
	}
}

// Whoever found a run before it was collected is told so, even where another run has
// taken its number.
func TestCollect_NobodyMistakesAnotherRunForIt(t *testing.T) {
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{})
	told(t, e, "old", secret(1, 50))
	r, err := e.find(t.Context(), "old")
	if err != nil {
		t.Fatal(err)
	}
	collect(t, e, time.Now().Add(time.Hour), CollectOptions{})
	begin(t, e, "new")
	if now, err := e.find(t.Context(), "new"); err != nil || now.num != r.num {
		t.Fatalf("the case needs the same number: %d, %d, %v", now.num, r.num, err)
	}
	if err := e.post(t.Context(), r, agent.Delivery{Key: "k", Decision: agent.Cancel{}}); !errors.Is(err, agent.ErrNoRun) {
		t.Errorf("a decision for the old one: %v, want ErrNoRun", err)
	}
	_, err = agent.Replay(e.entries(t.Context(), r, 1, r.seq))
	if !errors.Is(err, agent.ErrNoRun) || errors.Is(err, agent.ErrIntegrity) {
		t.Errorf("the old one's journal: %v, want ErrNoRun", err)
	}
	if _, _, err := e.given(t.Context(), r, "k"); !errors.Is(err, agent.ErrNoRun) || !strings.Contains(err.Error(), "collected") {
		t.Errorf("its verdict: %v, want ErrNoRun", err)
	}
	if run := loadRun(t, e, "new"); run.Seq != 1 {
		t.Errorf("the new run has %d entries", run.Seq)
	}
}

// After runs were collected, neighbours of what went have been moved; what is erased
// then is gone all the same.
func TestErase_AfterRunsWereCollected(t *testing.T) {
	c := newClock()
	dir := filepath.Join(t.TempDir(), "state")
	e := opened(t, dir, Config{Now: c.now})
	const runs = 60
	var tasks []agent.Body
	for i := range runs {
		tasks = append(tasks, secret(uint64(100+i), 40+37*i%1900))
		if i%3 > 0 {
			told(t, e, fmt.Sprintf("r-%d", i), tasks[i])
		} else {
			told(t, e, fmt.Sprintf("r-%d", i), tasks[i])
			execute(t, raw(t, dir), fmt.Sprintf("UPDATE runs SET ended = 0 WHERE id = 'r-%d'", i)) // not yet
		}
	}
	c.add(time.Second)
	if got := collect(t, e, c.now(), CollectOptions{}); got.Runs != runs*2/3 {
		t.Fatalf("%+v", got)
	}
	execute(t, raw(t, dir), "UPDATE runs SET ended = 1")
	for i := 0; i < runs; i += 3 {
		if err := e.Erase(t.Context(), fmt.Sprintf("r-%d", i), tasks[i].Ref, "anna"); err != nil {
			t.Fatal(err)
		}
		if n := traces(onDisk(t, dir), tasks[i].Data); n > 0 {
			t.Errorf("run %d: %d pieces are still in the files", i, n)
		}
	}
}
