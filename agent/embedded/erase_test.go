package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/enginetest"
	"sallyport/tools/grant"
)

// told begins a run with a task of its own and serves it to its end.
func told(t testing.TB, e *Engine, id string, task agent.Body) {
	t.Helper()
	spec := enginetest.Spec(id)
	spec.Task = task.Ref
	if _, err := e.Start(t.Context(), spec, "tester", []agent.Body{task}); err != nil {
		t.Fatal(err)
	}
	serve(t, e, &enginetest.World{}, nil, id)
}

// secret is content that is nowhere else, of so many bytes.
func secret(seed uint64, n int) agent.Body {
	r := rand.New(rand.NewPCG(seed, 7))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte('!' + r.IntN(90))
	}
	return agent.NewBody(data)
}

// onDisk reads the state file and its write-ahead log, in that order.
func onDisk(t testing.TB, dir string) []byte {
	t.Helper()
	var out []byte
	for _, name := range []string{stateFile, stateFile + "-wal"} {
		to := filepath.Join(t.TempDir(), name)
		copyFile(t, filepath.Join(dir, name), to)
		data, err := os.ReadFile(to)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, data...)
	}
	return out
}

// traces counts the pieces of some content, of 16 bytes each, that are in the data.
func traces(data, content []byte) (n int) {
	for piece := range slices.Chunk(content, 16) {
		if len(piece) == 16 && bytes.Contains(data, piece) {
			n++
		}
	}
	return n
}

func TestErase_TheBytesLeaveTheFiles(t *testing.T) {
	for _, size := range []int{16, 300, 4_000, 100_000} { // in a page, filling it, over many
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			e := opened(t, dir, Config{})
			task := secret(uint64(size), size)
			told(t, e, "r", task)
			told(t, e, "other", secret(1, 300))
			head := loadRun(t, e, "r").Head
			if traces(onDisk(t, dir), task.Data) == 0 {
				t.Fatal("the content is not in the files to begin with")
			}
			if err := e.Erase(t.Context(), "r", task.Ref, "anna"); err != nil {
				t.Fatal(err)
			}
			if n := traces(onDisk(t, dir), task.Data); n > 0 {
				t.Errorf("%d pieces are still in the files", n)
			}
			_, err := e.Body(t.Context(), "r", task.Ref)
			var gone *ErasedError
			if !errors.Is(err, agent.ErrNoBody) || !errors.As(err, &gone) || gone.By != "anna" || time.Since(gone.At) > time.Minute {
				t.Errorf("Body: %v, want ErrNoBody, erased by anna just now", err)
			}
			if err == nil || !strings.Contains(err.Error(), "erased at 20") || !strings.Contains(err.Error(), `"anna"`) {
				t.Errorf("the text does not say when and by whom: %v", err)
			}
			run := loadRun(t, e, "r") // the chain holds
			if got := words(t, e, "r"); got[len(got)-1] != "erased" || run.State != agent.StateCompleted || run.Head == head {
				t.Errorf("the run is %s, its journal says %v", run.State, got)
			}
			if query(t, raw(t, dir), "PRAGMA integrity_check") != "ok" {
				t.Error("the file is damaged")
			}
		})
	}
}

func TestErase_TwiceIsOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := opened(t, dir, Config{Actor: "the operator"})
	for _, task := range []agent.Body{secret(1, 500), agent.NewBody(nil)} {
		id := fmt.Sprintf("r-%d", len(task.Data))
		told(t, e, id, task)
		for _, actor := range []string{"", "berta"} {
			if err := e.Erase(t.Context(), id, task.Ref, actor); err != nil {
				t.Fatal(err)
			}
		}
		if got := words(t, e, id); !slices.Equal(got, []string{"started", "answered", "erased"}) {
			t.Errorf("the journal says %v", got)
		}
		var gone *ErasedError
		if _, err := e.Body(t.Context(), id, task.Ref); !errors.As(err, &gone) || gone.By != "the operator" {
			t.Errorf("Body: %v, want that the first to erase is named", err)
		}
	}
}

func TestErase_OneOfTwoRunsWithTheSameContent(t *testing.T) {
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{})
	task := secret(1, 5_000)
	told(t, e, "one", task)
	told(t, e, "two", task)
	if err := e.Erase(t.Context(), "one", task.Ref, "anna"); err != nil {
		t.Fatal(err)
	}
	if got, err := e.Body(t.Context(), "two", task.Ref); err != nil || !bytes.Equal(got, task.Data) {
		t.Errorf("the other run's: %d bytes, %v", len(got), err)
	}
}

