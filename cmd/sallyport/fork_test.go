package main

import (
	"os"
	"strings"
	"testing"

	"sallyport/scenarios/config"
)

// reached is how many calls of a tool have reached the stub.
func (u *user) reached(name string) int {
	u.t.Helper()
	data, err := os.ReadFile(u.path("stub", "calls"))
	if err != nil && !os.IsNotExist(err) {
		u.t.Fatal(err)
	}
	return strings.Count(string(data), name+"\n")
}

// A fork of a run that waits asks again, with a candidate of its own: what was signed
// for the one is nothing to the other, and both may write once.
func TestFork_OfARunThatWaitsIsAskedAnew(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	before := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout
	begun := u.must(exitOK, "fork", "r", "--id", "f")
	if begun.stdout != "f\n" || !strings.Contains(begun.messages, "1 call is carried over, and is not sent again") {
		t.Errorf("%+v", begun)
	}
	again := u.must(exitOK, "fork", "r", "--id", "f", "-o", "json") // once
	if memberOf(t, again.stdout, "run") != "f" || memberOf(t, again.stdout, "state") != "execute" {
		t.Error(again.stdout)
	}
	if got := u.must(exitOK, "approvals").stdout; strings.Contains(got, "\nf ") {
		t.Errorf("the fork was served:\n%s", got)
	}
	u.must(exitParked, "resume", "f")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	u.must(exitOK, "approve", "f", "--sha256", digest)
	if got := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout; got != before {
		t.Errorf("the parent has changed:\n%s", got)
	}
	u.must(exitOK, "approve", "r", "--sha256", digest)
	if u.puts() != 2 || u.reached("get") != 1 {
		t.Errorf("%d writes, %d reads", u.puts(), u.reached("get"))
	}
	if got := u.must(exitOK, "audit").stdout; strings.Contains(got, "BROKEN") {
		t.Error(got)
	}
}

// A run forks from any entry before its end, and says which that is.
func TestFork_FromAnyEntry(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	u.must(exitOK, "approve", "r", "--sha256", digest)
	got := u.must(exitDenied, "fork", "r")
	last := between(t, got.messages, "the last entry from which a fork goes on is ", "\n")
	if !strings.Contains(got.messages, "fork r --from "+last) {
		t.Error(got.messages)
	}
	if got := u.must(exitUsage, "fork", "r", "--from", "abc"); !strings.Contains(got.messages, "want the number of an entry") || strings.Contains(got.messages, "strconv") {
		t.Error(got.messages)
	}
	u.must(exitOK, "fork", "r", "--from", last, "--id", "late", "--serve")
	u.must(exitOK, "fork", "r", "--from", "1", "--id", "early")
	if u.puts() != 1 || u.reached("get") != 1 {
		t.Errorf("%d writes, %d reads", u.puts(), u.reached("get"))
	}
	u.must(exitParked, "resume", "early") // which does all of it itself
	if u.puts() != 1 || u.reached("get") != 2 {
		t.Errorf("%d writes, %d reads", u.puts(), u.reached("get"))
	}
	for name, row := range map[string]struct {
		code exit
		args []string
		want string
	}{
		"no such entry":  {exitUsage, []string{"--from", "99"}, "the run has no entry 99"},
		"no entry at 0":  {exitUsage, []string{"--from", "0"}, "from 1"},
		"below":          {exitUsage, []string{"--from", "-1"}, "from 1"},
		"its own id":     {exitUsage, []string{"--from", "3", "--id", "r"}, "is the run itself"},
		"no id":          {exitUsage, []string{"--from", "3", "--id", "R!"}, "choose another id"},
		"an id in use":   {exitUsage, []string{"--from", "3", "--id", "late"}, "choose another run id with --id"},
		"a bad model":    {exitUsage, []string{"--from", "3", "--model", "a b"}, "holds no blanks"},
		"no cost limit":  {exitUsage, []string{"--from", "3", "--cost", "+1"}, "no limit of cost"},
		"too many calls": {exitUsage, []string{"--from", "3", "--calls", "+999989"}, "more than the most there is"},
	} {
		if got := u.must(row.code, append([]string{"fork", "r"}, row.args...)...); !strings.Contains(got.messages, row.want) {
			t.Errorf("%s:\n%s", name, got.messages)
		}
	}
	if got := u.must(exitUsage, "fork", "nobody"); !strings.Contains(got.messages, "no such run") {
		t.Error(got.messages)
	}
}

// What was erased is not carried, and erasing says which forks hold a copy.
func TestFork_OfWhatWasErased(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	u.must(exitOK, "approve", "r", "--sha256", digest)
	u.must(exitOK, "fork", "r", "--from", "8", "--id", "f")
	u.must(exitOK, "fork", "f", "--id", "ff")
	got := u.must(exitOK, "erase", "r", digest, "--yes")
	if !strings.Contains(got.messages, "Forks of run r may hold a copy, which is erased in each of them by itself: f, ff.") {
		t.Error(got.messages)
	}
	last := between(t, u.must(exitDenied, "fork", "r").messages, "a fork goes on is ", "\n")
	gone := u.must(exitDenied, "fork", "r", "--from", last)
	if !strings.Contains(gone.messages, "was erased at") || !strings.Contains(gone.messages, "from an entry before the content was named") {
		t.Error(gone.messages)
	}
	u.must(exitOK, "fork", "r", "--from", "3")
}

