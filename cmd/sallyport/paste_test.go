package main

import (
	"os/exec"
	"testing"
)

// What is printed to be pasted means the same path to a shell.
func TestQuoted_IsOneWordToAShell(t *testing.T) {
	for _, path := range []string{"/plain/path-1.2", "/with space", "/it's", `/a"b$(echo x)`, "/;rm -r x", "/*", "/证据", "/a\nb"} {
		out, err := exec.Command("sh", "-c", "printf %s "+quoted(path)).Output()
		if err != nil || string(out) != path {
			t.Errorf("%q is read as %q, %v", path, out, err)
		}
	}
}
