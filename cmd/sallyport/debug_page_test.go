package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/agent/debug"
)

// debuggerPage is what SALLYPORT_UPDATE=1 writes anew.
const debuggerPage = "../../docs/debugger.md"

// The page of the debugger does what it says: the commands of each log are given again,
// and what they print is what it shows; its lists are those of the code.
func TestDebuggerPage_EveryLogIsWhatHappens(t *testing.T) {
	data, err := os.ReadFile(debuggerPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	u := newUser(t)
	for _, name := range []string{"demo.yaml", "sallyport.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../scenarios/research", name))
		if err != nil {
			t.Fatal(err)
		}
		u.write(name, string(text))
	}
	logs := 0
	want := fence.ReplaceAllStringFunc(page, func(block string) string {
		m := fence.FindStringSubmatch(block)
		if m[1] != "console" {
			return block
		}
		logs++
		return "```console\n" + u.debugLog(m[2]) + "```"
	})
	for name, text := range map[string]string{"commands": commandsTable(), "breakpoints": "    " + strings.ReplaceAll(breakHelp, "\n", "\n    "), "paths": pathsTable()} {
		begin, end := "<!-- "+name+" -->\n", "<!-- end of "+name+" -->"
		before, rest, found := strings.Cut(want, begin)
		_, after, ended := strings.Cut(rest, end)
		if !found || !ended {
			t.Fatalf("the page has no place for %s", name)
		}
		want = before + begin + "\n" + text + "\n\n" + end + after
	}
	if logs != 3 {
		t.Errorf("%d logs", logs)
	}
	if evenly(want) == evenly(page) {
		return
	}
	if os.Getenv("SALLYPORT_UPDATE") != "" {
		if err := os.WriteFile(debuggerPage, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("docs/debugger.md is not what happens; SALLYPORT_UPDATE=1 writes it anew. What happens:\n%s", want)
}

// debugLog gives the commands of a log again, and returns the log.
func (u *user) debugLog(log string) string {
	u.t.Helper()
	first, _, _ := strings.Cut(log, "\n")
	args := strings.Fields(strings.TrimPrefix(first, "$ sallyport "))
	var lines strings.Builder
	for line := range strings.Lines(log) {
		if command, ok := strings.CutPrefix(line, prompt); ok {
			lines.WriteString(command)
		}
	}
	cmd := u.command(args...)
	cmd.Stdin = strings.NewReader(lines.String())
	said, err := cmd.CombinedOutput()
	if err != nil {
		u.t.Errorf("%s: %v", first, err)
	}
	return first + "\n" + u.sameEveryTime(string(said))
}

// passing are the parts of a log that differ each time, and what stands for them.
var passing = []struct {
	is *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`\d\d:\d\d:\d\d\.\d{3}`), "12:00:00.000"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d([ T])\d\d:\d\d:\d\d`), "2026-01-01${1}12:00:00"},
	{regexp.MustCompile(`\b[0-9a-f]{16}\b`), "0123456789abcdef"},
	{regexp.MustCompile(`\b\d+s of 15m`), "0s of 15m"},
}

func (u *user) sameEveryTime(text string) string {
	text = strings.ReplaceAll(text, u.dir, "/home/ann")
	text = strings.ReplaceAll(text, "by "+account(), "by ann")
	for _, p := range passing {
		text = p.is.ReplaceAllString(text, p.to)
	}
	return text
}

// evenly is a page but for how wide its columns are, which is as names are long.
func evenly(page string) string { return columns.ReplaceAllString(page, "  ") }

var columns = regexp.MustCompile(`  +`)

func commandsTable() string {
	var b strings.Builder
	b.WriteString("| command | does |\n|---|---|\n")
	for _, v := range verbs() {
		says, _, _ := strings.Cut(v.says, "\n")
		fmt.Fprintf(&b, "| `%s` | %s |\n", strings.ReplaceAll(strings.TrimSpace(strings.Join(v.names, ", ")+" "+v.args), "|", `\|`), says)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func pathsTable() string {
	var b strings.Builder
	b.WriteString("| section | members |\n|---|---|\n")
	var sections []string
	members := map[string][]string{}
	for _, p := range debug.Paths() {
		section, member, has := strings.Cut(p, ".")
		if !slices.Contains(sections, section) {
			sections = append(sections, section)
		}
		if has {
			members[section] = append(members[section], "`"+member+"`")
		}
	}
	for _, s := range sections {
		fmt.Fprintf(&b, "| `%s` | %s |\n", s, strings.Join(members[s], ", "))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
