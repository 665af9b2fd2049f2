package suite

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/scenarios"
	"sallyport/tools/calcserver"
	"sallyport/tools/docserver"
)

// The test binary is also the executable that plays a case and that builtin servers
// are started from, and a player that does what it should not.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "play":
			self, err := os.Executable()
			if err == nil {
				err = Play(context.Background(), os.Stdin, os.Stdout, scenarios.StageOptions{Self: self})
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case "odd":
			odd()
		case "linger":
			signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
			<-context.Background().Done()
		case "mcp":
			if os.Args[2] == "docs" {
				os.Exit(docserver.Serve(context.Background(), os.Args[4], os.Stdin, os.Stdout, os.Stderr))
			}
			os.Exit(calcserver.Serve(context.Background(), os.Stdin, os.Stdout, os.Stderr))
		}
	}
	os.Exit(m.Run())
}

// odd is a player that does what the name of its case says.
func odd() {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		panic(err)
	}
	say := func(r Result) {
		if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
			panic(err)
		}
	}
	makeFolder := func() {
		if err := os.MkdirAll(o.Dir+"/state/locked", 0o700); err != nil {
			panic(err)
		}
	}
	name, _, _ := strings.Cut(o.Name, "-")
	switch name {
	case "passes":
		say(Result{Status: StatusPassed})
	case "fails":
		makeFolder()
		say(Result{Status: StatusFailed, Failures: []Failure{{File: o.File, Line: 3, What: "expect.state", Want: "failed", Got: "completed"}}})
	case "locks":
		makeFolder()
		_ = os.WriteFile(o.Dir+"/state/locked/file", nil, 0o600)
		_ = os.Chmod(o.Dir+"/state/locked", 0)
		_ = os.Mkdir(os.Getenv("TMPDIR")+"/left", 0)
		say(Result{Status: StatusPassed})
	case "panics":
		panic("out of order")
	case "exits":
		os.Exit(0)
	case "floods":
		fmt.Fprintln(os.Stderr, strings.Repeat("noise\n", 1<<20)+"the end")
		fmt.Println(`{"status":"passed","run":"` + strings.Repeat("x", maxAnswer) + `"}`)
	case "hangs":
		signal.Ignore(syscall.SIGTERM)
		linger()
		<-context.Background().Done()
	case "leaves":
		linger()
		say(Result{Status: StatusPassed})
	case "obeys": // stops when it is told to
		_, _ = os.Stdin.Read(make([]byte, 1))
		say(Result{Status: StatusError, Failures: []Failure{{Message: "context canceled"}}})
	}
	os.Exit(0)
}

// linger leaves a process behind that has a session of its own, no environment, and
// holds the pipes open.
func linger() {
	cmd := exec.Command(os.Args[0], "linger", lingerMark)
	cmd.Env, cmd.Stdout, cmd.Stderr = []string{}, os.Stdout, os.Stderr
	cmd.SysProcAttr = detached()
	if err := cmd.Start(); err != nil {
		panic(err)
	}
	time.Sleep(10 * time.Millisecond) // so that it has replaced its image in most rounds
}

// lingerMark tells the processes of this test from those of another.
var lingerMark = "suite-test-linger"
