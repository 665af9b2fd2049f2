// Package sallyport_test holds what is true of the repository as a whole: who imports whom, which folders
// there are, and that the documents say what the code does.
package sallyport_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "sallyport"

// owner is one folder's row in the table of directions: what of ours it may import.
// A folder without a row may not hold Go code.
type owner struct {
	imports []string // of the code
	tests   []string // of its tests, besides
}

// strictJSON is a leaf that every package may import.
const strictJSON = "tools/strictjson"

var (
	// all is every package but the command's.
	all = []string{
		"agent", "agent/audit", "agent/debug", "agent/embedded", "agent/enginetest", "agent/picture", "agent/prove", "nodes", "nodes/llm", "nodes/llm/cassette", "nodes/llm/chat", "scenarios", "scenarios/config",
		"tools", "tools/bridge", "tools/calcserver", "tools/docserver", "tools/scriptserver", "tools/stdio",
		"tools/stdio/stdiotest", "tools/grant", "workspace",
	}
	directions = map[string]owner{
		".":                {tests: all},
		"agent":            {imports: []string{"tools/grant"}, tests: []string{"agent/enginetest"}},
		"agent/audit":      {imports: []string{"agent", "tools/grant"}, tests: []string{"agent/enginetest"}},
		"agent/debug":      {imports: []string{"agent", "tools/grant"}, tests: []string{"agent/embedded", "agent/enginetest"}},
		"agent/embedded":   {imports: []string{"agent"}, tests: []string{"agent/enginetest", "tools/grant"}},
		"agent/enginetest": {imports: []string{"agent", "tools/grant"}},
		"agent/picture":    {imports: []string{"agent"}, tests: []string{"agent/enginetest", "tools/grant"}},
		"agent/prove":      {imports: []string{"agent", "tools/grant"}, tests: []string{"agent/enginetest"}},
		"agent/temporal":   {imports: []string{"agent"}, tests: []string{"agent/embedded", "agent/enginetest", "tools/grant"}},
		"nodes":            {imports: []string{"agent", "tools", "tools/grant"}, tests: all},
		"nodes/llm":        {imports: []string{"agent", "nodes", "nodes/llm/chat"}, tests: []string{"tools", "tools/grant"}},
		"nodes/llm/chat":   {imports: []string{"agent", "nodes"}},
		"nodes/llm/openai": {imports: []string{"agent", "nodes", "nodes/llm/chat"}, tests: all},
		"tools":            {imports: []string{"agent", "tools/grant"}},
		"tools/bridge":     {imports: []string{"agent", "tools", "tools/grant"}, tests: all},
		"tools/calcserver": {imports: []string{"tools/stdio"}, tests: []string{"tools/stdio/stdiotest"}},
		"tools/docserver":  {imports: []string{"tools/stdio", "tools/grant", "workspace"}, tests: all},
		"tools/grant":      {},
		// A leaf, so that configuration can hold a script.
		"tools/scriptserver": {tests: []string{"agent", "scenarios/config", "tools", "tools/bridge", "tools/grant", "tools/stdio/stdiotest"}},
		strictJSON:           {},
		"workspace":          {},
		"scenarios":          {imports: all, tests: []string{"cmd/sallyport/terminal"}},
		"scenarios/config":   {imports: []string{"agent", "nodes/llm/chat", "tools", "tools/grant"}, tests: all},
		"cmd/sallyport":      {imports: append([]string{"cmd/sallyport/screen", "cmd/sallyport/terminal", "nodes/llm/openai", "scenarios/suite"}, all...)},

		"tools/stdio":            {tests: []string{"tools/stdio/stdiotest"}},
		"tools/stdio/stdiotest":  {},
		"nodes/llm/cassette":     {imports: []string{"agent", "nodes"}},
		"cmd/sallyport/screen":   {imports: []string{"agent", "agent/debug", "cmd/sallyport/terminal"}, tests: []string{"agent/embedded", "agent/enginetest", "tools/grant"}},
		"cmd/sallyport/terminal": {imports: []string{"agent", "tools/grant"}},
		"scenarios/suite":        {imports: []string{"nodes/llm", "scenarios", "scenarios/config", "tools"}, tests: all},
	}
)

// home says where a technology may be used: one home each. A module without a row may
// not be used at all; a new row comes with a line in docs/decisions.
type home struct {
	prefix string   // of the import path
	in     []string // folders; a trailing /* allows the folders below
	tests  []string // folders whose tests may use it besides; "*" is any
}

