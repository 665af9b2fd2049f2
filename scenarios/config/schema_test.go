package config

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

	"sallyport/tools"
)

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("sallyport.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("sallyport.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func valid(t *testing.T, s *jsonschema.Schema, file string) (readable bool, err error) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := ParseFile(file, data)
	if err != nil {
		return false, err
	}
	text, err := json.Marshal(f.Root())
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return true, s.Validate(doc)
}

func TestSchema_AcceptsTheGoodFiles(t *testing.T) {
	s := compiled(t)
	files, err := filepath.Glob("testdata/good/*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		if _, err := valid(t, s, file); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}

// What a JSON Schema cannot say: what one part of a file means for another, and what
// the user's own file allows.
var beyondSchema = []string{
	"budget_over_the_users", "builtin_save_as_read", "model_name_hidden", "model_prices_twice", "model_timeout_long", "own_key_alone", "read_bound_to_write", "send_switched_on_here",
	"settle_nowhere", "too_many_tools", "unknown_server", "zero_timeout",
}

func TestSchema_RejectsTheWrongFiles(t *testing.T) {
	s := compiled(t)
	files, err := filepath.Glob("testdata/wrong/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".yaml")
		readable, err := valid(t, s, file)
		if !readable {
			continue // no YAML of ours at all
		}
		if beyond := slices.Contains(beyondSchema, name); (err == nil) != beyond {
			t.Errorf("%s: accepted %t, beyond what a schema says %t", name, err == nil, beyond)
		}
	}
}

// The schema names exactly the keys that the structs read.
func TestSchema_NamesEveryKey(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(Schema, &root); err != nil {
		t.Fatal(err)
	}
	at := func(steps ...string) map[string]any {
		here := root
		for _, step := range steps {
			next, ok := here[step].(map[string]any)
			if !ok {
				t.Fatalf("the schema has no %v", steps)
			}
			here = next
		}
		return here
	}
	contract := []string{"properties", "tools", "additionalProperties", "properties"}
	below := func(steps ...string) []string { return append(slices.Clone(contract), steps...) }
	for _, c := range []struct {
		of reflect.Type
		in []string
	}{
		{reflect.TypeFor[Config](), []string{"properties"}},
		{reflect.TypeFor[Model](), []string{"properties", "model", "properties"}},
		{reflect.TypeFor[Context](), []string{"properties", "model", "properties", "context", "properties"}},
		{reflect.TypeFor[Workspace](), []string{"properties", "workspace", "properties"}},
		{reflect.TypeFor[Budgets](), []string{"properties", "budgets", "properties"}},
		{reflect.TypeFor[tools.Server](), []string{"properties", "servers", "additionalProperties", "properties"}},
		{reflect.TypeFor[tools.Contract](), contract},
		{reflect.TypeFor[tools.Approval](), below("approval", "properties")},
		{reflect.TypeFor[tools.Settle](), below("settle", "properties")},
		{reflect.TypeFor[tools.Match](), below("settle", "properties", "applied_when", "additionalProperties", "properties")},
	} {
		keys := fieldsOf(c.of).names
		slices.Sort(keys)
		var named []string
		for name, sub := range at(c.in...) {
			named = append(named, name)
			if s, ok := sub.(map[string]any); !ok || s["description"] == nil {
				t.Errorf("%s: the key %q has no description", c.of, name)
			}
		}
		slices.Sort(named)
		if !slices.Equal(keys, named) {
			t.Errorf("%s reads %v, the schema names %v", c.of, keys, named)
		}
	}
}
