package tools

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sallyport/agent"
)

func TestParseDefinition_ReadsWhatTheServerSent(t *testing.T) {
	raw := `{"name":"save","title":"Save","description":"Saves.","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},
		"annotations":{"readOnlyHint":true,"destructiveHint":false,"vendor":1},"_meta":{"x":1.50},"icons":[]}`
	d, err := ParseDefinition([]byte(raw))
	if err != nil {
		t.Fatal(err)
	}
	if d.Name != "save" || d.Title != "Save" || d.Description != "Saves." || string(d.Input) != `{"type":"object"}` {
		t.Errorf("definition %+v", d)
	}
	if d.Hints.ReadOnly == nil || !*d.Hints.ReadOnly || d.Hints.Destructive == nil || *d.Hints.Destructive || d.Hints.OpenWorld != nil {
		t.Errorf("hints %+v", d.Hints)
	}
	if len(d.Digest) != 64 || !strings.Contains(string(d.Canonical), `"_meta":{"x":1.50}`) {
		t.Errorf("canonical %s", d.Canonical)
	}
}

// SPEC B7: a change of any member, known or not, is another definition; member order,
// white space and escapes are not.
func TestParseDefinition_DigestCoversEveryMember(t *testing.T) {
	base := `{"name":"t","title":"T","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"_meta":{"v":1}}`
	digest := func(raw string) string {
		d, err := ParseDefinition([]byte(raw))
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		return d.Digest
	}
	want := digest(base)
	for _, same := range []string{
		`{"_meta":{"v":1},"annotations":{"readOnlyHint":true},"outputSchema":{"type":"object"},"inputSchema":{"type":"object"},"description":"\u0064","title":"T","name":"t"}`,
		strings.ReplaceAll(base, ",", " ,\n"),
	} {
		if digest(same) != want {
			t.Errorf("another digest for %s", same)
		}
	}
	for _, change := range [][2]string{
		{`"name":"t"`, `"name":"u"`}, {`"title":"T"`, `"title":"t"`}, {`"description":"d"`, `"description":"d "`},
		{`"inputSchema":{"type":"object"}`, `"inputSchema":{"type":"object","title":""}`},
		{`"outputSchema":{"type":"object"}`, `"outputSchema":{"type":"object","title":""}`},
		{`"readOnlyHint":true`, `"readOnlyHint":false`}, {`"v":1`, `"v":1.0`}, {`"v":1`, `"v":1,"w":null`}, {`"_meta"`, `"_Meta"`},
	} {
		if changed := strings.Replace(base, change[0], change[1], 1); digest(changed) == want {
			t.Errorf("same digest after %s", change[1])
		}
	}
}

func TestParseDefinition_BoundsBytes(t *testing.T) {
	sized := func(size int, unit string) string {
		frame := `{"name":"t","inputSchema":{"type":"object"},"description":""}`
		pad := strings.Repeat(unit, (size-len(frame))/len(unit))
		pad += strings.Repeat("a", size-len(frame)-len(pad))
		return strings.Replace(frame, `"description":""`, `"description":"`+pad+`"`, 1)
	}
	for _, unit := range []string{"a", "é", "証", "😀"} {
		if d, err := ParseDefinition([]byte(sized(MaxDefinition, unit))); err != nil || d.Size != MaxDefinition {
			t.Errorf("%s: %d bytes: %v", unit, d.Size, err)
		}
		if _, err := ParseDefinition([]byte(sized(MaxDefinition+1, unit))); reasonOf(err) != DefinitionTooLarge {
			t.Errorf("%s: one byte more: %v", unit, err)
		}
	}
	// White space and needless escapes do not count.
	loose := strings.Replace(sized(MaxDefinition, "a"), `"name":"t"`, "\n \"name\" : \"\\u0074\"", 1)
	if _, err := ParseDefinition([]byte(loose)); err != nil {
		t.Errorf("loosely written: %v", err)
	}
}

