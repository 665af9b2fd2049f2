package audit_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/audit"
	"sallyport/agent/enginetest"
	"sallyport/tools/grant"
)

// read is a run of two reads.
func read(t testing.TB) *desk {
	d := begin(t, enginetest.Spec("r"))
	d.node(d.proposes(enginetest.ToolRead, enginetest.ToolRead))
	d.sent(agent.StatusOK, agent.ClassOK)
	d.sent(agent.StatusOK, agent.ClassOK)
	return d.answers()
}

// granted is a run at the Prepare of a write that alice has granted.
func granted(t testing.TB, more ...string) *desk {
	d := begin(t, enginetest.Spec("r")).asked(enginetest.ToolWrite, more...)
	d.outside(d.sign("alice"))
	return d
}

// unknown is a run whose write was settled by bob's statement.
func unknown(t testing.TB) *desk {
	d := granted(t)
	d.node(d.checked())
	d.node(d.came(agent.StatusResultUnknown, agent.ClassTimeout))
	d.node(d.told())
	d.node(agent.Verified{Finding: agent.Undecided})
	d.outside(enginetest.Statement(d.run, "bob", string(agent.Applied), d.now))
	return d
}

// intent is the entry that sends the call in hand, written without asking Step.
func (d *desk) intent(c agent.Checked) agent.Entry {
	return agent.Entry{
		Origin: agent.OriginRuntime, Event: agent.KindChecked, Effect: d.run.Open.Seq, Data: payload(d.t, c),
		Row: agent.RowChecked, State: agent.StateExecute,
		Effects: []agent.Effect{{Kind: agent.Send, Call: d.run.Call.ID}},
	}
}

