package main

import (
	"testing"

	"sallyport/agent"
	"sallyport/agent/embedded"
)

// CASES A2: a few places of the matrix that docs/kill-matrix.md describes. `make kill`
// tries all of them.
func TestKilled_NothingIsLostAndNothingHappensTwice(t *testing.T) {
	for _, tt := range []struct {
		plot string
		death
	}{
		{"a read", death{0, embedded.InMigration, 1}},
		{"a read", death{0, agent.AfterPerform + ":send", 1}},
		{"a granted write", death{0, embedded.InCommit, 3}},             // the run's first entry
		{"a granted write", death{1, embedded.Delivered, 1}},            // the approval waits for its verdict
		{"a granted write", death{1, agent.BeforePerform + ":send", 1}}, // the intent is durable, nothing was sent
		{"a granted write", death{1, heldAsked, 1}},
		{"a granted write", death{1, heldDone, 1}},
		{"a granted write", death{1, agent.AfterPerform + ":send", 1}}, // the reply is here, no entry says so
		{"two approvals", death{1, embedded.InCommit, 2}},
		{"an edit", death{1, embedded.Delivered, 1}},
		{"an expiry", death{1, embedded.InCommit, 1}},
		{"found applied", death{1, agent.AfterPerform + ":verify", 1}},
		{"a cancel in flight", death{2, embedded.Delivered, 1}},
	} {
		t.Run(tt.plot+", "+tt.death.String(), func(t *testing.T) {
			t.Parallel()
			l := begin(t, plotCalled(t, tt.plot), tt.death)
			l.check(l.tell())
		})
	}
}

func plotCalled(t *testing.T, name string) *plot {
	t.Helper()
	for i := range plots {
		if plots[i].name == name {
			return &plots[i]
		}
	}
	t.Fatalf("there is no plot %q", name)
	return nil
}
