//go:build linux || darwin

package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// CHECKS 28.
func TestSearch_WalksAtMost64Entries(t *testing.T) {
	for _, test := range []struct {
		entries, examined int
		truncated         bool
	}{{0, 0, false}, {63, 63, false}, {64, 64, false}, {65, 64, true}, {200, 64, true}} {
		t.Run(fmt.Sprint(test.entries), func(t *testing.T) {
			w, root := desk(t, callsNamed("best"))
			for i := range test.entries {
				source(t, root, fmt.Sprintf("f%03d.md", i), "nothing here")
			}
			want := SearchResult{Examined: test.examined, Truncated: test.truncated, MoreEntries: test.truncated}
			if got := search(t, w, "absent", 3); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

// CHECKS 12, 18, 29, 30.
func TestSearch_CountsExaminedAndSkippedInAMixedFolder(t *testing.T) {
	everyCalls(t, func(t *testing.T, c calls) {
		w, root := desk(t, c)
		at := func(name string) string { return filepath.Join(root, "sources", name) }
		source(t, root, "a.md", "match")
		source(t, root, "h.md", "match")
		source(t, root, "bad name.md", "match")
		source(t, root, ".md", "match")
		source(t, root, "big.md", "match"+strings.Repeat("x", MaxFileBytes))
		source(t, root, "latin.md", "match \xe9")
		source(t, root, "e.md", "")
		source(t, root, "x.MD", "match")
		must(t, os.Symlink("a.md", at("l.md")))
		must(t, syscall.Mkfifo(at("p.md"), 0o644))
		must(t, os.Mkdir(at("d.md"), 0o755))
		must(t, os.WriteFile(at("d.md/inner.md"), []byte("match"), 0o644))
		got := search(t, w, "match", 3)
		want := SearchResult{Hits: []Hit{{"a.md", "match"}, {"h.md", "match"}}, Skipped: 7, Examined: 11}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// CHECKS 31.
func TestSearch_OneHitAFileAndMaxEndsIt(t *testing.T) {
	w, root := desk(t, callsNamed("best"))
	source(t, root, "a.md", "x x x")
	if got := search(t, w, "x", 3); len(got.Hits) != 1 || got.Truncated || got.Examined != 1 {
		t.Errorf("three matches in one file: %+v", got)
	}
	if got := search(t, w, "x", 1); len(got.Hits) != 1 || !got.Truncated || got.MoreEntries {
		t.Errorf("max 1 on the only file: %+v", got)
	}
	source(t, root, "b.txt", "x")
	source(t, root, "c.md", "x")
	source(t, root, "d.md", "x")
	if got := search(t, w, "x", 2); len(got.Hits) != 2 || !got.Truncated || got.Examined != 3 {
		t.Errorf("max 2, reached at the third of four entries: %+v", got)
	}
}

// CHECKS 32.
func TestSearch_ExcerptIsCountedInCodePoints(t *testing.T) {
	for _, unit := range []string{"a", "证", "😀"} {
		for _, before := range []int{0, 39, 40, 41, 500} {
			for _, after := range []int{0, 159, 160, 161} {
				w, root := desk(t, callsNamed("best"))
				// The match is one code point and counts as the first of the 160.
				source(t, root, "a.md", strings.Repeat(unit, before)+"#"+strings.Repeat(unit, after))
				want := strings.Repeat(unit, min(before, 40)) + "#" + strings.Repeat(unit, min(after, 159))
				got := search(t, w, "#", 1)
				if len(got.Hits) != 1 || got.Hits[0].Excerpt != want {
					t.Errorf("%d %q before, %d after: %+v", before, unit, after, got)
				}
			}
		}
	}
	w, root := desk(t, callsNamed("best"))
	source(t, root, "a.md", strings.Repeat("文", 300))
	if got := search(t, w, "文", 1); len(got.Hits[0].Excerpt) != 3*160 {
		t.Errorf("match at the start: %d bytes", len(got.Hits[0].Excerpt))
	}
	source(t, root, "a.md", strings.Repeat("文", 50)+"根"+strings.Repeat("文", 300))
	if got := search(t, w, "根", 1); len(got.Hits[0].Excerpt) != 600 {
		t.Errorf("200 code points: %d bytes, want 600", len(got.Hits[0].Excerpt))
	}
}

// CHECKS 33.
func TestSearch_IsLiteral(t *testing.T) {
	w, root := desk(t, callsNamed("best"))
	source(t, root, "a.md", "Case caf\u00e9 first line\nsecond line a.b")
	for query, want := range map[string]int{
		"Case": 1, "case": 0, "caf\u00e9": 1, "cafe\u0301": 0, "line\nsecond": 1, "a.b": 1, "a.*": 0,
	} {
		if got := search(t, w, query, 3); len(got.Hits) != want {
			t.Errorf("query %q: %+v, want %d hits", query, got, want)
		}
	}
	if _, err := w.Search(t.Context(), "", 1); !errors.Is(err, ErrQuery) {
		t.Errorf("empty query: %v", err)
	}
	if _, err := w.Search(t.Context(), "x", 0); !errors.Is(err, ErrQuery) {
		t.Errorf("no hits wanted: %v", err)
	}
}

// CHECKS 34, 83: again, at the same time, after an early stop; a thousand leave no descriptor.
func TestSearch_GivesTheSameAnswerAgain(t *testing.T) {
	w, root := desk(t, callsNamed("best"))
	for i := range 80 {
		source(t, root, fmt.Sprintf("f%02d.md", i), "needle")
	}
	before := descriptors(t)
	want := search(t, w, "needle", 3)
	search(t, w, "needle", 1)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 250 {
				if got := search(t, w, "needle", 3); !reflect.DeepEqual(got, want) {
					t.Errorf("got %+v, want %+v", got, want)
				}
			}
		})
	}
	group.Wait()
	if got := descriptors(t); got != before {
		t.Errorf("%d descriptors, %d before", got, before)
	}
}

func search(t *testing.T, w *Workspace, query string, max int) SearchResult {
	t.Helper()
	got, err := w.Search(t.Context(), query, max)
	if err != nil {
		t.Error(err)
	}
	return got
}

func BenchmarkSearch(b *testing.B) {
	w, root := desk(b, callsNamed("best"))
	for i := range MaxEntries {
		source(b, root, fmt.Sprintf("f%02d.md", i), strings.Repeat("hay ", MaxFileBytes/4))
	}
	for b.Loop() {
		if _, err := w.Search(b.Context(), "needle", 3); err != nil {
			b.Fatal(err)
		}
	}
}
