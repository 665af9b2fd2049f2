package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"sallyport/agent"
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

// form is a file as it is written. A task file has only the first four keys.
type form struct {
	Task     string         `yaml:"task" check:"required"`
	Model    config.Model   `yaml:"model"`
	Budgets  config.Budgets `yaml:"budgets"`
	Scenario string         `yaml:"scenario"`

	Files     map[string]string `yaml:"files"`
	Approvals []Verb            `yaml:"approvals"`
	Expect    *Expect           `yaml:"expect"`
}

// LoadFile reads a task or scenario file and its configuration. All mistakes of a file
// are one [*config.Error], each with its place and what to write instead.
func LoadFile(name string, o LoadOptions) (*Scenario, error) {
	data, err := readFile(name)
	if err != nil {
		return nil, err
	}
	f, form, err := parse(name, data)
	if err != nil {
		return nil, err
	}
	if o.Config == "" {
		if o.Config, err = config.Find(name); err != nil {
			return nil, err
		}
	}
	c, err := config.Load(o.Config, config.Options{UserDir: o.UserDir, NoUser: form.Scenario != ""})
	if err != nil {
		return nil, err
	}
	return build(name, data, f, form, c, o)
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

// parse reads the file itself and checks what can be checked without a configuration.
func parse(name string, data []byte) (*config.File, form, error) {
	var form form
	f, err := config.ParseFile(name, data)
	if err != nil {
		return nil, form, err
	}
	if err := f.Decode(&form); err != nil {
		return nil, form, err
	}
	if found := form.check(f); len(found) > 0 {
		slices.SortStableFunc(found, func(a, b config.Diagnostic) int {
			return cmp.Or(a.Line-b.Line, a.Column-b.Column)
		})
		return nil, form, &config.Error{Diagnostics: found}
	}
	return f, form, nil
}

// check lists what is wrong within the file.
func (form *form) check(f *config.File) []config.Diagnostic {
	var found []config.Diagnostic
	wrong := func(remedy, message string, path ...string) {
		found = append(found, f.Problem(remedy, message, path...))
	}
	if strings.TrimSpace(form.Task) == "" {
		wrong("say what the agent is to do", "the task is empty", "task")
	}
	if f.Root().Has("scenario") && strings.TrimSpace(form.Scenario) == "" {
		wrong("write one line that says what it shows", "the title is empty", "scenario")
	}
	if form.Scenario == "" {
		for _, key := range []string{"files", "approvals", "expect"} {
			if f.Root().Has(key) {
				wrong("add `scenario:` with a title, or remove the key", "only a scenario has this; a task works in its own workspace", key)
			}
		}
		return found
	}
	for name := range form.Files {
		if err := checkName(name); err != nil {
			wrong("write sources/NAME or reports/NAME", err.Error(), "files", name)
		}
	}
	if form.Expect == nil {
		return append(found, f.Problem("say at least in which state the run ends: `expect: {state: completed}`", "a scenario says what must hold in the end", "scenario"))
	}
	return append(found, form.Expect.check(f)...)
}

// checkName reports whether a file can be put into a workspace.
func checkName(name string) error {
	folder, base, found := strings.Cut(name, "/")
	switch {
	case !found || folder != "sources" && folder != "reports":
		return errors.New("a workspace has the folders sources and reports")
	case base == "" || base == "." || base == ".." || path.Base(base) != base || strings.ContainsRune(base, 0):
		return errors.New("this is no file of these folders")
	}
	return nil
}

// build puts a checked file and its configuration together.
func build(name string, data []byte, f *config.File, form form, c *config.Config, o LoadOptions) (*Scenario, error) {
	if err := f.Problems(form.Budgets.Widens(c.Budget, "budgets")); err != nil {
		return nil, err
	}
	s := &Scenario{
		File: name, Title: form.Scenario, Task: form.Task, Files: form.Files, Approvals: form.Approvals, Config: c,
		setup:  Setup{File: name, Servers: c.Servers, Contracts: c.Tools},
		budget: form.Budgets.Over(c.Budget),
	}
	if form.Expect != nil {
		s.Expect = *form.Expect
	}
	chosen := choice{
		scenario: s, file: f, own: form.Model, options: o, limited: form.Budgets.Cost != nil,
		script: func(from *config.Script) (llm.Script, error) { return loadScript(from, name, data) },
	}
	return s, chosen.choose()
}

// loadScript reads the turns of a scripted model: in place, in the file that named it,
// or in a file of its own, which then is the list.
func loadScript(s *config.Script, name string, data []byte) (llm.Script, error) {
	at := "$.model.script"
	switch {
	case s.File != "":
		// The task file's own path is not made absolute by package config.
		file := s.File
		if !filepath.IsAbs(file) {
			file = filepath.Join(filepath.Dir(name), file)
		}
		text, err := readFile(file)
		if err != nil {
			return llm.Script{}, s.Errorf("%v: name a file, from the folder of this one, or write the list of turns here", err)
		}
		name, data, at = file, text, "$"
	case s.Inline.File() != name:
		name = s.Inline.File()
		text, err := readFile(name)
		if err != nil {
			return llm.Script{}, fmt.Errorf("load the script: %w", err)
		}
		data = text
	}
	return parseScript(name, data, at)
}

func parseScript(name string, data []byte, at string) (llm.Script, error) {
	where, err := yaml.PathString(at)
	if err != nil {
		return llm.Script{}, fmt.Errorf("find the script in %q: %w", name, err)
	}
	node, err := where.ReadNode(strings.NewReader(string(data)))
	if err != nil {
		return llm.Script{}, scriptErr(name, data, err)
	}
	s := llm.Script{File: name, Line: node.GetToken().Position.Line}
	if _, ok := node.(*ast.SequenceNode); !ok {
		return s, scriptErr(name, data, &yaml.SyntaxError{Message: "a script is a list of turns", Token: node.GetToken()})
	}
	if err := yaml.NodeToValue(node, &s.Turns, yaml.Strict()); err != nil {
		return s, scriptErr(name, data, err)
	}
	if len(s.Turns) == 0 {
		return s, scriptErr(name, data, &yaml.SyntaxError{Message: "the script has no turn", Token: node.GetToken()})
	}
	return s, nil
}

// scriptErr gives an error of the YAML library the form of all others.
func scriptErr(name string, data []byte, err error) error {
	d := config.Diagnostic{File: name, Message: err.Error()}
	var placed yaml.Error
	if errors.As(err, &placed) {
		d.Message = "script: " + placed.GetMessage()
		if t := placed.GetToken(); t != nil && t.Position != nil {
			d.Line, d.Column = t.Position.Line, t.Position.Column
			if lines := strings.Split(string(data), "\n"); d.Line <= len(lines) {
				d.Excerpt = strings.TrimSuffix(lines[d.Line-1], "\r")
			}
		}
	}
	return &config.Error{Diagnostics: []config.Diagnostic{d}}
}

// known reports whether a word is one of a closed set.
func known[T ~string](word T, all ...T) bool { return slices.Contains(all, word) }

// check lists the words of an expectation that mean nothing.
func (e *Expect) check(f *config.File) []config.Diagnostic {
	var found []config.Diagnostic
	wrong := func(message string, path ...string) {
		found = append(found, f.Problem("", message, append([]string{"expect"}, path...)...))
	}
	if e.State != "" && !known(e.State, agent.States()...) {
		wrong(fmt.Sprintf("there is no state %q: states are %q", e.State, agent.States()), "state")
	}
	for i, c := range e.Calls {
		at := []string{"calls", fmt.Sprint(i)}
		if c.Status != "" && !known(c.Status, statuses...) {
			wrong(fmt.Sprintf("there is no status %q: statuses are %q", c.Status, statuses), append(at, "status")...)
		}
		if c.Class != "" && !known(c.Class, classes...) {
			wrong(fmt.Sprintf("there is no class %q: classes are %q", c.Class, classes), append(at, "class")...)
		}
	}
	for name, file := range e.Files {
		if err := checkName(name); err != nil {
			wrong(err.Error(), "files", name)
		}
		if file.Absent && (file.Equals != nil || file.Contains != nil || file.Lacks != nil || file.Mode != "") {
			wrong("a file that is absent has no content and no mode", "files", name)
		}
	}
	return found
}

var (
	statuses = []agent.Status{agent.StatusOK, agent.StatusRejected, agent.StatusFailed, agent.StatusResultUnknown, agent.StatusUnavailable, agent.StatusWaitingApproval}
	classes  = []agent.Class{agent.ClassOK, agent.ClassToolError, agent.ClassBudget, agent.ClassProtocolError, agent.ClassTimeout, agent.ClassPermissionRefused}
)
