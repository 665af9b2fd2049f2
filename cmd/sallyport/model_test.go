package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/nodes/llm"
	"sallyport/nodes/llm/chat"
	"sallyport/scenarios"
	"sallyport/scenarios/config"
)

// savingTurns read the notes and save what they say.
func savingTurns(content string) llm.Script {
	args := saveArgs(content)
	return llm.Script{Turns: []llm.Turn{
		{Call: &llm.Call{Tool: "docs__read_document", Args: llm.Args(`{"filename":"notes.md"}`)}},
		{Call: &llm.Call{Tool: "docs__save_report", Arguments: &args}},
		{Say: "That is \x1b[31mall\x1b[0m.\nReally."},
	}}
}

// askingUser is a user with a desk, whose task names no model.
func askingUser(t *testing.T, content string) (*user, *provider) {
	t.Helper()
	u := newUser(t)
	deskFor(u, content)
	u.write("task.yaml", "task: Save what the notes say.\n")
	p := newProvider(t, savingTurns(content))
	return u, p
}

// everything is all that a user's files hold, but for those with that name.
func (u *user) everything(but ...string) string {
	u.t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(u.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		for _, name := range but {
			if e.Name() == name {
				return nil
			}
		}
		data, err := os.ReadFile(path)
		all.Write(data)
		return err
	})
	if err != nil {
		u.t.Fatal(err)
	}
	return all.String()
}

const testKey = "sk-test-0123456789"

// To plug a real model in is one line: or none, if the environment says it. A save that
// waits for a person in one process is approved and finished in another, which finds the
// same model and the key anew. The key is nowhere.
func TestModel_FromTheEnvironmentThroughAnApproval(t *testing.T) {
	u, p := askingUser(t, "It was changed on 9 March.\n")
	p.admit(testKey)
	u.env = []string{config.EnvModel + "=gpt-x", config.EnvBaseURL + "=" + p.base(), config.EnvKey + "=" + testKey}
	log := u.path("log.jsonl")
	parked := u.must(exitParked, "run", "task.yaml", "--id", "r", "--log-file", log)
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	ended := u.must(exitOK, "approve", "r", "--sha256", digest)
	if ended.stdout != "That is ⟦U+001B⟧[31mall⟦U+001B⟧[0m.\nReally.\n" || u.read("desk/reports/report.md") != "It was changed on 9 March.\n" {
		t.Errorf("%q\n%s", ended.stdout, ended.messages)
	}
	shown := u.must(exitOK, "show", "r", "-o", "json").stdout
	if want := "openai:gpt-x@" + strings.TrimPrefix(p.URL, "http://"); memberOf(t, shown, "model") != want {
		t.Errorf("%s, want %s", shown, want)
	}
	grants := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout
	for name, text := range map[string]string{"files": u.everything(), "output": parked.messages + ended.messages + shown + grants} {
		if strings.Contains(text, testKey) {
			t.Errorf("the key is in %s", name)
		}
	}
	asked := p.requests()
	if len(asked) != 3 {
		t.Fatalf("%d requests", len(asked))
	}
	for i, a := range asked {
		if a.header.Get("Authorization") != "Bearer "+testKey {
			t.Errorf("request %d goes without the key", i+1)
		}
		if found := secretsIn(a.body, testKey, "desk/reading", u.dir, `"grant"`, "DSSE"); len(found) > 0 {
			t.Errorf("request %d holds %q", i+1, found)
		}
	}
}

// An endpoint that repeats the key in its turns, which come in pieces of three letters or
// whole, leaves it nowhere.
func TestModel_AKeyThatIsRepeatedIsNowhere(t *testing.T) {
	arguments := `{"filename":"` + testKey + `"}`
	for name, turn := range map[string]llm.Turn{
		"text":  {Say: "The key is " + testKey + ", and that is all."},
		"calls": {Calls: []llm.Call{{Tool: "docs__read_document", Arguments: &arguments}}},
	} {
		for _, args := range [][]string{nil, {"--stream"}} {
			u, _ := askingUser(t, "x\n")
			p := newProvider(t, llm.Script{Turns: []llm.Turn{turn}})
			u.env = []string{config.EnvModel + "=m", config.EnvBaseURL + "=" + p.base(), config.EnvKey + "=" + testKey}
			got := u.must(exitUnreachable, append([]string{"run", "task.yaml", "--id", "r", "--log-file", u.path("log.jsonl"), "--record", "tape.jsonl"}, args...)...)
			journal := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout
			if !strings.Contains(journal, "key_repeated") || len(p.requests()) != 1 {
				t.Errorf("%s %v: asked %d times\n%s", name, args, len(p.requests()), journal)
			}
			for where, text := range map[string]string{"files": u.everything(), "output": got.stdout + got.messages, "journal": journal} {
				if strings.Contains(text, testKey) || strings.Contains(text, testKey[:8]) {
					t.Errorf("%s %v: the key is in the %s\n%s", name, args, where, got.messages)
				}
			}
		}
	}
}