// A fork finds its tools anew: one that is gone is named, and nothing begins; a server
// that cannot be asked, likewise.
func TestFork_PinsItsToolsAnew(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	server := "tools: [{name: one, description: Does one thing., result: status}, {name: two, description: Does another thing., result: status}]\n"
	u.write("server.yaml", server)
	path := u.command().Path
	u.write("sallyport.yaml", "servers: {s: {command: ["+yamlText(path)+", mcp, script, --config, "+yamlText(u.path("server.yaml"))+"], timeout: 20s}}\n"+
		"tools: {s__one: {owner: me, risk: read, result: status}, s__two: {owner: me, risk: read, result: status}}\n")
	u.write("task.yaml", "task: x\nbudgets: {tool_calls: 0}\nmodel: {script: [{call: {tool: s__one, args: {}}}, {say: Done.}]}\n")
	if got := u.must(exitFailed, "run", "task.yaml", "--id", "r"); !strings.Contains(got.messages, "resume r --calls +1\n") {
		t.Error(got.messages)
	}
	u.write("server.yaml", strings.Replace(server, "name: two", "name: three", 1))
	gone := u.must(exitUnreachable, "resume", "r", "--calls", "+1", "--id", "f")
	if !strings.Contains(gone.messages, "it had tools that are not found any more: s__two") || !strings.Contains(gone.messages, "no run was created") {
		t.Error(gone.messages)
	}
	u.write("server.yaml", "nonsense: true\n")
	if got := u.must(exitUnreachable, "resume", "r", "--calls", "+1", "--id", "f"); !strings.Contains(got.messages, "no run was created; mend the server") {
		t.Error(got.messages)
	}
	u.must(exitUsage, "show", "f")
	u.write("server.yaml", strings.Replace(server, "Does one thing", "Does one thing and says so", 1))
	got := u.must(exitOK, "resume", "r", "--calls", "+1", "--id", "f")
	if got.stdout != "f\nDone.\n" || !strings.Contains(got.messages, "their definitions have changed: s__one.") {
		t.Errorf("%+v", got)
	}
}

// The Host's own tool is pinned again with the others, and another model may go on.
func TestFork_WithAnotherModel(t *testing.T) {
	u, p := askingUser(t, "It was changed on 9 March.\n")
	u.env = []string{config.EnvModel + "=one", config.EnvBaseURL + "=" + p.base()}
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	u.must(exitOK, "fork", "r", "--from", "1", "--id", "f", "--model", "two")
	before := len(p.requests())
	u.must(exitParked, "resume", "f")
	asked := p.requests()[before:]
	if len(asked) != 2 || !strings.Contains(asked[0].body, `"model":"two"`) || !strings.Contains(asked[0].body, "host__open_body") {
		t.Errorf("%d requests: %+v", len(asked), asked)
	}
	shown := u.must(exitOK, "show", "f", "-o", "json").stdout
	if !strings.HasPrefix(memberOf(t, shown, "model"), "openai:two@") {
		t.Error(shown)
	}
	// A run whose model was written down is gone on with by one that is asked.
	u.write("task.yaml", "task: x\nmodel: {script: [{call: {tool: docs__read_document, args: {filename: notes.md}}}]}\n")
	u.must(exitUsage, "run", "task.yaml", "--id", "s") // the script is at its end
	u.must(exitOK, "fork", "s", "--id", "t", "--model", "three")
	before = len(p.requests())
	u.must(exitParked, "resume", "t")
	if asked := p.requests()[before:]; len(asked) != 1 || !strings.Contains(asked[0].body, `"model":"three"`) {
		t.Errorf("%d requests", len(asked))
	}
}

// A write of which nobody knows whether it took effect stays unknown in a fork, is not
// sent again, and a person who looks is told where it was sent.
func TestFork_OfAnUnknownWrite(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	u.write("stub/crash", "")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	u.must(exitUnknown, "approve", "r", "--sha256", digest)
	if err := os.Remove(u.path("stub", "crash")); err != nil {
		t.Fatal(err)
	}
	u.must(exitOK, "fork", "r", "--id", "f")
	u.must(exitUnknown, "resume", "f")
	told := u.must(exitUnknown, "verify", "f")
	if !strings.Contains(told.messages, "once, in run r, of which this is a fork; see its journal, entry ") {
		t.Error(told.messages)
	}
	if got := u.must(exitOK, "verify", "f", "--applied"); got.stdout != "It was put.\n" {
		t.Errorf("%+v", got)
	}
	if n := u.puts(); n != 1 {
		t.Errorf("%d writes", n)
	}
	if got := u.must(exitOK, "audit", "f").stdout; !strings.Contains(got, "calls carried from r") {
		t.Error(got)
	}
}

