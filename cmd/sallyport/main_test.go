package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The test binary is also the command: scripts and sessions start it as `sallyport`,
// and it starts itself for the builtin servers.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"sallyport": main, "stubserver": stub})
}

// TestCommands plays testdata/script: each command, its exit codes, what it prints and
// what it leaves behind, without a terminal.
func TestCommands(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			for _, dir := range []string{"home", "tmp"} {
				if err := os.Mkdir(filepath.Join(env.WorkDir, dir), 0o700); err != nil {
					return err
				}
			}
			scenarios, err := filepath.Abs("../../scenarios")
			if err != nil {
				return err
			}
			env.Setenv("SCENARIOS", scenarios)
			for _, v := range hostEnv(env.WorkDir) {
				name, value, _ := strings.Cut(v, "=")
				env.Setenv(name, value)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exitsWith, "left": left, "quiet": quiet, "field": field,
		},
	})
}

// hostEnv is the environment of a user who lives below dir.
func hostEnv(dir string) []string {
	return []string{
		"HOME=" + filepath.Join(dir, "home"), "TMPDIR=" + filepath.Join(dir, "tmp"),
		"XDG_CONFIG_HOME=" + filepath.Join(dir, "config"), "XDG_STATE_HOME=" + filepath.Join(dir, "state"),
		"USER=ann", "TZ=UTC", "TERM=xterm",
		"GORACE=atexit_sleep_ms=0", // else each command of a race build sleeps a second before it ends
	}
}

// exits runs a command that must end with the code: exits CODE PROGRAM ARGS...
func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var ended *exec.ExitError
	switch err := ts.Exec(args[1], args[2:]...); {
	case errors.As(err, &ended):
		got = ended.ExitCode()
	case err != nil:
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// left checks that a folder is empty, or absent.
func left(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: [!] left DIR")
	}
	entries, err := os.ReadDir(ts.MkAbs(args[0]))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		ts.Fatalf("%v", err)
	}
	if (len(entries) == 0) == neg {
		ts.Fatalf("%s holds %v", args[0], entries)
	}
}

// quiet checks that no process that was started below a folder is alive.
func quiet(ts *testscript.TestScript, _ bool, _ []string) {
	if alive := lingering(ts.Getenv("WORK")); len(alive) > 0 {
		ts.Fatalf("still alive: %q", alive)
	}
}

// field sets a variable to a member of the first JSON object on stdout:
// field NAME MEMBER.
func field(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: field NAME MEMBER")
	}
	_, after, found := strings.Cut(ts.ReadFile("stdout"), strconv.Quote(args[1])+":")
	value, _, ended := strings.Cut(strings.TrimPrefix(strings.TrimSpace(after), `"`), `"`)
	if !found || !ended {
		ts.Fatalf("stdout has no member %q", args[1])
	}
	ts.Setenv(args[0], value)
}

// processesNaming lists the command lines of live processes that mention text.
func processesNaming(text string) []string {
	var alive []string
	found, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range found {
		data, err := os.ReadFile(path)
		line := strings.ReplaceAll(string(data), "\x00", " ")
		if err == nil && strings.Contains(line, text) && !strings.Contains(path, "/"+strconv.Itoa(os.Getpid())+"/") {
			alive = append(alive, line)
		}
	}
	return alive
}

// lingering is processesNaming after what is ending has had time to end: a child that
// outlives its parent by the time that the system takes to tell it is no leak.
func lingering(text string) []string {
	alive := processesNaming(text)
	for end := time.Now().Add(2 * time.Second); len(alive) > 0 && time.Now().Before(end); alive = processesNaming(text) {
		time.Sleep(5 * time.Millisecond)
	}
	return alive
}
