package bridge

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"sallyport/tools"
)

func init() {
	parts["complain"] = func([]string) {
		_, _ = os.Stderr.WriteString("line \x1b]8;;\a\u202e\u200b\U000E0041\xff\nend\r")
		syscall.Exit(2)
	}
	// What the Host's own executable is asked when it starts a builtin.
	parts["mcp"] = func(args []string) {
		say(args)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

func TestLaunch_Builtins(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{Self: "/self", StateDir: dir, Keys: []string{"ed25519 AAAA ann"}}
	docs := tools.Server{Prefix: "docs", Builtin: tools.BuiltinDocs, Root: "/desk", Scope: "desk/reading", Audience: "docs@desk", MirrorText: true}
	contracts := []tools.Contract{{Name: "docs__save_report", Risk: "destructive", GrantField: "grant"}}
	cmd, err := cfg.launch(docs, contracts, "run-1")
	if err != nil {
		t.Fatal(err)
	}
	if len(cmd.args) != 5 || !slices.Equal(cmd.args[:4], []string{"/self", "mcp", "docs", "--config"}) || cmd.run != "run-1" || cmd.pass != nil {
		t.Fatalf("%+v", cmd)
	}
	text, err := os.ReadFile(cmd.args[4])
	if err != nil {
		t.Fatal(err)
	}
	var got docsConfig
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.Root != "/desk" || got.Scope != "desk/reading" || got.Audience != "docs@desk" || !slices.Equal(got.Keys, cfg.Keys) || got.Approvers != 2 || !got.MirrorText {
		t.Errorf("%+v", got)
	}
	if filepath.Dir(got.Ledger) != filepath.Join(dir, "ledger") {
		t.Errorf("ledger %s", got.Ledger)
	}
	for path, mode := range map[string]os.FileMode{cmd.args[4]: 0o600, got.Ledger: os.ModeDir | 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}

	again, err := cfg.launch(docs, contracts, "run-2")
	if err != nil || again.args[4] != cmd.args[4] {
		t.Errorf("the same configuration lies in another file: %v, %v", again.args, err)
	}
	docs.Root = "/other"
	other, err := cfg.launch(docs, contracts, "run-2")
	if err != nil || other.args[4] == cmd.args[4] {
		t.Errorf("another workspace shares the file: %v, %v", other.args, err)
	}
	calc, err := cfg.launch(tools.Server{Prefix: "calc", Builtin: tools.BuiltinCalc}, nil, "r")
	if err != nil || !slices.Equal(calc.args, []string{"/self", "mcp", "calc"}) {
		t.Errorf("%+v, %v", calc, err)
	}
	for name, bad := range map[string]Config{"no executable": {StateDir: dir}, "no state": {Self: "/self"}} {
		if _, err := bad.launch(docs, contracts, "r"); err == nil {
			t.Errorf("%s: started", name)
		}
	}
}
