package strictjson

import (
	"errors"
	"testing"
)

func TestMembers_AreInTheOrderOfTheText(t *testing.T) {
	got, err := Members([]byte(`{ "b\u0021": {"y": 1, "x": 2}, "a": 1.0 }`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Member{{"b!", []byte(`{"y":1,"x":2}`)}, {"a", []byte(`1.0`)}}
	if len(got) != len(want) {
		t.Fatalf("%d members", len(got))
	}
	for i, m := range got {
		if m.Name != want[i].Name || string(m.Value) != string(want[i].Value) {
			t.Errorf("member %d is %q: %q", i, m.Name, m.Value)
		}
	}
	_ = append(got[0].Value, "overwritten"...)
	if string(got[1].Value) != `1.0` {
		t.Error("appending to one value changed the next")
	}
}

func TestMembers_RefusesWhatIsNoObject(t *testing.T) {
	for in, want := range map[string]error{
		`null`: ErrNotObject, `5`: ErrNotObject, `"text"`: ErrNotObject, `[1]`: ErrNotObject,
		`NaN`: ErrSyntax, ``: ErrSyntax, `{"a":1}{}`: ErrTrailing, `{"a":1,"a":2}`: ErrDuplicate,
	} {
		if _, err := Members([]byte(in)); err != want {
			t.Errorf("Members(%q) = %v, want %v", in, err, want)
		}
	}
	if got, err := Members([]byte(` { } `)); err != nil || got == nil || len(got) != 0 {
		t.Errorf("Members of the empty object = %v, %v", got, err)
	}
}

func TestObject_IsCanonicalWhateverTheOrder(t *testing.T) {
	members := []Member{{"b", []byte(` [ 1 ] `)}, {"a\n", []byte(`{"y":1,"x":"\u0041"}`)}}
	got, err := Object(members)
	if want := `{"a\n":{"x":"A","y":1},"b":[1]}`; err != nil || string(got) != want {
		t.Errorf("Object = %q, %v, want %q", got, err, want)
	}
	if members[0].Name != "b" {
		t.Error("the caller's members were sorted")
	}
	if got, err := Object(nil); err != nil || string(got) != `{}` {
		t.Errorf("Object(nil) = %q, %v", got, err)
	}
}

func TestObject_RefusesWhatIsNotOneValue(t *testing.T) {
	for name, c := range map[string]struct {
		members []Member
		want    error
	}{
		"smuggled member": {[]Member{{"a", []byte(`1,"b":2`)}}, ErrTrailing},
		"no value":        {[]Member{{"a", nil}}, ErrSyntax},
		"same name":       {[]Member{{"a", []byte(`1`)}, {"b", []byte(`1`)}, {"a", []byte(`2`)}}, ErrDuplicate},
		"invalid name":    {[]Member{{"\xff", []byte(`1`)}}, ErrUTF8},
		"too deep":        {[]Member{{"a", []byte(nested(64))}}, ErrDepth},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Object(c.members); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
		})
	}
	deepest, err := Object([]Member{{"a", []byte(nested(63))}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(deepest, FrameLimits); err != nil {
		t.Error(err)
	}
}
