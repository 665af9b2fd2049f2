package config

import (
	"strings"
	"testing"
)

func TestHasKey(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		has  bool
		err  string
	}{
		"a scenario":              {"task: x\nscenario: y\n", true, ""},
		"quoted":                  {"\"scenario\": y\n", true, ""},
		"behind a mark":           {"\ufeffscenario: y\n", true, ""},
		"repeated":                {"scenario: y\nscenario: z\n", true, ""},
		"another file":            {"servers: {}\n", false, ""},
		"deeper":                  {"x: {scenario: y}\n", false, ""},
		"a list":                  {"- scenario: x\n", false, ""},
		"empty":                   {"", false, ""},
		"comments":                {"# scenario: x\n", false, ""},
		"anchors of others":       {"x: &a {b: 1}\ny: *a\n", false, ""},
		"documents of others":     {"x: 1\n---\ny: 2\n", false, ""},
		"second document":         {"x: 1\n---\nscenario: 2\n", true, ""},
		"not YAML":                {"x: [\n", false, "f.yaml:1"},
		"a tab":                   {"x:\n\ty: 1\n", false, "f.yaml:2"},
		"not text":                {"\xff\xfe", false, "not UTF-8"},
		"too deep":                {strings.Repeat("[", 1001), false, "nest too deeply"},
		"exactly as deep":         {strings.Repeat("[", 1000) + strings.Repeat("]", 1000), false, ""},
		"too long":                {strings.Repeat("#", MaxFile+1), false, "more than"},
		"exactly as long as that": {strings.Repeat("#", MaxFile), false, ""},
	} {
		has, err := HasKey("f.yaml", []byte(c.text), "scenario")
		switch {
		case has != c.has:
			t.Errorf("%s: has the key: %t", name, has)
		case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v", name, err)
		}
	}
}
