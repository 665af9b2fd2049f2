package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"sallyport/scenarios/config"
	"sallyport/tools"
	"sallyport/tools/scriptserver"
)

// serverForm is a server as a scenario may write it: as a configuration does, or
// scripted.
type serverForm struct {
	tools.Server
	// Script is the whole behaviour of a server that only plays.
	Script *scriptserver.Script `yaml:"script"`
}

// serverScript is the behaviour of one server of the scenario.
type serverScript struct {
	prefix string
	script scriptserver.Script
}

// inline makes the configuration that the file holds itself.
func (form *form) inline(f *config.File) (*config.Config, error) {
	in := config.Inline{Tools: form.Tools}
	if form.Workspace != nil {
		in.Workspace = *form.Workspace
	}
	var found []config.Diagnostic
	for _, s := range form.Servers {
		srv := s.Server
		if s.Script != nil {
			if srv.Builtin != "" || len(srv.Command) > 0 {
				found = append(found, f.Problem("keep one of script, builtin and command", "a server is one thing", "servers", srv.Prefix))
			}
			srv.Command = []string{program}
			in.Played = append(in.Played, srv.Prefix)
		}
		in.Servers = append(in.Servers, srv)
	}
	if len(found) > 0 {
		return nil, &config.Error{Diagnostics: found}
	}
	return f.Inline(in)
}

// program stands for the executable until the stage knows it.
const program = "sallyport"

// scripts reads the scripts of the file's servers.
func (form *form) scripts(f *config.File) ([]serverScript, error) {
	var out []serverScript
	var found []config.Diagnostic
	for _, s := range form.Servers {
		if s.Script == nil {
			continue
		}
		for _, p := range s.Script.Check() {
			found = append(found, f.Problem("", p.Message, append([]string{"servers", s.Prefix, "script"}, p.Path...)...))
		}
		out = append(out, serverScript{s.Prefix, *s.Script})
	}
	if len(found) > 0 {
		return nil, &config.Error{Diagnostics: found}
	}
	return out, nil
}

// The folder of a stage in which scripted servers act.
const playedFolder = "played"

// played is the folder of one scripted server: its script, its record, its files.
func (st *Stage) played(prefix string) string { return filepath.Join(st.Dir, playedFolder, prefix) }

// makeScripts writes the scripts of the scenario's servers.
func (st *Stage) makeScripts() error {
	for _, s := range st.Scenario.scripts {
		data, err := s.script.Encode()
		if err == nil {
			err = os.MkdirAll(st.played(s.prefix), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(st.played(s.prefix), scriptFile), data, 0o600)
		}
		if err != nil {
			return fmt.Errorf("write the script of server %q: %w", s.prefix, err)
		}
	}
	return nil
}

const scriptFile = "script.json"

// server completes a server for the stage: the workspace is the stage's, and what is
// scripted is started from our own executable.
func (st *Stage) server(srv tools.Server) tools.Server {
	if srv.Builtin == tools.BuiltinDocs {
		srv.Root = st.Desk
	}
	if slices.ContainsFunc(st.Scenario.scripts, func(s serverScript) bool { return s.prefix == srv.Prefix }) {
		dir := st.played(srv.Prefix)
		srv.Command = []string{st.Host.Self, "mcp", "script", "--config", filepath.Join(dir, scriptFile), "--folder", dir}
		srv.Dir = dir
	}
	if srv.Builtin == tools.BuiltinDocs || len(srv.Command) > 0 {
		srv.Audience = config.Audience(srv)
	}
	return srv
}
