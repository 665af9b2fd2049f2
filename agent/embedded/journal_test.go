package embedded

import (
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

// A journal that was changed behind the engine's back is refused by name, whatever was
// changed, and nothing is performed for its run.
func TestIntegrity_AChangedJournalIsRefused(t *testing.T) {
	other := agent.NewBody([]byte("another hash"))
	hash, err := hex.DecodeString(other.Ref.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	for name, damage := range map[string]struct {
		sql     string
		args    []any
		replays bool // the entries alone still hold together
		found   bool // by List and Body too
	}{
		"a byte of an entry":       {sql: "UPDATE entries SET bytes = CAST(replace(CAST(bytes AS TEXT), 'tester', 'tesler') AS BLOB) WHERE seq = 1"},
		"bytes that are no JSON":   {sql: "UPDATE entries SET bytes = x'00ff' WHERE seq = 2"},
		"the hash of an entry":     {sql: "UPDATE entries SET hash = ? WHERE seq = 2", args: []any{hash}},
		"an entry in the middle":   {sql: "DELETE FROM entries WHERE seq = 2"},
		"the first entry":          {sql: "DELETE FROM entries WHERE seq = 1"},
		"the last entry":           {sql: "DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries)"},
		"two entries, exchanged":   {sql: "UPDATE entries SET seq = 1000 WHERE seq = 2; UPDATE entries SET seq = 2 WHERE seq = 3; UPDATE entries SET seq = 3 WHERE seq = 1000"},
		"the tail and its counter": {sql: "DELETE FROM entries WHERE seq = (SELECT max(seq) FROM entries); UPDATE runs SET seq = seq - 1"},
		"the head of the run":      {sql: "UPDATE runs SET head = ?", args: []any{hash}},
		"a shortened run":          {sql: "UPDATE runs SET seq = 2", found: true},
		"a nonsensical row":        {sql: "UPDATE runs SET state = 'nonsense', seq = -5", found: true},
		"an entry after the last":  {sql: "INSERT INTO entries SELECT run, seq + 1, bytes, hash FROM entries e WHERE seq = (SELECT max(o.seq) FROM entries o WHERE o.run = e.run)", found: true},
		"a run said to be over":    {sql: "UPDATE runs SET state = 'completed', ended = 1", found: true},
		"a run said to be ended":   {sql: "UPDATE runs SET ended = 1 - ended", found: true},
		"a deadline taken away":    {sql: "UPDATE runs SET deadline = 1", replays: true},
		"an entry of another run":  {sql: "UPDATE entries SET bytes = (SELECT o.bytes FROM entries o WHERE o.run = 2 AND o.seq = 2), hash = (SELECT o.hash FROM entries o WHERE o.run = 2 AND o.seq = 2) WHERE run = 1 AND seq = 2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "state")
			e := opened(t, dir, Config{})
			w := &enginetest.World{}
			for _, id := range []string{"r", "s"} {
				if _, err := e.Start(t.Context(), enginetest.Spec(id), "tester", []agent.Body{enginetest.Task}); err != nil {
					t.Fatal(err)
				}
				if err := e.Serve(t.Context(), agent.ServeOptions{Runs: []string{id}}, w.Nodes(enginetest.Script{{enginetest.ToolRead, enginetest.ToolWrite}})); err != nil {
					t.Fatal(err)
				}
			}
			asked := w.Asked()
			execute(t, raw(t, dir), damage.sql, damage.args...)
			served := e.Serve(t.Context(), agent.ServeOptions{Runs: []string{"r"}}, w.Nodes(nil))
			_, delivered := e.Deliver(t.Context(), "r", agent.Delivery{Key: "k", Decision: agent.Cancel{}})
			_, replayed := agent.Replay(e.Journal(t.Context(), "r", 1, false))
			for what, err := range map[string]error{"Serve": served, "Deliver": delivered, "Replay": replayed} {
				if what == "Replay" && damage.replays {
					continue
				}
				if !errors.Is(err, agent.ErrIntegrity) {
					t.Errorf("%s: got %v, want ErrIntegrity", what, err)
				}
			}
			if damage.found {
				list, listed := e.List(t.Context(), agent.Filter{})
				_, read := e.Body(t.Context(), "r", enginetest.Task.Ref)
				if !errors.Is(listed, agent.ErrIntegrity) || !strings.Contains(listed.Error(), "run r:") || len(list) != 0 {
					t.Errorf("List: got %v, %v", list, listed)
				}
				if !errors.Is(read, agent.ErrIntegrity) {
					t.Errorf("Body: got %v", read)
				}
			}
			if !strings.Contains(served.Error(), e.writer.path) {
				t.Errorf("the error does not name the file: %v", served)
			}
			if w.Asked() != asked {
				t.Error("an effect was performed")
			}
		})
	}
}

func TestBody_ThatWasChangedIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := opened(t, dir, Config{})
	if _, err := e.Start(t.Context(), enginetest.Spec("r"), "tester", []agent.Body{enginetest.Task}); err != nil {
		t.Fatal(err)
	}
	if got, err := e.Body(t.Context(), "r", enginetest.Task.Ref); err != nil || string(got) != string(enginetest.Task.Data) {
		t.Fatalf("got %q, %v", got, err)
	}
	db := raw(t, dir)
	execute(t, db, "UPDATE bodies SET data = x'00'")
	if _, err := e.Body(t.Context(), "r", enginetest.Task.Ref); !errors.Is(err, agent.ErrIntegrity) {
		t.Errorf("changed: %v, want ErrIntegrity", err)
	}
	execute(t, db, "DELETE FROM bodies")
	if _, err := e.Body(t.Context(), "r", enginetest.Task.Ref); !errors.Is(err, agent.ErrNoBody) || !errors.Is(err, agent.ErrIntegrity) {
		t.Errorf("removed without an erasure: %v, want ErrNoBody and ErrIntegrity", err)
	}
	if _, err := e.Body(t.Context(), "r", agent.BodyRef{SHA256: "no hex"}); !errors.Is(err, agent.ErrNoBody) {
		t.Errorf("a malformed reference: %v, want ErrNoBody", err)
	}
}

