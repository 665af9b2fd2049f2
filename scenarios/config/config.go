package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"sallyport/agent"
	"sallyport/tools"
	"sallyport/tools/strictjson"
)

// FileName is what a project's configuration is called.
const FileName = "sallyport.yaml"

// Config is a loaded configuration: what a project's file says, completed by the
// user's own. All paths in it are absolute.
type Config struct {
	// File is the project's file.
	File string `yaml:"-" json:"-"`
	// Model answers, unless a task says otherwise.
	Model Model `yaml:"model" json:"model"`
	// Servers and Tools are in the order of the file. Names are model-side names.
	Servers []tools.Server   `yaml:"servers" keyed:"Prefix" json:"servers"`
	Tools   []tools.Contract `yaml:"tools" keyed:"Name" json:"tools"`
	// Workspace gives builtin docs servers their root and scope where they have none.
	Workspace Workspace `yaml:"workspace" json:"-"`
	// Approvers is how the project narrows the user's keys down; Keys is the outcome.
	Approvers []Approver `yaml:"approvers" json:"-"`
	// Budgets is how the project lowers the user's; Budget is the outcome.
	Budgets Budgets `yaml:"budgets" json:"-"`
	// State is the state directory; empty if neither file names one ([StateDir]).
	State string `yaml:"state" json:"-"`

	Keys     []agent.Approver `yaml:"-" json:"keys"`
	Budget   agent.Budget     `yaml:"-" json:"budget"`
	Warnings []Diagnostic     `yaml:"-" json:"-"`

	file *File // to place what is found later
}

// Workspace is the folder that runs work in.
type Workspace struct {
	// Root holds sources/ and reports/.
	Root string `yaml:"root"`
	// Scope is what grants are bound to, besides the folder.
	Scope string `yaml:"scope"`
}

// Options say where else to look.
type Options struct {
	// UserDir holds the user's own configuration; empty is [UserDir].
	UserDir string
	// NoUser leaves the user's file and keys out: the defaults are the ceiling, and
	// nobody may sign but who the caller adds. For demos and scenarios.
	NoUser bool
}

// ErrNotFound: there is no sallyport.yaml where [Find] looks.
var ErrNotFound = errors.New("no " + FileName)

// Find returns the configuration for a task file or folder: sallyport.yaml beside it,
// else in the folders above it up to the root of the repository (the folder that has
// .git). Outside a repository only the folder itself counts: whoever can write to a
// folder above must not be able to add a configuration. The error is [ErrNotFound].
func Find(start string) (string, error) {
	dir, err := filepath.Abs(start)
	if err != nil {
		return "", fmt.Errorf("find %s for %q: %w", FileName, start, err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		dir = filepath.Dir(dir)
	}
	first, root := dir, repository(dir)
	for {
		path := filepath.Join(dir, FileName)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
		if dir == root || dir == filepath.Dir(dir) {
			return "", fmt.Errorf("look for the configuration in %q and up to %q: %w: write one, or name it with --config", first, root, ErrNotFound)
		}
		dir = filepath.Dir(dir)
	}
}

// repository is the nearest folder at or above dir that has .git; dir if none has.
func repository(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// Load reads a project's configuration and the user's own, and holds the one against
// the other. Mistakes in either are an [*Error].
func Load(path string, opts Options) (*Config, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("load the configuration %q: %w", path, err)
	}
	data, err := read(abs)
	if err != nil {
		return nil, err
	}
	user := &User{}
	if !opts.NoUser {
		if user, err = loadUser(opts.UserDir); err != nil {
			return nil, err
		}
	}
	return parse(path, abs, data, user, !opts.NoUser)
}

func loadUser(dir string) (*User, error) {
	if dir == "" {
		var err error
		if dir, err = UserDir(); err != nil {
			return nil, err
		}
	}
	return LoadUser(dir)
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("load the configuration %q: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("load the configuration: %w", err)
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("load the configuration %q: it is no ordinary file", path)
	}
	return readUpTo(file, path, MaxFile)
}

// Parse reads a project's configuration from data, as [Load] with NoUser does. name is
// the file that messages name and relative paths start from.
func Parse(name string, data []byte) (*Config, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("parse the configuration %q: %w", name, err)
	}
	return parse(name, abs, data, &User{}, false)
}

// parse reads and completes a configuration. With keys, the approvers that it names
// must be the user's.
func parse(name, abs string, data []byte, user *User, keys bool) (*Config, error) {
	f, err := ParseFile(name, data)
	if err != nil {
		return nil, err
	}
	c := &Config{}
	if err := f.Decode(c); err != nil {
		return nil, err
	}
	c.File, c.file = abs, f
	c.workspace()
	problems := tools.Validate(c.Servers, c.Tools)
	problems = append(problems, c.widens(user)...)
	problems = append(problems, c.Model.Problems()...)
	if f.Root().Has("approvers") && len(c.Approvers) == 0 {
		problems = append(problems, tools.Problem{Path: []string{"approvers"}, Message: "the list is empty, so that nobody could approve: " +
			"name keys of yours (`sallyport keys list`), or remove the key to let all of them"})
	}
	if keys {
		problems = append(append(problems, c.narrow(user)...), c.unplaced()...)
	}
	if err := f.Problems(problems); err != nil {
		return nil, err
	}
	c.complete(user)
	for i := range c.Servers {
		if keys { // a scenario has a folder of its own
			c.Servers[i] = Placed(c.Servers[i], c.Workspace.Root)
		}
	}
	c.Warnings = f.place(tools.Warnings(c.Tools))
	c.Tools = tools.Resolve(c.Tools)
	return c, nil
}

