package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"sallyport/scenarios/config"
)

// patient is an endpoint that the doctor asks. It adds with the calculator, unless it is
// told to be ill.
type patient struct {
	*httptest.Server
	key      string   // the only one that is let in; empty lets everybody in
	models   []string // nil: it has no such list
	noTools  bool     // it answers without a call
	asText   bool     // it writes the call as text
	wrongSum bool
	refuses  []string // requests that hold one of these are refused, with a 400 that names it
	noUsage  bool
	noStream bool   // streams end without their finish reason
	finish   string // of turns; empty: as it should be
	echoes   bool   // it repeats the key in the list of models and in its turns
	twice    bool   // it gives two calls one id
	gone     bool   // it lists models, and has none of them
	unmarked bool   // streams end without their end marker
	objects  bool   // arguments come as an object, and calls without ids

	mu    sync.Mutex // guards all of it but the server
	asked int        // questions to the model
}

// ail changes it, before it is asked, and returns how often it was asked till then.
func (p *patient) ail(change func()) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	asked := p.asked
	p.asked = 0
	return asked
}

func newPatient(t *testing.T) *patient {
	t.Helper()
	p := &patient{models: []string{"other", "m"}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// ServeHTTP implements [http.Handler].
func (p *patient) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	say := func(status int, text string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
	switch {
	case p.key != "" && r.Header.Get("Authorization") != "Bearer "+p.key:
		say(http.StatusUnauthorized, fmt.Sprintf(`{"error":{"message":"wrong key %s","code":"invalid_api_key"}}`, r.Header.Get("Authorization")))
		return
	case r.URL.Path == "/v1/models" && p.models != nil:
		var data []map[string]string
		for _, name := range p.models {
			if p.echoes {
				name += " " + r.Header.Get("Authorization")
			}
			data = append(data, map[string]string{"id": name})
		}
		text, _ := json.Marshal(map[string]any{"object": "list", "data": data})
		say(http.StatusOK, string(text))
		return
	case r.URL.Path != "/v1/chat/completions", p.gone:
		say(http.StatusNotFound, `{}`)
		return
	}
	p.asked++
	for _, word := range p.refuses {
		if strings.Contains(string(body), word) {
			text, _ := json.Marshal(map[string]any{"error": map[string]string{"message": "cannot take " + word, "type": "invalid_request_error"}})
			say(http.StatusBadRequest, string(text))
			return
		}
	}
	if strings.Contains(string(body), `"stream":true`) {
		p.stream(w)
		return
	}
	text := p.turn(string(body))
	if p.echoes {
		text = strings.Replace(text, `"content":`, `"reasoning":"`+r.Header.Get("Authorization")+`","content":`, 1)
	}
	say(http.StatusOK, text)
}

func (p *patient) turn(body string) string {
	message, finish := map[string]any{"role": "assistant", "content": "ok"}, "stop"
	args := any(`{"a":7,"b":5}`)
	id := "c1"
	if p.objects {
		args, id = map[string]int{"a": 7, "b": 5}, ""
	}
	switch called := strings.Contains(body, `"role":"tool"`); {
	case !strings.Contains(body, `"calc__add"`):
	case called && p.wrongSum:
		message["content"] = "13"
	case called || p.noTools:
		message["content"] = "12"
	case p.asText:
		message["content"] = `<tool_call>{"name": "calc__add", "arguments": {"a": 7, "b": 5}}</tool_call>`
	default:
		finish = "tool_calls"
		message["content"] = nil
		made := []any{map[string]any{"id": id, "type": "function", "function": map[string]any{"name": "calc__add", "arguments": args}}}
		if p.twice {
			made = append(made, made...)
		}
		message["tool_calls"] = made
	}
	if p.finish != "" {
		finish = p.finish
	}
	answer := map[string]any{"object": "chat.completion", "choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": finish}}}
	if !p.noUsage {
		answer["usage"] = providerUsage
	}
	text, _ := json.Marshal(answer)
	return string(text)
}

