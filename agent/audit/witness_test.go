package audit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/audit"
	"sallyport/agent/enginetest"
	"sallyport/tools/grant"
)

// at changes one entry, and makes the chain whole again.
func (d *desk) at(seq int64, change func(*agent.Entry)) (*desk, int64) {
	d.t.Helper()
	d.rechain(func(e *agent.Entry) {
		if e.Seq == seq {
			change(e)
		}
	})
	return d, seq
}

func rewritten[P any](d *desk, seq int64, change func(*P)) (*desk, int64) {
	d.t.Helper()
	rewrite(d, seq, change)
	return d, seq
}

// forged appends an entry past Step.
func (d *desk) forged(e agent.Entry) (*desk, int64) {
	d.t.Helper()
	d.forge(e)
	return d, int64(len(d.entries))
}

// word is the entry of an operator's or an approver's decision.
func (d *desk) word(o agent.Origin, actor string, k agent.Kind, dec agent.Decision, row agent.Row, to agent.State, opens ...agent.EffectKind) agent.Entry {
	e := agent.Entry{Origin: o, Actor: actor, Event: k, Data: payload(d.t, dec), Row: row, State: to}
	for _, kind := range opens {
		e.Effects = append(e.Effects, agent.Effect{Kind: kind, Call: d.run.Call.ID})
	}
	return e
}

func waitsFor(t testing.TB, tool string) *desk { return begin(t, enginetest.Spec("r")).asked(tool) }

// claims signs other claims about the candidate that waits.
func (d *desk) claims(change func(*grant.Claims)) agent.Approve {
	d.t.Helper()
	c := grant.Claims{
		Candidate: *d.run.Call.Candidate, Grant: "0123456789abcdef0123456789abcdef", Approver: "alice",
		NotBefore: d.now.Unix() - agent.GrantSkew, Expires: d.now.Unix() + 600,
	}
	change(&c)
	wire, err := grant.SignGrant(enginetest.Key("alice"), c)
	if err != nil {
		d.t.Fatal(err)
	}
	return agent.Approve{Grant: wire}
}

func (d *desk) approves(a agent.Approve) (*desk, int64) {
	d.t.Helper()
	return d.forged(d.word(agent.OriginApprover, "alice", agent.KindApprove, a, agent.RowGranted, agent.StateExecute, agent.Prepare))
}

