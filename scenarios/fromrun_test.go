package scenarios

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/nodes/llm/cassette"
	"sallyport/scenarios/config"
)

// written plays a scenario and writes its run down, beside a configuration.
func written(t *testing.T, s *Scenario, o PlayOptions, configuration string) (Result, Written) {
	t.Helper()
	var w Written
	var failed error
	o.Began = func(st *Stage, run agent.Run) func(agent.Run) {
		return func(agent.Run) { w, failed = FromRun(t.Context(), st.Host.Engine, run.ID, configuration) }
	}
	o.Remove = true
	r, err := played(t, s, o)
	if err := errors.Join(err, failed); err != nil || !r.Passed() {
		t.Fatalf("%+v, %v", r.Mismatches, err)
	}
	return r, w
}

// again plays what was written down.
func again(t *testing.T, w Written, configuration string) Result {
	t.Helper()
	path := filepath.Join(t.TempDir(), "scenario.yaml")
	text, err := os.ReadFile(configuration)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{path: w.YAML, filepath.Join(filepath.Dir(path), config.FileName): text} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := LoadFile(path, LoadOptions{})
	if err != nil {
		t.Fatalf("%v\n%s", err, w.YAML)
	}
	r, err := played(t, s, PlayOptions{Remove: true})
	if err != nil || !r.Passed() || !r.Compared {
		t.Errorf("%+v, %v\n%s", r.Mismatches, err, w.YAML)
	}
	return r
}

