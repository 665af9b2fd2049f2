package config

import (
	"slices"
	"strings"

	"sallyport/tools"
)

// WorkspaceMark stands, in the arguments of a server's command, for the folder of the
// workspace: the root that the configuration names, and in a scenario the folder that
// was made for that one play.
const WorkspaceMark = "{workspace}"

// Placed is a server whose command names a folder in place of the mark.
func Placed(s tools.Server, root string) tools.Server {
	if !placeable(s) {
		return s
	}
	s.Command = slices.Clone(s.Command)
	for i, arg := range s.Command {
		s.Command[i] = strings.ReplaceAll(arg, WorkspaceMark, root)
	}
	s.Audience = Audience(s)
	return s
}

// placeable reports whether a command has the mark.
func placeable(s tools.Server) bool {
	return slices.ContainsFunc(s.Command, func(arg string) bool { return strings.Contains(arg, WorkspaceMark) })
}

// unplaced reports servers that want a workspace where there is none.
func (c *Config) unplaced() []tools.Problem {
	var problems []tools.Problem
	for _, s := range c.Servers {
		if placeable(s) && c.Workspace.Root == "" {
			problems = append(problems, tools.Problem{
				Path:    []string{"servers", s.Prefix, "command"},
				Message: "it names " + WorkspaceMark + ", and the file has none: add `workspace: {root: FOLDER}`",
			})
		}
	}
	return problems
}
