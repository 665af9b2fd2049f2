package scenarios

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"sallyport/nodes/llm"
	"sallyport/scenarios/config"
)

// LoadOptions say where the configuration of a file is.
type LoadOptions struct {
	// Config is the configuration file; empty looks for sallyport.yaml beside the file
	// and above it.
	Config string
	// UserDir holds the user's own configuration; empty is the user's. Scenarios do not
	// read it: they bring their own decisions.
	UserDir string
	// Model, if it is not empty, is the name of the model that an endpoint is asked
	// for, whatever the files say.
	Model string
	// Getenv asks the environment what files leave out; nil is [os.Getenv].
	Getenv config.Getenv
}

// LoadFile reads a task or scenario file of one case, with its configuration. All
// mistakes of a file are one [*config.Error], each with its place and what to write
// instead. A file of several cases is [ErrSeveral].
func LoadFile(name string, o LoadOptions) (*Scenario, error) {
	all, err := LoadCases(name, o)
	if err != nil {
		return nil, err
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("load %q: %w", name, ErrSeveral)
	}
	return all[0], nil
}

// load completes a file with its configuration.
func load(name string, f *config.File, form form, o LoadOptions) (*Scenario, error) {
	c, err := configuration(name, f, &form, o)
	if err != nil {
		return nil, err
	}
	return build(name, f, form, c, o)
}

// configuration is what the file itself says of servers and tools, or the
// configuration that belongs to it.
func configuration(name string, f *config.File, form *form, o LoadOptions) (*config.Config, error) {
	if form.Servers != nil {
		return form.inline(f)
	}
	path := o.Config
	if form.Config != "" {
		path = filepath.Join(filepath.Dir(name), form.Config)
	}
	if path == "" {
		var err error
		if path, err = config.Find(name); err != nil {
			return nil, err
		}
	}
	c, err := config.Load(path, config.Options{UserDir: o.UserDir, NoUser: form.Scenario != ""})
	if err != nil || form.Tools == nil {
		return c, err
	}
	return c.Contracts(f, form.Tools)
}

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the file: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read %q: it is no ordinary file", name)
	case info.Size() > config.MaxFile:
		return nil, fmt.Errorf("read %q: it has more than %d bytes", name, config.MaxFile)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	return data, nil
}

// decodeForm reads the keys of a file and checks what can be checked without a
// configuration.
func decodeForm(f *config.File) (form, error) {
	var form form
	if err := f.Decode(&form); err != nil {
		return form, err
	}
	if found := form.check(f); len(found) > 0 {
		return form, &config.Error{Diagnostics: found}
	}
	return form, nil
}

// build puts a checked file and its configuration together.
func build(name string, f *config.File, form form, c *config.Config, o LoadOptions) (*Scenario, error) {
	if err := f.Problems(form.Budgets.Widens(c.Budget, "budgets")); err != nil {
		return nil, err
	}
	s := &Scenario{
		File: name, Title: form.Scenario, Task: form.Task, Files: form.Files, Approvals: form.Approvals, Config: c,
		Covers: form.Covers, Operator: form.Operator, Faults: form.Faults, Clock: form.Clock, BegunBy: form.BegunBy, file: f,
		setup:  Setup{File: name, Servers: c.Servers, Contracts: c.Tools},
		budget: form.Budgets.Over(c.Budget),
	}
	for _, a := range form.Approvers {
		s.Approvers = append(s.Approvers, Approver(a))
	}
	var err error
	if s.scripts, err = form.scripts(f); err != nil {
		return nil, err
	}
	if form.Expect != nil {
		s.Expect = *form.Expect
		if found := s.Expect.fits(f, s); len(found) > 0 {
			return nil, &config.Error{Diagnostics: found}
		}
	}
	return s, s.model(f, form, o)
}

// model settles which model answers: one that only plays, or what the files say.
func (s *Scenario) model(f *config.File, form form, o LoadOptions) error {
	own := form.Model
	if s.setup.Obedient, s.setup.Random = own.Obedient, own.Random; own.Obedient || own.Random != nil {
		s.label = own.Kind()
		return nil
	}
	c := choice{
		scenario: s, file: f, own: own.Model, options: o, limited: form.Budgets.Cost != nil,
		script: func(from *config.Script) (llm.Script, error) { return loadScript(from, s.File) },
	}
	return c.choose()
}

