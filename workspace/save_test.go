//go:build linux || darwin

package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// CHECKS 26, SPEC D5: mode 0600 whatever the umask.
func TestSave_CreatesTheExactFileWithMode0600(t *testing.T) {
	everyCalls(t, func(t *testing.T, c calls) {
		for _, umask := range []int{0, 0o077, 0o777} {
			old := syscall.Umask(0)
			w, root := desk(t, c)
			syscall.Umask(umask)
			outcome, err := w.Save(t.Context(), "a.md", []byte("content\n"))
			syscall.Umask(old)
			if outcome != SaveCreated || err != nil {
				t.Fatalf("umask %o: %v %v", umask, outcome, err)
			}
			path := filepath.Join(root, "reports", "a.md")
			info, err := os.Stat(path)
			must(t, err)
			got, err := os.ReadFile(path)
			must(t, err)
			if info.Mode() != 0o600 || string(got) != "content\n" {
				t.Errorf("umask %o: mode %v, content %q", umask, info.Mode(), got)
			}
			onlyEntries(t, root, "a.md")
		}
	})
}

func TestSave_TakesUpToTheLimit(t *testing.T) {
	everyCalls(t, func(t *testing.T, c calls) {
		w, root := desk(t, c)
		full := []byte(strings.Repeat("x", MaxFileBytes))
		if outcome, err := w.Save(t.Context(), "full.md", full); outcome != SaveCreated {
			t.Errorf("at the limit: %v %v", outcome, err)
		}
		if outcome, err := w.Save(t.Context(), "over.md", append(full, 'x')); outcome != SaveNotWritten || !errors.Is(err, ErrTooLarge) {
			t.Errorf("over the limit: %v %v", outcome, err)
		}
		if outcome, err := w.Save(t.Context(), "empty.md", nil); outcome != SaveCreated {
			t.Errorf("empty: %v %v", outcome, err)
		}
		for _, name := range []string{"../sources/a.md", "/tmp/a.md", "a.md\n", ""} {
			if outcome, err := w.Save(t.Context(), name, nil); outcome != SaveNotWritten || !errors.Is(err, ErrName) {
				t.Errorf("Save(%q): %v %v", name, outcome, err)
			}
		}
		onlyEntries(t, root, "empty.md", "full.md")
	})
}

// CHECKS 26, 41: over a file, a directory, a link, a dangling link, a FIFO.
func TestSave_NeverReplacesAnEntry(t *testing.T) {
	everyCalls(t, func(t *testing.T, c calls) {
		w, root := desk(t, c)
		folder := filepath.Join(root, "reports")
		at := func(name string) string { return filepath.Join(folder, name) }
		victim := filepath.Join(t.TempDir(), "victim")
		must(t, os.WriteFile(victim, []byte("kept"), 0o644))
		must(t, os.WriteFile(at("file.md"), []byte("kept"), 0o644))
		must(t, os.Mkdir(at("folder.md"), 0o755))
		must(t, os.Symlink(victim, at("link.md")))
		must(t, os.Symlink(filepath.Join(t.TempDir(), "new"), at("dangling.md")))
		must(t, syscall.Mkfifo(at("fifo.md"), 0o644))
		before := tree(t, root)
		for _, name := range []string{"file.md", "folder.md", "link.md", "dangling.md", "fifo.md"} {
			if outcome, err := w.Save(t.Context(), name, []byte("new")); outcome != SaveExists || !errors.Is(err, ErrExists) {
				t.Errorf("over %s: %v %v", name, outcome, err)
			}
		}
		if after := tree(t, root); after != before {
			t.Errorf("reports changed:\n%s\nbefore:\n%s", after, before)
		}
		for _, path := range []string{victim, at("file.md")} {
			if got, err := os.ReadFile(path); err != nil || string(got) != "kept" {
				t.Errorf("%s: %q %v", path, got, err)
			}
		}
	})
}

