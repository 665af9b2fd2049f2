//go:build kill && linux

package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/agent/embedded"
)

// The kill matrix (CASES A2): each plot is told once for every place at which its Host can
// die, and once for every place at which the document server can. What they must come to
// is in life.check.

var updateMatrix = flag.Bool("update", false, "write docs/kill-matrix.md anew")

const matrixFile = "../../docs/kill-matrix.md"

// places are the rows of the matrix, in the order of a call.
var places = []struct {
	place
	says string
}{
	{embedded.InMigration, "in the transaction that makes the store"},
	{agent.BeforeCommit, "before an append"},
	{embedded.InCommit, "in its transaction, all written, before COMMIT"},
	{agent.AfterCommit, "after it"},
	{embedded.Delivered, "a decision is in the inbox, without a verdict"},
	{agent.BeforePerform + ":ask", "before the model is asked"},
	{agent.AfterPerform + ":ask", "it has answered, nothing is appended"},
	{agent.BeforePerform + ":prepare", "before a call is prepared"},
	{agent.AfterPerform + ":prepare", "it is prepared, nothing is appended: before the intent"},
	{agent.BeforePerform + ":send", "the intent is durable, nothing is sent"},
	{heldAsked, "the request is sent, the server has not begun"},
	{heldDone, "the server has done all, its reply is held back"},
	{agent.AfterPerform + ":send", "the reply is here, nothing is appended"},
	{agent.BeforePerform + ":observe", "before the outcome is validated"},
	{agent.AfterPerform + ":observe", "it is validated, nothing is appended"},
	{agent.BeforePerform + ":present", "before the candidate is presented"},
	{agent.AfterPerform + ":present", "it was presented"},
	{agent.BeforePerform + ":verify", "before the read-back"},
	{agent.AfterPerform + ":verify", "it has answered, nothing is appended"},
}

// serverDeaths are the rows of the second table: what the server is ordered, and what
// must become of the write.
var serverDeaths = []struct {
	dies    []string
	says    string
	written bool
	found   string
}{
	{[]string{"save_report asked"}, "the request has arrived", false, "not applied, by read-back"},
	{[]string{"save_report entry"}, "before the ledger entry", false, "not applied, by read-back"},
	{[]string{"save_report link"}, "after the ledger entry, before the report has a name", false, "not applied, by a person's statement"},
	{[]string{"save_report visible"}, "after the report is visible, before its folder is synced", true, "applied, by read-back"},
	{[]string{"save_report answered"}, "all is done, before the answer", true, "applied, by read-back"},
	{[]string{"save_report asked", "settle_report asked"}, "then the read-back: it has arrived", false, "not applied, by a second read-back"},
	{[]string{"save_report asked", "settle_report entry"}, "then the read-back: before the candidate is voided", false, "not applied, by a second read-back"},
	{[]string{"save_report asked", "settle_report answered"}, "then the read-back: voided, before the answer", false, "not applied, by a second read-back"},
	{[]string{"save_report answered", "settle_report asked"}, "done, then the read-back: it has arrived", true, "applied, by a second read-back"},
	{[]string{"save_report answered", "settle_report answered"}, "done, then the read-back: before the answer", true, "applied, by a second read-back"},
}

func TestKillMatrix(t *testing.T) {
	all := append(plots[:len(plots):len(plots)], byPerson)
	tried := map[place]map[string]int{}
	total := 0
	t.Run("host", func(t *testing.T) {
		for i := range all {
			p := &all[i]
			for _, d := range deaths(t, p) {
				if tried[d.at] == nil {
					tried[d.at] = map[string]int{}
				}
				tried[d.at][p.name]++
				total++
				t.Run(p.name+", "+d.String(), func(t *testing.T) {
					t.Parallel()
					l := begin(t, p, d)
					l.check(l.tell())
				})
			}
		}
	})
	t.Run("server", func(t *testing.T) {
		for _, tt := range serverDeaths {
			t.Run(strings.Join(tt.dies, ", "), func(t *testing.T) {
				t.Parallel()
				checkServerDeath(t, tt.dies, tt.written, tt.found)
			})
		}
	})
	t.Logf("kill matrix: %d deaths of the Host, %d of the document server: %d kill points", total, len(serverDeaths), total+len(serverDeaths))
	compareMatrix(t, matrix(t, all, tried, total))
}

