package config

import "fmt"

// Model says which model answers. Exactly one member is set, or none where another
// file says it.
type Model struct {
	// Script is a scripted model: what it proposes and answers is written down.
	Script *Script `yaml:"script" json:"script,omitempty"`
}

// Kind names the member that is set; empty if none is.
func (m Model) Kind() string {
	if m.Script != nil {
		return "script"
	}
	return ""
}

// Script is a scripted model: the name of a file, or the turns themselves.
type Script struct {
	// File is the path of the script; absolute once loaded.
	File string `json:"file,omitempty"`
	// Inline holds the turns where they are written in place. Package scenarios decodes
	// them.
	Inline Node `json:"inline,omitzero"`

	at Node // where it is said
}

// Errorf is an error at the place that names the script.
func (s *Script) Errorf(format string, args ...any) error { return s.at.Errorf(format, args...) }

// UnmarshalConfig reads a text, the name of a file, or a list or mapping, the script.
func (s *Script) UnmarshalConfig(n Node) error {
	s.at = n
	file, named := n.Text()
	switch {
	case named && file != "":
		s.File = file
	case n.IsList() || n.IsMapping():
		s.Inline = n
	default:
		return fmt.Errorf("a script is the name of a file, or the list of its turns")
	}
	return nil
}
