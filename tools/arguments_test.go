package tools

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"sallyport/agent"
)

const searchInput = `{"type":"object","properties":{
	"query":{"type":"string","minLength":1,"maxLength":80},
	"max_results":{"type":"integer","minimum":1,"maximum":3,"default":3}},
	"required":["query"],"additionalProperties":false}`

const saveInput = `{"type":"object","properties":{
	"filename":{"type":"string","pattern":"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\\.md$"},
	"content":{"type":"string","minLength":1,"maxLength":8000},
	"grant":{"type":"string","minLength":1,"maxLength":2048}},
	"required":["filename","content","grant"],"additionalProperties":false}`

const resultOutput = `{"type":"object","properties":{"status":{"type":"string","enum":["ok","rejected","failed","result_unknown"]},
	"message":{"type":"string"},"data":{"type":"object"}},"required":["status","message"],"additionalProperties":false}`

func definitionOf(name, description, input, output string) string {
	return fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":%s,"outputSchema":%s}`, name, description, input, output)
}

func mustTool(t testing.TB, c Contract, definition string) *Tool {
	t.Helper()
	d, err := ParseDefinition([]byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	tool, err := NewTool(c, d)
	if err != nil {
		t.Fatal(err)
	}
	return tool
}

func searchTool(t testing.TB) *Tool {
	return mustTool(t, Contract{Name: "docs__search_documents", Owner: "desk", Risk: agent.RiskRead, Result: ResultStatus},
		definitionOf("search_documents", "Finds text.", searchInput, resultOutput))
}

func saveTool(t testing.TB) *Tool {
	return mustTool(t, saveContract(), definitionOf("save_report", "Saves a report.", saveInput, resultOutput))
}

func TestDecodeArguments_Search(t *testing.T) {
	tool := searchTool(t)
	for name, c := range map[string]struct {
		text string
		want string
		row  int
		why  Reason
	}{
		"default filled in":           {`{"query":"x"}`, `{"max_results":3,"query":"x"}`, 0, ""},
		"canonical":                   {"{ \"query\" : \"\\u0078\\/\" ,\n\"max_results\":1}", `{"max_results":1,"query":"x/"}`, 0, ""},
		"an empty text":               {``, "", 1, ValueNotObject},
		"null":                        {`null`, "", 1, ValueNotObject},
		"a number":                    {`5`, "", 1, ValueNotObject},
		"a text":                      {`"text"`, "", 1, ValueNotObject},
		"a list":                      {`[1]`, "", 1, ValueNotObject},
		"NaN":                         {`NaN`, "", 1, ValueNotObject},
		"cut":                         {`{"query":"x`, "", 1, ValueNotObject},
		"two objects":                 {`{"query":"a"}{"query":"b"}`, "", 1, ValueNotObject},
		"duplicate key":               {`{"query":"a","query":"b"}`, "", 1, ValueNotObject},
		"duplicate key by escape":     {`{"query":"a","\u0071uery":"b"}`, "", 1, ValueNotObject},
		"lone surrogate":              {`{"query":"\ud800"}`, "", 1, ValueNotObject},
		"not UTF-8":                   {"{\"query\":\"\xff\"}", "", 1, ValueNotObject},
		"an endless number":           {`{"query":"x","max_results":1e999999}`, "", 1, ValueMalformed},
		"true":                        {`{"query":"x","max_results":true}`, "", 3, FieldType},
		"a number as text":            {`{"query":"x","max_results":"2"}`, "", 3, FieldType},
		"2.0":                         {`{"query":"x","max_results":2.0}`, "", 3, FieldType},
		"2e0":                         {`{"query":"x","max_results":2e0}`, "", 3, FieldType},
		"null instead of the default": {`{"query":"x","max_results":null}`, "", 3, FieldType},
		"0":                           {`{"query":"x","max_results":0}`, "", 3, FieldRange},
		"1":                           {`{"query":"x","max_results":1}`, `{"max_results":1,"query":"x"}`, 0, ""},
		"3":                           {`{"query":"x","max_results":3}`, `{"max_results":3,"query":"x"}`, 0, ""},
		"4":                           {`{"query":"x","max_results":4}`, "", 3, FieldRange},
		"empty query":                 {`{"query":""}`, "", 3, FieldLength},
		"80 emoji":                    {`{"query":"` + strings.Repeat("😀", 80) + `"}`, `{"max_results":3,"query":"` + strings.Repeat("😀", 80) + `"}`, 0, ""},
		"81 characters":               {`{"query":"` + strings.Repeat("a", 81) + `"}`, "", 3, FieldLength},
		"no query":                    {`{}`, "", 3, FieldMissing},
		"an extra key":                {`{"query":"x","path":"/"}`, "", 3, FieldUnknown},
		"a key in another case":       {`{"Query":"x"}`, "", 3, FieldUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := tool.DecodeArguments(c.text)
			checkArgumentError(t, err, c.row, c.why)
			if string(got) != c.want {
				t.Errorf("arguments %s, want %s", got, c.want)
			}
		})
	}
}

