package config

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"sallyport/tools"
)

// Limits of a file that people write.
const (
	// MaxFile is how many bytes it may have.
	MaxFile = 1 << 20
	// MaxNesting is how deep mappings and lists may nest.
	MaxNesting = 32
	// maxDiagnostics is how many mistakes are listed at once.
	maxDiagnostics = 50
)

// byteOrderMark is what some editors put before the first character.
const byteOrderMark = "\ufeff"

// File is a YAML file that has been read but not yet decoded. It knows where
// everything stands.
type File struct {
	name  string
	lines []string
	root  *tree
	data  []byte
	// values replace the references of texts to parameters; nil leaves texts as they are.
	values map[string]Node
}

// kind is what a YAML value is.
type kind int

const (
	nothing kind = iota
	text
	whole // a whole number
	fraction
	truth
	list
	mapping
)

// String names the kind for people.
func (k kind) String() string {
	return [...]string{"nothing", "a text", "a whole number", "a number", "true or false", "a list", "a mapping"}[k]
}

// tree is a YAML value with its place.
type tree struct {
	kind    kind
	at      Position
	text    string // of a scalar, quotes undone
	quoted  bool   // a text that was in quotes
	number  any    // int64 or uint64 of a whole number, float64 of a fraction
	truth   bool
	items   []*tree
	entries []entry
	node    ast.Node // as the parser gave it
	from    *File    // where it stands, if not in the file of what is around it
}

type entry struct {
	key   string
	at    Position
	value *tree
}

func (t *tree) entry(key string) (entry, bool) {
	for _, e := range t.entries {
		if e.key == key {
			return e, true
		}
	}
	return entry{}, false
}

// ParseFile reads a YAML file: one document, a mapping, without anchors, tags, merge
// keys or duplicate keys. name is how messages call it. The error is an [*Error].
func ParseFile(name string, data []byte) (*File, error) {
	return parseFile(&File{name: name, lines: strings.Split(string(data), "\n"), data: data})
}

func parseFile(f *File) (*File, error) {
	data := f.data
	switch {
	case len(data) > MaxFile:
		return nil, f.whole("the file has %d bytes, more than %d", len(data), MaxFile)
	case !utf8.Valid(data):
		return nil, f.whole("the file is not UTF-8 text")
	case strings.HasPrefix(f.lines[0], byteOrderMark):
		return nil, diagnose([]Diagnostic{f.at(Position{1, 1}, "the file begins with a byte order mark", "save it as UTF-8 without BOM")})
	}
	if d, deep := f.tooDeep(string(data)); deep {
		return nil, diagnose([]Diagnostic{d})
	}
	parsed, err := parseYAML(data)
	if err != nil {
		return nil, f.syntax(err)
	}
	if f.values != nil {
		if err := f.substitute(parsed); err != nil {
			return nil, err
		}
	}
	r := treeReader{file: f}
	f.root = r.document(parsed)
	if err := diagnose(r.found); err != nil {
		return nil, err
	}
	return f, nil
}

// parseYAML keeps a panic of the parser from ending the process.
func parseYAML(data []byte) (file *ast.File, err error) {
	defer func() {
		if recover() != nil {
			file, err = nil, errors.New("the file cannot be read as YAML")
		}
	}()
	return parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
}

// tooDeep finds nesting past the limit before the parser, which recurses, sees it. It
// looks at brackets and at indentation, and may count brackets within texts: no text
// of ours holds so many unclosed ones.
func (f *File) tooDeep(data string) (Diagnostic, bool) {
	const unclosed = 1000
	line, column, open := 1, 0, 0
	for _, r := range data {
		column++
		switch r {
		case '\n':
			line, column = line+1, 0
		case '[', '{':
			open++
		case ']', '}':
			open = max(open-1, 0)
		}
		if open > unclosed {
			return f.at(Position{line, column}, "brackets nest too deeply", ""), true
		}
	}
	for i, l := range f.lines {
		lead := len(l) - len(strings.TrimLeft(l, " -?"))
		if strings.Count(l[:lead], "- ")+strings.Count(l[:lead], "? ") > unclosed {
			return f.at(Position{i + 1, 1}, "lists nest too deeply", ""), true
		}
	}
	return Diagnostic{}, false
}

