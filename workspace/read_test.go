//go:build linux || darwin

package workspace

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// CHECKS 3, 13, 19.
func TestRead_ReturnsBytesUnchanged(t *testing.T) {
	everyCalls(t, func(t *testing.T, c calls) {
		w, root := desk(t, c)
		for name, content := range map[string]string{
			"plain": "one\ntwo\n", "empty": "", "bom": "\ufeffx", "crlf": "a\r\nb\r\n", "nul": "a\x00b",
			"cjk": "证据", "full": strings.Repeat("x", MaxFileBytes),
		} {
			source(t, root, name+".md", content)
			got, err := w.Read(t.Context(), name+".md")
			if err != nil || string(got) != content {
				t.Errorf("%s: %d bytes, %v; want %d bytes", name, len(got), err, len(content))
			}
		}
	})
}

// hostile fills a folder with entries that may not be read and returns why.
func hostile(t *testing.T, folder string) map[string]error {
	t.Helper()
	at := func(name string) string { return filepath.Join(folder, name) }
	outside := filepath.Join(t.TempDir(), "outside.md")
	must(t, os.WriteFile(outside, []byte("secret"), 0o644))
	must(t, os.Symlink(outside, at("link.md")))
	must(t, os.Symlink("gone", at("dangling.md")))
	must(t, os.Symlink("link.md", at("linked.md")))
	must(t, os.WriteFile(at("target.md"), []byte("text"), 0o644))
	must(t, os.Link(at("target.md"), at("hard.md")))
	must(t, syscall.Mkfifo(at("fifo.md"), 0o644))
	must(t, os.Mkdir(at("folder.md"), 0o755))
	t.Chdir(folder) // the path of a socket is short
	socket, err := net.Listen("unix", "socket.md")
	must(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	must(t, os.WriteFile(at("big.md"), []byte(strings.Repeat("x", MaxFileBytes+1)), 0o644))
	return map[string]error{
		"link.md": ErrSymlink, "dangling.md": ErrSymlink, "linked.md": ErrSymlink,
		"hard.md": ErrManyLinks, "target.md": ErrManyLinks,
		"fifo.md": ErrNotRegular, "folder.md": ErrNotRegular, "socket.md": ErrNotRegular,
		"big.md": ErrTooLarge, "missing.md": ErrNotFound,
	}
}

// CHECKS 12, 13, 14, 18, 19, CASES X3: refused, at once, whatever the entry is.
func TestRead_RefusesEveryOtherEntry(t *testing.T) {
	everyCalls(t, func(t *testing.T, c calls) {
		w, root := desk(t, c)
		refused := hostile(t, filepath.Join(root, "sources"))
		for name, content := range map[string]string{"latin.md": "caf\xe9", "half.md": "\xe8\xaf", "surrogate.md": "\xed\xa0\x80"} {
			source(t, root, name, content)
			refused[name] = ErrNotText
		}
		for _, name := range []string{"../a.md", "/etc/a.md", "a.md\n", "a\x00.md", ""} {
			refused[name] = ErrName
		}
		for name, want := range refused {
			within(t, time.Second, func() {
				if got, err := w.Read(t.Context(), name); !errors.Is(err, want) || got != nil {
					t.Errorf("Read(%q) = %q, %v; want %v", name, got, err, want)
				}
			})
		}
	})
}

// CHECKS 18: a thousand rounds over every kind of entry leave no descriptor.
func TestRead_LeavesNoDescriptor(t *testing.T) {
	everyCalls(t, func(t *testing.T, c calls) {
		w, root := desk(t, c)
		refused := hostile(t, filepath.Join(root, "sources"))
		source(t, root, "good.md", "text")
		before := descriptors(t)
		for range 1000 {
			for name := range refused {
				_, _ = w.Read(t.Context(), name)
			}
			_, err := w.Read(t.Context(), "good.md")
			must(t, err)
		}
		if got := descriptors(t); got != before {
			t.Errorf("%d descriptors, %d before", got, before)
		}
	})
}

// CHECKS 20, SPEC D6: grown, cut, or overwritten between the examination and the read.
func TestRead_RefusesAFileThatChanges(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"grows": func(path string) error { return appendTo(path, "more") },
		"grows past the limit": func(path string) error {
			return appendTo(path, strings.Repeat("x", MaxFileBytes))
		},
		"is cut":          func(path string) error { return os.Truncate(path, 1) },
		"is overwritten":  func(path string) error { return os.WriteFile(path, []byte("TEXT"), 0o644) },
		"gets a new name": func(path string) error { return os.Link(path, path+".other") },
		"is removed":      os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			everyCalls(t, func(t *testing.T, c calls) {
				w, root := desk(t, c)
				source(t, root, "a.md", "text")
				path := filepath.Join(root, "sources", "a.md")
				old := time.Now().Add(-time.Hour)
				must(t, os.Chtimes(path, old, old))
				w.examined = func() { must(t, change(path)) }
				got, err := w.Read(t.Context(), "a.md")
				if err == nil {
					t.Errorf("read %q from a file that %s", got, name)
				}
			})
		})
	}
}

func TestRead_EndsWithItsContext(t *testing.T) {
	w, root := desk(t, callsNamed("best"))
	source(t, root, "a.md", "text")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := w.Read(ctx, "a.md"); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	if _, err := w.Search(ctx, "x", 1); !errors.Is(err, context.Canceled) {
		t.Errorf("search: %v", err)
	}
	if outcome, err := w.Save(ctx, "a.md", nil); outcome != SaveNotWritten || !errors.Is(err, context.Canceled) {
		t.Errorf("save: %v %v", outcome, err)
	}
}

// SPEC D12, D6.
func TestReport_TellsSizeAndDigestOnly(t *testing.T) {
	everyCalls(t, func(t *testing.T, c calls) {
		w, root := desk(t, c)
		source(t, root, "only.md", "a source is no report")
		folder := filepath.Join(root, "reports")
		refused := hostile(t, folder)
		delete(refused, "missing.md")
		refused["../sources/only.md"] = ErrName
		for name, want := range refused {
			if got, err := w.Report(t.Context(), name); !errors.Is(err, want) {
				t.Errorf("Report(%q) = %+v, %v; want %v", name, got, err, want)
			}
		}
		must(t, os.WriteFile(filepath.Join(folder, "a.md"), []byte("abc"), 0o600))
		want := ReportStatus{Exists: true, Bytes: 3, SHA256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"}
		if got, err := w.Report(t.Context(), "a.md"); err != nil || got != want {
			t.Errorf("Report = %+v, %v; want %+v", got, err, want)
		}
		for _, name := range []string{"missing.md", "only.md"} {
			if got, err := w.Report(t.Context(), name); err != nil || got != (ReportStatus{}) {
				t.Errorf("Report(%q) = %+v, %v; want nothing", name, got, err)
			}
		}
	})
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// within ends the tests when what takes longer than limit: it holds the workspace, so that nothing could be
// cleaned up.
func within(t *testing.T, limit time.Duration, what func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); what() }()
	select {
	case <-done:
	case <-time.After(limit):
		panic(fmt.Sprintf("%s: took longer than %v", t.Name(), limit))
	}
}
