package scriptserver_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sallyport/scenarios/config"
	"sallyport/tools"
	"sallyport/tools/bridge"
	"sallyport/tools/scriptserver"
)

// The test binary is also every scripted server that the tests start, and what those spawn.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "script" {
		syscall.Exit(script(os.Args[2], os.Args[3])) // at once: os.Exit sleeps for a second in a race build
	}
	if len(os.Args) > 1 && os.Args[1] == "idle" {
		flags := flag.NewFlagSet("idle", flag.PanicOnError)
		life, stubborn := flags.Duration("for", 0, ""), flags.Bool("stubborn", false, "")
		_ = flags.Parse(os.Args[2:]) // it panics instead
		scriptserver.Idle(context.Background(), *life, *stubborn)
		syscall.Exit(0)
	}
	bridge.AdoptOrphans() // as the command does: what servers spawn is in no session of ours
	os.Exit(m.Run())
}

func script(file, folder string) int {
	data, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	s, err := scriptserver.Parse(file, data)
	if err != nil {
		panic(err)
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	o := scriptserver.Options{Folder: folder, Idle: []string{self, "idle"}}
	return scriptserver.Serve(context.Background(), s, o, os.Stdin, os.Stdout, os.Stderr)
}

// read decodes a description as a scenario does.
func read(t testing.TB, yaml string) scriptserver.Script {
	t.Helper()
	var s scriptserver.Script
	if err := config.DecodeStrict("script.yaml", []byte(yaml), &s); err != nil {
		t.Fatal(err)
	}
	if problems := s.Check(); len(problems) > 0 {
		t.Fatalf("%v", problems)
	}
	return s
}

// command writes a description as the Host does, and returns the command that plays it in a folder; an
// empty folder is none.
func command(t testing.TB, yaml, folder string) []string {
	t.Helper()
	if yaml == "" {
		yaml = "name: scripted"
	}
	text, err := read(t, yaml).Encode()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "script.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, "script", file, folder}
}

// play is [command] as a child that has not been started.
func play(t testing.TB, yaml, folder string) *exec.Cmd {
	t.Helper()
	args := command(t, yaml, folder)
	return exec.Command(args[0], args[1:]...)
}

// record is what the servers in a folder received and did.
func record(t testing.TB, folder string) []scriptserver.Entry {
	t.Helper()
	all, err := scriptserver.ReadRecord(folder)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// received counts the messages of a method.
func received(t testing.TB, folder, method string) int {
	t.Helper()
	n := 0
	for _, e := range record(t, folder) {
		if e.Method == method {
			n++
		}
	}
	return n
}

func sum(text string) string {
	digest := sha256.Sum256([]byte(text))
	return hex.EncodeToString(digest[:])
}

// problems are those of a description as other packages know them.
func problems(s scriptserver.Script) []tools.Problem {
	var all []tools.Problem
	for _, p := range s.Check() {
		all = append(all, tools.Problem(p))
	}
	return all
}

// pipe gives a server these lines and returns what it wrote until it ended by itself.
func pipe(t *testing.T, yaml, folder string, lines ...string) []string {
	t.Helper()
	cmd := play(t, yaml, folder)
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

const pingLine = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
