package audit_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/audit"
	"sallyport/agent/enginetest"
)

// engine serves one run of the in-memory engine.
type engine struct {
	*enginetest.Memory
	t      *testing.T
	world  *enginetest.World
	script enginetest.Script
}

func serve(t *testing.T, w *enginetest.World, tools ...string) *engine {
	t.Helper()
	g := &engine{enginetest.NewMemory(nil, nil), t, w, enginetest.Script{tools}}
	if _, err := g.Start(t.Context(), enginetest.Spec("r"), "tester", []agent.Body{enginetest.Task}); err != nil {
		t.Fatal(err)
	}
	g.goOn()
	return g
}

func (g *engine) goOn() agent.Run {
	g.t.Helper()
	if err := g.Serve(g.t.Context(), agent.ServeOptions{Runs: []string{"r"}}, g.world.Nodes(g.script)); err != nil {
		g.t.Fatal(err)
	}
	run, err := agent.Replay(g.Journal(g.t.Context(), "r", 1, false))
	if err != nil {
		g.t.Fatal(err)
	}
	return run
}

// says delivers a decision and goes on.
func (g *engine) says(make func(agent.Run) agent.Decision) *engine {
	g.t.Helper()
	v, err := g.Deliver(g.t.Context(), "r", enginetest.Deliver(make(g.goOn()), time.Now().String()))
	if err != nil || v.Refusal != nil {
		g.t.Fatalf("deliver: %+v, %v", v, err)
	}
	g.goOn()
	return g
}

func signed(by string) func(agent.Run) agent.Decision {
	return func(run agent.Run) agent.Decision { return enginetest.Sign(run, by, time.Now()) }
}

func always(d agent.Decision) func(agent.Run) agent.Decision {
	return func(agent.Run) agent.Decision { return d }
}

func (g *engine) body(ref agent.BodyRef) ([]byte, error) {
	return g.Body(context.Background(), "r", ref)
}

// lost is a world in which replies of writes get lost, after the server has written.
func lost(blind bool) *enginetest.World {
	return &enginetest.World{Blind: blind, Sending: func(string) (agent.Status, bool) { return agent.StatusResultUnknown, true }}
}

func attests(verdict agent.Finding) func(agent.Run) agent.Decision {
	return func(run agent.Run) agent.Decision {
		return enginetest.Statement(run, "bob", string(verdict), time.Now())
	}
}

