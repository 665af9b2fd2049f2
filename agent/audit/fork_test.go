package audit_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/agent/audit"
	"sallyport/agent/enginetest"
)

// fork goes on from an entry of the run, with budget to spare.
func (d *desk) fork(at int64) *desk {
	d.t.Helper()
	point, was, err := agent.ForkPoint(d.journal(), at)
	if err != nil {
		d.t.Fatal(err)
	}
	spec := was.Spec
	spec.Run, spec.Fork, spec.Budget = d.run.ID+"f", &point, was.Budget
	spec.Budget.Calls, spec.Budget.Turns = spec.Budget.Calls+5, spec.Budget.Turns+5
	spec.Budget.Tokens, spec.Budget.Wall = spec.Budget.Tokens+1000, spec.Budget.Wall+1000
	if spec.Budget.Cost > 0 {
		spec.Budget.Cost += 1000
	}
	f := &desk{t: d.t, bodies: maps.Clone(d.bodies), now: d.tick()}
	commits, _, err := agent.Carry(spec, "operator", d.journal(), f.now)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, c := range commits {
		f.run, f.entries = c.Run, append(f.entries, c.Entry)
	}
	return f
}

// gives substitutes something for the open effect, which then comes.
func (w walker) gives() {
	o := w.run.Open
	if o == nil || !o.Released || o.Kind != agent.Ask && o.Kind != agent.Prepare {
		return
	}
	give := agent.Substitute{Outcome: &agent.Outcome{
		Status: []agent.Status{agent.StatusOK, agent.StatusFailed, agent.StatusRejected}[w.IntN(3)],
		Class:  agent.ClassToolError, Reason: agent.ReasonSubstituted, Body: w.store("given"),
	}}
	if give.Outcome.Status == agent.StatusOK {
		give.Outcome.Class = agent.ClassOK
	}
	if o.Kind == agent.Ask {
		turn := w.proposes(enginetest.ToolRead, enginetest.ToolWrite)
		turn.Usage = agent.Usage{}
		give = agent.Substitute{Turn: &turn}
	}
	before := o.Seq
	if w.outside(give); w.run.Open.Seq != before && w.run.Open.Substitute != nil && w.run.Open.Released {
		w.node(give.Answer())
	}
}

// What Step lets pass in a fork, the witness lets pass, and what a fork takes over of any
// entry of its parent is what an auditor with the parent's journal expects; forks of
// forks too.
func TestWitness_AgreesOnForks(t *testing.T) {
	var carried, unknown, given int
	for seed := range uint64(60) {
		spec := enginetest.Spec("r")
		spec.Budget = agent.Budget{Calls: 2 + int(seed%5), Turns: 2 + int(seed%7), Tokens: 200 + int64(seed%9)*200, Wall: 20 + int64(seed%11)*200}
		if seed%3 == 0 {
			spec.Prices = &agent.Prices{Currency: "EUR", Input: 1_500_000, Cached: 700_001, Output: 9_000_000}
			spec.Budget.Cost = int64(seed%4) * 700
		}
		w := walker{begin(t, spec), rand.New(rand.NewPCG(seed, 3))}
		for range 3 { // a run, its fork, and the fork's fork
			for range 40 {
				if w.run.State.Final() {
					break
				}
				if w.IntN(6) == 0 && w.run.Spec.Fork != nil {
					w.gives()
					continue
				}
				w.step()
			}
			last, _, err := agent.ForkPoint(w.journal(), 0)
			if err != nil {
				t.Fatal(err)
			}
			at := 1 + w.Int64N(last.Seq)
			if w.IntN(2) == 0 {
				at = last.Seq
			}
			f := w.fork(at)
			r := f.withParent(w.desk)
			carried += r.Counts.Carried
			if f.run.State == agent.StateNeedsVerification || f.run.State == agent.StateObserve {
				unknown++
			}
			given += w.clean().Counts.Substitutes
			if t.Failed() {
				t.Fatalf("seed %d, entry %d", seed, at)
			}
			w = walker{f, w.Rand}
		}
		w.clean()
	}
	if carried < 100 || unknown < 10 || given < 50 {
		t.Errorf("the walks carried %d calls, %d of them under way, and %d things were given", carried, unknown, given)
	}
	t.Logf("%d calls carried, %d forks with one under way, %d things given", carried, unknown, given)
}