func (p *patient) stream(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	finish := `"stop"`
	if p.noStream {
		finish = "null"
	}
	usage := `,"usage":{"prompt_tokens":3,"completion_tokens":1}`
	if p.noUsage {
		usage = ""
	}
	_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ok\"},\"finish_reason\":%s}]%s}\n\n", finish, usage)
	if !p.unmarked {
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}
}

// examined runs the doctor, and gives the findings by check, with all that was said.
func (u *user) examined(code exit, args ...string) (map[string]finding, string) {
	u.t.Helper()
	got := u.must(code, append([]string{"doctor", "-o", "json"}, args...)...)
	var found []finding
	if err := json.Unmarshal([]byte(got.stdout), &found); err != nil {
		u.t.Fatalf("%v:\n%s", err, got.stdout)
	}
	by := map[string]finding{}
	for _, f := range found {
		if _, twice := by[f.Check]; twice {
			u.t.Errorf("check %q is there twice", f.Check)
		}
		if (f.Health == healthFail) != (f.Exit != exitOK) || f.Says == "" {
			u.t.Errorf("%+v", f)
		}
		by[f.Check] = f
	}
	return by, got.stdout + got.messages
}

// is checks a finding.
func (u *user) is(found map[string]finding, check string, want health, says, do string) {
	u.t.Helper()
	f, ok := found[check]
	if !ok || f.Health != want || !strings.Contains(f.Says, says) || !strings.Contains(f.Do, do) {
		u.t.Errorf("%s: %+v\nwant %s, %q, %q", check, f, want, says, do)
	}
}

// ailing is a user whose project has a server and whose model is a patient.
func ailing(t *testing.T) (*user, *patient) {
	t.Helper()
	u, p := newUser(t), newPatient(t)
	stubDesk(u)
	u.env = []string{config.EnvModel + "=m", config.EnvBaseURL + "=" + p.URL + "/v1"}
	return u, p
}

func TestDoctor_OfAHealthySetUp(t *testing.T) {
	u, p := ailing(t)
	p.ail(func() { p.key = testKey })
	u.env = append(u.env, config.EnvKey+"="+testKey)
	found, said := u.examined(exitOK, "--live")
	for check, says := range map[string]string{
		"version": "journal format", "your config": "config.yaml loads; it lets 1 keys sign", "project": "sallyport.yaml loads, with 1 servers and 2 tools",
		"state": "is not there yet; the first run makes it", "disk": "MiB are free", "clock": "files are dated the same",
		"key ann": "its file is yours alone; it has no passphrase; your configuration lets it sign", "approvers": "1 may sign",
		"builtin calc": "1 of 1 contracted tools are there", "builtin docs": "2 of 2", "server stub": "2 of 2 contracted tools are there",
		"model": "m at " + p.URL + "/v1, with the profile openai", "endpoint": "takes the key", "model's name": "lists m, among 2",
		"tool calling": "it called calc__add, and answered with the sum: 2 turns, 36 tokens", "streaming": "a streamed turn came",
		"usage": "11 tokens in, of which 0 cached, and 7 out", "profile": "openai fits: max_completion_tokens is taken; max_tokens is taken",
	} {
		u.is(found, check, healthPass, says, "")
	}
	u.is(found, "terminal", healthSkip, "nobody is asked", "")
	if strings.Contains(said+u.everything(), testKey) {
		t.Error("the key is shown")
	}
	if _, err := os.Stat(u.path("state")); err == nil || u.reached("get")+u.reached("put") > 0 {
		t.Errorf("state was made, or tools were called: %v", err)
	}
	if left, _ := os.ReadDir(u.path("tmp")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if n := p.ail(func() {}); n != 2+5 {
		t.Errorf("%d questions", n)
	}
	// For people: a line each; without --live the sum only.
	got := u.must(exitOK, "doctor")
	for _, line := range []string{"PASS  tool calling   it called", "SKIP  streaming      say --live"} {
		if !strings.Contains(got.stdout, "\n"+line) {
			t.Errorf("lacks %q:\n%s", line, got.stdout)
		}
	}
	if n := p.ail(func() {}); n != 2 || strings.Contains(got.stdout, "FAIL") || strings.Contains(got.stdout, testKey) {
		t.Errorf("%d questions\n%s", n, got.stdout)
	}
	// With state, it is opened, and one line of JSON each.
	u.env = nil
	u.must(exitParked, "run", "task.yaml", "--id", "r")
	lines := strings.Split(strings.TrimSuffix(u.must(exitOK, "doctor", "-o", "jsonl").stdout, "\n"), "\n")
	if !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "1 runs, 1 open") && json.Valid([]byte(l)) }) {
		t.Errorf("%q", lines)
	}
}

