package suite

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/scenarios"
)

const (
	calcConfig   = "servers: {calc: {builtin: calc}}\ntools: {calc__add: {owner: me, risk: read, output: none}}\n"
	calcScenario = `scenario: Seven and five
task: Add.
model:
  script:
    - call: {tool: calc__add, args: {a: 7, b: 5}}
    - say: It is 12.
expect: {state: completed}
`
)

// tree makes files below a folder that becomes the current one.
func tree(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := os.Mkdir(".git", 0o700); err != nil { // so that a configuration counts for the folders below it
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func names(cases []Case) []string {
	out := make([]string, len(cases))
	for i, c := range cases {
		out[i] = c.Name
	}
	return out
}

func TestFind(t *testing.T) {
	tree(t, map[string]string{
		"sallyport.yaml": calcConfig, "task.yaml": "task: Add.\nmodel: {script: [{say: x}]}\n",
		"b/two.yaml": calcScenario, "a.yaml": calcScenario, "b/c/three.yaml": calcScenario, "b/c/four.yml": calcScenario,
		".hidden/five.yaml": calcScenario, "b/testdata/wrong.yaml": "[", "b/other.yaml": "x: &a 1\ny: *a\n---\nz: 1\n", "b/notes.txt": "scenario: x",
	})
	if err := os.Symlink("a.yaml", "again.yaml"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		paths []string
		want  []string
	}{
		{[]string{"."}, []string{"a", "b/c/four", "b/c/three", "b/two"}},
		{[]string{"./b"}, []string{"b/c/four", "b/c/three", "b/two"}},
		{[]string{"b/two.yaml", "b", "./b/../b"}, []string{"b/two", "b/c/four", "b/c/three"}},
		{[]string{"b/*.yaml"}, []string{"b/two"}},
		{[]string{"*"}, []string{"a", "b/c/four", "b/c/three", "b/two"}},
		{[]string{"again.yaml", "a.yaml"}, []string{"again"}},
		{[]string{"b/c/four.yml"}, []string{"b/c/four"}},
		{[]string{".hidden"}, []string{".hidden/five"}},
		{[]string{"task.yaml", "sallyport.yaml"}, nil},
		{[]string{".hidden/f[a-i]ve.yaml"}, []string{".hidden/five"}},
	} {
		found, err := Find(c.paths, scenarios.LoadOptions{})
		if err != nil {
			t.Errorf("%q: %v", c.paths, err)
		} else if got := names(found.Cases); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.paths, got, c.want)
		}
	}
	found, err := Find([]string{"b"}, scenarios.LoadOptions{})
	if err != nil || !slices.Equal(found.Passed, []string{"b/other.yaml"}) || found.Cases[0].Title != "Seven and five" || found.Cases[0].File != "b/c/four.yml" || len(found.Warnings) != 0 {
		t.Errorf("%+v, %v", found, err)
	}
}

