package strictjson

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
)

// search stands for the arguments of a tool.
type search struct {
	Query      string         `json:"query"`
	MaxResults int            `json:"max_results"`
	Whole      bool           `json:"whole,omitzero"`
	Tags       []string       `json:"tags,omitzero"`
	Labels     map[string]int `json:"labels,omitzero"`
	Before     *int64         `json:"before,omitzero"`
	Raw        jsontext.Value `json:"raw,omitzero"`
	Any        any            `json:"any,omitzero"`
	Inner      struct {
		Deep []struct {
			Name string `json:"name"`
		} `json:"deep"`
	} `json:"inner,omitzero"`
}

func TestDecode_RefusesEveryLiberty(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want error
	}{
		"unknown member":          {`{"limit":1}`, ErrUnknown},
		"approved":                {`{"query":"x","approved":true}`, ErrUnknown},
		"unknown member below":    {`{"inner":{"deep":[{"nome":"x"}]}}`, ErrUnknown},
		"other case":              {`{"Query":"x"}`, ErrUnknown},
		"Kelvin sign for k":       {"{\"\u212auery\":\"x\"}", ErrUnknown},
		"duplicate":               {`{"query":"x","query":"x"}`, ErrDuplicate},
		"duplicate by escape":     {`{"query":"x","\u0071uery":"x"}`, ErrDuplicate},
		"duplicate in free data":  {`{"any":{"a":1,"a":1}}`, ErrDuplicate},
		"trailing data":           {`{}{}`, ErrTrailing},
		"lone surrogate":          {`{"query":"\ud800"}`, ErrUTF8},
		"null":                    {`null`, ErrNull},
		"null with space":         {" null ", ErrNull},
		"null for a string":       {`{"query":null}`, ErrNull},
		"null for a number":       {`{"max_results":null}`, ErrNull},
		"null for a bool":         {`{"whole":null}`, ErrNull},
		"null for a slice":        {`{"tags":null}`, ErrNull},
		"null for an element":     {`{"tags":["a",null]}`, ErrNull},
		"null for a map":          {`{"labels":null}`, ErrNull},
		"null for a map's value":  {`{"labels":{"a":null}}`, ErrNull},
		"null for a struct":       {`{"inner":null}`, ErrNull},
		"null for a struct below": {`{"inner":{"deep":[null]}}`, ErrNull},
		"true for a number":       {`{"max_results":true}`, ErrType},
		"text for a number":       {`{"max_results":"2"}`, ErrType},
		"fraction for an integer": {`{"max_results":2.0}`, ErrType},
		"exponent for an integer": {`{"max_results":2e0}`, ErrType},
		"past int64":              {`{"max_results":9223372036854775808}`, ErrType},
		"number for text":         {`{"query":2}`, ErrType},
		"number for a bool":       {`{"whole":1}`, ErrType},
		"array for an object":     {`[]`, ErrType},
		"object for an array":     {`{"tags":{}}`, ErrType},
		"too deep":                {`{"raw":` + nested(64) + `}`, ErrDepth},
		"too large an exponent":   {`{"any":1e999999}`, ErrNumber},
	} {
		t.Run(name, func(t *testing.T) {
			v := search{Query: "before", Tags: []string{"kept"}}
			if err := Decode([]byte(c.in), &v); !errors.Is(err, c.want) {
				t.Errorf("Decode(%q) = %v, want %v", c.in, err, c.want)
			}
			if v.Query != "before" || len(v.Tags) != 1 || v.Raw != nil || v.Any != nil {
				t.Errorf("a refused text left %+v", v)
			}
		})
	}
}

func TestDecode_KeepsWhatIsThere(t *testing.T) {
	v := search{Whole: true, Labels: map[string]int{"old": 1}}
	in := `{"max_results":9223372036854775807,"labels":{"new":2},"before":null,"raw":null,"any":{"x":null},"query":"\ud83d\ude00"}`
	if err := Decode([]byte(in), &v); err != nil {
		t.Fatal(err)
	}
	want := search{
		Query: "😀", MaxResults: math.MaxInt64, Labels: map[string]int{"new": 2},
		Raw: jsontext.Value("null"), Any: map[string]any{"x": nil},
	}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("got %+v, want %+v", v, want)
	}
}