// Each rule of the witness, by what it says of the entry.
func TestWitness_SaysWhatIsWrong(t *testing.T) {
	const write, destroy = enginetest.ToolWrite, enginetest.ToolDestroy
	for _, tc := range []struct {
		says string
		make func(t *testing.T) (*desk, int64)
	}{
		{`its kind "other" is unknown`, func(t *testing.T) (*desk, int64) {
			return read(t).at(4, func(e *agent.Entry) { e.Kind = "other" })
		}},
		{"a journal begins with the start", func(t *testing.T) (*desk, int64) {
			return read(t).at(1, func(e *agent.Entry) { e.Kind = agent.EntryErased })
		}},
		{"under its own id", func(t *testing.T) (*desk, int64) {
			return rewritten(read(t), 1, func(s *agent.Spec) { s.Run = "other" })
		}},
		{"a run starts once", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r"))
			return d.forged(agent.Entry{Origin: agent.OriginOperator, Event: agent.KindStart, Data: payload(t, d.run.Spec), Row: agent.RowStarted, State: agent.StateModel})
		}},
		{"it pins a key that is none", func(t *testing.T) (*desk, int64) {
			return rewritten(read(t), 1, func(s *agent.Spec) { s.Approvers[0].Key = "alice" })
		}},
		{"pinned with 0 signatures and needs 1", func(t *testing.T) (*desk, int64) {
			return rewritten(read(t), 1, func(s *agent.Spec) { s.Tools[1].Approvers = 0 })
		}},
		{"it attempts an effect that is not open", func(t *testing.T) (*desk, int64) {
			return read(t).forged(agent.Entry{Kind: agent.EntryAttempt, Effect: 4})
		}},
		{"a refusal without its reason", func(t *testing.T) (*desk, int64) {
			return read(t).forged(agent.Entry{Kind: agent.EntryNoted, Event: agent.KindCancel})
		}},
		{"an erasure that names nothing", func(t *testing.T) (*desk, int64) {
			return read(t).forged(agent.Entry{Kind: agent.EntryErased, Origin: agent.OriginOperator})
		}},
		{"checked cannot become returned", func(t *testing.T) (*desk, int64) {
			return read(t).at(3, func(e *agent.Entry) {
				e.Row, e.State, e.Effects[0].Kind = agent.RowReturned, agent.StateObserve, agent.Observe
			})
		}},
		{"by the runtime does not lead from", func(t *testing.T) (*desk, int64) {
			return read(t).at(3, func(e *agent.Entry) { e.State = agent.StateObserve })
		}},
		{"answers an effect that is not open", func(t *testing.T) (*desk, int64) {
			return read(t).at(4, func(e *agent.Entry) { e.Effect = 2 })
		}},
		{"answered opens no effect", func(t *testing.T) (*desk, int64) {
			return read(t).at(9, func(e *agent.Entry) { e.Effects = []agent.Effect{{Kind: agent.Send, Seq: 9}} })
		}},
		{"opens observe of call", func(t *testing.T) (*desk, int64) {
			return read(t).at(4, func(e *agent.Entry) { e.Effects[0].Kind = agent.Send })
		}},
		{"opens send of call", func(t *testing.T) (*desk, int64) {
			return read(t).at(3, func(e *agent.Entry) { e.Effects[0].Call = "other" })
		}},
		{"the model speaks while a call has no result", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r"))
			turned := d.proposes(write)
			d.node(turned)
			return d.forged(agent.Entry{
				Origin: agent.OriginModel, Event: agent.KindTurned, Effect: 1, Data: payload(t, turned),
				Row: agent.RowProposed, State: agent.StateExecute, Effects: []agent.Effect{{Kind: agent.Prepare}},
			})
		}},
		{"33 calls in one turn, at most 32", func(t *testing.T) (*desk, int64) {
			return rewritten(read(t), 2, func(p *agent.Turned) { p.Calls = slices.Repeat(p.Calls[:1], agent.MaxCallsPerTurn+1) })
		}},
		{"a turn of 2 calls cannot be answered", func(t *testing.T) (*desk, int64) {
			return read(t).at(2, func(e *agent.Entry) { e.Row, e.State, e.Effects = agent.RowAnswered, agent.StateCompleted, nil })
		}},
		{"a turn of 0 calls cannot be proposed", func(t *testing.T) (*desk, int64) {
			return rewritten(read(t), 2, func(p *agent.Turned) { p.Calls = nil })
		}},
		{"the turn has no further call", func(t *testing.T) (*desk, int64) {
			d := read(t)
			rewrite(d, 2, func(p *agent.Turned) { p.Calls = p.Calls[:1] })
			return d, 5
		}},
		{"which is for the Host only", func(t *testing.T) (*desk, int64) {
			d := read(t)
			rewrite(d, 1, func(s *agent.Spec) { s.Tools[0].HostOnly = true })
			return d, 2
		}},
		{"to a tool that the run has not pinned", func(t *testing.T) (*desk, int64) {
			d := read(t)
			rewrite(d, 2, func(p *agent.Turned) { p.Calls[0].Tool = "" })
			return d, 3
		}},
		{"checked without a call", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r"))
			return d.forged(agent.Entry{Origin: agent.OriginRuntime, Event: agent.KindChecked, Effect: 1, Data: payload(t, agent.Checked{}), Row: agent.RowChecked, State: agent.StateExecute})
		}},
		{"only a run whose outcome is unknown can be abandoned", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			return d.forged(d.word(agent.OriginOperator, "", agent.KindCancel, agent.Cancel{Abandon: true}, agent.RowCancelled, agent.StateCancelled))
		}},
		{"no write is in flight that a cancel would wait for", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r"))
			d.node(d.proposes(write))
			return d.forged(d.word(agent.OriginOperator, "", agent.KindCancel, agent.Cancel{}, agent.RowCancelAsked, agent.StateExecute))
		}},
		{"was sent by entry 6 already", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			intent := d.intent(d.checked())
			d.node(d.checked())
			return d.forged(intent)
		}},
		{"was used by entry 6 already", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			intent := d.intent(d.checked())
			d.node(d.checked())
			return d.forged(intent)
		}},
		{"the definition of", func(t *testing.T) (*desk, int64) {
			return rewritten(read(t), 3, func(c *agent.Checked) { c.Definition = "other" })
		}},
		{"the arguments are not those of the edit", func(t *testing.T) (*desk, int64) {
			d := edited(t)
			return rewritten(d, d.last(agent.KindChecked), func(c *agent.Checked) { c.Arguments = agent.NewBody(enginetest.Arguments).Ref })
		}},
		{"the candidate is not for the edited arguments", func(t *testing.T) (*desk, int64) {
			d := edited(t)
			args := agent.NewBody(enginetest.Arguments).Ref
			return rewritten(d, 6, func(r *agent.Returned) {
				c := r.Candidate
				r.Arguments, c.Arguments, c.Bytes = args, args.SHA256, args.Bytes
				c.ID = grant.CandidateID(c.Run, c.Call, c.Arguments, c.Definition)
			})
		}},
		{"is sent with 0 of 1 signatures", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			return d.forged(agent.Entry{
				Origin: agent.OriginRuntime, Event: agent.KindChecked, Effect: 2, Data: payload(t, d.checked()), Row: agent.RowChecked, State: agent.StateExecute,
			})
		}},
		{"1 of 2 signatures were taken as granted", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, destroy)
			return d.approves(d.sign("alice"))
		}},
		{"1 of 1 signatures were taken as endorsed", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			return d.forged(d.word(agent.OriginApprover, "alice", agent.KindApprove, d.sign("alice"), agent.RowEndorsed, agent.StateAwaitingApproval))
		}},
		{"the grant of alice is for another candidate", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			return d.approves(d.claims(func(c *grant.Claims) { c.Candidate.Scope = "desk/other" }))
		}},
		{"not yet valid", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			return d.approves(d.claims(func(c *grant.Claims) { c.NotBefore += 120 }))
		}},
		{"the grant of alice: grant: expired", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			return d.approves(d.claims(func(c *grant.Claims) { c.Expires -= 600 }))
		}},
		{"lasts longer than the contract allows", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			return d.approves(d.claims(func(c *grant.Claims) { c.Expires++ }))
		}},
		{"alice has signed the candidate already", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, destroy)
			d.outside(d.sign("alice"))
			return d.approves(d.sign("alice"))
		}},
		{"approve while no candidate waits", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			a := d.sign("alice")
			d.outside(agent.Refuse{Candidate: d.run.Call.Candidate.ID})
			return d.approves(a)
		}},
		{"approve after the candidate had expired", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			d.now = d.now.Add(time.Hour)
			return d.approves(d.sign("alice"))
		}},
		{"the refusal was signed for another candidate", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			r := d.refusal("alice")
			return rewritten(expired(t), 9, func(o *agent.Refuse) { o.Signed = r.Signed })
		}},
		{"the edit is not one", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			e := d.edit("mallory", `{"n":2}`)
			return d.forged(d.word(agent.OriginApprover, "mallory", agent.KindEdit, e, agent.RowEdited, agent.StateExecute, agent.Prepare))
		}},
		{"the edit was signed for another candidate", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			d.run.ID = "other"
			e := d.edit("bob", `{"n":2}`)
			return d.forged(d.word(agent.OriginApprover, "bob", agent.KindEdit, e, agent.RowEdited, agent.StateExecute, agent.Prepare))
		}},
		{"the statement was signed about another call", func(t *testing.T) (*desk, int64) {
			d := unknown(t)
			other := d.run
			call := *other.Call
			call.ID, other.Call = "other", &call
			d.at(d.last(agent.KindAttest), func(e *agent.Entry) {
				e.Data = payload(t, enginetest.Statement(other, "bob", "applied", d.now))
			})
			return d, d.last(agent.KindAttest)
		}},
		{"was used by entry 6 already", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			asked := *d.run.Call.Candidate
			d.sent(agent.StatusOK, agent.ClassOK)
			asked.Head = d.entries[5].Hash()
			return rewritten(d, 7, func(r *agent.Returned) {
				r.Status, r.Arguments, r.Candidate = agent.StatusWaitingApproval, agent.NewBody(enginetest.Arguments).Ref, &asked
			})
		}},
		{`the status "no" is none`, func(t *testing.T) (*desk, int64) {
			return rewritten(read(t), 4, func(r *agent.Returned) { r.Status = "no" })
		}},
		{"a candidate and waiting_approval go together", func(t *testing.T) (*desk, int64) {
			return rewritten(waitsFor(t, write), 3, func(r *agent.Returned) { r.Candidate = nil })
		}},
		{"there is nothing to approve", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			rewrite(d, 3, func(r *agent.Returned) { r.Candidate = nil })
			return d, 4
		}},
		{"the candidate is malformed", func(t *testing.T) (*desk, int64) {
			return rewritten(waitsFor(t, write), 3, func(r *agent.Returned) { r.Candidate.ID = r.Candidate.Head })
		}},
		{"the candidate is for another call", func(t *testing.T) (*desk, int64) {
			return rewritten(waitsFor(t, write), 3, func(r *agent.Returned) {
				c := r.Candidate
				c.Call = "other"
				c.ID = grant.CandidateID(c.Run, c.Call, c.Arguments, c.Definition)
			})
		}},
		{"the candidate is for other arguments", func(t *testing.T) (*desk, int64) {
			return rewritten(waitsFor(t, write), 3, func(r *agent.Returned) { r.Candidate.Bytes++ })
		}},
		{"a call that was sent waits for nobody", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			asked := d.run.Call.Candidate
			d.sent(agent.StatusOK, agent.ClassOK)
			return rewritten(d, d.last(agent.KindReturned), func(r *agent.Returned) {
				r.Status, r.Candidate = agent.StatusWaitingApproval, asked
			})
		}},
		{"a call that was not sent returned ok", func(t *testing.T) (*desk, int64) {
			return rewritten(waitsFor(t, write), 3, func(r *agent.Returned) { r.Status, r.Candidate = agent.StatusOK, nil })
		}},
		{"a write that was sent is not merely unavailable", func(t *testing.T) (*desk, int64) {
			d := granted(t)
			d.sent(agent.StatusOK, agent.ClassOK)
			return rewritten(d, d.last(agent.KindReturned), func(r *agent.Returned) { r.Status = agent.StatusUnavailable })
		}},
		{"the outcome of the call is known", func(t *testing.T) (*desk, int64) {
			return read(t).at(5, func(e *agent.Entry) {
				e.Row, e.State, e.Effects[0].Kind = agent.RowOutcomeUnknown, agent.StateNeedsVerification, agent.Verify
			})
		}},
		{"was closed while it waits", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			d.at(4, func(e *agent.Entry) {
				e.Data = payload(t, agent.Observed{Status: agent.StatusWaitingApproval, Message: d.store("told")})
				e.Row, e.State, e.Effects[0].Kind = agent.RowNextTurn, agent.StateModel, agent.Ask
			})
			return d, 4
		}},
		{"an outcome was settled that is not unknown", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			return d.forged(agent.Entry{
				Origin: agent.OriginRuntime, Event: agent.KindVerified, Effect: 4, Data: payload(t, agent.Verified{Finding: agent.Applied}),
				Row: agent.RowSettled, State: agent.StateObserve,
			})
		}},
		{`the finding "perhaps" is none`, func(t *testing.T) (*desk, int64) {
			d := unknown(t)
			return rewritten(d, d.last(agent.KindVerified), func(v *agent.Verified) { v.Finding = "perhaps" })
		}},
		{"it is turn 2 of 1", func(t *testing.T) (*desk, int64) {
			d := read(t)
			rewrite(d, 1, func(s *agent.Spec) { s.Budget.Turns = 1 })
			return d, 9
		}},
		{"gives tokens back", func(t *testing.T) (*desk, int64) {
			return rewritten(read(t), 2, func(p *agent.Turned) { p.Usage.Input = -1 })
		}},
		{"it goes on with 200 of 100 tokens", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r"))
			d.node(agent.TurnRefused{Reason: "length", Message: d.store("cut off"), Usage: agent.Usage{Output: 200}})
			rewrite(d, 1, func(s *agent.Spec) { s.Budget.Tokens = 100 })
			return d, 2
		}},
		{"it goes on after 1s of 0 s", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r"))
			d.node(agent.TurnRefused{Reason: "length", Message: d.store("cut off")})
			rewrite(d, 1, func(s *agent.Spec) { s.Budget.Wall = 0 })
			return d, 2
		}},
		{"tried again after 4 times in a row", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r"))
			for range agent.MaxUnreached - 1 {
				d.node(agent.Unreached{Reason: "timeout"})
			}
			return d.forged(agent.Entry{
				Origin: agent.OriginRuntime, Event: agent.KindUnreached, Effect: d.run.Open.Seq, Data: payload(t, agent.Unreached{Reason: "timeout"}),
				Row: agent.RowModelUnreached, State: agent.StateModel, Effects: []agent.Effect{{Kind: agent.Ask}},
			})
		}},
		{"the run was ended after 1s of 900 s", func(t *testing.T) (*desk, int64) {
			d := begin(t, enginetest.Spec("r"))
			return d.forged(agent.Entry{Origin: agent.OriginClock, Event: agent.KindTick, Row: agent.RowBudgetEnded, State: agent.StateFailed})
		}},
		{"the clock cannot say granted", func(t *testing.T) (*desk, int64) {
			d := waitsFor(t, write)
			return d.forged(agent.Entry{Origin: agent.OriginClock, Event: agent.KindTick, Row: agent.RowGranted, State: agent.StateExecute})
		}},
	} {
		t.Run(tc.says, func(t *testing.T) {
			d, seq := tc.make(t)
			report, _ := audit.CheckAlone(d.journal(), d.body)
			if !slices.ContainsFunc(report.Breaks, func(b audit.Break) bool { return b.Seq == seq && strings.Contains(b.Detail, tc.says) }) {
				t.Errorf("entry %d: not said: %s; but %+v", seq, tc.says, report.Breaks)
			}
			if _, err := audit.Check(d.journal(), d.body); err == nil {
				t.Errorf("beside Step nothing is found")
			}
		})
	}
}

