package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"sallyport/agent"
	"sallyport/tools"
	"sallyport/tools/grant"
)

// UserFile is the name of the user's own file in the user's configuration directory.
const UserFile = "config.yaml"

// User is the user's own configuration: what a project file may tighten and never
// widen.
type User struct {
	// Path is the file that it was read from; empty if there is none.
	Path string `yaml:"-"`
	// Approvers are the keys that may sign. Without the section they are all public keys
	// in keys/.
	Approvers []Approver `yaml:"approvers"`
	// Budgets are what a run has if a project lowers nothing, and the most it may have.
	Budgets Budgets `yaml:"budgets"`
	// Servers raise max_tools by prefix.
	Servers []UserServer `yaml:"servers" keyed:"Prefix"`
	// Tools switch on tools that send something out.
	Tools []UserTool `yaml:"tools" keyed:"Name"`
	// State is the state directory if neither a flag nor a project names one.
	State string `yaml:"state"`
	// Model is the model if a project names none.
	Model Model `yaml:"model"`
	// Endpoints are where documents may be sent to a model, whatever project says so.
	Endpoints []UserEndpoint `yaml:"endpoints"`

	keys []agent.Approver // the approvers' keys, complete
}

// UserServer raises a limit of the server with that prefix, in whatever project.
type UserServer struct {
	Prefix   string `yaml:"-"`
	MaxTools int    `yaml:"max_tools" check:"positive"`
}

// UserTool switches a tool on, by its name in whatever project.
type UserTool struct {
	Name string `yaml:"-"`
	Send string `yaml:"send"`
}

// UserDir is the user's configuration directory of sallyport: XDG_CONFIG_HOME/sallyport,
// by default ~/.config/sallyport.
func UserDir() (string, error) { return userDir("XDG_CONFIG_HOME", ".config") }

// StateDir is where state lies if nobody says otherwise: XDG_STATE_HOME/sallyport, by
// default ~/.local/state/sallyport.
func StateDir() (string, error) { return userDir("XDG_STATE_HOME", filepath.Join(".local", "state")) }

func userDir(variable, below string) (string, error) {
	// A relative path in these variables is to be ignored.
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sallyport"), nil
	}
	home, err := homeDir()
	if err != nil {
		return "", fmt.Errorf("find the home directory (set %s to do without): %w", variable, err)
	}
	return filepath.Join(home, below, "sallyport"), nil
}

// homeDir is the home directory. A relative one would mean another in each folder that
// we are started in.
func homeDir() (string, error) {
	home, err := os.UserHomeDir()
	if err == nil && !filepath.IsAbs(home) {
		err = fmt.Errorf("HOME is %q, which is no absolute path", home)
	}
	return home, err
}

// LoadUser reads the user's own configuration in dir: config.yaml, if it exists, and
// the public keys in keys/. Without either it holds the defaults and no approver.
func LoadUser(dir string) (*User, error) {
	u := &User{}
	path := filepath.Join(dir, UserFile)
	data, err := readOwn(path, MaxFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if u.keys, err = ReadKeys(filepath.Join(dir, KeysDir)); err != nil {
			return nil, err
		}
		return u, nil
	case err != nil:
		return nil, err
	}
	keys, err := ReadKeys(filepath.Join(dir, KeysDir))
	if err != nil {
		return nil, err
	}
	return parseUser(path, data, keys)
}

func parseUser(path string, data []byte, keys []agent.Approver) (*User, error) {
	f, err := ParseFile(path, data)
	if err != nil {
		return nil, err
	}
	u := &User{}
	if err := f.Decode(u); err != nil {
		return nil, err
	}
	u.Path = path
	problems := u.Budgets.Widens(most, "budgets")
	for _, s := range u.Servers {
		if s.MaxTools > tools.MostTools {
			problems = append(problems, tools.Problem{Path: []string{"servers", s.Prefix, "max_tools"}, Message: fmt.Sprintf("at most %d tools", tools.MostTools)})
		}
	}
	for _, t := range u.Tools {
		if t.Send != "" && t.Send != tools.SendOn {
			problems = append(problems, tools.Problem{Path: []string{"tools", t.Name, "send"}, Message: "`send` is on or absent"})
		}
	}
	problems = append(problems, u.Model.problems(true)...)
	problems = append(problems, u.endpoints()...)
	problems = append(problems, u.resolve(keys, f.Root().Has("approvers"))...)
	if err := f.Problems(problems); err != nil {
		return nil, err
	}
	u.State = beside(path, u.State)
	u.Model = u.Model.beside(path)
	u.Model.own = true
	for i := range u.Endpoints {
		u.Endpoints[i].KeyFile = beside(path, u.Endpoints[i].KeyFile)
	}
	return u, nil
}

