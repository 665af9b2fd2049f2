package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/scenarios"
)

// saveArgs is the argument text of a save.
func saveArgs(content string) string {
	data, err := json.Marshal(map[string]string{"filename": "report.md", "content": content})
	if err != nil {
		panic(err) // two strings
	}
	return string(data)
}

// yamlText quotes a text for YAML: JSON is YAML.
func yamlText(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // a string
	}
	return string(data)
}

// memberOf is the first string member of that name in JSON text.
func memberOf(t *testing.T, text, name string) string {
	t.Helper()
	_, after, found := strings.Cut(text, `"`+name+`": "`)
	value, _, ended := strings.Cut(after, `"`)
	if !found || !ended {
		t.Fatalf("no member %q in %s", name, text)
	}
	return value
}

// A run parks in one process, is approved in a second and resumed in a third: one
// send, no verification, exactly the approved bytes, mode 0600.
func TestRun_ParkedApprovedResumedByThreeProcesses(t *testing.T) {
	const content = "# Report\n\nThe lamp was changed on 9 March.\n"
	u := newUser(t)
	deskFor(u, content)
	parked := u.must(exitParked, "run", "task.yaml", "--decide", "wait", "--id", "r")
	if parked.stdout != "" || !strings.Contains(parked.messages, "approve r --sha256 ") {
		t.Errorf("parked with %q and\n%s", parked.stdout, parked.messages)
	}
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	if got := u.must(exitParked, "approve", "r"); !strings.Contains(got.messages, "there is nobody to ask, and no --sha256") {
		t.Error(got.messages)
	}
	u.must(exitDenied, "approve", "r", "--sha256", strings.Repeat("0", 64))
	if got := u.must(exitOK, "approve", "r", "--sha256", digest, "--no-resume"); !strings.Contains(got.messages, "  │ The lamp was changed on 9 March.\n") {
		t.Errorf("approve did not show the candidate:\n%s", got.messages)
	}
	if _, err := os.Stat(u.path("desk/reports/report.md")); err == nil {
		t.Error("it was saved although nobody served the run")
	}
	if got := u.must(exitOK, "resume", "r"); got.stdout != "That is all.\n" {
		t.Errorf("resumed: %q\n%s", got.stdout, got.messages)
	}
	info, err := os.Stat(u.path("desk/reports/report.md"))
	if err != nil || info.Mode().Perm() != 0o600 || u.read("desk/reports/report.md") != content {
		t.Errorf("saved as %v, %v: %q", info, err, u.read("desk/reports/report.md"))
	}
	journal := u.must(exitOK, "journal", "r").stdout
	if n := strings.Count(journal, " checked "); n != 2 { // the read and the save
		t.Errorf("%d intents:\n%s", n, journal)
	}
	for _, not := range []string{"outcome_unknown", "settled"} {
		if strings.Contains(journal, not) {
			t.Errorf("the journal has %q:\n%s", not, journal)
		}
	}
	u.must(exitDenied, "approve", "r", "--sha256", digest)
}

// While a run waits at its question in one terminal, approve in another finishes it.
func TestRun_WaitsInOneTerminalApprovedInAnother(t *testing.T) {
	for _, more := range [][]string{nil, {"--no-resume"}} {
		u := newUser(t)
		deskFor(u, "text")
		waiting := u.open("run", "task.yaml", "--id", "r")
		waiting.see(asks)
		digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
		u.must(exitOK, append([]string{"approve", "r", "--sha256", digest}, more...)...)
		code, screen := waiting.end()
		if code != 0 || !strings.Contains(screen, "The question is taken back") || !strings.Contains(screen, "That is all.") {
			t.Errorf("approve %q: the waiting run ended with %d\n%s", more, code, screen)
		}
		if got := u.read("desk/reports/report.md"); got != "text" {
			t.Errorf("saved %q", got)
		}
		if n := strings.Count(u.must(exitOK, "journal", "r").stdout, " checked "); n != 2 {
			t.Errorf("%d intents", n)
		}
	}
}

