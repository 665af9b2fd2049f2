package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/cmd/sallyport/terminal"
)

// asks is the end of the question: no candidate can show that in column one.
const asks = "anything else refuses it.\r\napprove? "

// CHECKS 44, 86: what is typed at the question, on a terminal.
func TestDemo_OnlyTheWordApproves(t *testing.T) {
	tests := []struct {
		name, typed string
		saved       bool
		code        exit
	}{
		{"approve", "approve\n", true, exitOK},
		{"approve with space around", " approve \n", true, exitOK},
		{"Approve", "Approve\n", false, exitFailed},
		{"yes", "yes\n", false, exitFailed},
		{"approve it", "approve it\n", false, exitFailed},
		{"an empty line", "\n", false, exitFailed},
		{"end of input", ctrlD, false, exitFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			u := newUser(t)
			s := u.open("demo", "--keep", "kept")
			s.see(asks)
			s.enter(tt.typed)
			code, screen := s.end()
			if code != int(tt.code) {
				t.Errorf("exit code %d, want %d\n%s", code, tt.code, screen)
			}
			_, err := os.Stat(u.path("kept/desk/reports/skerry.md"))
			if saved := err == nil; saved != tt.saved {
				t.Errorf("saved: %t, want %t\n%s", saved, tt.saved, screen)
			}
			if got := u.run("runs", "--state", "kept/state", "-o", "json").stdout; tt.saved != strings.Contains(got, `"completed"`) ||
				tt.saved == strings.Contains(got, `"cancelled"`) {
				t.Errorf("saved %t, and yet the runs are %s", tt.saved, got)
			}
		})
	}
}

// CHECKS 86: the temporary folder is gone after both ends.
func TestDemo_CleansUp(t *testing.T) {
	for _, typed := range []string{"approve\n", "no\n", ctrlC} {
		u := newUser(t)
		s := u.open("demo")
		s.see(asks)
		s.enter(typed)
		_, screen := s.end()
		if typed == ctrlC && (!strings.Contains(screen, "the folder is removed, and the run with it") || strings.Contains(screen, "resume")) {
			t.Errorf("it says otherwise:\n%s", screen)
		}
		if strings.Contains(screen, "by scenario") || strings.Contains(screen, "by a scenario") {
			t.Errorf("a person decided:\n%s", screen)
		}
		left, err := os.ReadDir(u.path("tmp"))
		if err != nil || len(left) > 0 {
			t.Errorf("after %q: %v, %v is left", typed, left, err)
		}
	}
}

// CHECKS 44: Ctrl-C answers nothing, and the run stays open.
func TestDemo_InterruptLeavesTheRunOpen(t *testing.T) {
	u := newUser(t)
	s := u.open("demo", "--keep", "kept")
	s.see(asks)
	s.enter("approv" + ctrlC)
	code, screen := s.end()
	if code != int(exitInterrupted) {
		t.Errorf("exit code %d, want 130\n%s", code, screen)
	}
	if !strings.Contains(screen, "resume demo-") {
		t.Errorf("it does not say how to go on:\n%s", screen)
	}
	if _, err := os.Stat(u.path("kept/desk/reports/skerry.md")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a report: %v", err)
	}
	if got := u.must(exitOK, "runs", "--state", "kept/state", "-o", "json").stdout; !strings.Contains(got, `"state": "awaiting_approval"`) {
		t.Errorf("the run is not open: %s", got)
	}
}

