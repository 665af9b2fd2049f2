package grant_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"sallyport/tools/grant"
	"sallyport/tools/strictjson"
)

func TestFields_DigestTextAsItWillBeWritten(t *testing.T) {
	got, err := grant.Fields([]byte(`{"a":"é\n\"","b":[1,{"x":1.0}],"c":"","d":null,"e":1e2,"f":true}`))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ name, content string }{
		{"a", "é\n\""}, {"b", `[1,{"x":1.0}]`}, {"c", ""}, {"d", "null"}, {"e", "1e2"}, {"f", "true"},
	} {
		f := grant.Field{Name: want.name, SHA256: strictjson.Digest([]byte(want.content)), Bytes: int64(len(want.content))}
		if got[i] != f {
			t.Errorf("field %d is %+v, want %+v", i, got[i], f)
		}
	}
	if got, err := grant.Fields([]byte(`{}`)); err != nil || len(got) != 0 {
		t.Errorf("fields of the empty object: %v, %v", got, err)
	}
}

func TestFields_RefusesWhatIsNotACanonicalObject(t *testing.T) {
	for _, in := range []string{
		``, `null`, `5`, `"text"`, `[1]`, `NaN`, `{`, `{} `, ` {}`, `{}{}`,
		`{"filename":"a.md"}{"filename":"b.md"}`,
		`{"filename":"a.md","filename":"b.md"}`,
		`{"filename":"a.md","\u0066ilename":"b.md"}`,
		`{"b":1,"a":2}`, `{"a": 1}`, `{"a":{"c":1,"b":2}}`, `{"a":{"b":1,"b":1}}`,
		`{"a":"\u0041"}`, `{"a":"\/"}`, `{"a":"\u001F"}`, `{"a":"\u000a"}`, `{"a":"\ud800"}`, "{\"a\":\"\xff\"}", `{"\ud83d\ude00":1}`,
		strings.Repeat("[", 900), `{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
	} {
		if got, err := grant.Fields([]byte(in)); !errors.Is(err, grant.ErrArguments) {
			t.Errorf("Fields(%.40q) = %v, %v", in, got, err)
		}
	}
}

// Two packages write canonical JSON, this one so that it imports nothing. They
// have to agree: Host and server hash with either.
func FuzzFields(f *testing.F) {
	for _, seed := range []string{
		`{"content":"# Findings\n","filename":"report.md"}`,
		`{"a":[1,1.0,1e5,-0,{"b":null,"a":true}],"":"\u0000\u001f\b\t\n\f\r\"\\"}`,
		"{\"\uffee\":2,\"\U00010000\":1}", "{\"a\":\"\x7f\u2028\u2029</\"}",
		`{"filename":"a.md","filename":"b.md"}`, `{"a":"\ud800"}`, `null`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		form, refused := strictjson.Canonical(data)
		canonical := refused == nil && bytes.Equal(form, data) && data[0] == '{'
		fields, err := grant.Fields(data)
		if canonical && err != nil {
			t.Fatalf("%q is canonical, and Fields refuses it: %v", data, err)
		}
		beyondLimits := errors.Is(refused, strictjson.ErrDepth) || errors.Is(refused, strictjson.ErrNumber)
		if !canonical && !beyondLimits && err == nil {
			t.Fatalf("%q is not canonical (%q, %v), and Fields takes it", data, form, refused)
		}
		if canonical {
			fieldsAreMembers(t, data, fields)
		}
	})
}

func fieldsAreMembers(t *testing.T, data []byte, fields []grant.Field) {
	t.Helper()
	members, err := strictjson.Members(data)
	if err != nil || len(members) != len(fields) {
		t.Fatalf("%q has %d members and %d fields, %v", data, len(members), len(fields), err)
	}
	for i, m := range members {
		content := m.Value
		if content[0] == '"' {
			var text string
			if err := strictjson.Decode(content, &text); err != nil {
				t.Fatal(err)
			}
			content = []byte(text)
		}
		want := grant.Field{Name: m.Name, SHA256: strictjson.Digest(content), Bytes: int64(len(content))}
		if fields[i] != want {
			t.Fatalf("%q: field %+v, want %+v", data, fields[i], want)
		}
	}
}
