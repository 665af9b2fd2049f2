package main

import (
	"strings"
	"testing"
	"time"

	"sallyport/agent"
)

// On a terminal erase asks, and only the word itself is a yes.
func TestErase_AsksOnATerminal(t *testing.T) {
	u := newUser(t)
	deskFor(u, "text")
	u.must(exitParked, "run", "task.yaml", "--no-input", "--id", "r")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	u.must(exitOK, "approve", "r", "--sha256", digest)
	for answer, code := range map[string]exit{"yes\n": exitDenied, ctrlD: exitDenied, ctrlC: exitInterrupted} {
		s := u.open("erase", "r", digest[:leastDigits])
		s.see("erase? ")
		s.enter(answer)
		if got, screen := s.end(); got != int(code) {
			t.Errorf("%q: exit code %d, want %d\n%s", answer, got, code, screen)
		}
	}
	if shown := u.must(exitOK, "audit", "r").stdout; !strings.Contains(shown, ", 0 erased,") {
		t.Errorf("something was erased:\n%s", shown)
	}
	s := u.open("erase", "r", "sha256:"+digest[:leastDigits]+"…")
	if screen := s.see("erase? "); !strings.Contains(screen, digest) || !strings.Contains(screen, "(checked)") {
		t.Errorf("it did not say what goes:\n%s", screen)
	}
	s.enter("erase\n")
	if code, screen := s.end(); code != 0 || !strings.Contains(screen, "erased "+digest) {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	if shown := u.must(exitOK, "audit", "r").stdout; !strings.Contains(shown, ", 1 erased,") {
		t.Errorf("nothing was erased:\n%s", shown)
	}
}

func TestDigits(t *testing.T) {
	full := strings.Repeat("0123456789abcdef", 4)
	for ref, want := range map[string]string{
		full: full, "sha256:" + full: full, agent.BodyRef{SHA256: full, Bytes: 7}.String(): full,
		full[:12]: full[:12], strings.ToUpper(full[:13]): full[:13], full[:12] + "…": full[:12],
		full[:11]: "", full + "0": "", "": "", "sha256:": "", "0123456789xy": "", "sha512:" + full: "",
	} {
		if got, err := digits(ref); got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", ref, got, err, want)
		}
	}
}

func TestFind_WantsOneBody(t *testing.T) {
	one, other := strings.Repeat("ab", 32), strings.Repeat("ab", 31)+"cd"
	found := mention(nil, "r", agent.BodyRef{SHA256: one, Bytes: 1}, agent.Entry{Seq: 1, Row: agent.RowStarted})
	found = mention(found, "r", agent.BodyRef{SHA256: one, Bytes: 1}, agent.Entry{Seq: 1, Row: agent.RowStarted})
	found = mention(found, "r", agent.BodyRef{SHA256: other, Bytes: 1}, agent.Entry{Seq: 2, Row: agent.RowChecked})
	found = mention(found, "r", agent.BodyRef{SHA256: one, Bytes: 1}, agent.Entry{Seq: 3, Row: agent.RowChecked})
	if len(found) != 2 || strings.Join(found[0].words, ", ") != "1 (started), 3 (checked)" {
		t.Errorf("found %d, the first is named by %q", len(found), found[0].words)
	}
}

func TestEndedBefore(t *testing.T) {
	now := time.Date(2026, 3, 31, 12, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"0s": now, "90m": now.Add(-90 * time.Minute), "0d": now, "30d": now.AddDate(0, 0, -30),
		"2026-03-31":             time.Date(2026, 3, 31, 0, 0, 0, 0, time.Local),
		now.Format(time.RFC3339): now,
		"":                       {},
		"-1s":                    {},
		"-1d":                    {},
		"1":                      {},
		"soon":                   {},
		"2026-02-30":             {},
		"2026-04-01":             {},
		"65536d":                 {},
		now.Add(time.Second).Format(time.RFC3339): {},
	} {
		got, err := endedBefore(text, now)
		code, _ := codeOf(err)
		switch {
		case want.IsZero() && code != exitUsage:
			t.Errorf("%q: %v, %v", text, got, err)
		case !want.IsZero() && (err != nil || !got.Equal(want)):
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
}
