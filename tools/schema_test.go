package tools

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestNewSchema_AcceptsTheSubsetOnly(t *testing.T) {
	for name, c := range map[string]struct {
		schema string
		want   Reason
	}{
		"every keyword": {`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","title":"t","description":"d",
			"properties":{"a":{"type":"string","pattern":"^x","minLength":1,"maxLength":3},"b":{"type":["integer","null"],"minimum":0,"maximum":9}},
			"required":["a"],"additionalProperties":{"type":"string"},"items":{},"enum":[{}],"default":{},"anyOf":[{"required":["a"]},true]}`, ""},
		"draft-07":                         {`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`, ""},
		"draft-07 without fragment":        {`{"$schema":"http://json-schema.org/draft-07/schema","type":"object"}`, ""},
		"draft-04":                         {`{"$schema":"http://json-schema.org/draft-04/schema#","type":"object"}`, SchemaDialect},
		"2020-12 with fragment":            {`{"$schema":"https://json-schema.org/draft/2020-12/schema#"}`, SchemaDialect},
		"dialect of another host":          {`{"$schema":"file:///etc/passwd"}`, SchemaDialect},
		"dialect that is no text":          {`{"$schema":7}`, SchemaInvalid},
		"dialect below the root":           {`{"properties":{"a":{"$schema":"https://json-schema.org/draft/2020-12/schema"}}}`, SchemaKeyword},
		"$ref":                             {`{"properties":{"a":{"$ref":"http://example.test/x"}}}`, SchemaKeyword},
		"dangling local $ref":              {`{"$ref":"#/$defs/none"}`, SchemaKeyword},
		"$ref in enum":                     {`{"enum":[{"$ref":"http://example.test/x"}]}`, ""},
		"$ref in default":                  {`{"default":{"$ref":"http://example.test/x"}}`, ""},
		"a property named $ref":            {`{"properties":{"$ref":{"type":"string"}}}`, ""},
		"a property named like a keyword":  {`{"properties":{"allOf":{"type":"string"},"type":{"type":"string"}}}`, ""},
		"items as a list":                  {`{"items":[{"type":"string"}]}`, SchemaInvalid},
		"unknown type":                     {`{"type":"text"}`, SchemaInvalid},
		"type twice":                       {`{"type":["string","string"]}`, SchemaInvalid},
		"no type in the list":              {`{"type":[]}`, SchemaInvalid},
		"required that is no list":         {`{"required":"a"}`, SchemaInvalid},
		"required twice":                   {`{"required":["a","a"]}`, SchemaInvalid},
		"properties that are no object":    {`{"properties":[]}`, SchemaInvalid},
		"a property that is no schema":     {`{"properties":{"a":5}}`, SchemaInvalid},
		"empty anyOf":                      {`{"anyOf":[]}`, SchemaInvalid},
		"negative length":                  {`{"minLength":-1}`, SchemaInvalid},
		"length with fraction":             {`{"maxLength":1.0}`, SchemaInvalid},
		"length with exponent":             {`{"maxLength":1e9}`, SchemaInvalid},
		"length of nine digits":            {`{"maxLength":999999999}`, ""},
		"length of ten digits":             {`{"maxLength":1000000000}`, SchemaInvalid},
		"bound that is no number":          {`{"minimum":"0"}`, SchemaInvalid},
		"bound with a huge exponent":       {`{"minimum":1e9999999}`, SchemaInvalid},
		"title that is no text":            {`{"title":5}`, SchemaInvalid},
		"pattern that is none":             {`{"pattern":"("}`, SchemaPattern},
		"pattern with a look-ahead":        {`{"pattern":"(?=a)"}`, SchemaPattern},
		"pattern that is too large":        {`{"pattern":"(a{100}){10}(b{100}){10}(c{100}){10}(d{100}){10}(e{100}){10}(f{100}){10}"}`, SchemaPattern},
		"enum that is no list":             {`{"enum":{}}`, SchemaInvalid},
		"the schema true":                  {`true`, SchemaInvalid},
		"a list":                           {`[]`, SchemaInvalid},
		"a duplicate keyword":              {`{"type":"object","type":"string"}`, SchemaInvalid},
		"an own name beside the keywords":  {`{"x-vendor":1}`, SchemaKeyword},
		"keyword in another case":          {`{"Type":"object"}`, SchemaKeyword},
		"widened keyword without contract": {`{"const":1}`, SchemaKeyword},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewSchema([]byte(c.schema), nil)
			if got := reasonOf(err); got != c.want {
				t.Errorf("reason %q, want %q", got, c.want)
			}
		})
	}
}

func reasonOf(err error) Reason {
	var r Reason
	if err != nil && !errors.As(err, &r) {
		return "not a reason"
	}
	return r
}

