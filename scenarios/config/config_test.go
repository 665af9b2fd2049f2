package config

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/tools"
	"sallyport/tools/grant"
)

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newKey(t *testing.T, name string) string {
	t.Helper()
	k, err := grant.NewPrivateKey(name, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return k.Public().String()
}

func load(t *testing.T, project, user string, keys ...string) (*Config, error) {
	t.Helper()
	dir := t.TempDir()
	home := filepath.Join(dir, "user")
	if user != "" {
		write(t, filepath.Join(home, UserFile), user)
	}
	for _, k := range keys {
		name := k[strings.LastIndex(k, " ")+1:]
		write(t, filepath.Join(home, KeysDir, name+".pub"), k+"\n")
	}
	return Load(write(t, filepath.Join(dir, "project", FileName), project), Options{UserDir: home})
}

const calc = "servers: {calc: {builtin: calc}}\n"

func TestParse_TheExample(t *testing.T) {
	data, err := os.ReadFile("testdata/good/sallyport.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("/p/sallyport.yaml", data)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range c.Tools {
		names = append(names, tool.Name)
	}
	want := []string{"docs__search_documents", "docs__save_report", "docs__settle_report", tools.Alias("other", "files/read"), "other__mail"}
	if strings.Join(names, " ") != strings.Join(want, " ") {
		t.Errorf("tools %v, want %v", names, want)
	}
	save := c.Tools[1]
	if save.Risk != agent.RiskWrite || save.Approvers() != 1 || save.Expires() != 24*time.Hour || save.UseWithin() != 10*time.Minute ||
		save.Settle.AppliedWhen["sha256"].SHA256Of != "content" || save.Settle.Args["grant"] != tools.GrantArg || !save.Settle.Voids {
		t.Errorf("save_report: %+v", save)
	}
	docs, other := c.Servers[0], c.Servers[1]
	if docs.Root != "/p/desk" || docs.Audience != "docs@/p/desk" || docs.Scope != "desk/reading" {
		t.Errorf("docs: %+v", docs)
	}
	if other.Limit() != 5*time.Second || other.Dir != "/p" || other.Scope != "other" || other.Audience != "other@node server.js" || !other.Optional {
		t.Errorf("other: %+v", other)
	}
	if c.Model.Script.File != "/p/model.yaml" || c.State != "/p/.state" {
		t.Errorf("model %+v, state %q", c.Model.Script, c.State)
	}
	if want := (agent.Budget{Calls: 6, Turns: 24, Tokens: 200_000, Wall: 600}); c.Budget != want {
		t.Errorf("budget %+v, want %+v", c.Budget, want)
	}
	if len(c.Warnings) != 2 || c.Warnings[0].Line != 30 {
		t.Errorf("warnings %v", c.Warnings)
	}
}

func TestParse_WorkspaceServesTheBuiltin(t *testing.T) {
	data, err := os.ReadFile("testdata/good/workspace.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse("/p/x/sallyport.yaml", data)
	if err != nil || c.Servers[0].Root != "/p/x/desk" || c.Servers[0].Scope != "desk/reading" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLoad_WithoutAUserFileTheDefaultsAreTheCeiling(t *testing.T) {
	me, you := newKey(t, "me"), newKey(t, "you")
	c, err := load(t, calc, "", you, me)
	if err != nil {
		t.Fatal(err)
	}
	if c.Budget != agent.DefaultBudget {
		t.Errorf("budget %+v", c.Budget)
	}
	if len(c.Keys) != 2 || c.Keys[0].Key != me || c.Keys[1].Key != you {
		t.Errorf("keys %+v", c.Keys)
	}
	if _, err := load(t, calc+"budgets: {tool_calls: 12, model_turns: 24, tokens: 200000, wall_time: 15m}\n", ""); err != nil {
		t.Errorf("exactly the defaults: %v", err)
	}
	for _, b := range []string{"tool_calls: 13", "model_turns: 25", "tokens: 200001", "wall_time: 901s"} {
		if _, err := load(t, calc+"budgets: {"+b+"}\n", ""); err == nil || !strings.Contains(err.Error(), "raise it in your own configuration") {
			t.Errorf("%s: %v", b, err)
		}
	}
}

func TestLoad_TheUserRaisesAndTheProjectLowers(t *testing.T) {
	user := "budgets: {tool_calls: 40}\nservers: {calc: {max_tools: 30}}\ntools: {calc__mail: {send: on}}\nstate: /var/s\nmodel: {script: m.yaml}\n"
	mail := "tools:\n  calc__mail: {owner: me, risk: write, approval: {}, side_effect: sends, rollback: write again, effect: send}\n"
	c, err := load(t, calc+mail, user)
	if err != nil {
		t.Fatal(err)
	}
	if c.Budget.Calls != 40 || c.Budget.Turns != 24 || c.Servers[0].ToolLimit() != 30 || c.State != "/var/s" || !strings.HasSuffix(c.Model.Script.File, "/user/m.yaml") {
		t.Errorf("%+v", c)
	}
	if c.Tools[0].Off() || !c.Tools[0].Exposed() {
		t.Error("the send tool is off although the user switched it on")
	}
	if c, err = load(t, calc+"budgets: {tool_calls: 0}\nstate: s\n", user); err != nil || c.Budget.Calls != 0 || !strings.HasSuffix(c.State, "/project/s") {
		t.Errorf("lowered: %+v, %v", c, err)
	}
	if _, err = load(t, calc+"budgets: {tool_calls: 40}\n", user); err != nil {
		t.Errorf("exactly the user's: %v", err)
	}
	if _, err = load(t, calc+"budgets: {tool_calls: 41}\n", user); err == nil {
		t.Error("the project raises the user's budget")
	}
	if _, err = load(t, "servers: {calc: {builtin: calc, max_tools: 30}}\n", user); err != nil {
		t.Errorf("exactly the user's max_tools: %v", err)
	}
	if _, err = load(t, "servers: {calc: {builtin: calc, max_tools: 31}}\n", user); err == nil {
		t.Error("the project raises max_tools")
	}
	if c, err = load(t, calc+mail, ""); err != nil || !c.Tools[0].Off() || len(c.Warnings) != 2 {
		t.Errorf("a send tool that nobody switched on: %+v, %v", c, err)
	}
	if _, err = load(t, strings.Replace(calc+mail, "effect: send", "effect: send, send: on", 1), user); err == nil {
		t.Error("the project switches a send tool on")
	}
}

func TestLoad_TheProjectOnlyNarrowsTheApprovers(t *testing.T) {
	me, you, stranger := newKey(t, "me"), newKey(t, "you"), newKey(t, "stranger")
	for name, approvers := range map[string]string{"by name": "[me]", "by line": "['" + me + "']", "with a date": "[{key: me, not_after: 2031-01-31}]"} {
		c, err := load(t, calc+"approvers: "+approvers+"\n", "", me, you)
		if err != nil || len(c.Keys) != 1 || c.Keys[0].Key != me {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	for name, approvers := range map[string]string{"a stranger": "['" + stranger + "']", "no such name": "[her]", "twice": "[me, me]"} {
		if _, err := load(t, calc+"approvers: "+approvers+"\n", "", me, you); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	// The same key under another name is not the user's key.
	renamed := strings.TrimSuffix(stranger, "stranger") + "me"
	if _, err := load(t, calc+"approvers: ['"+renamed+"']\n", "", me); err == nil {
		t.Error("a key with a known name is accepted")
	}
	user := "approvers: [{key: me, not_after: 2030-06-01}]\n"
	c, err := load(t, calc, user, me, you)
	if err != nil || len(c.Keys) != 1 || c.Keys[0].Key != me || c.Keys[0].NotAfter.Year() != 2030 {
		t.Errorf("the user's list: %+v, %v", c, err)
	}
	if c, err = load(t, calc+"approvers: [{key: me, not_after: 2031-01-31}]\n", user, me); err != nil || c.Keys[0].NotAfter.Year() != 2030 {
		t.Errorf("a later date: %+v, %v", c, err)
	}
	if c, err = load(t, calc+"approvers: [{key: me, not_after: 2029-01-31}]\n", user, me); err != nil || c.Keys[0].NotAfter.Year() != 2029 {
		t.Errorf("a sooner date: %+v, %v", c, err)
	}
	if _, err = load(t, calc, "approvers: [her]\n", me); err == nil || !strings.Contains(err.Error(), "sallyport keys new") {
		t.Errorf("a name without a key: %v", err)
	}
}

// Roles come from the user's own file and reach the run; a project gives none.
func TestLoad_RolesAreTheUsersToGive(t *testing.T) {
	me := newKey(t, "me")
	user := "approvers: [{key: me, roles: [editor, desk-2]}]\n"
	c, err := load(t, calc, user, me)
	if err != nil || len(c.Keys) != 1 || strings.Join(c.Keys[0].Roles, " ") != "editor desk-2" {
		t.Errorf("the user's roles: %+v, %v", c, err)
	}
	if c, err = load(t, calc+"approvers: [me]\n", user, me); err != nil || len(c.Keys[0].Roles) != 2 {
		t.Errorf("a project that names the key: %+v, %v", c, err)
	}
	if _, err = load(t, calc+"approvers: [{key: me, roles: [owner]}]\n", user, me); err == nil || !strings.Contains(err.Error(), "cannot widen") {
		t.Errorf("a project that gives a role: %v", err)
	}
}

func TestLoad_NoUserLeavesKeysToTheCaller(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, FileName), calc+"approvers: [somebody]\n")
	c, err := Load(path, Options{UserDir: filepath.Join(dir, "nowhere"), NoUser: true})
	if err != nil || len(c.Keys) != 0 || c.Budget != agent.DefaultBudget {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLoadUser_RefusesWhatOthersCanWrite(t *testing.T) {
	dir := t.TempDir()
	path := write(t, filepath.Join(dir, UserFile), "budgets: {tool_calls: 1000}\n")
	if _, err := LoadUser(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadUser(dir); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
		t.Errorf("a file that everybody may write to: %v", err)
	}
	key := write(t, filepath.Join(dir, KeysDir, "a.pub"), "not a key\n")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadUser(dir); err == nil || !strings.Contains(err.Error(), key) {
		t.Errorf("a file that is no key: %v", err)
	}
}

func TestLoadUser_WrongFiles(t *testing.T) {
	for content, want := range map[string]string{
		"budget: {}":                                 `did you mean "budgets"?`,
		"tools: {a__b: {send: yes}}":                 "`send` is on or absent",
		"servers: {a: {max_tools: 1025}}":            "at most 1024 tools",
		"servers: {a: {max_tools: 0}}":               "0 is not above zero",
		"servers: {a: {command: [x]}}":               `unknown key "command"`,
		"budgets: {tool_calls: 1000001}":             "is more than",
		"budgets: {tokens: 99999999999999999999999}": "whole number",
		"approvers: [ed25519 x y]":                   "a key is one line",
		"approvers: [{key: me, roles: [Editor!]}]":   "is no role",
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, UserFile), content+"\n")
		if _, err := LoadUser(dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), UserFile+":1:") {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
}

// A relative home would be another folder wherever we are started.
func TestUserDir_RefusesARelativeHome(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_STATE_HOME", "elsewhere") // a relative one is ignored
	for home, ok := range map[string]bool{"/home/ann": true, "home/ann": false, "": false} {
		t.Setenv("HOME", home)
		for _, find := range []func() (string, error){UserDir, StateDir} {
			if dir, err := find(); (err == nil) != ok {
				t.Errorf("HOME %q: %q, %v", home, dir, err)
			}
		}
	}
}

// What the discovery of tools finds has its place in the file too.
func TestConfig_PlacesWhatIsFoundLater(t *testing.T) {
	c, err := Parse("sallyport.yaml", []byte("servers: {calc: {builtin: calc}}\ntools:\n  calc__add: {owner: me, risk: read, output: none}\n"))
	if err != nil {
		t.Fatal(err)
	}
	err = c.Problems([]tools.Problem{{Path: []string{"tools", "calc__add"}, Message: "what it is"}})
	if err == nil || !strings.HasPrefix(err.Error(), "sallyport.yaml:3:3: tools.calc__add: what it is\n") {
		t.Errorf("%v", err)
	}
	if err := c.Problems(nil); err != nil {
		t.Errorf("nothing was found: %v", err)
	}
}

func TestFind(t *testing.T) {
	root := t.TempDir()
	outside := write(t, filepath.Join(root, FileName), calc)
	repo := filepath.Join(root, "repo")
	task := write(t, filepath.Join(repo, "a", "b", "task.yaml"), "task: x\n")
	if _, err := Find(task); !errors.Is(err, ErrNotFound) {
		t.Errorf("outside a repository: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(repo, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := Find(task); !errors.Is(err, ErrNotFound) {
		t.Errorf("above the repository lies %s: %v", outside, err)
	}
	top := write(t, filepath.Join(repo, FileName), calc)
	if got, err := Find(task); err != nil || got != top {
		t.Errorf("at the root: %q, %v", got, err)
	}
	beside := write(t, filepath.Join(repo, "a", "b", FileName), calc)
	for _, start := range []string{task, filepath.Dir(task), filepath.Join(filepath.Dir(task), "not-yet.yaml")} {
		if got, err := Find(start); err != nil || got != beside {
			t.Errorf("beside %s: %q, %v", start, got, err)
		}
	}
}

func TestLoad_FilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "none.yaml"), Options{NoUser: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := Load(dir, Options{NoUser: true}); err == nil {
		t.Error("a folder is loaded")
	}
	big := write(t, filepath.Join(dir, "big.yaml"), "# "+strings.Repeat("x", MaxFile))
	if _, err := Load(big, Options{NoUser: true}); err == nil {
		t.Error("a file past the limit is loaded")
	}
}

func TestConfig_Digest(t *testing.T) {
	digest := func(data string) string {
		c, err := Parse("/p/sallyport.yaml", []byte(data))
		if err != nil {
			t.Fatal(err)
		}
		return c.Digest()
	}
	base := digest(calc)
	if digest("# a comment\nservers:\n  calc:\n    builtin: 'calc'\n") != base {
		t.Error("how the file is written counts")
	}
	for _, other := range []string{
		calc + "budgets: {tool_calls: 3}\n", calc + "model: {script: a.yaml}\n", calc + "model: {script: [1]}\n",
		calc + "model: {script: [2]}\n", "servers: {calc: {builtin: calc, timeout: 1s}}\n",
		calc + "tools: {calc__add: {owner: me, risk: read}}\n",
	} {
		if digest(other) == base {
			t.Errorf("the same digest for %s", other)
		}
	}
	if digest(calc+"model: {script: [1]}\n") == digest(calc+"model: {script: [2]}\n") {
		t.Error("the turns of an inline script do not count")
	}
}

func TestAudience_IsBoundedAndVisible(t *testing.T) {
	for _, s := range []tools.Server{
		{Prefix: "a", Command: []string{"x", strings.Repeat("y", 300)}},
		{Prefix: "a", Command: []string{"x", "\u202e"}},
		{Prefix: "a", Builtin: "docs", Root: "/" + strings.Repeat("d", 300)},
	} {
		if got := Audience(s); len(got) > maxAudience || !strings.HasPrefix(got, "a@sha256:") {
			t.Errorf("audience %q", got)
		}
	}
}

func TestDecodeStrict(t *testing.T) {
	type inner struct {
		Word string `yaml:"word" check:"required"`
	}
	type outer struct {
		inner `yaml:"-"`
		List  []inner        `yaml:"list"`
		Map   map[string]int `yaml:"map"`
		Any   Node           `yaml:"any"`
		Big   int64          `yaml:"big"`
		Real  float64        `yaml:"real"`
		Ptr   *bool          `yaml:"ptr"`
		Not   string         `yaml:"-"`
	}
	var out outer
	if err := DecodeStrict("f.yaml", []byte("word: w\nlist: [{word: a}]\nmap: {x: 1}\nany: [1, {two: 2.5}, null, true]\nbig: 9007199254740993\nreal: 2\nptr: false\n"), &out); err != nil {
		t.Fatal(err)
	}
	if out.Word != "w" || out.List[0].Word != "a" || out.Map["x"] != 1 || out.Big != 9007199254740993 || out.Real != 2 || out.Ptr == nil || *out.Ptr {
		t.Errorf("%+v", out)
	}
	if text, err := json.Marshal(out.Any); err != nil || string(text) != `[1,{"two":2.5},null,true]` {
		t.Errorf("any: %s, %v", text, err)
	}
	before := out
	err := DecodeStrict("f.yaml", []byte("list: [{}, {word: 5}]\nbig: 99999999999999999999\nNot: x\n"), &out)
	var all *Error
	if !errors.As(err, &all) || len(all.Diagnostics) != 5 {
		t.Fatalf("%v", err)
	}
	for i, want := range []string{"the key `word` is missing", "list.0: the key `word` is missing", "list.1.word: this is a whole number", "big:", `unknown key "Not"`} {
		if !strings.Contains(all.Diagnostics[i].String(), want) {
			t.Errorf("diagnostic %d: %s, want %q", i, all.Diagnostics[i], want)
		}
	}
	if out.Word != before.Word || out.Big != before.Big {
		t.Error("a failed decode changed the value")
	}
}

// refusing is a type that reads JSON, and wants an object.
type refusing struct{ read string }

func (r *refusing) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return errors.New("no object")
	}
	r.read = string(data)
	return nil
}

func TestDecodeStrict_GivesJSONToTypesThatReadIt(t *testing.T) {
	var out struct {
		One  refusing   `yaml:"one"`
		Many []refusing `yaml:"many"`
	}
	if err := DecodeStrict("f.yaml", []byte("one: {b: [1, null], a: 2.5}\nmany: [{}]\n"), &out); err != nil {
		t.Fatal(err)
	}
	if out.One.read != `{"a":2.5,"b":[1,null]}` || len(out.Many) != 1 || out.Many[0].read != "{}" {
		t.Errorf("%+v", out)
	}
	err := DecodeStrict("f.yaml", []byte("one: {}\nmany:\n  - {}\n  - text\n"), &out)
	if err == nil || !strings.HasPrefix(err.Error(), "f.yaml:4:5: many.1: no object") {
		t.Errorf("%v", err)
	}
}

func TestFile_Position(t *testing.T) {
	f, err := ParseFile("f.yaml", []byte("a:\n  b: [x, {c: 1}]\nd: |\n  text\n"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Position{
		"": {}, "a": {1, 1}, "a b": {2, 3}, "a b 0": {2, 7}, "a b 1 c": {2, 14}, "a b 9": {2, 3}, "a missing": {1, 1}, "e": {}, "d": {3, 4}, "a b 0 deeper": {2, 7},
	} {
		if got := f.Position(strings.Fields(path)...); got != want {
			t.Errorf("position of %q: %v, want %v", path, got, want)
		}
	}
}

func TestParseFile_IsBounded(t *testing.T) {
	for name, data := range map[string]string{
		"brackets":   "a: " + strings.Repeat("[", 200_000),
		"braces":     strings.Repeat("{a: ", 200_000),
		"dashes":     strings.Repeat("- ", 300_000) + "x",
		"indents":    indented(1200),
		"aliases":    "a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
		"levels":     "a: " + strings.Repeat("[", MaxNesting+1) + strings.Repeat("]", MaxNesting+1),
		"questions":  strings.Repeat("? ", 300_000) + "x",
		"no text":    "a: \xff\n",
		"many flaws": strings.Repeat("a: 1\n", 10_000),
	} {
		start := time.Now()
		_, err := ParseFile("f.yaml", []byte(data))
		var all *Error
		if !errors.As(err, &all) {
			t.Errorf("%s: %v", name, err)
		} else if len(all.Diagnostics) > maxDiagnostics {
			t.Errorf("%s: %d diagnostics", name, len(all.Diagnostics))
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("%s: took %s", name, took)
		}
	}
	fits := "a: " + strings.Repeat("[", MaxNesting-2) + strings.Repeat("]", MaxNesting-2)
	if _, err := ParseFile("f.yaml", []byte(fits)); err != nil {
		t.Errorf("at the limit of nesting: %v", err)
	}
}

func indented(levels int) string {
	var out strings.Builder
	for i := range levels {
		out.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return out.String()
}

func FuzzParse(f *testing.F) {
	for _, name := range []string{"testdata/good/sallyport.yaml", "testdata/good/minimal.yaml", "testdata/wrong/many_at_once.yaml", "testdata/wrong/anchor.yaml"} {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f.yaml", data)
		var all *Error
		if err != nil && !errors.As(err, &all) {
			t.Fatalf("error without a place: %v", err)
		}
		if err == nil {
			_ = c.Digest()
		}
	})
}
