package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sallyport/agent"
)

// serviceProcess is `serve -o jsonl` as a process.
type serviceProcess struct {
	t   *testing.T
	cmd *exec.Cmd

	mu       sync.Mutex
	grown    *sync.Cond
	lines    []served
	late     bool
	over     bool
	read     chan struct{}
	messages strings.Builder
}

// serve starts the service; env is added to its environment.
func (u *user) serve(env []string, args ...string) *serviceProcess {
	u.t.Helper()
	s := &serviceProcess{t: u.t, cmd: u.command(append([]string{"serve", "-o", "jsonl"}, args...)...), read: make(chan struct{})}
	s.grown = sync.NewCond(&s.mu)
	s.cmd.Env = append(s.cmd.Env, env...)
	s.cmd.Stderr = &s.messages
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		u.t.Fatal(err)
	}
	go s.take(out) // ends with the process
	u.t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.read
	})
	s.until("it serves", func(l served) bool { return l.Event == "serving" })
	return s
}

func (s *serviceProcess) take(out io.Reader) {
	defer close(s.read)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var l served
		err := json.Unmarshal(lines.Bytes(), &l)
		s.mu.Lock()
		if err != nil {
			s.t.Errorf("%v: %s", err, lines.Text())
		}
		s.lines = append(s.lines, l)
		s.grown.Broadcast()
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.over = true
	s.grown.Broadcast()
	s.mu.Unlock()
}

// until waits until a line is told.
func (s *serviceProcess) until(what string, is func(served) bool) served {
	s.t.Helper()
	var found served
	s.count(what, 1, func(l served) bool {
		if is(l) {
			found = l
			return true
		}
		return false
	})
	return found
}

// count waits until n such lines are told.
func (s *serviceProcess) count(what string, n int, is func(served) bool) {
	s.t.Helper()
	timer := time.AfterFunc(2*limit, func() {
		s.mu.Lock()
		s.late = true
		s.grown.Broadcast()
		s.mu.Unlock()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if got := len(s.such(is)); got >= n {
			return
		}
		if s.over || s.late {
			s.t.Fatalf("%s: %d of %d\n%v\n%s", what, len(s.such(is)), n, s.lines, &s.messages)
		}
		s.grown.Wait()
	}
}

func (s *serviceProcess) such(is func(served) bool) []served {
	return slices.DeleteFunc(slices.Clone(s.lines), func(l served) bool { return !is(l) })
}

// end sends a signal and waits; it returns the exit code.
func (s *serviceProcess) end(with os.Signal) int {
	s.t.Helper()
	s.signal(with)
	return s.wait()
}

func (s *serviceProcess) signal(with os.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(with); err != nil {
		s.t.Fatal(err)
	}
}

func (s *serviceProcess) wait() int {
	s.t.Helper()
	late := time.AfterFunc(limit, func() { _ = s.cmd.Process.Kill() })
	defer late.Stop()
	<-s.read
	return exitCode(s.t, s.cmd.Wait())
}

func completes(l served) bool { return l.State == agent.StateCompleted }

// eachOf does something for each of many at once, a few at a time.
func eachOf(n int, do func(i int)) {
	var all sync.WaitGroup
	turns := make(chan struct{}, 4)
	for i := range n {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			do(i)
		})
	}
	all.Wait()
}

