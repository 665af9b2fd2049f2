package tools

import (
	"maps"
	"slices"

	"sallyport/tools/strictjson"
)

// Tool is a contracted tool whose definition has passed every check. It is safe for
// concurrent use.
type Tool struct {
	Contract   Contract
	Definition Definition
	// Exposed is the schema that the model sees and its arguments are read with:
	// closed, without the grant field (SPEC B5).
	Exposed *Schema
	// Input is the server's own schema, without the grant field (SPEC B10, row 7).
	Input *Schema
	// Output is the schema of results; nil if the contract says `output: none`.
	Output *Schema
	// Model is the tool as the model is told of it; host-only tools have one too, which
	// nobody is shown.
	Model ModelTool
}

// NewTool checks a definition against its contract. The error is, or wraps, the [Reason]
// for which the tool is quarantined: calling it is `rejected`, the server's others work (SPEC
// B3).
func NewTool(c Contract, d Definition) (*Tool, error) {
	if c.Pin != "" && c.Pin != d.Digest {
		return nil, DefinitionPin
	}
	t := &Tool{Contract: c, Definition: d}
	if err := t.readInput(); err != nil {
		return nil, err
	}
	if err := t.readOutput(); err != nil {
		return nil, err
	}
	if err := t.checkNames(); err != nil {
		return nil, err
	}
	t.Model.Name, t.Model.Description = c.Name, d.Description
	if c.Description != "" {
		t.Model.Description = c.Description
	}
	return t, nil
}

func (t *Tool) readInput() error {
	v, _, err := parse(t.Definition.Input)
	if err != nil {
		return SchemaInvalid
	}
	if kind, ok := v.member("type"); !ok || kind.kind != kindString || kind.text != "object" {
		return InputNotObject
	}
	// The whole is checked first, the grant field included.
	whole, _, err := readSchema(t.Definition.Input, t.Contract.Schema)
	if err != nil {
		return err
	}
	grant := t.Contract.GrantField
	if grant != "" {
		if err := whole.checkGrant(grant); err != nil {
			return err
		}
		if v, err = withoutField(v, grant); err != nil {
			return err
		}
	}
	if t.Input, err = newSchema(v.append(nil), t.Contract.Schema); err != nil {
		return err
	}
	exposed := closed(v).append(nil)
	root, cost, err := readSchema(exposed, t.Contract.Schema)
	if err != nil {
		return err
	}
	// Closing the root is our own check; for the rest both have one second validator.
	t.Exposed = &Schema{root: root, cost: cost, grant: grant, second: t.Input.second}
	t.Model.Parameters = exposed
	return t.Exposed.root.checkDefaults()
}

// checkGrant reports whether the grant field is a property that takes a text.
func (n *node) checkGrant(grant string) error {
	p, ok := n.property(grant)
	if !ok || p.never || len(p.types) > 0 && !slices.Contains(p.types, "string") {
		return GrantFieldMissing
	}
	return nil
}

// withoutField returns the schema of an object without one of its fields, in
// properties and in required, also of the alternatives that speak of the same object.
func withoutField(v *value, name string) (*value, error) {
	out := &value{kind: kindObject}
	for _, m := range v.members {
		switch m.name {
		case "enum", "const", "default":
			return nil, GrantFieldElsewhere
		case "properties":
			m.value = &value{kind: kindObject, members: slices.DeleteFunc(slices.Clone(m.value.members),
				func(f field) bool { return f.name == name })}
		case "required":
			m.value = &value{kind: kindArray, items: slices.DeleteFunc(slices.Clone(m.value.items),
				func(item *value) bool { return item.text == name })}
		case "anyOf":
			branches := &value{kind: kindArray}
			for _, b := range m.value.items {
				if b.kind == kindObject {
					var err error
					if b, err = withoutField(b, name); err != nil {
						return nil, err
					}
				}
				branches.items = append(branches.items, b)
			}
			m.value = branches
		}
		out.members = append(out.members, m)
	}
	return out, nil
}

var (
	jsonFalse = &value{kind: kindFalse, raw: []byte("false")}
	jsonTrue  = &value{kind: kindTrue, raw: []byte("true")}
)

