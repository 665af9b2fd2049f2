package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What Open would refuse, Examine refuses, and neither makes nor changes anything.
func TestExamine_SaysWhatOpenWould(t *testing.T) {
	base := t.TempDir()
	folder := func(name string, mode os.FileMode) string {
		path := filepath.Join(base, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	begun := folder("begun", 0o700)
	e, err := Open(begun, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	wide := folder("wide-file", 0o700)
	if err := os.WriteFile(filepath.Join(wide, stateFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(wide, stateFile), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		dir           string
		exists, begun bool
		refused       string
	}{
		"not there yet":      {filepath.Join(base, "a", "b"), false, false, ""},
		"empty":              {folder("empty", 0o700), true, false, ""},
		"begun":              {begun, true, true, ""},
		"others may write":   {folder("wide", 0o777), true, false, "others may write to it (mode 0777)"},
		"a file":             {file, true, false, "not a directory"},
		"below a file":       {filepath.Join(file, "x"), false, false, "not a directory"},
		"the file is not so": {wide, true, true, "others may write to it (mode 0666)"},
	} {
		f, err := Examine(row.dir)
		if row.refused == "" && (err != nil || f.Exists != row.exists || f.Begun != row.begun || f.Room <= 0) ||
			row.refused != "" && (err == nil || !strings.Contains(err.Error(), row.refused)) {
			t.Errorf("%s: %+v, %v", name, f, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(base, "empty")); err != nil || len(entries) > 0 {
		t.Errorf("it was made: %v, %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(base, "a")); !os.IsNotExist(err) {
		t.Errorf("it was made: %v", err)
	}
}
