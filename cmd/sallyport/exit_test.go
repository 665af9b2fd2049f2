package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/agent/embedded"
)

// That the state cannot be written is no failure of the run.
func TestInterrupted_ADiskThatIsFull(t *testing.T) {
	full := &embedded.StoreError{Path: "/s/state.db", Doing: "append to", Remedy: "the disk is full; free some space, then resume the run", Err: errors.New("full")}
	d := &desk{run: "r", more: "--state /s"}
	err := d.interrupted(agent.Run{ID: "r", State: agent.StateModel}, fmt.Errorf("serve: %w", full))
	code, next := codeOf(err)
	if code != exitFailed || !strings.Contains(err.Error(), "the run has not failed, its state could not be written: ") || !strings.HasSuffix(next, "resume r --state /s") {
		t.Errorf("%d, %v, %q", code, err, next)
	}
}

// A state directory that is closed to us is another matter than one on a bad disk.
func TestStateErr_Permission(t *testing.T) {
	for err, want := range map[error]string{
		&fs.PathError{Op: "open", Path: "/s", Err: fs.ErrPermission}: "if this one is yours: chmod",
		errors.New("a network file system"):                          "on a local disk",
	} {
		if code, next := codeOf(stateErr("/s", err)); code != exitUsage || !strings.Contains(next, want) {
			t.Errorf("%v: %d, %q", err, code, next)
		}
	}
}

// Ctrl-C while a write is in flight whose outcome then is unknown: it says so.
func TestRun_InterruptedWriteOfUnknownOutcome(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.write("sallyport.yaml", strings.Replace(u.read("sallyport.yaml"), "timeout: 60s", "timeout: 1s", 1))
	s := u.inFlight()
	s.enter(ctrlC)
	code, screen := s.end()
	if code != int(exitInterrupted) || !strings.Contains(screen, "the outcome of a write is unknown, and nothing is sent again") ||
		!strings.Contains(screen, "have it checked with: ") || !strings.Contains(screen, "resume r\n") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	u.answer()
	u.must(exitUnknown, "resume", "r")
}

// A scenario that is ended at once leaves no folder, and does not say otherwise.
func TestRun_ScenarioEndedAtOnce(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.write("stub/wait", "")
	u.write("scenario.yaml", "scenario: x\ntask: x\nexpect: {state: completed}\nmodel:\n  script:\n    - call: {tool: stub__get, args: {text: a}}\n    - say: done\n")
	for _, times := range []int{1, 2} {
		s := u.open("run", "scenario.yaml")
		u.until("the read reached the server", func() bool {
			data, err := os.ReadFile(u.path("stub", "calls"))
			return err == nil && strings.Contains(string(data), "get\n")
		})
		s.enter(ctrlC)
		s.see("Ctrl-C again ends at once")
		if times == 1 {
			u.answer()
		} else {
			s.enter(ctrlC)
		}
		code, screen := s.end()
		if code != int(exitInterrupted) || !strings.Contains(strings.ToLower(screen), "folder") || !strings.Contains(screen, "removed") || strings.Contains(screen, "resume") {
			t.Errorf("%d times: exit code %d\n%s", times, code, screen)
		}
		if left, err := os.ReadDir(u.path("tmp")); err != nil || len(left) > 0 {
			t.Errorf("%d times: %v, %v is left", times, left, err)
		}
		u.until("the server ended", func() bool { return len(processesNaming(u.path("stub"))) == 0 })
		_ = os.Remove(u.path("stub", "calls"))
		u.write("stub/wait", "")
	}
}