// A flag is before a file, and a file before the environment.
func TestModel_FlagThenFileThenEnvironment(t *testing.T) {
	for _, row := range []struct {
		file, env, flag, want string
	}{
		{"", "from-env", "", "from-env"},
		{"openai: from-file", "from-env", "", "from-file"},
		{"openai: from-file", "from-env", "from-flag", "from-flag"},
		{"openai: {profile: openai}", "from-env", "", "from-env"},
		{"script: [{say: from-script}]", "from-env", "", ""},
		{"script: [{say: from-script}]", "", "from-flag", "from-flag"},
	} {
		u := newUser(t)
		p := newProvider(t, llm.Script{Turns: []llm.Turn{{Say: "Done."}}})
		u.write("sallyport.yaml", "servers: {calc: {builtin: calc}}\ntools: {calc__add: {owner: me, risk: read, output: none}}\n")
		task := "task: Say done.\n"
		if row.file != "" {
			task += "model: {" + row.file + "}\n"
		}
		u.write("task.yaml", task)
		u.env = []string{config.EnvModel + "=" + row.env, config.EnvBaseURL + "=" + p.base()}
		args := []string{"run", "task.yaml"}
		if row.flag != "" {
			args = append(args, "--model", row.flag)
		}
		u.must(exitOK, args...)
		asked := p.requests()
		if row.want == "" {
			if len(asked) > 0 {
				t.Errorf("%+v: the endpoint is asked", row)
			}
			continue
		}
		if len(asked) != 1 || !strings.Contains(asked[0].body, `"model":"`+row.want+`"`) {
			t.Errorf("%+v: asked %+v", row, asked)
		}
	}
}

// A project's file sends documents nowhere but to where the user lets it, and a key to
// no endpoint that only the project names.
func TestModel_AProjectSendsNothingElsewhere(t *testing.T) {
	u, p := askingUser(t, "x\n")
	u.env = []string{config.EnvKey + "=" + testKey}
	for name, row := range map[string]struct {
		model string
		want  string
	}{
		"with the path":  {"{openai: {model: m, base_url: https://a.example/v1/chat/completions}}", "task.yaml:3:32: model.openai.base_url: a base URL goes up to /chat/completions, and without it"},
		"another host":   {"{openai: {model: m, base_url: https://evil.example.org/v1}}", "task.yaml:3:32: model.openai.base_url: https://evil.example.org/v1: only a project's file names this endpoint"},
		"no encryption":  {"{openai: {model: m, base_url: \"http://192.0.2.1/v1\"}}", "documents would be sent there without encryption: use https://, or list exactly this URL under `endpoints`"},
		"another secret": {"{openai: {model: m, base_url: \"" + p.base() + "\", key_env: HOME}}", "model.openai.key_env: a project cannot say which secret goes to an endpoint"},
		"another file":   {"{openai: {model: m, key_file: ~/.ssh/id_ed25519}}", "model.openai.key_file: a project cannot say which secret goes to an endpoint"},
	} {
		u.write("task.yaml", "task: x\nmodel:\n  "+strings.TrimSuffix(strings.TrimPrefix(row.model, "{"), "}")+"\n")
		if got := u.must(exitUsage, "run", "task.yaml"); !strings.Contains(got.messages, row.want) {
			t.Errorf("%s:\n%s", name, got.messages)
		}
	}
	// In the configuration of the project it is the same, with the place there.
	u.write("task.yaml", "task: x\n")
	project := u.read("sallyport.yaml")
	u.write("sallyport.yaml", project+"model: {openai: {model: m, base_url: https://evil.example.org}}\n")
	if got := u.must(exitUsage, "run", "task.yaml"); !strings.Contains(got.messages, "sallyport.yaml:31:38: model.openai.base_url: https://evil.example.org: only") {
		t.Error(got.messages)
	}
	// This machine is asked, and gets no key.
	u.write("sallyport.yaml", project+"model: {openai: {model: m, base_url: \""+p.base()+"\"}}\n")
	u.must(exitParked, "run", "task.yaml")
	for _, a := range p.requests() {
		if a.header.Get("Authorization") != "" || strings.Contains(a.body, testKey) {
			t.Error("the key goes to an endpoint that only the project names")
		}
	}
	// If the user says so, it gets the key that is for it, and no other.
	u.write("config/sallyport/config.yaml", "endpoints: [{url: \""+p.base()+"\", key_env: LOCAL_KEY}]\n")
	u.env = append(u.env, "LOCAL_KEY=sk-local")
	before := len(p.requests())
	u.must(exitParked, "run", "task.yaml")
	if got := p.requests()[before].header.Get("Authorization"); got != "Bearer sk-local" {
		t.Errorf("it gets %q", got)
	}
}

