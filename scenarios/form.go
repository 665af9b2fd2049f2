package scenarios

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sallyport/agent"
	"sallyport/scenarios/config"
	"sallyport/tools"
)

// form is a file as it is written. A task file has only the first four keys.
type form struct {
	Task     string         `yaml:"task" check:"required"`
	Model    modelForm      `yaml:"model"`
	Budgets  config.Budgets `yaml:"budgets"`
	Scenario string         `yaml:"scenario"`

	Covers    []string             `yaml:"covers"`
	Config    string               `yaml:"config"`
	Servers   []serverForm         `yaml:"servers" keyed:"Prefix"`
	Tools     []tools.Contract     `yaml:"tools" keyed:"Name"`
	Workspace *config.Workspace    `yaml:"workspace"`
	Approvers []approverForm       `yaml:"approvers" keyed:"Name"`
	BegunBy   string               `yaml:"begun_by"`
	Files     map[string]StageFile `yaml:"files"`
	Approvals []Deliveries         `yaml:"approvals"`
	Operator  []Action             `yaml:"operator"`
	Faults    []Fault              `yaml:"faults"`
	Clock     []ClockJump          `yaml:"clock"`
	Expect    *Expect              `yaml:"expect"`

	Parameters config.Node `yaml:"parameters"`
	Matrix     config.Node `yaml:"matrix"`
	Include    config.Node `yaml:"include"`
}

// taskKeys are the keys that a task file has too.
var taskKeys = []string{"task", "model", "budgets", "scenario"}

// modelForm is a model as a scenario may write it: what a configuration knows, and two
// that only play.
type modelForm struct {
	config.Model
	// Obedient is a model that does whatever the last tool output asks for.
	Obedient bool `yaml:"obedient"`
	// Random is the seed of a model that tries everything.
	Random *int64 `yaml:"random"`
}

// Kind names the member that is set; empty if none is.
func (m modelForm) Kind() string {
	switch {
	case m.Obedient:
		return "obedient"
	case m.Random != nil:
		return "random"
	}
	return m.Model.Kind()
}

// approverForm is an approver who is made for one play.
type approverForm struct {
	Name  string   `yaml:"-"`
	Roles []string `yaml:"roles"`
}

// UnmarshalConfig reads a mapping, which may be empty.
func (a *approverForm) UnmarshalConfig(n config.Node) error {
	type plain approverForm
	var p plain
	if err := n.Decode(&p); err != nil {
		return err
	}
	*a = approverForm(p)
	return nil
}

