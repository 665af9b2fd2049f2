package scenarios

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var pageExample = regexp.MustCompile("(?ms)^```yaml\n# ([a-z]+\\.yaml)\n(.*?)^```$")

// What the pages about the form show is played, and holds.
func TestPages_ExamplesHold(t *testing.T) {
	configuration, err := os.ReadFile("research/sallyport.yaml")
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, page := range []string{"stage", "model", "approvals", "faults", "expect", "cases"} {
		text, err := os.ReadFile("../docs/scenarios/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		put := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		put("sallyport.yaml", string(configuration))
		var files []string
		for _, m := range pageExample.FindAllStringSubmatch(string(text), -1) {
			path := put(m[1], m[2])
			if strings.HasPrefix(m[2], "scenario:") {
				files = append(files, path)
			}
		}
		for _, file := range files {
			played++
			t.Run(page+"/"+filepath.Base(file), func(t *testing.T) { hold(t, file) })
		}
	}
	if played < 7 {
		t.Errorf("%d examples were played", played)
	}
}

// What the page of scripted servers calls a whole description is one that a Host takes.
func TestPages_TheWholeDescriptionIsPlayed(t *testing.T) {
	page, err := os.ReadFile("../docs/scenarios/scripted-servers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "This is a whole description:\n\n```yaml\n")
	description, _, ok := strings.Cut(rest, "```\n")
	if !ok {
		t.Fatal("the page has no such description")
	}
	file := filepath.Join(t.TempDir(), "whole.yaml")
	if err := os.WriteFile(file, []byte(`scenario: Both tools of the library are offered, and answer
task: Find Emma, and lend it.
servers:
  library:
    script:
      `+strings.ReplaceAll(strings.TrimSpace(description), "\n", "\n      ")+`
tools:
  library__find: {owner: me, risk: read}
  library__lend: {owner: me, risk: read, result: status}
model:
  script:
    - call: {tool: library__find, args: {title: Emma}}
    - call: {tool: library__lend}
    - say: It is lent.
expect:
  calls: [{tool: library__find, status: ok}, {tool: library__lend, status: rejected, sent: true}]
`), 0o600); err != nil {
		t.Fatal(err)
	}
	hold(t, file)
}

// hold plays every case of a file.
func hold(t *testing.T, file string) {
	t.Helper()
	cases, err := LoadCases(file, LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range cases {
		r, err := played(t, s, PlayOptions{Remove: true})
		if err != nil {
			t.Errorf("%s: %v\n%s", s.Name(), err, strings.Join(r.Tail, "\n"))
		}
		for _, m := range r.Mismatches {
			t.Errorf("%s: line %d: %s\n%s", s.Name(), m.Line, m, strings.Join(r.Tail, "\n"))
		}
	}
}