func TestBody_EmptyContentIsContent(t *testing.T) {
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{})
	empty := agent.NewBody(nil)
	if _, err := e.Start(t.Context(), enginetest.Spec("r"), "tester", []agent.Body{empty}); err != nil {
		t.Fatal(err)
	}
	if got, err := e.Body(t.Context(), "r", empty.Ref); err != nil || len(got) != 0 {
		t.Errorf("got %q, %v", got, err)
	}
}

// Reading goes in parts; their edges are crossed without loss.
func TestJournal_LongerThanOnePart(t *testing.T) {
	e, logs, movers := started(t, filepath.Join(t.TempDir(), "state"), 1)
	for range 2*readBatch + 1 {
		if err := logs[0].Commit(t.Context(), movers[0].next(t)); err != nil {
			t.Fatal(err)
		}
	}
	for _, from := range []int64{-1, 0, 1, 2, readBatch, readBatch + 1, 2*readBatch + 2, 2*readBatch + 3} {
		next := max(from, 1)
		for entry, err := range e.Journal(t.Context(), "run-0", from, false) {
			if err != nil || entry.Seq != next {
				t.Fatalf("from %d: entry %d, want %d: %v", from, entry.Seq, next, err)
			}
			next++
		}
		if want := max(2*int64(readBatch)+3, max(from, 1)); next != want {
			t.Errorf("from %d: it ended before %d, want %d", from, next, want)
		}
	}
	for _, err := range e.Journal(t.Context(), "run-0", 1, true) {
		if err != nil {
			t.Error(err)
		}
		break // who has seen enough is let go
	}
}

// A table that is gone is damage: whoever asks for it, and whoever opens the file, is
// told so.
func TestIntegrity_AMissingTable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := opened(t, dir, Config{})
	if _, err := e.Start(t.Context(), enginetest.Spec("r"), "tester", []agent.Body{enginetest.Task}); err != nil {
		t.Fatal(err)
	}
	execute(t, raw(t, dir), "DROP TABLE inbox")
	_, delivered := e.Deliver(t.Context(), "r", agent.Delivery{Key: "k", Decision: agent.Cancel{}})
	_, opened := Open(dir, Config{})
	for what, err := range map[string]error{"Deliver": delivered, "Open": opened} {
		if !errors.Is(err, agent.ErrIntegrity) || !strings.Contains(err.Error(), "restore it from a backup") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
