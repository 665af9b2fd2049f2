package config

import (
	"fmt"
	"path/filepath"
	"slices"

	"sallyport/tools"
)

// Inline is what another file says of servers and tools in place of a configuration.
type Inline struct {
	Servers   []tools.Server
	Tools     []tools.Contract
	Workspace Workspace
	// Played are the prefixes of servers that are only played: they reach nobody, so that
	// the file itself may switch on what sends, and raise the number of their tools.
	Played []string
}

// Inline makes the configuration that the file holds itself, under the keys servers,
// tools and workspace, as [Load] with NoUser does. Mistakes are an [*Error].
func (f *File) Inline(in Inline) (*Config, error) {
	abs, err := filepath.Abs(f.name)
	if err != nil {
		return nil, fmt.Errorf("load the configuration in %q: %w", f.name, err)
	}
	c := &Config{File: abs, Servers: in.Servers, Tools: in.Tools, Workspace: in.Workspace, file: f}
	c.workspace()
	problems := tools.Validate(c.Servers, c.Tools)
	for _, p := range c.widens(&User{}) {
		if !in.permits(p) {
			problems = append(problems, p)
		}
	}
	if err := f.Problems(problems); err != nil {
		return nil, err
	}
	c.complete(&User{})
	c.Warnings = f.place(tools.Warnings(c.Tools))
	c.Tools = tools.Resolve(c.Tools)
	return c, nil
}

// permits reports whether a finding is about a server that is only played.
func (in Inline) permits(p tools.Problem) bool {
	if len(p.Path) != 3 {
		return false
	}
	prefix := p.Path[1]
	if p.Path[0] == "tools" {
		prefix = tools.Contract{Name: p.Path[1]}.Prefix()
	}
	return slices.Contains(in.Played, prefix)
}

// Contracts returns the configuration with contracts of another file: each in place of
// the one of its name, or after all others. Mistakes are at their place in that file.
func (c *Config) Contracts(f *File, contracts []tools.Contract) (*Config, error) {
	out := *c
	out.Tools = slices.Clone(c.Tools)
	for _, own := range tools.Resolve(contracts) {
		at := slices.IndexFunc(out.Tools, func(t tools.Contract) bool { return t.Name == own.Name })
		if at < 0 {
			out.Tools = append(out.Tools, own)
			continue
		}
		out.Tools[at] = own
	}
	problems := tools.Validate(out.Servers, out.Tools)
	lower := Config{Tools: contracts}
	problems = append(problems, lower.widens(&User{})...)
	return &out, f.Problems(problems)
}