// closed returns the root of an input schema as the model sees it: without $schema,
// with properties, and with additionalProperties false. Properties that only an
// alternative names are listed, so that closing the root does not rule them out.
func closed(v *value) *value {
	out := &value{kind: kindObject}
	properties := &value{kind: kindObject}
	open := true
	for _, m := range v.members {
		switch {
		case m.name == "$schema", m.name == "required" && len(m.value.items) == 0:
			continue
		case m.name == "additionalProperties":
			open = m.value.kind != kindFalse
			continue
		case m.name == "properties":
			properties.members = slices.Clone(m.value.members)
			m.value = properties
		}
		out.members = append(out.members, m)
	}
	if _, ok := out.member("properties"); !ok {
		out.members = append(out.members, field{"properties", properties})
	}
	if open {
		properties.branches(v)
	}
	out.members = append(out.members, field{"additionalProperties", jsonFalse})
	return out
}

// branches adds the properties that the alternatives of a schema name.
func (v *value) branches(schema *value) {
	anyOf, ok := schema.member("anyOf")
	if !ok {
		return
	}
	for _, b := range anyOf.items {
		if named, ok := b.member("properties"); ok {
			for _, f := range named.members {
				if _, known := v.member(f.name); !known {
					v.members = append(v.members, field{f.name, jsonTrue})
				}
			}
		}
		v.branches(b)
	}
}

func (t *Tool) readOutput() error {
	if t.Contract.Output == OutputNone {
		return nil
	}
	if t.Definition.Output == nil {
		return OutputMissing
	}
	s, err := NewSchema(t.Definition.Output, t.Contract.Schema)
	if err != nil {
		return err
	}
	if !s.root.constrains() {
		return OutputMissing
	}
	t.Output = s
	return nil
}

// checkNames reports whether every argument that the contract names is one that the
// tool has: a misspelt `redact` would keep nothing out of the log.
func (t *Tool) checkNames() error {
	c := t.Contract
	names := slices.Concat(c.Redact, c.Recipients)
	if s := c.Settle; s != nil {
		for _, arg := range s.Args {
			if arg != GrantArg {
				names = append(names, arg)
			}
		}
		for _, m := range s.AppliedWhen {
			names = append(names, m.SHA256Of+m.Equals)
		}
	}
	for _, name := range names {
		if _, ok := t.Exposed.root.property(name); !ok && name != c.GrantField {
			return ContractArgument
		}
	}
	return nil
}

// CheckSettle reports whether the read-back of a write can be called as the write's
// contract says: it has each argument, and is given each that it requires. The error
// is [ContractArgument].
func CheckSettle(write, readBack *Tool) error {
	args := write.Contract.Settle.Args
	for name := range maps.Keys(args) {
		if _, ok := readBack.Exposed.root.property(name); !ok {
			return ContractArgument
		}
	}
	for _, name := range readBack.Exposed.root.required {
		if _, ok := args[name]; !ok {
			return ContractArgument
		}
	}
	return nil
}

// DecodeArguments is [DecodeArguments] with the tool's exposed schema (SPEC B10, rows 1
// and 3).
func (t *Tool) DecodeArguments(text string) ([]byte, error) { return DecodeArguments(text, t.Exposed) }

// CheckArguments holds canonical arguments, without the grant field, against the
// server's schema (SPEC B10, row 7). The error is an [*Invalid].
func (t *Tool) CheckArguments(arguments []byte) error { return t.Input.Validate(arguments) }

// WithGrant returns the canonical arguments with the grant in its field: what is sent.
// A tool without a grant field is sent the arguments as they are.
func (t *Tool) WithGrant(arguments []byte, grant string) ([]byte, error) {
	if t.Contract.GrantField == "" || grant == "" {
		return arguments, nil
	}
	members, err := strictjson.Members(arguments)
	if err != nil {
		return nil, err
	}
	text, err := strictjson.Encode(grant)
	if err != nil {
		return nil, err
	}
	return strictjson.Object(append(members, strictjson.Member{Name: t.Contract.GrantField, Value: text}))
}
