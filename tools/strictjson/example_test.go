package strictjson_test

import (
	"errors"
	"fmt"

	"sallyport/tools/strictjson"
)

// What a server sent is checked before anything decodes it.
func ExampleCheck() {
	for _, frame := range []string{
		`{"id":1,"result":{}}`,
		`{"id":1,"id":2}`,
		`{"id":1} junk`,
		`[1e999999]`,
	} {
		fmt.Println(strictjson.Check([]byte(frame), strictjson.FrameLimits))
	}
	// Output:
	// <nil>
	// strictjson: duplicate member name
	// strictjson: data after the JSON value
	// strictjson: number too long or exponent too large
}

// Two spellings of the same arguments have one digest.
func ExampleCanonical() {
	for _, arguments := range []string{
		`{"filename":"a.md","content":"\u0041"}`,
		`{ "content": "A", "filename": "a.md" }`,
	} {
		form, err := strictjson.Canonical([]byte(arguments))
		fmt.Println(string(form), strictjson.Digest(form)[:8], err)
	}
	// Output:
	// {"content":"A","filename":"a.md"} 007235f9 <nil>
	// {"content":"A","filename":"a.md"} 007235f9 <nil>
}

// A model's arguments are taken as they are meant or not at all.
func ExampleDecode() {
	var search struct {
		Query      string `json:"query"`
		MaxResults int    `json:"max_results"`
	}
	err := strictjson.Decode([]byte(`{"query":"evidence","max_results":2.0}`), &search)
	fmt.Println(errors.Is(err, strictjson.ErrType), err)
	err = strictjson.Decode([]byte(`{"query":"evidence","approved":true}`), &search)
	fmt.Println(errors.Is(err, strictjson.ErrUnknown), err)
	// Output:
	// true strictjson: value of the wrong type: for a Go int
	// true strictjson: unknown member name
}

// The grant is taken out of the arguments; what is left is hashed.
func ExampleObject() {
	members, err := strictjson.Members([]byte(`{"grant":"…","filename":"a.md","content":"A"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	left, err := strictjson.Object(members[1:])
	fmt.Println(string(left), err)
	// Output: {"content":"A","filename":"a.md"} <nil>
}
