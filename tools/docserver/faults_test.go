//go:build faults && linux

package docserver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sallyport/tools/stdio/stdiotest"
)

// These tests let strace fail, delay or kill single system calls of a server that serves. They need strace.

func init() {
	if _, ok := os.LookupEnv(childEnv); ok {
		// A traced child lets itself be traced by a process that is not its parent.
		if err := unix.Prctl(unix.PR_SET_PTRACER, unix.PR_SET_PTRACER_ANY, 0, 0, 0); err != nil && err != unix.EINVAL {
			panic(err)
		}
	}
}

// attach begins to trace a server that is running. What the server does from here on is counted thread by
// thread, and with threadEnv the handler stays on one thread.
func attach(t *testing.T, c *stdiotest.Client, trace string, args ...string) (detach func()) {
	t.Helper()
	args = append([]string{"-f", "-p", fmt.Sprint(c.PID()), "-o", trace}, args...)
	cmd := exec.Command("strace", args...)
	stderr, err := cmd.StderrPipe()
	must(t, err)
	must(t, cmd.Start())
	said := bufio.NewReader(stderr)
	if line, err := said.ReadString('\n'); err != nil || !strings.Contains(line, "attached") {
		t.Fatalf("strace: %q %v", line, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			if _, err := said.ReadString('\n'); err != nil {
				break
			}
		}
		_ = cmd.Wait()
	}()
	detach = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
	}
	t.Cleanup(detach)
	return detach
}

const savingCalls = "trace=openat,openat2,write,fchmod,fsync,linkat,close,flock"

// faulty runs one save on a server in which one system call of the handler fails, and then asks what the
// ledger says, by saving again after the fault.
func faulty(t *testing.T, fault string) (first, second answer, report string) {
	t.Helper()
	d := newDesk(t)
	c := d.start(threadEnv + "=" + ToolSave)
	c.Tools()
	detach := attach(t, c, os.DevNull, "-e", savingCalls, "-e", "inject="+fault)
	arguments := saving("a.md", "content", d.grant("a.md", "content"))
	first = ask(t, c, ToolSave, arguments)
	detach()
	second = ask(t, c, ToolSave, arguments)
	content, err := os.ReadFile(d.path("reports", "a.md"))
	if err == nil {
		report = string(content)
	}
	return first, second, report
}

// CHECKS 84, 85, SPEC D8: over MCP, with the calls of the ledger before those of the workspace. The status is
// never ok and never rejected, and a second try has no effect.
func TestFaults_StatusIsTruthful(t *testing.T) {
	const nothing, whole = "", "content"
	for _, test := range []struct {
		fault  string // the n-th call of that name in the handler
		what   string
		status string
		report string
	}{
		{"openat:error=ENOSPC:when=3", "create the ledger entry", StatusFailed, nothing},
		{"write:error=ENOSPC:when=1", "write the ledger entry", StatusFailed, nothing},
		{"fsync:error=EIO:when=1", "sync the ledger entry", StatusFailed, nothing},
		{"fsync:error=EIO:when=2", "sync the ledger", StatusFailed, nothing},
		{"close:error=EIO:when=1", "close the ledger entry", StatusFailed, nothing},
		{"openat:error=ENOSPC:when=4", "create the draft", StatusFailed, nothing},
		{"openat:error=EIO:when=4", "create the draft", StatusFailed, nothing},
		{"write:error=ENOSPC:when=2", "write the draft", StatusFailed, nothing},
		{"write:error=EIO:when=2", "write the draft", StatusFailed, nothing},
		{"fsync:error=EIO:when=3", "sync the draft", StatusFailed, nothing},
		{"fsync:error=ENOSPC:when=3", "sync the draft", StatusFailed, nothing},
		{"linkat:error=EIO:when=1", "link", StatusResultUnknown, nothing},
		{"linkat:error=ENOSPC:when=1", "link", StatusResultUnknown, nothing},
		{"linkat:error=EEXIST:when=1", "link", StatusRejected, nothing},
		{"fsync:error=EIO:when=4", "sync the folder", StatusResultUnknown, whole},
		{"fsync:error=ENOSPC:when=4", "sync the folder", StatusResultUnknown, whole},
		{"close:error=EIO:when=2", "close the report", StatusResultUnknown, whole},
		{"openat2:error=EIO:when=1", "read back", StatusResultUnknown, whole},
	} {
		t.Run(strings.ReplaceAll(test.fault+" "+test.what, " ", "_"), func(t *testing.T) {
			first, second, report := faulty(t, test.fault)
			if first.Status != test.status || report != test.report {
				t.Errorf("%v, report %q; want %s, %q", first, report, test.status, test.report)
			}
			if second.Status != StatusResultUnknown {
				t.Errorf("again: %v", second)
			}
		})
	}
}