// Each of these breaks one thing, and the doctor names that, with what to do, and the
// exit code that a run would end in.
func TestDoctor_OfBrokenSetUps(t *testing.T) {
	for name, row := range map[string]struct {
		ail    func(*user, *patient)
		args   []string
		code   exit
		check  string
		health health
		says   string
		do     string
	}{
		"the endpoint is down": {func(_ *user, p *patient) { p.Close() }, nil,
			exitUnreachable, "endpoint", healthFail, "unreachable: ask 127.0.0.1:", "start it, or mend base_url; by hand: curl http://"},
		"the key is wrong": {func(u *user, p *patient) { p.key = "another"; u.env = append(u.env, config.EnvKey+"="+testKey) }, nil,
			exitNoKey, "key", healthFail, "it is not taken: ask 127.0.0.1:", "see which key is meant for it"},
		"the key is missing": {func(u *user, _ *patient) { u.env = []string{config.EnvModel + "=m"} }, nil,
			exitNoKey, "model", healthFail, "the variable OPENAI_API_KEY is empty", "set the variable"},
		"the model does not call tools": {func(_ *user, p *patient) { p.noTools = true }, nil,
			exitFailed, "tool calling", healthFail, `it answered without calling the tool: "12"`, "choose a model that calls tools"},
		"the engine does not read calls": {func(_ *user, p *patient) { p.asText = true }, nil,
			exitFailed, "tool calling", healthFail, "it answered without calling the tool: \"<tool_call>", "--enable-auto-tool-choice"},
		"the model cannot add": {func(_ *user, p *patient) { p.wrongSum = true }, nil,
			exitOK, "tool calling", healthWarn, `did not answer with the sum: "13"`, ""},
		"the model is another": {func(_ *user, p *patient) { p.models = []string{"a", "b"} }, nil,
			exitOK, "model's name", healthWarn, "the endpoint does not list m; it lists a, b", "name one that it lists"},
		"there is no list of models": {func(_ *user, p *patient) { p.models = nil }, nil,
			exitOK, "endpoint", healthPass, "has no list of models (not_found)", ""},
		"nothing says what a turn costs": {func(_ *user, p *patient) { p.noUsage = true }, []string{"--live"},
			exitOK, "usage", healthWarn, "turns do not say what they cost", "bound the turns as well"},
		"streams do not end": {func(_ *user, p *patient) { p.noStream = true }, []string{"--live"},
			exitOK, "streaming", healthWarn, "without its finish reason", "leave --stream away"},
		"streams have no end marker": {func(_ *user, p *patient) { p.unmarked = true }, []string{"--live"},
			exitOK, "streaming", healthWarn, "or without the end marker [DONE]", "leave --stream away"},
		"turns are cut": {func(_ *user, p *patient) { p.finish = "length" }, nil,
			exitFailed, "tool calling", healthFail, "cut_off", "raise max_tokens under model.openai"},
		"calls share an id": {func(_ *user, p *patient) { p.twice = true }, nil,
			exitFailed, "tool calling", healthFail, "duplicate_id", "it gives two calls of a turn one id"},
		"the request is refused": {func(_ *user, p *patient) { p.refuses = []string{"messages"} }, nil,
			exitUnreachable, "tool calling", healthFail, "the request is refused: ", "see what it does not take"},
		"tools are refused": {func(_ *user, p *patient) { p.refuses = []string{"tools"} }, nil,
			exitUnreachable, "tool calling", healthFail, "the request is refused: ", "choose a model that calls tools"},
		"the model is neither listed nor there": {func(_ *user, p *patient) { p.models, p.gone = []string{"a"}, true }, nil,
			exitUnreachable, "tool calling", healthFail, "404", "name a model that the endpoint has"},
		"the endpoint repeats the key": {func(u *user, p *patient) { p.echoes = true; u.env = append(u.env, config.EnvKey+"="+testKey) }, nil,
			exitUnreachable, "tool calling", healthFail, "key_repeated", "docs/providers.md says what key_repeated means"},
		"the endpoint lists the key": {func(u *user, p *patient) { p.echoes = true; u.env = append(u.env, config.EnvKey+"="+testKey) }, nil,
			exitUnreachable, "model's name", healthWarn, "it lists other Bearer [key]", ""},
		"arguments are objects": {func(_ *user, p *patient) { p.objects = true }, []string{"--live"},
			exitOK, "oddities", healthPass, "arguments come as an object, calls have no ids: all of it is understood", ""},
		"another profile fits": {func(_ *user, p *patient) { p.refuses = []string{"max_completion_tokens"} }, []string{"--live"},
			exitOK, "profile", healthWarn, "openai does not fit, which sends max_completion_tokens; ollama would", "write `profile: ollama`"},
		"null content is refused": {func(_ *user, p *patient) { p.refuses = []string{`"content":null`} }, []string{"--live"},
			exitUnreachable, "profile", healthWarn, "content null beside calls is not (refused: ask 127.0.0.1", "write `profile: ollama`"},
		"no profile fits": {func(_ *user, p *patient) { p.refuses = []string{"max_completion_tokens", "max_tokens"} }, []string{"--live"},
			exitOK, "profile", healthWarn, "nor does any other", "leave max_tokens out"},
		"one call at a time is refused": {func(_ *user, p *patient) { p.refuses = []string{"parallel_tool_calls"} }, []string{"--live"},
			exitUnreachable, "one call", healthFail, "tools are taken only without parallel_tool_calls", "use a model that takes the field"},
		"others may write to the state": {func(u *user, _ *patient) { u.write("state/sallyport/x", ""); u.mode("state/sallyport", 0o777) }, nil,
			exitUsage, "state", healthFail, "others may write to it (mode 0777); run: chmod 700", "--state DIR"},
		"the state is no folder": {func(u *user, _ *patient) { u.write("state/sallyport", "") }, nil,
			exitUsage, "state", healthFail, "not a directory", ""},
		"the state is not ours": {func(u *user, _ *patient) {
			u.write("state/sallyport/state.db", strings.Repeat("no database ", 500))
			u.mode("state/sallyport", 0o700)
		}, nil,
			exitUsage, "journals", healthFail, "state.db", ""},
		"a server does not start": {func(u *user, _ *patient) {
			u.write("sallyport.yaml", strings.Replace(u.read("sallyport.yaml"), "servers:", "servers:\n  gone: {command: [./no-such-server]}", 1))
		}, nil,
			exitUnreachable, "server gone", healthFail, "no-such-server", "try its command by hand: "},
		"an optional server does not start": {func(u *user, _ *patient) {
			u.write("sallyport.yaml", strings.Replace(u.read("sallyport.yaml"), "servers:", "servers:\n  gone: {command: [./no-such-server], optional: true}", 1))
		}, nil,
			exitOK, "server gone", healthWarn, "it is optional", "try its command by hand: "},
		"a tool is not there": {func(u *user, _ *patient) {
			u.write("sallyport.yaml", u.read("sallyport.yaml")+"  stub__gone: {owner: me, risk: read, result: status}\n")
		}, nil,
			exitOK, "server stub", healthWarn, "2 of 3 contracted tools are there", "have the contract fit the server"},
		"a key can be read by others": {func(u *user, _ *patient) { u.mode("config/sallyport/keys/ann.json", 0o644) }, nil,
			exitNoKey, "key ann", healthFail, "wider than 0600", "chmod 600 "},
		"a key is no approver's": {func(u *user, _ *patient) { u.must(exitOK, "keys", "new", "--no-passphrase", "--as", "bob") }, nil,
			exitOK, "key bob", healthWarn, "your configuration does not list it as an approver", "list it under approvers"},
		"nobody may sign any more": {func(u *user, _ *patient) {
			u.write("config/sallyport/config.yaml", "approvers: [{key: ann, not_after: 2020-01-01}]\n")
		}, nil,
			exitNoKey, "approvers", healthFail, "were to sign until a day that has passed", "a later not_after"},
		"a key of the configuration is unknown": {func(u *user, _ *patient) { u.write("config/sallyport/config.yaml", "approver: [ann]\n") }, nil,
			exitUsage, "your config", healthFail, "config.yaml:1:1: ", "mend the file at that place"},
		"a key of the project is unknown": {func(u *user, _ *patient) { u.write("sallyport.yaml", u.read("sallyport.yaml")+"tolls: {}\n") }, nil,
			exitUsage, "project", healthFail, "sallyport.yaml:13:1: ", "mend the file at that place"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, p := ailing(t)
			p.ail(func() { row.ail(u, p) })
			found, said := u.examined(row.code, row.args...)
			u.is(found, row.check, row.health, row.says, row.do)
			if strings.Contains(said, testKey) {
				t.Errorf("the key is shown:\n%s", said)
			}
		})
	}
}

