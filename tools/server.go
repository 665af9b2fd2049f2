package tools

import "time"

// Server is one tool server as trusted configuration describes it: a builtin that the
// Host starts from its own executable, or a command. Servers speak over stdio.
type Server struct {
	// Prefix is the key under `servers`; every tool of the server is exposed as
	// Prefix__alias (SPEC B1).
	Prefix string `yaml:"-" json:"prefix"`
	// Builtin is docs or calc, or empty for a Command.
	Builtin string `yaml:"builtin" json:"builtin,omitempty"`
	// Root is the workspace folder of the builtin docs; absolute once loaded.
	Root string `yaml:"root" json:"root,omitempty"`
	// Scope is what a grant is bound to besides the audience; never from the model.
	Scope string `yaml:"scope" json:"scope,omitempty"`
	// Command is the program with its arguments; no shell is involved.
	Command []string `yaml:"command" json:"command,omitempty"`
	// Dir is the working directory of Command; absolute once loaded.
	Dir string `yaml:"dir" json:"dir,omitempty"`
	// Env names the variables that are passed on; all others are withheld.
	Env []string `yaml:"env" json:"env,omitempty"`
	// Timeout bounds the handshake, each list page and each call, in total (SPEC B8).
	// Zero is [DefaultTimeout].
	Timeout Duration `yaml:"timeout" json:"timeout,omitempty" check:"positive"`
	// MaxTools is how many tools the server may list. Zero is [DefaultMaxTools]; only
	// the user's own file may raise it (SPEC B3).
	MaxTools int `yaml:"max_tools" json:"max_tools,omitempty" check:"positive"`
	// Protocol pins one protocol version. Empty accepts any of Protocols.
	Protocol string `yaml:"protocol" json:"protocol,omitempty"`
	// Protocols are the accepted versions. Empty is [DefaultProtocols] (SPEC B14).
	Protocols []string `yaml:"protocols" json:"protocols,omitempty"`
	// MirrorText makes the builtin docs repeat its structured result as text, for
	// hosts that read nothing else (SPEC D7).
	MirrorText bool `yaml:"mirror_text" json:"mirror_text,omitempty"`
	// Optional says that a run may start although the server is missing.
	Optional bool `yaml:"optional" json:"optional,omitempty"`
	// Audience names server and workspace in candidates; derived when loaded.
	Audience string `yaml:"-" json:"audience,omitempty"`
}

// The builtin servers.
const (
	BuiltinDocs = "docs"
	BuiltinCalc = "calc"
)

// Defaults and limits of a server.
const (
	// DefaultTimeout bounds handshake, list page and call (SPEC B8).
	DefaultTimeout = 5 * time.Second
	// MaxTimeout is the longest limit that configuration may set.
	MaxTimeout = 10 * time.Minute
	// DefaultMaxTools is how many tools a server may list, all counted (SPEC B3).
	DefaultMaxTools = 16
	// MostTools bounds what max_tools may be raised to.
	MostTools = 1024
)

// DefaultProtocols are the protocol versions that are accepted, the preferred first
// (SPEC B14).
var DefaultProtocols = []string{"2026-07-28", "2025-11-25"}

// Limit is the server's time limit with the default filled in.
func (s Server) Limit() time.Duration {
	if s.Timeout == 0 {
		return DefaultTimeout
	}
	return s.Timeout.Std()
}

// ToolLimit is how many tools the server may list.
func (s Server) ToolLimit() int {
	if s.MaxTools == 0 {
		return DefaultMaxTools
	}
	return s.MaxTools
}

// Accepts lists the protocol versions that may be negotiated with the server.
func (s Server) Accepts() []string {
	switch {
	case s.Protocol != "":
		return []string{s.Protocol}
	case len(s.Protocols) > 0:
		return s.Protocols
	}
	return DefaultProtocols
}