// Each break is named with its entry and its promise: by the witness alone, as if
// Step had let everything pass, and beside Step.
func TestCheck_NamesEveryBreak(t *testing.T) {
	for _, tc := range []struct {
		name string
		make func(t *testing.T) (*desk, int64)
		what audit.What
	}{
		{"a removed entry", func(t *testing.T) (*desk, int64) {
			d := read(t)
			d.entries = slices.Delete(d.entries, 3, 4)
			return d, 4
		}, audit.BreakChain},
		{"the first entry removed", func(t *testing.T) (*desk, int64) {
			d := read(t)
			d.entries = d.entries[1:]
			return d, 1
		}, audit.BreakChain},
		{"two entries swapped", func(t *testing.T) (*desk, int64) {
			d := read(t)
			d.entries[3], d.entries[4] = d.entries[4], d.entries[3]
			return d, 4
		}, audit.BreakChain},
		{"an entry twice", func(t *testing.T) (*desk, int64) {
			d := read(t)
			d.entries = slices.Insert(d.entries, 4, d.entries[3])
			return d, 5
		}, audit.BreakChain},
		{"an entry of another run", func(t *testing.T) (*desk, int64) {
			d := read(t)
			d.rechain(func(e *agent.Entry) {
				if e.Seq == 5 {
					e.Run = "other"
				}
			})
			return d, 5
		}, audit.BreakChain},
		{"a changed body", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			d.bodies[d.run.Call.Arguments] = []byte(`{"n":2}`)
			return d, 3
		}, audit.BreakBody},
		{"a missing body", func(t *testing.T) (*desk, int64) {
			d := read(t)
			delete(d.bodies, enginetest.Task.Ref)
			return d, 1
		}, audit.BreakBody},
		{"time goes backwards", func(t *testing.T) (*desk, int64) {
			d := read(t)
			d.rechain(func(e *agent.Entry) {
				if e.Seq == 4 {
					e.Time = epoch
				}
			})
			return d, 4
		}, audit.BreakTime},
		{"an origin changed", func(t *testing.T) (*desk, int64) {
			d := read(t)
			d.rechain(func(e *agent.Entry) {
				if e.Seq == 4 {
					e.Origin = agent.OriginOperator
				}
			})
			return d, 4
		}, audit.BreakOrigin},
		{"a state changed", func(t *testing.T) (*desk, int64) {
			d := read(t)
			d.rechain(func(e *agent.Entry) {
				if e.Seq == 4 {
					e.State = agent.StateModel
				}
			})
			return d, 4
		}, audit.BreakTransition},
		{"a note that moves the run", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			d.forge(agent.Entry{Kind: agent.EntryNoted, Event: agent.KindCancel, Code: agent.CodeForged, State: agent.StateCancelled})
			return d, 6
		}, audit.BreakEntry},
		{"the model leaves awaiting_approval", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r")).asked(enginetest.ToolWrite)
			d.forge(agent.Entry{
				Origin: agent.OriginModel, Event: agent.KindTurned, Effect: d.run.Open.Seq, Data: payload(t, d.proposes(enginetest.ToolWrite)),
				Row: agent.RowProposed, State: agent.StateExecute, Effects: []agent.Effect{{Kind: agent.Prepare}},
			})
			return d, 5
		}, audit.BreakApproval},
		{"expired too soon", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r")).asked(enginetest.ToolWrite)
			d.forge(agent.Entry{
				Origin: agent.OriginClock, Event: agent.KindTick, Row: agent.RowExpired, State: agent.StateObserve,
				Effects: []agent.Effect{{Kind: agent.Observe, Call: d.run.Call.ID}},
			})
			return d, 5
		}, audit.BreakApproval},
		{"a Send without grant", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r"))
			d.node(d.proposes(enginetest.ToolWrite))
			d.forge(d.intent(d.checked()))
			return d, 3
		}, audit.BreakGrant},
		{"one of two grants that is taken for both", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r")).asked(enginetest.ToolDestroy)
			d.forge(agent.Entry{
				Origin: agent.OriginApprover, Actor: "alice", Event: agent.KindApprove, Data: payload(t, d.sign("alice")),
				Row: agent.RowGranted, State: agent.StateExecute, Effects: []agent.Effect{{Kind: agent.Prepare, Call: d.run.Call.ID}},
			})
			return d, 5
		}, audit.BreakGrant},
		{"a write that is pinned without signatures", func(t *testing.T) (*desk, int64) {
			d := read(t)
			rewrite(d, 1, func(s *agent.Spec) { s.Tools[2].Approvers = 1 })
			return d, 1
		}, audit.BreakGrant},
		{"other bytes are sent than were signed", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			c := d.checked()
			c.Arguments = d.store(`{"n":2}`)
			d.forge(d.intent(c))
			return d, 6
		}, audit.BreakGrant},
		{"another definition than was pinned", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			c := d.checked()
			c.Definition = d.run.Spec.Tools[0].Definition
			d.forge(d.intent(c))
			return d, 6
		}, audit.BreakGrant},
		{"a grant that had expired when it was sent", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			d.now = epoch.Add(3*time.Second + 600*time.Second - time.Second)
			d.forge(d.intent(d.checked()))
			return d, 6
		}, audit.BreakGrant},
		{"a grant that does not match", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			other := *d.run.Call.Candidate
			other.Scope = "desk/other"
			rewrite(d, 5, func(a *agent.Approve) { a.Grant = enginetest.SignCandidate(other, "alice", epoch.Add(3*time.Second)) })
			return d, 5
		}, audit.BreakGrant},
		{"a candidate that does not match", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			rewrite(d, 3, func(r *agent.Returned) { r.Candidate.Audience = "desk-2" })
			return d, 3
		}, audit.BreakGrant},
		{"a candidate of another history", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			d.rechain(func(e *agent.Entry) {
				if e.Seq == 2 {
					e.Time = e.Time.Add(time.Microsecond)
				}
			})
			return d, 3
		}, audit.BreakGrant},
		{"a forged grant", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			wire := enginetest.SignCandidate(*d.run.Call.Candidate, "mallory", epoch.Add(3*time.Second))
			rewrite(d, 5, func(a *agent.Approve) { a.Grant = wire })
			return d, 5
		}, audit.BreakSignature},
		{"a key after its not-after", func(t *testing.T) (*desk, int64) {
			spec := enginetest.Spec("r")
			spec.Approvers[0].NotAfter = epoch.Add(4 * time.Second)
			d := begin(t, spec).asked(enginetest.ToolWrite)
			d.forge(agent.Entry{
				Origin: agent.OriginApprover, Actor: "alice", Event: agent.KindApprove, Data: payload(t, d.sign("alice")),
				Row: agent.RowGranted, State: agent.StateExecute, Effects: []agent.Effect{{Kind: agent.Prepare, Call: d.run.Call.ID}},
			})
			return d, 5
		}, audit.BreakSignature},
		{"a grant under another name", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			d.rechain(func(e *agent.Entry) {
				if e.Seq == 5 {
					e.Actor = "bob"
				}
			})
			return d, 5
		}, audit.BreakSignature},
		{"two signatures by one key", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r")).asked(enginetest.ToolDestroy)
			d.outside(d.sign("alice"))
			again := d.sign("alice")
			d.outside(d.sign("bob"))
			d.node(d.checked())
			d.rechain(func(e *agent.Entry) {
				if e.Seq == 6 {
					e.Data, e.Actor = payload(t, again), "alice"
				}
			})
			return d, 6
		}, audit.BreakGrant},
		{"one grant for two Sends of a call", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			intent := d.intent(d.checked())
			d.node(d.checked())
			d.forge(intent)
			return d, 7
		}, audit.BreakSpent},
		{"one grant for two calls", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r")).asked(enginetest.ToolWrite, enginetest.ToolWrite)
			first := d.sign("alice")
			d.outside(first)
			d.sent(agent.StatusOK, agent.ClassOK)
			d.waits()
			d.outside(d.sign("alice"))
			d.node(d.checked())
			rewrite(d, d.last(agent.KindApprove), func(a *agent.Approve) { *a = first })
			return d, d.last(agent.KindApprove)
		}, audit.BreakSpent},
		{"a write that is attempted again", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			d.node(d.checked())
			d.attemptAs(enginetest.ToolRead)
			return d, 7
		}, audit.BreakEffect},
		{"a forged refusal", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r")).asked(enginetest.ToolWrite)
			forged := d.refusal("mallory")
			d.outside(d.refusal("alice"))
			rewrite(d, 5, func(r *agent.Refuse) { r.Signed = forged.Signed })
			return d, 5
		}, audit.BreakSignature},
		{"a refusal of another candidate", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r")).asked(enginetest.ToolWrite)
			d.outside(agent.Refuse{Candidate: d.run.Call.Candidate.ID})
			rewrite(d, 5, func(r *agent.Refuse) { r.Candidate = "other" })
			return d, 5
		}, audit.BreakApproval},
		{"a forged edit", func(t *testing.T) (*desk, int64) {
			d := edited(t)
			other := d.store(`{"n":3}`)
			rewrite(d, 5, func(e *agent.Edit) { e.Arguments = other })
			return d, 5
		}, audit.BreakSignature},
		{"a forged statement", func(t *testing.T) (*desk, int64) {
			d := unknown(t)
			wire, err := grant.SignStatement(enginetest.Key("mallory"), grant.Statement{
				Call: d.run.Call.ID, Candidate: d.run.Call.Candidate.ID, Run: "r", Verdict: grant.VerdictApplied,
				Approver: "mallory", Head: d.run.Head, Time: d.now.Unix(),
			})
			if err != nil {
				t.Fatal(err)
			}
			rewrite(d, d.last(agent.KindAttest), func(a *agent.Attest) { a.Signed = wire })
			return d, d.last(agent.KindAttest)
		}, audit.BreakSignature},
		{"a statement that was turned round", func(t *testing.T) (*desk, int64) {
			d := unknown(t)
			d.rechain(func(e *agent.Entry) {
				if e.Event == agent.KindAttest {
					e.Row, e.State, e.Effects = agent.RowUndecided, agent.StateNeedsVerification, nil
				}
			})
			return d, d.last(agent.KindAttest)
		}, audit.BreakResult},
		{"an unknown outcome that is called ok", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			d.node(d.checked())
			d.node(d.came(agent.StatusResultUnknown, agent.ClassTimeout))
			d.forge(agent.Entry{
				Origin: agent.OriginRuntime, Event: agent.KindObserved, Effect: d.run.Open.Seq, Row: agent.RowNextTurn, State: agent.StateModel,
				Data:    payload(t, agent.Observed{Status: agent.StatusOK, Class: agent.ClassOK, Message: d.store("told")}),
				Effects: []agent.Effect{{Kind: agent.Ask}},
			})
			return d, 8
		}, audit.BreakResult},
		{"an unknown outcome that is left so", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			d.node(d.checked())
			d.node(d.came(agent.StatusResultUnknown, agent.ClassTimeout))
			d.forge(agent.Entry{
				Origin: agent.OriginRuntime, Event: agent.KindObserved, Effect: d.run.Open.Seq, Row: agent.RowNextTurn, State: agent.StateModel,
				Data:    payload(t, agent.Observed{Status: agent.StatusResultUnknown, Class: agent.ClassTimeout, Message: d.store("told")}),
				Effects: []agent.Effect{{Kind: agent.Ask}},
			})
			return d, 8
		}, audit.BreakResult},
		{"a call without its result", func(t *testing.T) (*desk, int64) {
			d := read(t)
			d.entries = d.entries[:4]
			d.forge(agent.Entry{
				Origin: agent.OriginRuntime, Event: agent.KindObserved, Effect: 4, Row: agent.RowNextCall, State: agent.StateExecute,
				Data:    payload(t, agent.Observed{Status: agent.StatusOK, Class: agent.ClassOK}),
				Effects: []agent.Effect{{Kind: agent.Prepare, Call: agent.CallID("r", 2, 1)}},
			})
			return d, 5
		}, audit.BreakResult},
		{"a call that is passed over", func(t *testing.T) (*desk, int64) {
			d := read(t)
			d.entries = d.entries[:4]
			d.forge(agent.Entry{
				Origin: agent.OriginRuntime, Event: agent.KindObserved, Effect: 4, Row: agent.RowNextTurn, State: agent.StateModel,
				Data:    payload(t, agent.Observed{Status: agent.StatusOK, Class: agent.ClassOK, Message: d.store("told")}),
				Effects: []agent.Effect{{Kind: agent.Ask}},
			})
			return d, 5
		}, audit.BreakResult},
		{"ended while a write is in flight", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			d.node(d.checked())
			d.forge(agent.Entry{
				Origin: agent.OriginOperator, Event: agent.KindCancel, Row: agent.RowCancelled, State: agent.StateCancelled,
				Data: payload(t, agent.Cancel{}),
			})
			return d, 7
		}, audit.BreakResult},
		{"more calls than the budget has", func(t *testing.T) (*desk, int64) {
			d := read(t)
			rewrite(d, 1, func(s *agent.Spec) { s.Budget.Calls = 1 })
			return d, 6
		}, audit.BreakBudget},
		{"more turns than the budget has", func(t *testing.T) (*desk, int64) {
			d := read(t)
			rewrite(d, 1, func(s *agent.Spec) { s.Budget.Turns = 1 })
			return d, 8
		}, audit.BreakBudget},
		{"more tokens than the budget has", func(t *testing.T) (*desk, int64) {
			d := read(t)
			rewrite(d, 1, func(s *agent.Spec) { s.Budget.Tokens = 109 })
			return d, 2
		}, audit.BreakBudget},
		{"more time than the budget has", func(t *testing.T) (*desk, int64) {
			d := read(t)
			rewrite(d, 1, func(s *agent.Spec) { s.Budget.Wall = 3 })
			return d, 5
		}, audit.BreakBudget},
		{"an extension that takes away", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r"))
			d.outside(agent.Extend{Budget: agent.Budget{Calls: 1}})
			rewrite(d, 2, func(x *agent.Extend) { x.Budget.Calls = -1 })
			return d, 2
		}, audit.BreakBudget},
		{"too many notes", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r"))
			for range agent.MaxNoted + 1 {
				d.forge(agent.Entry{Kind: agent.EntryNoted, Event: agent.KindCancel, Code: agent.CodeForged})
			}
			return d, agent.MaxNoted + 2
		}, audit.BreakBudget},
		{"sent while the run is paused", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r"))
			d.node(d.proposes(enginetest.ToolRead))
			d.outside(agent.Pause{})
			d.forge(d.intent(d.checked()))
			return d, 4
		}, audit.BreakEffect},
		{"erased by somebody else", func(t *testing.T) (*desk, int64) {
			d := read(t)
			d.forge(agent.Entry{Kind: agent.EntryErased, Origin: agent.OriginModel, Body: enginetest.Task.Ref})
			return d, 10
		}, audit.BreakOrigin},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, seq := tc.make(t)
			_, err := audit.CheckAlone(d.journal(), d.body)
			named(t, "the witness alone", err, seq, tc.what)
			report, err := audit.Check(d.journal(), d.body)
			if !slices.ContainsFunc(report.Breaks, func(b audit.Break) bool { return b.Seq == seq && b.What == tc.what }) {
				t.Errorf("breaks are %+v, want %s at entry %d", report.Breaks, tc.what, seq)
			}
			var b *audit.Break
			if !errors.As(err, &b) || !errors.Is(err, agent.ErrIntegrity) || b.Seq != seq {
				t.Errorf("got %v, want a break at entry %d", err, seq)
			}
		})
	}
}

