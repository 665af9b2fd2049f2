package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/agent/embedded"
)

func init() { verbs["later"] = openLater }

// later is what the next version might do to the file: enough to leave the page cache
// before the commit.
const later = `CREATE TABLE later (x BLOB NOT NULL) STRICT;
	INSERT INTO later WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4000) SELECT randomblob(4000) FROM n;
	UPDATE runs SET reason = 'migrated'; DROP TABLE parcels`

// openLater opens a state directory as the next version would, and lists its runs.
// Arguments: state.
func openLater(ctx context.Context, args []string) (err error) {
	embedded.AddMigration(later)
	e, err := embedded.Open(args[0], embedded.Config{Crash: crashing()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	runs, err := e.List(ctx, agent.Filter{})
	for _, r := range runs {
		fmt.Println(r.ID, r.Reason)
	}
	return err
}

// A later version that is killed while it migrates leaves the file as it was: this one
// goes on with it, and so does the later one.
func TestMigration_AnInterruptedOneLeavesTheVersionBefore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e, err := embedded.Open(dir, embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	head := begin(t, e, "r").Head
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := command("later", dir)
	cmd.Env = append(cmd.Env, crashVariable+"=1") // in_migration is the first point there is
	c := spawn(t, cmd)
	if said := c.rest(); len(said) > 0 || c.wait() == nil {
		t.Fatalf("the migrating process was not killed, and said %q", said)
	}
	e, err = embedded.Open(dir, embedded.Config{})
	if err != nil {
		t.Fatalf("this version no longer opens the file: %v", err)
	}
	run := replayed(t, e, "r")
	list, err := e.List(t.Context(), agent.Filter{})
	if err != nil || run.Head != head || list[0].Reason != "" {
		t.Errorf("the run is at %s, want %s; %+v, %v", run.Head, head, list, err)
	}
	if v, err := e.Deliver(t.Context(), "r", agent.Delivery{Key: "k", Decision: agent.Pause{}}); err != nil || v.Row != agent.RowPaused {
		t.Errorf("a delivery: %+v, %v", v, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	c = spawn(t, command("later", dir))
	if got := c.rest(); !slices.Equal(got, []string{"r migrated"}) || c.wait() != nil {
		t.Errorf("the later version said %q: %v", got, c.err)
	}
	if _, err := embedded.Open(dir, embedded.Config{}); !errors.Is(err, agent.ErrNewer) || !strings.Contains(err.Error(), "state.db") {
		t.Errorf("after the migration this version got %v, want ErrNewer and the file", err)
	}
}