// loadScript reads the turns of a scripted model: in place, in the file that named it,
// or in a file of its own, which then is the list.
func loadScript(s *config.Script, name string) (llm.Script, error) {
	if s.File == "" {
		return turns(s.Inline.File(), s.Inline.AST(), s.Inline.Excerpt)
	}
	// The task file's own path is not made absolute by package config.
	file := s.File
	if !filepath.IsAbs(file) {
		file = filepath.Join(filepath.Dir(name), file)
	}
	data, err := readFile(file)
	if err != nil {
		return llm.Script{}, s.Errorf("%v: name a file, from the folder of this one, or write the list of turns here", err)
	}
	return parseScript(file, data)
}

// parseScript reads a file that is a list of turns.
func parseScript(name string, data []byte) (llm.Script, error) {
	lines := strings.Split(string(data), "\n")
	line := func(n int) string {
		if n < 1 || n > len(lines) {
			return ""
		}
		return strings.TrimSuffix(lines[n-1], "\r")
	}
	where, err := yaml.PathString("$")
	if err != nil {
		return llm.Script{}, fmt.Errorf("find the script in %q: %w", name, err)
	}
	node, err := where.ReadNode(strings.NewReader(string(data)))
	if err != nil {
		return llm.Script{}, scriptErr(name, line, err)
	}
	return turns(name, node, line)
}

// turns decodes a list of turns; line gives lines of the file for messages.
func turns(name string, node ast.Node, line func(int) string) (llm.Script, error) {
	s := llm.Script{File: name, Line: node.GetToken().Position.Line}
	list, ok := node.(*ast.SequenceNode)
	if !ok {
		return s, scriptErr(name, line, &yaml.SyntaxError{Message: "a script is a list of turns", Token: node.GetToken()})
	}
	for _, turn := range list.Values {
		if _, blank := turn.(*ast.NullNode); blank {
			return s, scriptErr(name, line, &yaml.SyntaxError{Message: "a turn is blank: it must say, call or obey", Token: turn.GetToken()})
		}
	}
	if err := yaml.NodeToValue(node, &s.Turns, yaml.Strict()); err != nil {
		return s, scriptErr(name, line, err)
	}
	if len(s.Turns) == 0 {
		return s, scriptErr(name, line, &yaml.SyntaxError{Message: "the script has no turn", Token: node.GetToken()})
	}
	return s, nil
}

var unknownField = regexp.MustCompile(`unknown field "(.*)"$`)

// unknownScriptWord is how a turn says that a word is none of a closed set.
var unknownScriptWord = regexp.MustCompile(`^script: "(.*)" is no [a-z]+: there are (.*)$`)

// turnKeys are the keys of a script's turns and calls.
var turnKeys = []string{
	"say", "call", "calls", "obey", "expect", "expect_message", "finish", "usage", "raw", "chunks", "profile", "unavailable",
	"tool", "args", "arguments", "id", "offered",
}

// scriptErr gives an error of the YAML library the form of all others.
func scriptErr(name string, line func(int) string, err error) error {
	d := config.Diagnostic{File: name, Message: err.Error()}
	var placed yaml.Error
	if errors.As(err, &placed) {
		d.Message = "script: " + placed.GetMessage()
		if m := unknownField.FindStringSubmatch(d.Message); m != nil {
			d.Remedy = "the keys are those of a turn or a call: " + strings.Join(turnKeys, ", ")
			if near := config.Nearest(m[1], turnKeys); near != "" {
				d.Remedy = fmt.Sprintf("did you mean %q?", near)
			}
		}
		if m := unknownScriptWord.FindStringSubmatch(d.Message); m != nil {
			if near := config.Nearest(m[1], strings.Split(m[2], ", ")); near != "" {
				d.Remedy = fmt.Sprintf("did you mean %q?", near)
			}
		}
		if t := placed.GetToken(); t != nil && t.Position != nil {
			d.Line, d.Column = t.Position.Line, t.Position.Column
			d.Excerpt = line(d.Line)
		}
	}
	return &config.Error{Diagnostics: []config.Diagnostic{d}}
}
