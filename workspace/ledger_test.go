//go:build linux || darwin

package workspace

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	idA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	idB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	idC = "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
)

func TestLedger_RemembersAcrossOpenings(t *testing.T) {
	l, dir, w := ledger(t)
	held := lock(t, l)
	must(t, held.Spend(idA))
	if spent, err := held.Void(idB); spent || err != nil {
		t.Fatalf("void an unused candidate: spent %v, %v", spent, err)
	}
	held.Release()
	must(t, l.Close())
	if _, err := l.State(idA); !errors.Is(err, ErrClosed) {
		t.Errorf("state after close: %v", err)
	}
	if _, err := l.Lock(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("lock after close: %v", err)
	}

	l, err := OpenLedger(dir, w)
	must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	states(t, l, map[string]CandidateState{idA: CandidateSpent, idB: CandidateVoided, idC: CandidateUnused})
	held = lock(t, l)
	defer held.Release()
	for range 2 { // the same question gets the same answer
		if spent, err := held.Void(idA); !spent || err != nil {
			t.Errorf("void a spent candidate: spent %v, %v", spent, err)
		}
		if spent, err := held.Void(idB); spent || err != nil {
			t.Errorf("void a voided candidate: spent %v, %v", spent, err)
		}
	}
	states(t, l, map[string]CandidateState{idA: CandidateSpent, idB: CandidateVoided, idC: CandidateUnused})
	info, err := os.Stat(filepath.Join(dir, idA))
	must(t, err)
	if info.Mode() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
}

// Anything that is not exactly a void counts as spent; what cannot be examined is an error.
func TestLedger_DamagedEntryCountsAsSpent(t *testing.T) {
	l, dir, _ := ledger(t)
	must(t, os.WriteFile(filepath.Join(dir, idA), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, idB), []byte("voided\nx"), 0o600))
	must(t, os.Symlink("elsewhere", filepath.Join(dir, idC)))
	states(t, l, map[string]CandidateState{idA: CandidateSpent, idB: CandidateSpent})
	if state, err := l.State(idC); err == nil {
		t.Errorf("a link as entry: %v", state)
	}
}

func TestLedger_SpendIsExclusive(t *testing.T) {
	l, _, _ := ledger(t)
	held := lock(t, l)
	defer held.Release()
	must(t, held.Spend(idA))
	if err := held.Spend(idA); !errors.Is(err, ErrExists) {
		t.Errorf("second spend: %v", err)
	}
	for _, id := range []string{"", "../x", idA[1:], strings.ToUpper(idA), idA + "\n", strings.Repeat("g", 64)} {
		if err := held.Spend(id); !errors.Is(err, ErrCandidate) {
			t.Errorf("spend %q: %v", id, err)
		}
		if _, err := held.Void(id); !errors.Is(err, ErrCandidate) {
			t.Errorf("void %q: %v", id, err)
		}
	}
}

// SPEC D5: an entry that could not be made counts as spent.
func TestLedger_FailedEntryCountsAsSpent(t *testing.T) {
	l, dir, _ := ledger(t)
	held := lock(t, l)
	defer held.Release()
	limitFileSize(t, 0)
	if err := held.Spend(idA); err == nil {
		t.Fatal("spent without room for the entry")
	}
	states(t, l, map[string]CandidateState{idA: CandidateSpent})
	must(t, os.Remove(filepath.Join(dir, idA)))
	states(t, l, map[string]CandidateState{idA: CandidateSpent})
	if spent, err := held.Void(idA); !spent || err != nil {
		t.Errorf("void: spent %v, %v", spent, err)
	}
}

