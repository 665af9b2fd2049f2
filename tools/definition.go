package tools

import (
	"github.com/go-json-experiment/json/jsontext"

	"sallyport/tools/strictjson"
)

// MaxDefinition is how many bytes the definition of a contracted tool may have, as
// compact JSON with minimal escapes (SPEC B3).
const MaxDefinition = 12_000

// Definition is a tool as its server describes it, read from the bytes that came.
type Definition struct {
	Name        string
	Title       string
	Description string
	Hints       Hints
	Input       []byte // the input schema, compact
	Output      []byte // the output schema, compact; nil if absent
	// Canonical is the whole definition, unknown members and _meta included, in
	// canonical form; Digest is its SHA-256 in lower-case hex (SPEC B7).
	Canonical []byte
	Digest    string
	Size      int // bytes of the compact definition
}

// Hints are what a server says of its tool's effects. They are shown, and grant
// nothing (SPEC B2). Nil is not said.
type Hints struct {
	ReadOnly    *bool
	Destructive *bool
	Idempotent  *bool
	OpenWorld   *bool
}

// NameOf returns only the name of a raw definition: enough to count and to
// find duplicates among tools that have no contract.
func NameOf(raw []byte) (string, error) {
	members, err := strictjson.Members(raw)
	if err != nil {
		return "", DefinitionMalformed
	}
	for _, m := range members {
		if m.Name == "name" {
			return stringOf(m.Value)
		}
	}
	return "", DefinitionMalformed
}

// ParseDefinition reads the definition of a contracted tool from the bytes that the
// server sent. The error is a [Reason]; the Definition then holds what was read before
// it. The schemas are only cut out: [NewTool] checks them.
func ParseDefinition(raw []byte) (Definition, error) {
	var d Definition
	compact, err := strictjson.Compact(raw)
	if err != nil {
		return d, DefinitionMalformed
	}
	members, err := strictjson.Members(compact)
	if err != nil {
		return d, DefinitionMalformed
	}
	if d.Canonical, err = strictjson.Canonical(compact); err != nil {
		return d, DefinitionMalformed
	}
	d.Digest, d.Size = strictjson.Digest(d.Canonical), len(compact)
	for _, m := range members {
		if err := d.member(m); err != nil {
			return d, err
		}
	}
	switch {
	case !isRemote(d.Name):
		return d, DefinitionName
	case d.Size > MaxDefinition:
		return d, DefinitionTooLarge
	case d.Input == nil:
		return d, InputNotObject
	}
	return d, nil
}

func (d *Definition) member(m strictjson.Member) (err error) {
	switch m.Name {
	case "name":
		d.Name, err = stringOf(m.Value)
	case "title":
		d.Title, err = stringOf(m.Value)
	case "description":
		d.Description, err = stringOf(m.Value)
	case "inputSchema":
		d.Input = m.Value
	case "outputSchema":
		d.Output = m.Value
	case "annotations":
		err = d.Hints.read(m.Value)
	}
	return err
}

func stringOf(raw []byte) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", DefinitionMalformed
	}
	text, err := jsontext.AppendUnquote(nil, raw)
	if err != nil {
		return "", DefinitionMalformed
	}
	return string(text), nil
}

func (h *Hints) read(raw []byte) error {
	members, err := strictjson.Members(raw)
	if err != nil {
		return DefinitionMalformed
	}
	for _, m := range members {
		to := map[string]**bool{
			"readOnlyHint": &h.ReadOnly, "destructiveHint": &h.Destructive,
			"idempotentHint": &h.Idempotent, "openWorldHint": &h.OpenWorld,
		}[m.Name]
		if to == nil {
			continue
		}
		said := string(m.Value) == "true"
		if !said && string(m.Value) != "false" {
			return DefinitionMalformed
		}
		*to = &said
	}
	return nil
}
