package bridge

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"testing"
)

// The test binary is also every child that the tests start. The first argument picks
// the part; children get no variable that is not listed, so it cannot be one.
var parts = map[string]func(args []string){}

// quickExit is the variable that keeps a child under the race detector from sleeping
// for a second before it ends.
const quickExit = "GORACE"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if part, ok := parts[os.Args[1]]; ok {
			part(os.Args[2:])
			return
		}
	}
	if os.Getenv(quickExit) == "" {
		if err := os.Setenv(quickExit, "atexit_sleep_ms=0"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// child is the command line that plays a part.
func child(t testing.TB, part string, args ...string) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return append([]string{exe, part}, args...)
}

// say writes one value to stdout, as a line.
func say(v any) {
	line, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}

// hear reads one value from a child's stdout.
func hear[T any](t *testing.T, r *bufio.Reader) T {
	t.Helper()
	var v T
	line, err := r.ReadBytes('\n')
	if err != nil {
		t.Fatalf("read from the child: %v", err)
	}
	if err := json.Unmarshal(line, &v); err != nil {
		t.Fatalf("the child said %q: %v", line, err)
	}
	return v
}