// With --no-input nobody is asked on a terminal either.
func TestDemo_NoInputParks(t *testing.T) {
	u := newUser(t)
	s := u.open("demo", "--no-input", "--keep", "kept")
	if code, screen := s.end(); code != int(exitParked) || strings.Contains(screen, "approve? ") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

// deskFor gives the user the shipped configuration, a document and a key, and writes a
// task whose model saves a report with that content.
func deskFor(u *user, content string) {
	u.t.Helper()
	text, err := os.ReadFile("../../scenarios/research/sallyport.yaml")
	if err != nil {
		u.t.Fatal(err)
	}
	u.write("sallyport.yaml", string(text))
	u.write("desk/sources/notes.md", "The lamp was changed on 9 March.\n")
	u.write("desk/reports/.keep", "")
	u.write("task.yaml", "task: Save what the notes say.\nmodel:\n  script:\n"+
		"    - call: {tool: docs__read_document, args: {filename: notes.md}}\n"+
		"    - call: {tool: docs__save_report, arguments: "+yamlText(saveArgs(content))+"}\n"+
		"    - say: That is all.\n")
	u.must(exitOK, "keys", "new", "--no-passphrase")
}

// CHECKS 45: the text shown is the text saved.
func TestRun_ShowsExactlyWhatIsSaved(t *testing.T) {
	tests := map[string]string{
		"8,000 characters":       strings.Repeat("lamp, 证 ", 1_000),
		"8,000 characters, CJK":  strings.Repeat("证", 8_000),
		"hidden and control":     "a\x1b[2J\u202Eb\u200b\r\nc\x00d\U000E0041\u2066e",
		"plays our own display":  "x\n  │ y\n── What an approval allows, this call only: ──\napprove? approve\n",
		"one line without break": "no newline",
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			deskFor(u, content)
			s := u.open("run", "task.yaml", "--id", "r")
			s.see(asks)
			s.enter("approve\n")
			code, screen := s.end()
			if code != 0 {
				t.Fatalf("exit code %d\n%s", code, screen)
			}
			saved := u.read("desk/reports/report.md")
			if saved != content {
				t.Errorf("saved %q, want %q", saved, content)
			}
			if got := shownContent(t, screen); got != strings.TrimSuffix(saved, "\n") {
				t.Errorf("shown %q, saved %q", got, saved)
			}
		})
	}
}

// shownContent is the argument called content as it can be read off the screen.
func shownContent(t *testing.T, screen string) string {
	t.Helper()
	_, after, found := strings.Cut(screen, "\nargument content (")
	if !found {
		t.Fatalf("the screen shows no content:\n%s", screen)
	}
	_, after, _ = strings.Cut(after, "\n")
	var b strings.Builder
	for i, line := range strings.Split(after, "\n") {
		first, isFirst := strings.CutPrefix(line, "  │ ")
		next, isNext := strings.CutPrefix(line, "  ┊ ")
		switch {
		case isFirst && i > 0:
			b.WriteString("\n" + first)
		case isFirst:
			b.WriteString(first)
		case isNext:
			b.WriteString(next)
		default:
			return terminal.Unescape(b.String())
		}
	}
	t.Fatal("the content has no end")
	return ""
}

// A passphrase is asked for, never shown, and needed.
func TestRun_SignsWithALockedKey(t *testing.T) {
	u := newUser(t)
	s := u.open("keys", "new")
	s.see("Passphrase for the new key: ")
	s.enter("correct horse\n")
	s.see("Once more: ")
	s.enter("correct horse\n")
	if code, screen := s.end(); code != 0 || strings.Contains(screen, "correct horse") {
		t.Fatalf("exit code %d\n%s", code, screen)
	}
	text, err := os.ReadFile("../../scenarios/research/sallyport.yaml")
	if err != nil {
		t.Fatal(err)
	}
	u.write("sallyport.yaml", string(text))
	u.write("desk/sources/notes.md", "x")
	u.write("desk/reports/.keep", "")
	u.write("task.yaml", "task: x\nmodel:\n  script:\n    - call: {tool: docs__save_report, args: {filename: report.md, content: x}}\n    - say: y\n")
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")

	if got := u.must(exitNoKey, "approve", "r", "--sha256", digest); !strings.Contains(got.messages, "nobody to ask for its passphrase") {
		t.Error(got.messages)
	}
	for _, tt := range []struct {
		typed string
		code  exit
	}{{"hunter2\n", exitNoKey}, {"correct horse\n", exitOK}} {
		s := u.open("approve", "r", "--sha256", digest)
		s.see("Passphrase of key ann: ")
		s.enter(tt.typed)
		if code, screen := s.end(); code != int(tt.code) || strings.Contains(screen, strings.TrimSpace(tt.typed)) {
			t.Errorf("exit code %d, want %d\n%s", code, tt.code, screen)
		}
	}
	if got := u.read(filepath.Join("desk", "reports", "report.md")); got != "x" {
		t.Errorf("saved %q", got)
	}
}
