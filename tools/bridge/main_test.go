package bridge

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
)

// The test binary is also every child that the tests start. The first argument picks
// the part; children get no variable that is not listed, so it cannot be one.
var parts = map[string]func(args []string){}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if part, ok := parts[os.Args[1]]; ok {
			part(os.Args[2:])
			syscall.Exit(0) // at once: os.Exit sleeps for a second in a race build
		}
	}
	if err := overlap(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// overlap lets more tests run at once than there are processors, if nobody says
// otherwise: they wait for children, most of the time.
func overlap() error {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" || f.Name == "test.cpu" })
	if said {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
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
