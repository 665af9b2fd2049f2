package docserver

import (
	"errors"
	"fmt"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// configReader reads the settings off a syntax tree. The tree is walked by hand because decoding it would
// turn numbers into texts and texts into numbers.
type configReader struct {
	path   string
	config Config
	places map[string]string // field → file:line:col of its value
}

// parseConfig reads the text of a configuration file and returns where each setting stands.
func parseConfig(path string, text []byte) (Config, map[string]string, error) {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return Config{}, nil, syntaxError(path, err)
	}
	r := &configReader{path: path, places: map[string]string{}}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return Config{}, nil, &ConfigError{Place: path, Err: errors.New("must hold exactly one mapping of settings")}
	}
	for _, entry := range mapping(file.Docs[0].Body) {
		if err := r.read(entry); err != nil {
			return Config{}, nil, err
		}
	}
	if mapping(file.Docs[0].Body) == nil {
		return Config{}, nil, r.wrong(file.Docs[0].Body, "", "must be a mapping of settings")
	}
	return r.config, r.places, nil
}

// mapping returns the entries of a mapping, nil for another node. One entry alone has a node of its own.
func mapping(node ast.Node) []*ast.MappingValueNode {
	switch node := node.(type) {
	case *ast.MappingNode:
		return append([]*ast.MappingValueNode{}, node.Values...)
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{node}
	}
	return nil
}

func (r *configReader) read(entry *ast.MappingValueNode) error {
	name, ok := stringOf(entry.Key)
	if !ok {
		return r.wrong(entry.Key, "", "a setting's name must be a text")
	}
	if _, again := r.places[name]; again {
		return r.wrong(entry.Key, name, "is there twice")
	}
	r.places[name] = r.at(entry.Value.GetToken())
	switch name {
	case "root":
		return r.text(entry.Value, name, &r.config.Root)
	case "scope":
		return r.text(entry.Value, name, &r.config.Scope)
	case "audience":
		return r.text(entry.Value, name, &r.config.Audience)
	case "ledger":
		return r.text(entry.Value, name, &r.config.Ledger)
	case "keys":
		return r.keys(entry.Value)
	case "approvers":
		return r.approvers(entry.Value)
	case "mirror_text":
		node, ok := entry.Value.(*ast.BoolNode)
		if !ok {
			return r.wrong(entry.Value, name, "must be true or false")
		}
		r.config.MirrorText = node.Value
		return nil
	}
	return r.wrong(entry.Key, "", fmt.Sprintf("unknown setting %q", name))
}

func (r *configReader) text(node ast.Node, field string, into *string) error {
	text, ok := stringOf(node)
	if !ok {
		return r.wrong(node, field, "must be a text")
	}
	*into = text
	return nil
}

func (r *configReader) keys(node ast.Node) error {
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		return r.wrong(node, "keys", "must be a list of public key lines")
	}
	for i, value := range list.Values {
		field := fmt.Sprintf("keys[%d]", i)
		line, ok := stringOf(value)
		if !ok {
			return r.wrong(value, field, "must be a text")
		}
		r.places[field] = r.at(value.GetToken())
		r.config.Keys = append(r.config.Keys, line)
	}
	return nil
}

func (r *configReader) approvers(node ast.Node) error {
	number, ok := node.(*ast.IntegerNode)
	if !ok {
		return r.wrong(node, "approvers", "must be 1 or 2")
	}
	switch fmt.Sprint(number.Value) {
	case "1":
		r.config.Approvers = 1
	case "2":
		r.config.Approvers = 2
	default:
		return r.wrong(node, "approvers", "must be 1 or 2")
	}
	return nil
}

func stringOf(node ast.Node) (string, bool) {
	switch node := node.(type) {
	case *ast.StringNode:
		return node.Value, true
	case *ast.LiteralNode:
		return node.Value.Value, true
	}
	return "", false
}

func (r *configReader) wrong(node ast.Node, field, what string) error {
	return &ConfigError{Place: r.at(node.GetToken()), Field: field, Err: errors.New(what)}
}

func (r *configReader) at(t *token.Token) string {
	if t == nil || t.Position == nil {
		return r.path
	}
	return fmt.Sprintf("%s:%d:%d", r.path, t.Position.Line, t.Position.Column)
}

// syntaxError names the place of what the YAML parser refuses.
func syntaxError(path string, err error) error {
	var syntax yaml.Error
	if errors.As(err, &syntax) && syntax.GetToken() != nil {
		r := configReader{path: path}
		return &ConfigError{Place: r.at(syntax.GetToken()), Err: errors.New(syntax.GetMessage())}
	}
	return &ConfigError{Place: path, Err: errors.New("is not YAML or JSON")}
}