// Whoever serves a run decides anew whether its endpoint may be asked: what the user
// has taken out of the list since then is not.
func TestModel_AnEndpointThatIsListedNoMoreIsNotAsked(t *testing.T) {
	const base = "https://llm.example.org/v1"
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	for _, v := range []string{config.EnvKey, config.EnvBaseURL, config.EnvModel} {
		t.Setenv(v, "")
	}
	own := filepath.Join(home, "sallyport", config.UserFile)
	list := func(text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(own), 0o700), os.WriteFile(own, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	list("endpoints: [" + base + "]\n")
	engine, err := embedded.Open(t.TempDir(), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = engine.Close() }()
	a := &app{}
	host := &scenarios.Host{Engine: engine, Endpoint: a.endpoint, Actor: "ann"}
	plan := scenarios.Plan{
		Run: "r", Task: "x", Budget: agent.DefaultBudget, Model: "m",
		Setup: scenarios.Setup{Endpoint: &config.Endpoint{Model: "m", BaseURL: base}},
	}
	if _, _, err := host.Begin(t.Context(), plan); err != nil {
		t.Fatal(err)
	}
	list("endpoints: [https://llm.example.org/v2]\n")
	err = host.Serve(t.Context(), "r")
	var refused *config.Refused
	if code, _ := codeOf(err); !errors.As(err, &refused) || code != exitUsage || !strings.Contains(err.Error(), "list it under `endpoints`") {
		t.Errorf("%v", err)
	}
	if run, entries, err := scenarios.Load(t.Context(), engine, "r"); err != nil || len(entries) != 1 || !run.State.Open() {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	plan.Run = "s"
	if _, _, err := host.Begin(t.Context(), plan); !errors.As(err, &refused) {
		t.Errorf("another run begins: %v", err)
	}
	// Another program, which reaches no endpoints, says so.
	host.Endpoint = nil
	if err := host.Serve(t.Context(), "r"); !errors.Is(err, scenarios.ErrNoEndpoints) {
		t.Errorf("%v", err)
	}
}

// A run that asks what OPENAI_BASE_URL named, with a key, asks nothing in a shell that has
// neither, says why, and stays open.
func TestModel_AnotherShellIsToldWhatTheRunWasBegunWith(t *testing.T) {
	u, p := askingUser(t, "x\n")
	p.admit(testKey)
	begun := []string{config.EnvModel + "=m", config.EnvBaseURL + "=" + p.base(), config.EnvKey + "=" + testKey}
	u.env = begun
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	u.env = nil
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	u.must(exitOK, "approve", "r", "--sha256", digest, "--no-resume")
	asked := len(p.requests())
	for name, env := range map[string][]string{"another shell": nil, "without the key": begun[:2], "without the address": {begun[0], begun[2]}} {
		u.env = env
		got := u.must(exitNoKey, "resume", "r")
		for _, want := range []string{"the run was begun with OPENAI_BASE_URL=" + p.base() + " and a key", "under `endpoints` in your own configuration", "run r stays open", "when that is done: "} {
			if !strings.Contains(got.messages, want) {
				t.Errorf("%s: no %q:\n%s", name, want, got.messages)
			}
		}
	}
	if len(p.requests()) != asked {
		t.Error("the endpoint was asked")
	}
	u.env = begun
	u.must(exitOK, "resume", "r")
}

// Without its key an endpoint is not asked, and no run is created.
func TestModel_WithoutItsKeyNoRunBegins(t *testing.T) {
	u, p := askingUser(t, "x\n")
	key := u.write("config/sallyport/model.key", testKey+"\n")
	u.write("config/sallyport/config.yaml", "model: {openai: {model: m, base_url: \""+p.base()+"\", key_file: model.key}}\n")
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := u.must(exitNoKey, "run", "task.yaml", "--id", "r"); !strings.Contains(got.messages, "wider than 0600") || strings.Contains(got.messages, testKey) {
		t.Error(got.messages)
	}
	if got := u.run("show", "r"); got.code == 0 || len(p.requests()) > 0 {
		t.Errorf("a run was created: %+v, %d requests", got, len(p.requests()))
	}
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	p.admit(testKey)
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	if strings.Contains(u.everything("model.key"), testKey) {
		t.Error("the key is stored")
	}
	u.write("config/sallyport/config.yaml", "state: "+u.path("state2")+"\n")
	u.write("task.yaml", "task: x\nmodel: {openai: m}\n")
	if got := u.must(exitNoKey, "run", "task.yaml"); !strings.Contains(got.messages, "the variable OPENAI_API_KEY is empty") {
		t.Error(got.messages)
	}
	// One that is none is found before the run begins, also where none is needed.
	u.env = []string{config.EnvBaseURL + "=" + p.base(), config.EnvKey + "=sk-one\nsk-two"}
	if got := u.must(exitNoKey, "run", "task.yaml", "--id", "s"); !strings.Contains(got.messages, "OPENAI_API_KEY holds more than one word") || strings.Contains(got.messages, "sk-one") {
		t.Error(got.messages)
	}
	if got := u.run("show", "s"); got.code != int(exitUsage) {
		t.Errorf("a run was created: %+v", got)
	}
}

// Whatever ends a run at once has its advice.
func TestModel_EveryFinalReasonHasItsAdvice(t *testing.T) {
	for _, reason := range chat.Reasons() {
		if _, said := finals[reason]; said != chat.Final(reason) {
			t.Errorf("%s: final %v, advice %v", reason, chat.Final(reason), said)
		}
	}
}

// A run whose turns were used up by refused ones says so, and what may help.
func TestModel_TurnsThatAreRefusedInARow(t *testing.T) {
	for _, row := range []struct{ last, want string }{
		{"{say: a, finish: length}", "Of its last 3 turns 3 were refused as cut_off: the model comes to no end within its max_tokens"},
		{"{say: a, finish: none}", "refused as unfinished: the endpoint ends its turns without saying that they are complete: see sallyport doctor --live, or go on without --stream"},
		{"{call: {tool: calc__add, args: {a: 1, b: 2}}}", ""},
	} {
		u := newUser(t)
		u.write("sallyport.yaml", "servers: {calc: {builtin: calc}}\ntools: {calc__add: {owner: me, risk: read, output: none}}\n")
		u.write("task.yaml", "task: x\nbudgets: {model_turns: 3}\nmodel: {script: ["+strings.Repeat(row.last+", ", 4)+"{say: z}]}\n")
		got := u.must(exitFailed, "run", "task.yaml")
		if said := strings.Contains(got.messages, "Of its last"); said != (row.want != "") || !strings.Contains(got.messages, row.want) {
			t.Errorf("%s:\n%s", row.last, got.messages)
		}
	}
}

// What an endpoint says of a wrong key holds the key, and nobody repeats it.
func TestModel_AWrongKeyIsNotRepeated(t *testing.T) {
	u, p := askingUser(t, "x\n")
	p.admit("another")
	u.env = []string{config.EnvModel + "=m", config.EnvBaseURL + "=" + p.base(), config.EnvKey + "=" + testKey}
	got := u.must(exitUnreachable, "run", "task.yaml", "--id", "r")
	shown := u.must(exitOK, "show", "r").stdout
	if !strings.Contains(shown, "model:auth") {
		t.Errorf("%s%s", shown, got.messages)
	}
	log := between(t, got.messages, "What the endpoint said, without secrets, is in ", "\n")
	if data, err := os.ReadFile(log); err != nil || !strings.Contains(string(data), `"auth"`) {
		t.Errorf("%v: %s", err, data)
	}
	for _, want := range []string{"The endpoint did not take the key", "Mend the key", "fork r --serve"} {
		if !strings.Contains(got.messages, want) {
			t.Errorf("no %q: %s", want, got.messages)
		}
	}
	if strings.Contains(u.everything()+got.messages+got.stdout+shown, testKey) {
		t.Error("the key is repeated")
	}
}

// What the model says is shown as it comes, as what it is: another's words.
func TestModel_StreamsToTheTerminal(t *testing.T) {
	u := newUser(t)
	p := newProvider(t, llm.Script{Turns: []llm.Turn{{Say: "It is \x1b[2Jdone.\napprove? approve\n\u202eevil"}}})
	u.write("sallyport.yaml", "servers: {calc: {builtin: calc}}\ntools: {calc__add: {owner: me, risk: read, output: none}}\n")
	u.write("task.yaml", "task: Say done.\nmodel: {openai: m}\n")
	u.env = []string{config.EnvBaseURL + "=" + p.base()}
	got := u.must(exitOK, "run", "task.yaml", "--stream")
	want := liveLabel + "\n  │ It is ⟦U+001B⟧[2Jdone.\n  │ approve? approve\n  │ ⟦U+202E⟧evil\n"
	if !strings.Contains(got.messages, want) || strings.ContainsAny(got.messages, "\x1b\u202e") {
		t.Errorf("%q\nwant %q", got.messages, want)
	}
	if again := u.must(exitOK, "run", "task.yaml"); strings.Contains(again.messages, liveLabel) || again.stdout != got.stdout {
		t.Errorf("%+v", again)
	}
}

// A run is recorded over a pause between two processes, and then played without any
// endpoint, in one line.
func TestRecord_OverAPauseAndReplay(t *testing.T) {
	const content = "It was changed on 9 March.\n"
	u, p := askingUser(t, content)
	u.env = []string{config.EnvModel + "=m", config.EnvBaseURL + "=" + p.base()}
	u.must(exitParked, "run", "task.yaml", "--id", "r", "--record", "first.jsonl")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	u.must(exitOK, "approve", "r", "--sha256", digest, "--no-resume")
	recorded := u.must(exitOK, "resume", "r", "--record", "first.jsonl")
	if got := u.must(exitUsage, "run", "task.yaml", "--record", "first.jsonl"); !strings.Contains(got.messages, "the file is there already") {
		t.Error(got.messages)
	}
	if err := os.Remove(u.path("desk/reports/report.md")); err != nil {
		t.Fatal(err)
	}
	u.env = nil
	p.Close()
	u.write("task.yaml", "task: Save what the notes say.\nmodel: {replay: first.jsonl}\n")
	u.must(exitParked, "run", "task.yaml", "--id", "s")
	tape := u.read("first.jsonl")
	if err := os.Remove(u.path("first.jsonl")); err != nil { // it is kept with the run
		t.Fatal(err)
	}
	digest = memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	if got := u.must(exitOK, "approve", "s", "--sha256", digest); got.stdout != recorded.stdout || u.read("desk/reports/report.md") != content {
		t.Errorf("%+v", got)
	}
	if shown := u.must(exitOK, "show", "s", "-o", "json").stdout; !strings.HasPrefix(memberOf(t, shown, "model"), "replay:openai:m@127.0.0.1:") {
		t.Error(shown)
	}

	// With another document it does not fit, and says where and how.
	u.write("first.jsonl", tape)
	u.write("desk/sources/notes.md", "The lamp was changed on 10 March.\n")
	if got := u.must(exitUsage, "run", "task.yaml", "--id", "t"); !strings.Contains(got.messages, "first.jsonl:3: turn 2 is asked for otherwise than it was recorded") ||
		!strings.Contains(got.messages, "The lamp was changed on 10 March.") || !strings.Contains(got.messages, "run t stays open") {
		t.Error(got.messages)
	}
	// Changed, it is not played at all.
	u.write("first.jsonl", strings.Replace(tape, "9 March", "8 March", 1))
	if got := u.must(exitUsage, "run", "task.yaml", "--id", "u"); !strings.Contains(got.messages, "it was changed after it was recorded") {
		t.Error(got.messages)
	}
	u.write("task.yaml", "task: x\nmodel: {replay: absent.jsonl}\n")
	if got := u.must(exitUsage, "run", "task.yaml"); !strings.Contains(got.messages, "task.yaml:2:17: model.replay: read the cassette: open") {
		t.Error(got.messages)
	}
}

// The cassette of another run, or of a fork's parent, is refused before anything begins.
func TestRecord_NotInTheCassetteOfAnother(t *testing.T) {
	u, p := askingUser(t, "x\n")
	u.env = []string{config.EnvModel + "=m", config.EnvBaseURL + "=" + p.base()}
	u.must(exitParked, "run", "task.yaml", "--id", "other", "--record", "other.jsonl")
	u.must(exitParked, "run", "task.yaml", "--id", "r", "--record", "r.jsonl")
	other, asked := u.read("other.jsonl"), len(p.requests())
	journal := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout
	refused := func(want string, args ...string) {
		t.Helper()
		got := u.must(exitUsage, args...)
		if !strings.Contains(got.messages, want) || len(p.requests()) != asked || u.read("other.jsonl") != other {
			t.Errorf("%d requests\n%s", len(p.requests())-asked, got.messages)
		}
	}
	refused(`it records run "other", and this is run "r"`, "resume", "r", "--record", "other.jsonl", "--calls", "+1")
	refused("give a new file", "resume", "r", "--record", "task.yaml")
	if after := u.must(exitOK, "journal", "r", "-o", "jsonl").stdout; after != journal {
		t.Errorf("it went on: %s", after)
	}
	u.must(exitOK, "cancel", "other")
	refused("the file is there already", "resume", "other", "--record", "other.jsonl", "--calls", "+1", "--id", "f")
	if got := u.run("show", "f"); got.code != int(exitUsage) {
		t.Errorf("a fork began: %+v", got)
	}
}

// What cannot be recorded does not go on.
func TestRecord_NeedsAFile(t *testing.T) {
	u, _ := askingUser(t, "x\n")
	u.write("task.yaml", "task: x\nmodel: {script: [{say: Done.}]}\n")
	u.must(exitUsage, "run", "task.yaml", "--id", "r", "--record", "no/such/folder/x.jsonl")
	if got := u.run("show", "r"); got.code == 0 {
		t.Error("a run was begun")
	}
	u.must(exitOK, "run", "task.yaml", "--id", "r", "--record", "x.jsonl")
	if !strings.Contains(u.read("x.jsonl"), `"text":"Done."`) {
		t.Error(u.read("x.jsonl"))
	}
}

// A run of a real model becomes a scenario that needs none, and holds.
func TestScenario_FromARunOfAnEndpoint(t *testing.T) {
	const content = "It was changed on 9 March.\n"
	u, p := askingUser(t, content)
	u.env = []string{config.EnvModel + "=m", config.EnvBaseURL + "=" + p.base()}
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	digest := memberOf(t, u.must(exitOK, "approvals", "-o", "json").stdout, "sha256")
	u.must(exitOK, "approve", "r", "--sha256", digest)
	u.env = nil
	p.Close()
	u.write("below/.keep", "")
	if got := u.must(exitOK, "scenario", "from-run", "r", "--out", "below/r.yaml"); got.messages != "" || got.stdout != "" {
		t.Errorf("%+v", got)
	}
	text := u.read("below/r.yaml")
	if !strings.Contains(text, "\nconfig: \"../sallyport.yaml\"\n") || !strings.Contains(text, "open_body: true\n") {
		t.Error(text)
	}
	if got := u.must(exitOK, "run", "below/r.yaml"); !strings.Contains(got.stdout, "PASS") {
		t.Errorf("%+v\n%s", got, text)
	}
	u.must(exitUsage, "scenario", "from-run", "r", "--out", "below/r.yaml")
	if got := u.must(exitOK, "scenario", "from-run", "r"); !strings.Contains(got.stdout, "scenario: \"As run r went\"\ntask: ") {
		t.Error(got.stdout)
	}
	u.must(exitUsage, "scenario", "from-run", "other")
}

// A suite plays scenarios of endpoints too, also those whose process dies on the way.
func TestSuite_PlaysAnEndpoint(t *testing.T) {
	u, p := askingUser(t, "x\n")
	u.env = []string{config.EnvBaseURL + "=" + p.base()}
	const scenario = "scenario: An endpoint reads and saves\ntask: Save what the notes say.\nfiles: {sources/notes.md: \"x\\n\"}\n" +
		"model: {openai: m}\napprovals: [approve]\nexpect: {state: completed, files: {reports/report.md: {equals: \"x\\n\"}}}\n"
	u.write("one.yaml", scenario)
	u.write("two.yaml", scenario+"faults: [{crash: \"after_perform:observe\"}]\n")
	got := u.must(exitOK, "test", "one.yaml", "two.yaml")
	if len(p.requests()) < 6 {
		t.Errorf("%d requests\n%+v", len(p.requests()), got)
	}
}