func checkArgumentError(t *testing.T, err error, row int, why Reason) {
	t.Helper()
	var refused *ArgumentError
	switch errors.As(err, &refused) {
	case true:
		if refused.Row != row || refused.Reason != why {
			t.Errorf("row %d, reason %q; want row %d, %q", refused.Row, refused.Reason, row, why)
		}
	default:
		if row != 0 || err != nil {
			t.Errorf("error %v, want row %d, %q", err, row, why)
		}
	}
}

func TestDecodeArguments_TheModelCannotSendAGrant(t *testing.T) {
	tool := saveTool(t)
	for text, why := range map[string]Reason{
		`{"filename":"a.md","content":"x","grant":"y"}`:       FieldGrant,
		`{"filename":"a.md","content":"x","grant":null}`:      FieldGrant,
		`{"filename":"a.md","content":"x","\u0067rant":""}`:   FieldGrant,
		`{"filename":"a.md","content":"x","approved":true}`:   FieldUnknown,
		`{"filename":"a.md","content":"x","Grant":"y"}`:       FieldUnknown,
		`{"filename":"a.md","content":{"grant":"y"}}`:         FieldType,
		`{"approved":true,"filename":"a.md","content":"x"}`:   FieldUnknown,
		`{"filename":"a.md","content":""}`:                    FieldLength,
		`{"filename":"a.md"}`:                                 FieldMissing,
		`{"filename":["a.md"],"content":"x","grant":"valid"}`: FieldType,
	} {
		_, err := tool.DecodeArguments(text)
		t.Run(text, func(t *testing.T) { checkArgumentError(t, err, 3, why) })
	}
}

func TestDecodeArguments_BoundsBytes(t *testing.T) {
	tool := mustTool(t, Contract{Name: "x__t", Risk: agent.RiskRead},
		definitionOf("t", "T.", `{"type":"object","properties":{"s":{"type":"string"},"d":{"type":"string","default":"12345"}}}`, resultOutput))
	text := func(size int, rest string) string {
		frame := `{` + rest + `"s":""}`
		return `{` + rest + `"s":"` + strings.Repeat("a", size-len(frame)) + `"}`
	}
	given := `"d":"x",`
	if out, err := tool.DecodeArguments(text(MaxArguments, given)); err != nil || len(out) != MaxArguments {
		t.Errorf("%d bytes: %d, %v", MaxArguments, len(out), err)
	}
	_, err := tool.DecodeArguments(text(MaxArguments+1, given))
	checkArgumentError(t, err, 1, ValueTooLarge)
	if CheckArguments(text(MaxArguments, given)) != nil || CheckArguments(text(MaxArguments+1, given)) == nil {
		t.Error("CheckArguments has another limit")
	}
	filled := len(`"d":"12345",`)
	if out, err := tool.DecodeArguments(text(MaxArguments-filled, "")); err != nil || len(out) != MaxArguments {
		t.Errorf("%d bytes with the default: %d, %v", MaxArguments, len(out), err)
	}
	_, err = tool.DecodeArguments(text(MaxArguments-filled+1, ""))
	checkArgumentError(t, err, 3, ValueTooLarge)
	// White space counts as sent.
	_, err = tool.DecodeArguments(strings.Repeat(" ", MaxArguments) + "{}")
	checkArgumentError(t, err, 1, ValueTooLarge)
}

func TestDecodeArguments_FillsDefaultsWhereObjectsArePresent(t *testing.T) {
	tool := mustTool(t, Contract{Name: "x__t", Risk: agent.RiskRead}, definitionOf("t", "T.", `{"type":"object","properties":{
		"near":{"type":"object","properties":{"x":{"type":"integer","default":1}}},
		"far":{"type":"object","properties":{"y":{"type":"integer","default":2}},"default":{"z":9007199254740993}},
		"list":{"type":"array","items":{"type":"object","properties":{"k":{"type":"string","default":"v"}}}}}}`, resultOutput))
	for text, want := range map[string]string{
		`{}`:                        `{"far":{"y":2,"z":9007199254740993}}`,
		`{"near":{}}`:               `{"far":{"y":2,"z":9007199254740993},"near":{"x":1}}`,
		`{"far":{"y":5}}`:           `{"far":{"y":5}}`,
		`{"far":{},"list":[{},{}]}`: `{"far":{"y":2},"list":[{"k":"v"},{"k":"v"}]}`,
	} {
		got, err := tool.DecodeArguments(text)
		if err != nil || string(got) != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
	}
}