func (f *File) whole(format string, args ...any) error {
	return &Error{[]Diagnostic{{File: f.name, Message: fmt.Sprintf(format, args...)}}}
}

// at makes a diagnostic for a place.
func (f *File) at(p Position, message, remedy string) Diagnostic {
	d := Diagnostic{File: f.name, Position: p, Message: message, Remedy: remedy}
	if p.Line > 0 && p.Line <= len(f.lines) {
		d.Excerpt = strings.TrimSuffix(f.lines[p.Line-1], "\r")
	}
	return d
}

// syntax turns an error of the parser into ours.
func (f *File) syntax(err error) error {
	var placed interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &placed) && placed.GetToken() != nil {
		remedy := ""
		if strings.Contains(placed.GetMessage(), "'\t'") {
			remedy = "indent with spaces, not with tabs"
		}
		return diagnose([]Diagnostic{f.at(position(placed.GetToken()), "not YAML: "+placed.GetMessage(), remedy)})
	}
	return f.whole("not YAML: %s", strings.SplitN(err.Error(), "\n", 2)[0])
}

func position(t *token.Token) Position {
	if t == nil || t.Position == nil {
		return Position{}
	}
	return Position{t.Position.Line, t.Position.Column}
}

// treeReader makes trees of the parser's nodes and collects what may not be there.
type treeReader struct {
	file  *File
	found []Diagnostic
	depth int
}

func (r *treeReader) refuse(p Position, message, remedy string) {
	if len(r.found) < maxDiagnostics {
		r.found = append(r.found, r.file.at(p, message, remedy))
	}
}

func (r *treeReader) document(parsed *ast.File) *tree {
	docs := parsed.Docs
	for len(docs) > 0 && docs[len(docs)-1].Body == nil {
		docs = docs[:len(docs)-1]
	}
	if len(docs) == 0 || docs[0].Body == nil {
		r.found = append(r.found, Diagnostic{File: r.file.name, Message: "the file is empty"})
		return nil
	}
	if len(docs) > 1 {
		r.refuse(position(docs[1].Start), "a second document starts here", "a file holds one document: remove the line with ---")
		return nil
	}
	root := r.node(docs[0].Body)
	if len(r.found) == 0 && root.kind != mapping {
		r.refuse(root.at, fmt.Sprintf("the file holds %s, not a mapping", root.kind), "write keys and values, such as `budgets: {tool_calls: 12}`")
	}
	return root
}

func (r *treeReader) node(n ast.Node) *tree {
	t := &tree{node: n}
	if n == nil {
		return t
	}
	t.at = position(n.GetToken())
	if r.depth++; r.depth > MaxNesting {
		r.refuse(t.at, fmt.Sprintf("nested deeper than %d levels", MaxNesting), "")
		r.depth--
		return t
	}
	defer func() { r.depth-- }()
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.StringNode:
		t.kind, t.text = text, n.Value
		t.quoted = n.Token != nil && (n.Token.Type == token.DoubleQuoteType || n.Token.Type == token.SingleQuoteType)
	case *ast.LiteralNode:
		t.kind, t.text = text, n.Value.Value
	case *ast.IntegerNode:
		t.kind, t.number, t.text = whole, n.Value, n.Token.Value
	case *ast.FloatNode:
		t.kind, t.number, t.text = fraction, n.Value, n.Token.Value
	case *ast.InfinityNode, *ast.NanNode:
		t.kind, t.text = fraction, n.GetToken().Value
	case *ast.BoolNode:
		t.kind, t.truth, t.text = truth, n.Value, n.Token.Value
	case *ast.SequenceNode:
		t.kind = list
		for _, item := range n.Values {
			t.items = append(t.items, r.node(item))
		}
	case *ast.MappingNode:
		t.kind = mapping
		r.entries(t, n.Values)
	case *ast.MappingValueNode:
		t.kind = mapping
		r.entries(t, []*ast.MappingValueNode{n})
	case *ast.AnchorNode, *ast.AliasNode:
		r.refuse(t.at, "anchors and aliases are not read here", "write the value out")
	case *ast.TagNode:
		r.refuse(t.at, "tags are not read here", "write the value alone; in quotes, if it is a text")
	default:
		r.refuse(t.at, fmt.Sprintf("a %s is not read here", strings.ToLower(n.Type().String())), "")
	}
	return t
}