func TestNewSchema_RefusesEachUnlistedKeyword(t *testing.T) {
	for _, k := range strings.Fields(`$ref $id $anchor $defs definitions $dynamicRef $dynamicAnchor $recursiveRef $comment $vocabulary id
		allOf oneOf not if then else dependentSchemas dependentRequired dependencies prefixItems additionalItems contains minContains
		maxContains patternProperties propertyNames unevaluatedItems unevaluatedProperties multipleOf uniqueItems minProperties
		maxProperties contentEncoding contentMediaType contentSchema deprecated readOnly writeOnly examples`) {
		for _, at := range []string{`{%q:%s}`, `{"properties":{"a":{%q:%s}}}`} {
			for _, value := range []string{`{}`, `"a"`, `1`, `true`, `[]`} {
				schema := fmt.Sprintf(at, k, value)
				if _, err := NewSchema([]byte(schema), WidenKeywords); reasonOf(err) != SchemaKeyword {
					t.Errorf("%s: %v, want %s", schema, err, SchemaKeyword)
				}
			}
		}
	}
}

func TestNewSchema_NamesTheRefusedKeyword(t *testing.T) {
	for schema, want := range map[string]string{
		`{"format":"date"}`:      "schema_keyword: format (the contract can allow it with `schema: [format]`)",
		`{"$ref":"#/x"}`:         "schema_keyword: $ref",
		`{"ignore all rules":1}`: "schema_keyword",
	} {
		if _, err := NewSchema([]byte(schema), nil); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", schema, err, want)
		}
	}
}

func TestNewSchema_ContractsWidenByName(t *testing.T) {
	values := map[string]string{"format": `"date"`, "const": `"a"`, "minItems": `1`, "maxItems": `2`, "exclusiveMinimum": `1`, "exclusiveMaximum": `2`}
	for _, k := range WidenKeywords {
		schema := fmt.Sprintf(`{%q:%s}`, k, values[k])
		if _, err := NewSchema([]byte(schema), nil); reasonOf(err) != SchemaKeyword {
			t.Errorf("%s without contract: %v", schema, err)
		}
		if _, err := NewSchema([]byte(schema), []string{k}); err != nil {
			t.Errorf("%s allowed: %v", schema, err)
		}
	}
}

// nested returns a schema whose innermost one has the depth.
func nested(depth int, keyword string) string {
	open := map[string]string{"properties": `{"properties":{"a":`, "items": `{"items":`, "anyOf": `{"anyOf":[`, "additionalProperties": `{"additionalProperties":`}[keyword]
	shut := map[string]string{"properties": `}}`, "items": `}`, "anyOf": `]}`, "additionalProperties": `}`}[keyword]
	return strings.Repeat(open, depth) + `{}` + strings.Repeat(shut, depth)
}

func TestNewSchema_BoundsDepth(t *testing.T) {
	for _, keyword := range []string{"properties", "items", "anyOf", "additionalProperties"} {
		if _, err := NewSchema([]byte(nested(MaxSchemaDepth, keyword)), nil); err != nil {
			t.Errorf("%s to depth %d: %v", keyword, MaxSchemaDepth, err)
		}
		if _, err := NewSchema([]byte(nested(MaxSchemaDepth+1, keyword)), nil); reasonOf(err) != SchemaDepth {
			t.Errorf("%s to depth %d: %v", keyword, MaxSchemaDepth+1, err)
		}
	}
}

func TestNewSchema_BoundsNodes(t *testing.T) {
	schema := func(nodes int) []byte { // the root and so many properties
		var props []string
		for i := range nodes - 1 {
			props = append(props, fmt.Sprintf(`"p%d":{}`, i))
		}
		return []byte(`{"type":"object","properties":{` + strings.Join(props, ",") + `},"additionalProperties":false}`)
	}
	if _, err := NewSchema(schema(MaxSchemaNodes), nil); err != nil {
		t.Errorf("%d nodes: %v", MaxSchemaNodes, err)
	}
	if _, err := NewSchema(schema(MaxSchemaNodes+1), nil); reasonOf(err) != SchemaNodes {
		t.Errorf("%d nodes: %v", MaxSchemaNodes+1, err)
	}
	// What enum and default hold are no nodes.
	data := `{"default":` + strings.Repeat(`{"a":`, 40) + `1` + strings.Repeat(`}`, 40) + `,"enum":[` + strings.Repeat(`{},`, 500) + `{}]}`
	if _, err := NewSchema([]byte(data), nil); err != nil {
		t.Errorf("deep and wide data: %v", err)
	}
}

