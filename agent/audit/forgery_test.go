package audit_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"sallyport/agent"
	"sallyport/agent/audit"
)

// forger rewrites journals at random, and makes the chain whole again.
type forger struct {
	*rand.Rand
	*desk
}

func (f forger) any() *agent.Entry { return &f.entries[f.IntN(len(f.entries))] }

// tampers changes one thing.
func (f forger) tampers() {
	e, o := f.any(), f.any()
	switch f.IntN(12) {
	case 0:
		e.Data, e.Event = o.Data, o.Event
	case 1:
		e.Row = o.Row
	case 2:
		e.State = o.State
	case 3:
		e.Effects = o.Effects
	case 4:
		e.Effect = o.Effect
	case 5:
		e.Kind = o.Kind
	case 6:
		e.Origin, e.Actor = o.Origin, o.Actor
	case 7:
		e.Time = o.Time
	case 8:
		i := f.IntN(len(f.entries))
		f.entries = slices.Delete(f.entries, i, i+1)
	case 9:
		f.entries = slices.Insert(f.entries, f.IntN(len(f.entries)), *o)
	case 10:
		*e, *o = *o, *e
	case 11:
		e.Data, e.Event, e.Row, e.State, e.Effects, e.Origin, e.Kind = o.Data, o.Event, o.Row, o.State, o.Effects, o.Origin, o.Kind
	}
}

// Whatever somebody writes into a journal whose chain is whole, an audit ends: with a
// break that the witness or Step names, or because nothing that matters was changed.
// What passes has no more sends than calls, and no more writes than grants.
func TestCheck_SurvivesForgeries(t *testing.T) {
	desks := []*desk{story(t), edited(t), expired(t), unknown(t), read(t)}
	passed, broken := 0, 0
	for seed := range uint64(400) {
		honest := desks[seed%uint64(len(desks))]
		f := forger{rand.New(rand.NewPCG(seed, 2)), &desk{t: t, entries: slices.Clone(honest.entries), bodies: honest.bodies}}
		for range 1 + f.IntN(4) {
			if len(f.entries) > 1 {
				f.tampers()
			}
		}
		seq := int64(0)
		f.rechain(func(e *agent.Entry) {
			seq++
			e.Seq = seq
			if len(e.Effects) == 1 && f.IntN(4) > 0 {
				e.Effects = []agent.Effect{{Kind: e.Effects[0].Kind, Seq: seq, Call: e.Effects[0].Call}}
			}
		})
		alone, aloneErr := audit.CheckAlone(f.journal(), f.body)
		_, err := audit.Check(f.journal(), f.body)
		if aloneErr != nil && err == nil {
			t.Fatalf("seed %d: the witness alone finds %v, beside Step nothing", seed, aloneErr)
		}
		if err != nil {
			broken++
			continue
		}
		if passed++; alone.Counts.Sends > alone.Counts.Calls || alone.Counts.Writes > alone.Counts.Grants {
			t.Fatalf("seed %d: passed with %+v", seed, alone.Counts)
		}
	}
	if passed == 0 || broken < passed {
		t.Errorf("%d passed, %d broke", passed, broken)
	}
	t.Logf("%d passed, %d broke", passed, broken)
}