func TestErase_Refuses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := opened(t, dir, Config{})
	task := secret(1, 500)
	told(t, e, "ended", task)
	begin(t, e, "parked")
	serve(t, e, &enginetest.World{}, enginetest.Script{{enginetest.ToolWrite}}, "parked")
	parked := loadRun(t, e, "parked")
	longer := task.Ref
	longer.Bytes++
	for name, c := range map[string]struct {
		run  string
		ref  agent.BodyRef
		want error
		says string
	}{
		"a run that is not there":       {"none", task.Ref, agent.ErrNoRun, "none"},
		"a body that no entry names":    {"ended", secret(2, 9).Ref, agent.ErrNoBody, "no entry names it"},
		"a body of another run":         {"ended", enginetest.Task.Ref, agent.ErrNoBody, "no entry names it"},
		"the right hash, another size":  {"ended", longer, agent.ErrNoBody, "no entry names it"},
		"nothing":                       {"ended", agent.BodyRef{}, agent.ErrNoBody, "no entry names it"},
		"a pending candidate's bytes":   {"parked", parked.Call.Arguments, ErrOpen, "awaiting_approval"},
		"a proposal in hand":            {"parked", parked.Call.Proposal.Body, ErrOpen, "awaiting_approval"},
		"what an open run was told":     {"parked", enginetest.Task.Ref, ErrOpen, "awaiting_approval"},
		"a body that an open run lacks": {"parked", secret(2, 9).Ref, ErrOpen, "awaiting_approval"},
	} {
		err := e.Erase(t.Context(), c.run, c.ref, "anna")
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if got := words(t, e, "ended"); slices.Contains(got, "erased") {
		t.Errorf("the journal says %v", got)
	}
	if _, err := os.Stat(e.lockPath("none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a lock was left for a run that is not there: %v", err)
	}
	execute(t, raw(t, dir), "DELETE FROM bodies WHERE run = (SELECT num FROM runs WHERE id = 'ended')")
	if err := e.Erase(t.Context(), "ended", task.Ref, "anna"); !errors.Is(err, agent.ErrNoBody) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("content that is missing: %v, want that no erasure hides it", err)
	}
}

// What a person's edit brought lay in the inbox before it became a body.
func TestErase_TheArgumentsOfAnEdit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := opened(t, dir, Config{})
	begin(t, e, "r")
	serve(t, e, &enginetest.World{}, enginetest.Script{{enginetest.ToolWrite}}, "r")
	run := loadRun(t, e, "r")
	arguments := secret(3, 900)
	wire, err := grant.SignEdit(enginetest.Key("alice"), grant.Edit{
		Candidate: run.Call.Candidate.ID, Run: run.ID, Arguments: arguments.Ref.SHA256, Bytes: arguments.Ref.Bytes,
		Approver: "alice", Head: run.Call.Candidate.Head, Time: time.Now().Unix(),
	})
	if err != nil {
		t.Fatal(err)
	}
	d := enginetest.Deliver(agent.Edit{Signed: wire, Arguments: arguments.Ref}, "")
	d.Bodies = []agent.Body{arguments}
	if v, err := e.Deliver(t.Context(), "r", d); err != nil || v.Row != agent.RowEdited {
		t.Fatalf("%+v, %v", v, err)
	}
	deliver(t, e, "r", agent.Cancel{}, "c")
	if err := e.Erase(t.Context(), "r", arguments.Ref, "anna"); err != nil {
		t.Fatal(err)
	}
	if n := traces(onDisk(t, dir), arguments.Data); n > 0 {
		t.Errorf("%d pieces are still in the files", n)
	}
}

// Copies that a version without secure_delete left in the pages go too.
func TestErase_AlsoWhatOthersLeftBehind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := opened(t, dir, Config{})
	task := secret(4, 700)
	told(t, e, "r", task)
	db := raw(t, dir)
	execute(t, db, "PRAGMA secure_delete = 0")
	for i, data := range [][]byte{secret(5, 3_500).Data, secret(6, 3_000).Data, task.Data} { // on a page further on
		execute(t, db, "INSERT INTO bodies (run, sha256, data) VALUES (999, ?, ?)", []byte{byte(i)}, data)
	}
	execute(t, db, "DELETE FROM bodies WHERE run = 999 AND sha256 = x'02'")
	execute(t, db, "PRAGMA wal_checkpoint")
	if n := bytes.Count(onDisk(t, dir), task.Data[100:600]); n < 2 {
		t.Fatalf("the case needs a copy that was left behind, found %d", n)
	}
	if err := e.Erase(t.Context(), "r", task.Ref, "anna"); err != nil {
		t.Fatal(err)
	}
	if n := traces(onDisk(t, dir), task.Data); n > 0 {
		t.Errorf("%d pieces are still in the files", n)
	}
}

// While somebody reads an older state of the file, its bytes cannot go: Erase says so,
// and is finished later.
func TestErase_SaysThatSomebodyReads(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	e := opened(t, dir, Config{})
	task := secret(1, 500)
	told(t, e, "r", task)
	db := raw(t, dir)
	execute(t, db, "BEGIN")
	query(t, db, "SELECT count(*) FROM runs")
	err := e.Erase(t.Context(), "r", task.Ref, "anna")
	if !errors.Is(err, errReader) || !strings.Contains(err.Error(), "erase it again") {
		t.Fatalf("got %v, want that somebody reads", err)
	}
	if _, err := e.Body(t.Context(), "r", task.Ref); !errors.Is(err, agent.ErrNoBody) {
		t.Errorf("Body: %v, want ErrNoBody already", err)
	}
	begin(t, e, "other") // the engine goes on
	execute(t, db, "ROLLBACK")
	if err := e.Erase(t.Context(), "r", task.Ref, "anna"); err != nil {
		t.Fatal(err)
	}
	if n := traces(onDisk(t, dir), task.Data); n > 0 {
		t.Errorf("%d pieces are still in the files", n)
	}
	if got := words(t, e, "r"); !slices.Equal(got, []string{"started", "answered", "erased"}) {
		t.Errorf("the journal says %v", got)
	}
}
