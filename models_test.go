package sallyport_test

import (
	"path/filepath"
	"testing"

	"sallyport/scenarios"
	"sallyport/scenarios/config"
)

// Every example of the page is read as the program would read it.
func TestModelsPage_ExamplesLoad(t *testing.T) {
	dir := t.TempDir()
	home := filepath.Join(dir, "home")
	seen := 0
	for _, m := range example.FindAllStringSubmatch(string(read(t, "docs/models.md")), -1) {
		seen++
		if m[2] == config.UserFile {
			put(t, filepath.Join(home, m[2]), m[1])
			continue
		}
		put(t, filepath.Join(dir, m[2]), m[1])
	}
	if seen != 3 {
		t.Fatalf("docs/models.md holds %d examples", seen)
	}
	user, err := config.LoadUser(home)
	if err != nil {
		t.Fatalf("docs/models.md: %v", err)
	}
	none := func(string) string { return "" }
	if key, err := user.Admit("https://api.deepseek.com", none); err != nil || key.Env != "DEEPSEEK_API_KEY" {
		t.Errorf("docs/models.md: %+v, %v", key, err)
	}
	c, err := config.Load(filepath.Join(dir, config.FileName), config.Options{UserDir: home})
	if err != nil || c.Budget.Cost != 500_000 || len(c.Warnings) > 0 {
		t.Errorf("docs/models.md: %+v, %v", c, err)
	}
	other := filepath.Join(t.TempDir(), "task.yaml")
	put(t, other, string(read(t, filepath.Join(dir, "task.yaml"))))
	put(t, filepath.Join(filepath.Dir(other), config.FileName), "servers: {calc: {builtin: calc}}\ntools: {calc__add: {owner: me, risk: read, output: none}}\n")
	s, err := scenarios.LoadFile(other, scenarios.LoadOptions{UserDir: home, Getenv: none})
	if err != nil || s.Plan().Model != "openai:gpt-5-mini@api.openai.com" {
		t.Errorf("docs/models.md: %v", err)
	}
}
