package agent

import (
	"fmt"
	"time"
)

// EffectKind is what the Host is to do. Effects are imperatives.
type EffectKind string

// The effects. Each belongs to the node of one state, Prepare and Send to execute.
const (
	Ask     EffectKind = "ask"     // model: get a turn
	Prepare EffectKind = "prepare" // execute: everything but the call; may be repeated
	Send    EffectKind = "send"    // execute: exactly one request; a write's is never repeated
	Observe EffectKind = "observe" // observe: validate, store, confirm by read-back
	Present EffectKind = "present" // awaiting_approval: show the candidate; answers nothing
	Verify  EffectKind = "verify"  // needs_verification: bring evidence
)

// Effect is work that an event opened. It stays open until the event that answers
// it, and at most one effect of a run is open.
type Effect struct {
	Kind EffectKind `json:"kind"`
	Seq  int64      `json:"seq"`            // the event that opened it: with the run, its id
	Call string     `json:"call,omitempty"` // the call that it belongs to
	// After is the earliest time to start; zero is at once.
	After time.Time `json:"after,omitzero"`
}

// ID is the identity of an effect of a run: an engine starts an id once.
func (e Effect) ID(run string) string { return fmt.Sprintf("%s/%d", run, e.Seq) }

func (e Effect) equal(o Effect) bool {
	return e.Kind == o.Kind && e.Seq == o.Seq && e.Call == o.Call && e.After.Equal(o.After)
}

// OpenEffect is the effect that a run waits for.
type OpenEffect struct {
	Effect
	// Head is the hash of the entry that opened it: a candidate made by this effect
	// carries it, so that a signature covers the history.
	Head string
	// Released says that it may start; a held run withholds.
	Released bool
	// Substitute, if set, is what the effect brings: an operator gave it, and nothing
	// is performed.
	Substitute *Substitute
}
