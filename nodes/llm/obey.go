package llm

import (
	"bytes"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"

	"sallyport/nodes"
	"sallyport/tools/strictjson"
)

// instructions are the calls that the untrusted part of a tool message asks for, in
// the order of its text.
func instructions(m nodes.Message) []Call {
	o, err := nodes.ParseObservation(m.Content)
	if m.Role != nodes.RoleTool || err != nil {
		return nil
	}
	var calls []Call
	for _, text := range untrustedTexts(o) {
		calls = append(calls, instructionsIn(text)...)
	}
	return calls
}

// untrustedTexts are the texts that a tool message holds under "untrusted".
func untrustedTexts(o nodes.Observation) []string {
	if o.Untrusted == nil {
		return nil
	}
	texts := []string{o.Untrusted.Remark}
	dec := jsontext.NewDecoder(bytes.NewReader(o.Untrusted.Data))
	for {
		t, err := dec.ReadToken()
		if err != nil {
			return texts
		}
		if t.Kind() == '"' {
			texts = append(texts, t.String())
		}
	}
}

// maxObjects bounds how many objects of a text are looked at.
const maxObjects = 100

// instructionsIn finds the objects in a text that name a tool and its arguments. What
// an instruction holds is not looked at again.
func instructionsIn(text string) []Call {
	var calls []Call
	for range maxObjects {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			return calls
		}
		text = text[at:]
		end := objectEnd(text)
		call, ok := instruction(text[:end])
		if !ok {
			text = text[1:]
			continue
		}
		calls = append(calls, call)
		text = text[end:]
	}
	return calls
}

// objectEnd is the length of the object at the start of a text: up to the brace that
// closes it, those within double quotes not counted; 0 if none does.
func objectEnd(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// instruction reads {tool, args}, or {name, arguments} as providers write it, from
// JSON or a YAML flow mapping. Arguments may be an object, or the text of one.
func instruction(object string) (Call, bool) {
	var v struct {
		Tool      string `yaml:"tool"`
		Name      string `yaml:"name"`
		Args      Args   `yaml:"args"`
		Arguments Args   `yaml:"arguments"`
	}
	if members, err := strictjson.Members([]byte(object)); err == nil {
		for _, m := range members {
			switch m.Name {
			case "tool":
				err = strictjson.Decode(m.Value, &v.Tool)
			case "name":
				err = strictjson.Decode(m.Value, &v.Name)
			case "args":
				v.Args = m.Value
			case "arguments":
				v.Arguments = m.Value
			}
			if err != nil {
				return Call{}, false
			}
		}
	} else if yaml.Unmarshal([]byte(object), &v) != nil {
		return Call{}, false
	}
	call := Call{Tool: v.Tool, Args: v.Args}
	if call.Tool == "" {
		call.Tool = v.Name
	}
	if len(call.Args) == 0 {
		call.Args = v.Arguments
	}
	if call.Tool == "" || len(call.Args) == 0 {
		return Call{}, false
	}
	var text string
	if strictjson.Decode(call.Args, &text) == nil {
		call.Args, call.Arguments = nil, &text
	}
	return call, true
}
