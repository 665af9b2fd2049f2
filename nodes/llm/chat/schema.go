package chat

import (
	"slices"

	"sallyport/nodes"
	"sallyport/tools/strictjson"
)

// tools are the tools as this provider takes them: without the keywords that it
// refuses. The schemas that arguments are checked with are not touched.
func (p Profile) tools(ts []nodes.Tool) lazy {
	return func() (any, error) {
		out := make([]nodes.Tool, len(ts))
		for i, t := range ts {
			schema, err := p.schema(t.Parameters)
			if err != nil {
				return nil, err
			}
			t.Parameters = schema
			out[i] = t
		}
		return out, nil
	}
}

// schema is the copy of a schema that is sent. What stands under enum, const and default
// is data; properties may have any name.
func (p Profile) schema(data []byte) ([]byte, error) {
	if string(data) == "true" {
		return []byte("{}"), nil // the same to JSON Schema, and all providers take it
	}
	members, err := strictjson.Members(data)
	if err != nil {
		return data, nil // false, or what the Host did not let through in the first place
	}
	members = slices.DeleteFunc(members, func(m strictjson.Member) bool { return slices.Contains(p.Drop, m.Name) })
	for i, m := range members {
		switch m.Name {
		case "items":
			members[i].Value, err = p.schema(m.Value)
		case "properties":
			members[i].Value, err = p.properties(m.Value)
		case "anyOf":
			members[i].Value, err = p.branches(m.Value)
		case "additionalProperties":
			if m.Value[0] == '{' {
				members[i].Value, err = p.schema(m.Value)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return strictjson.Object(members)
}

func (p Profile) properties(data []byte) ([]byte, error) {
	members, err := strictjson.Members(data)
	if err != nil {
		return nil, err
	}
	for i, m := range members {
		if members[i].Value, err = p.schema(m.Value); err != nil {
			return nil, err
		}
	}
	return strictjson.Object(members)
}

func (p Profile) branches(data []byte) ([]byte, error) {
	branches, err := elements(data)
	if err != nil {
		return nil, err
	}
	out := make([]raw, len(branches))
	for i, b := range branches {
		if out[i], err = p.schema(b); err != nil {
			return nil, err
		}
	}
	return strictjson.Encode(out)
}
