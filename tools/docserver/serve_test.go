//go:build linux || darwin

package docserver

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/tools/grant"
	"sallyport/tools/stdio/stdiotest"
)

// refusedStart runs a server that must not start: exit 2, stdout empty, stderr with every part of says.
func refusedStart(t *testing.T, config string, env []string, says ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append([]string{childEnv + "=" + config}, env...)
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}` + "\n")
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 2 || stdout.Len() > 0 {
		t.Errorf("exit %d (%v), stdout %q", code, err, stdout.String())
	}
	for _, want := range says {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("stderr %q lacks %q", stderr.String(), want)
		}
	}
}

// CHECKS 25, SPEC D11: refused before the first frame, naming what is wrong, creating nothing.
func TestServe_RefusesToStart(t *testing.T) {
	away := func(part string) func(*testing.T, *desk) {
		return func(t *testing.T, d *desk) { must(t, os.RemoveAll(d.path(part))) }
	}
	link := func(part string) func(*testing.T, *desk) {
		return func(t *testing.T, d *desk) {
			must(t, os.Rename(filepath.Clean(d.path(part)), d.dir+"/elsewhere"))
			must(t, os.Symlink(d.dir+"/elsewhere", filepath.Clean(d.path(part))))
		}
	}
	file := func(part string) func(*testing.T, *desk) {
		return func(t *testing.T, d *desk) {
			must(t, os.RemoveAll(d.path(part)))
			must(t, os.WriteFile(d.path(part), nil, 0o644))
		}
	}
	short := "ed25519 " + base64.StdEncoding.EncodeToString(make([]byte, 31)) + " alice"
	for name, test := range map[string]struct {
		spoil func(*testing.T, *desk)
		says  string
	}{
		"no root":            {func(_ *testing.T, d *desk) { d.config.Root = "" }, "root"},
		"root absent":        {away(""), "root"},
		"root a link":        {link(""), "root"},
		"root a file":        {file(""), "root"},
		"no sources":         {away("sources"), "sources"},
		"sources a link":     {link("sources"), "sources"},
		"sources a file":     {file("sources"), "sources"},
		"no reports":         {away("reports"), "reports"},
		"reports a link":     {link("reports"), "reports"},
		"reports a file":     {file("reports"), "reports"},
		"no scope":           {func(_ *testing.T, d *desk) { d.config.Scope = "" }, "scope"},
		"blank scope":        {func(_ *testing.T, d *desk) { d.config.Scope = " " }, "scope"},
		"no audience":        {func(_ *testing.T, d *desk) { d.config.Audience = "" }, "audience"},
		"no keys":            {func(_ *testing.T, d *desk) { d.config.Keys = []string{} }, "keys"},
		"key of 31 bytes":    {func(_ *testing.T, d *desk) { d.config.Keys = []string{short} }, "keys[0]"},
		"key malformed":      {func(_ *testing.T, d *desk) { d.config.Keys[1] = "ed25519 ??? bob" }, "keys[1]"},
		"key twice":          {func(_ *testing.T, d *desk) { d.config.Keys[1] = d.config.Keys[0] }, "keys[1]"},
		"too few for two":    {func(_ *testing.T, d *desk) { d.config.Keys, d.config.Approvers = d.config.Keys[:1], 2 }, "keys"},
		"three approvers":    {func(_ *testing.T, d *desk) { d.config.Approvers = 3 }, "approvers"},
		"no ledger":          {func(_ *testing.T, d *desk) { d.config.Ledger = "" }, "ledger"},
		"ledger absent":      {func(t *testing.T, d *desk) { must(t, os.Remove(d.config.Ledger)) }, "ledger"},
		"ledger in the desk": {func(_ *testing.T, d *desk) { d.config.Ledger = d.path("sources") }, "ledger"},
		"ledger a link": {func(t *testing.T, d *desk) {
			must(t, os.Symlink(d.config.Ledger, d.config.Ledger+".link"))
			d.config.Ledger += ".link"
		}, "ledger"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			test.spoil(t, d)
			config := d.file()
			before := tree(t, d.dir)
			refusedStart(t, config, nil, test.says)
			if after := tree(t, d.dir); after != before {
				t.Errorf("the start changed\n%s\nto\n%s", before, after)
			}
			// The same inside this process leaves no descriptor.
			open := names(t, "/proc/self/fd")
			for range 3 {
				if s, err := New(d.config, Options{}); err == nil {
					must(t, s.Close())
					t.Error("New accepts it")
				}
			}
			if now := names(t, "/proc/self/fd"); now != open {
				t.Errorf("descriptors %s, before %s", now, open)
			}
		})
	}
}

func tree(t *testing.T, dir string) string {
	t.Helper()
	var list string
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		list += path + " " + d.Type().String() + "\n"
		return err
	}))
	return list
}

// A configuration file is strict, and its errors have file, line and column.
func TestLoadConfig_IsStrict(t *testing.T) {
	key := newApprover(t, "alice").public().String()
	good := "root: desk\nscope: s\naudience: a\nledger: ledger\nkeys:\n  - " + key + "\n"
	for name, test := range map[string]struct{ text, says string }{
		"unknown":            {good + "colour: red\n", `:7:1: unknown setting "colour"`},
		"other case":         {"Root: desk\n" + good, `:1:1: unknown setting "Root"`},
		"twice":              {good + "scope: t\n", ":7:"},
		"number for text":    {"root: 5\n", ":1:7: root: must be a text"},
		"null for text":      {"scope: null\n", ":1:8: scope: must be a text"},
		"text for number":    {good + "approvers: \"1\"\n", ":7:12: approvers: must be 1 or 2"},
		"three":              {good + "approvers: 3\n", ":7:12: approvers: must be 1 or 2"},
		"no bool":            {good + "mirror_text: yes\n", ":7:14: mirror_text: must be true or false"},
		"keys a text":        {"keys: " + key + "\n", ":1:7: keys: must be a list"},
		"key a number":       {"keys: [5]\n", ":1:8: keys[0]: must be a text"},
		"bad key":            {strings.Replace(good, key, "ed25519 AAAA alice", 1), ":6:5: keys[0]: parse public key"},
		"empty scope":        {strings.Replace(good, "scope: s", `scope: ""`, 1), ":2:8: scope: is missing or empty"},
		"a list":             {"- root\n", ":1:1: must be a mapping of settings"},
		"empty":              {"", "exactly one mapping"},
		"two documents":      {good + "---\n" + good, "exactly one mapping"},
		"syntax":             {"root: [\n", ":1:"},
		"an alias":           {"scope: &x s\naudience: *x\n", "must be a text"},
		"missing root":       {strings.Replace(good, "root: desk\n", "", 1), "root: is missing or empty"},
		"control characters": {"root: \"a\\0b\"\nscope: s\naudience: a\nledger: l\nkeys: [x]\n", ":1:7: root: is not text"},
	} {
		path := filepath.Join(t.TempDir(), "docs.yaml")
		must(t, os.WriteFile(path, []byte(test.text), 0o600))
		_, err := LoadConfig(path)
		if err == nil || !strings.HasPrefix(err.Error(), path+":") || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", name, err, test.says)
		}
	}
	for _, path := range []string{"", filepath.Join(t.TempDir(), "gone.yaml"), t.TempDir()} {
		if _, err := LoadConfig(path); err == nil {
			t.Errorf("LoadConfig(%q) accepted", path)
		}
	}
}

// YAML and JSON say the same; paths are relative to the file.
func TestLoadConfig_ReadsYAMLAndJSON(t *testing.T) {
	key := newApprover(t, "alice").public().String()
	dir := t.TempDir()
	want := Config{Root: filepath.Join(dir, "desk"), Scope: "é 😀 <&>/", Audience: "a", Ledger: "/var/ledger",
		Keys: []string{key}, Approvers: 1, MirrorText: true}
	asJSON, err := json.Marshal(map[string]any{"root": "desk", "scope": want.Scope, "audience": "a",
		"ledger": "/var/ledger", "keys": []string{key}, "approvers": 1, "mirror_text": true})
	must(t, err)
	for name, text := range map[string]string{
		"c.json": string(asJSON),
		"c.yaml": "# a desk\nroot: ./desk\nscope: é 😀 <&>/\naudience: a\nledger: /var/ledger\nkeys:\n- " + key + "\napprovers: 1\nmirror_text: true\n",
	} {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(text), 0o600))
		got, err := LoadConfig(path)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, want)
		}
	}
}

// SPEC D11: keys come from the file or from the environment.
func TestServe_TakesKeysFromTheEnvironment(t *testing.T) {
	d := newDesk(t)
	both := strings.Join(d.config.Keys, "\n") + "\n"
	text, err := json.Marshal(map[string]any{"root": d.root, "scope": d.config.Scope, "audience": d.config.Audience, "ledger": d.config.Ledger})
	must(t, err)
	path := filepath.Join(d.dir, "keyless.json")
	must(t, os.WriteFile(path, text, 0o600))
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{childEnv + "=" + path, KeysEnv + "=" + both}
	c := stdiotest.Start(t, cmd, stdiotest.Current)
	expect(t, c, ToolSave, saving("a.md", "x", d.grant("a.md", "x")), StatusOK)
	refusedStart(t, path, nil, "keys", KeysEnv)
	refusedStart(t, path, []string{KeysEnv + "=ed25519 AAAA alice"}, "keys[0]")
	// The file's keys are not widened by the environment.
	stranger := newApprover(t, "mallory")
	c = d.start(KeysEnv + "=" + stranger.public().String())
	payload := d.claims("b.md", "x", func(c *grant.Claims) { c.Approver = "mallory" })
	d.keys = append(d.keys, stranger)
	expect(t, c, ToolSave, saving("b.md", "x", d.sign(payload)), StatusRejected)
}

// CHECKS 6, SPEC D10: hostile and odd input ends cleanly, with every stdout line a JSON-RPC message (the client
// checks that), nothing of the input on stderr, and never a hang or a panic.
func TestServe_SurvivesHostileInput(t *testing.T) {
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	for name, test := range map[string]struct {
		line string
		code int // of the exit
	}{
		"junk":                {"secret junk", 1},
		"half a message":      {`{"jsonrpc":"2.0","id":1,"method":"tools/list","secret":`, 1},
		"two messages":        {`{"jsonrpc":"2.0","id":1,"method":"ping"}{"secret":1}`, 1},
		"a batch":             {`[{"jsonrpc":"2.0","id":1,"method":"secret"}]`, 1},
		"a number":            {`5`, 1},
		"null":                {`null`, 1},
		"a duplicate method":  {`{"jsonrpc":"2.0","id":1,"method":"tools/list","method":"secret"}`, 1},
		"duplicate arguments": {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read_document","arguments":{},"arguments":{}}}`, 1},
		"not UTF-8":           {"{\"jsonrpc\":\"2.0\",\"id\":\"secret\xff\",\"method\":\"ping\"}", 1},
		"a lone surrogate":    {`{"jsonrpc":"2.0","id":"secret\ud800","method":"ping"}`, 1},
		"deep":                {`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + deep + `}`, 1},
		"a huge exponent":     {`{"jsonrpc":"2.0","id":1e999999,"method":"ping"}`, 1},
		"1 MiB and one":       {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("s", 1<<20) + `"}}`, 1},
		"8 MiB":               {strings.Repeat("s", 8<<20), 1},
		"blank lines":         {"\n \t\r\n\n", 0},
		"a reply to nothing":  {`{"jsonrpc":"2.0","id":77,"result":{}}`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := newDesk(t).start()
			c.Tools()
			c.TrySend(test.line)
			if code := c.End(); code != test.code {
				t.Errorf("exit %d, want %d: %s", code, test.code, c.Stderr())
			}
			for _, bad := range []string{"secret", "panic", "goroutine"} {
				if strings.Contains(c.Stderr(), bad) {
					t.Errorf("stderr: %.2000s", c.Stderr())
				}
			}
		})
	}
}