// Everything that is wrong is said at once.
func TestFind_NamesEveryFileThatCannotBeRead(t *testing.T) {
	tree(t, map[string]string{
		"sallyport.yaml": calcConfig, "good.yaml": calcScenario, "broken.yaml": "scenario: [\n",
		"typo.yaml": strings.Replace(calcScenario, "expect", "expct", 1), "large.yaml": strings.Repeat("#", 1<<20+1),
	})
	if err := os.Symlink("nowhere", "dangling.yaml"); err != nil {
		t.Fatal(err)
	}
	_, err := Find([]string{".", "missing", "", "none-*.yaml", "b[", "missing/[.yaml"}, scenarios.LoadOptions{})
	if err == nil {
		t.Fatal("it is no error")
	}
	for _, want := range []string{
		"broken.yaml:", "typo.yaml:7:1: ", "large.yaml\" has more than", "dangling.yaml", "stat missing: no such",
		"a path is empty", `nothing matches "none-*.yaml"`, `pattern "b["`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("nothing says %s:\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "good.yaml") {
		t.Errorf("a good file is named:\n%v", err)
	}
}

// A mistake in a configuration that many share is one.
func TestFind_SharedMistakeIsSaidOnce(t *testing.T) {
	tree(t, map[string]string{"sallyport.yaml": "servers: {calc: {}}\n", "a.yaml": calcScenario, "b.yaml": calcScenario})
	_, err := Find([]string{"."}, scenarios.LoadOptions{})
	if err == nil || strings.Count(err.Error(), "sallyport.yaml:1:") != 1 {
		t.Errorf("%v", err)
	}
}

func TestFind_NamesAreUnique(t *testing.T) {
	tree(t, map[string]string{"sallyport.yaml": calcConfig, "a.yaml": calcScenario, "a.yml": calcScenario})
	_, err := Find([]string{"a.yaml", "a.yml"}, scenarios.LoadOptions{})
	if err == nil || !strings.Contains(err.Error(), `two cases are called "a": one of "a.yaml", one of "a.yml"`) {
		t.Errorf("%v", err)
	}
}

func TestSelect(t *testing.T) {
	cases := oddCases("passes", "fails", "panics")
	if got := Select(cases, nil); len(got) != 3 {
		t.Errorf("%v", got)
	}
	if got := names(Select(cases, regexp.MustCompile("^odd/p"))); !slices.Equal(got, []string{"odd/passes", "odd/panics"}) || len(cases) != 3 {
		t.Errorf("%v", got)
	}
}

// The name of a combination is found as it is printed, though its brackets mean
// something else in an expression.
func TestSelect_NameAsPrinted(t *testing.T) {
	cases := oddCases("m[v=a]", "m[v=ab]", "m[v=a][w=b]", "mv")
	if got := names(Select(cases, regexp.MustCompile("odd/m[v=a]"))); !slices.Equal(got, []string{"odd/mv"}) {
		t.Errorf("an expression that matches: %q", got)
	}
	if got := names(Select(cases[:3], regexp.MustCompile("m[v=a]"))); !slices.Equal(got, []string{"odd/m[v=a]", "odd/m[v=a][w=b]"}) {
		t.Errorf("a part of a name: %q", got)
	}
	if got := names(Select(cases[:3], regexp.MustCompile("odd/m[v=a]"))); !slices.Equal(got, []string{"odd/m[v=a]"}) {
		t.Errorf("a name: %q", got)
	}
}

// What looks like a scenario is not passed over in silence.
func TestFind_WarnsOfWhatLooksLikeAScenario(t *testing.T) {
	tree(t, map[string]string{
		"sallyport.yaml": calcConfig, "good.yaml": calcScenario, "typo.yaml": strings.Replace(calcScenario, "scenario:", "scenaro:", 1),
		"none.yml": strings.Replace(calcScenario, "scenario: Seven and five\n", "", 1), "empty.yaml": "", "part.yaml": "task: Add.\nexpect: {state: completed}\n", "whole.yaml": "scenario: Whole\ninclude: part.yaml\nmodel: {script: [{say: x}]}\n", "task.yaml": "task: x\n", "other.yaml": "jobs: {}\n",
	})
	found, err := Find([]string{"."}, scenarios.LoadOptions{})
	want := []string{
		"none.yml: passed over: it holds `task` and `expect`, and no `scenario:`, which makes it a scenario",
		"typo.yaml: passed over: it holds \"scenaro\" and no `scenario:`, which makes it one",
	}
	if err != nil || !slices.Equal(found.Warnings, want) || len(found.Passed) != 7 || len(found.Cases) != 2 {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestShuffle_TheSeedAloneDecides(t *testing.T) {
	cases := oddCases("a", "b", "c", "d", "e", "f", "g", "h")
	other := slices.Clone(cases)
	slices.Reverse(other)
	one, two := names(Shuffle(cases, 42)), names(Shuffle(other, 42))
	if !slices.Equal(one, two) || slices.Equal(one, names(cases)) || slices.Equal(one, names(Shuffle(cases, 43))) {
		t.Errorf("%q, %q", one, two)
	}
	slices.Sort(one)
	if !slices.Equal(one, names(cases)) {
		t.Errorf("%q", one)
	}
}

// Values of a matrix are part of a case's name as they are, whatever a path would be of
// them.
func TestFind_ValuesAreNoPath(t *testing.T) {
	tree(t, map[string]string{
		"sallyport.yaml": calcConfig, "b/m.yaml": strings.Replace(calcScenario, "It is 12.", "\"${v}\"", 1) + "matrix: {v: [a/../../b, .., a//b]}\n",
	})
	found, err := Find([]string{"./b"}, scenarios.LoadOptions{})
	if want := []string{"b/m[v=a/../../b]", "b/m[v=..]", "b/m[v=a//b]"}; err != nil || !slices.Equal(names(found.Cases), want) {
		t.Errorf("%q, %v", names(found.Cases), err)
	}
}