var homes = []home{
	{prefix: "charm.land/", in: []string{"cmd/sallyport/screen"}},
	{prefix: "database/sql", in: []string{"agent/embedded"}},
	{prefix: "github.com/aymanbagabas/go-udiff", in: []string{"cmd/sallyport", "cmd/sallyport/*", "nodes/llm/cassette", "scenarios/suite"}, tests: []string{"*"}},
	{prefix: "github.com/charmbracelet/x/vt", tests: []string{"cmd/sallyport", "cmd/sallyport/screen"}},
	{prefix: "github.com/creack/pty", tests: []string{"cmd/sallyport", "cmd/sallyport/*"}},
	{prefix: "github.com/go-json-experiment/json", in: []string{strictJSON, "nodes/llm", "tools", "tools/bridge", "tools/scriptserver", "tools/stdio"}},
	{prefix: "github.com/goccy/go-yaml", in: []string{"scenarios", "scenarios/config", "nodes/llm", "tools/docserver"}},
	{prefix: "github.com/joshdk/go-junit", tests: []string{"scenarios/suite"}},
	{prefix: "github.com/looplab/fsm", in: []string{"agent"}},
	{
		prefix: "github.com/modelcontextprotocol/go-sdk",
		in:     []string{"tools/bridge", "tools/calcserver", "tools/docserver", "tools/stdio", "tools/stdio/*"},
		tests:  []string{"cmd/sallyport", "scenarios"},
	},
	{prefix: "github.com/openai/openai-go", in: []string{"nodes/llm/*"}},
	{prefix: "github.com/rogpeppe/go-internal", tests: []string{"cmd/sallyport", "scenarios"}},
	{
		prefix: "github.com/rs/zerolog", in: []string{"cmd/sallyport", "nodes", "nodes/llm", "scenarios", "tools/*"},
		tests: []string{"nodes/llm/openai"},
	},
	{prefix: "github.com/santhosh-tekuri/jsonschema", in: []string{"tools"}, tests: []string{"*"}},
	{prefix: "github.com/spf13/", in: []string{"cmd/sallyport"}},
	{prefix: "go.temporal.io/", in: []string{"agent/temporal"}},
	// Path system calls have one home; the others lock a file, own a process, or ask a terminal.
	{
		prefix: "golang.org/x/sys",
		in:     []string{"workspace", "agent/embedded", "tools/bridge", "scenarios/suite", "cmd/sallyport", "cmd/sallyport/terminal"},
		tests:  []string{"tools/docserver"},
	},
	{
		prefix: "syscall",
		in: []string{
			"workspace", "agent/embedded", "tools/bridge", "tools/grant", "tools/scriptserver", "scenarios/suite", "cmd/sallyport", "cmd/sallyport/terminal",
		},
		tests: []string{"*"},
	},
	{prefix: "golang.org/x/term", in: []string{"cmd/sallyport", "cmd/sallyport/terminal"}, tests: []string{"cmd/sallyport/screen"}},
	{prefix: "modernc.org/sqlite", in: []string{"agent/embedded"}},
	{prefix: "net/http", in: []string{"nodes/llm/*"}, tests: []string{"*"}},
	{prefix: "pgregory.net/rapid", tests: []string{"*"}},
}

// folders are the top-level folders, with docs and those that begin with a dot.
var folders = []string{"agent", "bin", "cmd", "dist", "docs", "nodes", "scenarios", "tools", "workspace"}

// source is one Go file: where it lies and what it imports.
type source struct {
	file    string
	dir     string
	test    bool
	imports []string
}

func TestImports_FollowTheTableOfDirections(t *testing.T) {
	for _, src := range sources(t) {
		row, ok := directions[src.dir]
		if !ok {
			t.Errorf("%s: folder %s has no row in the table of directions", src.file, src.dir)
			continue
		}
		for _, imp := range src.imports {
			dep, ours := strings.CutPrefix(imp, module+"/")
			if !ours || dep == strictJSON || (src.test && (dep == src.dir || slices.Contains(row.tests, dep))) {
				continue
			}
			if !slices.Contains(row.imports, dep) {
				t.Errorf("%s: %s may not import %s", src.file, src.dir, dep)
			}
		}
	}
}

func TestImports_OneTechnologyHasOneHome(t *testing.T) {
	for _, src := range sources(t) {
		for _, imp := range src.imports {
			h, ok := homeOf(imp)
			switch {
			case !ok && thirdParty(imp):
				t.Errorf("%s: %s has no home: add a row here and a reason to docs/decisions", src.file, imp)
			case ok && !h.allows(src):
				t.Errorf("%s: %s has its home in %v", src.file, imp, h.in)
			}
		}
	}
}

// The client of models is slow to build: nothing but the command may pull it in.
func TestImports_OnlyTheCommandHoldsTheModelClient(t *testing.T) {
	graph := map[string][]string{}
	for _, src := range sources(t) {
		if !src.test {
			graph[src.dir] = append(graph[src.dir], src.imports...)
		}
	}
	const client = "nodes/llm/openai"
	for dir := range graph {
		if holds := slices.Contains(reachable(graph, dir), client); holds != (dir == client || dir == "cmd/sallyport") {
			t.Errorf("%s reaches %s: %t", dir, client, holds)
		}
	}
}

