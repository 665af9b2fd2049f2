package main

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/vt"
)

// shown is what is on a terminal of 80 by 24, as an emulator has it.
func (s *terminalSession) shown() string {
	s.mu.Lock()
	written := s.screen.String()
	s.mu.Unlock()
	e := vt.NewEmulator(80, 24)
	drained := make(chan struct{})
	go func() { // ends when the emulator is closed; waited for below
		defer close(drained)
		for buf := make([]byte, 256); ; {
			if _, err := e.Read(buf); err != nil {
				return
			}
		}
	}()
	_, _ = e.WriteString(written) // it takes anything
	text := e.String()
	_ = e.InputPipe().(io.Closer).Close() // its own Close is not for two goroutines
	<-drained
	return text
}

// looks waits until the terminal shows all of the texts at once.
func (s *terminalSession) looks(u *user, texts ...string) {
	u.t.Helper()
	defer func() {
		if u.t.Failed() {
			u.t.Logf("the screen is\n%s", s.shown())
		}
	}()
	u.until("the screen shows "+strings.Join(texts, ", "), func() bool {
		text := s.shown()
		for _, want := range texts {
			if !strings.Contains(text, want) {
				return false
			}
		}
		return true
	})
}

// The screen looks and leaves everything as it was: the run, the servers, the terminal.
func TestDebugScreen_LooksAndLeavesEverythingAsItWas(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	journal, calls := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout, u.read("stub/calls")
	s := u.open("debug", "r")
	s.looks(u, "r  @ step ", "[awaiting_approval]", "read-only", "The model proposes a call of")
	s.enter("g")
	s.looks(u, "@ step 1/", "[model]", "do it")
	s.enter("nn2")
	s.looks(u, "tool, answers call_1_0", "The tool has answered.")
	s.enter(":approve\r")
	s.looks(u, "the screen only looks")
	s.enter("G")
	s.looks(u, "[awaiting_approval]")
	s.enter("q")
	code, written := s.end()
	if code != int(exitOK) || !strings.Contains(written, "Run r is left as it is: awaiting_approval") {
		t.Errorf("exit code %d\n%q", code, written)
	}
	for _, mode := range []string{"1049", "25", "2004"} {
		on, off := "\x1b[?"+mode+"h", "\x1b[?"+mode+"l"
		if mode == "25" {
			on, off = off, on
		}
		if strings.LastIndex(written, on) > strings.LastIndex(written, off) {
			t.Errorf("mode %s is left otherwise than it was found", mode)
		}
	}
	if u.must(exitOK, "journal", "r", "-o", "jsonl").stdout != journal || u.read("stub/calls") != calls {
		t.Errorf("something was done; called: %q", u.read("stub/calls"))
	}
}

// Acting is a command on the bare terminal, with the question as elsewhere; then the run
// goes on step by step.
func TestDebugScreen_ActsAsTheCommandsDo(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	s := u.open("debug", "r")
	s.looks(u, "[awaiting_approval]")
	s.enter(":act\r")
	s.looks(u, "ACTING")
	s.enter(":approve\r")
	s.see(asks)
	s.enter("approve\n")
	s.see("Enter goes back to the screen.")
	s.enter("\n")
	s.looks(u, "[execute]", "granted")
	s.enter("c")
	s.looks(u, "[completed]")
	if u.puts() != 1 {
		t.Errorf("%d writes", u.puts())
	}
	s.enter(":\x1b[A") // up: what was typed last
	s.looks(u, ":approve")
	s.enter("\x03q")
	if code, written := s.end(); code != int(exitOK) {
		t.Errorf("exit code %d\n%q", code, written)
	}
}

// A FILE's run is begun and held, and goes on step by step; what kills the screen leaves
// it as it is.
func TestDebugScreen_KilledLeavesTheRun(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	s := u.open("debug", "task.yaml", "--id", "r")
	s.looks(u, "@ step 2/2", "paused  ACTING")
	s.enter("sss")
	s.looks(u, "@ step 9/9", "[model]", "paused")
	before := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.end()
	if u.must(exitOK, "journal", "r", "-o", "jsonl").stdout != before {
		t.Error("the journal has changed")
	}
	u.must(exitParked, "resume", "r")
	u.must(exitOK, "approve", "r", "--sha256", u.digest())
	if u.puts() != 1 || u.reached("get") != 2 {
		t.Errorf("called: %q", u.read("stub/calls"))
	}
}

// Ctrl-C while a call is in flight says that it is waited for; then the screen is where
// the run is.
func TestDebugScreen_InterruptedStep(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	wait := u.write("stub/wait", "")
	s := u.open("debug", "task.yaml", "--id", "r")
	s.looks(u, "@ step 2/2", "paused  ACTING")
	s.enter("ss")
	u.until("the call is under way", func() bool {
		_, err := os.Stat(u.path("stub", "calls"))
		return err == nil
	})
	s.enter("\x03")
	s.looks(u, "a call that was sent already is waited for")
	if err := os.Remove(wait); err != nil {
		t.Fatal(err)
	}
	s.looks(u, "@ step 7/7", "[observe]")
	s.enter("q")
	if code, written := s.end(); code != int(exitOK) || u.reached("get") != 1 {
		t.Errorf("exit code %d\n%q", code, written)
	}
}

// Without a terminal there is no screen, and the flags that do not fit are refused.
func TestDebugScreen_NeedsATerminal(t *testing.T) {
	u := newUser(t)
	savingDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	if got := u.must(exitUsage, "debug", "r", "--tui"); !strings.Contains(got.messages, "next: leave --tui away") {
		t.Error(got.messages)
	}
	u.must(exitUsage, "debug", "r", "--tui", "--line")
	u.must(exitUsage, "debug", "r", "--act", "--read-only")
}
