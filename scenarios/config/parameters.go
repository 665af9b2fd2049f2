package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"sallyport/tools/strictjson"
)

// parameter is how a text refers to a parameter; with two dollars it is meant as it is.
var parameter = regexp.MustCompile(`\$?\$\{([^${}\n]*)\}`)

// With reads the file again with every `${name}` of its texts replaced: by the value
// itself, whatever it is, where a text is nothing else; else by the value's text.
// `$${name}` stands for `${name}`. Left alone are the top-level keys that skip lists. A
// name without a value is an error at its place.
func (f *File) With(values map[string]Node, skip ...string) (*File, error) {
	given := make(map[string]Node, len(values))
	for name, n := range values {
		given[name] = n
	}
	for _, key := range skip {
		given["\x00"+key] = Node{}
	}
	return parseFile(&File{name: f.name, lines: f.lines, data: f.data, values: given})
}

// substitution replaces references in the parser's tree of one file.
type substitution struct {
	file  *File
	found []Diagnostic
}

func (f *File) substitute(parsed *ast.File) error {
	s := &substitution{file: f}
	for _, doc := range parsed.Docs {
		switch root := doc.Body.(type) {
		case *ast.MappingNode:
			s.entries(root.Values, true)
		case *ast.MappingValueNode:
			s.entries([]*ast.MappingValueNode{root}, true)
		}
	}
	return diagnose(s.found)
}

func (s *substitution) entries(values []*ast.MappingValueNode, top bool) {
	for _, v := range values {
		if key, ok := v.Key.(*ast.StringNode); ok {
			if _, skip := s.file.values["\x00"+key.Value]; skip && top {
				continue
			}
			if text := s.text(key.Value, key); text != key.Value {
				changed := *key
				changed.Value = text
				v.Key = &changed
			}
		}
		v.Value = s.node(v.Value)
	}
}

func (s *substitution) node(n ast.Node) ast.Node {
	switch n := n.(type) {
	case *ast.StringNode:
		if name, whole := reference(n.Value); whole {
			if value, ok := s.value(name, n); ok && value.tree.node != nil {
				return value.tree.node
			}
			return n
		}
		changed := *n
		changed.Value = s.text(n.Value, n)
		return &changed
	case *ast.LiteralNode:
		inner := *n.Value
		inner.Value = s.text(n.Value.Value, n)
		changed := *n
		changed.Value = &inner
		return &changed
	case *ast.SequenceNode:
		for i, item := range n.Values {
			n.Values[i] = s.node(item)
		}
	case *ast.MappingNode:
		s.entries(n.Values, false)
	case *ast.MappingValueNode:
		s.entries([]*ast.MappingValueNode{n}, false)
	}
	return n
}

// reference is the name that a text consists of, if it is a reference and nothing else.
func reference(text string) (string, bool) {
	m := parameter.FindStringSubmatch(text)
	if m == nil || m[0] != text || strings.HasPrefix(text, "$$") {
		return "", false
	}
	return m[1], true
}

func (s *substitution) text(text string, at ast.Node) string {
	return parameter.ReplaceAllStringFunc(text, func(ref string) string {
		if strings.HasPrefix(ref, "$$") {
			return ref[1:]
		}
		name := ref[2 : len(ref)-1]
		value, ok := s.value(name, at)
		if !ok {
			return ref
		}
		switch value.tree.kind {
		case list, mapping, nothing:
			s.refuse(at, "give the parameter a text, or let it stand alone", "parameter %q is %s, and stands within a text", name, value.tree.kind)
			return ref
		}
		return value.tree.text
	})
}

func (s *substitution) value(name string, at ast.Node) (Node, bool) {
	value, ok := s.file.values[name]
	if ok && value.tree != nil {
		return value, true
	}
	names := []string{}
	for known := range s.file.values {
		if !strings.HasPrefix(known, "\x00") {
			names = append(names, known)
		}
	}
	slices.Sort(names)
	remedy := "parameters are " + strings.Join(names, ", ") + "; $${…} is ${…} as it stands"
	if near := nearest(name, names); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	}
	s.refuse(at, remedy, "there is no parameter %q", name)
	return Node{}, false
}

func (s *substitution) refuse(at ast.Node, remedy, format string, args ...any) {
	if len(s.found) < maxDiagnostics {
		s.found = append(s.found, s.file.at(position(at.GetToken()), fmt.Sprintf(format, args...), remedy))
	}
}

// Over returns the file completed by what another says besides: mappings are merged,
// key by key; of all else the file's own stands. What comes from the other keeps its
// place there.
func (f *File) Over(other *File) *File {
	merged := *f
	merged.root = merge(f.root, other.root, other)
	return &merged
}

