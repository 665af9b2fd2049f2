package agent_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sallyport/agent"
)

var update = flag.Bool("update", false, "rewrite generated files and golden files")

// golden compares got with a file, or rewrites the file with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test ./agent -update writes it)", err)
	}
	if string(want) != got {
		t.Errorf("%s is not what the code gives; go test ./agent -update rewrites it. Got:\n%s", path, got)
	}
}

func TestStatesPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("# The states of a run\n\n" +
		"Generated from the transition table in `agent/table.go` by `go test ./agent -update`;\n" +
		"a test fails when this page and the table differ.\n\n```mermaid\n" +
		agent.Mermaid(nil, agent.StateNone) + "```\n\n" +
		"Left out of the picture, since they keep every open state: ")
	var everywhere []string
	for _, tr := range agent.Table() {
		if tr.To == "" && len(tr.From) == 5 {
			everywhere = append(everywhere, "`"+string(tr.Row)+"`")
		}
	}
	b.WriteString(strings.Join(everywhere, ", ") + ".\n\n## Rows\n\n" +
		"A row is what an event turned out to mean. *By* says whose events may become it: nothing\n" +
		"that the model or a tool produces can leave `awaiting_approval`.\n\n" +
		"| row | from | to | by | what happened |\n|---|---|---|---|---|\n")
	for _, tr := range agent.Table() {
		to := string(tr.To)
		if to == "" {
			to = "(stays)"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", tr.Row, join(tr.From), to, join(tr.By), tr.Says)
	}
	b.WriteString("\n## Events\n\nAn event is what somebody said; the step decides which row it becomes.\n\n" +
		"| event | may become |\n|---|---|\n")
	for _, k := range agent.Kinds() {
		fmt.Fprintf(&b, "| `%s` | %s |\n", k, join(agent.Becomes(k)))
	}
	golden(t, "../docs/states.md", b.String())
}

func join[S ~string](items []S) string {
	out := make([]string, len(items))
	for i, s := range items {
		if out[i] = string(s); s == "" {
			out[i] = "(start)"
		}
	}
	return strings.Join(out, ", ")
}

// TestTable_IsSound guards against rows that the machine would overwrite in silence,
// and against rows that nothing becomes.
func TestTable_IsSound(t *testing.T) {
	to := map[string]agent.State{}
	by := map[string]bool{}
	for _, tr := range agent.Table() {
		if len(tr.By) == 0 || len(tr.From) == 0 || tr.Says == "" {
			t.Errorf("row %s lacks an origin, a state or its sentence", tr.Row)
		}
		for _, from := range tr.From {
			key := string(tr.Row) + " from " + string(from)
			if earlier, ok := to[key]; ok && earlier != tr.To {
				t.Errorf("%s leads to %q and to %q", key, earlier, tr.To)
			}
			to[key] = tr.To
			for _, o := range tr.By {
				if by[key+string(o)] {
					t.Errorf("%s by the %s is declared twice", key, o)
				}
				by[key+string(o)] = true
			}
		}
		become := slices.ContainsFunc(agent.Kinds(), func(k agent.Kind) bool { return slices.Contains(agent.Becomes(k), tr.Row) })
		if !become {
			t.Errorf("no event becomes row %s", tr.Row)
		}
	}
}

// TestTable_OnlyTrustedEventsLeaveAwaitingApproval is SPEC A5.
func TestTable_OnlyTrustedEventsLeaveAwaitingApproval(t *testing.T) {
	trusted := []agent.Origin{agent.OriginApprover, agent.OriginOperator, agent.OriginClock}
	for _, tr := range agent.Table() {
		if !slices.Contains(tr.From, agent.StateAwaitingApproval) {
			continue
		}
		for _, by := range tr.By {
			if !slices.Contains(trusted, by) {
				t.Errorf("%s may leave awaiting_approval by the %s", tr.Row, by)
			}
		}
	}
}
