package main

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// editor makes an editor of a shell script, which finds the file to edit as $1, and
// returns the user's environment with it.
func (u *user) editor(script string) {
	u.t.Helper()
	path := u.write("editor.sh", "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(path, 0o700); err != nil { //nolint:gosec // a script to be run
		u.t.Fatal(err)
	}
	u.t.Setenv("VISUAL", "")
	u.env = []string{"EDITOR=" + path}
}

// contents are the decoded bodies of an exported run, one after the other.
func (u *user) contents(run string) string {
	u.t.Helper()
	var all strings.Builder
	for line := range strings.Lines(u.must(exitOK, "audit", "export", run).stdout) {
		var l struct{ Body struct{ Data string } }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			u.t.Fatal(err)
		}
		data, err := base64.StdEncoding.DecodeString(l.Body.Data)
		if err != nil {
			u.t.Fatal(err)
		}
		all.Write(append(data, '\n'))
	}
	return all.String()
}

const report = "# Report\n\nThe lamp was changed on 9 March.\n"

// A report is edited as text: the diff and the whole are shown, the question is asked
// again, exactly the edited bytes are saved, and the model is told.
func TestApproveEdit_InAnEditor(t *testing.T) {
	u := newUser(t)
	deskFor(u, report)
	u.write("sallyport.yaml", strings.Replace(u.read("sallyport.yaml"), "redact: [content]", "", 1))
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	u.editor(`cp "$1" seen.md; ls -l "$1" >mode; sed -i s/9/19/ "$1"`)
	s := u.open("approve", "r", "--edit")
	seen := s.see(asks)
	for _, want := range []string{
		"edited, by ann. That grants nothing", "ann changed its arguments: ──", "argument content, changed\r\n",
		"  │ -The lamp was changed on 9 March.\r\n  │ +The lamp was changed on 19 March.\r\n",
		"The text as changed, in full, is untrusted", "  │ # Report\r\n  │ \r\n  │ The lamp was changed on 19 March.\r\n", "changed by  ann",
	} {
		if !strings.Contains(seen, want) {
			t.Errorf("the screen lacks %q:\n%s", want, seen)
		}
	}
	if n := strings.Count(seen, "approve? "); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if _, err := os.Stat(u.path("desk/reports/report.md")); err == nil {
		t.Error("the edit alone wrote the report")
	}
	s.enter("approve\n")
	if code, screen := s.end(); code != 0 || !strings.Contains(screen, "That is all.") {
		t.Errorf("ended with %d\n%s", code, screen)
	}
	want := strings.Replace(report, "9", "19", 1)
	if got := u.read("desk/reports/report.md"); got != want {
		t.Errorf("saved %q", got)
	}
	if got := u.read("seen.md"); got != report {
		t.Errorf("the editor was given %q", got)
	}
	if got := u.read("mode"); !strings.HasPrefix(got, "-rw-------") {
		t.Errorf("others could read what was edited: %s", got)
	}
	if left, err := os.ReadDir(u.path("tmp")); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	u.must(exitOK, "audit", "r")
	if got := u.contents("r"); !strings.Contains(got, "A person changed the arguments; these were used: ") {
		t.Errorf("the model was not told:\n%s", got)
	}
}

// Whatever is answered to the question about the edited candidate but approve, nothing
// is written: an edit grants nothing.
func TestApproveEdit_GrantsNothing(t *testing.T) {
	tests := map[string]struct {
		typed string
		code  exit
		state string
	}{
		"no":          {"no\n", exitOK, "completed"}, // refused: the model goes on without it
		"end":         {ctrlD, exitOK, "completed"},
		"interrupted": {"approve" + ctrlC, exitInterrupted, "awaiting_approval"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			u := newUser(t)
			deskFor(u, report)
			u.must(exitParked, "run", "task.yaml", "--id", "r")
			u.editor(`echo more >>"$1"`)
			s := u.open("approve", "r", "--edit")
			s.see(asks)
			s.enter(tt.typed)
			if code, screen := s.end(); code != int(tt.code) {
				t.Errorf("ended with %d, want %d\n%s", code, tt.code, screen)
			}
			if got := u.must(exitOK, "runs").stdout; !strings.Contains(got, tt.state) {
				t.Error(got)
			}
			if _, err := os.Stat(u.path("desk/reports/report.md")); err == nil {
				t.Error("it was saved")
			}
			if got := u.journal(); !strings.Contains(got, " edited ") || strings.Contains(got, " granted ") {
				t.Error(got)
			}
		})
	}
}

// An editor that fails, changes nothing, or leaves what the tool does not take changes
// nothing about the run.
func TestApproveEdit_NothingIsChangedByMistake(t *testing.T) {
	u := newUser(t)
	deskFor(u, report)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	before := u.journal()
	u.env = []string{"EDITOR="}
	for _, tt := range []struct {
		script string
		more   []string
		code   exit
		says   string
	}{
		{"", nil, exitUsage, "neither VISUAL nor EDITOR is set"},
		{"exit 1", nil, exitParked, "exit status 1"},
		{"true", nil, exitUsage, "they are the same"},
		{`: >"$1"`, nil, exitUsage, "content"},
		{`printf '\377' >"$1"`, nil, exitUsage, "is not UTF-8"},
		{`sed -i s/content/Content/ "$1"`, []string{"--field="}, exitUsage, "nothing was changed"},
		{`echo '{}' >>"$1"`, []string{"--field="}, exitUsage, "nothing was changed"},
		{"true", []string{"--field=nothing"}, exitUsage, "has no argument"},
		{`head -c 40000 /dev/zero | tr '\0' x >"$1"`, nil, exitUsage, "nothing was changed"},
	} {
		if tt.script != "" {
			u.editor(tt.script)
		}
		s := u.open(append([]string{"approve", "r", "--edit"}, tt.more...)...)
		if code, screen := s.end(); code != int(tt.code) || !strings.Contains(screen, tt.says) {
			t.Errorf("%q %q ended with %d, want %d and %q\n%s", tt.script, tt.more, code, tt.code, tt.says, screen)
		}
	}
	if after := u.journal(); after != before {
		t.Errorf("the journal has changed:\n%s", after)
	}
}

