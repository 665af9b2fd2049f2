package main

import (
	"os"
	"strings"
	"testing"
)

// unknown brings run r of the stub to an outcome that nobody knows.
func (u *user) unknown() {
	u.t.Helper()
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	u.write("stub/crash", "")
	digest := memberOf(u.t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	if got := u.must(exitUnknown, "approve", "r", "--sha256", digest); !strings.Contains(got.messages, "sallyport verify r") {
		u.t.Error(got.messages)
	}
	if err := os.Remove(u.path("stub", "crash")); err != nil {
		u.t.Fatal(err)
	}
}

func (u *user) journal() string { return u.must(exitOK, "journal", "r").stdout }

// What is not one of the three answers changes nothing, and without a terminal nothing
// is asked.
func TestVerify_AnythingElseChangesNothing(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.unknown()
	before := u.journal()
	got := u.must(exitUnknown, "verify", "r")
	for _, want := range []string{
		"argument text (text, 1 character, 1 byte)\n  │ b\n", "tool        put of server stub", ".text       b · 1 byte",
		"approved by ann", "sent        once, after 20", "came back   result_unknown (protocol_error), lost",
		"check 1     ", "undecided, no_read_back", "there is nobody to ask", "--not-applied",
	} {
		if !strings.Contains(got.messages, want) {
			t.Errorf("lacks %q:\n%s", want, got.messages)
		}
	}
	for _, typed := range []string{"yes\n", "Applied\n", "not_applied\n", "approve\n", "\n", ctrlD, "not  applied\n"} {
		s := u.open("verify", "r")
		s.see("what became of it? ")
		s.enter(typed)
		if code, screen := s.end(); code != int(exitUnknown) || !strings.Contains(screen, "nothing was changed") {
			t.Errorf("%q ended with %d\n%s", typed, code, screen)
		}
	}
	s := u.open("verify", "r")
	s.see("what became of it? ")
	s.enter("applied" + ctrlC)
	if code, screen := s.end(); code != int(exitInterrupted) {
		t.Errorf("Ctrl-C ended with %d\n%s", code, screen)
	}
	u.must(exitUsage, "verify", "r", "--applied", "--unknown")
	u.must(exitNoKey, "verify", "r", "--applied", "--as", "bob")
	if after := u.journal(); after != before {
		t.Errorf("the journal has changed:\n%s\nwas\n%s", after, before)
	}
}

// The word of an approver settles it, under the approver's name; the model goes on, and
// nothing is sent again.
func TestVerify_Applied(t *testing.T) {
	for name, answer := range map[string]func(*user){
		"asked": func(u *user) {
			s := u.open("verify", "r")
			s.see("what became of it? ")
			s.enter(" applied \n")
			if code, screen := s.end(); code != 0 || !strings.Contains(screen, "It was put.") {
				t.Errorf("ended with %d\n%s", code, screen)
			}
		},
		"flag": func(u *user) {
			if got := u.must(exitOK, "verify", "r", "--applied"); got.stdout != "It was put.\n" {
				t.Errorf("%q\n%s", got.stdout, got.messages)
			}
		},
		"served later": func(u *user) {
			u.must(exitOK, "verify", "r", "--applied", "--no-resume")
			u.must(exitDenied, "verify", "r", "--not-applied")
			u.must(exitOK, "resume", "r")
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			stubDesk(u)
			u.unknown()
			answer(u)
			if got := u.must(exitOK, "show", "r").stdout; !strings.Contains(got, "stub__put  ok ") || !strings.Contains(got, "settled") {
				t.Error(got)
			}
			if got := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout; !strings.Contains(got, `"origin":"approver","actor":"ann","event":"attest"`) {
				t.Error(got)
			}
			if n := u.puts(); n != 1 {
				t.Errorf("%d writes", n)
			}
			u.must(exitOK, "audit", "r")
			u.must(exitDenied, "verify", "r", "--applied")
		})
	}
}

// "Still unknown" is recorded, and stays; the evidence then names who said so.
func TestVerify_UnknownStays(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.unknown()
	for range 2 {
		if got := u.must(exitUnknown, "verify", "r", "--unknown"); !strings.Contains(got.messages, "undecided, by ann") {
			t.Error(got.messages)
		}
	}
	s := u.open("verify", "r")
	seen := s.see("what became of it? ")
	if !strings.Contains(seen, "said before") || !strings.Contains(seen, "unknown, by ann") {
		t.Errorf("the evidence does not say what was said before:\n%s", seen)
	}
	s.enter("unknown\n")
	if code, screen := s.end(); code != int(exitUnknown) {
		t.Errorf("ended with %d\n%s", code, screen)
	}
	if got := u.must(exitOK, "runs").stdout; !strings.Contains(got, "needs_verification") || !strings.Contains(got, "OUTCOME UNKNOWN") {
		t.Error(got)
	}
}

// After "not applied" the model may try again: as a new proposal that needs a grant of
// its own.
func TestVerify_AfterNotAppliedANewGrantIsNeeded(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.write("task.yaml", strings.Replace(u.read("task.yaml"), "    - say:", "    - expect_message: {status: failed, contains: a check found that it did not}\n      call: {tool: stub__put, args: {text: b}}\n    - say:", 1))
	u.unknown()
	if got := u.must(exitParked, "verify", "r", "--not-applied"); !strings.Contains(got.messages, "waits for approval of stub__put") {
		t.Error(got.messages)
	}
	if n := u.puts(); n != 1 {
		t.Errorf("%d writes before the new grant", n)
	}
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	u.must(exitOK, "approve", "r", "--sha256", digest)
	if n := u.puts(); n != 2 {
		t.Errorf("%d writes", n)
	}
	u.must(exitOK, "audit", "r")
}

// A question about an outcome is taken back when somebody else settles it.
func TestVerify_IsTakenBack(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.unknown()
	s := u.open("verify", "r")
	s.see("what became of it? ")
	u.must(exitOK, "verify", "r", "--applied")
	if code, screen := s.end(); code != int(exitDenied) || !strings.Contains(screen, "it has moved on") {
		t.Errorf("ended with %d\n%s", code, screen)
	}
}