// What an engine writes is clean, whatever became of the run; and stays so in an
// export, checked with the public keys alone.
func TestCheck_RunsOfAnEngineAreClean(t *testing.T) {
	const read, write, destroy = enginetest.ToolRead, enginetest.ToolWrite, enginetest.ToolDestroy
	for _, tc := range []struct {
		name   string
		run    func(t *testing.T) *engine
		state  agent.State
		counts audit.Counts // calls, sends, writes, results, grants, statements
		open   []audit.Open
	}{
		{"an answer", func(t *testing.T) *engine { return serve(t, &enginetest.World{}, read, read) },
			agent.StateCompleted, audit.Counts{Calls: 2, Sends: 2, Results: 2}, nil},
		{"a granted write", func(t *testing.T) *engine {
			return serve(t, &enginetest.World{}, write, read).says(signed("alice"))
		}, agent.StateCompleted, audit.Counts{Calls: 2, Sends: 2, Writes: 1, Results: 2, Grants: 1}, nil},
		{"two approvers", func(t *testing.T) *engine {
			return serve(t, &enginetest.World{}, destroy).says(signed("alice")).says(signed("bob"))
		}, agent.StateCompleted, audit.Counts{Calls: 1, Sends: 1, Writes: 1, Results: 1, Grants: 2}, nil},
		{"one of two", func(t *testing.T) *engine { return serve(t, &enginetest.World{}, destroy).says(signed("alice")) },
			agent.StateAwaitingApproval, audit.Counts{Calls: 1, Grants: 1}, nil},
		{"a refusal", func(t *testing.T) *engine {
			return serve(t, &enginetest.World{}, write, write, read).says(func(run agent.Run) agent.Decision {
				return agent.Refuse{Candidate: run.Call.Candidate.ID}
			})
		}, agent.StateCompleted, audit.Counts{Calls: 3, Sends: 1, Results: 3}, nil},
		{"cancelled while it waits", func(t *testing.T) *engine {
			return serve(t, &enginetest.World{}, write).says(always(agent.Cancel{}))
		}, agent.StateCancelled, audit.Counts{Calls: 1}, []audit.Open{audit.OpenUnanswered}},
		{"unknown, settled", func(t *testing.T) *engine { return serve(t, lost(false), write).says(signed("alice")) },
			agent.StateCompleted, audit.Counts{Calls: 1, Sends: 1, Writes: 1, Results: 1, Grants: 1}, nil},
		{"unknown, waiting for evidence", func(t *testing.T) *engine { return serve(t, lost(true), write).says(signed("alice")) },
			agent.StateNeedsVerification, audit.Counts{Calls: 1, Sends: 1, Writes: 1, Grants: 1}, []audit.Open{audit.OpenUnknown}},
		{"unknown, attested", func(t *testing.T) *engine {
			return serve(t, lost(true), write).says(signed("alice")).says(attests(agent.StillUnknown)).says(attests(agent.NotApplied))
		}, agent.StateCompleted, audit.Counts{Calls: 1, Sends: 1, Writes: 1, Results: 1, Grants: 1, Statements: 2}, nil},
		{"unknown, abandoned", func(t *testing.T) *engine {
			return serve(t, lost(true), write).says(signed("alice")).says(always(agent.Cancel{Abandon: true}))
		}, agent.StateCancelled, audit.Counts{Calls: 1, Sends: 1, Writes: 1, Grants: 1}, []audit.Open{audit.OpenUnknown}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := tc.run(t)
			entries := func() func(func(agent.Entry, error) bool) { return g.Journal(t.Context(), "r", 1, false) }
			if _, err := audit.CheckAlone(entries(), g.body); err != nil {
				t.Errorf("the witness alone: %v", err)
			}
			got, err := audit.Check(entries(), g.body)
			if err != nil {
				t.Fatal(err)
			}
			n := got.Counts
			sum := audit.Counts{Calls: n.Calls, Sends: n.Sends, Writes: n.Writes, Results: n.Results, Grants: n.Grants, Statements: n.Statements}
			if got.Run != "r" || got.State != tc.state || sum != tc.counts || n.Bodies == 0 || n.NotIncluded != 0 {
				t.Errorf("got %+v; want %s, %+v", got, tc.state, tc.counts)
			}
			if open := about(got); !slices.Equal(open, tc.open) {
				t.Errorf("open is %v, want %v", open, tc.open)
			}
			if (got.Signed != nil) != (n.Grants > 0) {
				t.Errorf("signed is %+v after %d grants", got.Signed, n.Grants)
			}
			var file bytes.Buffer
			if err := audit.Export(&file, entries(), g.body); err != nil {
				t.Fatal(err)
			}
			if again, err := audit.CheckExport(&file, keys("alice", "bob")); err != nil || !reflect.DeepEqual(again, got) {
				t.Errorf("exported: %v\n%+v\n%+v", err, again, got)
			}
		})
	}
}

func about(r audit.Report) []audit.Open {
	var open []audit.Open
	for _, f := range r.Findings {
		open = append(open, f.Open)
	}
	return open
}

func keys(names ...string) []string {
	var lines []string
	for _, name := range names {
		lines = append(lines, enginetest.Key(name).Public().String())
	}
	return lines
}

// edited is a run in which a person changed the arguments, and signed them then.
func edited(t testing.TB) *desk {
	d := begin(t, enginetest.Spec("r")).asked(enginetest.ToolWrite)
	d.outside(d.edit("bob", `{"n":2}`))
	d.waits()
	d.outside(d.sign("alice"))
	d.sent(agent.StatusOK, agent.ClassOK)
	return d.answers()
}