// A JSON that is edited may rename the file; what the ledger and the diff say follows.
func TestApproveEdit_AllArgumentsAsJSON(t *testing.T) {
	u := newUser(t)
	deskFor(u, "one line")
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	u.editor(`cp "$1" seen.json; sed -i s/report.md/other.md/ "$1"`)
	s := u.open("approve", "r", "--edit")
	if seen := s.see(asks); !strings.Contains(seen, "argument filename, changed\r\n  │ @@ -1 +1 @@\r\n  │ -report.md\r\n") {
		t.Errorf("no diff:\n%s", seen)
	}
	s.enter("approve\n")
	if code, screen := s.end(); code != 0 {
		t.Errorf("ended with %d\n%s", code, screen)
	}
	if got := u.read("seen.json"); got != "{\n  \"content\": \"one line\",\n  \"filename\": \"report.md\"\n}\n" {
		t.Errorf("the editor was given %q", got)
	}
	if got := u.read("desk/reports/other.md"); got != "one line" {
		t.Errorf("saved %q", got)
	}
}

// Without a terminal the arguments come from a file; the new candidate parks, with its
// own digest, which the next command approves.
func TestApproveEdit_FromAFile(t *testing.T) {
	u := newUser(t)
	deskFor(u, report)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	first := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	if got := u.must(exitParked, "approve", "r", "--edit"); !strings.Contains(got.messages, "approve r --edit=FILE") {
		t.Error(got.messages)
	}
	u.write("text", "mine, no newline")
	u.must(exitUsage, "approve", "r", "--edit=text", "--sha256", first)
	u.must(exitUsage, "approve", "r", "--field=content")
	u.must(exitUsage, "approve", "r", "--edit=nowhere")
	u.must(exitUsage, "approve", "r", "--edit=text") // not JSON
	if got := u.must(exitParked, "approve", "r", "--edit=text", "--field=content"); !strings.Contains(got.messages, "waits for approval") {
		t.Error(got.messages)
	}
	second := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	if second == first {
		t.Fatal("the candidate is the old one")
	}
	u.must(exitDenied, "approve", "r", "--sha256", first)
	if got := u.must(exitOK, "approve", "r", "--sha256", second); !strings.Contains(got.messages, "  │ +mine, no newline\n") {
		t.Errorf("a later approver sees no diff:\n%s", got.messages)
	}
	if got := u.read("desk/reports/report.md"); got != "mine, no newline" {
		t.Errorf("saved %q", got)
	}
	u.write("args.json", `{"filename": "second.md", "content": "x"}`)
	u.must(exitDenied, "approve", "r", "--edit=args.json")
}

// Whoever began the run, or has not the role, may not edit either; an edit takes the
// first of two signatures away.
func TestApproveEdit_TakesSignaturesAway(t *testing.T) {
	u := newUser(t)
	twoSign(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r", "--as", "ann")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	u.must(exitParked, "approve", "r", "--sha256", digest, "--as", "bob")
	u.write("args.json", `{"text": "c"}`)
	u.must(exitDenied, "approve", "r", "--edit=args.json", "--as", "ann")
	u.must(exitParked, "approve", "r", "--edit=args.json", "--as", "bob")
	got := u.must(exitOK, "approvals", "-o", "json").stdout
	if !strings.Contains(got, `"signed": []`) {
		t.Errorf("a signature for other bytes still counts: %s", got)
	}
	digest = memberOf(t, got, "sha256")
	u.must(exitParked, "approve", "r", "--sha256", digest, "--as", "bob")
	if n := u.puts(); n != 0 {
		t.Errorf("%d writes after one signature", n)
	}
	u.must(exitOK, "approve", "r", "--sha256", digest, "--as", "cleo")
	if got := u.read("stub/put"); got != `{"text":"c"}` {
		t.Errorf("sent %s", got)
	}
	u.must(exitOK, "audit", "r")
}

// The terminal that waits takes its question back and asks about the edited candidate.
func TestApproveEdit_WhileAnotherTerminalAsks(t *testing.T) {
	u := newUser(t)
	deskFor(u, report)
	waiting := u.open("run", "task.yaml", "--id", "r")
	waiting.see(asks)
	u.write("text", "mine\n")
	u.must(exitParked, "approve", "r", "--edit=text", "--field=content")
	if seen := waiting.see(asks); !strings.Contains(seen, "The question is taken back") || !strings.Contains(seen, "  │ +mine\r\n") {
		t.Errorf("the other terminal shows\n%s", seen)
	}
	waiting.enter("approve\n")
	if code, screen := waiting.end(); code != 0 {
		t.Errorf("ended with %d\n%s", code, screen)
	}
	if got := u.read("desk/reports/report.md"); got != "mine\n" {
		t.Errorf("saved %q", got)
	}
}
