package sallyport_test

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/nodes"
)

var (
	limitLine = regexp.MustCompile("(?m)^\\| [^|]+ \\| ([0-9,]+) ?([A-Za-z]*) \\| `([a-z/]+)\\.([A-Za-z.]+)` \\| ([^|]+) \\|$")
	units     = map[string]int64{"s": 1e9, "min": 60e9, "h": 3600e9, "days": 24 * 3600e9, "MiB": 1 << 20, "": 1, "characters": 1, "bytes": 1}
	budget    = map[string]int64{
		"DefaultBudget.Calls": int64(agent.DefaultBudget.Calls), "DefaultBudget.Turns": int64(agent.DefaultBudget.Turns),
		"DefaultBudget.Tokens": agent.DefaultBudget.Tokens, "DefaultBudget.Wall": agent.DefaultBudget.Wall * 1e9,
		"DefaultWindow.Bytes": nodes.DefaultWindow.Bytes, "DefaultWindow.Tokens": nodes.DefaultWindow.Tokens,
	}
)

func TestLimitsPage_SaysWhatTheCodeSays(t *testing.T) {
	page := string(read(t, "docs/limits.md"))
	rules := string(read(t, "docs/contract.md"))
	lines := limitLine.FindAllStringSubmatch(page, -1)
	if rows := strings.Count(page, "` | "); len(lines) != rows {
		t.Fatalf("docs/limits.md: %d of %d rows can be read", len(lines), rows)
	}
	for _, m := range lines {
		unit, known := units[m[2]]
		n, err := strconv.ParseInt(strings.ReplaceAll(m[1], ",", ""), 10, 64)
		if !known || err != nil {
			t.Errorf("docs/limits.md: %s.%s: limit %q %q cannot be read", m[3], m[4], m[1], m[2])
			continue
		}
		has, err := limit(m[3], m[4])
		if err != nil {
			t.Errorf("docs/limits.md: %v", err)
		} else if has != n*unit {
			t.Errorf("docs/limits.md: %s.%s is %d in the code, %s %s on the page", m[3], m[4], has, m[1], m[2])
		}
		for _, id := range strings.Split(m[5], ", ") {
			if !strings.Contains(rules, "**"+id+" · ") {
				t.Errorf("docs/limits.md: %s.%s: no rule %s", m[3], m[4], id)
			}
		}
	}
}

// limit evaluates a constant of a package from its source; durations in nanoseconds.
func limit(dir, name string) (int64, error) {
	if n, ok := budget[name]; ok && (dir == "agent" || dir == "nodes") {
		return n, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if path.Ext(e.Name()) != ".go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path.Join(dir, e.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return 0, err
		}
		if expr := declared(file, name); expr != nil {
			return value(expr)
		}
	}
	return 0, fmt.Errorf("package %s has no constant %s", dir, name)
}

// declared is the expression that a file's constant is declared with.
func declared(file *ast.File, name string) ast.Expr {
	for _, d := range file.Decls {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST {
			continue
		}
		for _, spec := range gen.Specs {
			v := spec.(*ast.ValueSpec)
			for i, ident := range v.Names {
				if ident.Name == name && i < len(v.Values) {
					return v.Values[i]
				}
			}
		}
	}
	return nil
}

func value(expr ast.Expr) (int64, error) {
	text := types.ExprString(expr)
	for _, u := range []struct{ name, nanoseconds string }{
		{"time.Second", "1_000_000_000"}, {"time.Minute", "60_000_000_000"}, {"time.Hour", "3_600_000_000_000"},
	} {
		text = strings.ReplaceAll(text, u.name, u.nanoseconds)
	}
	v, err := types.Eval(token.NewFileSet(), nil, token.NoPos, text)
	if err != nil {
		return 0, fmt.Errorf("evaluate %s: %w", text, err)
	}
	n, exact := constant.Int64Val(v.Value)
	if !exact {
		return 0, fmt.Errorf("%s is no whole number", text)
	}
	return n, nil
}