func TestDecodeArguments_DefaultsAreBounded(t *testing.T) {
	tool := mustTool(t, Contract{Name: "x__t", Risk: agent.RiskRead}, definitionOf("t", "T.", `{"type":"object","properties":{
		"list":{"type":"array","items":{"type":"object","properties":{"k":{"default":"`+strings.Repeat("x", 9000)+`"}}}}}}`, resultOutput))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := tool.DecodeArguments(`{"list":[` + strings.Repeat("{},", 10_000) + `{}]}`)
	runtime.ReadMemStats(&after)
	checkArgumentError(t, err, 3, ValueTooLarge)
	if spent := after.TotalAlloc - before.TotalAlloc; spent > 20<<20 {
		t.Errorf("%d bytes were allocated before the refusal", spent)
	}
}

func TestDecodeArguments_NestedObjectsFollowTheirOwnSchema(t *testing.T) {
	tool := mustTool(t, Contract{Name: "x__t", Risk: agent.RiskRead}, definitionOf("t", "T.", `{"type":"object","properties":{
		"closed":{"type":"object","properties":{"a":{}},"additionalProperties":false},"open":{"type":"object"}}}`, resultOutput))
	if _, err := tool.DecodeArguments(`{"open":{"b":1}}`); err != nil {
		t.Errorf("open: %v", err)
	}
	_, err := tool.DecodeArguments(`{"closed":{"b":1}}`)
	checkArgumentError(t, err, 3, FieldUnknown)
	_, err = tool.DecodeArguments(`{"open":{"a":{"b":1,"b":2}}}`)
	checkArgumentError(t, err, 1, ValueNotObject)
}

// Only the field of the arguments themselves carries the grant.
func TestDecodeArguments_ANestedNamesakeOfTheGrantIsAField(t *testing.T) {
	tool := mustTool(t, Contract{Name: "x__t", Risk: agent.RiskWrite, GrantField: "grant"}, definitionOf("t", "T.",
		`{"type":"object","properties":{"grant":{"type":"string"},"a":{"type":"object","properties":{"grant":{"type":"integer"}}}}}`, resultOutput))
	if out, err := tool.DecodeArguments(`{"a":{"grant":5}}`); err != nil || string(out) != `{"a":{"grant":5}}` {
		t.Errorf("%s, %v", out, err)
	}
	_, err := tool.DecodeArguments(`{"a":{"grant":5},"grant":"x"}`)
	checkArgumentError(t, err, 3, FieldGrant)
}

// SPEC B10: what the server's schema says beyond fields, types and limits is asked
// after discovery.
func TestTool_CheckArgumentsAsksTheServersSchema(t *testing.T) {
	tool := saveTool(t)
	args, err := tool.DecodeArguments(`{"filename":"../a.md","content":"x"}`)
	if err != nil {
		t.Fatal(err)
	}
	if err := tool.CheckArguments(args); !errors.Is(err, FieldPattern) {
		t.Errorf("a file name outside the pattern: %v", err)
	}
	if args, err = tool.DecodeArguments(`{"filename":"a.md","content":"x"}`); err != nil {
		t.Fatal(err)
	}
	if err := tool.CheckArguments(args); err != nil {
		t.Errorf("good arguments without a grant: %v", err)
	}
	sent, err := tool.WithGrant(args, "g")
	if err != nil || string(sent) != `{"content":"x","filename":"a.md","grant":"g"}` {
		t.Errorf("with grant: %s, %v", sent, err)
	}
}

func FuzzDecodeArguments(f *testing.F) {
	f.Add(saveInput, `{"filename":"a.md","content":"x"}`)
	f.Add(searchInput, `{"query":"x","max_results":2}`)
	f.Add(searchInput, `{"query":"x","query":"y"}`)
	f.Add(`{"type":"object","properties":{"a":{"type":"object","default":{},"properties":{"b":{"default":[]}}}}}`, `{"a":{"c":1e308}}`)
	f.Fuzz(func(t *testing.T, input, text string) {
		c := Contract{Name: "x__t", Risk: agent.RiskRead, Schema: WidenKeywords}
		d, err := ParseDefinition([]byte(`{"name":"t","inputSchema":` + input + `,"outputSchema":` + resultOutput + `}`))
		if err != nil {
			return
		}
		tool, err := NewTool(c, d)
		if err != nil {
			return
		}
		out, err := tool.DecodeArguments(text)
		if err != nil {
			var refused *ArgumentError
			if !errors.As(err, &refused) || refused.Row != 1 && refused.Row != 3 {
				t.Fatalf("error %v", err)
			}
			return
		}
		if len(out) > MaxArguments {
			t.Fatalf("%d bytes", len(out))
		}
		again, err := tool.DecodeArguments(string(out))
		if err != nil || string(again) != string(out) {
			t.Fatalf("decoding twice: %q, %v; once: %q", again, err, out)
		}
		if !strings.Contains(input, "$ref") && reasonOf(tool.CheckArguments(out)) == ValuePanic {
			t.Fatal("the second validator panics")
		}
	})
}
