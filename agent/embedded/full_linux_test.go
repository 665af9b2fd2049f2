package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/agent/enginetest"
)

func init() {
	verbs["limited"] = limited
	verbs["limited backup"] = limitedBackup
}

// readings is a script of reads only: nobody is asked.
var readings = enginetest.Script{{enginetest.ToolRead, enginetest.ToolRead}, {enginetest.ToolRead}}

// limited serves a run while no file may grow beyond a size. Arguments: state, run,
// witness, size.
func limited(ctx context.Context, args []string) (err error) {
	e, err := embedded.Open(args[0], embedded.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	size, err := strconv.ParseUint(args[3], 10, 64)
	if err != nil {
		return err
	}
	signal.Ignore(unix.SIGXFSZ) // the write fails, as on a full disk
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: size}); err != nil {
		return err
	}
	inner := (&enginetest.World{}).Nodes(readings)
	err = e.Serve(ctx, agent.ServeOptions{Runs: args[1:2]}, func(run agent.Run) (agent.Nodes, error) {
		nodes, err := inner(run)
		return witness{nodes, args[2]}, err
	})
	var store *embedded.StoreError
	if errors.As(err, &store) {
		fmt.Println("store", store.Path, "remedy", store.Remedy)
		return nil
	}
	if err == nil {
		fmt.Println("rests")
	}
	return err
}

// CASES A8: when an append fails, what it would have opened is not performed, the run
// is no longer served, the error names the file and the remedy, and the run goes on
// once there is room.
func TestFull_AnAppendThatFailsPerformsNothing(t *testing.T) {
	failed := 0
	for size := int64(0); ; size += 20 << 10 {
		base := t.TempDir()
		dir, seen := filepath.Join(base, "state"), filepath.Join(base, "seen")
		e := open(t, dir, embedded.Config{})
		begin(t, e, "r")
		info, err := os.Stat(filepath.Join(dir, "state.db-wal"))
		if err != nil {
			t.Fatal(err)
		}
		c := spawn(t, command("limited", dir, "r", seen, fmt.Sprint(info.Size()+size)))
		said := strings.Join(c.rest(), "; ")
		if err := c.wait(); err != nil {
			t.Fatalf("size +%d: the child said %q: %v", size, said, err)
		}
		checkPerformed(t, e, "r", seen, fmt.Sprintf("size +%d", size))
		if said == "rests" {
			if failed < 5 {
				t.Errorf("only %d sizes failed", failed)
			}
			return
		}
		failed++
		if !strings.Contains(said, filepath.Join(dir, "state.db")) || !strings.Contains(said, "resume") {
			t.Errorf("size +%d: the error names no file or no remedy: %s", size, said)
		}
		if run := replayed(t, e, "r"); run.State == agent.StateCompleted {
			t.Errorf("size +%d: the run completed though its append failed", size)
		}
		serve(t, e, &enginetest.World{}, readings, "r")
		if run := replayed(t, e, "r"); run.State != agent.StateCompleted || run.Used.Calls != 3 {
			t.Errorf("size +%d: with room again the run is in %s after %d calls", size, run.State, run.Used.Calls)
		}
	}
}

// limitedBackup writes a backup while no file may grow beyond a size. Arguments: state,
// file, size.
func limitedBackup(ctx context.Context, args []string) (err error) {
	e, err := embedded.Open(args[0], embedded.Config{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	size, err := strconv.ParseUint(args[2], 10, 64)
	if err != nil {
		return err
	}
	signal.Ignore(unix.SIGXFSZ)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: size}); err != nil {
		return err
	}
	err = e.Backup(ctx, args[1])
	var store *embedded.StoreError
	if errors.As(err, &store) && strings.HasPrefix(store.Path, filepath.Dir(args[1])) {
		fmt.Println("store")
		return nil
	}
	return err
}

// A backup that finds no room says where, and leaves nothing behind.
func TestFull_ABackupThatFailsLeavesNothing(t *testing.T) {
	dir, out := filepath.Join(t.TempDir(), "state"), t.TempDir()
	begin(t, open(t, dir, embedded.Config{}), "r")
	for size := 0; size <= 40<<10; size += 8 << 10 {
		spawn(t, command("limited backup", dir, filepath.Join(out, "b"), fmt.Sprint(size))).expect("store")
		if got := content(t, out); len(got) != 0 {
			t.Errorf("size %d: left behind: %q", size, got)
		}
	}
}
