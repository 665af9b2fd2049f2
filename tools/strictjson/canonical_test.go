package strictjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestCanonical_IsTheHashedForm(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"white space":              {" { \"a\" : [ 1 , 2 ] }\n", `{"a":[1,2]}`},
		"order of members":         {`{"b":1,"a":{"d":2,"c":3}}`, `{"a":{"c":3,"d":2},"b":1}`},
		"order in an array":        {`[{"b":1,"a":2},3,1]`, `[{"a":2,"b":1},3,1]`},
		"prefix first":             {`{"ab":1,"a":2,"":3}`, `{"":3,"a":2,"ab":1}`},
		"quote is below letters":   {`{"a!":1,"a\"":2,"a#":3}`, `{"a!":1,"a\"":2,"a#":3}`},
		"bytes, not UTF-16":        {"{\"\U00010000\":1,\"\uffee\":2}", "{\"\uffee\":2,\"\U00010000\":1}"},
		"names by what they mean":  {`{"\u0062":1,"a":2}`, `{"a":2,"b":1}`},
		"number text":              {`[1.0,1e2,1E+2,-0,0.10,9007199254740993]`, `[1.0,1e2,1E+2,-0,0.10,9007199254740993]`},
		"escapes that can go":      {`"\u0041\/\u007f\u2028\u003c"`, "\"A/\x7f\u2028<\""},
		"escapes that must stay":   {`"\u0022\u005c\u0008\u0009\u000a\u000c\u000d\u0000\u001F"`, `"\"\\\b\t\n\f\r\u0000\u001f"`},
		"surrogate pair":           {`"\ud83d\ude00"`, `"😀"`},
		"empty":                    {`[{},[],""]`, `[{},[],""]`},
		"no Unicode normalisation": {"\"e\u0301\"", "\"e\u0301\""},
		"literals":                 {`[true, false, null]`, `[true,false,null]`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Canonical([]byte(c.in))
			if err != nil || string(got) != c.want {
				t.Errorf("Canonical(%q) = %q, %v, want %q", c.in, got, err, c.want)
			}
		})
	}
}

func TestCompact_KeepsTheOrder(t *testing.T) {
	got, err := Compact([]byte(` {"b": "\u0041", "a": [ {"d":1, "c":2} ]} `))
	if want := `{"b":"A","a":[{"d":1,"c":2}]}`; err != nil || string(got) != want {
		t.Errorf("Compact = %q, %v, want %q", got, err, want)
	}
}

func TestCanonical_LeavesTheInputAlone(t *testing.T) {
	in := []byte(`{"b":[1,"\u0041"],"a":{"d":1,"c":2}}`)
	before := bytes.Clone(in)
	out, err := Canonical(in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range out {
		out[i] = 'X'
	}
	if !bytes.Equal(in, before) {
		t.Errorf("input became %q", in)
	}
}

func TestCanonical_MayBeLargerThanAFrame(t *testing.T) {
	in := `"` + strings.Repeat("x", FrameLimits.Bytes) + `"`
	if out, err := Canonical([]byte(in)); err != nil || string(out) != in {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

func TestDigest_IsOfTheBytesAsGiven(t *testing.T) {
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got := Digest(nil); got != empty {
		t.Errorf("Digest(nil) = %s", got)
	}
	if Digest([]byte(`{}`)) == Digest([]byte(`{ }`)) {
		t.Error("white space was dropped")
	}
}

// checkAgreesWithCanonical holds for every text there is.
func checkAgreesWithCanonical(t *testing.T, data []byte) {
	limits := FrameLimits
	limits.Bytes = 0
	refused := Check(data, limits)
	once, err := Canonical(data)
	if refused != err {
		t.Fatalf("Check says %v, Canonical says %v", refused, err)
	}
	if err != nil {
		if !isSentinel(err) {
			t.Fatalf("not a sentinel: %v", err)
		}
		return
	}
	if !json.Valid(data) {
		t.Fatalf("accepted %q, which encoding/json refuses", data)
	}
	if twice, err := Canonical(once); err != nil || !bytes.Equal(once, twice) {
		t.Fatalf("canonical form of %q is %q, %v", once, twice, err)
	}
	if !reflect.DeepEqual(plain(t, data), plain(t, once)) {
		t.Fatalf("%q and its canonical form %q mean different things", data, once)
	}
	compact, err := Compact(data)
	if err != nil || len(compact) != len(once) {
		t.Fatalf("compact form of %q has %d bytes, canonical %d, %v", data, len(compact), len(once), err)
	}
}

// plain decodes with the standard library, numbers as text.
func plain(t *testing.T, data []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("encoding/json refuses %q: %v", data, err)
	}
	return v
}