// Of many saves of one name at the same time exactly one creates it, whole.
func TestSave_OneOfManyCreates(t *testing.T) {
	everyCalls(t, func(t *testing.T, c calls) {
		w, root := desk(t, c)
		var mu sync.Mutex
		outcomes := map[SaveOutcome]int{}
		var winner string
		var group sync.WaitGroup
		for i := range 16 {
			group.Go(func() {
				content := strings.Repeat(fmt.Sprintf("%02d", i), MaxFileBytes/2)
				outcome, _ := w.Save(t.Context(), "a.md", []byte(content))
				mu.Lock()
				defer mu.Unlock()
				outcomes[outcome]++
				if outcome == SaveCreated {
					winner = content
				}
			})
		}
		group.Wait()
		if outcomes[SaveCreated] != 1 || outcomes[SaveExists] != 15 {
			t.Errorf("outcomes: %v", outcomes)
		}
		if got, err := os.ReadFile(filepath.Join(root, "reports", "a.md")); err != nil || string(got) != winner {
			t.Errorf("%d bytes, %v: not what the winner wrote", len(got), err)
		}
		onlyEntries(t, root, "a.md")
	})
}

// SPEC D8: a file size limit fails the write, before anything can appear.
func TestSave_FailedWriteLeavesNothing(t *testing.T) {
	everyCalls(t, func(t *testing.T, c calls) {
		w, root := desk(t, c)
		before := descriptors(t)
		limitFileSize(t, 100)
		outcome, err := w.Save(t.Context(), "a.md", []byte(strings.Repeat("x", 101)))
		if outcome != SaveNotWritten || err == nil {
			t.Errorf("%v %v, want not written", outcome, err)
		}
		if outcome, err := w.Save(t.Context(), "b.md", []byte(strings.Repeat("x", 100))); outcome != SaveCreated {
			t.Errorf("at the file size limit: %v %v", outcome, err)
		}
		onlyEntries(t, root, "b.md")
		if got := descriptors(t); got != before {
			t.Errorf("%d descriptors, %d before", got, before)
		}
	})
}

// An ordinary user may not write: an error before the first step that could show.
func TestSave_UnwritableFolderIsNotWritten(t *testing.T) {
	everyCalls(t, func(t *testing.T, c calls) {
		w, root := desk(t, c)
		folder := filepath.Join(root, "reports")
		must(t, os.Chmod(folder, 0o555))
		t.Cleanup(func() { must(t, os.Chmod(folder, 0o755)) })
		outcome, err := w.Save(t.Context(), "a.md", []byte("x"))
		want := SaveNotWritten
		if os.Geteuid() == 0 {
			want = SaveCreated // no permission stops root; TestAll_WorkForAnOrdinaryUser runs this as nobody
		}
		if outcome != want {
			t.Errorf("%v %v, want %v", outcome, err, want)
		}
	})
}

// What is missing is said, and only that.
func TestOpen_SaysItsFallbacks(t *testing.T) {
	for _, test := range []struct {
		calls calls
		said  []string
	}{
		{calls{openat2: true, tmpfile: true}, nil},
		{calls{tmpfile: true}, []string{"openat2"}},
		{calls{openat2: true}, []string{"O_TMPFILE"}},
		{calls{}, []string{"openat2", "O_TMPFILE"}},
	} {
		w, _ := desk(t, test.calls)
		got := w.Fallbacks()
		if len(got) != len(test.said) {
			t.Fatalf("%+v: %q", test.calls, got)
		}
		for i, want := range test.said {
			if !strings.HasPrefix(got[i], want) {
				t.Errorf("%+v: %q", test.calls, got)
			}
		}
	}
}

// onlyEntries fails unless reports/ holds exactly names.
func onlyEntries(t *testing.T, root string, names ...string) {
	t.Helper()
	list, err := os.ReadDir(filepath.Join(root, "reports"))
	must(t, err)
	var got []string
	for _, entry := range list {
		got = append(got, entry.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("reports holds %q, want %q", got, names)
	}
}

func BenchmarkSave(b *testing.B) {
	for _, name := range []string{"best", "portable"} {
		b.Run(name, func(b *testing.B) {
			w, _ := desk(b, callsNamed(name))
			content := []byte(strings.Repeat("x", 8000))
			n := 0
			for b.Loop() {
				n++
				if outcome, err := w.Save(b.Context(), fmt.Sprintf("r%d.md", n), content); outcome != SaveCreated {
					b.Fatal(outcome, err)
				}
			}
		})
	}
}

func BenchmarkRead(b *testing.B) {
	w, root := desk(b, callsNamed("best"))
	source(b, root, "a.md", strings.Repeat("x", MaxFileBytes))
	for b.Loop() {
		if _, err := w.Read(b.Context(), "a.md"); err != nil {
			b.Fatal(err)
		}
	}
}
