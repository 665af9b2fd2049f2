package tools

import (
	"bytes"
	"math/big"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"

	"sallyport/tools/strictjson"
)

// Limits of schemas and of checking a value against one. Exactly at a limit passes.
const (
	// MaxSchemaDepth is how deep schemas nest; the root has depth 0 (SPEC B4).
	MaxSchemaDepth = 8
	// MaxSchemaNodes is how many schemas one schema consists of, the root counted.
	MaxSchemaNodes = 128
	// MaxWork bounds schema nodes times tokens of the value.
	MaxWork = 200_000
	// maxEnumWork bounds values listed in enum times tokens of the value.
	maxEnumWork = 2_000_000
	// maxPatternWork bounds the sum, over all texts that patterns are tried on, of
	// instructions of the pattern times bytes of the text.
	maxPatternWork = 20_000_000
	// maxPattern bounds the instructions of one pattern.
	maxPattern = 5_000
	// maxCount is the longest number that a length keyword may have, in digits.
	maxCount = 9
)

// WidenKeywords are the schema keywords that a contract may allow for one tool by
// name (SPEC B4).
var WidenKeywords = []string{"format", "const", "minItems", "maxItems", "exclusiveMinimum", "exclusiveMaximum"}

// The accepted dialects: without $schema it is the first.
const (
	dialect2020 = "https://json-schema.org/draft/2020-12/schema"
	dialect07   = "http://json-schema.org/draft-07/schema"
)

// node is one schema of the accepted subset.
type node struct {
	never      bool     // the schema `false`
	types      []string // empty accepts every type
	properties []property
	required   []string
	closed     bool  // additionalProperties is false
	additional *node // or a schema
	items      *node
	anyOf      []*node
	enum       [][]byte // canonical; const is an enum of one
	enumerated bool
	pattern    *regexp.Regexp
	effort     int // instructions of the pattern
	minLength  int
	maxLength  int // -1 is no limit
	minItems   int
	maxItems   int
	lower      *big.Rat
	upper      *big.Rat
	above      *big.Rat // exclusive
	below      *big.Rat
	fallback   *value // default

	fallbackSize int // of the default, in bytes
}

type property struct {
	name string
	node *node
}

func (n *node) property(name string) (*node, bool) {
	for _, p := range n.properties {
		if p.name == name {
			return p.node, true
		}
	}
	return nil, false
}

// bounded reports whether the schema bounds numbers.
func (n *node) bounded() bool {
	return n.lower != nil || n.upper != nil || n.above != nil || n.below != nil
}

// constrains reports whether the schema refuses anything at all.
func (n *node) constrains() bool {
	return n.never || len(n.types) > 0 || len(n.properties) > 0 || len(n.required) > 0 || n.closed ||
		n.additional != nil || n.items != nil || len(n.anyOf) > 0 || n.enumerated || n.pattern != nil ||
		n.minLength > 0 || n.maxLength >= 0 || n.minItems > 0 || n.maxItems >= 0 || n.bounded()
}

// cost is what one schema can make a check cost.
type cost struct {
	nodes int // schemas
	enums int // values listed in enum
}

// reader reads a schema and holds it against SPEC B4.
type reader struct {
	widened []string
	cost    cost
}

// readSchema reads the schema that the compact JSON data is.
func readSchema(data []byte, widened []string) (*node, cost, error) {
	v, _, err := parse(data)
	if err != nil {
		return nil, cost{}, SchemaInvalid
	}
	r := reader{widened: widened}
	n, err := r.schema(v, 0)
	if err != nil {
		return nil, cost{}, err
	}
	return n, r.cost, nil
}

func (r *reader) schema(v *value, depth int) (*node, error) {
	if depth > MaxSchemaDepth {
		return nil, SchemaDepth
	}
	if r.cost.nodes++; r.cost.nodes > MaxSchemaNodes {
		return nil, SchemaNodes
	}
	n := &node{maxLength: -1, maxItems: -1}
	switch v.kind {
	case kindTrue, kindFalse:
		n.never = v.kind == kindFalse
		if depth == 0 {
			return nil, SchemaInvalid
		}
		return n, nil
	case kindObject:
	default:
		return nil, SchemaInvalid
	}
	for _, f := range v.members {
		if err := r.keyword(n, f.name, f.value, depth); err != nil {
			return nil, err
		}
	}
	if len(n.types) == 0 && (len(n.properties) > 0 || len(n.required) > 0 || n.closed || n.additional != nil) {
		// Without a type, a schema of an object would accept 5.
		n.types = []string{"object"}
	}
	return n, nil
}

