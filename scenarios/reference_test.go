package scenarios

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write generated files anew")

const referencePage = "../docs/scenarios/reference.md"

const referenceHead = `# Reference of scenario files

<!-- Made from scenarios/scenario.schema.json by: go test ./scenarios -run TestReference -update -->

Every key of a scenario file, as [the schema](../../scenarios/scenario.schema.json) says it. What the parts mean stands on
their own pages: [the stage](stage.md), [the model](model.md), [approvals](approvals.md), [what goes wrong](faults.md), [what is
expected](expect.md), [cases](cases.md). How servers are scripted: [scripted servers](scripted-servers.md).

`

// schemaNode is what the reference takes of a JSON Schema.
type schemaNode struct {
	Ref         string          `json:"$ref"`
	Type        any             `json:"type"`
	Description string          `json:"description"`
	Enum        []any           `json:"enum"`
	Const       any             `json:"const"`
	Properties  orderedNodes    `json:"properties"`
	Additional  json.RawMessage `json:"additionalProperties"`
	Items       *schemaNode     `json:"items"`
	AnyOf       []schemaNode    `json:"anyOf"`
	Required    []string        `json:"required"`
	Defs        orderedNodes    `json:"$defs"`
	Minimum     *json.Number    `json:"minimum"`
	Maximum     *json.Number    `json:"maximum"`
}

// orderedNodes keeps the order of the schema's file.
type orderedNodes struct {
	names []string
	nodes map[string]schemaNode
}

// UnmarshalJSON keeps the order.
func (o *orderedNodes) UnmarshalJSON(data []byte) error {
	o.nodes = map[string]schemaNode{}
	if err := json.Unmarshal(data, &o.nodes); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		o.names = append(o.names, fmt.Sprint(name))
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
	}
	return nil
}

// kind is what may be written for a node, in words.
func (n schemaNode) kind() string {
	switch {
	case n.Ref != "":
		name := strings.TrimPrefix(n.Ref, "#/$defs/")
		return fmt.Sprintf("[%s](#%s)", spoken(name), strings.ReplaceAll(spoken(name), " ", "-"))
	case n.Const != nil:
		return fmt.Sprintf("`%v`", n.Const)
	case len(n.Enum) > 0:
		return inWords(n.Enum)
	case len(n.AnyOf) > 0:
		var parts []string
		for _, a := range n.AnyOf {
			parts = append(parts, a.kind())
		}
		return strings.Join(slices.Compact(parts), ", or ")
	case n.Items != nil:
		return "list of: " + n.Items.kind()
	}
	var below schemaNode
	if len(n.Additional) > 0 && n.Additional[0] == '{' && json.Unmarshal(n.Additional, &below) == nil {
		return "mapping to: " + below.kind()
	}
	switch t := n.Type.(type) {
	case string:
		return map[string]string{"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "object": "mapping", "array": "list"}[t]
	case []any:
		return inWords(t)
	}
	return "anything"
}

func spoken(name string) string { return strings.ReplaceAll(name, "_", " ") }

func inWords(all []any) string {
	parts := make([]string, len(all))
	for i, w := range all {
		parts[i] = fmt.Sprintf("`%v`", w)
	}
	return strings.Join(parts, ", ")
}

// table writes the keys of a mapping.
func (n schemaNode) table(b *strings.Builder, defs map[string]schemaNode) {
	if len(n.Properties.names) == 0 {
		return
	}
	b.WriteString("| key | what may stand there | meaning |\n|---|---|---|\n")
	for _, name := range n.Properties.names {
		p := n.Properties.nodes[name]
		if p.Description == "" {
			p.Description = defs[strings.TrimPrefix(p.Ref, "#/$defs/")].Description
		}
		need := ""
		if slices.Contains(n.Required, name) {
			need = " (needed)"
		}
		fmt.Fprintf(b, "| `%s`%s | %s | %s |\n", name, need, strings.ReplaceAll(p.kind(), "|", "\\|"), strings.ReplaceAll(p.Description, "|", "\\|"))
	}
	b.WriteString("\n")
	for _, name := range n.Properties.names {
		p := n.Properties.nodes[name]
		if len(p.Properties.names) > 0 {
			fmt.Fprintf(b, "`%s`: %s\n\n", name, p.Description)
			p.table(b, defs)
		}
	}
}

func reference(t *testing.T) string {
	t.Helper()
	var root schemaNode
	if err := json.Unmarshal(ScenarioSchema, &root); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(referenceHead)
	b.WriteString("## The file\n\n")
	root.table(&b, root.Defs.nodes)
	names := slices.Clone(root.Defs.names)
	slices.Sort(names)
	for _, name := range names {
		d := root.Defs.nodes[name]
		fmt.Fprintf(&b, "## %s\n\n", spoken(name))
		if d.Description != "" {
			b.WriteString(d.Description + "\n\n")
		}
		if len(d.Properties.names) == 0 && len(d.AnyOf) > 0 {
			fmt.Fprintf(&b, "%s\n\n", d.kind())
		}
		d.table(&b, root.Defs.nodes)
		for _, a := range d.AnyOf {
			a.table(&b, root.Defs.nodes)
		}
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// The reference says what the schema says.
func TestReference_IsMadeFromTheSchema(t *testing.T) {
	want := reference(t)
	if *update {
		if err := os.WriteFile(referencePage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(filepath.FromSlash(referencePage))
	if err != nil || string(got) != want {
		t.Errorf("docs/scenarios/reference.md is not what the schema says, %v: write it anew with -update", err)
	}
}

// Each key of the form stands on one of the pages about its part.
func TestPages_NameEveryKeyOfTheForm(t *testing.T) {
	var all strings.Builder
	for _, page := range []string{"stage", "model", "approvals", "faults", "expect", "cases"} {
		text, err := os.ReadFile("../docs/scenarios/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, key := range append(append(append(keysOf(form{}), keysOf(Expect{})...), keysOf(StageFile{})...), keysOf(Action{})...) {
		if !strings.Contains(all.String(), "`"+key) {
			t.Errorf("no page names the key %s", key)
		}
	}
}