// withParent expects nothing to be found, with the parent's journal at hand.
func (d *desk) withParent(parent *desk) audit.Report {
	d.t.Helper()
	d.clean()
	r, err := audit.CheckFork(d.journal(), d.body, parent.journal())
	if err != nil {
		d.t.Errorf("with the parent: %v", err)
	}
	return r
}

// parents is a run that read, wrote what alice granted, and has another write in flight.
func parents(t testing.TB) *desk {
	d := begin(t, enginetest.Spec("r"))
	d.node(d.proposes(enginetest.ToolRead, enginetest.ToolWrite, enginetest.ToolWrite))
	d.sent(agent.StatusOK, agent.ClassOK)
	d.waits()
	d.outside(d.sign("alice"))
	d.sent(agent.StatusOK, agent.ClassOK)
	d.waits()
	d.outside(d.sign("bob"))
	d.node(d.checked())
	return d
}

func TestWitness_CountsWhatAForkCarries(t *testing.T) {
	p := parents(t)
	f := p.fork(p.run.Seq)
	r := f.withParent(p)
	if r.Counts.Carried != 3 || r.Counts.Sends != 0 || r.Counts.Writes != 0 || r.Counts.Grants != 0 || r.Counts.Parent != "r" {
		t.Errorf("the audit counts %+v; want 3 calls carried of run r, nothing sent, no grant", r.Counts)
	}
	if r.Signed != nil {
		t.Errorf("somebody is said to have signed the fork: %+v", r.Signed)
	}
	f.node(f.told())
	if r := f.withParent(p); len(r.Findings) != 1 || r.Findings[0].Open != audit.OpenUnknown {
		t.Errorf("the findings are %+v, want the outcome that nobody knows", r.Findings)
	}
}