// Fifty runs wait; they are approved from other processes, while the service is told to
// end in the middle of it, while there is none, and while the next one is there.
func TestServe_FiftyRunsApprovedAcrossATermination(t *testing.T) {
	const runs = 50
	u := newUser(t)
	deskFor(u, "")
	name := func(i int) string { return fmt.Sprintf("r%02d", i) }
	eachOf(runs, func(i int) {
		u.write(name(i)+".yaml", "task: save\nmodel: {script: [{call: {tool: docs__save_report, args: {filename: "+
			name(i)+".md, content: text of "+name(i)+"}}}, {say: done}]}\n")
		if e := u.run("run", name(i)+".yaml", "--no-input", "--id", name(i)); e.code != int(exitParked) {
			t.Errorf("run %s: exit code %d\n%s", name(i), e.code, e.messages)
		}
	})
	var waiting []pendingRow
	for line := range strings.Lines(u.must(exitOK, "approvals", "-o", "jsonl").stdout) {
		var p pendingRow
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, p)
	}
	if len(waiting) != runs {
		t.Fatalf("%d candidates wait", len(waiting))
	}
	approve := func(p pendingRow) {
		if e := u.run("approve", p.Run, "--sha256", p.SHA256, "--no-resume"); e.code != int(exitOK) {
			t.Errorf("approve %s: exit code %d\n%s", p.Run, e.code, e.messages)
		}
	}

	first := u.serve(nil)
	var approving sync.WaitGroup
	approving.Go(func() { eachOf(35, func(i int) { approve(waiting[i]) }) }) // waited for below
	first.count("some complete", 10, completes)
	if code := first.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d after SIGTERM\n%s", code, &first.messages)
	}
	approving.Wait()
	before := len(first.such(completes))
	if before == runs {
		t.Error("all had completed before the termination")
	}
	second := u.serve(nil)
	eachOf(runs-35, func(i int) { approve(waiting[35+i]) })
	second.count("all complete", runs-before, completes)
	if code := second.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d after SIGTERM\n%s", code, &second.messages)
	}

	for i := range runs {
		saved, err := os.ReadFile(u.path("desk/reports", name(i)+".md"))
		if err != nil || string(saved) != "text of "+name(i) {
			t.Errorf("%s: saved %q, %v\n%s", name(i), saved, err, u.run("journal", name(i)).stdout)
		}
	}
	found, err := os.ReadDir(u.path("desk/reports"))
	if err != nil || len(found) != runs+1 { // and .keep
		t.Errorf("%d files, %v", len(found), err)
	}
	rows := u.must(exitOK, "audit", "-o", "jsonl").stdout
	if n := strings.Count(rows, `"sends":1,"writes":1,`); n != runs {
		t.Errorf("%d of %d runs were sent one write:\n%s", n, runs, rows)
	}
	checkToldOnce(t, slices.Concat(first.lines, second.lines))
}

// checkToldOnce: no transition is told twice, and those of a run are in order.
func checkToldOnce(t *testing.T, lines []served) {
	t.Helper()
	last := map[string]int64{}
	for _, l := range lines {
		if l.Event != "transition" {
			continue
		}
		if before, told := last[l.Run]; told && l.Seq <= before {
			t.Errorf("run %s: entry %d is told after %d", l.Run, l.Seq, before)
		}
		last[l.Run] = l.Seq
	}
}

// What is in flight when the service is told to end is waited for, and is no unknown
// outcome.
func TestServe_WaitsForACallInFlight(t *testing.T) {
	for with, code := range map[os.Signal]int{syscall.SIGTERM: 0, os.Interrupt: 130} {
		t.Run(with.String(), func(t *testing.T) {
			u := newUser(t)
			deskFor(u, "text")
			u.write(orders+"/calls", "")
			u.must(exitParked, "run", "task.yaml", "--no-input", "--id", "r")
			u.write(orders+"/hold", saveTool+" done")
			s := u.serve(nil)
			digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
			u.must(exitOK, "approve", "r", "--sha256", digest, "--no-resume")
			s.until("the call is sent", func(l served) bool { return l.Row == agent.RowChecked })
			u.until("its answer is held", func() bool {
				_, err := os.Stat(u.path(orders, "held"))
				return err == nil
			})
			s.signal(with)
			s.until("it is ending", func(l served) bool { return l.Event == "stopping" })
			if err := os.Remove(u.path(orders, "hold")); err != nil {
				t.Fatal(err)
			}
			if got := s.wait(); got != code {
				t.Errorf("exit code %d, want %d\n%s", got, code, &s.messages)
			}
			journal := u.must(exitOK, "journal", "r").stdout
			if !strings.Contains(journal, " returned ") || strings.Contains(journal, "outcome_unknown") || strings.Contains(journal, "result_unknown") {
				t.Errorf("the journal holds:\n%s", journal)
			}
			u.must(exitOK, "resume", "r")
			if n := strings.Count(u.read(orders+"/calls"), saveTool+"\n"); n != 1 {
				t.Errorf("%d saves reached the server", n)
			}
		})
	}
}

