package main

import (
	"os"
	"strings"
	"testing"
)

// A journal that was changed from outside is found, exit code 8, with the entry; the
// other runs are looked at all the same, and no half of an export is left.
func TestAudit_NamesTheEntryAndLooksAtTheOtherRuns(t *testing.T) {
	u := newUser(t)
	deskFor(u, "text")
	u.must(exitParked, "run", "task.yaml", "--id", "broken")
	u.write("other.yaml", strings.Replace(u.read("task.yaml"), "docs__read_document, args: {filename: notes.md}", "docs__search_documents, args: {query: lamp}", 1))
	u.must(exitParked, "run", "other.yaml", "--id", "whole")
	u.must(exitOK, "audit")
	store := u.path("state/sallyport/state.db")
	data, err := os.ReadFile(store)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(data), `[{"tool":"docs__read_document"`, `[{"tool":"docs__read_documenT"`, 1)
	if changed == string(data) {
		t.Fatal("the journal is not where this test looks for it")
	}
	if err := os.WriteFile(store, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"audit"}, {"audit", "broken"}} {
		got := u.must(exitIntegrity, args...)
		if !strings.Contains(got.messages, `journal integrity: run "broken", entry 2: `) {
			t.Errorf("%q does not name the entry:\n%s", args, got.messages)
		}
		if !strings.Contains(got.stdout, "BREAK  entry 2: ") || !strings.Contains(got.stdout, "BROKEN at entry 2") {
			t.Errorf("%q: %s", args, got.stdout)
		}
	}
	if got := u.must(exitIntegrity, "audit", "-o", "jsonl").stdout; !strings.Contains(got, `{"run":"whole"`) || strings.Count(got, `"breaks"`) != 1 {
		t.Errorf("the other run was not looked at: %s", got)
	}
	u.must(exitOK, "audit", "whole")
	u.must(exitIntegrity, "audit", "export", "broken", "--out", "broken.jsonl")
	u.must(exitIntegrity, "audit", "export", "broken", "--out", "broken.jsonl", "--without-bodies")
	if _, err := os.Stat(u.path("broken.jsonl")); err == nil {
		t.Error("a file that is not whole was left")
	}
}