// endpoints lists what is wrong with them.
func (u *User) endpoints() []tools.Problem {
	var problems []tools.Problem
	for i, e := range u.Endpoints {
		place := []string{"endpoints", fmt.Sprint(i)}
		problems = append(problems, keyProblems(e.KeyEnv, e.KeyFile, true, place...)...)
		base, err := parseURL(e.URL)
		if err != nil {
			problems = append(problems, tools.Problem{Path: append(place, "url"), Message: err.Error()})
			continue
		}
		u.Endpoints[i].URL = base
		if slices.ContainsFunc(u.Endpoints[:i], func(o UserEndpoint) bool { return o.URL == base }) {
			problems = append(problems, tools.Problem{Path: place, Message: "this endpoint is listed already"})
		}
	}
	return problems
}

// resolve completes the approvers: names stand for keys in keys/.
func (u *User) resolve(keys []agent.Approver, listed bool) []tools.Problem {
	if !listed {
		u.keys = keys
		return nil
	}
	var problems []tools.Problem
	for i, a := range u.Approvers {
		place := []string{"approvers", fmt.Sprint(i)}
		key := agent.Approver{Key: a.Key, NotAfter: a.NotAfter, Roles: a.Roles}
		for _, r := range a.Roles {
			if !tools.IsRole(r) {
				problems = append(problems, tools.Problem{Path: append(place, "roles"), Message: fmt.Sprintf(
					"%q is no role: a word of a-z, 0-9 and -, at most 32", r)})
			}
		}
		if _, err := grant.ParsePublicKey(a.Key); err != nil {
			at := slices.IndexFunc(keys, a.named)
			if at < 0 {
				problems = append(problems, tools.Problem{Path: place, Message: fmt.Sprintf(
					"there is no key %q in %s/: write the key's line, or make one with `sallyport keys new`", a.Key, KeysDir)})
				continue
			}
			key.Key = keys[at].Key
		}
		if slices.ContainsFunc(u.keys, Approver{Key: key.Key}.sameKey) {
			problems = append(problems, tools.Problem{Path: place, Message: "this key is listed already"})
			continue
		}
		u.keys = append(u.keys, key)
	}
	return problems
}

// sameKey reports whether both are one key, whatever its name.
func (a Approver) sameKey(known agent.Approver) bool {
	x, err := grant.ParsePublicKey(a.Key)
	y, err2 := grant.ParsePublicKey(known.Key)
	return err == nil && err2 == nil && x.ID() == y.ID()
}

// Ceiling is the most that a run may have.
func (u *User) Ceiling() agent.Budget { return u.Budgets.Over(agent.DefaultBudget) }

// Keys are the approvers that the user has, complete.
func (u *User) Keys() []agent.Approver { return slices.Clone(u.keys) }

// maxTools is how many tools a project may let a server list.
func (u *User) maxTools(prefix string) int {
	for _, s := range u.Servers {
		if s.Prefix == prefix && s.MaxTools > 0 {
			return s.MaxTools
		}
	}
	return tools.DefaultMaxTools
}

// sends reports whether the user has switched the tool on.
func (u *User) sends(name string) bool {
	return slices.ContainsFunc(u.Tools, func(t UserTool) bool { return t.Name == name && t.Send == tools.SendOn })
}

// readOwn reads a file that decides who may sign: a regular one that no other user may
// write to.
func readOwn(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("look at %q: %w", path, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read %q: it is no ordinary file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0:
		return nil, fmt.Errorf("read %q: everybody may write to it: chmod o-w it first", path)
	}
	return readUpTo(file, path, limit)
}

func readUpTo(file io.Reader, path string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read %q: %w", path, err)
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("read %q: it has more than %d bytes", path, limit)
	}
	return data, nil
}

// beside resolves a path that a file names: relative to that file; ~/ is the home
// directory.
func beside(file, path string) string {
	switch {
	case path == "":
		return ""
	case path == "~" || strings.HasPrefix(path, "~/"):
		if home, err := homeDir(); err == nil {
			return filepath.Join(home, path[1:])
		}
		return path
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	}
	return filepath.Join(filepath.Dir(file), path)
}