// checkServerDeath tells a granted write whose server dies as ordered, while the Host lives.
func checkServerDeath(t *testing.T, dies []string, written bool, found string) {
	t.Helper()
	p := plot{
		name: strings.Join(dies, ", "), saves: true, dies: dies, decide: approvesAs("ann"),
		want: want{state: agent.StateCompleted, text: draftText, nothing: !written, uncertain: true},
	}
	p.commands = 2
	if len(dies) > 1 || strings.Contains(found, "person") { // what could not be checked, or decided
		p.commands++
	}
	l := begin(t, &p, death{})
	l.check(l.tell())
	if left, err := os.ReadFile(l.path(orders, "die")); err != nil || len(left) > 0 {
		t.Errorf("orders that were not carried out: %q, %v", left, err)
	}
	l.journal("state", func(_ *embedded.Engine, _ agent.Run, entries []agent.Entry) {
		by := ""
		for _, e := range entries {
			if e.Row == agent.RowSettled {
				by = string(e.Origin)
			}
		}
		if want := map[bool]string{true: string(agent.OriginApprover), false: string(agent.OriginRuntime)}[strings.Contains(found, "person")]; by != want {
			t.Errorf("settled by the %s, want the %s", by, want)
		}
	})
}

// matrix is the document.
func matrix(t *testing.T, all []plot, tried map[place]map[string]int, total int) string {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, matrixHead, total, len(serverDeaths), total+len(serverDeaths))
	b.WriteString("| The Host dies |")
	for _, p := range all {
		b.WriteString(" " + p.name + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("--:|", len(all)) + "\n")
	sums := map[string]int{}
	for _, row := range places {
		fmt.Fprintf(&b, "| %s |", row.says)
		for _, p := range all {
			n := tried[row.place][p.name]
			sums[p.name] += n
			b.WriteString(map[bool]string{true: " – |", false: fmt.Sprintf(" %d |", n)}[n == 0])
		}
		b.WriteString("\n")
		delete(tried, row.place)
	}
	b.WriteString("| **together** |")
	for _, p := range all {
		fmt.Fprintf(&b, " %d |", sums[p.name])
	}
	b.WriteString("\n")
	for at := range tried {
		t.Errorf("the document has no row for %q", at)
	}
	b.WriteString(matrixServer)
	for _, tt := range serverDeaths {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", tt.says, map[bool]string{true: "once", false: "no"}[tt.written], tt.found)
	}
	return b.String()
}

func compareMatrix(t *testing.T, want string) {
	t.Helper()
	if t.Failed() {
		return
	}
	if *updateMatrix {
		if err := os.WriteFile(matrixFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(matrixFile)
	if err != nil || string(got) != want {
		t.Errorf("docs/kill-matrix.md does not say what was tried, %v; write it anew with: go test -tags kill ./cmd/sallyport -run TestKillMatrix -update", err)
	}
}

const matrixHead = `# The kill matrix

<!-- Written by TestKillMatrix -update; checked by make kill. -->

Each number below is a count of kills. A story is told once without a death, which finds
every place that it passes; then once more for each of them, and there the process gets
SIGKILL, which nothing can catch. The processes are the real command, its real document
server as a child, and real files. Afterwards a person goes on as a person would: resume,
and what else the run waits for.

%d deaths of the Host and %d of the document server: **%d kill points**, all of them green.

What is checked after each:

- The run is there, and every entry that was durable at the death is there unchanged.
- A decision that was in the inbox counts: nobody has to give it again.
- At most one save has reached the server, and at most one report is on the disk: the
  whole text that was signed, or nothing. No draft is left.
- Each call that was begun has exactly one result.
- The run has ended where the story ends. Where a death made the outcome of the write
  unknown, a read-back or a person has settled it; nothing was sent again.
- What the model was told of the write agrees with the disk.
- The audit of the journal finds nothing broken and nothing open.
- The history is fit for a model: each tool call answered once, in order, before the next
  turn.

`

const matrixServer = `
A story is counted from the command that it is about: the ones before it are the same as in
"a granted write". In "two approvals" the first of two is one of them. In "found applied",
"found not applied" and "found by a person" the document server dies during the save as well,
so that there is an outcome to settle. In "a cancel in flight" a second process cancels
while the save is held back, and either of the two is killed.

When the Host dies, the kernel kills its children with it; so the places "the request is
sent" and "the server has done all" are also deaths of the server, there.

| The document server dies, the Host lives | written | found |
|---|---|---|
`
