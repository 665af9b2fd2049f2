//go:build linux || darwin

package docserver

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/tools/stdio/stdiotest"
	"sallyport/tools/strictjson"
)

// CHECKS 1, 5: five tools, and what Definition says is what a client reads off the wire, in each version.
func TestDefinition_IsWhatTheWireCarries(t *testing.T) {
	for _, version := range []string{stdiotest.Current, stdiotest.Older} {
		c := newDesk(t).startAs(version)
		var got []string
		for _, sent := range c.Tools() {
			canonical, err := strictjson.Canonical(sent)
			must(t, err)
			var tool struct{ Name string }
			must(t, json.Unmarshal(sent, &tool))
			got = append(got, tool.Name)
			want, digest := Definition(tool.Name)
			if !bytes.Equal(canonical, want) || digest != strictjson.Digest(canonical) {
				t.Errorf("%s, %s: on the wire\n%s\nDefinition\n%s", version, tool.Name, canonical, want)
			}
			if size := len(want); size > 12_000 {
				t.Errorf("%s has %d bytes", tool.Name, size)
			}
		}
		if !slices.Equal(got, Tools()) {
			t.Errorf("%s: tools %v, want %v", version, got, Tools())
		}
	}
	if canonical, digest := Definition("no_such_tool"); canonical != nil || digest != "" {
		t.Errorf("a definition of no tool: %s %s", canonical, digest)
	}
}

// CHECKS 5: the server offers the current version first.
func TestServe_NegotiatesTheCurrentVersion(t *testing.T) {
	c := newDesk(t).start()
	var got struct {
		SupportedVersions []string `json:"supportedVersions"`
		Capabilities      json.RawMessage
	}
	must(t, json.Unmarshal(c.Result("server/discover", nil), &got))
	if len(got.SupportedVersions) == 0 || got.SupportedVersions[0] != "2026-07-28" {
		t.Errorf("versions %v", got.SupportedVersions)
	}
	if string(got.Capabilities) != `{"tools":{}}` {
		t.Errorf("capabilities %s", got.Capabilities)
	}
}

// CHECKS 9, SPEC D13.
func TestDefinition_DeclaresItsHints(t *testing.T) {
	for tool, want := range map[string]string{
		ToolSearch: `{"idempotentHint":false,"openWorldHint":false,"readOnlyHint":true}`,
		ToolRead:   `{"idempotentHint":false,"openWorldHint":false,"readOnlyHint":true}`,
		ToolStatus: `{"idempotentHint":false,"openWorldHint":false,"readOnlyHint":true}`,
		ToolSave:   `{"destructiveHint":false,"idempotentHint":false,"openWorldHint":false,"readOnlyHint":false}`,
		ToolSettle: `{"destructiveHint":false,"idempotentHint":true,"openWorldHint":false,"readOnlyHint":false}`,
	} {
		canonical, _ := Definition(tool)
		var got struct{ Annotations json.RawMessage }
		must(t, json.Unmarshal(canonical, &got))
		if string(got.Annotations) != want {
			t.Errorf("%s: %s, want %s", tool, got.Annotations, want)
		}
	}
}

// SPEC B4: what a host of ours accepts in a schema.
func TestDefinition_UsesTheAcceptedKeywordsOnly(t *testing.T) {
	accepted := []string{"type", "title", "description", "properties", "required", "additionalProperties", "items",
		"enum", "default", "pattern", "minLength", "maxLength", "minimum", "maximum", "anyOf"}
	var walk func(where string, schema any, depth int)
	walk = func(where string, schema any, depth int) {
		if depth > 8 {
			t.Errorf("%s: depth %d", where, depth)
		}
		for keyword, value := range schema.(map[string]any) {
			if !slices.Contains(accepted, keyword) {
				t.Errorf("%s: keyword %q", where, keyword)
			}
			switch keyword {
			case "properties":
				for name, property := range value.(map[string]any) {
					walk(where+"."+name, property, depth+1)
				}
			case "items":
				walk(where+"[]", value, depth+1)
			}
		}
	}
	for _, tool := range Tools() {
		canonical, _ := Definition(tool)
		var got struct{ InputSchema, OutputSchema any }
		must(t, json.Unmarshal(canonical, &got))
		walk(tool+" input", got.InputSchema, 0)
		walk(tool+" output", got.OutputSchema, 0)
	}
}

// checkShape validates structured content against the declared output schema (CHECKS 8).
func checkShape(t testing.TB, tool string, structured []byte) {
	t.Helper()
	canonical, _ := Definition(tool)
	var definition struct {
		OutputSchema json.RawMessage `json:"outputSchema"`
	}
	must(t, json.Unmarshal(canonical, &definition))
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(definition.OutputSchema))
	must(t, err)
	compiler := jsonschema.NewCompiler()
	must(t, compiler.AddResource("mem:output", document))
	schema, err := compiler.Compile("mem:output")
	must(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(structured))
	must(t, err)
	if err := schema.Validate(value); err != nil {
		t.Errorf("%s: %s does not fit its output schema: %v", tool, structured, err)
	}
}