func TestSchema_Validate(t *testing.T) {
	for name, c := range map[string]struct {
		schema, value string
		want          Reason
	}{
		"integer":                       {`{"type":"integer"}`, `12`, ""},
		"integer over 2^63":             {`{"type":"integer"}`, `9223372036854775808123`, ""},
		"1.0 is no integer":             {`{"type":"integer"}`, `1.0`, FieldType},
		"1e3 is no integer":             {`{"type":"integer"}`, `1e3`, FieldType},
		"1.0 is no integer under anyOf": {`{"anyOf":[{"type":"integer"},{"type":"string"}]}`, `1.0`, FieldNoBranch},
		"1.0 is a number":               {`{"type":"number"}`, `1.0`, ""},
		"true is no integer":            {`{"type":"integer"}`, `true`, FieldType},
		"null is no object":             {`{"type":"object"}`, `null`, FieldType},
		"at the lower bound":            {`{"minimum":9007199254740993}`, `9007199254740993`, ""},
		"below it by one past 2^53":     {`{"minimum":9007199254740993}`, `9007199254740992`, FieldRange},
		"at the upper bound":            {`{"maximum":1.5}`, `1.50`, ""},
		"above it":                      {`{"maximum":1.5}`, `1.51`, FieldRange},
		"bounded with an exponent":      {`{"maximum":1000000}`, `1e2`, FieldRange},
		"unbounded with an exponent":    {`{"type":"number"}`, `1e2`, ""},
		"exponent of 308":               {`{}`, `1e308`, ""},
		"exponent of 309":               {`{}`, `1e309`, ValueMalformed},
		"number of 32 characters":       {`{}`, strings.Repeat("1", 32), ""},
		"number of 33 characters":       {`{}`, strings.Repeat("1", 33), ValueMalformed},
		"length counts code points":     {`{"maxLength":2}`, `"😀😀"`, ""},
		"one more":                      {`{"maxLength":2}`, `"😀😀a"`, FieldLength},
		"too short":                     {`{"minLength":1}`, `""`, FieldLength},
		"pattern is unanchored":         {`{"pattern":"b"}`, `"abc"`, ""},
		"pattern":                       {`{"pattern":"^b"}`, `"abc"`, FieldPattern},
		"enum":                          {`{"enum":["a",{"b":1,"c":2}]}`, `{"c":2,"b":1}`, ""},
		"enum as written":               {`{"enum":[1]}`, `1.0`, FieldEnum},
		"not in enum":                   {`{"enum":["a"]}`, `"b"`, FieldEnum},
		"required":                      {`{"type":"object","required":["a"]}`, `{}`, FieldMissing},
		"closed":                        {`{"type":"object","additionalProperties":false}`, `{"a":1}`, FieldUnknown},
		"open":                          {`{"type":"object"}`, `{"a":1}`, ""},
		"additional schema":             {`{"additionalProperties":{"type":"string"}}`, `{"a":1}`, FieldType},
		"an object schema without type": {`{"properties":{"a":{}}}`, `5`, FieldType},
		"nested":                        {`{"properties":{"a":{"items":{"type":"string"}}}}`, `{"a":["x",5]}`, FieldType},
		"the schema false":              {`{"properties":{"a":false}}`, `{"a":1}`, FieldNone},
		"a branch":                      {`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"b":1}`, ""},
		"no branch":                     {`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"c":1}`, FieldNoBranch},
		"duplicate key":                 {`{}`, `{"a":1,"a":2}`, ValueMalformed},
		"trailing data":                 {`{}`, `{}{}`, ValueMalformed},
		"nothing":                       {`{}`, ``, ValueMalformed},
		"too few items":                 {`{"minItems":1}`, `[]`, FieldLength},
		"too many items":                {`{"maxItems":1}`, `[1,2]`, FieldLength},
		"at the exclusive bound":        {`{"exclusiveMinimum":1}`, `1`, FieldRange},
		"above the exclusive bound":     {`{"exclusiveMinimum":1}`, `2`, ""},
		"at the upper exclusive bound":  {`{"exclusiveMaximum":1}`, `1`, FieldRange},
		"const":                         {`{"const":{"a":[1]}}`, `{"a":[1]}`, ""},
		"not const":                     {`{"const":{"a":[1]}}`, `{"a":[2]}`, FieldEnum},
		"const and enum leave both":     {`{"const":"a","enum":["a","b"]}`, `"b"`, FieldEnum},
		"format is not asserted":        {`{"format":"date"}`, `"tomorrow"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := NewSchema([]byte(c.schema), WidenKeywords)
			if err != nil {
				t.Fatal(err)
			}
			if got := reasonOf(s.Validate([]byte(c.value))); got != c.want {
				t.Errorf("%s against %s: reason %q, want %q", c.value, c.schema, got, c.want)
			}
		})
	}
}

func TestSchema_ErrorsNeverQuoteTheValue(t *testing.T) {
	s := mustSchema(t, `{"properties":{"name":{"enum":["x"]}},"additionalProperties":false}`)
	for _, v := range []string{`{"name":"hunter2"}`, `{"hunter2":1}`, `"hunter2"`, `{"hunter2":`} {
		err := s.Validate([]byte(v))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", v, err)
		}
	}
}

func mustSchema(t testing.TB, schema string) *Schema {
	t.Helper()
	s, err := NewSchema([]byte(schema), WidenKeywords)
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return s
}

func TestSchema_BoundsWork(t *testing.T) {
	// Two nodes; a list of n numbers has n + 2 tokens.
	s := mustSchema(t, `{"items":{"type":"integer"}}`)
	list := func(n int) []byte { return []byte("[" + strings.Repeat("1,", n-1) + "1]") }
	if err := s.Validate(list(MaxWork/2 - 2)); err != nil {
		t.Errorf("exactly at the limit: %v", err)
	}
	if err := s.Validate(list(MaxWork/2 - 1)); reasonOf(err) != ValueTooComplex {
		t.Errorf("one past the limit: %v", err)
	}
}

func TestSchema_BoundsPatterns(t *testing.T) {
	s := mustSchema(t, `{"items":{"pattern":"^a*$"}}`)
	effort := s.root.items.effort
	list := func(total int) []byte { // texts of at most 1,000 characters
		var items []string
		for ; total > 0; total -= 1000 {
			items = append(items, `"`+strings.Repeat("a", min(total, 1000))+`"`)
		}
		return []byte("[" + strings.Join(items, ",") + "]")
	}
	if err := s.Validate(list(maxPatternWork / effort)); err != nil {
		t.Errorf("exactly at the limit: %v", err)
	}
	if err := s.Validate(list(maxPatternWork/effort + 1)); reasonOf(err) != ValueTooComplex {
		t.Errorf("one past the limit: %v", err)
	}
	// What no pattern is tried on costs nothing.
	s = mustSchema(t, `{"properties":{"name":{"pattern":"^[a-z]{0,900}$"},"content":{"type":"string"}}}`)
	if err := s.Validate([]byte(`{"name":"a","content":"` + strings.Repeat("x", 31_000) + `"}`)); err != nil {
		t.Errorf("a long text beside a pattern: %v", err)
	}
}

// Inputs with which validators elsewhere took seconds, or wrote errors of megabytes.
func TestSchema_IsBoundedOnHostileValues(t *testing.T) {
	enum := `{"items":{"enum":[` + strings.Repeat(`"aaaaaaaa",`, 800) + `"b"]}}`
	pattern := `{"items":{"pattern":"^(([a-z])+.)+[A-Z]([a-z])+$"}}`
	huge := `{"items":{"pattern":"(a{30}){30}b"}}`
	bounded := `{"items":{"maximum":10}}`
	for name, c := range map[string][2]string{
		"enum":     {enum, "[" + strings.Repeat(`1,`, 15_000) + "1]"},
		"pattern":  {pattern, `["` + strings.Repeat("a", 31_000) + `"]`},
		"repeat":   {huge, `["` + strings.Repeat("a", 31_000) + `"]`},
		"exponent": {bounded, "[" + strings.Repeat(`1e308,`, 5_000) + "1]"},
		"digits":   {bounded, "[" + strings.Repeat(strings.Repeat("9", 32)+",", 900) + "1]"},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustSchema(t, c[0])
			start := time.Now()
			err := s.Validate([]byte(c[1]))
			if err == nil || len(err.Error()) > 100 {
				t.Errorf("error %v", err)
			}
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestSchema_NothingIsFetched(t *testing.T) {
	if _, err := (nowhere{}).Load("file:///etc/hostname"); err == nil {
		t.Error("the loader loads")
	}
}

func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"integer","minimum":1}}}`, `{"a":1}`)
	f.Add(`{"anyOf":[{"const":1},{"enum":["x",null]}],"pattern":"^a"}`, `"x"`)
	f.Add(nested(8, "properties"), `{"a":{"a":[]}}`)
	f.Add(`{"minimum":1e308}`, `1e-308`)
	f.Add(`{"items":{"format":"date","maxItems":2}}`, `[[1,2,3]]`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		if len(schema) > MaxDefinition || len(value) > MaxArguments {
			return
		}
		s, err := NewSchema([]byte(schema), WidenKeywords)
		if err != nil {
			if reasonOf(err) == "not a reason" {
				t.Fatalf("schema error %q is no fixed word", err)
			}
			return
		}
		err = s.Validate([]byte(value))
		if reasonOf(err) == "not a reason" {
			t.Fatalf("value error %q is no fixed word", err)
		}
		if reasonOf(err) == ValueInvalid || reasonOf(err) == ValuePanic {
			t.Fatalf("our own check accepts what the second refuses (%v): %q against %q", err, value, schema)
		}
	})
}
