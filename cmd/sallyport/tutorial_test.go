package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fence is a block of a page: its kind and its text.
var fence = regexp.MustCompile("(?ms)^```([a-z]+)\n(.*?)^```$")

// The tutorial does what it says: its files are written, its commands are given, and
// what they print is what it shows, … standing for anything.
func TestTutorial_EveryCommandPrintsWhatItShows(t *testing.T) {
	page, err := os.ReadFile("../../docs/scenarios/tutorial.md")
	if err != nil {
		t.Fatal(err)
	}
	u := newUser(t)
	u.env = append(u.env, "GOCACHE="+goEnv(t, "GOCACHE"), "GOPATH="+goEnv(t, "GOPATH"), "GOTOOLCHAIN=local")
	u.write("tutorial/.keep", "")
	commands := 0
	for _, m := range fence.FindAllStringSubmatch(string(page), -1) {
		kind, text := m[1], m[2]
		switch kind {
		case "go", "yaml":
			name, _, _ := strings.Cut(strings.TrimLeft(text, "/# "), "\n")
			u.write("tutorial/"+name, text)
		case "console":
			commands += u.console(text)
		default:
			t.Errorf("a block of kind %q is not checked", kind)
		}
	}
	if commands < 10 {
		t.Errorf("%d commands were found", commands)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// console gives the commands of a block, one after the other in one shell, and compares
// what each prints.
func (u *user) console(block string) int {
	u.t.Helper()
	parts := strings.Split("\n"+block, "\n$ ")[1:]
	script := "last=0\n"
	for i, part := range parts {
		command, _, _ := strings.Cut(part, "\n")
		script += fmt.Sprintf("(exit $last)\n%s\nlast=$?\necho @@%d\n", command, i)
	}
	sallyport := u.command()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir, cmd.Env = u.path("tutorial"), sallyport.Env
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(sallyport.Path)+":"+os.Getenv("PATH"))
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		u.t.Fatalf("%v\n%s%s", err, out, errs.String())
	}
	rest := string(out)
	for i, part := range parts {
		var got string
		got, rest, _ = strings.Cut(rest, fmt.Sprintf("@@%d\n", i))
		command, want, _ := strings.Cut(part, "\n")
		if want != "" {
			want = strings.TrimSuffix(want, "\n") + "\n"
		}
		if !shows(want, got) {
			u.t.Errorf("$ %s\nprints\n%s%s\nand not\n%s", command, got, errs.String(), want)
		}
	}
	return len(parts)
}

// shows reports whether an output is as a page has it: … stands for anything within a
// line, and alone on a line for any lines.
func shows(page, got string) bool {
	pattern := regexp.QuoteMeta(page)
	pattern = regexp.MustCompile(`(?m)^…\n`).ReplaceAllString(pattern, "(?s:.*?)")
	return regexp.MustCompile("^" + strings.ReplaceAll(pattern, "…", "[^\n]*") + "$").MatchString(got)
}

func TestShows(t *testing.T) {
	for _, c := range []struct {
		page, got string
		want      bool
	}{
		{"a … b\n", "a x y b\n", true}, {"a … b\n", "a x\nb\n", false}, {"a\n…\nb\n", "a\nx\ny\nb\n", true},
		{"a\n", "a\nb\n", false}, {"a.c\n", "abc\n", false}, {"", "", true}, {"", "x\n", false},
	} {
		if got := shows(c.page, c.got); got != c.want {
			t.Errorf("%q shows %q: %t", c.page, c.got, got)
		}
	}
}
