package scenarios

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/agent"
)

// folder is a folder of a test with the shipped configuration and files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	configuration, err := os.ReadFile("research/sallyport.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files["sallyport.yaml"] = string(configuration)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// one loads a scenario of one case, written in place.
func one(t *testing.T, text string) *Scenario {
	t.Helper()
	s, err := LoadFile(filepath.Join(folder(t, map[string]string{"x.yaml": text}), "x.yaml"), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// saves is a scenario of one save, with more at its end.
func saves(t *testing.T, more string) *Scenario {
	t.Helper()
	return one(t, `scenario: x
task: x
approvers: {ann: {}, ben: {}}
model:
  script:
    - call: {tool: docs__save_report, args: {filename: a.md, content: "abc"}}
    - say: Done.
`+more)
}

// otherwise plays a scenario and returns its mismatches as text.
func otherwise(t *testing.T, s *Scenario) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "stage")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Play(t.Context(), s, PlayOptions{Remove: true, StageOptions: StageOptions{Self: executable(t), Dir: dir, Show: shown}})
	if err != nil {
		t.Fatalf("%v\n%s", err, strings.Join(r.Tail, "\n"))
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the stage is left: %v", err)
	}
	if !r.Passed() {
		t.Log(strings.Join(r.Tail, "\n"))
	}
	var all []string
	for _, m := range r.Mismatches {
		if m.File != "" && m.Line == 0 {
			t.Errorf("%s has no line", m)
		}
		all = append(all, m.String())
	}
	return strings.Join(all, "\n")
}