// Both terminals ask: the first answer counts, the other question is taken back.
func TestApprove_AsksOnATerminalToo(t *testing.T) {
	u := newUser(t)
	deskFor(u, "text")
	waiting := u.open("run", "task.yaml", "--id", "r")
	waiting.see(asks)
	second := u.open("approve", "r")
	second.see(asks)
	second.enter("approve\n")
	if code, screen := second.end(); code != 0 {
		t.Errorf("approve ended with %d\n%s", code, screen)
	}
	if code, screen := waiting.end(); code != 0 || !strings.Contains(screen, "The question is taken back") {
		t.Errorf("run ended with %d\n%s", code, screen)
	}
}

// What was typed before the question does not answer it.
func TestRun_TypedAheadIsNoAnswer(t *testing.T) {
	u := newUser(t)
	deskFor(u, "text")
	s := u.open("run", "task.yaml", "--id", "r")
	s.enter("approve\n")
	s.see(asks)
	s.enter("no\n")
	if code, screen := s.end(); code != 0 || !strings.Contains(screen, "refused") {
		t.Errorf("ended with %d\n%s", code, screen)
	}
	if _, err := os.Stat(u.path("desk/reports/report.md")); err == nil {
		t.Error("it was saved")
	}
}

// A refusal, signed or not, lets the run go on without the call.
func TestReject(t *testing.T) {
	tests := []struct {
		more []string
		by   string
	}{{nil, "ann"}, {[]string{"--signed"}, "ann"}, {[]string{"--as", "ann"}, "ann"}}
	for _, tt := range tests {
		u := newUser(t)
		deskFor(u, "text")
		u.must(exitParked, "run", "task.yaml", "--id", "r")
		got := u.must(exitOK, append([]string{"reject", "r"}, tt.more...)...)
		if !strings.Contains(got.messages, "  │ text\n") || got.stdout != "That is all.\n" {
			t.Errorf("reject %q: %q\n%s", tt.more, got.stdout, got.messages)
		}
		origin := map[bool]string{true: `"origin":"operator"`, false: `"origin":"approver"`}[tt.more == nil]
		journal := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout
		if !strings.Contains(journal, origin+`,"actor":"`+tt.by+`","event":"refuse"`) {
			t.Errorf("reject %q is recorded otherwise:\n%s", tt.more, journal)
		}
		if _, err := os.Stat(u.path("desk/reports/report.md")); err == nil {
			t.Error("it was saved")
		}
		u.must(exitDenied, "approve", "r", "--sha256", strings.Repeat("0", 64))
	}
}

func TestPauseResumeCancel(t *testing.T) {
	u := newUser(t)
	deskFor(u, "text")
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	u.must(exitOK, "pause", "r")
	u.must(exitDenied, "pause", "r")
	if got := u.must(exitOK, "runs").stdout; !strings.Contains(got, "awaiting_approval (paused)") {
		t.Error(got)
	}
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	if got := u.must(exitParked, "approve", "r", "--sha256", digest); !strings.Contains(got.messages, "is paused") {
		t.Error(got.messages)
	}
	u.must(exitOK, "resume", "r")
	if got := u.read("desk/reports/report.md"); got != "text" {
		t.Errorf("saved %q", got)
	}

	u.must(exitParked, "run", "task.yaml", "--id", "s")
	u.must(exitOK, "cancel", "s")
	u.must(exitDenied, "cancel", "s")
	if got := u.must(exitFailed, "resume", "s"); !strings.Contains(got.messages, "has ended already") {
		t.Error(got.messages)
	}
	if got := u.must(exitOK, "show", "s").stdout; !strings.Contains(got, "cancelled") {
		t.Error(got)
	}
}

// Beginning an id twice is once; with another task it is refused.
func TestRun_IDTwiceIsOnce(t *testing.T) {
	u := newUser(t)
	deskFor(u, "text")
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	if got := u.must(exitOK, "journal", "r").stdout; strings.Count(got, " started ") != 1 {
		t.Error(got)
	}
	u.write("task.yaml", strings.Replace(u.read("task.yaml"), "Save what", "Save all that", 1))
	if got := u.must(exitUsage, "run", "task.yaml", "--id", "r"); !strings.Contains(got.messages, "the run id is taken") {
		t.Error(got.messages)
	}
}