// story uses every kind of entry and most events.
func story(t testing.TB) *desk {
	d := begin(t, enginetest.Spec("r"))
	d.node(agent.TurnRefused{Reason: "length", Message: d.store("cut off")})
	d.node(agent.Unreached{Reason: "timeout", After: 1})
	d.attempt()
	d.node(d.proposes(enginetest.ToolRead, enginetest.ToolWrite, "nothing"[:0]))
	d.outside(agent.Pause{})
	d.note(agent.FromNode(d.run.Open.Effect, d.checked(), d.tick()))
	d.outside(agent.StepOnce{})
	d.node(d.checked())
	d.outside(agent.Resume{})
	d.attempt()
	d.node(d.came(agent.StatusOK, agent.ClassOK))
	d.node(d.told())
	d.waits()
	d.note(agent.FromOutside(enginetest.Sign(d.run, "mallory", d.now), "mallory", d.tick()))
	d.outside(agent.Extend{Budget: agent.Budget{Calls: 1}})
	d.outside(d.sign("alice"))
	d.node(d.checked())
	d.outside(agent.Pause{})
	d.node(d.came(agent.StatusResultUnknown, agent.ClassTimeout))
	d.outside(agent.Resume{})
	d.node(d.told())
	d.node(agent.Verified{Finding: agent.Undecided, Reason: "other_bytes", Evidence: d.store("evidence")})
	d.outside(enginetest.Statement(d.run, "bob", string(agent.Applied), d.now))
	d.node(d.told())
	d.node(agent.Returned{Outcome: agent.Outcome{Status: agent.StatusRejected, Class: agent.ClassToolError}})
	d.node(d.told())
	return d.answers()
}

// expired is a run in which nobody decides, then a person refuses by name, and the
// model asks for the same again.
func expired(t testing.TB) *desk {
	d := begin(t, enginetest.Spec("r")).asked(enginetest.ToolWrite, enginetest.ToolWrite, enginetest.ToolWrite)
	d.now = d.now.Add(time.Hour)
	d.take(agent.FromClock(d.tick()))
	d.node(d.told())
	d.waits()
	d.outside(d.refusal("bob"))
	d.node(d.told())
	d.waits() // refused before: it becomes a result
	return d.answers()
}

func TestCheck_HandsOnTheDeskAreClean(t *testing.T) {
	if r := edited(t).clean(); r.Counts.Statements != 1 || r.Counts.Grants != 1 || r.Counts.Sends != 1 {
		t.Errorf("edited: %+v", r.Counts)
	}
	if r := expired(t).clean(); r.Counts.Sends != 0 || r.Counts.Results != 3 || r.Counts.Statements != 1 {
		t.Errorf("expired and refused: %+v", r.Counts)
	}
	r := story(t).clean()
	if r.Counts.Attempts != 2 || r.Counts.Notes != 2 || r.Counts.Statements != 1 || r.Counts.Results != 3 || r.Counts.Turns != 3 {
		t.Errorf("story: %+v", r.Counts)
	}
}

// The approval signs the history that its candidate was made from.
func TestCheck_NamesTheLastSignedHead(t *testing.T) {
	d := begin(t, enginetest.Spec("r")).asked(enginetest.ToolDestroy)
	if r := d.clean(); r.Signed != nil {
		t.Errorf("nobody has signed, signed is %+v", r.Signed)
	}
	proposed := d.entries[1]
	d.outside(d.sign("alice"))
	d.outside(d.sign("bob"))
	want := audit.Signed{Seq: 2, Head: proposed.Hash(), Approver: "bob", By: 6}
	if r := d.clean(); r.Signed == nil || *r.Signed != want {
		t.Errorf("signed is %+v, want %+v", r.Signed, want)
	}
	cut := d.entries[:len(d.entries)-1]
	if r, err := audit.Check(journal(cut), d.body); err != nil || r.Signed.Approver != "alice" {
		t.Errorf("cut off: %+v, %v", r.Signed, err)
	}
}

// A grant that expired before the call was sent makes the run ask again; the second
// history is the one that is signed then.
func TestCheck_AskedAgainAfterAGrantExpired(t *testing.T) {
	d := begin(t, enginetest.Spec("r")).asked(enginetest.ToolWrite)
	d.outside(d.sign("alice"))
	d.now = d.now.Add(601 * time.Second)
	d.note(agent.FromNode(d.run.Open.Effect, d.checked(), d.tick()))
	d.waits()
	d.outside(d.sign("alice"))
	d.sent(agent.StatusOK, agent.ClassOK)
	if r := d.clean(); r.Counts.Grants != 2 || r.Counts.Sends != 1 || r.Signed.Seq != 5 {
		t.Errorf("%+v, signed %+v", r.Counts, r.Signed)
	}
}