// check lists what is wrong within the file.
func (form *form) check(f *config.File) []config.Diagnostic {
	c := &formCheck{file: f, form: form}
	if strings.TrimSpace(form.Task) == "" {
		c.wrong("say what the agent is to do", "the task is empty", "task")
	}
	if f.Root().Has("scenario") && strings.TrimSpace(form.Scenario) == "" {
		c.wrong("write one line that says what it shows", "the title is empty", "scenario")
	}
	if form.Scenario == "" {
		c.task()
	} else {
		c.scenario()
	}
	slices.SortStableFunc(c.found, func(a, b config.Diagnostic) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return c.found
}

// formCheck holds the parts of a file against each other.
type formCheck struct {
	file  *config.File
	form  *form
	found []config.Diagnostic
}

func (c *formCheck) wrong(remedy, message string, path ...string) {
	c.found = append(c.found, c.file.Problem(remedy, message, path...))
}

// task refuses what only a scenario has.
func (c *formCheck) task() {
	for _, key := range c.file.Root().Keys() {
		if !slices.Contains(taskKeys, key) {
			c.wrong("add `scenario:` with a title, or remove the key", "only a scenario has this; a task works in its own workspace", key)
		}
	}
	if c.form.Model.Obedient || c.form.Model.Random != nil {
		c.wrong("add `scenario:` with a title, or name another model", "only a scenario is played by such a model", "model")
	}
}

func (c *formCheck) scenario() {
	for i, id := range c.form.Covers {
		if !coverage.MatchString(id) {
			c.wrong("write ids such as M4, D9 or B9-3", fmt.Sprintf("%q is no id of a rule or a case", id), "covers", fmt.Sprint(i))
		}
	}
	c.model()
	c.files()
	c.people()
	c.actions()
	c.expectation()
}

func (c *formCheck) model() {
	m, kinds := c.form.Model, 0
	for _, set := range []bool{m.Obedient, m.Random != nil, m.Model.Kind() != ""} {
		if set {
			kinds++
		}
	}
	if kinds > 1 {
		c.wrong("keep one of script, obedient, random, replay and openai", "one model answers, and several are named", "model")
	}
	if c.file.Root().Get("model").Has("obedient") && !m.Obedient {
		c.wrong("write obedient: true, or remove the key", "this is no model", "model", "obedient")
	}
	for _, p := range m.Problems() {
		c.wrong("", p.Message, p.Path...)
	}
	if c.form.Config != "" && c.form.Servers != nil {
		c.wrong("remove one of the two", "servers stand here, so that no configuration is read", "config")
	}
	if c.form.Workspace != nil && c.form.Servers == nil {
		c.wrong("write the servers here too, or remove the key", "this completes the servers of this file, and it has none", "workspace")
	}
}

func (c *formCheck) files() {
	for name, file := range c.form.Files {
		if err := checkStaged(name); err != nil {
			c.wrong("write sources/NAME, reports/NAME or outside/NAME", err.Error(), "files", name)
		}
		if message, remedy := file.mistake(); message != "" {
			c.wrong(remedy, message, "files", name)
		}
		if file.Hardlink != "" {
			if _, there := c.form.Files[file.Hardlink]; !there {
				c.wrong("name a file of this list", fmt.Sprintf("there is no file %q to be linked", file.Hardlink), "files", name, "hardlink")
			}
		}
		if file.From != "" && filepath.Base(file.From) != file.From {
			c.wrong("put the file beside the scenario, and name it alone", "a file is taken from the scenario's own folder only", "files", name, "from")
		}
	}
}

// people checks approvers and the decisions that they give.
func (c *formCheck) people() {
	names := []string{}
	for _, a := range c.form.Approvers {
		names = append(names, a.Name)
		if !keyName.MatchString(a.Name) {
			c.wrong("write a word of a-z, 0-9 and -", fmt.Sprintf("%q is no name of a key", a.Name), "approvers", a.Name)
		}
		for i, role := range a.Roles {
			if !keyName.MatchString(role) {
				c.wrong("write a word of a-z, 0-9 and -", fmt.Sprintf("%q is no role", role), "approvers", a.Name, "roles", fmt.Sprint(i))
			}
		}
	}
	if c.file.Root().Has("approvers") && len(names) == 0 {
		c.wrong("name at least one, such as `approvers: {ann: {}}`, or remove the key", "nobody could approve", "approvers")
	}
	known := func(name string, path ...string) {
		if name == "" || slices.Contains(names, name) {
			return
		}
		remedy := "add `approvers: {" + name + ": {}}`"
		if near := config.Nearest(name, names); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", near)
		}
		c.wrong(remedy, fmt.Sprintf("there is no approver %q", name), path...)
	}
	granted := false
	for i, all := range c.form.Approvals {
		for j, d := range all.List {
			at := append([]string{"approvals", fmt.Sprint(i)}, all.step(j)...)
			known(d.By, append(at, "by")...)
			if message, remedy := d.mistake(granted); message != "" {
				c.wrong(remedy, message, at...)
			}
			granted = granted || d.Do == VerbApprove
		}
	}
	for i, a := range c.form.Operator {
		known(a.By, "operator", fmt.Sprint(i), "by")
	}
}

func (c *formCheck) actions() {
	for i, a := range c.form.Operator {
		if message, remedy, key := a.mistake(); message != "" {
			c.wrong(remedy, message, "operator", fmt.Sprint(i), key)
		}
	}
	for i, f := range c.form.Faults {
		message, remedy, key := f.mistake()
		at := []string{"faults", fmt.Sprint(i), key}
		if key == "" { // it is about the whole fault
			at = at[:2]
		}
		if message != "" {
			c.wrong(remedy, message, at...)
		}
	}
	if len(c.form.Faults) > 0 && c.form.Expect != nil && c.form.Expect.Begin != nil {
		c.wrong("remove one of the two", "a run that does not begin has no fault", "faults")
	}
}

func (c *formCheck) expectation() {
	if c.form.Expect == nil {
		c.wrong("say at least in which state the run ends: `expect: {state: completed}`", "a scenario says what must hold in the end", "scenario")
		return
	}
	if len(c.file.Root().Get("expect").Keys()) == 0 {
		c.wrong("say at least in which state the run ends: `expect: {state: completed}`", "nothing is expected", "expect")
	}
	c.found = append(c.found, c.form.Expect.check(c.file)...)
}

// checkStaged reports whether a name is one of a file that is put on a stage.
func checkStaged(name string) error {
	folder, _, found := strings.Cut(name, "/")
	switch {
	case name == "sources" || name == "reports":
		return nil
	case !found || folder != "sources" && folder != "reports" && folder != "outside":
		return errors.New("a workspace has the folders sources and reports; beside it lies outside")
	}
	return checkBelow(name)
}

func checkBelow(name string) error {
	for _, part := range strings.Split(name, "/") {
		if part == "" || part == "." || part == ".." || strings.ContainsRune(part, 0) {
			return errors.New("this is no file of these folders")
		}
	}
	return nil
}

// known reports whether a word is one of a closed set.
func known[T ~string](word T, all ...T) bool { return slices.Contains(all, word) }

var (
	statuses = []agent.Status{agent.StatusOK, agent.StatusRejected, agent.StatusFailed, agent.StatusResultUnknown, agent.StatusUnavailable, agent.StatusWaitingApproval}
	classes  = []agent.Class{agent.ClassOK, agent.ClassToolError, agent.ClassBudget, agent.ClassProtocolError, agent.ClassTimeout, agent.ClassPermissionRefused}
)