// What was written down of a run of a shipped scenario, played, goes as the run did:
// the same calls with the same arguments. What cannot be said is noted.
func TestFromRun_ShippedScenariosPlayAgain(t *testing.T) {
	files, err := filepath.Glob("research/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, "approvals/edited.yaml", "approvals/obedient.yaml", "approvals/late.yaml", "providers/oddities.yaml")
	const configuration = "research/sallyport.yaml"
	whole := 0
	for _, file := range files {
		if filepath.Base(file) == config.FileName {
			continue
		}
		all, err := LoadCases(file, LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range all {
			if s.Config.File == "" || !sameConfiguration(s, configuration) || len(s.Faults) > 0 || s.Expect.Begin != nil {
				continue
			}
			t.Run(file+s.Case, func(t *testing.T) {
				was, w := written(t, s, PlayOptions{}, "")
				if len(w.Notes) > 0 {
					t.Logf("noted: %q", w.Notes)
					return
				}
				whole++
				is := again(t, w, configuration)
				if len(is.Calls) != len(was.Calls) {
					t.Fatalf("%d calls, were %d", len(is.Calls), len(was.Calls))
				}
				for i, c := range is.Calls {
					if c.Arguments != was.Calls[i].Arguments {
						t.Errorf("call %d has other arguments", i+1)
					}
				}
			})
		}
	}
	if whole < 5 {
		t.Errorf("%d scenarios were written down whole", whole)
	}
}

func sameConfiguration(s *Scenario, file string) bool {
	a, err1 := os.Stat(s.Config.File)
	b, err2 := os.Stat(file)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// A run of a cassette is written down as any other, with what its turns cost.
func TestFromRun_OfACassette(t *testing.T) {
	tape := filepath.Join(t.TempDir(), "tape.jsonl")
	r, err := cassette.Create(tape)
	if err != nil {
		t.Fatal(err)
	}
	s := shippedScenario(t, "approved")
	s.setup.Script.Turns[0].Usage.Input = 12
	record := func(_ agent.Run, m nodes.Model) nodes.Model { return r.Model("openai:m@host", m) }
	if _, err := played(t, s, PlayOptions{StageOptions: StageOptions{Record: record}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("research/approved.yaml")
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), "\nmodel:\n")
	_, after, _ := strings.Cut(rest, "\napprovals:")
	settings, err := os.ReadFile("research/sallyport.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "replayed.yaml")
	for name, data := range map[string]string{path: before + "\nmodel: {replay: " + tape + "}\napprovals:" + after, filepath.Join(dir, config.FileName): string(settings)} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	replayed, err := LoadFile(path, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, w := written(t, replayed, PlayOptions{}, "")
	if len(w.Notes) > 0 || !strings.Contains(string(w.YAML), "the model was replay:openai:m@host.") || !strings.Contains(string(w.YAML), "usage: {input: 12, output: 0}") {
		t.Errorf("%q\n%s", w.Notes, w.YAML)
	}
	again(t, w, "research/sallyport.yaml")
}

// What only a search has seen is said, and so is what waits.
func TestFromRun_SaysWhatItCannot(t *testing.T) {
	s := shippedScenario(t, "approved")
	s.setup.Script.Turns = s.setup.Script.Turns[:1]
	s.setup.Script.Turns = append(s.setup.Script.Turns, s.setup.Script.Turns[0])
	s.setup.Script.Turns[1].Call, s.setup.Script.Turns[1].Expect, s.setup.Script.Turns[1].Say = nil, nil, "Found."
	s.Approvals = nil
	s.Expect = Expect{State: agent.StateCompleted}
	_, w := written(t, s, PlayOptions{}, "../research/sallyport.yaml")
	if len(w.Notes) != 1 || !strings.Contains(w.Notes[0], "sources/inspection-2031.md was only found by a search") || !strings.Contains(string(w.YAML), "# NOT SAID HERE: sources/inspection-2031.md") ||
		!strings.Contains(string(w.YAML), "\nconfig: \"../research/sallyport.yaml\"\n") {
		t.Errorf("%q\n%s", w.Notes, w.YAML)
	}
}

// Whatever a text holds, it is read back as it was.
func TestQuote_IsReadBackExactly(t *testing.T) {
	check := func(t interface{ Fatalf(string, ...any) }, text string) {
		one, ok := quoted(text)
		lines, _ := block(text, "    ")
		if !ok {
			return
		}
		members, err := json.Marshal(map[string]any{"k": []any{text, 1.5, nil, true, map[string]any{text: text}}})
		if err != nil {
			t.Fatalf("%v", err)
		}
		inline, err := flow(members)
		if err != nil {
			t.Fatalf("%v", err)
		}
		data := "one: " + one + "\nlines: " + lines + "\nafter: x\nflow: " + inline + "\n"
		f, err := config.ParseFile("x.yaml", []byte(data))
		if err != nil {
			t.Fatalf("%q: %v\n%s", text, err, data)
		}
		var got struct {
			One   string      `yaml:"one"`
			Lines string      `yaml:"lines"`
			After string      `yaml:"after"`
			Flow  config.Node `yaml:"flow"`
		}
		if err := f.Decode(&got); err != nil || got.One != text || got.Lines != text || got.After != "x" {
			t.Fatalf("%q is read as %q and %q, %v\n%s", text, got.One, got.Lines, err, data)
		}
		back, err := json.Marshal(got.Flow)
		if err != nil || string(back) != string(members) {
			t.Fatalf("%s is read as %s, %v", members, back, err)
		}
	}
	for _, text := range []string{
		"", " ", "\n", "a", "a\n", "a\n\n", "\na\n", " a\n", "a \n", "a\n  b\n", "- a\n- b\n", "# a\n", "a: b\n", "a\tb\n", "\ta\n", "'", `"\`, "null", "~", "1", "true",
		"---\n", "...\n", "a\n---\nb\n", "%a\n", "\x00\x1b\x7f\u0085\u00a0\u2028\ufeff\U000e0041", "橋\n橋\n", "a\r\nb\r\n", "|", ">\n", "a\n# b\n", "{a\n", "@a\n", "`a\n", "!a\n", "*a\n", "&a\n",
	} {
		check(t, text)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune(" \n\t\"'\\:#-|>{}[],&*!%@`?~.=ab1橋\u2028\u0085\x1b")), rapid.Rune())).Draw(t, "text"))
	})
}