// Each way in which a fork's journal can say too much is found by the witness alone.
func TestWitness_FindsWhatNoForkMaySay(t *testing.T) {
	p := parents(t)
	carried := func(e *agent.Entry, seq int64) { e.Carried = seq }
	for _, tc := range []struct {
		name string
		make func() (*desk, int64)
		want string
	}{
		{"the run is no fork", func() (*desk, int64) {
			d := p.fork(p.run.Seq)
			rewrite(d, 1, func(s *agent.Spec) { s.Fork = nil })
			return d, 2
		}, "is no fork"},
		{"a fork of itself", func() (*desk, int64) {
			d := p.fork(p.run.Seq)
			rewrite(d, 1, func(s *agent.Spec) { s.Fork.Run = s.Run })
			return d, 1
		}, "is none"},
		{"from behind the fork point", func() (*desk, int64) {
			d := p.fork(p.run.Seq)
			return d.at(int64(len(d.entries)), func(e *agent.Entry) { carried(e, p.run.Seq+1) })
		}, "goes on from entry"},
		{"out of order", func() (*desk, int64) {
			d := p.fork(p.run.Seq)
			return d.at(int64(len(d.entries)), func(e *agent.Entry) { carried(e, 3) })
		}, "stands behind entry"},
		{"after the fork has gone on", func() (*desk, int64) {
			d := p.fork(2)
			d.sent(agent.StatusOK, agent.ClassOK)
			return d.at(d.last(agent.KindReturned), func(e *agent.Entry) { carried(e, 2) })
		}, "gone on by itself"},
		{"in place of a Send", func() (*desk, int64) {
			d := p.fork(2)
			d.sent(agent.StatusOK, agent.ClassOK)
			return d.at(d.last(agent.KindReturned), func(e *agent.Entry) { carried(e, 2) })
		}, "in place of a call that was sent"},
		{"an intent", func() (*desk, int64) {
			d := p.fork(2)
			d.node(d.checked())
			return d.at(3, func(e *agent.Entry) { carried(e, 2) })
		}, "checked is not taken over"},
		{"sent, and not counted", func() (*desk, int64) {
			return rewritten(p.fork(p.run.Seq), 3, func(r *agent.Returned) { r.Counted = false })
		}, "did not count"},
		{"counted, and never sent, and ok", func() (*desk, int64) {
			return rewritten(p.fork(p.run.Seq), 3, func(r *agent.Returned) { r.Sent = false })
		}, "no request left"},
		{"never sent, and ok", func() (*desk, int64) {
			return rewritten(p.fork(p.run.Seq), 3, func(r *agent.Returned) { r.Sent, r.Counted = false, false })
		}, "not sent returned ok"},
		{"the candidate of this run", func() (*desk, int64) {
			d := p.fork(p.run.Seq)
			return rewritten(d, int64(len(d.entries)), func(r *agent.Returned) { r.Candidate.Bytes++ })
		}, "not what was signed in the parent"},
		{"a wait for approval", func() (*desk, int64) {
			return rewritten(p.fork(p.run.Seq), 3, func(r *agent.Returned) { r.Status = agent.StatusWaitingApproval })
		}, "is not taken over"},
		{"said of its own call", func() (*desk, int64) {
			d := p.fork(2)
			d.sent(agent.StatusOK, agent.ClassOK)
			return rewritten(d, d.last(agent.KindReturned), func(r *agent.Returned) { r.Counted = true })
		}, "says what it was in another"},
		{"more calls than the fork may", func() (*desk, int64) {
			d := p.fork(p.run.Seq)
			rewrite(d, 1, func(s *agent.Spec) { s.Budget.Calls = 2 })
			return d, int64(len(d.entries))
		}, "call 3 of 2"},
		{"given, and nobody gave it", func() (*desk, int64) {
			d := p.fork(2)
			d.node(agent.Returned{Outcome: agent.Outcome{Status: agent.StatusRejected, Class: agent.ClassToolError, Reason: agent.ReasonSubstituted}})
			return rewritten(d, 3, func(r *agent.Returned) { r.Substituted = true })
		}, "nobody gave it"},
		{"given, and something else came", func() (*desk, int64) {
			d := substituted(p)
			return rewritten(d, d.last(agent.KindReturned), func(r *agent.Returned) { r.Status = agent.StatusFailed })
		}, "something else came"},
		{"given in a run that is no fork", func() (*desk, int64) {
			d := substituted(p)
			rewrite(d, 1, func(s *agent.Spec) { s.Fork = nil })
			return d, d.last(agent.KindSubstitute)
		}, "replaced what happened"},
		{"a write made to look done", func() (*desk, int64) {
			d := substituted(p)
			d.node(d.told())
			give := agent.Substitute{Outcome: &agent.Outcome{Status: agent.StatusFailed, Class: agent.ClassToolError, Reason: agent.ReasonSubstituted}}
			d.outside(give)
			return rewritten(d, d.last(agent.KindSubstitute), func(s *agent.Substitute) { s.Outcome.Status, s.Outcome.Class = agent.StatusOK, agent.ClassOK })
		}, "made a write look done"},
		{"a given turn that used tokens", func() (*desk, int64) {
			d := p.fork(1)
			turn := d.proposes(enginetest.ToolRead)
			turn.Usage = agent.Usage{}
			d.outside(agent.Substitute{Turn: &turn})
			return rewritten(d, 2, func(s *agent.Substitute) { s.Turn.Usage.Output = 1 })
		}, "has used tokens"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, seq := tc.make()
			report, err := audit.CheckAlone(d.journal(), d.body)
			if err == nil || !slices.ContainsFunc(report.Breaks, func(b audit.Break) bool {
				return b.Seq == seq && strings.Contains(b.Detail, tc.want)
			}) {
				t.Errorf("got %+v, want %q at entry %d", report.Breaks, tc.want, seq)
			}
			if _, err := audit.Check(d.journal(), d.body); !errors.Is(err, agent.ErrIntegrity) {
				t.Errorf("beside Step: %v", err)
			}
		})
	}
}

// substituted is a fork in which an operator gave the result of a read.
func substituted(p *desk) *desk {
	d := p.fork(2)
	give := agent.Substitute{Outcome: &agent.Outcome{Status: agent.StatusOK, Class: agent.ClassOK, Reason: agent.ReasonSubstituted, Body: d.store("given")}}
	d.outside(give)
	d.node(give.Answer())
	return d
}

