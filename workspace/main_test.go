//go:build linux || darwin

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// childEnv makes the test binary do one thing in a process of its own: see child.
const childEnv = "SALLYPORT_WORKSPACE_CHILD"

func init() {
	if os.Getenv(childEnv) != "" {
		runtime.LockOSThread() // to the main thread, where strace counts the system calls of the job
	}
}

func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		os.Exit(child(job))
	}
	os.Exit(m.Run())
}

// child runs one job: "save ROOT CALLS", "names ROOT", "lock LEDGER ROOT", "spend LEDGER ROOT ID".
func child(job string) int {
	args := strings.Fields(job)
	switch args[0] {
	case "save":
		w, err := open(args[1], callsNamed(args[2]))
		if err != nil {
			return childFailed(err)
		}
		outcome, err := w.Save(context.Background(), "report.md", []byte(childContent))
		fmt.Println(outcome)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return 0
	case "names":
		return useBadNames(args[1])
	case "lock", "spend":
		w, err := Open(args[2])
		if err != nil {
			return childFailed(err)
		}
		l, err := OpenLedger(args[1], w)
		if err != nil {
			return childFailed(err)
		}
		held, err := l.Lock(context.Background())
		if err != nil {
			return childFailed(err)
		}
		if args[0] == "spend" {
			fmt.Println(held.Spend(args[3]) == nil)
			held.Release()
			return 0
		}
		fmt.Println("locked")
		_, _ = os.Stdin.Read(make([]byte, 1)) // until the parent closes it
		return 0
	}
	return childFailed(fmt.Errorf("unknown job %q", job))
}

// useBadNames tries names outside the rule between two marks on stdout, and a good one after them.
func useBadNames(root string) int {
	w, err := Open(root)
	if err != nil {
		return childFailed(err)
	}
	ctx := context.Background()
	fmt.Println("names begin")
	for _, name := range []string{"../a.md", "/etc/a.md", "a.md\n", "a\x00.md", "", ".", "..", "-a.md", "A.MD", "ａ.md", strings.Repeat("a", 65) + ".md"} {
		_, readErr := w.Read(ctx, name)
		_, reportErr := w.Report(ctx, name)
		_, saveErr := w.Save(ctx, name, nil)
		for _, err := range []error{readErr, reportErr, saveErr} {
			if !errors.Is(err, ErrName) {
				return childFailed(fmt.Errorf("%q: %v", name, err))
			}
		}
	}
	fmt.Println("names end")
	_, _ = w.Read(ctx, "good.md")
	return 0
}

func childFailed(err error) int {
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// childContent is long enough to be more than one page.
var childContent = strings.Repeat("A signed report, line by line.\n", 400)

func callsNamed(name string) calls {
	switch name {
	case "best":
		return calls{openat2: true, tmpfile: true}
	case "portable":
		return calls{}
	}
	panic("unknown calls " + name)
}

// everyCalls runs a test with the better system calls and with the portable ones.
func everyCalls(t *testing.T, test func(t *testing.T, c calls)) {
	t.Helper()
	for _, name := range []string{"best", "portable"} {
		t.Run(name, func(t *testing.T) { test(t, callsNamed(name)) })
	}
}

// desk makes an empty workspace on disk and opens it.
func desk(t testing.TB, c calls) (w *Workspace, root string) {
	t.Helper()
	root = newRoot(t)
	w, err := open(root, c)
	if err != nil {
		t.Fatal(err)
	}
	if w.calls != c {
		t.Fatalf("this system has only %+v of %+v", w.calls, c)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w, root
}

func newRoot(t testing.TB) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "desk")
	for _, dir := range []string{root, filepath.Join(root, "sources"), filepath.Join(root, "reports")} {
		must(t, os.Mkdir(dir, 0o755))
	}
	return root
}

func source(t testing.TB, root, name, content string) {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(root, "sources", name), []byte(content), 0o644))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// descriptors counts the open descriptors of this process.
func descriptors(t testing.TB) int {
	t.Helper()
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if list, err := os.ReadDir(dir); err == nil {
			return len(list)
		}
	}
	t.Fatal("descriptors of this process cannot be listed")
	return 0
}

// SPEC D6: workspace code works for an ordinary user. As root, the tests run again as nobody.
func TestAll_WorkForAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("this is an ordinary user")
		return
	}
	dir, err := os.MkdirTemp("", "sallyport-nobody-") // t.TempDir is closed to other users
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	const nobody = 65534
	must(t, os.Chown(dir, nobody, nobody))
	self, err := os.Executable()
	must(t, err)
	binary := filepath.Join(dir, "workspace.test")
	code, err := os.ReadFile(self)
	must(t, err)
	must(t, os.WriteFile(binary, code, 0o755))
	must(t, os.Chmod(dir, 0o755))

	cmd := exec.Command(binary, "-test.run", "^Test(Read|Search|Save|Report|Open|Ledger)_")
	cmd.Dir = dir
	cmd.Env = []string{"TMPDIR=" + dir, "HOME=" + dir, "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "no tests to run") {
		t.Fatalf("as nobody: %v\n%s", err, out)
	}
}
