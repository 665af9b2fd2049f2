package main

import (
	"bufio"
	"io"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// closedAfter runs a command whose stdout and stderr are one pipe that nobody reads
// after so many lines, as with `| head`, and returns its exit code. then, if set, is
// called when the pipe is closed.
func (u *user) closedAfter(lines int, then func(), args ...string) int {
	u.t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		u.t.Fatal(err)
	}
	cmd := u.command(args...)
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		u.t.Fatal(err)
	}
	_ = w.Close()
	for in := bufio.NewReader(io.LimitReader(r, 1<<20)); lines > 0; lines-- {
		if _, err := in.ReadString('\n'); err != nil {
			u.t.Fatal(err)
		}
	}
	_ = r.Close()
	if then != nil {
		then()
	}
	late := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	return exitCode(u.t, cmd.Wait())
}

// A reader that goes away ends nothing: the run is finished and cleaned up, and the
// exit code is its own.
func TestDemo_SurvivesABrokenPipe(t *testing.T) {
	for decide, want := range map[string]exit{"approve": exitOK, "reject": exitFailed} {
		for _, lines := range []int{0, 3} {
			u := newUser(t)
			if code := u.closedAfter(lines, nil, "demo", "--decide", decide); code != int(want) {
				t.Errorf("%s, %d lines: exit code %d, want %d", decide, lines, code, want)
			}
			if left, err := os.ReadDir(u.path("tmp")); err != nil || len(left) > 0 {
				t.Errorf("%s, %d lines: %v, %v is left", decide, lines, left, err)
			}
		}
	}
}

// A run of one's own goes on too, and leaves its answer in the journal.
func TestRun_SurvivesABrokenPipe(t *testing.T) {
	u := newUser(t)
	deskFor(u, "text")
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	if code := u.closedAfter(1, nil, "approve", "r", "--sha256", digest); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := u.must(exitOK, "show", "r").stdout; !strings.Contains(got, "completed") {
		t.Error(got)
	}
}

// Following is for a reader: without one it ends.
func TestJournal_FollowsForNobody(t *testing.T) {
	u := newUser(t)
	deskFor(u, "text")
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	code := u.closedAfter(1, func() { u.must(exitOK, "pause", "r") }, "journal", "r", "--follow")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// A tool server is not started with broken pipes ignored.
func TestRun_ServersHearOfBrokenPipes(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.write("server", "#!/bin/sh\ngrep SigIgn /proc/self/status > "+u.path("signals")+"\nexec "+stubPath(u)+" "+u.path("stub")+"\n")
	u.write("sallyport.yaml", strings.Replace(u.read("sallyport.yaml"), "command: ["+yamlText(stubPath(u))+", "+yamlText(u.path("stub"))+"]",
		"command: [sh, "+yamlText(u.path("server"))+"]", 1))
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	const pipe = 1 << 12 // of SIGPIPE, the 13th
	ignored := strings.TrimSpace(strings.TrimPrefix(u.read("signals"), "SigIgn:"))
	if mask, err := strconv.ParseUint(ignored, 16, 64); err != nil || mask&pipe != 0 {
		t.Errorf("the server ignores %s, %v", ignored, err)
	}
}
