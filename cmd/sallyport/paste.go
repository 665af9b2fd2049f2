package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// What is printed to go on with works when it is pasted.

// stateFlag is the flag that names the state directory in use, unless it is the one
// that is used anyway.
func (a *app) stateFlag(dir string) string {
	if usual, err := defaultState(); err == nil && usual == dir {
		return ""
	}
	return "--state " + quoted(dir)
}

// quoted makes a path safe to paste into a shell.
func quoted(path string) string {
	path = filepath.Clean(path)
	if strings.IndexFunc(path, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%", r)
	}) < 0 {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// program is how to start us again: by name where that finds us, from source where
// `go run` did, else by path.
func program() string {
	path, err := os.Executable()
	switch {
	case err != nil:
		return "sallyport"
	case strings.Contains(path, string(filepath.Separator)+"go-build"):
		return "go run ./cmd/sallyport"
	}
	if found, err := exec.LookPath("sallyport"); err == nil && sameFile(found, path) {
		return "sallyport"
	}
	return quoted(path)
}

func sameFile(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	two, err := os.Stat(b)
	return err == nil && os.SameFile(one, two)
}