// Exactly 1 MiB passes.
func TestServe_TakesALineOfOneMebibyte(t *testing.T) {
	c := newDesk(t).start()
	line := c.Line("1", "tools/list", json.RawMessage(`{"x":""}`))
	line = strings.Replace(line, `"x":""`, `"x":"`+strings.Repeat("s", 1<<20-len(line))+`"`, 1)
	if len(line) != 1<<20 {
		t.Fatalf("%d bytes", len(line))
	}
	c.Send(line)
	if m, ok := c.Next(); !ok || m.Error != nil {
		t.Errorf("%+v", m)
	}
}

// What was piped in is answered before the end of the input ends the server, saves included.
func TestServe_AnswersWhatWasPipedIn(t *testing.T) {
	d := newDesk(t)
	c := d.start()
	for i := range 10 {
		name := fmt.Sprintf("r%d.md", i)
		c.Request("tools/call", json.RawMessage(`{"name":"save_report","arguments":`+saving(name, "x", d.grant(name, "x", call(name)))+`}`))
	}
	c.Request("subscriptions/listen", json.RawMessage(`{"notifications":{"toolsListChanged":true}}`))
	c.CloseInput()
	saved := 0
	for {
		m, ok := c.Next()
		if !ok {
			break
		}
		if strings.Contains(string(m.Result), `"ok"`) {
			saved++
		}
	}
	if code := c.Wait(); code != 0 || saved != 10 {
		t.Errorf("exit %d, %d saved: %s", code, saved, c.Stderr())
	}
}

// Server start to the first answer.
func BenchmarkStart(b *testing.B) {
	d := newDesk(b)
	for b.Loop() {
		c := d.start()
		c.Tools()
		b.StopTimer()
		c.End()
		b.StartTimer()
	}
}