// A list without an end is shown up to one.
func TestDoctor_BoundsTheListOfModels(t *testing.T) {
	long := strings.Repeat("é", shownName)
	for name, row := range map[string]struct {
		names []string
		want  string
	}{
		"10 names":             {slices.Repeat([]string{"a"}, shownModels), strings.Repeat("a, ", shownModels-1) + "a"},
		"11 names":             {slices.Repeat([]string{"a"}, shownModels+1), strings.Repeat("a, ", shownModels-1) + "a, … (11 in all)"},
		"a name of 64 letters": {[]string{long}, long},
		"and of 65":            {[]string{long + "é"}, long + "…"},
	} {
		if got := some(row.names); got != row.want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestDoctor_OfDisks(t *testing.T) {
	for room, want := range map[int64]health{-1: healthSkip, 0: healthFail, noRoom - 1: healthFail, noRoom: healthWarn, leastRoom - 1: healthWarn, leastRoom: healthPass} {
		d := &doctor{app: &app{output: formatJSON}}
		if d.disk(room); len(d.found) != 1 || d.found[0].Health != want {
			t.Errorf("%d bytes: %+v", room, d.found)
		}
	}
}

// mode changes the mode of a file or folder.
func (u *user) mode(name string, mode os.FileMode) {
	u.t.Helper()
	if err := os.Chmod(u.path(name), mode); err != nil {
		u.t.Fatal(err)
	}
}

// Somebody who has nothing yet is told what to do first, and nothing has failed.
func TestDoctor_WithoutAnyConfiguration(t *testing.T) {
	u := newUser(t)
	found, _ := u.examined(exitOK)
	u.is(found, "your config", healthWarn, "there is none yet", "sallyport keys new")
	u.is(found, "project", healthWarn, "there is no sallyport.yaml here", "sallyport demo")
	u.is(found, "model", healthWarn, "none is configured", "SALLYPORT_MODEL")
	u.is(found, "keys", healthWarn, "you have none", "sallyport keys new")
	u.is(found, "servers", healthSkip, "no configuration names any", "")
	if entries, err := os.ReadDir(u.dir); err != nil || len(entries) != 2 {
		t.Errorf("something was made: %v, %v", entries, err)
	}
	// A file that is named and not there is a mistake.
	found, _ = u.examined(exitUsage, "--config", "none.yaml")
	u.is(found, "project", healthFail, "none.yaml", "")
	// On a terminal somebody can be asked.
	s := u.open("doctor")
	if code, screen := s.end(); code != 0 || !strings.Contains(screen, "PASS  terminal       somebody can be asked here; it has 80 columns") {
		t.Errorf("exit code %d\n%s", code, screen)
	}
}
