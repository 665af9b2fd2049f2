package embedded

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

// -keep writes the state file of a schema that has none yet: once, by the version that
// brings the schema. A file that is there is never written again.
var keep = flag.Bool("keep", false, "keep a state file of the newest schema in testdata")

// keptAt is when the runs in the kept files happened.
var keptAt = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

var keptScript = enginetest.Script{{enginetest.ToolWrite}}

// keptRuns makes one run for each thing that a later version must be able to go on with.
func keptRuns(t *testing.T, dir string) {
	t.Helper()
	c := &clock{at: keptAt}
	e, err := Open(dir, Config{Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	lost := func(string) (agent.Status, bool) { return agent.StatusResultUnknown, true }
	for id, w := range map[string]*enginetest.World{
		"completed": {Now: c.now}, "parked": {Now: c.now}, "waiting": {Now: c.now},
		"unknown": {Now: c.now, Blind: true, Sending: lost},
	} {
		begin(t, e, id)
		serve(t, e, w, keptScript, id)
		if id == "completed" || id == "unknown" {
			deliver(t, e, id, enginetest.Sign(loadRun(t, e, id), "alice", c.now()), "")
			serve(t, e, w, keptScript, id)
		}
	}
	if _, err := e.Start(t.Context(), enginetest.ForkOf(t, e, "completed", 0, "forked"), "tester", nil); err != nil {
		t.Fatal(err)
	}
	r, err := e.find(t.Context(), "waiting")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.post(t.Context(), r, agent.Delivery{Key: "k", Actor: "anna", Decision: agent.Pause{}}), e.Close()); err != nil {
		t.Fatal(err)
	}
}

// heads says of every run where it stands.
func heads(t *testing.T, e *Engine) string {
	t.Helper()
	list, err := e.List(t.Context(), agent.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, s := range list {
		run := loadRun(t, e, s.ID)
		lines = append(lines, fmt.Sprintln(run.ID, run.State, run.Seq, run.Head))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

func keptFile(schema int) string {
	return filepath.Join("testdata", fmt.Sprintf("schema-%d.db", schema))
}

// restored makes a state directory from a file.
func restored(t testing.TB, file string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, folderMode); err != nil {
		t.Fatal(err)
	}
	copyFile(t, file, filepath.Join(dir, stateFile))
	return dir
}

// Every schema that ever was has a state file in testdata, and this version goes on with
// each of them.
func TestSchema_EveryOneThatEverWasIsOpened(t *testing.T) {
	for schema := 1; schema <= len(migrations); schema++ {
		t.Run(fmt.Sprint(schema), func(t *testing.T) {
			file := keptFile(schema)
			golden := strings.TrimSuffix(file, ".db") + ".txt"
			if _, err := os.Stat(file); *keep && errors.Is(err, fs.ErrNotExist) && schema == len(migrations) {
				dir := filepath.Join(t.TempDir(), "state")
				keptRuns(t, dir)
				copyFile(t, filepath.Join(dir, stateFile), file)
				if err := os.WriteFile(golden, []byte(heads(t, opened(t, dir, Config{}))), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("%v: run this test with -keep, once", err)
			}
			goOn(t, restored(t, file), string(want))
		})
	}
}

// goOn opens a kept state and takes each of its runs on.
func goOn(t *testing.T, dir, want string) {
	t.Helper()
	c := &clock{at: keptAt.Add(time.Minute)}
	e := opened(t, dir, Config{Now: c.now})
	if got := heads(t, e); got != want {
		t.Fatalf("the runs are\n%swant\n%s", got, want)
	}
	if got, err := e.Body(t.Context(), "completed", enginetest.Task.Ref); err != nil || string(got) != string(enginetest.Task.Data) {
		t.Errorf("a body: %q, %v", got, err)
	}
	w := &enginetest.World{Now: c.now}
	deliver(t, e, "parked", enginetest.Sign(loadRun(t, e, "parked"), "alice", c.now()), "")
	deliver(t, e, "unknown", enginetest.Statement(loadRun(t, e, "unknown"), "bob", string(agent.Applied), c.now()), "")
	serve(t, e, w, keptScript, "parked", "unknown")
	for id, sent := range map[string]int{"parked": 1, "unknown": 1} {
		if run := loadRun(t, e, id); run.State != agent.StateCompleted || w.TotalSent() != sent {
			t.Errorf("%s is in %s, sent %d; want completed, %d", id, run.State, w.TotalSent(), sent)
		}
	}
	v := deliver(t, e, "waiting", agent.Pause{}, "k")
	if v.Row != agent.RowPaused {
		t.Errorf("the delivery that waited: %+v", v)
	}
	for entry, err := range e.Journal(t.Context(), "waiting", v.Seq, false) {
		if err != nil || entry.Actor != "anna" {
			t.Errorf("it is the word of %q, want of who delivered first: %v", entry.Actor, err)
		}
	}
}

// Looking for something to do, and for the newest runs, does not go over all of them.
func TestSchema_ManyRunsThatWaitAreNotLookedAt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	opened(t, dir, Config{})
	db := raw(t, dir)
	for q, args := range map[string][]any{
		candidatesQuery: {1}, dueQuery: {1}, listQuery: {false, "", "", 50},
	} {
		rows, err := db.Query("EXPLAIN QUERY PLAN "+q, args...)
		if err != nil {
			t.Fatal(err)
		}
		plan, err := all(rows, func(scan func(...any) error) (line string, err error) {
			var id, parent, unused int
			return line, scan(&id, &parent, &unused, &line)
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range plan {
			if strings.HasPrefix(line, "SCAN r") && !strings.Contains(line, "INDEX") || strings.Contains(line, "TEMP B-TREE FOR ORDER BY") {
				t.Errorf("%s\ngoes over every run: %q", q, plan)
			}
		}
		t.Logf("%q", plan)
	}
}
