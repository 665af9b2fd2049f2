package debug

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"
)

// Bounds of a condition's text, in bytes, and of its nesting.
const (
	maxCondition = 1024
	maxNesting   = 32
)

// condition is what a breakpoint asks of a moment:
//
//	condition = and { "||" and }
//	and       = not { "&&" not }
//	not       = "!" not | value [ ( "==" | "!=" | "<" | "<=" | ">" | ">=" | "~" ) value ]
//	value     = "(" condition ")" | text | number | "true" | "false" | "null" | path
//
// A text stands in double quotes; ~ compares a text with a pattern, in which * stands for
// anything and ? for one character. Alone, a value holds unless it is null, false, 0
// or empty. What is not there is null, which equals only null and is below nothing.
type condition func(*Moment) (any, error)

// parseCondition reads a condition.
func parseCondition(text string) (condition, error) {
	if len(text) > maxCondition {
		return nil, fmt.Errorf("a condition of %d bytes: at most %d", len(text), maxCondition)
	}
	tokens, err := tokenize(text)
	if err != nil {
		return nil, fmt.Errorf("condition %q: %w", text, err)
	}
	p := parser{rest: tokens}
	c, err := p.or()
	if err == nil && len(p.rest) > 0 {
		err = fmt.Errorf("%q is too much", p.rest[0])
	}
	if err != nil {
		return nil, fmt.Errorf("condition %q: %w", text, err)
	}
	return c, nil
}

// holds reports whether a moment fulfils the condition.
func (c condition) holds(m *Moment) (bool, error) {
	v, err := c(m)
	return truth(v), err
}

// tokenize cuts a condition into its tokens.
func tokenize(text string) (tokens []string, err error) {
	for text = strings.TrimLeft(text, " \t"); text != ""; text = strings.TrimLeft(text, " \t") {
		n := 1
		switch c := text[0]; {
		case c == '"':
			quoted, err := strconv.QuotedPrefix(text)
			if err != nil {
				return nil, fmt.Errorf("a text without its closing quote")
			}
			n = len(quoted)
		case operator(text) != "":
			n = len(operator(text))
		case isName(text[:1]):
			for n < len(text) && (isName(text[n:n+1]) || strings.ContainsRune(".[]", rune(text[n]))) {
				n++
			}
		case c == '-' && len(text) > 1 && text[1] >= '0' && text[1] <= '9':
			for n < len(text) && (text[n] >= '0' && text[n] <= '9' || text[n] == '.') {
				n++
			}
		default:
			return nil, fmt.Errorf("%q means nothing here", text[:1])
		}
		tokens = append(tokens, text[:n])
		text = text[n:]
	}
	return tokens, nil
}

// operators, the longer before those that they begin with.
var operators = []string{"||", "&&", "==", "!=", "<=", ">=", "<", ">", "~", "!", "(", ")"}

func operator(text string) string {
	for _, o := range operators {
		if strings.HasPrefix(text, o) {
			return o
		}
	}
	return ""
}

type parser struct {
	rest  []string
	depth int
}

// next takes the next token if it is one of these.
func (p *parser) next(those ...string) string {
	for _, t := range those {
		if len(p.rest) > 0 && p.rest[0] == t {
			p.rest = p.rest[1:]
			return t
		}
	}
	return ""
}

func (p *parser) or() (condition, error) { return p.chain("||", (*parser).and) }

func (p *parser) and() (condition, error) { return p.chain("&&", (*parser).not) }

// chain is one or more of the same, joined.
func (p *parser) chain(joint string, each func(*parser) (condition, error)) (condition, error) {
	left, err := each(p)
	for err == nil && p.next(joint) != "" {
		var right condition
		if right, err = each(p); err == nil {
			left = join(left, right, joint == "||")
		}
	}
	return left, err
}