func merge(own, other *tree, from *File) *tree {
	if own == nil || other == nil || own.kind != mapping || other.kind != mapping {
		return own
	}
	out := *own
	out.entries = slices.Clone(own.entries)
	for _, e := range other.entries {
		i := slices.IndexFunc(out.entries, func(o entry) bool { return o.key == e.key })
		if i >= 0 {
			out.entries[i].value = merge(out.entries[i].value, e.value, from)
			continue
		}
		value := *e.value
		if value.from == nil {
			value.from = from
		}
		out.entries = append(out.entries, entry{key: e.key, at: e.at, value: &value})
	}
	return &out
}

// Name is what messages call the file.
func (f *File) Name() string { return f.name }

// Get is the value of a key; a node that is nothing if there is none.
func (n Node) Get(key string) Node {
	if !n.IsMapping() {
		return Node{}
	}
	e, ok := n.tree.entry(key)
	if !ok {
		return Node{}
	}
	return n.below(key, e.value)
}

func (n Node) below(step string, t *tree) Node {
	file := n.file
	if t.from != nil {
		file = t.from
	}
	return Node{file: file, tree: t, path: append(slices.Clone(n.path), step)}
}

// Keys are the keys of a mapping, in the order of the file.
func (n Node) Keys() []string {
	if !n.IsMapping() {
		return nil
	}
	keys := make([]string, len(n.tree.entries))
	for i, e := range n.tree.entries {
		keys[i] = e.key
	}
	return keys
}

// Items are the values of a list.
func (n Node) Items() []Node {
	if !n.IsList() {
		return nil
	}
	items := make([]Node, len(n.tree.items))
	for i, t := range n.tree.items {
		items[i] = n.below(strconv.Itoa(i), t)
	}
	return items
}

// IsNothing reports whether there is no value.
func (n Node) IsNothing() bool { return n.tree == nil || n.tree.kind == nothing }

// Scalar is the text of a text, number or truth.
func (n Node) Scalar() (string, bool) {
	if n.tree == nil {
		return "", false
	}
	switch n.tree.kind {
	case text, whole, fraction, truth:
		return n.tree.text, true
	}
	return "", false
}

// JSON is the value as JSON: members in the order of the file, numbers with the text that
// they have there, where JSON can write it.
func (n Node) JSON() ([]byte, error) {
	if n.tree == nil {
		return []byte("null"), nil
	}
	return n.tree.appendJSON(nil)
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func (t *tree) appendJSON(out []byte) ([]byte, error) {
	switch t.kind {
	case list:
		out = append(out, '[')
		for i, item := range t.items {
			if i > 0 {
				out = append(out, ',')
			}
			var err error
			if out, err = item.appendJSON(out); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	case mapping:
		out = append(out, '{')
		for i, e := range t.entries {
			if i > 0 {
				out = append(out, ',')
			}
			key, err := strictjson.Encode(e.key)
			if err != nil {
				return nil, err
			}
			if out, err = e.value.appendJSON(append(append(out, key...), ':')); err != nil {
				return nil, err
			}
		}
		return append(out, '}'), nil
	}
	if (t.kind == whole || t.kind == fraction || t.kind == text && !t.quoted) && jsonNumber.MatchString(t.text) {
		return append(out, t.text...), nil // the YAML parser takes large numbers and exponents for text
	}
	plain, err := strictjson.Encode(t.plain())
	return append(out, plain...), err
}

// AST is the value as the YAML parser gave it, for types that read themselves from there.
func (n Node) AST() ast.Node {
	if n.tree == nil {
		return nil
	}
	return n.tree.node
}

// Excerpt is a line of the file that the value stands in, counted from 1.
func (n Node) Excerpt(line int) string {
	if n.file == nil {
		return ""
	}
	return n.file.at(Position{line, 1}, "", "").Excerpt
}

// Problem is a finding at the value's place.
func (n Node) Problem(remedy, format string, args ...any) error {
	if n.file == nil {
		return fmt.Errorf(format, args...)
	}
	message := fmt.Sprintf(format, args...)
	if n.name() != "" {
		message = n.name() + ": " + message
	}
	return &Error{[]Diagnostic{n.file.at(n.Position(), message, remedy)}}
}

// At is a finding at a token of the parser.
func (f *File) At(t *token.Token, message, remedy string) Diagnostic {
	return f.at(position(t), message, remedy)
}

// Nearest is the known word that a word is probably a slip of; empty if none is.
func Nearest(word string, known []string) string { return nearest(word, known) }
