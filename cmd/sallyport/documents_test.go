package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/tools/docserver"
)

// block is the first fenced block of a page that begins with a line.
func block(t *testing.T, page, kind, first string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", page))
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(data), "```"+kind+"\n"+first)
	text, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatalf("%s holds no block that begins with %q", page, first)
	}
	return first + text
}

// What README.md shows of the demo is what the demo shows today, line by line; … stands
// for what is left out, and ids and times are others each time.
func TestReadme_ShowsTodaysDemo(t *testing.T) {
	u := newUser(t)
	s := u.open("demo")
	s.see(asks)
	s.enter("approve\n")
	code, screen := s.end()
	if code != 0 {
		t.Fatalf("exit code %d\n%s", code, screen)
	}
	screen = strings.ReplaceAll(screen, "\n  ┊ ", "")
	rest := strings.Split(screen, "\n")
	changing := regexp.MustCompile(`demo-[0-9a-f]{8}|[0-9]{2}:[0-9]{2}:[0-9]{2}\\\.[0-9]{3}`)
	for line := range strings.SplitSeq(strings.TrimSuffix(block(t, "README.md", "text", "Run demo-"), "\n"), "\n") {
		if strings.TrimSpace(line) == "…" {
			continue
		}
		pattern := changing.ReplaceAllStringFunc(regexp.QuoteMeta(line), func(m string) string {
			if strings.HasPrefix(m, "demo-") {
				return "demo-[0-9a-f]{8}"
			}
			return `[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}`
		})
		shows := regexp.MustCompile("^" + strings.ReplaceAll(pattern, "…", ".*") + "$")
		at := 0
		for at < len(rest) && !shows.MatchString(rest[at]) {
			at++
		}
		if at == len(rest) {
			t.Fatalf("README.md shows %q, which the demo does not, or not there:\n%s", line, screen)
		}
		rest = rest[at+1:]
	}
}

// The file of the document server is as the page and the help say.
func TestConfigurationPage_DocumentServer(t *testing.T) {
	file := filepath.Join(t.TempDir(), "docs.yaml")
	text := block(t, "docs/configuration.md", "yaml", "# docs.yaml\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := docserver.LoadConfig(file); err != nil {
		t.Error(err)
	}
	help := newUser(t).must(exitOK, "help", "mcp", "docs").stdout
	for _, key := range []string{"root:", "scope:", "audience:", "ledger:", "keys:"} {
		if !strings.Contains(text, "\n"+key) || !strings.Contains(help, "\n  "+key) {
			t.Errorf("%s is missing on the page or in the help:\n%s", key, help)
		}
	}
}