// A run that cannot be gone on with is reported; the others go on.
func TestServe_SetsAsideARunThatFails(t *testing.T) {
	u := newUser(t)
	deskFor(u, "text")
	u.write("bad.yaml", "task: x\nmodel: {script: [{call: {tool: docs__read_document, args: {filename: notes.md}}}]}\n")
	u.must(exitUsage, "run", "bad.yaml", "--id", "bad")
	u.must(exitParked, "run", "task.yaml", "--no-input", "--id", "good")
	s := u.serve(nil)
	if l := s.until("it is set aside", func(l served) bool { return l.Event == "set_aside" }); l.Run != "bad" || l.Error == "" {
		t.Errorf("set aside: %+v", l)
	}
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	u.must(exitOK, "approve", "good", "--sha256", digest, "--no-resume")
	s.until("the other completes", completes)
	u.must(exitOK, "cancel", "bad")
	s.until("the cancel is told", func(l served) bool { return l.Run == "bad" && l.State == agent.StateCancelled })
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, &s.messages)
	}
}

// Nobody decides in time: the service finds so by its clock.
func TestServe_ExpiresWhatNobodyDecides(t *testing.T) {
	u := newUser(t)
	deskFor(u, "text")
	u.must(exitParked, "run", "task.yaml", "--no-input", "--id", "r")
	s := u.serve([]string{clockVariable + "=25h"})
	s.until("it expires", func(l served) bool { return l.Row == agent.RowExpired })
	s.until("it goes on", completes)
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, &s.messages)
	}
}

// The command is told of a candidate by what names it, and of nothing else.
func TestServe_NotifiesWhoMustDecide(t *testing.T) {
	u := newUser(t)
	deskFor(u, "SECRET-CONTENT")
	tell := u.write("tell.sh", "#!/bin/sh\nenv >\"$1.new\" && mv \"$1.new\" \"$1\"\necho told >&2\nexit 3\n")
	if err := os.Chmod(tell, 0o700); err != nil {
		t.Fatal(err)
	}
	u.must(exitUsage, "serve", "--notify", "./no-such-program")
	u.must(exitUsage, "serve", "--notify", " ")
	s := u.serve([]string{"API_TOKEN=SECRET-TOKEN"}, "--notify", "./tell.sh told")
	u.must(exitParked, "run", "task.yaml", "--no-input", "--id", "r")
	failed := s.until("its failure is told", func(l served) bool { return l.Event == "notify_failed" })
	if failed.Run != "r" || failed.Error != "notify: exit status 3: told" {
		t.Errorf("told: %+v", failed)
	}
	told := u.read("told")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	for _, want := range []string{"SALLYPORT_RUN=r\n", "SALLYPORT_TOOL=docs__save_report\n", "SALLYPORT_SHA256=" + digest + "\n", "SALLYPORT_DEADLINE=20"} {
		if !strings.Contains(told, want) {
			t.Errorf("it was not told %q:\n%s", want, told)
		}
	}
	if strings.Contains(told, "SECRET") {
		t.Errorf("it was told:\n%s", told)
	}
	u.must(exitOK, "approve", "r", "--sha256", digest, "--no-resume")
	s.until("it completes", completes)
	if code := s.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d\n%s", code, &s.messages)
	}
	if n := len(s.such(func(l served) bool { return l.Event == "notify_failed" })); n != 1 {
		t.Errorf("it was notified %d times", n)
	}
}

func TestNotifier_IsBoundedInTimeAndNumber(t *testing.T) {
	const many = notifyAtOnce + notifyQueued + 10
	failures := make(chan string, 1+many)
	n, err := newNotifier("sleep 60", func(_ string, err error) { failures <- err.Error() })
	if err != nil {
		t.Fatal(err)
	}
	n.limit = 100 * time.Millisecond
	n.waits(pendingRow{Run: "r"})
	if got, want := <-failures, "notify: it was ended after 100ms"; got != want {
		t.Errorf("told %q, want %q", got, want)
	}
	began := time.Now()
	for range many {
		n.waits(pendingRow{Run: "r"})
	}
	n.close()
	if took := time.Since(began); took > limit/2 {
		t.Errorf("it took %s to end", took)
	}
	close(failures)
	told := map[string]int{}
	for f := range failures {
		told[f]++
	}
	if got := told["notify: 256 commands wait already"]; got < 10 || got > 10+notifyAtOnce {
		t.Errorf("told: %v", told)
	}
}