// keyword reads one keyword. enum, const and default are data: nothing is looked for
// inside them.
func (r *reader) keyword(n *node, name string, v *value, depth int) error {
	if slices.Contains(WidenKeywords, name) && !slices.Contains(r.widened, name) {
		return refusedKeyword(name)
	}
	switch name {
	case "$schema":
		return dialect(v, depth)
	case "title", "description", "format":
		return is(v.kind == kindString)
	case "default":
		n.fallback, n.fallbackSize = v, len(v.append(nil))
		return nil
	case "type":
		return readTypes(n, v)
	case "properties":
		return r.readProperties(n, v, depth)
	case "required":
		return readRequired(n, v)
	case "additionalProperties":
		return r.readAdditional(n, v, depth)
	case "items":
		return r.child(&n.items, v, depth)
	case "anyOf":
		return r.readAnyOf(n, v, depth)
	case "enum", "const":
		return r.readEnum(n, name, v)
	case "pattern":
		return r.readPattern(n, v)
	case "minLength":
		return readCount(&n.minLength, v)
	case "maxLength":
		return readCount(&n.maxLength, v)
	case "minItems":
		return readCount(&n.minItems, v)
	case "maxItems":
		return readCount(&n.maxItems, v)
	case "minimum":
		return readNumber(&n.lower, v)
	case "maximum":
		return readNumber(&n.upper, v)
	case "exclusiveMinimum":
		return readNumber(&n.above, v)
	case "exclusiveMaximum":
		return readNumber(&n.below, v)
	}
	return refusedKeyword(name)
}

func is(valid bool) error {
	if !valid {
		return SchemaInvalid
	}
	return nil
}

func dialect(v *value, depth int) error {
	switch {
	case depth > 0:
		return refusedKeyword("$schema")
	case v.kind != kindString:
		return SchemaInvalid
	case v.text != dialect2020 && v.text != dialect07 && v.text != dialect07+"#":
		return SchemaDialect
	}
	return nil
}

var typeNames = []string{"null", "boolean", "object", "array", "number", "string", "integer"}

func readTypes(n *node, v *value) error {
	list := v.items
	if v.kind == kindString {
		list = []*value{v}
	} else if v.kind != kindArray || len(list) == 0 {
		return SchemaInvalid
	}
	for _, t := range list {
		if t.kind != kindString || !slices.Contains(typeNames, t.text) || slices.Contains(n.types, t.text) {
			return SchemaInvalid
		}
		n.types = append(n.types, t.text)
	}
	return nil
}

// child reads a schema one level down. A list, the old form of items, is no schema.
func (r *reader) child(to **node, v *value, depth int) error {
	n, err := r.schema(v, depth+1)
	*to = n
	return err
}

func (r *reader) readProperties(n *node, v *value, depth int) error {
	if v.kind != kindObject {
		return SchemaInvalid
	}
	for _, f := range v.members {
		p := property{name: f.name}
		if err := r.child(&p.node, f.value, depth); err != nil {
			return err
		}
		n.properties = append(n.properties, p)
	}
	return nil
}

func readRequired(n *node, v *value) error {
	if v.kind != kindArray {
		return SchemaInvalid
	}
	seen := make(map[string]bool, len(v.items))
	for _, name := range v.items {
		if name.kind != kindString || seen[name.text] {
			return SchemaInvalid
		}
		seen[name.text] = true
		n.required = append(n.required, name.text)
	}
	return nil
}

// readAdditional reads additionalProperties. Only a schema in it counts as a node:
// true and false say whether the object is closed.
func (r *reader) readAdditional(n *node, v *value, depth int) error {
	switch v.kind {
	case kindTrue:
		return nil
	case kindFalse:
		n.closed = true
		return nil
	}
	return r.child(&n.additional, v, depth)
}

func (r *reader) readAnyOf(n *node, v *value, depth int) error {
	if v.kind != kindArray || len(v.items) == 0 {
		return SchemaInvalid
	}
	for _, branch := range v.items {
		var b *node
		if err := r.child(&b, branch, depth); err != nil {
			return err
		}
		n.anyOf = append(n.anyOf, b)
	}
	return nil
}

func (r *reader) readEnum(n *node, name string, v *value) error {
	list := []*value{v}
	if name == "enum" {
		if v.kind != kindArray {
			return SchemaInvalid
		}
		list = v.items
	}
	texts := make([][]byte, 0, len(list))
	for _, item := range list {
		// enum and const together leave what is in both.
		if !n.enumerated || n.listed(item) {
			texts = append(texts, canonical(item))
		}
	}
	n.enum, n.enumerated = texts, true
	r.cost.enums += len(list)
	return nil
}