func TestParseDefinition_Refuses(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		want Reason
	}{
		"not JSON":                {`{`, DefinitionMalformed},
		"null":                    {`null`, DefinitionMalformed},
		"a list":                  {`[]`, DefinitionMalformed},
		"a duplicate member":      {`{"name":"a","name":"b","inputSchema":{}}`, DefinitionMalformed},
		"no name":                 {`{"inputSchema":{"type":"object"}}`, DefinitionName},
		"a name that is a number": {`{"name":5}`, DefinitionMalformed},
		"an empty name":           {`{"name":"","inputSchema":{}}`, DefinitionName},
		"a name with ESC":         {`{"name":"a\u001b[2J","inputSchema":{}}`, DefinitionName},
		"a name of 129 bytes":     {`{"name":"` + strings.Repeat("a", 129) + `","inputSchema":{}}`, DefinitionName},
		"a description in a list": {`{"name":"a","description":["x"],"inputSchema":{}}`, DefinitionMalformed},
		"a hint as text":          {`{"name":"a","annotations":{"readOnlyHint":"true"},"inputSchema":{}}`, DefinitionMalformed},
		"no input schema":         {`{"name":"a"}`, InputNotObject},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := ParseDefinition([]byte(c.raw)); reasonOf(err) != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestNameOf(t *testing.T) {
	if name, err := NameOf([]byte(`{"x":1,"name":"docs__x"}`)); err != nil || name != "docs__x" {
		t.Errorf("%q, %v", name, err)
	}
	for _, raw := range []string{`null`, `{}`, `{"name":null}`, `{"name":"a","name":"a"}`} {
		if _, err := NameOf([]byte(raw)); err == nil {
			t.Errorf("%s has a name", raw)
		}
	}
}

func TestNewTool_Quarantines(t *testing.T) {
	for name, c := range map[string]struct {
		change        func(*Contract)
		input, output string
		want          Reason
	}{
		"input of type array":          {nil, `{"type":"array"}`, resultOutput, InputNotObject},
		"input without type":           {nil, `{"properties":{}}`, resultOutput, InputNotObject},
		"input with two types":         {nil, `{"type":["object","null"]}`, resultOutput, InputNotObject},
		"input that is true":           {nil, `true`, resultOutput, InputNotObject},
		"output absent":                {nil, `{"type":"object"}`, ``, OutputMissing},
		"output empty":                 {nil, `{"type":"object"}`, `{}`, OutputMissing},
		"output that says nothing":     {nil, `{"type":"object"}`, `{"title":"t","default":1}`, OutputMissing},
		"output absent by contract":    {func(c *Contract) { c.Output = OutputNone }, `{"type":"object"}`, ``, ""},
		"output outside the subset":    {nil, `{"type":"object"}`, `{"type":"object","oneOf":[]}`, SchemaKeyword},
		"input outside the subset":     {nil, `{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`, resultOutput, SchemaKeyword},
		"widened for one tool":         {func(c *Contract) { c.Schema = []string{"const"} }, `{"type":"object","properties":{"a":{"const":1}}}`, resultOutput, ""},
		"a default its schema refuses": {nil, `{"type":"object","properties":{"a":{"type":"integer","default":"1"}}}`, resultOutput, SchemaDefault},
		"grant field that is none":     {func(c *Contract) { c.GrantField = "grant" }, `{"type":"object","properties":{"a":{}}}`, resultOutput, GrantFieldMissing},
		"grant field that is a number": {func(c *Contract) { c.GrantField = "a" }, `{"type":"object","properties":{"a":{"type":"number"}}}`, resultOutput, GrantFieldMissing},
		"grant field in a default":     {func(c *Contract) { c.GrantField = "a" }, `{"type":"object","properties":{"a":{"type":"string"}},"default":{"a":""}}`, resultOutput, GrantFieldElsewhere},
		"redacts what is not there":    {func(c *Contract) { c.Redact = []string{"contents"} }, `{"type":"object","properties":{"content":{}}}`, resultOutput, ContractArgument},
		"another pin":                  {func(c *Contract) { c.Pin = strings.Repeat("0", 64) }, `{"type":"object"}`, resultOutput, DefinitionPin},
	} {
		t.Run(name, func(t *testing.T) {
			raw := fmt.Sprintf(`{"name":"t","inputSchema":%s`, c.input)
			if c.output != "" {
				raw += `,"outputSchema":` + c.output
			}
			d, err := ParseDefinition([]byte(raw + `}`))
			if err != nil {
				t.Fatal(err)
			}
			contract := Contract{Name: "x__t", Owner: "o", Risk: agent.RiskRead}
			if c.change != nil {
				c.change(&contract)
			}
			if _, err := NewTool(contract, d); reasonOf(err) != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestNewTool_ExposesAClosedSchemaWithoutTheGrant(t *testing.T) {
	tool := saveTool(t)
	var schema struct {
		Schema               *string                    `json:"$schema"`
		Properties           map[string]json.RawMessage `json:"properties"`
		Required             []string                   `json:"required"`
		AdditionalProperties *bool                      `json:"additionalProperties"`
	}
	if err := json.Unmarshal(tool.Model.Parameters, &schema); err != nil {
		t.Fatal(err)
	}
	if len(schema.Properties) != 2 || len(schema.Required) != 2 || schema.AdditionalProperties == nil || *schema.AdditionalProperties {
		t.Errorf("exposed schema %s", tool.Model.Parameters)
	}
	if strings.Contains(string(tool.Model.Parameters), "grant") {
		t.Errorf("the grant field shows: %s", tool.Model.Parameters)
	}
	wire, err := tool.Model.Wire()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"function","function":{"name":"docs__save_report","description":"Saves a report.","parameters":` +
		string(tool.Model.Parameters) + `,"strict":false}}`
	if string(wire) != want {
		t.Errorf("wire form\n%s\nwant\n%s", wire, want)
	}
}

func TestNewTool_ExposedForms(t *testing.T) {
	for name, c := range map[string]struct{ grant, input, want string }{
		"open becomes closed":             {"", `{"type":"object"}`, `{"type":"object","properties":{},"additionalProperties":false}`},
		"true becomes closed":             {"", `{"type":"object","additionalProperties":true}`, `{"type":"object","properties":{},"additionalProperties":false}`},
		"$schema is dropped":              {"", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, `{"type":"object","properties":{},"additionalProperties":false}`},
		"order is kept":                   {"", `{"type":"object","properties":{"b":{},"a":{}}}`, `{"type":"object","properties":{"b":{},"a":{}},"additionalProperties":false}`},
		"the last required field goes":    {"g", `{"type":"object","properties":{"g":{}},"required":["g"]}`, `{"type":"object","properties":{},"additionalProperties":false}`},
		"a nested namesake stays":         {"g", `{"type":"object","properties":{"g":{},"a":{"type":"object","properties":{"g":{}},"required":["g"]}}}`, `{"type":"object","properties":{"a":{"type":"object","properties":{"g":{}},"required":["g"]}},"additionalProperties":false}`},
		"alternatives lose it too":        {"g", `{"type":"object","properties":{"g":{},"a":{}},"anyOf":[{"required":["a","g"]},{"properties":{"g":{"type":"string"}},"required":["g"]}]}`, `{"type":"object","properties":{"a":{}},"anyOf":[{"required":["a"]},{"properties":{},"required":[]}],"additionalProperties":false}`},
		"what alternatives add is listed": {"", `{"type":"object","anyOf":[{"properties":{"a":{"type":"string"}},"required":["a"]}]}`, `{"type":"object","anyOf":[{"properties":{"a":{"type":"string"}},"required":["a"]}],"properties":{"a":true},"additionalProperties":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			contract := Contract{Name: "x__t", Risk: agent.RiskWrite, GrantField: c.grant}
			tool := mustTool(t, contract, definitionOf("t", "T.", c.input, resultOutput))
			if got := string(tool.Model.Parameters); got != c.want {
				t.Errorf("exposed\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestNewTool_ALyingHintChangesNothing(t *testing.T) {
	raw := strings.Replace(definitionOf("save_report", "Saves.", saveInput, resultOutput), `{"name"`, `{"annotations":{"readOnlyHint":true},"name"`, 1)
	tool := mustTool(t, saveContract(), raw)
	if !tool.Contract.Risk.Writes() || tool.Contract.Approvers() != 1 {
		t.Errorf("risk %s, approvers %d", tool.Contract.Risk, tool.Contract.Approvers())
	}
}

func TestCheckSettle(t *testing.T) {
	write := saveTool(t)
	back := func(input string) *Tool {
		return mustTool(t, settleContract(), definitionOf("settle_report", "Settles.", input, resultOutput))
	}
	if err := CheckSettle(write, back(`{"type":"object","properties":{"filename":{},"grant":{}},"required":["filename","grant"]}`)); err != nil {
		t.Error(err)
	}
	for _, input := range []string{
		`{"type":"object","properties":{"filename":{}}}`,
		`{"type":"object","properties":{"filename":{},"grant":{},"more":{}},"required":["more"]}`,
	} {
		if err := CheckSettle(write, back(input)); reasonOf(err) != ContractArgument {
			t.Errorf("%s: %v", input, err)
		}
	}
}