// The fourth candidate of a tool, after three that expired, holds the run; what is
// granted meanwhile waits, and the wait is no work.
func TestCheck_AHeldRunDoesNotWork(t *testing.T) {
	const write = enginetest.ToolWrite
	d := begin(t, enginetest.Spec("r")).asked(write, write, write, write)
	for range agent.MaxTurnedDown {
		d.now = d.now.Add(time.Hour)
		d.take(agent.FromClock(d.tick()))
		d.node(d.told())
		d.waits()
	}
	if d.run.Reason != agent.ReasonTurnedDown {
		t.Fatalf("the run is not held: %+v", d.run)
	}
	d.outside(d.sign("alice"))
	d.now = d.now.Add(100 * time.Second)
	held := d.clean().Counts.Wall
	d.outside(agent.Resume{})
	if r := d.clean(); r.Counts.Wall != held {
		t.Errorf("worked %v, then %v", held, r.Counts.Wall)
	}
	d.sent(agent.StatusOK, agent.ClassOK)
	d.answers().clean()
}

// A process that ended during the Send of a write leaves it open.
func TestCheck_FindsWhatIsOpen(t *testing.T) {
	spec := enginetest.Spec("r")
	spec.Approvers[0].Scripted = true
	d := begin(t, spec).asked(enginetest.ToolWrite)
	d.outside(d.sign("alice"))
	d.node(d.checked())
	if open := about(d.clean()); !slices.Equal(open, []audit.Open{audit.OpenScripted, audit.OpenSend}) {
		t.Errorf("open is %v", open)
	}
}

func TestCheck_ReadsVersion0(t *testing.T) {
	raw, err := os.ReadFile("../testdata/journal-v0.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var entries []agent.Entry
	for line := range bytes.Lines(raw) {
		e, err := agent.ParseEntry(bytes.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
	r, err := audit.Check(journal(entries), nil)
	if err != nil || r.Counts.NotIncluded == 0 || r.Counts.Bodies != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestCheck_ErasedBodiesAreNoBreak(t *testing.T) {
	d := edited(t)
	told := agent.BodyRef{}
	for ref, data := range d.bodies {
		if bytes.HasPrefix(data, []byte("told")) {
			told = ref
		}
	}
	data := d.bodies[told]
	d.erase(told)
	if r := d.clean(); r.Counts.Erased != 1 || len(r.Findings) != 0 {
		t.Errorf("%+v, %+v", r.Counts, r.Findings)
	}
	d.bodies[told] = data
	if r := d.clean(); r.Counts.Erased != 0 || !slices.Equal(about(r), []audit.Open{audit.OpenStored}) {
		t.Errorf("stored all the same: %+v, %+v", r.Counts, r.Findings)
	}
	d.bodies[told] = []byte("something else")
	if _, err := audit.Check(d.journal(), d.body); !errors.Is(err, agent.ErrIntegrity) {
		t.Errorf("changed and erased: %v", err)
	}
}

// What cannot be read is not a break, and what is newer is named.
func TestCheck_OtherErrorsAreNoBreaks(t *testing.T) {
	d := edited(t)
	broken := errors.New("the disk is gone")
	fails := func(err error) func(func(agent.Entry, error) bool) {
		return func(yield func(agent.Entry, error) bool) {
			_ = yield(d.entries[0], nil) && yield(agent.Entry{}, err)
		}
	}
	for _, want := range []error{broken, agent.ErrNewer, agent.ErrNoRun} {
		_, err := audit.Check(fails(want), d.body)
		if !errors.Is(err, want) || errors.Is(err, agent.ErrIntegrity) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
	_, err := audit.Check(d.journal(), func(agent.BodyRef) ([]byte, error) { return nil, broken })
	if !errors.Is(err, broken) {
		t.Errorf("a body that cannot be read: %v", err)
	}
	var b *audit.Break
	if _, err := audit.Check(fails(agent.ErrIntegrity), d.body); !errors.As(err, &b) || b.Seq != 2 || b.What != audit.BreakEntry {
		t.Errorf("an engine that finds a break itself: %v", err)
	}
	if _, err := audit.Check(journal(nil), d.body); !errors.As(err, &b) || b.Seq != 1 {
		t.Errorf("an empty journal: %v", err)
	}
	newer := enginetest.Spec("r")
	d = begin(t, newer)
	rewrite(d, 1, func(s *agent.Spec) { s.Rules = agent.Rules + 1 })
	if _, err := audit.Check(d.journal(), d.body); !errors.Is(err, agent.ErrNewer) {
		t.Errorf("newer rules: %v", err)
	}
}