func (r *reader) readPattern(n *node, v *value) error {
	if v.kind != kindString {
		return SchemaInvalid
	}
	parsed, err := syntax.Parse(v.text, syntax.Perl)
	if err != nil {
		return SchemaPattern
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil || len(prog.Inst) > maxPattern {
		return SchemaPattern
	}
	if n.pattern, err = regexp.Compile(v.text); err != nil {
		return SchemaPattern
	}
	n.effort = len(prog.Inst)
	return nil
}

func readCount(to *int, v *value) error {
	if v.kind != kindNumber || !v.literal() || v.raw[0] == '-' || len(v.raw) > maxCount {
		return SchemaInvalid
	}
	n, err := strconv.Atoi(string(v.raw))
	*to = n
	return is(err == nil)
}

func readNumber(to **big.Rat, v *value) error {
	if v.kind != kindNumber {
		return SchemaInvalid
	}
	n, ok := new(big.Rat).SetString(string(v.raw))
	*to = n
	return is(ok)
}

// Schema is a checked schema that values are held against. It is safe for concurrent
// use.
type Schema struct {
	root   *node
	cost   cost
	grant  string // the field that the model must not send; empty if none
	second second
}

// NewSchema reads and compiles a schema of the accepted subset (SPEC B4). widened are
// keywords that a contract allows beyond it. The error is a [Reason], or wraps one;
// nothing is ever fetched.
func NewSchema(raw []byte, widened []string) (*Schema, error) {
	compact, err := strictjson.Compact(raw)
	if err != nil {
		return nil, SchemaInvalid
	}
	return newSchema(compact, widened)
}

func newSchema(compact []byte, widened []string) (*Schema, error) {
	root, cost, err := readSchema(compact, widened)
	if err != nil {
		return nil, err
	}
	second, err := compileSecond(compact)
	if err != nil {
		return nil, err
	}
	return &Schema{root: root, cost: cost, second: second}, nil
}

// checkDefaults checks that every default that could be filled in is a value of its
// own schema. The root's own default is never filled in.
func (n *node) checkDefaults() error {
	for _, p := range n.properties {
		if err := p.node.checkDefault(); err != nil {
			return err
		}
	}
	if n.items != nil {
		return n.items.checkDefaults()
	}
	return nil
}

func (n *node) checkDefault() error {
	if n.fallback != nil {
		f := filler{room: MaxArguments}
		filled, err := f.value(n, n.fallback)
		if err != nil || (&checker{}).value(n, filled) != nil {
			return SchemaDefault
		}
	}
	return n.checkDefaults()
}

// Validate holds one JSON value, as it was received, against the schema. The error is
// an [*Invalid] with a fixed reason. Besides what JSON Schema says: 1.0 is no integer,
// a bounded number has no exponent, values of enum are compared as they are written,
// and a schema that speaks of properties is one of an object.
func (s *Schema) Validate(data []byte) error {
	compact, err := strictjson.Compact(data)
	if err != nil {
		return &Invalid{Reason: ValueMalformed}
	}
	v, tokens, err := parse(compact)
	if err != nil {
		return &Invalid{Reason: ValueMalformed}
	}
	return s.validate(v, tokens, compact)
}

func (s *Schema) validate(v *value, tokens int, compact []byte) error {
	if !s.affordable(tokens) {
		return &Invalid{Reason: ValueTooComplex}
	}
	c := checker{}
	if err := c.value(s.root, v); err != nil {
		return err
	}
	return s.second.validate(compact)
}

// affordable reports whether checking a value of so many tokens stays within the limits
// on work.
func (s *Schema) affordable(tokens int) bool {
	return s.cost.nodes*tokens <= MaxWork && s.cost.enums*tokens <= maxEnumWork
}

// listed reports whether v is one of the values of enum, as written.
func (n *node) listed(v *value) bool {
	text := canonical(v)
	return text != nil && slices.ContainsFunc(n.enum, func(e []byte) bool { return bytes.Equal(e, text) })
}

// canonical is the canonical text of a value, nil if it nests too deeply to have one.
func canonical(v *value) []byte {
	if v.kind != kindObject && v.kind != kindArray {
		return v.raw
	}
	text, err := strictjson.Canonical(v.append(nil))
	if err != nil {
		return nil
	}
	return text
}
