package picture

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/agent"
)

// Runs of every format of the journal are drawn, forks among them.
func TestRead_JournalsOfEveryFormat(t *testing.T) {
	files, err := filepath.Glob("../testdata/journal-v*.jsonl")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d journals, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Read(func(yield func(agent.Entry, error) bool) {
			for line := range bytes.Lines(data) {
				if !yield(agent.ParseEntry(bytes.TrimRight(line, "\n"))) {
					return
				}
			}
		})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for what, text := range everything(&s) {
			if strings.HasPrefix(what, "svg") || what == "html" {
				wellFormed(t, file+" "+what, text)
			}
		}
		if fork := strings.Contains(file, "fork"); fork != strings.Contains(s.Text(), "fork of ") {
			t.Errorf("%s: that it is a fork is told: %t\n%s", file, !fork, s.facts())
		}
	}
}
