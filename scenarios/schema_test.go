package scenarios

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/agent"
	"sallyport/nodes/llm"
	"sallyport/scenarios/config"
)

func compiled(t *testing.T, schema []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// matches reports whether a YAML file is valid under a schema.
func matches(t *testing.T, s *jsonschema.Schema, name string, data []byte) error {
	t.Helper()
	f, err := config.ParseFile(name, data)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(f.Root())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc)
}

// keysOf are the yaml keys of a struct.
func keysOf(v any) []string {
	var keys []string
	for _, f := range reflect.VisibleFields(reflect.TypeOf(v)) {
		if key := f.Tag.Get("yaml"); key != "" && key != "-" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// TestSchemas_NameExactlyTheKeysThatAreRead: a key that one knows and the other does
// not would be underlined, or silently wrong, in an editor.
func TestSchemas_NameExactlyTheKeysThatAreRead(t *testing.T) {
	type object struct {
		Properties map[string]object `json:"properties"`
		Defs       map[string]object `json:"$defs"`
		Enum       []string          `json:"enum"`
	}
	var task, scenario object
	for _, s := range []struct {
		data []byte
		into *object
	}{{TaskSchema, &task}, {ScenarioSchema, &scenario}} {
		if err := json.Unmarshal(s.data, s.into); err != nil {
			t.Fatal(err)
		}
	}
	onlyTask := slices.DeleteFunc(keysOf(form{}), func(k string) bool {
		return k == "scenario" || !slices.Contains(taskKeys, k)
	})
	tests := []struct {
		name string
		o    object
		keys []string
	}{
		{"a task file", task, onlyTask},
		{"a scenario file", scenario, keysOf(form{})},
		{"model", task.Defs["model"], keysOf(config.Model{})},
		{"budgets", task.Defs["budgets"], keysOf(config.Budgets{})},
		{"turn", task.Defs["turn"], keysOf(llm.Turn{})},
		{"call", task.Defs["call"], keysOf(llm.Call{})},
		{"turn.expect", task.Defs["turn"].Properties["expect"], keysOf(llm.Expect{})},
		{"turn.expect_message", task.Defs["turn"].Properties["expect_message"], keysOf(llm.ExpectMessage{})},
		{"turn.usage", task.Defs["turn"].Properties["usage"], keysOf(llm.Usage{})},
		{"scenario turn", scenario.Defs["turn"], keysOf(llm.Turn{})},
		{"expect", scenario.Defs["expect"], keysOf(Expect{})},
		{"expect.files", scenario.Defs["file"], keysOf(File{})},
		{"expect.calls", scenario.Defs["expect_call"], keysOf(ExpectCall{})},
	}
	for _, tt := range tests {
		var keys []string
		for k := range tt.o.Properties {
			keys = append(keys, k)
		}
		if slices.Sort(keys); !slices.Equal(keys, tt.keys) {
			t.Errorf("%s: the schema has %q, the loader reads %q", tt.name, keys, tt.keys)
		}
	}
	var states []string
	for _, s := range agent.States() {
		states = append(states, string(s))
	}
	if got := scenario.Defs["expect"].Properties["state"].Enum; !slices.Equal(got, states) {
		t.Errorf("states: the schema has %q, want %q", got, states)
	}
}

// Every shipped file is valid under its schema, and names it for editors.
func TestSchemas_AcceptWhatIsShipped(t *testing.T) {
	files, err := filepath.Glob("research/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(data), "\n")
		rel, ok := strings.CutPrefix(first, "# yaml-language-server: $schema=")
		if !ok {
			t.Errorf("%s: its first line names no schema", file)
			continue
		}
		schema, err := os.ReadFile(filepath.Join(filepath.Dir(file), rel))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if err := matches(t, compiled(t, schema), file, data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

func TestSchemas_RefuseWhatTheLoaderRefuses(t *testing.T) {
	tests := map[string]string{
		"no task":          "scenario: x\nmodel: {script: [{say: x}]}\nexpect: {state: completed}\n",
		"unknown key":      "scenario: x\ntask: x\nmodel: {script: [{say: x}]}\nexpect: {state: completed}\nmore: x\n",
		"unknown state":    "scenario: x\ntask: x\nmodel: {script: [{say: x}]}\nexpect: {state: finished}\n",
		"unknown decision": "scenario: x\ntask: x\nmodel: {script: [{say: x}]}\nexpect: {state: completed}\napprovals: [perhaps]\n",
		"a file elsewhere": "scenario: x\ntask: x\nmodel: {script: [{say: x}]}\nexpect: {state: completed}\nfiles: {../a.md: x}\n",
		"an empty script":  "scenario: x\ntask: x\nmodel: {script: []}\nexpect: {state: completed}\n",
		"no expectation":   "scenario: x\ntask: x\nmodel: {script: [{say: x}]}\n",
	}
	s := compiled(t, ScenarioSchema)
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			if matches(t, s, "x.yaml", []byte(text)) == nil {
				t.Error("the schema accepts it")
			}
			dir := t.TempDir()
			path := filepath.Join(dir, "x.yaml")
			for file, data := range map[string]string{path: text, filepath.Join(dir, config.FileName): "servers: {calc: {builtin: calc}}\ntools: {calc__add: {owner: me, risk: read, output: none}}\n"} {
				if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := LoadFile(path, LoadOptions{}); err == nil {
				t.Error("the loader accepts it")
			}
		})
	}
}
