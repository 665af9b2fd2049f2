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
	"sallyport/tools"
	"sallyport/tools/scriptserver"
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
	return valid(t, s, f)
}

// valid reports whether a file that was read is valid under a schema.
func valid(t *testing.T, s *jsonschema.Schema, f *config.File) error {
	t.Helper()
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
		AnyOf      []object          `json:"anyOf"`
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
		{"expect.used", scenario.Defs["expect"].Properties["used"], keysOf(ExpectUsed{})},
		{"expect.begin", scenario.Defs["expect"].Properties["begin"], keysOf(ExpectBegin{})},
		{"expect.model", scenario.Defs["expect"].Properties["model"], keysOf(ExpectModel{})},
		{"expect.answer", scenario.Defs["text"].AnyOf[1], keysOf(TextCheck{})},
		{"expect.events", scenario.Defs["expect_event"].AnyOf[1], keysOf(ExpectEvent{})},
		{"expect.servers", scenario.Defs["expect_server"], keysOf(ExpectServer{})},
		{"files", scenario.Defs["staged"].AnyOf[1], keysOf(StageFile{})},
		{"approvals", scenario.Defs["delivery"].AnyOf[1], keysOf(Delivery{})},
		{"a verdict", scenario.Defs["verdict"].AnyOf[1], keysOf(ExpectVerdict{})},
		{"operator", scenario.Defs["action"], keysOf(Action{})},
		{"clock", scenario.Defs["jump"], keysOf(ClockJump{})},
		{"faults", scenario.Defs["fault"], keysOf(Fault{})},
		{"a server", scenario.Defs["server"], keysOf(serverForm{})},
		{"a contract", scenario.Defs["tool"], keysOf(tools.Contract{})},
		{"the model of a scenario", scenario.Defs["model"], keysOf(modelForm{})},
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

// Every word of a closed set is in the schema, and no other.
func TestSchemas_NameEveryWord(t *testing.T) {
	type object struct {
		Properties map[string]object `json:"properties"`
		Defs       map[string]object `json:"$defs"`
		Enum       []string          `json:"enum"`
		AnyOf      []object          `json:"anyOf"`
	}
	var root object
	if err := json.Unmarshal(ScenarioSchema, &root); err != nil {
		t.Fatal(err)
	}
	event := root.Defs["expect_event"].AnyOf[1].Properties
	for name, tt := range map[string]struct{ got, want []string }{
		"decisions":   {root.Defs["delivery"].AnyOf[0].Enum, texts(verbs)},
		"forgeries":   {root.Defs["delivery"].AnyOf[1].Properties["how"].Enum, texts(forgeries)},
		"points":      {root.Defs["action"].Properties["at"].Enum, texts(points)},
		"acts":        {root.Defs["action"].Properties["do"].Enum, texts(acts)},
		"crashes":     {root.Defs["fault"].Properties["crash"].Enum, crashPoints()},
		"rows":        {event["row"].Enum, texts(rows())},
		"events":      {event["event"].Enum, texts(agent.Kinds())},
		"kinds":       {event["kind"].Enum, texts(kinds)},
		"origins":     {event["origin"].Enum, texts(origins)},
		"codes":       {root.Defs["verdict"].AnyOf[0].Enum, codes},
		"other codes": {root.Defs["verdict"].AnyOf[1].Properties["code"].Enum, codes},
	} {
		if got, want := slices.Sorted(slices.Values(tt.got)), slices.Sorted(slices.Values(tt.want)); !slices.Equal(got, want) {
			t.Errorf("%s: the schema has %q, want %q", name, got, want)
		}
	}
}

func texts[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// Servers and contracts are written as in a configuration, and scripts as their server
// reads them.
func TestSchemas_PartsAreThoseOfTheirOwners(t *testing.T) {
	var own, configuration, script map[string]any
	for _, s := range []struct {
		data []byte
		into *map[string]any
	}{{ScenarioSchema, &own}, {config.Schema, &configuration}, {scriptserver.Schema, &script}} {
		if err := json.Unmarshal(s.data, s.into); err != nil {
			t.Fatal(err)
		}
	}
	at := func(root map[string]any, path ...string) map[string]any {
		for _, step := range path {
			root = root[step].(map[string]any)
		}
		return root
	}
	server := at(own, "$defs", "server")
	delete(at(server, "properties"), "script")
	kinds := server["oneOf"].([]any)
	server["oneOf"] = kinds[:len(kinds)-1] // the last is a script
	if !reflect.DeepEqual(server, at(configuration, "properties", "servers", "additionalProperties")) {
		t.Error("a server is written otherwise than in a configuration")
	}
	if !reflect.DeepEqual(at(own, "$defs", "tool"), at(configuration, "properties", "tools", "additionalProperties")) {
		t.Error("a contract is written otherwise than in a configuration")
	}
	for name, def := range at(script, "$defs") {
		if !reflect.DeepEqual(at(own, "$defs", name), def) {
			t.Errorf("%s is written otherwise than its server reads it", name)
		}
	}
}

// Every shipped file is valid under its schema, and names it for editors. What holds
// parameters is looked at with each of their values.
func TestSchemas_AcceptWhatIsShipped(t *testing.T) {
	files, err := filepath.Glob("*/*.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("%v, %v", files, err)
	}
	schemas := map[string]*jsonschema.Schema{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(data), "\n")
		rel, ok := strings.CutPrefix(first, "# yaml-language-server: $schema=")
		if !ok {
			whole, err := config.HasKey(file, data, "scenario")
			if err != nil || whole || filepath.Base(file) == config.FileName {
				t.Errorf("%s: its first line names no schema, %v", file, err)
			}
			continue // a part that others include is valid with them
		}
		path := filepath.Join(filepath.Dir(file), rel)
		if schemas[path] == nil {
			schema, err := os.ReadFile(path)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			schemas[path] = compiled(t, schema)
		}
		variants, err := readVariants(file, data)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for _, v := range variants {
			if err := valid(t, schemas[path], v.file); err != nil {
				t.Errorf("%s: %v", file, err)
				break
			}
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
