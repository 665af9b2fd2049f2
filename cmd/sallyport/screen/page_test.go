package screen

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page of the screen has the keys as the help has them, and screens that were
// captured.
func TestPage_SaysWhatTheScreenDoes(t *testing.T) {
	page := contents(t, "../../../docs/screen.md")
	for _, k := range table() {
		if row := "| `" + k.name + "` | " + k.does + " |\n"; !strings.Contains(page, row) {
			t.Errorf("docs/screen.md lacks %s", row)
		}
	}
	if n := strings.Count(page, "\n| `"); n != len(table()) {
		t.Errorf("docs/screen.md has %d keys, the screen %d", n, len(table()))
	}
	for _, name := range []string{"small-candidate", "small-candidate-end", "large-candidate"} {
		if !strings.Contains(page, "\n```text\n"+contents(t, filepath.Join("testdata", name+".txt"))+"```\n") {
			t.Errorf("docs/screen.md lacks the screen %s as it was captured", name)
		}
	}
}

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