// join is either, or both.
func join(left, right condition, either bool) condition {
	return func(m *Moment) (any, error) {
		if is, err := left.holds(m); err != nil || is == either {
			return is, err
		}
		return right.holds(m)
	}
}

func (p *parser) not() (condition, error) {
	if p.next("!") == "" {
		return p.comparison()
	}
	if p.depth++; p.depth > maxNesting {
		return nil, errNesting
	}
	defer func() { p.depth-- }()
	of, err := p.not()
	if err != nil {
		return nil, err
	}
	return func(m *Moment) (any, error) {
		is, err := of.holds(m)
		return !is, err
	}, nil
}

var errNesting = fmt.Errorf("nested more than %d deep", maxNesting)

func (p *parser) comparison() (condition, error) {
	left, err := p.value()
	if err != nil {
		return nil, err
	}
	how := p.next("==", "!=", "<=", ">=", "<", ">", "~")
	if how == "" {
		return left, nil
	}
	right, err := p.value()
	if err != nil {
		return nil, err
	}
	return func(m *Moment) (any, error) {
		a, err := left(m)
		if err != nil {
			return nil, err
		}
		b, err := right(m)
		if err != nil {
			return nil, err
		}
		return compare(a, how, b), nil
	}, nil
}

func (p *parser) value() (condition, error) {
	if p.next("(") != "" {
		if p.depth++; p.depth > maxNesting {
			return nil, errNesting
		}
		defer func() { p.depth-- }()
		inner, err := p.or()
		if err == nil && p.next(")") == "" {
			err = fmt.Errorf("a bracket is not closed")
		}
		return inner, err
	}
	if len(p.rest) == 0 {
		return nil, fmt.Errorf("it ends where a value should be")
	}
	word := p.rest[0]
	if operator(word) != "" {
		return nil, fmt.Errorf("%s where a value should be", word)
	}
	p.rest = p.rest[1:]
	return literal(word)
}

// literal is a constant, or what a path leads to.
func literal(word string) (condition, error) {
	var constant any
	switch {
	case word == "true" || word == "false":
		constant = word == "true"
	case word == "null":
	case word[0] == '"':
		text, err := strconv.Unquote(word)
		if err != nil {
			return nil, fmt.Errorf("text %s: %w", word, err)
		}
		constant = text
	case word[0] == '-' || word[0] >= '0' && word[0] <= '9':
		if _, err := strconv.ParseFloat(word, 64); err != nil {
			return nil, fmt.Errorf("%q is no number", word)
		}
		constant = json.Number(word)
	default:
		p, err := parsePath(word)
		if err != nil {
			return nil, err
		}
		return p.in, nil
	}
	return func(*Moment) (any, error) { return constant, nil }, nil
}

// compare compares two values of the view.
func compare(a any, how string, b any) bool {
	switch how {
	case "==":
		return same(a, b)
	case "!=":
		return !same(a, b)
	case "~":
		text, ok1 := a.(string)
		pattern, ok2 := b.(string)
		fits, err := path.Match(pattern, text)
		return ok1 && ok2 && err == nil && fits
	}
	order, ok := ordered(a, b)
	if !ok {
		return false
	}
	switch how {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func same(a, b any) bool {
	if order, ok := ordered(a, b); ok {
		return order == 0
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case bool:
		return a == b
	}
	return false // of what has members, nothing is the same
}

// ordered compares two numbers, or two texts.
func ordered(a, b any) (order int, ok bool) {
	if n, isNumber := number(a); isNumber {
		o, ok := number(b)
		switch {
		case n < o:
			order = -1
		case n > o:
			order = 1
		}
		return order, ok
	}
	text, ok1 := a.(string)
	other, ok2 := b.(string)
	return strings.Compare(text, other), ok1 && ok2
}

func number(v any) (float64, bool) {
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := n.Float64()
	return f, err == nil
}

// truth is whether a value holds.
func truth(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	case json.Number:
		n, _ := number(v)
		return n != 0
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}
