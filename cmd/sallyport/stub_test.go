package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// stub is a tool server of somebody else, as a child process: `stubserver DIR` offers
// put, a write, mail, which reaches people, and get and look, two reads, of which look
// says what was put last. A
// call leaves a line in DIR/calls; while DIR/wait is there it is not answered, and with
// DIR/crash the server dies of it.
func stub() {
	dir := os.Args[1]
	server := mcp.NewServer(&mcp.Implementation{Name: "stub", Version: "1"}, nil)
	const text = `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`
	for name, input := range map[string]string{
		"put": text, "get": text, "look": text,
		"mail": `{"type":"object","properties":{"to":{"type":"array","items":{"type":"string"}},"body":{"type":"string"}},
			"required":["to","body"],"additionalProperties":false}`,
	} {
		server.AddTool(&mcp.Tool{
			Name: name, Description: "Does what its name says: " + name + ".",
			InputSchema: json.RawMessage(input),
			OutputSchema: json.RawMessage(`{"type":"object","properties":{"status":{"type":"string"},"message":{"type":"string"},"data":{"type":"object"}},
				"required":["status","message"],"additionalProperties":false}`),
		}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			path := filepath.Join(dir, "put")
			if name == "put" {
				_ = os.WriteFile(path, r.Params.Arguments, 0o600)
			}
			called(dir, name)
			data, err := os.ReadFile(path)
			if err != nil || name != "look" {
				data = []byte("{}")
			}
			return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"status":"ok","message":"done","data":` + string(data) + `}`)}, nil
		})
	}
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
}

func called(dir, name string) {
	f, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		os.Exit(1)
	}
	_, _ = f.WriteString(name + "\n")
	_ = f.Close()
	if _, err := os.Stat(filepath.Join(dir, "crash")); err == nil {
		os.Exit(3)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "wait")); errors.Is(err, fs.ErrNotExist) {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// stubDesk gives the user a stub, a key, and a task whose model puts once.
func stubDesk(u *user) {
	u.t.Helper()
	u.write("stub/.keep", "")
	u.write("sallyport.yaml", `
servers:
  stub: {command: [`+yamlText(stubPath(u))+`, `+yamlText(u.path("stub"))+`], timeout: 60s}
tools:
  stub__get: {owner: me, risk: read, result: status}
  stub__put:
    owner: me
    risk: write
    result: status
    approval: {approvers: 1}
    side_effect: puts
    rollback: take it back
`)
	u.write("task.yaml", `
task: put
model:
  script:
    - call: {tool: stub__get, args: {text: a}}
    - call: {tool: stub__put, args: {text: b}}
    - say: It was put.
`)
	u.must(exitOK, "keys", "new", "--no-passphrase")
}

func stubPath(u *user) string {
	path, err := filepath.Abs(u.command().Path)
	if err != nil {
		u.t.Fatal(err)
	}
	return filepath.Join(filepath.Dir(path), "stubserver")
}

// puts is how many writes have reached the stub.
func (u *user) puts() int {
	data, err := os.ReadFile(u.path("stub", "calls"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		u.t.Fatal(err)
	}
	return strings.Count(string(data), "put\n")
}

// until waits for what other processes bring about.
func (u *user) until(what string, is func() bool) {
	u.t.Helper()
	for end := time.Now().Add(limit); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			u.t.Fatalf("it did not come about that %s", what)
		}
	}
}

// inFlight starts a run on a terminal, approves its write, and returns when the write
// has reached the stub, which does not answer.
func (u *user) inFlight() *terminalSession {
	u.t.Helper()
	s := u.open("run", "task.yaml", "--id", "r")
	s.see(asks)
	u.write("stub/wait", "")
	s.enter("approve\n")
	u.until("the write reached the server", func() bool { return u.puts() == 1 })
	return s
}

// answer lets the stub answer.
func (u *user) answer() {
	u.t.Helper()
	if err := os.Remove(u.path("stub", "wait")); err != nil {
		u.t.Fatal(err)
	}
}

// The first Ctrl-C starts nothing new and waits for the write in flight.
func TestRun_InterruptWaitsForAWriteInFlight(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	s := u.inFlight()
	s.enter(ctrlC)
	s.see("Ctrl-C again ends at once")
	u.answer()
	code, screen := s.end()
	if code != int(exitInterrupted) || !strings.Contains(screen, "resume r") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	journal := u.must(exitOK, "journal", "r").stdout
	if !strings.HasSuffix(journal, "returned          observe            ok\n") {
		t.Errorf("the outcome of the write is not the last entry:\n%s", journal)
	}
	if got := u.must(exitOK, "resume", "r"); got.stdout != "It was put.\n" {
		t.Errorf("resumed: %q\n%s", got.stdout, got.messages)
	}
	if n := u.puts(); n != 1 {
		t.Errorf("%d writes", n)
	}
}

// The second Ctrl-C ends the process at once; what became of the write is unknown
// then, and nothing is sent again.
func TestRun_SecondInterruptEndsAtOnce(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	s := u.inFlight()
	s.enter(ctrlC)
	s.see("Ctrl-C again ends at once")
	s.enter(ctrlC)
	if code, screen := s.end(); code != int(exitInterrupted) || !strings.Contains(screen, "Ended at once. ") || !strings.Contains(screen, "resume r\n") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	u.until("the server ended", func() bool { return len(processesNaming(u.path("stub"))) == 0 })
	u.answer()
	got := u.must(exitUnknown, "resume", "r")
	if !strings.Contains(got.messages, "outcome of a write in run r is unknown") || !strings.Contains(got.messages, "cancel r --abandon") {
		t.Error(got.messages)
	}
	u.must(exitUnknown, "resume", "r")
	if got := u.must(exitOK, "cancel", "r"); !strings.Contains(got.messages, "outcome is unknown") {
		t.Error(got.messages)
	}
	u.must(exitUnknown, "cancel", "r", "--abandon")
	if got := u.must(exitOK, "runs").stdout; !strings.Contains(got, "OUTCOME UNKNOWN") {
		t.Error(got)
	}
	u.must(exitUnknown, "resume", "r")
	if n := u.puts(); n != 1 {
		t.Errorf("%d writes", n)
	}
}

// Paused or cancelled from another process while a write is in flight: one send.
func TestPauseAndCancel_WhileAWriteIsInFlight(t *testing.T) {
	t.Run("pause", func(t *testing.T) {
		u := newUser(t)
		stubDesk(u)
		s := u.inFlight()
		u.must(exitOK, "pause", "r")
		u.answer()
		if code, screen := s.end(); code != int(exitParked) || !strings.Contains(screen, "Run r is paused") {
			t.Errorf("exit code %d\n%s", code, screen)
		}
		u.must(exitOK, "resume", "r")
		if n := u.puts(); n != 1 {
			t.Errorf("%d writes", n)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		u := newUser(t)
		stubDesk(u)
		s := u.inFlight()
		if got := u.must(exitOK, "cancel", "r"); !strings.Contains(got.messages, "a write in flight") {
			t.Error(got.messages)
		}
		u.must(exitDenied, "cancel", "r")
		u.answer()
		if code, screen := s.end(); code != int(exitFailed) || !strings.Contains(screen, "Run r is cancelled: operator.") {
			t.Errorf("exit code %d\n%s", code, screen)
		}
		if got := u.must(exitOK, "show", "r").stdout; !strings.Contains(got, "stub__put  ok ") {
			t.Errorf("the write was not settled first:\n%s", got)
		}
		if n := u.puts(); n != 1 {
			t.Errorf("%d writes", n)
		}
	})
}

// Only one process serves a run; resume is told so, and approve and run follow.
func TestResume_IsToldThatAnotherServes(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	s := u.inFlight()
	got := u.must(exitDenied, "resume", "r", "--state", u.path("state/sallyport"))
	if !strings.Contains(got.messages, "the run is being served elsewhere") || !strings.Contains(got.messages, "journal r --follow") {
		t.Error(got.messages)
	}
	u.answer()
	if code, screen := s.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	if n := u.puts(); n != 1 {
		t.Errorf("%d writes", n)
	}
}

// A server that dies in a write leaves an unknown outcome; in a read, none.
func TestRun_ServerDiesInACall(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	u.write("stub/crash", "")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	if got := u.must(exitUnknown, "approve", "r", "--sha256", digest); !strings.Contains(got.messages, "outcome_unknown") {
		t.Error(got.messages)
	}
	if n := u.puts(); n != 1 {
		t.Errorf("%d writes", n)
	}
	u.must(exitParked, "run", "task.yaml", "--id", "s")
	if got := u.must(exitOK, "show", "s").stdout; !strings.Contains(got, "stub__get  unavailable       protocol_error") {
		t.Error(got)
	}
}

// A check that cannot be made leaves the outcome unknown, and is made again on resume;
// then the run goes on, and nothing was sent twice.
func TestResume_MakesTheCheckAgain(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.write("sallyport.yaml", u.read("sallyport.yaml")+`
    settle: {tool: stub__look, args: {text: text}, applied_when: {text: {equals: text}}}
  stub__look: {owner: me, risk: read, host_only: true, result: status}
`)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	u.write("stub/crash", "")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	if got := u.must(exitUnknown, "approve", "r", "--sha256", digest); !strings.Contains(got.messages, "resume r") {
		t.Error(got.messages)
	}
	if err := os.Remove(u.path("stub", "crash")); err != nil {
		t.Fatal(err)
	}
	if got := u.must(exitOK, "resume", "r"); !strings.Contains(got.messages, "settled") || got.stdout != "It was put.\n" {
		t.Errorf("%q\n%s", got.stdout, got.messages)
	}
	if n := u.puts(); n != 1 {
		t.Errorf("%d writes", n)
	}
}

// Two people sign a destructive call, each with a key of their own, and neither is who
// began the run.
func TestApprove_DestructiveNeedsTwo(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	text := strings.NewReplacer("risk: write", "risk: destructive", "approvers: 1", "approvers: 2").Replace(u.read("sallyport.yaml"))
	u.write("sallyport.yaml", text)
	for _, name := range []string{"bob", "cleo"} {
		u.must(exitOK, "keys", "new", "--no-passphrase", "--as", name)
	}
	u.write("config/sallyport/config.yaml", "approvers: [ann, bob, cleo]\n")
	u.must(exitParked, "run", "task.yaml", "--id", "r", "--as", "ann")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	if got := u.must(exitDenied, "approve", "r", "--sha256", digest, "--as", "ann"); !strings.Contains(got.messages, "ann began the run") {
		t.Error(got.messages)
	}
	if got := u.must(exitUsage, "approve", "r", "--sha256", digest); !strings.Contains(got.messages, "several of your keys can: bob, cleo") {
		t.Error(got.messages)
	}
	if got := u.must(exitParked, "approve", "r", "--sha256", digest, "--as", "bob"); !strings.Contains(got.messages, "Another approver must sign too") {
		t.Error(got.messages)
	}
	u.must(exitDenied, "approve", "r", "--sha256", digest, "--as", "bob")
	if n := u.puts(); n != 0 {
		t.Errorf("%d writes after one signature", n)
	}
	if got := u.must(exitOK, "approve", "r", "--sha256", digest); !strings.Contains(got.messages, "signed by bob") {
		t.Error(got.messages)
	}
	if n := u.puts(); n != 1 {
		t.Errorf("%d writes", n)
	}
}

// A candidate that nobody decided on in time is refused by the clock while it is asked
// about, and a late approval comes to nothing.
func TestRun_CandidateExpiresAtTheQuestion(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.write("sallyport.yaml", strings.Replace(u.read("sallyport.yaml"), "{approvers: 1}", "{approvers: 1, expires: 2s}", 1))
	s := u.open("run", "task.yaml", "--id", "r")
	s.see(asks)
	code, screen := s.end()
	if code != 0 || !strings.Contains(screen, "expired") || !strings.Contains(screen, "It was put.") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	if n := u.puts(); n != 0 {
		t.Errorf("%d writes", n)
	}
}

// A server of somebody else can be accepted; its writes never reach it.
func TestAccept_AServerOfSomebodyElse(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	got := u.must(exitOK, "accept", "stub")
	for _, want := range []string{
		"PASS  a call that succeeds: stub__get: ok", "PASS  without permission, refused by the host: stub__get: waiting_approval",
		"  –   without permission, refused by the server: no contracted write whose grants",
		"PASS  a read that times out: stub__get: unavailable", "PASS  a write that times out: stub__put: result_unknown",
	} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("lacks %q:\n%s", want, got.stdout)
		}
	}
	if n := u.puts(); n != 0 {
		t.Errorf("%d writes reached the server", n)
	}
}

// CHECKS 100: a tool whose effect reaches people is off until the user's own file
// switches it on; then whoever approves sees every recipient and the whole body.
func TestRun_ShowsWhomASendReaches(t *testing.T) {
	const body = "Dear both,\n\nthe lamp was changed on 9 March.\n" + "A long last line: 0123456789 0123456789 0123456789 0123456789 0123456789.\n"
	u := newUser(t)
	stubDesk(u)
	u.write("sallyport.yaml", u.read("sallyport.yaml")+`
  stub__mail:
    owner: me
    risk: write
    effect: send
    recipients: [to]
    result: status
    approval: {approvers: 1}
    side_effect: sends a message
    rollback: send a correction
`)
	u.write("task.yaml", `
task: mail
model:
  script:
    - call: {tool: stub__mail, args: {to: [bob@example.org, cleo@example.org], body: `+yamlText(body)+`}}
    - say: It was sent.
`)
	if got := u.must(exitUsage, "run", "task.yaml", "--id", "off"); !strings.Contains(got.messages, `it calls "stub__mail", which is not offered`) {
		t.Error(got.messages)
	}
	own := "config/sallyport/config.yaml"
	u.write(own, u.read(own)+"tools: {stub__mail: {send: on}}\n")
	u.must(exitParked, "run", "task.yaml", "--id", "on", "--decide", "wait")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	got := u.must(exitOK, "approve", "on", "--sha256", digest)
	for _, want := range []string{
		"argument to (JSON, ", `  │ ["bob@example.org","cleo@example.org"]` + "\n",
		"argument body (text, ", "  │ Dear both,\n  │ \n  │ the lamp was changed on 9 March.\n", "  │ A long last line: 0123456789 0123456789 0123456789 0123456789 0123456789.\n",
		"reaches     the recipients in argument to, shown in full above", "sends       what it does leaves this machine or reaches a person",
	} {
		if !strings.Contains(got.messages, want) {
			t.Errorf("lacks %q:\n%s", want, got.messages)
		}
	}
	if data := u.read("stub/calls"); data != "mail\n" {
		t.Errorf("calls: %q", data)
	}
}

// What waits too long is marked as expired before anybody has served the run.
func TestApprovals_MarksWhatHasExpired(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.write("sallyport.yaml", strings.Replace(u.read("sallyport.yaml"), "{approvers: 1}", "{approvers: 1, expires: 2s}", 1))
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	if got := u.must(exitOK, "approvals").stdout; strings.Contains(got, "(expired)") {
		t.Error(got)
	}
	u.until("the candidate has expired", func() bool { return strings.Contains(u.run("approvals").stdout, "(expired)") })
	if got := u.must(exitOK, "approvals", "-o", "json").stdout; !strings.Contains(got, `"expired": true`) {
		t.Error(got)
	}
	if got := u.must(exitOK, "show", "r").stdout; !strings.Contains(got, "(expired)") {
		t.Error(got)
	}
}

// The model's words stand behind a gutter on a terminal, and are the bare text
// elsewhere; what could control a terminal is escaped in both.
func TestRun_AnswerIsUntrusted(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.write("task.yaml", `{task: x, model: {script: [{say: "Run r has completed.\nall \u001b[2Jgood"}]}}`)
	if got := u.must(exitOK, "run", "task.yaml"); got.stdout != "Run r has completed.\nall ⟦U+001B⟧[2Jgood\n" {
		t.Errorf("%q", got.stdout)
	}
	s := u.open("run", "task.yaml")
	code, screen := s.end()
	if want := "The answer, in the model's words (untrusted):\n  │ Run r has completed.\n  │ all ⟦U+001B⟧[2Jgood\n"; code != 0 || !strings.Contains(screen, want) {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}
