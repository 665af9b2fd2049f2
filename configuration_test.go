package sallyport_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sallyport/scenarios"
	"sallyport/scenarios/config"
	"sallyport/tools/grant"
)

var example = regexp.MustCompile("(?ms)^```yaml\n(# ([a-z.]+)\n.*?)^```$")

// Every example of the page is read as the program would read it.
func TestConfigurationPage_ExamplesLoad(t *testing.T) {
	seen := map[string]int{}
	dir := t.TempDir()
	for _, m := range example.FindAllStringSubmatch(string(read(t, "docs/configuration.md")), -1) {
		text, name := m[1], m[2]
		seen[name]++
		switch name {
		case config.FileName:
			put(t, filepath.Join(dir, name), text)
			c, err := config.Parse(filepath.Join(dir, name), []byte(text))
			if err != nil {
				t.Errorf("docs/configuration.md: %v", err)
			} else if len(c.Warnings) > 0 {
				t.Errorf("docs/configuration.md: %v", c.Warnings)
			}
		case config.UserFile:
			loadUserExample(t, text)
		default:
			put(t, filepath.Join(dir, name), text)
		}
	}
	for _, name := range []string{"task.yaml", "scenario.yaml"} {
		s, err := scenarios.LoadFile(filepath.Join(dir, name), scenarios.LoadOptions{UserDir: t.TempDir()})
		if err != nil {
			t.Errorf("docs/configuration.md: %v", err)
		} else if s.IsScenario() != (name == "scenario.yaml") {
			t.Errorf("docs/configuration.md: %s is taken for something else", name)
		}
	}
	for _, name := range []string{config.FileName, config.UserFile, "task.yaml", "turns.yaml", "scenario.yaml"} {
		if seen[name] != 1 {
			t.Errorf("docs/configuration.md holds %d examples of %s", seen[name], name)
		}
	}
}

func loadUserExample(t *testing.T, text string) {
	t.Helper()
	dir := t.TempDir()
	key, err := grant.NewPrivateKey("alice", strings.NewReader(strings.Repeat("k", 64)))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, config.KeysDir, "alice.pub"), key.Public().String()+"\n")
	put(t, filepath.Join(dir, config.UserFile), text)
	if _, err := config.LoadUser(dir); err != nil {
		t.Errorf("docs/configuration.md: %v", err)
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