// SPEC D5: whoever is killed between the ledger and the answer has either written under a spent
// candidate or not at all, and the next server has no second effect. Each save's calls are killed in turn.
func TestFaults_KilledAtEveryCall(t *testing.T) {
	for _, at := range []string{
		"flock:1", "openat:1", "openat:2", "openat:3", "write:1", "fchmod:1", "fsync:1", "close:1", "fsync:2",
		"openat:4", "write:2", "fchmod:2", "fsync:3", "linkat:1", "fsync:4", "close:2", "openat2:1", "close:3", "close:4",
	} {
		name, when, _ := strings.Cut(at, ":")
		d := newDesk(t)
		c := d.start(threadEnv + "=" + ToolSave)
		c.Tools()
		attach(t, c, os.DevNull, "-e", savingCalls, "-e", "inject="+name+":signal=KILL:when="+when)
		arguments := saving("a.md", "content", d.grant("a.md", "content"))
		c.Send(c.Line("9", "tools/call", json.RawMessage(`{"name":"save_report","arguments":`+arguments+`}`)))
		if code := c.Wait(); code != -1 {
			t.Errorf("%s: exit %d, not killed", at, code)
		}
		report, err := os.ReadFile(d.path("reports", "a.md"))
		written := err == nil
		if written && string(report) != "content" {
			t.Errorf("%s: a part of the report: %q", at, report)
		}
		spent := names(t, d.config.Ledger) != ""
		if written && !spent {
			t.Errorf("%s: written under a candidate that is not spent", at)
		}
		want := StatusOK // killed before anything was entered
		if spent {
			want = StatusResultUnknown
		}
		expect(t, d.start(), ToolSave, arguments, want)
	}
}

// CHECKS 11, SPEC D2: no system call of the server carries a refused name.
func TestFaults_RefusedNamesAreNeverOpened(t *testing.T) {
	d := newDesk(t)
	d.source("good.md", "x")
	c := d.start()
	c.Tools()
	trace := filepath.Join(t.TempDir(), "trace")
	detach := attach(t, c, trace, "-e", "trace=%file")
	for _, name := range []string{"../bad.md", "/etc/bad.md", "-bad.md", "bad.MD", `bad.md\n`, `bad\u0000.md`} {
		expect(t, c, ToolRead, `{"filename":"`+name+`"}`, StatusRejected)
		expect(t, c, ToolStatus, `{"filename":"`+name+`"}`, StatusRejected)
		expect(t, c, ToolSave, `{"filename":"`+name+`","content":"x","grant":"x"}`, StatusRejected)
	}
	expect(t, c, ToolRead, `{"filename":"good.md"}`, StatusOK)
	detach()
	text, err := os.ReadFile(trace)
	must(t, err)
	if strings.Contains(string(text), "bad") || !strings.Contains(string(text), "good.md") {
		t.Errorf("trace:\n%s", text)
	}
}

// CHECKS 20: over MCP, a file that grows between the examination and the read. strace delays the read; the file
// grows all the time until the answer is there.
func TestFaults_AGrowingFileIsRefused(t *testing.T) {
	d := newDesk(t)
	d.source("a.md", "begin ")
	path := d.path("sources", "a.md")
	c := d.start()
	c.Tools()
	attach(t, c, os.DevNull, "-P", path, "-e", "trace=read", "-e", "inject=read:delay_enter=300000:when=1")
	c.Send(c.Line("9", "tools/call", json.RawMessage(`{"name":"read_document","arguments":{"filename":"a.md"}}`)))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = f.Close() }()
		grow := time.NewTicker(5 * time.Millisecond)
		defer grow.Stop()
		for {
			select {
			case <-grow.C:
				if _, err := f.WriteString("x"); err != nil {
					t.Error(err)
				}
			case <-stop:
				return
			}
		}
	}()
	m, ok := c.Next()
	close(stop)
	<-stopped
	if !ok || !strings.Contains(string(m.Result), failedRead.Message) {
		t.Errorf("%s", m.Result)
	}
}

// The server says at its start which better calls are missing, and works without them.
func TestFaults_WorksWithoutTheBetterCalls(t *testing.T) {
	d := newDesk(t)
	d.source("a.md", "x")
	cmd := exec.Command("strace", "-f", "-o", os.DevNull, "-e", "trace=openat2", "-e", "inject=openat2:error=ENOSYS", os.Args[0])
	cmd.Env = []string{childEnv + "=" + d.file()}
	c := stdiotest.Start(t, cmd, stdiotest.Current)
	expect(t, c, ToolRead, `{"filename":"a.md"}`, StatusOK)
	expect(t, c, ToolSave, saving("a.md", "x", d.grant("a.md", "x")), StatusOK)
	must(t, os.Symlink("a.md", d.path("sources", "l.md")))
	expect(t, c, ToolRead, `{"filename":"l.md"}`, StatusFailed)
	if code := c.End(); code != 0 || !strings.Contains(c.Stderr(), "openat2 is missing") {
		t.Errorf("exit %d, stderr %s", code, c.Stderr())
	}
}