func TestLedger_OpenRefuses(t *testing.T) {
	root := newRoot(t)
	w, err := Open(root)
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	within := filepath.Join(root, "sources", "deep", "er")
	must(t, os.MkdirAll(within, 0o700))
	beside := filepath.Join(filepath.Dir(root), "beside")
	must(t, os.Mkdir(beside, 0o700))
	must(t, os.Symlink(beside, beside+".link"))
	must(t, os.WriteFile(beside+".file", nil, 0o600))
	shared := beside + ".shared"
	must(t, os.Mkdir(shared, 0o700))
	must(t, os.Chmod(shared, 0o770))
	before := descriptors(t)
	for dir, want := range map[string]error{
		"":                               nil,
		root:                             ErrInsideWorkspace,
		filepath.Join(root, "reports"):   ErrInsideWorkspace,
		within:                           ErrInsideWorkspace,
		beside + ".link":                 ErrSymlink,
		beside + ".link/":                ErrSymlink,
		beside + ".file":                 ErrNotDirectory,
		beside + ".gone":                 ErrNotFound,
		shared:                           ErrOthersWrite,
		filepath.Join(beside, "missing"): ErrNotFound,
	} {
		_, err := OpenLedger(dir, w)
		var opening *OpenError
		if !errors.As(err, &opening) || opening.Part != "ledger" || (want != nil && !errors.Is(err, want)) {
			t.Errorf("OpenLedger(%q): %v, want %v", dir, err, want)
		}
	}
	if got := descriptors(t); got != before {
		t.Errorf("%d descriptors, %d before", got, before)
	}
	l, err := OpenLedger(beside, w)
	must(t, err)
	must(t, l.Close())
}

// The lock is held against goroutines and processes, and ends with the process that holds it.
func TestLedger_LockPutsProcessesInTurn(t *testing.T) {
	l, dir, w := ledger(t)
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), childEnv+"=lock "+dir+" "+rootOf(w, dir))
	stdin, err := other.StdinPipe()
	must(t, err)
	stdout, err := other.StdoutPipe()
	must(t, err)
	must(t, other.Start())
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "locked\n" {
		t.Fatalf("child: %q %v", line, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := l.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("lock while another process has it: %v", err)
	}
	must(t, stdin.Close())
	must(t, other.Wait())
	before := descriptors(t)
	held := lock(t, l)
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := l.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("lock while another goroutine has it: %v", err)
	}
	held.Release()
	if got := descriptors(t); got != before {
		t.Errorf("%d descriptors, %d before", got, before)
	}
}

// Signing twice never means writing twice: of many spenders of one candidate, in several processes, one wins.
func TestLedger_OneOfManySpends(t *testing.T) {
	l, dir, w := ledger(t)
	var mu sync.Mutex
	won := 0
	count := func(ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if ok {
			won++
		}
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childEnv+"=spend "+dir+" "+rootOf(w, dir)+" "+idA)
			out, err := cmd.Output()
			if err != nil {
				t.Error(err)
			}
			count(string(out) == "true\n")
		})
		group.Go(func() {
			held, err := l.Lock(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			defer held.Release()
			count(held.Spend(idA) == nil)
		})
	}
	group.Wait()
	if won != 1 {
		t.Errorf("%d spent the candidate", won)
	}
}

// ledger makes a workspace and a ledger beside it.
func ledger(t *testing.T) (l *Ledger, dir string, w *Workspace) {
	t.Helper()
	w, root := desk(t, callsNamed("best"))
	dir = filepath.Join(filepath.Dir(root), "ledger")
	must(t, os.Mkdir(dir, 0o700))
	l, err := OpenLedger(dir, w)
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l, dir, w
}

// rootOf returns the root that ledger made beside dir.
func rootOf(_ *Workspace, dir string) string { return filepath.Join(filepath.Dir(dir), "desk") }

func lock(t *testing.T, l *Ledger) *LedgerLock {
	t.Helper()
	held, err := l.Lock(t.Context())
	must(t, err)
	return held
}

func states(t *testing.T, l *Ledger, want map[string]CandidateState) {
	t.Helper()
	for id, state := range want {
		if got, err := l.State(id); got != state || err != nil {
			t.Errorf("state of %s…: %v %v, want %v", id[:4], got, err, state)
		}
	}
}
