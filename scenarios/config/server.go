package config

import (
	"strings"

	"sallyport/tools"
	"sallyport/tools/strictjson"
)

// completeServer makes paths absolute and fills in what grants are bound to: without a
// scope of its own a server has its prefix for one.
func completeServer(s tools.Server, file string, user *User) tools.Server {
	s.Root, s.Dir = beside(file, s.Root), beside(file, s.Dir)
	if len(s.Command) > 0 {
		s.Command = append([]string{program(file, s.Command[0])}, s.Command[1:]...)
		if s.Dir == "" {
			s.Dir = beside(file, ".")
		}
	}
	if s.Scope == "" {
		s.Scope = s.Prefix
	}
	if s.MaxTools == 0 {
		s.MaxTools = user.maxTools(s.Prefix)
	}
	s.Audience = Audience(s)
	return s
}

// program is the program of a command: a path is relative to the file, a plain name is
// looked for in PATH when the server starts.
func program(file, name string) string {
	if strings.Contains(name, "/") {
		return beside(file, name)
	}
	return name
}

// maxAudience is how many bytes an audience may have before its digest stands for it: as
// many as the digest has itself. A grant has room for that, with the longest run id and
// ordinary scopes and names.
const maxAudience = len("prefixof16bytes_@sha256:") + 64

// Audience names a server and its workspace in candidates: the prefix with the folder,
// or with the command. What would be too long, or not visible, is named by its digest.
func Audience(s tools.Server) string {
	what := strings.Join(s.Command, " ")
	if s.Builtin != "" {
		what = "builtin " + s.Builtin
		if s.Root != "" {
			what = s.Root
		}
	}
	full := s.Prefix + "@" + what
	if _, hidden := tools.Visible(full); hidden > 0 || len(full) > maxAudience {
		return s.Prefix + "@sha256:" + strictjson.Digest([]byte(what))
	}
	return full
}
