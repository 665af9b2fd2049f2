package sallyport_test

import (
	"bytes"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	cited    = regexp.MustCompile(`SPEC ([A-Z][0-9]+[a-z]?)`)
	numbered = regexp.MustCompile(`(?m)^\*\*([A-Z][0-9]+[a-z]?) · `)
	link     = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
)

// A reader of the code looks a rule up in docs/contract.md, so it has to be there.
func TestDocs_EveryRuleThatIsCitedExists(t *testing.T) {
	rules := map[string]bool{}
	for _, m := range numbered.FindAllStringSubmatch(string(read(t, "docs/contract.md")), -1) {
		if rules[m[1]] {
			t.Errorf("docs/contract.md: rule %s is there twice", m[1])
		}
		rules[m[1]] = true
	}
	if len(rules) < 40 {
		t.Fatalf("docs/contract.md holds %d rules", len(rules))
	}
	each(t, func(name string, data []byte) {
		for _, m := range cited.FindAllSubmatch(data, -1) {
			if !rules[string(m[1])] {
				t.Errorf("%s cites SPEC %s, which docs/contract.md does not hold", name, m[1])
			}
		}
	})
}

// A test says which check or case it shows; docs/checks.md says what that is.
func TestDocs_EveryCheckAndCaseThatIsCitedExists(t *testing.T) {
	known := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([MDAX]?[0-9]+(?:, [MDAX]?[0-9]+)*) \|`).FindAllStringSubmatch(string(read(t, "docs/checks.md")), -1) {
		for _, id := range strings.Split(m[1], ", ") {
			known[id] = true
		}
	}
	for n := range 100 {
		if id := strconv.Itoa(n + 1); !known[id] {
			t.Errorf("docs/checks.md does not hold check %s", id)
		}
	}
	ids := regexp.MustCompile(`(?:CHECKS|CASES) ((?:[MDAX]?[0-9]+)(?:(?:, |–| and )[MDAX]?[0-9]+\b)*)`)
	one := regexp.MustCompile(`[MDAX]?[0-9]+`)
	each(t, func(name string, data []byte) {
		for _, m := range ids.FindAllSubmatch(data, -1) {
			for _, id := range one.FindAllString(string(m[1]), -1) {
				if !known[id] {
					t.Errorf("%s cites %s (in %q), which docs/checks.md does not hold", name, id, m[0])
				}
			}
		}
	})
}

func TestDocs_LinksLeadToFilesThatExist(t *testing.T) {
	each(t, func(name string, data []byte) {
		if path.Ext(name) != ".md" {
			return
		}
		for _, m := range link.FindAllSubmatch(data, -1) {
			to := string(m[1])
			if to == "" || strings.Contains(to, "://") {
				continue
			}
			if _, err := os.Stat(path.Join(path.Dir(name), to)); err != nil {
				t.Errorf("%s links to %s: %v", name, to, err)
			}
		}
	})
}

// Documents name code: files and folders that exist, tests that are there.
func TestDocs_TheCodeThatTheyNameExists(t *testing.T) {
	tests := map[string]bool{}
	each(t, func(name string, data []byte) {
		for _, m := range regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`).FindAllSubmatch(data, -1) {
			tests[string(m[1])] = true
		}
	})
	files := regexp.MustCompile("`((?:[a-z.]+/)*[a-z_0-9]+_?[a-z]*\\.go|(?:[a-z]+/)+)`")
	named := regexp.MustCompile("`(Test[A-Za-z0-9]+_[A-Za-z0-9_]+)`")
	each(t, func(name string, data []byte) {
		if path.Ext(name) != ".md" {
			return
		}
		for _, m := range files.FindAllSubmatch(data, -1) {
			if of := string(m[1]); !perishable[of] {
				if _, err := os.Stat(of); err != nil {
					t.Errorf("%s names %s: %v", name, of, err)
				}
			}
		}
		for _, m := range named.FindAllSubmatch(data, -1) {
			if !tests[string(m[1])] && name != "docs/style.md" {
				t.Errorf("%s names the test %s, which is not there", name, m[1])
			}
		}
	})
}

// Commands that documents show are commands of the program.
func TestDocs_TheCommandsThatTheyShowExist(t *testing.T) {
	known := map[string]bool{"completion": true, "help": true, "FILE": true}
	each(t, func(name string, data []byte) {
		if path.Dir(name) == "cmd/sallyport" && path.Ext(name) == ".go" {
			for _, m := range regexp.MustCompile(`Use:\s+"([a-z-]+)`).FindAllSubmatch(data, -1) {
				known[string(m[1])] = true
			}
		}
	})
	each(t, func(name string, data []byte) {
		if path.Ext(name) != ".md" {
			return
		}
		for _, m := range regexp.MustCompile("(?m)(?:^|`|cmd/)sallyport\\s([a-z-]+)").FindAllSubmatch(data, -1) {
			if !known[string(m[1])] {
				t.Errorf("%s shows sallyport %s, which is no command", name, m[1])
			}
		}
	})
}

// The continuous integration runs the second command as it is printed.
func TestReadme_ShowsTwoCommands(t *testing.T) {
	const want = "## Two commands\n\n```sh\ngo run ./cmd/sallyport demo\ngo test ./...\n```\n"
	if !strings.Contains(string(read(t, "README.md")), want) {
		t.Errorf("README.md does not hold %q", want)
	}
}

// perishable are folders that exist only where something has run.
var perishable = map[string]bool{"bin/": true, "dist/": true, "sources/": true, "reports/": true, "locks/": true, "ledger/": true, "servers/": true, "keys/": true, "log/": true}

// What belongs to somebody's workplace rather than to the project. The words are put
// together here so that this file does not hold them.
func TestRepository_HoldsNothingOfAWorkplace(t *testing.T) {
	words := [][]byte{
		[]byte("/wor" + "k/"), []byte("/far" + "m/"), []byte("bash_" + "jobs"), []byte("sub" + "agent"),
		[]byte("SPEC" + ".md"), []byte("DESIGN" + ".md"), []byte("CHECKS" + ".md"), []byte("CASES" + ".md"),
	}
	each(t, func(name string, data []byte) {
		for _, word := range words {
			if bytes.Contains(data, word) {
				t.Errorf("%s mentions %s", name, word)
			}
		}
	})
}

// each visits the text files of the repository.
func each(t *testing.T, visit func(name string, data []byte)) {
	t.Helper()
	kinds := []string{"", ".go", ".md", ".mod", ".yaml", ".yml", ".json", ".txt", ".txtar"}
	err := walk(func(name string) error {
		if slices.Contains(kinds, path.Ext(name)) || strings.HasPrefix(name, ".ci/") {
			visit(name, read(t, name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return data
}