// A fork that holds together by itself, and is not what its parent says, is found where
// the parent's journal is at hand.
func TestCheckFork_ComparesWithTheParent(t *testing.T) {
	p := parents(t)
	for _, tc := range []struct {
		name string
		make func() (*desk, *desk, int64)
	}{
		{"another turn", func() (*desk, *desk, int64) {
			d, seq := rewritten(p.fork(p.run.Seq), 2, func(turned *agent.Turned) { turned.Usage.Output++ })
			return d, p, seq
		}},
		{"another outcome", func() (*desk, *desk, int64) {
			d := p.fork(p.run.Seq)
			rewrite(d, 3, func(r *agent.Returned) { r.Status, r.Class = agent.StatusFailed, agent.ClassToolError })
			rewrite(d, 4, func(o *agent.Observed) { o.Status, o.Class = agent.StatusFailed, agent.ClassToolError })
			return d, p, 3
		}},
		{"another result", func() (*desk, *desk, int64) {
			d := p.fork(p.run.Seq)
			forged := d.store("forged")
			rewrite(d, 3, func(r *agent.Returned) { r.Body = forged })
			return d, p, 3
		}},
		{"another message", func() (*desk, *desk, int64) {
			d := p.fork(p.run.Seq)
			forged := d.store("forged")
			rewrite(d, 4, func(o *agent.Observed) { o.Message = forged })
			return d, p, 4
		}},
		{"the write in flight is left out", func() (*desk, *desk, int64) {
			d := p.fork(p.run.Seq)
			d.entries = d.entries[:len(d.entries)-1]
			return d, p, int64(len(d.entries))
		}},
		{"and prepared anew", func() (*desk, *desk, int64) {
			d := p.fork(p.run.Seq)
			run, err := agent.Replay(journal(d.entries[:len(d.entries)-1]))
			if err != nil {
				t.Fatal(err)
			}
			d.run, d.entries = run, d.entries[:len(d.entries)-1]
			carried := int64(len(d.entries))
			d.waits()
			return d, p, carried
		}},
		{"the write that was done is left out", func() (*desk, *desk, int64) {
			d := p.fork(p.run.Seq)
			run, err := agent.Replay(journal(d.entries[:4]))
			if err != nil {
				t.Fatal(err)
			}
			d.run, d.entries = run, d.entries[:4]
			d.waits()
			return d, p, 4
		}},
		{"a call of the parent's that it never made", func() (*desk, *desk, int64) {
			early := p.last(agent.KindApprove) - 3 // before the second write
			point, _, err := agent.ForkPoint(p.journal(), early)
			if err != nil {
				t.Fatal(err)
			}
			d := p.fork(p.run.Seq)
			d.rechain(func(e *agent.Entry) {
				if e.Seq == 1 {
					e.Data = []byte(strings.NewReplacer(d.run.Spec.Fork.Head, point.Head).Replace(string(e.Data)))
				}
			})
			rewrite(d, 1, func(s *agent.Spec) { s.Fork.Seq = early })
			d.at(int64(len(d.entries)), func(e *agent.Entry) { e.Carried = early })
			return d, p, int64(len(d.entries))
		}},
		{"another parent", func() (*desk, *desk, int64) { return p.fork(p.run.Seq), read(t), 1 }},
		{"a parent that was cut", func() (*desk, *desk, int64) {
			cut := *p
			cut.entries = slices.Clone(p.entries[:len(p.entries)-1])
			return p.fork(p.run.Seq), &cut, 1
		}},
		{"a parent that was altered", func() (*desk, *desk, int64) {
			altered := *p
			altered.entries = slices.Clone(p.entries)
			rewrite(&altered, 4, func(r *agent.Returned) { r.Reason = "other" })
			return p.fork(p.run.Seq), &altered, 1
		}},
		{"no fork at all", func() (*desk, *desk, int64) { return read(t), p, 1 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d, parent, seq := tc.make()
			_, err := audit.CheckFork(d.journal(), d.body, parent.journal())
			named(t, tc.name, err, seq, audit.BreakFork)
		})
	}
}