// A journal that was changed from outside is named, with exit code 8.
func TestJournal_NamesABreak(t *testing.T) {
	u := newUser(t)
	deskFor(u, "text")
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	store := u.path("state/sallyport/state.db")
	data, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.ReplaceAll(string(data), `"tool":"docs__read_document"`, `"tool":"docs__save_report__"`[:len(`"tool":"docs__read_document"`)])
	if changed == string(data) {
		t.Fatal("the journal is not where this test looks for it")
	}
	if err := os.WriteFile(store, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"journal", "r"}, {"show", "r"}, {"resume", "r"}} {
		if got := u.must(exitIntegrity, args...); !strings.Contains(got.messages, "journal integrity") {
			t.Error(got.messages)
		}
	}
}

// CHECKS 98: the chain of each call is rebuilt from the log file by correlation id
// alone, and the log holds no secret, grant, scope or redacted argument (SPEC C3, G3).
func TestRun_LogHoldsTheChainAndNoSecret(t *testing.T) {
	const content = "REDACTED-CONTENT of the report"
	u := newUser(t)
	deskFor(u, content)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	u.must(exitOK, "approve", "r", "--sha256", digest)

	log := u.read("state/sallyport/log/r.jsonl")
	chains, err := scenarios.Chains([]byte(log))
	if err != nil || len(chains) != 2 {
		t.Fatalf("%d chains, %v", len(chains), err)
	}
	save := chains[1]
	if !save.Proposed || strings.Join(save.Decisions, " ") != "waiting allowed" || strings.Join(save.Approvals, "") != "approve ann" ||
		len(save.Requests) != 1 || save.Status != "ok" || save.Class != agent.ClassOK || !save.Final || save.Tool != "docs__save_report" {
		t.Errorf("the chain of the save: %+v", save)
	}
	for what, secret := range map[string]string{
		"the content": "REDACTED-CONTENT", "the scope": "desk/reading", "an envelope": "eyJwYXlsb2Fk",
		"a key":        memberOf(t, u.read("config/sallyport/keys/ann.json"), "seed"),
		"a public key": strings.Fields(u.read("config/sallyport/keys/ann.pub"))[1],
	} {
		if strings.Contains(log, secret) {
			t.Errorf("the log holds %s", what)
		}
	}
	if grant := memberOfAny(u.must(exitOK, "journal", "r", "-o", "jsonl").stdout, "grant"); grant == "" || strings.Contains(log, grant[:64]) {
		t.Errorf("the log holds the grant, or there is none: %q", grant)
	}
}

// memberOfAny is memberOf for compact JSON; empty if there is none.
func memberOfAny(text, name string) string {
	_, after, _ := strings.Cut(text, `"`+name+`":"`)
	value, _, _ := strings.Cut(after, `"`)
	return value
}

// A Host that is killed leaves no child, and nothing is sent again: without a read-back
// nobody knows what became of the write.
func TestRun_KilledInAWriteSendsNothingAgain(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	s := u.inFlight()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	s.end()
	u.until("its child ended", func() bool { return len(processesNaming(u.path("stub"))) == 0 })
	u.answer()
	u.must(exitUnknown, "resume", "r")
	if n := u.puts(); n != 1 {
		t.Errorf("%d writes", n)
	}
}

// Without the private key of an approver nobody is asked.
func TestRun_AsksNobodyWhoCouldNotSign(t *testing.T) {
	u := newUser(t)
	deskFor(u, "text")
	if err := os.Remove(u.path("config/sallyport/keys/ann.json")); err != nil {
		t.Fatal(err)
	}
	s := u.open("run", "task.yaml", "--id", "r")
	code, screen := s.end()
	if code != int(exitNoKey) || strings.Contains(screen, "approve? ") || !strings.Contains(screen, "you have no key") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}

// Following a journal ends with the run, or with Ctrl-C.
func TestJournal_Follows(t *testing.T) {
	u := newUser(t)
	deskFor(u, "text")
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	first, second := u.open("journal", "r", "--follow"), u.open("journal", "r", "--follow")
	first.see("approval_required")
	second.see("approval_required")
	second.enter(ctrlC)
	if code, screen := second.end(); code != int(exitInterrupted) {
		t.Errorf("interrupted with %d\n%s", code, screen)
	}
	u.must(exitOK, "reject", "r")
	if code, screen := first.end(); code != 0 || !strings.Contains(screen, "completed") {
		t.Errorf("ended with %d\n%s", code, screen)
	}
}