// between is what stands between two texts.
func between(t *testing.T, text, before, after string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, before)
	what, _, ended := strings.Cut(rest, after)
	if !found || !ended {
		t.Fatalf("lacks %q:\n%s", before, text)
	}
	return what
}

// A run is extended from elsewhere while it is served, with a write in flight.
func TestExtend_WhileAnotherProcessServes(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	s := u.inFlight()
	got := u.must(exitOK, "extend", "r", "--turns", "+2", "-o", "jsonl")
	if !strings.Contains(got.stdout, `"added":{"calls":0,"turns":2,`) || !strings.Contains(got.stdout, `"budget":{"calls":12,"turns":26,`) {
		t.Error(got.stdout)
	}
	u.answer()
	if code, screen := s.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, screen)
	}
	if n := u.puts(); n != 1 {
		t.Errorf("%d writes", n)
	}
	if got := u.must(exitOK, "show", "r").stdout; !strings.Contains(got, " of 26 turns of the model") {
		t.Error(got)
	}
}

// A paused run stays paused when it is extended, and says how it goes on.
func TestExtend_LeavesAPauseAsItIs(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	u.must(exitOK, "pause", "r")
	if got := u.must(exitOK, "extend", "r", "--calls", "+1"); !strings.Contains(got.messages, "Run r stays paused. Go on with:\n  ") {
		t.Error(got.messages)
	}
	if got := u.must(exitOK, "runs").stdout; !strings.Contains(got, "(paused)") {
		t.Error(got)
	}
}

// A run that plays a cassette is gone on with by a fork that plays the rest of it, also
// when the file is gone.
func TestFork_PlaysTheRestOfACassette(t *testing.T) {
	u := newUser(t)
	stubDesk(u)
	u.write("task.yaml", "task: x\nmodel: {script: [{call: {tool: stub__get, args: {text: a}}}, {call: {tool: stub__get, args: {text: b}}}, {say: Done.}]}\n")
	u.must(exitOK, "run", "task.yaml", "--id", "first", "--record", "tape.jsonl")
	u.write("task.yaml", "task: x\nbudgets: {tool_calls: 1}\nmodel: {replay: tape.jsonl}\n")
	u.must(exitFailed, "run", "task.yaml", "--id", "r")
	if err := os.Remove(u.path("tape.jsonl")); err != nil {
		t.Fatal(err)
	}
	if got := u.must(exitOK, "resume", "r", "--calls", "+1", "--id", "f"); got.stdout != "f\nDone.\n" {
		t.Errorf("%+v", got)
	}
	if n := u.reached("get"); n != 4 {
		t.Errorf("%d reads", n)
	}
}

// A write that was answered, and not yet read back when the fork goes on from there, cannot
// be asked for in the fork: the grant stayed with the parent, and that is what is said.
func TestFork_FromAWriteThatWasNotReadBack(t *testing.T) {
	u, p := askingUser(t, "It was changed on 9 March.\n")
	u.env = []string{config.EnvModel + "=m", config.EnvBaseURL + "=" + p.base()}
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	u.must(exitOK, "approve", "r", "--sha256", digest)
	entry := ""
	for line := range strings.Lines(u.must(exitOK, "journal", "r").stdout) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == "returned" {
			entry = fields[0]
		}
	}
	u.must(exitUnknown, "fork", "r", "--from", entry, "--id", "f", "--serve")
	told := u.must(exitUnknown, "verify", "f").messages
	for _, want := range []string{"approved    in run r; no approval came along", "grant_not_carried: the outcome was not confirmed in run r, and the grant to ask with stayed there"} {
		if !strings.Contains(told, want) {
			t.Errorf("no %q:\n%s", want, told)
		}
	}
}

// A run that its model gave up goes on as a fork once the model can be asked, with what
// it had read.
func TestFork_AfterTheModelGaveUp(t *testing.T) {
	u, p := askingUser(t, "It was changed on 9 March.\n")
	u.env = []string{config.EnvModel + "=m", config.EnvBaseURL + "=" + p.base(), config.EnvKey + "=" + testKey}
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	u.must(exitOK, "approve", "r", "--sha256", digest, "--no-resume")
	p.admit("another")
	got := u.must(exitUnreachable, "resume", "r")
	if !strings.Contains(got.messages, "Mend the key") || !strings.Contains(got.messages, "\n  sallyport fork r --serve\n") {
		t.Error(got.messages)
	}
	u.env[2] = config.EnvKey + "=another"
	if got := u.must(exitOK, "fork", "r", "--id", "f", "--serve"); !strings.HasPrefix(got.stdout, "f\nThat is ") {
		t.Errorf("%+v", got)
	}
	shown := u.must(exitOK, "show", "f").stdout
	if !strings.Contains(shown, "2 calls are carried over") || u.read("desk/reports/report.md") != "It was changed on 9 March.\n" {
		t.Error(shown)
	}
}
