package tools

import (
	"bytes"
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"sallyport/tools/strictjson"
)

// second is a validator by another hand. What this package's own checks accept, it
// must accept too; where the two disagree, the value is refused.
type second struct{ schema *jsonschema.Schema }

// nowhere loads nothing: a schema that refers outside itself does not compile.
type nowhere struct{}

var errNowhere = errors.New("schemas are not fetched")

// Load implements jsonschema.URLLoader.
func (nowhere) Load(string) (any, error) { return nil, errNowhere }

// compileSecond compiles a schema that has passed our own reading of it, without its
// $schema. A panic of the library refuses the schema.
func compileSecond(compact []byte) (s second, err error) {
	defer func() {
		if recover() != nil {
			s, err = second{}, SchemaInvalid
		}
	}()
	members, err := strictjson.Members(compact)
	if err != nil {
		return second{}, SchemaInvalid
	}
	kept := members[:0]
	for _, m := range members {
		if m.Name != "$schema" {
			kept = append(kept, m)
		}
	}
	object, err := strictjson.Object(kept)
	if err != nil {
		return second{}, SchemaInvalid
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(object))
	if err != nil {
		return second{}, SchemaInvalid
	}
	const place = "sallyport:schema"
	c := jsonschema.NewCompiler()
	c.UseLoader(nowhere{})
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource(place, doc); err != nil {
		return second{}, SchemaInvalid
	}
	compiled, err := c.Compile(place)
	if err != nil {
		return second{}, SchemaInvalid
	}
	return second{compiled}, nil
}

// validate never asks the library for its error's text, which can be of any size and
// quotes the value.
func (s second) validate(compact []byte) (err error) {
	defer func() {
		if recover() != nil {
			err = &Invalid{Reason: ValuePanic}
		}
	}()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(compact))
	if err != nil {
		return &Invalid{Reason: ValueMalformed}
	}
	if err := s.schema.Validate(doc); err != nil {
		return &Invalid{Reason: ValueInvalid}
	}
	return nil
}
