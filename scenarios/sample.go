package scenarios

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// sample makes arguments that a tool's schema accepts, as far as the required ones can
// be guessed: it serves acceptance, where any accepted call will do.
func sample(schema []byte) (string, error) {
	var root shape
	if err := json.Unmarshal(schema, &root); err != nil {
		return "", fmt.Errorf("read the tool's schema: %w", err)
	}
	args := map[string]any{}
	for _, name := range root.Required {
		v, err := root.Properties[name].value(name)
		if err != nil {
			return "", err
		}
		args[name] = v
	}
	data, err := json.Marshal(args)
	return string(data), err
}

// shape is what is read of a schema.
type shape struct {
	Type       string           `json:"type"`
	Enum       []any            `json:"enum"`
	Default    any              `json:"default"`
	Pattern    string           `json:"pattern"`
	MinLength  int              `json:"minLength"`
	Minimum    *float64         `json:"minimum"`
	Required   []string         `json:"required"`
	Properties map[string]shape `json:"properties"`
}

// words are tried where a pattern must match.
var words = []string{"a", "acceptance.md", "acceptance", "1", "A1", "2026-01-01", "a@example.org", "https://example.org/"}

var errNoGuess = errors.New("say which arguments to use with --args")

func (s shape) value(name string) (any, error) {
	switch {
	case s.Default != nil:
		return s.Default, nil
	case len(s.Enum) > 0:
		return s.Enum[0], nil
	}
	switch s.Type {
	case "string":
		return s.text(name)
	case "integer", "number":
		if s.Minimum != nil && *s.Minimum > 1 {
			return *s.Minimum, nil
		}
		return 1, nil
	case "boolean":
		return false, nil
	case "array":
		return []any{}, nil
	case "object":
		return map[string]any{}, nil
	}
	return nil, fmt.Errorf("no value for argument %q can be guessed: %w", name, errNoGuess)
}

func (s shape) text(name string) (string, error) {
	if s.Pattern == "" {
		return strings.Repeat("a", max(1, s.MinLength)), nil
	}
	p, err := regexp.Compile(s.Pattern)
	if err == nil {
		for _, w := range words {
			if len(w) >= s.MinLength && p.MatchString(w) {
				return w, nil
			}
		}
	}
	return "", fmt.Errorf("no text for argument %q can be guessed: %w", name, errNoGuess)
}
