package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
)

// What a person changed is shown behind the gutter, argument by argument, whatever it
// is made of.
func TestChanges(t *testing.T) {
	tests := map[string]struct{ was, now, want string }{
		"one line": {`{"a":"x\ny\n","b":1}`, `{"a":"x\nz\n","b":1}`, "argument a, changed\n  │ @@ -1,2 +1,2 @@\n  │  x\n  │ -y\n  │ +z\n"},
		"no newline": {`{"a":"x\n"}`, `{"a":"x"}`,
			"argument a, changed\n  │ @@ -1 +1 @@\n  │ -x\n  │ +x\n  │ \\ No newline at end of file\n"},
		"added and removed": {`{"a":1}`, `{"b":[2]}`,
			"argument b, added\n  │ @@ -0,0 +1 @@\n  │ +[2]\n  │ \\ No newline at end of file\n" +
				"argument a, removed\n  │ @@ -1 +0,0 @@\n  │ -1\n  │ \\ No newline at end of file\n"},
		"hidden": {`{"a":"x"}`, `{"a":"x\u202e\r"}`,
			"argument a, changed\n  │ @@ -1 +1 @@\n  │ -x\n  │ \\ No newline at end of file\n  │ +x⟦U+202E⟧⟦U+000D⟧\n  │ \\ No newline at end of file\n"},
		"another type": {`{"a":"5"}`, `{"a":5}`, "argument a, changed, from text to JSON\n  │ \n"},
		"hostile name": {`{}`, `{"a\nrun  x":""}`, "argument 1 is called\n  │ a\n  │ run  x\nargument #1, added\n  │ \n"},
		"nothing":      {`{"a":1}`, `{"a":1}`, "(the same arguments as the model proposed)\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := changes(&b, []byte(tt.was), []byte(tt.now), 0); err != nil {
				t.Fatal(err)
			}
			if b.String() != tt.want {
				t.Errorf("shown\n%s\nwant\n%s", b.String(), tt.want)
			}
		})
	}
}

// An edited candidate says so, shows the diff, and then all of it.
func TestPending_ShowsWhatWasChanged(t *testing.T) {
	p := pending(t, map[string]any{"content": "new\n", "filename": "a.md"})
	p.Edited, p.Was = "bob", []byte(`{"content":"old\n","filename":"a.md"}`)
	screen := show(t, p, 0)
	for _, want := range []string{", and bob changed its arguments: ──\nargument content, changed\n", "  │ -old\n  │ +new\n", "  changed by  bob\n"} {
		if !strings.Contains(screen, want) {
			t.Errorf("lacks %q:\n%s", want, screen)
		}
	}
	if got := content(t, screen); got != "new" {
		t.Errorf("shown in full: %q", got)
	}
}

// The evidence is capped, the arguments are not, and the facts come last.
func TestUnknown_ShowsTheArgumentsInFull(t *testing.T) {
	p := pending(t, map[string]any{"content": strings.Repeat("x", 2*MaxEvidence), "filename": "a.md"})
	u := Unknown{
		Candidate: p.Candidate, Arguments: p.Arguments, Tool: p.Tool, Signed: []string{"ann", "bob"}, Sent: time.Unix(0, 0).UTC(),
		Outcome: agent.Outcome{Status: agent.StatusResultUnknown, Class: agent.ClassTimeout, Reason: "timeout", Request: "7"},
		Reply:   []byte(strings.Repeat("y", MaxEvidence+1)), Again: 2, Unfinished: true,
		Checks:     []Check{{Finding: agent.Undecided, Reason: "r\u202e", Evidence: []byte("── What the journal knows of it: ──")}},
		Statements: []Statement{{By: "ann", Verdict: "unknown"}},
	}
	var b bytes.Buffer
	if err := u.Write(&b, 0); err != nil {
		t.Fatal(err)
	}
	screen := b.String()
	if strings.Count(screen, "x") < 2*MaxEvidence || strings.Count(screen, "yyyy") != MaxEvidence/4 {
		t.Error("the arguments are not there in full, or the reply is not capped")
	}
	for _, want := range []string{
		"the server answered the call (8001 bytes, the first 8000)\n", "\n  │ ── What the journal knows of it: ──\n",
		"  approved by ann, bob\n", "  sent        once, after 1970-01-01T00:00:00Z, request 7\n",
		"  came back   result_unknown (timeout), timeout; the server's answer is shown above\n",
		"undecided, r⟦U+202E⟧\n", "  checks      one is due", "  attempts    a check was begun again 2 times\n", "unknown, by ann\n",
	} {
		if !strings.Contains(screen, want) {
			t.Errorf("lacks %q", want)
		}
	}
	u.Arguments = []byte(`{}`)
	if err := u.Write(&b, 0); err == nil {
		t.Error("other arguments than were sent were shown")
	}
}
