//go:build linux || darwin

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// CHECKS 25 (workspace part), SPEC D11: what is missing is named, nothing is created, no descriptor stays.
func TestOpen_RefusesAndNamesThePart(t *testing.T) {
	swap := func(name string, with func(t *testing.T, path string)) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			path := filepath.Join(root, name)
			must(t, os.Rename(path, filepath.Clean(path)+".away"))
			with(t, path)
		}
	}
	nothing := func(*testing.T, string) {}
	file := func(t *testing.T, path string) { must(t, os.WriteFile(path, nil, 0o644)) }
	link := func(t *testing.T, path string) { must(t, os.Symlink(filepath.Clean(path)+".away", path)) }
	for name, test := range map[string]struct {
		spoil func(*testing.T, string)
		part  string
		want  error
	}{
		"no root":           {swap("", nothing), "root", ErrNotFound},
		"root a file":       {swap("", file), "root", ErrNotDirectory},
		"root a link":       {swap("", link), "root", ErrSymlink},
		"no sources":        {swap("sources", nothing), "sources", ErrNotFound},
		"sources a file":    {swap("sources", file), "sources", ErrNotDirectory},
		"sources a link":    {swap("sources", link), "sources", ErrSymlink},
		"no reports":        {swap("reports", nothing), "reports", ErrNotFound},
		"reports a file":    {swap("reports", file), "reports", ErrNotDirectory},
		"reports a link":    {swap("reports", link), "reports", ErrSymlink},
		"reports a dangler": {swap("reports", func(t *testing.T, p string) { must(t, os.Symlink("gone", p)) }), "reports", ErrSymlink},
	} {
		t.Run(name, func(t *testing.T) {
			root := newRoot(t)
			test.spoil(t, root)
			before := tree(t, filepath.Dir(root))
			open := descriptors(t)
			for _, path := range []string{root, root + "/"} {
				_, err := Open(path)
				var opening *OpenError
				if !errors.As(err, &opening) || opening.Part != test.part || !errors.Is(err, test.want) {
					t.Errorf("Open(%q): %v, want %s %v", path, err, test.part, test.want)
				}
			}
			if got := descriptors(t); got != open {
				t.Errorf("%d descriptors, %d before", got, open)
			}
			if after := tree(t, filepath.Dir(root)); after != before {
				t.Errorf("the folder changed:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
	if _, err := Open(""); err == nil {
		t.Error("no root was accepted")
	}
}

func TestOpen_ReachesARootBelowALink(t *testing.T) {
	root := newRoot(t)
	above := filepath.Join(t.TempDir(), "above")
	must(t, os.Symlink(filepath.Dir(root), above))
	w, err := Open(filepath.Join(above, "desk"))
	must(t, err)
	must(t, w.Close())
}

// CHECKS 83, SPEC D11.
func TestOpen_CloseReleasesEveryDescriptor(t *testing.T) {
	root := newRoot(t)
	source(t, root, "a.md", "text")
	before := descriptors(t)
	for range 20 {
		w, err := Open(root)
		must(t, err)
		_, err = w.Read(t.Context(), "a.md")
		must(t, err)
		must(t, w.Close())
		must(t, w.Close())
		if _, err := w.Read(t.Context(), "a.md"); !errors.Is(err, ErrClosed) {
			t.Fatalf("read after close: %v", err)
		}
		if outcome, err := w.Save(t.Context(), "a.md", nil); outcome != SaveNotWritten || !errors.Is(err, ErrClosed) {
			t.Fatalf("save after close: %v %v", outcome, err)
		}
	}
	if got := descriptors(t); got != before {
		t.Errorf("%d descriptors, %d before", got, before)
	}
}

// tree lists every path below dir with its type and size.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var list string
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		list += path + " " + d.Type().String() + "\n"
		return err
	}))
	return list
}