func (r *treeReader) entries(t *tree, values []*ast.MappingValueNode) {
	for i, v := range values {
		e := entry{at: position(v.Key.GetToken())}
		if i == 0 {
			t.at = e.at // the parser's own place is the first colon
		}
		switch key := v.Key.(type) {
		case *ast.StringNode:
			e.key = key.Value
		case *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode, *ast.NullNode:
			e.key = key.GetToken().Value
		case *ast.MergeKeyNode:
			r.refuse(e.at, "merge keys are not read here", "write the keys out")
			continue
		default:
			r.refuse(e.at, "a key is a plain text", "")
			continue
		}
		if first, twice := t.entry(e.key); twice {
			r.refuse(e.at, fmt.Sprintf("key %q is here twice", e.key), "it stands in line "+strconv.Itoa(first.at.Line)+" already: remove one")
			continue
		}
		e.value = r.node(v.Value)
		t.entries = append(t.entries, e)
	}
}

// Position is where the path leads: to the value if that is a text, a number or a
// truth, else to its key; if the path leads past what is there, to the last key that
// is. Elements of lists are named by their index.
func (f *File) Position(path ...string) Position {
	_, at := f.Place(path...)
	return at
}

// Place is [File.Position] with the file that it is a position in: an included one, if
// the value comes from there.
func (f *File) Place(path ...string) (*File, Position) {
	in, at, t := f, Position{}, f.root
	for _, step := range path {
		if t != nil && t.from != nil {
			in = t.from
		}
		switch {
		case t == nil:
			return in, at
		case t.kind == mapping:
			e, ok := t.entry(step)
			if !ok {
				return in, at
			}
			if e.value.from != nil {
				in = e.value.from
			}
			at, t = e.at, e.value
		case t.kind == list:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(t.items) {
				return in, at
			}
			t = t.items[i]
			at = t.at
		default:
			return in, at
		}
	}
	if t != nil && t.kind != mapping && t.kind != list && t.kind != nothing && len(path) > 0 {
		return in, t.at
	}
	return in, at
}

// Problem puts a finding at its place in the file.
func (f *File) Problem(remedy, message string, path ...string) Diagnostic {
	in, at := f.Place(path...)
	return in.at(at, strings.TrimPrefix(strings.Join(path, ".")+": "+message, ": "), remedy)
}

// Problems puts what package tools found at their places; nil if there are none. The
// error is an [*Error].
func (f *File) Problems(problems []tools.Problem) error { return diagnose(f.place(problems)) }

func (f *File) place(problems []tools.Problem) []Diagnostic {
	all := make([]Diagnostic, 0, len(problems))
	for _, p := range problems {
		d := f.Problem("", p.Message, p.Path...)
		if secret(p) {
			d.Excerpt = hidden
		}
		all = append(all, d)
	}
	return all
}

// secret reports whether what is wrong may be a secret in the wrong place.
func secret(p tools.Problem) bool {
	return p.Message == urlWithUser || p.Message == urlWithMore || p.Message == keyForName || p.Message == keyOfProject
}
