package tools

import (
	"math/big"
	"unicode/utf8"
)

// Invalid says why a value is not one of a schema.
type Invalid struct {
	Reason Reason
	// Field is the innermost property, as the schema names it, at which the value was
	// refused; empty at the root. It is never text of the value.
	Field string
}

// Error is the reason, with the schema's name of the field.
func (e *Invalid) Error() string {
	if e.Field == "" {
		return string(e.Reason)
	}
	return string(e.Reason) + " at " + e.Field
}

// Unwrap makes errors.Is find the [Reason].
func (e *Invalid) Unwrap() error { return e.Reason }

// checker holds values against schemas.
type checker struct {
	// plain leaves out what is not field, type or limit: patterns and alternatives.
	plain bool
	field string
	grant string // of the root object; reported by its own reason
	spent int    // on patterns
}

func (c *checker) refuse(r Reason) error { return &Invalid{Reason: r, Field: c.field} }

func (c *checker) value(n *node, v *value) error {
	switch {
	case n.never:
		return c.refuse(FieldNone)
	case !n.accepts(v):
		return c.refuse(FieldType)
	case n.enumerated && !n.listed(v):
		return c.refuse(FieldEnum)
	}
	if err := c.shape(n, v); err != nil {
		return err
	}
	if c.plain || len(n.anyOf) == 0 {
		return nil
	}
	for _, branch := range n.anyOf {
		if c.value(branch, v) == nil {
			return nil
		}
	}
	if c.spent > maxPatternWork {
		return c.refuse(ValueTooComplex)
	}
	return c.refuse(FieldNoBranch)
}

func (c *checker) shape(n *node, v *value) error {
	switch v.kind {
	case kindString:
		return c.text(n, v)
	case kindNumber:
		return c.number(n, v)
	case kindArray:
		return c.array(n, v)
	case kindObject:
		return c.object(n, v)
	}
	return nil
}

// accepts reports whether the value is of one of the schema's types. An integer is
// written without fraction and exponent.
func (n *node) accepts(v *value) bool {
	for _, t := range n.types {
		switch t {
		case "null":
			if v.kind == kindNull {
				return true
			}
		case "boolean":
			if v.kind == kindTrue || v.kind == kindFalse {
				return true
			}
		case "string":
			if v.kind == kindString {
				return true
			}
		case "number":
			if v.kind == kindNumber {
				return true
			}
		case "integer":
			if v.kind == kindNumber && v.literal() {
				return true
			}
		case "array":
			if v.kind == kindArray {
				return true
			}
		case "object":
			if v.kind == kindObject {
				return true
			}
		}
	}
	return len(n.types) == 0
}

func (c *checker) text(n *node, v *value) error {
	if size := utf8.RuneCountInString(v.text); size < n.minLength || n.maxLength >= 0 && size > n.maxLength {
		return c.refuse(FieldLength)
	}
	if c.plain || n.pattern == nil {
		return nil
	}
	if c.spent += n.effort * len(v.text); c.spent > maxPatternWork {
		return c.refuse(ValueTooComplex)
	}
	if !n.pattern.MatchString(v.text) {
		return c.refuse(FieldPattern)
	}
	return nil
}

func (c *checker) number(n *node, v *value) error {
	if !n.bounded() {
		return nil
	}
	if v.exponent() {
		return c.refuse(FieldRange)
	}
	x, ok := new(big.Rat).SetString(string(v.raw))
	switch {
	case !ok,
		n.lower != nil && x.Cmp(n.lower) < 0,
		n.upper != nil && x.Cmp(n.upper) > 0,
		n.above != nil && x.Cmp(n.above) <= 0,
		n.below != nil && x.Cmp(n.below) >= 0:
		return c.refuse(FieldRange)
	}
	return nil
}

func (c *checker) array(n *node, v *value) error {
	if size := len(v.items); size < n.minItems || n.maxItems >= 0 && size > n.maxItems {
		return c.refuse(FieldLength)
	}
	if n.items == nil {
		return nil
	}
	for _, item := range v.items {
		if err := c.value(n.items, item); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) object(n *node, v *value) error {
	outer, grant := c.field, c.grant
	c.grant = ""
	defer func() { c.field, c.grant = outer, grant }()
	for _, f := range v.members {
		p, known := n.property(f.name)
		switch {
		case grant != "" && f.name == grant:
			return c.refuse(FieldGrant)
		case !known && n.closed:
			return c.refuse(FieldUnknown)
		case !known:
			if p = n.additional; p == nil {
				continue
			}
		}
		if known {
			c.field = f.name
		}
		if err := c.value(p, f.value); err != nil {
			return err
		}
		c.field = outer
	}
	for _, name := range n.required {
		if _, ok := v.member(name); !ok {
			c.field = name
			return c.refuse(FieldMissing)
		}
	}
	return nil
}
