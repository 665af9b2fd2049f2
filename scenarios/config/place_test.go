package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const placedServer = "servers: {x: {command: [serve, '--in={workspace}/notes', '{workspace}']}}\n"

func TestLoad_CommandNamesTheWorkspace(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, FileName)
	loaded := func(text string, noUser bool) (*Config, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return Load(file, Options{UserDir: filepath.Join(dir, "user"), NoUser: noUser})
	}
	c, err := loaded("workspace: {root: desk}\n"+placedServer, false)
	desk := filepath.Join(dir, "desk")
	if err != nil || !slices.Equal(c.Servers[0].Command, []string{"serve", "--in=" + desk + "/notes", desk}) || c.Servers[0].Audience != Audience(c.Servers[0]) {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := loaded(placedServer, false); err == nil || !strings.Contains(err.Error(), FileName+":1:15: servers.x.command: it names {workspace}, and the file has none") {
		t.Errorf("%v", err)
	}
	// A scenario gives it a folder of its own.
	c, err = loaded(placedServer, true)
	if err != nil || c.Servers[0].Command[2] != WorkspaceMark {
		t.Fatalf("%+v, %v", c, err)
	}
	if placed := Placed(c.Servers[0], "/stage"); placed.Command[1] != "--in=/stage/notes" || c.Servers[0].Command[2] != WorkspaceMark {
		t.Errorf("%+v", placed)
	}
}
