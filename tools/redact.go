package tools

import (
	"encoding/json"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"sallyport/tools/strictjson"
)

// digested is what stands in a log for a value that is kept out of it.
type digested struct {
	SHA256 string `json:"sha256"`
	Bytes  int    `json:"bytes"`
}

// Sanitize returns arguments as logs and exports may hold them (SPEC C1, G3):
// canonical JSON in which every argument that the contract redacts is replaced by the
// SHA-256 and size of its value, as a candidate has them, and the grant field is left
// out. Characters that hide or reorder text are written as [Visible] writes them. Text
// that is no JSON object is replaced as a whole.
func Sanitize(arguments []byte, c Contract) json.RawMessage {
	compact, err := strictjson.Canonical(arguments)
	if err != nil || compact[0] != '{' {
		return digestOf(arguments)
	}
	v, _, err := parse(compact)
	if err != nil {
		return digestOf(arguments)
	}
	kept := v.members[:0]
	for _, f := range v.members {
		switch {
		case c.GrantField != "" && f.name == c.GrantField:
			continue
		case slices.Contains(c.Redact, f.name):
			f.value = &value{kind: kindNumber, raw: digestOf(f.value.content())}
		default:
			f.value = f.value.visible()
		}
		f.name, _ = Visible(f.name)
		kept = append(kept, f)
	}
	v.members = kept
	out, err := strictjson.Canonical(v.append(nil))
	if err != nil {
		return digestOf(arguments)
	}
	return out
}

// content is what the digest of an argument is taken of: the text of a string, the
// canonical JSON of anything else.
func (v *value) content() []byte {
	if v.kind == kindString {
		return []byte(v.text)
	}
	return v.append(nil)
}

// visible returns the value with all its text as Visible writes it.
func (v *value) visible() *value {
	out := &value{kind: v.kind, raw: v.raw}
	switch v.kind {
	case kindString:
		out.text, _ = Visible(v.text)
		out.raw, _ = jsontext.AppendQuote(nil, out.text) // Visible returns UTF-8
	case kindArray:
		for _, item := range v.items {
			out.items = append(out.items, item.visible())
		}
	case kindObject:
		for _, f := range v.members {
			name, _ := Visible(f.name)
			out.members = append(out.members, field{name, f.value.visible()})
		}
	}
	return out
}

func digestOf(data []byte) json.RawMessage {
	text, _ := strictjson.Encode(digested{strictjson.Digest(data), len(data)}) // two plain members: cannot fail
	return text
}