// Problems puts what was found about the configuration after it was loaded, such as at
// the discovery of its tools, at its place in the file. The error is an [*Error]; nil
// if there are no problems.
func (c *Config) Problems(problems []tools.Problem) error { return c.file.Problems(problems) }

// workspace fills in what builtin docs servers leave out.
func (c *Config) workspace() {
	for i := range c.Servers {
		s := &c.Servers[i]
		if s.Builtin != tools.BuiltinDocs {
			continue
		}
		if s.Root == "" {
			s.Root = c.Workspace.Root
		}
		if s.Scope == "" {
			s.Scope = c.Workspace.Scope
		}
	}
}

// widens reports where the project's file would allow more than the user does.
func (c *Config) widens(user *User) []tools.Problem {
	problems := c.Budgets.Widens(user.Ceiling(), "budgets")
	for _, s := range c.Servers {
		if most := user.maxTools(s.Prefix); s.MaxTools > most && s.MaxTools <= tools.MostTools {
			problems = append(problems, tools.Problem{Path: []string{"servers", s.Prefix, "max_tools"}, Message: fmt.Sprintf(
				"%d is more than the %d tools that are allowed: raise `servers: {%s: {max_tools: %[1]d}}` in your own configuration", s.MaxTools, most, s.Prefix)})
		}
		for i, name := range s.Env {
			if user.keepsKey(name) {
				problems = append(problems, tools.Problem{Path: []string{"servers", s.Prefix, "env", fmt.Sprint(i)}, Message: fmt.Sprintf(
					"%s holds the key of a model, which is not passed on to a server: remove it; a key of the server's own has a variable of its own", name)})
			}
		}
	}
	for _, t := range c.Tools {
		if t.Send != "" && t.Effect == tools.EffectSend {
			problems = append(problems, tools.Problem{Path: []string{"tools", t.Name, "send"}, Message: fmt.Sprintf(
				"a project cannot switch on what sends something out: write `tools: {%s: {send: on}}` in your own configuration", t.Name)})
		}
	}
	return problems
}

// narrow takes the approvers that the project names out of the user's. A date can only
// come sooner.
func (c *Config) narrow(user *User) []tools.Problem {
	if len(c.Approvers) == 0 {
		c.Keys = user.Keys()
		return nil
	}
	var problems []tools.Problem
	for i, a := range c.Approvers {
		place := []string{"approvers", fmt.Sprint(i)}
		at := slices.IndexFunc(user.keys, a.named)
		if at < 0 {
			problems = append(problems, tools.Problem{Path: place, Message: "this key is not among your approvers: a project cannot add one; " +
				"name a key of yours (`sallyport keys list`), or add it to your own configuration"})
			continue
		}
		key := user.keys[at]
		if len(a.Roles) > 0 {
			problems = append(problems, tools.Problem{Path: append(place, "roles"), Message: "roles are given in your own configuration: a project cannot widen what a key may sign"})
		}
		if !a.NotAfter.IsZero() && (key.NotAfter.IsZero() || a.NotAfter.Before(key.NotAfter)) {
			key.NotAfter = a.NotAfter
		}
		if slices.ContainsFunc(c.Keys, Approver{Key: key.Key}.sameKey) {
			problems = append(problems, tools.Problem{Path: place, Message: "this key is named already"})
			continue
		}
		c.Keys = append(c.Keys, key)
	}
	return problems
}

// complete fills in defaults and makes paths absolute.
func (c *Config) complete(user *User) {
	c.Budget = c.Budgets.Over(user.Ceiling())
	if c.State = beside(c.File, c.State); c.State == "" {
		c.State = user.State
	}
	c.Model = c.Model.beside(c.File).Over(user.Model)
	c.Workspace.Root = beside(c.File, c.Workspace.Root)
	for i := range c.Servers {
		c.Servers[i] = completeServer(c.Servers[i], c.File, user)
	}
	for i, t := range c.Tools {
		if t.Effect == tools.EffectSend && user.sends(t.Name) {
			c.Tools[i].Send = tools.SendOn
		}
	}
}

// Digest is the SHA-256, in lower-case hex, of all that the configuration means for a
// run. How the file is written does not count; folders that it names do.
func (c *Config) Digest() string {
	data, err := strictjson.Encode(c)
	if err != nil {
		// The struct is ours and holds text that was checked to be UTF-8.
		panic(fmt.Sprintf("config: encode for the digest: %v", err))
	}
	return strictjson.Digest(data)
}
