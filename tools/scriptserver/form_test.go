package scriptserver_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/scenarios/config"
	"sallyport/tools/scriptserver"
)

// forms are the structs of a description by their name in the schema.
var forms = map[string]reflect.Type{
	"script":        reflect.TypeFor[scriptserver.Script](),
	"script_tool":   reflect.TypeFor[scriptserver.Tool](),
	"script_change": reflect.TypeFor[scriptserver.Change](),
	"script_pages":  reflect.TypeFor[scriptserver.Pages](),
	"script_when":   reflect.TypeFor[scriptserver.When](),
	"script_start":  reflect.TypeFor[scriptserver.Start](),
	"script_reply":  reflect.TypeFor[scriptserver.Reply](),
	"script_fault":  reflect.TypeFor[scriptserver.Fault](),
	"script_frame":  reflect.TypeFor[scriptserver.Frame](),
	"script_write":  reflect.TypeFor[scriptserver.Write](),
	"script_spawn":  reflect.TypeFor[scriptserver.Spawn](),
}

func keysOf(of reflect.Type) []string {
	var keys []string
	for _, f := range reflect.VisibleFields(of) {
		if key := f.Tag.Get("yaml"); key != "" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(scriptserver.Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("script.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("script.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// matches holds YAML against the schema.
func matches(t *testing.T, s *jsonschema.Schema, yaml string) error {
	t.Helper()
	f, err := config.ParseFile("script.yaml", []byte(yaml))
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

func TestSchema_NamesExactlyTheKeysThatAreRead(t *testing.T) {
	var schema struct {
		Defs map[string]struct {
			Properties map[string]struct {
				Description string
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(scriptserver.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	for name, of := range forms {
		named := slices.Sorted(maps.Keys(schema.Defs[name].Properties))
		if keys := keysOf(of); !slices.Equal(keys, named) {
			t.Errorf("%s reads %v, the schema names %v", of, keys, named)
		}
		for key, p := range schema.Defs[name].Properties {
			if p.Description == "" {
				t.Errorf("%s.%s has no description", name, key)
			}
		}
	}
	for name := range schema.Defs {
		if name != "script" && !strings.HasPrefix(name, "script_") {
			t.Errorf("$defs/%s could clash where the schema is embedded", name)
		}
	}
}

var example = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

func examples(t *testing.T) []string {
	t.Helper()
	page, err := os.ReadFile("../../docs/scenarios/scripted-servers.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range example.FindAllStringSubmatch(string(page), -1) {
		all = append(all, m[1])
	}
	if len(all) < 8 {
		t.Fatalf("the page holds %d examples", len(all))
	}
	return all
}

// Every example of the page can be played, its schema agrees, and what is read back from its JSON is the same.
func TestPage_ExamplesAreDescriptions(t *testing.T) {
	schema := compiled(t)
	for _, yaml := range examples(t) {
		s := read(t, yaml)
		if err := matches(t, schema, yaml); err != nil {
			t.Errorf("%s%v", yaml, err)
		}
		text, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := scriptserver.Parse("script.json", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if again, err := back.Encode(); err != nil || !bytes.Equal(again, text) || !reflect.DeepEqual(back, s) {
			t.Errorf("read back from %s: %s, %v", text, again, err)
		}
		viaJSON := config.DecodeStrict("script.json", text, &back) // JSON is YAML
		if again, err := back.Encode(); viaJSON != nil || err != nil || !bytes.Equal(again, text) {
			t.Errorf("read as YAML from %s: %s, %v, %v", text, again, viaJSON, err)
		}
	}
}

// Every key has an example on the page.
func TestPage_ShowsEveryKey(t *testing.T) {
	all := strings.Join(examples(t), "\n")
	keys := []string{"text", "hex", "argument", "sha256", "file", "join", "$text", "$raw", "$list", "$object", "$nest", "$here", "of", "end", "times"}
	for _, of := range forms {
		keys = append(keys, keysOf(of)...)
	}
	for _, key := range keys {
		if !regexp.MustCompile(`(^|[\s{\[])` + regexp.QuoteMeta(key) + `[:,}\]]`).MatchString(all) {
			t.Errorf("no example has the key %s", key)
		}
	}
}

// wrong descriptions: the place and the beginning of the message. beyond says that a JSON Schema cannot tell.
var wrong = []struct {
	yaml, place, message string
	beyond               bool
}{
	{"tool: []", "1:1", `unknown key "tool"`, false},
	{"tools:\n  - {name: x, replies: [{txt: a}]}", "2:26", `tools.0.replies.0: unknown key "txt"`, false},
	{"tools:\n  - {name: x, description: {text: a, tims: 3}}", "2:29", `tools.0.description: unknown key "tims"`, false},
	{"tools: [{name: x, description: {text: a, hex: aa}}]", "1:33", "tools.0.description: a mapping for a text has exactly one of", false},
	{"tools: [{name: x, description: 5}]", "1:32", "tools.0.description: it must be a text", false},
	{"tools: [{name: x, description: {hex: abc}}]", "1:33", "tools.0.description: hex:", false},
	{"tools: [{name: x, description: {argument: ''}}]", "1:33", "tools.0.description: argument: it names none", false},
	{"tools: [{name: x, description: {text: a, times: 0}}]", "1:33", "tools.0.description: times:", false},
	{"tools: [{description: a}]", "1:10", "tools.0: a tool needs a `name`", false},
	{"tools: [{name: x, result: json}]", "1:27", "tools.0.result: it is `status`", false},
	{"tools: [{name: x, count: 0}]", "1:26", "tools.0.count: 0 is not above zero", false},
	{"tools: [{name: x, count: 10001}]", "1:26", "tools.0.count: it is between 1 and 10000", false},
	{"tools: [{name: x, raw: '{}', title: x}]", "1:24", "tools.0.raw: `raw` is the whole definition", true},
	{"tools: [{name: x, replies: [{text: a, silent: true}]}]", "1:30", "tools.0.replies.0: a reply gives one answer", true},
	{"tools: [{name: x, replies: [{message: a}]}]", "1:30", "tools.0.replies.0: `message` and `data` go with a `status`", true},
	{"tools: [{name: x, replies: [{is_error: true, result: {}}]}]", "1:40", "tools.0.replies.0.is_error: it goes with", true},
	{"tools: [{name: x, replies: [{delay: 11m}]}]", "1:37", "tools.0.replies.0.delay: it is at most 10m0s", true},
	{"tools: [{name: x, replies: [{delay: 5}]}]", "1:37", "tools.0.replies.0.delay: \"5\" is no length of time", false},
	{"tools: [{name: x, replies: [{exit: 256}]}]", "1:36", "tools.0.replies.0.exit: an exit code is between", false},
	{"tools: [{name: x, replies: [{exit: 1, deaf: true}]}]", "1:45", "tools.0.replies.0.deaf: a server that has ended", true},
	{"tools: [{name: x, replies: [{writes: [{file: ../a, content: b}]}]}]", "1:46", "tools.0.replies.0.writes.0.file: a file is named by a relative path", true},
	{"tools: [{name: x, replies: [{writes: [{file: a}]}]}]", "1:40", "tools.0.replies.0.writes.0: a write needs `content`", true},
	{"tools: [{name: x, replies: [{writes: [{file: a, remove: true, content: b}]}]}]", "1:57", "tools.0.replies.0.writes.0.remove: what is removed", true},
	{"tools: [{name: x, replies: [{frames: [{line: a, raw: b}]}]}]", "1:40", "tools.0.replies.0.frames.0: a frame is either", false},
	{"tools: [{name: x, replies: [{frames: [{raw: ab, times: 500000001}]}]}]", "1:56", "tools.0.replies.0.frames.0.times: it is at most 1000000000 bytes", true},
	{"tools: [{name: x, replies: [{data: {$list: {of: 1}}, status: ok}]}]", "1:30", "tools.0.replies.0.data: $list: it takes", true},
	{"tools: [{name: x, replies: [{result: {$nest: {of: [a], times: 2}}}]}]", "1:30", `tools.0.replies.0.result: $nest: "$here" stands exactly once`, true},
	{"tools: [{name: x, replies: [{result: {$text: {text: aa, times: 4194305}}}]}]", "1:30", "tools.0.replies.0.result: $text: it grows over 8388608 bytes", true},
	{"tools: [{name: x, when: {lists: 0}}]", "1:33", `tools.0.when.lists: "0" is no range of counts`, false},
	{"tools: [{name: x, when: {lists: 4-2}}]", "1:33", `tools.0.when.lists: "4-2" is no range of counts`, true},
	{"tools: [{name: x, when: {exists: /a}}]", "1:34", "tools.0.when.exists: a file is named by a relative path", true},
	{"methods: {ping: {silent: true}}", "1:18", "methods.ping: this is a mapping; it must be a list", false},
	{"starts: [{after: [{line: a}]}]", "1:11", `starts.0: unknown key "after"`, false},
	{"ignores: [everything]", "1:11", `ignores.0: "everything" cannot be ignored`, false},
	{"protocols: ['']", "1:13", "protocols.0: a version is a text", false},
	{"pages: {size: 10001}", "1:15", "pages.size: it is between", false},
}

func TestCheck_SaysWhereAndWhat(t *testing.T) {
	schema := compiled(t)
	for _, tc := range wrong {
		f, err := config.ParseFile("s.yaml", []byte(tc.yaml))
		if err != nil {
			t.Fatal(err)
		}
		var s scriptserver.Script
		if err = f.Decode(&s); err == nil {
			err = f.Problems(problems(s))
		}
		var found *config.Error
		if !errors.As(err, &found) {
			t.Errorf("%s: accepted", tc.yaml)
			continue
		}
		d := found.Diagnostics[0]
		if place := strconv.Itoa(d.Line) + ":" + strconv.Itoa(d.Column); place != tc.place || !strings.HasPrefix(d.Message, tc.message) {
			t.Errorf("%s: at %s: %s", tc.yaml, place, d.Message)
		}
		if err := matches(t, schema, tc.yaml); (err == nil) != tc.beyond {
			t.Errorf("%s: the schema says %v", tc.yaml, err)
		}
	}
}

// Exactly at a limit passes.
func TestCheck_AcceptsWhatIsAtItsLimit(t *testing.T) {
	for _, yaml := range []string{
		"tools: [{name: x, count: 10000}]",
		"tools: [{name: x, replies: [{delay: 10m, exit: 255, copies: 10000, hold: 10000, times: 1000000000}]}]",
		"tools: [{name: x, replies: [{frames: [{raw: ab, times: 500000000, pause: 10m}]}]}]",
		"tools: [{name: x, replies: [{result: {$raw: {text: aa, times: 4194304}}}]}]",
		"tools: [{name: x, replies: [{spawn: {for: 10m}}], raw: {text: a, times: 8388608}}]",
		"pages: {size: 10000}",
	} {
		read(t, yaml)
	}
}
