package scenarios

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/scenarios/config"
)

const suitePage = "../docs/scenarios/suite.md"

const suiteHead = `# The shipped suite

<!-- Made from scenarios/*/*.yaml by: go test ./scenarios -run TestSuitePage -update -->

    sallyport test scenarios

plays what is shipped: each scenario says in its title what must hold, and fails when what it is about is taken away. They are good
to copy from, and to play with your own configuration, model or policy in the place of theirs. A scenario with a matrix is played
once for each of its cases; what that comes to, ` + "`sallyport test scenarios --list`" + ` says.

`

// shippedRows are the rows that need a scenario each: how a result is judged and in
// which order a call is refused (docs/contract.md, B9 and B10), and the cases of
// docs/checks.md.
var shippedRows = []row{
	{"B9-1", "no reply that can be used: an error, junk, a lost connection, silence"},
	{"B9-2", "a result that says it is not complete"},
	{"B9-3", "a result that the protocol marks as an error"},
	{"B9-4", "a result over 32,000 bytes"},
	{"B9-5", "a result that is not of the declared schema"},
	{"B9-6", "a result without status, message and data where the contract says so"},
	{"B9-7", "what the tool itself says became of it"},
	{"B10-1", "arguments too large, or no object"},
	{"B10-2", "a tool that is unknown, host-only, unprefixed or undiscovered"},
	{"B10-3", "fields and limits"},
	{"B10-4", "an empty budget"},
	{"B10-5", "a server that cannot say which tools it has"},
	{"B10-6", "a definition gone or changed"},
	{"B10-7", "the server's own schema"},
	{"B10-8", "a write without a grant"},
	{"B10-9", "counted, then sent"},
}

type row struct{ id, words string }

// byTest are the cases that take more than one run or process, which no scenario has.
var byTest = map[string]struct{ file, test string }{
	"A6": {"agent/fork_test.go", "TestFork_OfEveryEntryOfAWalk"},
	"A7": {"agent/embedded/process_test.go", "TestTwoProcesses_OneServesTheOtherIsToldWho"},
}

// shippedFile is a scenario that is shipped, as the page shows it.
type shippedFile struct {
	path, title string
	covers      []string
	cases       int
	writes      bool // a call that it expects may be a write
}

// caseRow is a row of docs/checks.md with one or several ids.
var caseRow = regexp.MustCompile(`(?m)^\| ([MDAX][0-9]+(?:, [MDAX][0-9]+)*) \| ([^|]+) \| ([^|]+) \|$`)

func rowsOfCases(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile("../docs/checks.md")
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Clone(shippedRows)
	for _, m := range caseRow.FindAllStringSubmatch(string(text), -1) {
		for _, id := range strings.Split(m[1], ", ") {
			all = append(all, row{id, m[2]})
		}
	}
	if len(all) < 50 {
		t.Fatalf("docs/checks.md holds %d cases", len(all)-len(shippedRows))
	}
	return all
}

func shippedFiles(t *testing.T) []shippedFile {
	t.Helper()
	paths, err := filepath.Glob("*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []shippedFile
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if is, err := config.HasKey(path, data, "scenario"); err != nil || !is {
			continue
		}
		cases, err := LoadCases(path, LoadOptions{})
		if err != nil {
			t.Error(err)
			continue
		}
		f := shippedFile{path: path, title: cases[0].Title, covers: cases[0].Covers, cases: len(cases)}
		for _, c := range cases[0].setup.Contracts {
			f.writes = f.writes || c.Risk.Writes() && slices.ContainsFunc(cases[0].Expect.Calls, func(e ExpectCall) bool { return e.Tool == c.Name })
		}
		all = append(all, f)
	}
	return all
}

// Every row of the contract's two lists, and every case of docs/checks.md, is shown by a
// shipped scenario, and no scenario says that it shows what there is not.
func TestSuite_EveryRowHasAScenario(t *testing.T) {
	rows, files := rowsOfCases(t), shippedFiles(t)
	known := map[string]bool{}
	for _, r := range rows {
		known[r.id] = true
		shown := func(writes bool) bool {
			return slices.ContainsFunc(files, func(f shippedFile) bool { return slices.Contains(f.covers, r.id) && f.writes == writes })
		}
		if by, ok := byTest[r.id]; ok {
			text, err := os.ReadFile("../" + by.file)
			if err != nil || !bytes.Contains(text, []byte("func "+by.test+"(")) {
				t.Errorf("%s, %s: %s has no %s: %v", r.id, r.words, by.file, by.test, err)
			}
			continue
		}
		switch {
		case !shown(true) && !shown(false):
			t.Errorf("no scenario covers %s, %s", r.id, r.words)
		case strings.HasPrefix(r.id, "B9-") && (!shown(true) || !shown(false)):
			t.Errorf("%s, %s: one scenario for a read and one for a write", r.id, r.words)
		}
	}
	for _, f := range files {
		for _, id := range f.covers {
			if !known[id] {
				t.Errorf("%s covers %q, which is no row", f.path, id)
			}
		}
	}
}

// Two scenarios with one title would show the same.
func TestSuite_EveryTitleIsItsOwn(t *testing.T) {
	seen := map[string]string{}
	for _, f := range shippedFiles(t) {
		if other, twice := seen[f.title]; twice {
			t.Errorf("%s has the title of %s", f.path, other)
		}
		seen[f.title] = f.path
		if strings.ContainsAny(f.title, "\n|") || len(f.title) > 160 {
			t.Errorf("%s: a title is one line of at most 160 bytes", f.path)
		}
	}
}

func TestSuitePage_IsMadeFromTheSuite(t *testing.T) {
	want := page(rowsOfCases(t), shippedFiles(t))
	if *update {
		if err := os.WriteFile(suitePage, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(suitePage)
	if err != nil || string(got) != want {
		t.Errorf("%s is not as the suite is: run this test with -update (%v)", suitePage, err)
	}
}

// page is docs/scenarios/suite.md.
func page(rows []row, files []shippedFile) string {
	var b strings.Builder
	b.WriteString(suiteHead)
	folder := ""
	for _, f := range files {
		if dir := filepath.Dir(f.path); dir != folder {
			folder = dir
			fmt.Fprintf(&b, "## %s\n\n| scenario | what must hold |\n|---|---|\n", folder)
		}
		times := ""
		if f.cases > 1 {
			times = fmt.Sprintf(" × %d", f.cases)
		}
		fmt.Fprintf(&b, "| %s%s | %s |\n", linked(f), times, strings.ReplaceAll(f.title, "|", "\\|"))
		if i := slices.IndexFunc(files, func(o shippedFile) bool { return o.path == f.path }); i+1 == len(files) || filepath.Dir(files[i+1].path) != folder {
			b.WriteString("\n")
		}
	}
	b.WriteString("## Which rule is shown where\n\nB9 and B10 are in [the contract](../contract.md), the others are [cases](../checks.md); each scenario names its own under `covers`.\n\n")
	b.WriteString("| row | what it is about | scenarios |\n|---|---|---|\n")
	for _, r := range rows {
		var where []string
		for _, f := range files {
			if slices.Contains(f.covers, r.id) {
				where = append(where, linked(f))
			}
		}
		if by, ok := byTest[r.id]; ok {
			where = append(where, fmt.Sprintf("takes several runs or processes: `%s` in [%s](../../%[2]s)", by.test, by.file))
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", r.id, r.words, strings.Join(where, ", "))
	}
	return b.String()
}

func linked(f shippedFile) string {
	return fmt.Sprintf("[%s](../../scenarios/%s)", strings.TrimSuffix(f.path, ".yaml"), f.path)
}
