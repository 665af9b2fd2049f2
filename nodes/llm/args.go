package llm

import (
	"regexp"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"sallyport/tools/strictjson"
)

// Args is the JSON text of arguments that are written as YAML: members in the order
// of the file, numbers with the text that they have there. A long text may be written as
// {$text: {text: x, times: 8000}}.
type Args []byte

// UnmarshalYAML implements yaml.NodeUnmarshaler. It refuses what JSON cannot say:
// anchors, tags, other forms of numbers, keys that are no text.
func (a *Args) UnmarshalYAML(node ast.Node) error {
	text, err := appendJSON(nil, node)
	if err != nil {
		return err
	}
	if strictjson.Check(text, strictjson.FrameLimits) != nil {
		return wrongAt(node, "args must be what JSON can say; use arguments for the raw text")
	}
	*a = text
	return nil
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func appendJSON(out []byte, node ast.Node) ([]byte, error) {
	switch n := node.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		values := mappingValues(n)
		if text, is, err := repeated(values); is || err != nil {
			if err != nil {
				return nil, err
			}
			return appendText(out, node, text)
		}
		return appendObject(out, values)
	case *ast.SequenceNode:
		return appendArray(out, n.Values)
	case *ast.StringNode:
		// The YAML parser takes large numbers and exponents for text.
		if n.Token.Type == token.StringType && jsonNumber.MatchString(n.Value) {
			return append(out, n.Value...), nil
		}
		return appendText(out, n, n.Value)
	case *ast.LiteralNode:
		return appendText(out, n, n.Value.Value)
	case *ast.IntegerNode, *ast.FloatNode:
		text := node.GetToken().Value
		if !jsonNumber.MatchString(text) {
			return nil, wrongAt(node, "write the number as JSON does, or quote it")
		}
		return append(out, text...), nil
	case *ast.BoolNode:
		if n.Value {
			return append(out, "true"...), nil
		}
		return append(out, "false"...), nil
	case *ast.NullNode:
		return append(out, "null"...), nil
	}
	return nil, wrongAt(node, "args must be what JSON can say, without anchors and tags")
}

func appendObject(out []byte, values []*ast.MappingValueNode) ([]byte, error) {
	out = append(out, '{')
	for i, m := range values {
		key, ok := m.Key.(*ast.StringNode)
		if !ok {
			return nil, wrongAt(m.Key, "a key of args must be text: quote it")
		}
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendText(out, key, key.Value); err != nil {
			return nil, err
		}
		if out, err = appendJSON(append(out, ':'), m.Value); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func appendArray(out []byte, values []ast.Node) ([]byte, error) {
	out = append(out, '[')
	for i, v := range values {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendJSON(out, v); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

func appendText(out []byte, node ast.Node, text string) ([]byte, error) {
	quoted, err := strictjson.Encode(text)
	if err != nil {
		return nil, wrongAt(node, "text must be UTF-8")
	}
	return append(out, quoted...), nil
}