func TestRepository_HasTheseFoldersAndNoOthers(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, "."):
		case e.IsDir() && !slices.Contains(folders, name):
			t.Errorf("folder %s is not one of %v", name, folders)
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			t.Errorf("%s: code has its folder; the root holds only what is true of the whole", name)
		}
	}
	for dir := range directions {
		for _, vague := range []string{"util", "utils", "common", "helpers", "types", "internal"} {
			if slices.Contains(strings.Split(dir, "/"), vague) {
				t.Errorf("folder %s: %s names no noun", dir, vague)
			}
		}
	}
}

// The tables must bite: a rule that allows everything would pass every other test.
func TestImports_TablesRefuseWhatTheyShould(t *testing.T) {
	for _, c := range []struct {
		imp string
		src source
	}{
		{"database/sql", source{dir: "agent"}},
		{"modernc.org/sqlite", source{dir: "cmd/sallyport"}},
		{"github.com/modelcontextprotocol/go-sdk/mcp", source{dir: "nodes"}},
		{"github.com/openai/openai-go/v3", source{dir: "nodes/llm"}},
		{"github.com/openai/openai-go/v3", source{dir: "cmd/sallyport", test: true}},
		{"github.com/looplab/fsm", source{dir: "agent/embedded"}},
		{"golang.org/x/sys/unix", source{dir: "agent"}},
		{"golang.org/x/sys/unix", source{dir: "tools/grant"}},
		{"pgregory.net/rapid", source{dir: "agent"}},
		{"github.com/rs/zerolog", source{dir: "agent"}},
	} {
		h, ok := homeOf(c.imp)
		if !ok || h.allows(c.src) {
			t.Errorf("%s in %s (test %t) is allowed", c.imp, c.src.dir, c.src.test)
		}
	}
	if h, _ := homeOf("github.com/openai/openai-go/v3"); !h.allows(source{dir: "nodes/llm/openai"}) {
		t.Error("openai-go has no home under nodes/llm")
	}
	if !thirdParty("example.org/x") || thirdParty("encoding/json") || thirdParty(module+"/agent") {
		t.Error("third-party modules are not told from the rest")
	}
}

func homeOf(imp string) (home, bool) {
	for _, h := range homes {
		if imp == h.prefix || strings.HasPrefix(imp, strings.TrimSuffix(h.prefix, "/")+"/") {
			return h, true
		}
	}
	return home{}, false
}

func (h home) allows(src source) bool {
	return within(h.in, src.dir) || (src.test && within(h.tests, src.dir))
}

func within(dirs []string, dir string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool {
		below, deep := strings.CutSuffix(d, "/*")
		return d == "*" || d == dir || (deep && strings.HasPrefix(dir, below+"/"))
	})
}

// thirdParty reports whether an import path is neither ours nor of the standard library.
func thirdParty(imp string) bool {
	first, _, _ := strings.Cut(imp, "/")
	return strings.Contains(first, ".")
}

// reachable are the folders that a package's code imports, directly or not.
func reachable(graph map[string][]string, from string) []string {
	seen := map[string]bool{from: true}
	for todo := []string{from}; len(todo) > 0; todo = todo[1:] {
		for _, imp := range graph[todo[0]] {
			dir, ours := strings.CutPrefix(imp, module+"/")
			if ours && !seen[dir] {
				seen[dir] = true
				todo = append(todo, dir)
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// sources parses the imports of every Go file, whatever its build tags.
func sources(t *testing.T) []source {
	t.Helper()
	var found []source
	err := walk(func(name string) error {
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		found = append(found, source{
			file: name, dir: path.Dir(name), test: strings.HasSuffix(name, "_test.go"), imports: paths(file),
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatal("no Go file was found")
	}
	return found
}

func paths(file *ast.File) []string {
	var out []string
	for _, spec := range file.Imports {
		if imp, err := strconv.Unquote(spec.Path.Value); err == nil {
			out = append(out, imp)
		}
	}
	return out
}

// walk visits every file of the repository with its slashed name; what is built or
// belongs to git is left out, and so is what other modules and test inputs hold.
func walk(visit func(name string) error) error {
	return filepath.WalkDir(".", func(name string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a file that was there a moment ago: an editor's, or a build's
		case err != nil:
			return err
		case !e.IsDir():
			return visit(filepath.ToSlash(name))
		case name == ".git" || name == "bin" || name == "dist" || e.Name() == "testdata":
			return filepath.SkipDir
		}
		return nil
	})
}