// A Step that counts otherwise, or is elsewhere, than the entries say is found at the
// end; one that refuses is found where it does.
func TestCheck_HoldsTheBooksAgainstStep(t *testing.T) {
	d := unknown(t)
	for says, hole := range map[string]func(*agent.Run){
		"Step has counted":   func(r *agent.Run) { r.Used.Calls-- },
		"Step allows":        func(r *agent.Run) { r.Budget.Turns++ },
		"Step is in execute": func(r *agent.Run) { r.State = agent.StateExecute },
	} {
		_, err := audit.CheckWith(func(run agent.Run, e agent.Entry) (agent.Run, error) {
			run, err := agent.Apply(run, e)
			if e.Seq == int64(len(d.entries)) {
				hole(&run)
			}
			return run, err
		}, d.journal(), d.body)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %s", err, says)
		}
	}
	_, err := audit.CheckWith(func(run agent.Run, e agent.Entry) (agent.Run, error) {
		return run, fmt.Errorf("%w: run r, entry %d: no", agent.ErrIntegrity, e.Seq)
	}, d.journal(), d.body)
	named(t, "a Step that refuses", err, 1, audit.BreakStep)
	if err.Error() != `journal integrity: run "r", entry 1: step: no` {
		t.Errorf("got %v", err)
	}
}

func TestCheck_NamesADamagedBody(t *testing.T) {
	d := read(t)
	_, err := audit.Check(d.journal(), func(ref agent.BodyRef) ([]byte, error) {
		if ref == enginetest.Task.Ref {
			return nil, fmt.Errorf("%w: other bytes", agent.ErrIntegrity)
		}
		return d.body(ref)
	})
	named(t, "a body that the engine refuses", err, 1, audit.BreakBody)
}

// An event that cannot be decoded is named; so is one of an unknown kind.
func TestCheck_NamesAnUnreadableEvent(t *testing.T) {
	d, seq := read(t).at(4, func(e *agent.Entry) { e.Data = []byte(`{"more":1}`) })
	_, err := audit.CheckAlone(d.journal(), d.body)
	named(t, "an unknown member", err, seq, audit.BreakEntry)
	d, seq = read(t).at(4, func(e *agent.Entry) { e.Event = "more" })
	_, err = audit.CheckAlone(d.journal(), d.body)
	named(t, "an unknown event", err, seq, audit.BreakEntry)
}