// What is expected and does not hold is found, one thing at a time, and its line named.
func TestPlay_FindsWhatIsOtherwise(t *testing.T) {
	for name, tt := range map[string]struct{ more, want string }{
		"path":             {"approvals: [approve]\nexpect: {path: [model, completed]}", `path: got "model, execute,`},
		"rows":             {"approvals: [approve]\nexpect: {rows: [started]}", `rows: got "started, proposed,`},
		"an event":         {"approvals: [approve]\nexpect: {events: [granted, edited]}", `events.1: got "no such entry after the ones before it", want "{row: edited}"`},
		"the order":        {"approvals: [approve]\nexpect: {events: [checked, granted]}", `events.1`},
		"no event":         {"approvals: [approve]\nexpect: {no_events: [{origin: approver}]}", `no_events.0: got "entry 5 is one"`},
		"a count":          {"approvals: [approve]\nexpect: {counts: {proposed: 2-}}", `counts.proposed: got "1", want "2-"`},
		"used":             {"approvals: [approve]\nexpect: {used: {calls: 0, turns: \"3-\"}}", "used.calls: got \"1\", want \"0\"\nused.turns: got \"2\", want \"3-\""},
		"the answer":       {"approvals: [approve]\nexpect: {answer: {equals: done}}", `answer.equals: got "Done.", want "done"`},
		"a request":        {"approvals: [approve]\nexpect: {model: {lacks: docs__save_report, requests: 1}}", `model.requests: got "2", want "1"`},
		"tools":            {"approvals: [approve]\nexpect: {model: {tools: [docs__save_report]}}", `model.tools: got "docs__search_documents,`},
		"arguments":        {"approvals: [approve]\nexpect: {calls: [{tool: docs__save_report, args: {filename: b.md, content: abc}}]}", `calls.0.args: got "{\"content\":\"abc\",\"filename\":\"a.md\"}"`},
		"who signed":       {"approvals: [approve]\nexpect: {calls: [{tool: docs__save_report, approvers: [ben]}]}", `calls.0.approvers: got "ann", want "ben"`},
		"quarantined":      {"approvals: [approve]\nexpect: {quarantined: {docs__save_report: x}}", `quarantined.docs__save_report: got "it is", want "it is not offered"`},
		"held":             {"expect: {held: true}\napprovals: [approve]", `held: got "false", want "true"`},
		"begun":            {"approvals: [approve]\nexpect: {begin: {refused: x}}", `begin: got "a run was begun"`},
		"changed":          {"approvals: [approve]\nfiles: {reports/b.md: x}\nexpect: {only: {reports: [a.md]}}", `only.reports: got "a.md, b.md", want "a.md"`},
		"a decision more":  {"approvals: [approve, approve]\nexpect: {state: completed}", `approvals: got "1 came up", want "2 candidates"`},
		"a forgery":        {"approvals: [[{do: forge, expect: other}, approve]]\nexpect: {state: completed}", `approvals.0.0.expect: got "refused: forged", want "refused: other"`},
		"a forged approve": {"approvals: [[{do: approve, expect: forged}]]\nexpect: {state: completed}", `approvals.0.0.expect: got "row granted", want "refused: forged"`},
		"signed twice":     {"approvals: [[{do: approve, by: ann}, {do: approve, by: ann}]]\nexpect: {state: completed}", `approvals.0.1: got "refused: not_waiting", want "a decision that is taken"`},
		"no such point":    {"approvals: [approve]\noperator: [{at: needs_verification, do: cancel}]\nexpect: {state: completed}", `operator.0: got "it was not", want "the point is reached"`},
		"expired before":   {"clock: [{jump: 25h, at: awaiting_approval}]\napprovals: [[{do: forge, expect: {row: endorsed}}, {do: approve, expect: forged}]]\nexpect: {counts: {granted: 0}}", "approvals.0.0: got \"it was not delivered\", want \"a decision that is delivered\"\napprovals.0.1: got \"it was not delivered\""},
		"cancelled before": {"operator: [{at: awaiting_approval, do: cancel}]\napprovals: [approve]\nexpect: {state: cancelled}", `approvals.0: got "it was not delivered"`},
		"paused before":    {"operator: [{at: awaiting_approval, do: pause}]\napprovals: [approve]\nexpect: {held: true}", `approvals.0: got "it was not delivered"`},
		"behind a wait":    {"approvals: [[wait, approve]]\nexpect: {state: awaiting_approval}", `approvals.0.1: got "it was not delivered"`},
		"no such moment":   {"clock: [{jump: 1h, at: verify}]\napprovals: [approve]\nexpect: {state: completed}", `clock.0: got "it was not", want "the point is reached"`},
		"no such fault":    {"approvals: [approve]\nfaults: [{crash: \"before_perform:verify\"}]\nexpect: {state: completed}", `faults.0: got "it was not", want "the point is reached"`},
		"findings":         {"approvals: [approve]\nexpect: {findings: [outcome_unknown]}", `findings: want "outcome_unknown"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := otherwise(t, saves(t, tt.more)); !strings.Contains(got, tt.want) {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// A grant, a key or a scope in a request fails every scenario, whatever it expects.
func TestPlay_ASecretInARequestIsFound(t *testing.T) {
	s := saves(t, "approvals: [approve]\nexpect: {state: completed}")
	st, err := SetUp(s, StageOptions{Self: executable(t), Name: "x", Scripted: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = st.Close(), st.Remove() }()
	p := newPlay(st, PlayOptions{})
	x, err := p.perform(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x.body = func(ref agent.BodyRef) ([]byte, error) { return st.Host.Engine.Body(t.Context(), st.Run, ref) }
	found := map[string]bool{}
	for secret, what := range x.secrets {
		x.heard[1].Request = `{"content":"` + secret + `"}`
		got, err := s.Expect.compare(t.Context(), x)
		if err != nil || len(got) != 1 || !strings.Contains(got[0].Want, what) {
			t.Errorf("%s: %v, %v", what, got, err)
		}
		found[what] = true
	}
	for _, what := range []string{"a grant", "a private key", "a public key", "a scope", "a folder of the stage"} {
		if !found[what] {
			t.Errorf("%s is not looked for", what)
		}
	}
}

// A journal that an audit finds broken fails every scenario.
func TestPlay_ABrokenJournalIsFound(t *testing.T) {
	s := saves(t, "approvals: [approve]\nexpect: {state: completed}")
	st, err := SetUp(s, StageOptions{Self: executable(t), Name: "x", Scripted: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = st.Close(), st.Remove() }()
	x, err := newPlay(st, PlayOptions{}).perform(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	x.body = func(agent.BodyRef) ([]byte, error) { return []byte("other content"), nil }
	got, err := s.Expect.compare(t.Context(), x)
	if err != nil || len(got) != 1 || got[0].Path != "audit" {
		t.Errorf("%v, %v", got, err)
	}
}

func TestPlay_WhoMaySign(t *testing.T) {
	two := `
tools:
  docs__save_report:
    owner: desk
    risk: write
    result: status
    approval: {approvers: 2, role: editor}
    side_effect: creates one new file
    rollback: delete it
    grant_field: grant
begun_by: ann
`
	for name, tt := range map[string]struct{ people, decisions, want string }{
		"two others":            {"{ann: {roles: [editor]}, ben: {roles: [editor]}, eve: {roles: [editor]}}", "[approve]", "completed"},
		"each by name":          {"{ann: {roles: [editor]}, ben: {roles: [editor]}, eve: {roles: [editor]}}", "[[{do: approve, by: ben, expect: {row: endorsed}}, {do: approve, by: ben, expect: twice}, {do: approve, by: eve, expect: {row: granted}}]]", "completed"},
		"who began is none":     {"{ann: {roles: [editor]}, ben: {roles: [editor]}, eve: {roles: [editor]}}", "[[{do: approve, by: ann, expect: key}, {do: approve, by: ben}, wait]]", "awaiting_approval"},
		"without the role none": {"{ann: {}, ben: {roles: [editor]}, eve: {roles: [editor]}, joe: {}}", "[[{do: approve, by: joe, expect: key}, approve]]", "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := one(t, "scenario: x\ntask: x\nmodel: {script: [{call: {tool: docs__save_report, args: {filename: a.md, content: abc}}}, {say: Done.}]}\n"+
				"approvers: "+tt.people+"\napprovals: "+tt.decisions+two+"expect: {state: "+tt.want+"}\n")
			if got := otherwise(t, s); got != "" && !strings.Contains(got, "calls") {
				t.Error(got)
			}
		})
	}
}

// Each kind of file is what it says (CASES X3).
func TestStage_PutsEveryKindOfFile(t *testing.T) {
	s := one(t, `scenario: x
task: x
files:
  sources/text.md: abc
  sources/mode.md: {text: abc, mode: "0644"}
  sources/from.md: {from: sallyport.yaml}
  sources/bytes.md: {hex: "ff fe"}
  sources/size.md: {size: 5, repeat: "ab"}
  sources/link.md: {link: outside/secret.md}
  sources/dangling.md: {link: /nowhere}
  sources/hard.md: {hardlink: outside/secret.md}
  sources/pipe.md: {fifo: true}
  sources/sub/deep.md: abc
  sources/closed: {folder: true, mode: "0000"}
  reports: {absent: true}
  outside/secret.md: secret
model: {script: [{say: x}]}
expect: {begin: {refused: docs}}
`)
	st, err := SetUp(s, StageOptions{Self: executable(t), Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(st.Desk, name))
		if err != nil {
			t.Error(err)
		}
		return string(data)
	}
	for name, want := range map[string]string{"text.md": "abc", "bytes.md": "\xff\xfe", "size.md": "ababa", "link.md": "secret", "hard.md": "secret", "sub/deep.md": "abc"} {
		if got := read("sources/" + name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(read("sources/from.md"), "servers:") {
		t.Error("from.md is not the file")
	}
	for name, want := range map[string]string{
		"mode.md": "-rw-r--r--", "text.md": "-rw-------", "link.md": "Lrwxrwxrwx", "dangling.md": "Lrwxrwxrwx", "pipe.md": "prw-------", "closed": "d---------",
	} {
		info, err := os.Lstat(filepath.Join(st.Desk, "sources", name))
		if err != nil || info.Mode().String() != want {
			t.Errorf("%s: %v, %v, want %s", name, info.Mode(), err, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(st.Desk, "reports")); !os.IsNotExist(err) {
		t.Errorf("reports: %v", err)
	}
	_, _, err = st.Begin(t.Context())
	if err == nil || !strings.Contains(err.Error(), "docs") {
		t.Errorf("begun without reports: %v", err)
	}
	if err := st.Close(); err != nil {
		t.Error(err)
	}
	if err := st.Remove(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(st.Dir); !os.IsNotExist(err) {
		t.Errorf("the stage is left: %v", err)
	}
}

func TestPlay_GoldenJournal(t *testing.T) {
	s := saves(t, "approvals: [approve]\nexpect: {golden: x.journal}")
	if got := otherwise(t, s); !strings.Contains(got, "it is not there") {
		t.Errorf("got %s", got)
	}
	r, err := played(t, s, PlayOptions{Update: true})
	if err != nil || !r.Passed() || filepath.Base(r.Updated) != "x.journal" {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := otherwise(t, s); got != "" {
		t.Error(got)
	}
	data, err := os.ReadFile(r.Updated)
	if err != nil || !strings.Contains(string(data), "\n5 approve → granted (execute)\n") {
		t.Errorf("%s, %v", data, err)
	}
	if err := os.WriteFile(r.Updated, append(data, "more\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := otherwise(t, s); !strings.HasPrefix(got, "golden: got") {
		t.Errorf("got %s", got)
	}
}

// Only what is a golden journal already is rewritten: not what a link leads to, nor any
// other file of the folder. What comes there after the file was loaded is left too.
func TestPlay_GoldenJournalIsNoOtherFile(t *testing.T) {
	const text = "scenario: x\ntask: x\nmodel: {script: [{say: x}]}\nexpect: {golden: %}\n"
	write := func(name string) string { return strings.ReplaceAll(text, "%", name) }
	dir := folder(t, map[string]string{
		"server.py": "print(1)\n", "empty": "", "a.yaml": write("server.py"), "b.yaml": write("link"), "c.yaml": write("b.yaml"),
		"d.yaml": write("folder"), "e.yaml": write("empty"), "f.yaml": write("sallyport.yaml"), "g.yaml": write("g.golden"), "real": "1 start → started (model)\n",
	})
	if err := errors.Join(os.Symlink("real", filepath.Join(dir, "link")), os.Mkdir(filepath.Join(dir, "folder"), 0o700)); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{
		"a.yaml": `"server.py" is there, and is no golden journal`, "b.yaml": `"link" is no ordinary file`, "c.yaml": `"b.yaml" is there, and is no`,
		"d.yaml": `"folder" is no ordinary file`, "e.yaml": `"empty" is there, and is no`, "f.yaml": `"sallyport.yaml" is there, and is no`,
	} {
		_, err := LoadFile(filepath.Join(dir, file), LoadOptions{})
		if err == nil || !strings.Contains(err.Error(), file+":4:18: expect.golden: "+want) || !strings.Contains(err.Error(), "name a new file") {
			t.Errorf("%s: %v", file, err)
		}
	}
	s, err := LoadFile(filepath.Join(dir, "g.yaml"), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("server.py", filepath.Join(dir, "g.golden")); err != nil {
		t.Fatal(err)
	}
	_, err = played(t, s, PlayOptions{Update: true})
	if data, _ := os.ReadFile(filepath.Join(dir, "server.py")); err == nil || string(data) != "print(1)\n" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestLoadCases_MatrixParametersAndIncludes(t *testing.T) {
	dir := folder(t, map[string]string{
		"x.yaml": `scenario: x ${a} ${b}
include: [one.yaml]
parameters: {a: 0, c: "own"}
matrix: {a: [1, 2], b: {first: [x], second: {y: z}}}
model: {script: [{say: "${a}${c}"}]}
budgets: {tool_calls: "${a}"}
`,
		"one.yaml":   "include: two.yaml\nparameters: {c: theirs, d: deep}\nexpect: {state: completed, answer: {contains: \"${c}\"}}\n",
		"two.yaml":   "include: three.yaml\ntask: \"${d}\"\nexpect: {state: failed, reason: \"\"}\n",
		"three.yaml": "files: {\"sources/${d}.md\": x}\n",
	})
	// b stands alone in a title: a list is no text.
	_, err := LoadCases(filepath.Join(dir, "x.yaml"), LoadOptions{})
	if err == nil || !strings.Contains(err.Error(), `parameter "b" is a list, and stands within a text`) {
		t.Fatalf("%v", err)
	}
	text, _ := os.ReadFile(filepath.Join(dir, "x.yaml"))
	if err := os.WriteFile(filepath.Join(dir, "x.yaml"), []byte(strings.Replace(string(text), " ${b}", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	cases, err := LoadCases(filepath.Join(dir, "x.yaml"), LoadOptions{})
	if err != nil || len(cases) != 4 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for i, want := range []string{"x[a=1,b=first]", "x[a=1,b=second]", "x[a=2,b=first]", "x[a=2,b=second]"} {
		s := cases[i]
		if s.Name() != want || s.Title != "x "+want[4:5] || s.Task != "deep" || s.budget.Calls != i/2+1 || s.Expect.State != agent.StateCompleted {
			t.Errorf("case %d: %s, %+v", i, s.Name(), s)
		}
		if _, there := s.Files["sources/deep.md"]; !there || s.setup.Script.Turns[0].Say != want[4:5]+"own" || s.Expect.Answer.Contains[0] != "own" {
			t.Errorf("case %d: %v, %v, %v", i, s.Files, s.setup.Script.Turns, s.Expect.Answer)
		}
	}
	if _, err := LoadFile(filepath.Join(dir, "x.yaml"), LoadOptions{}); err == nil || !strings.Contains(err.Error(), "several cases") {
		t.Errorf("%v", err)
	}
	deeper := filepath.Join(dir, "three.yaml")
	if err := os.WriteFile(deeper, []byte("include: four.yaml\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "four.yaml"), []byte("task: x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadCases(filepath.Join(dir, "x.yaml"), LoadOptions{}); err == nil || !strings.Contains(err.Error(), "three.yaml:1:10: include: files are included deeper than 3 levels") {
		t.Errorf("%v", err)
	}
}

func TestLoadCases_AMatrixIsBounded(t *testing.T) {
	list := "[" + strings.TrimSuffix(strings.Repeat("%,", MaxCases), ",") + "]"
	for i := range MaxCases {
		list = strings.Replace(list, "%", string(rune('a'+i/26))+string(rune('a'+i%26)), 1)
	}
	text := "scenario: x\ntask: x\nmodel: {script: [{say: x}]}\nexpect: {state: completed}\nmatrix: {n: " + list
	dir := folder(t, map[string]string{"x.yaml": text + "}\n", "y.yaml": text + ", m: [1, 2]}\n"})
	if cases, err := LoadCases(filepath.Join(dir, "x.yaml"), LoadOptions{}); err != nil || len(cases) != MaxCases {
		t.Errorf("%d cases, %v", len(cases), err)
	}
	if _, err := LoadCases(filepath.Join(dir, "y.yaml"), LoadOptions{}); err == nil || !strings.Contains(err.Error(), "more than 200 cases") {
		t.Errorf("%v", err)
	}
}