func TestDecode_PointersAndRawValuesMayBeNull(t *testing.T) {
	var v struct {
		P *search         `json:"p"`
		R json.RawMessage `json:"r"`
		S []*int          `json:"s"`
		M map[string]any  `json:"m"`
	}
	if err := Decode([]byte(`{"p":null,"r":null,"s":[null,1],"m":{"a":null}}`), &v); err != nil {
		t.Fatal(err)
	}
	if v.P != nil || string(v.R) != "null" || v.S[0] != nil || *v.S[1] != 1 || v.M["a"] != nil {
		t.Errorf("got %+v", v)
	}
	var p *search
	if err := Decode([]byte(`null`), &p); !errors.Is(err, ErrNull) {
		t.Errorf("null at the top for a pointer: %v", err)
	}
}

func TestDecode_NeedsAPointer(t *testing.T) {
	for _, v := range []any{nil, search{}, (*search)(nil), map[string]any{}} {
		if err := Decode([]byte(`{}`), v); !errors.Is(err, ErrTarget) {
			t.Errorf("Decode into %T = %v", v, err)
		}
	}
}

func TestEncode_IsCanonical(t *testing.T) {
	v := struct {
		Z string         `json:"z"`
		A []string       `json:"a"`
		M map[string]any `json:"m"`
		N map[string]int `json:"n"`
		I int64          `json:"i"`
	}{Z: "</script>\u2028", M: map[string]any{"b": nil, "a": true}, I: math.MaxInt64}
	got, err := Encode(v)
	want := "{\"a\":[],\"i\":9223372036854775807,\"m\":{\"a\":true,\"b\":null},\"n\":{},\"z\":\"</script>\u2028\"}"
	if err != nil || string(got) != want {
		t.Errorf("Encode = %q, %v, want %q", got, err, want)
	}
}

func TestEncode_RefusesWhatCannotBeJSON(t *testing.T) {
	for name, v := range map[string]any{
		"channel": make(chan int), "not a number": math.NaN(), "infinite": math.Inf(1), "invalid UTF-8": "\xff",
		"invalid raw value": jsontext.Value(`{"a":1,"a":2}`), "cut raw value": json.RawMessage(`{`),
	} {
		if got, err := Encode(v); !errors.Is(err, ErrTarget) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := Encode(5e-324); err != ErrNumber { // an exponent past the frame's limit
		t.Errorf("Encode(5e-324) = %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range fieldCases() {
		f.Add([]byte(seed))
	}
	f.Add([]byte(`{"query":"x","max_results":3,"any":[null,{"a":"\u2028"}],"inner":{"deep":[{"name":""}]},"tags":[]}`))
	f.Add([]byte(`{"Query":"x","max_results":2.0,"raw":{"b":1,"a":[]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v search
		if err := Decode(data, &v); err != nil {
			if !reflect.DeepEqual(v, search{}) {
				t.Fatalf("refused %q and left %+v", data, v)
			}
			return
		}
		decodedComesBack(t, data, v)
	})
}

// decodedComesBack: what Decode accepts, the ordinary decoder accepts, names in
// full, and Encode carries without loss.
func decodedComesBack(t *testing.T, data []byte, v search) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	var plainly search
	if err := dec.Decode(&plainly); err != nil {
		t.Fatalf("accepted %q, which encoding/json refuses: %v", data, err)
	}
	encoded, err := Encode(v)
	if err != nil {
		t.Fatalf("decoded %q, cannot encode %+v: %v", data, v, err)
	}
	var again search
	if err := Decode(encoded, &again); err != nil {
		t.Fatalf("encoded %q, cannot decode it: %v", encoded, err)
	}
	once, err := Encode(again)
	if err != nil || string(once) != string(encoded) {
		t.Fatalf("%q came back as %q, %v", encoded, once, err)
	}
}