func named(t *testing.T, how string, err error, seq int64, what audit.What) {
	t.Helper()
	var b *audit.Break
	if !errors.As(err, &b) || !errors.Is(err, agent.ErrIntegrity) || b.Seq != seq || b.What != what {
		t.Errorf("%s: got %v, want %s at entry %d", how, err, what, seq)
	}
}

// A flipped bit of any entry but the last is found, and the entry is named: the one
// behind it only where nothing further says which of the two was altered.
func TestCheck_NamesTheEntryOfAFlippedByte(t *testing.T) {
	const stride = 5 // of the bytes: all of them take a minute under the race detector
	d := read(t)
	for i, whole := range d.entries[:len(d.entries)-1] {
		for at := i % stride; at < len(whole.Bytes()); at += stride {
			seq, err := flipped(d, i, at)
			if errors.Is(err, agent.ErrNewer) {
				continue // of the version
			}
			here, unsure := int64(i+1), i == len(d.entries)-2
			if err == nil || seq != here && (!unsure || seq != here+1) {
				t.Fatalf("entry %d, byte %d: got %v", i+1, at, err)
			}
		}
	}
}

// flipped checks with one bit changed, and returns the entry that is named.
func flipped(d *desk, entry, at int) (int64, error) {
	raw := slices.Clone(d.entries[entry].Bytes())
	raw[at] ^= 1
	_, err := audit.Check(func(yield func(agent.Entry, error) bool) {
		for i, e := range d.entries {
			var err error
			if i == entry {
				e, err = agent.ParseEntry(raw)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}, d.body)
	var b *audit.Break
	if errors.As(err, &b) {
		return b.Seq, err
	}
	return 0, err
}

// The error says it all in one line.
func TestBreak_Error(t *testing.T) {
	d := read(t)
	d.entries = slices.Delete(d.entries, 3, 4)
	_, err := audit.Check(d.journal(), d.body)
	want := `journal integrity: run "r", entry 4: chain: it is missing: entry 5 stands in its place`
	if fmt.Sprint(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
