package audit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/audit"
	"sallyport/agent/enginetest"
	"sallyport/tools/grant"
)

var epoch = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// desk writes a journal by hand, on a clock that moves by a second an entry: honestly
// by way of Step, or past it.
type desk struct {
	t       testing.TB
	run     agent.Run
	entries []agent.Entry
	bodies  map[agent.BodyRef][]byte
	now     time.Time
}

func begin(t testing.TB, spec agent.Spec) *desk {
	t.Helper()
	d := &desk{t: t, bodies: map[agent.BodyRef][]byte{}, now: epoch}
	d.store(string(enginetest.Task.Data))
	d.take(agent.Begin(spec, "operator", d.now))
	return d
}

// store keeps content and returns its name.
func (d *desk) store(text string) agent.BodyRef {
	b := agent.NewBody([]byte(text))
	d.bodies[b.Ref] = b.Data
	return b.Ref
}

func (d *desk) take(ev agent.Event) {
	d.t.Helper()
	next, entry, err := agent.Advance(d.run, ev)
	if err != nil {
		d.t.Fatalf("%s in %s: %v", ev.Kind(), d.run.State, err)
	}
	d.run, d.entries = next, append(d.entries, entry)
}

func (d *desk) tick() time.Time {
	d.now = d.now.Add(time.Second)
	return d.now
}

func (d *desk) node(r agent.Result) {
	d.t.Helper()
	d.take(agent.FromNode(d.run.Open.Effect, r, d.tick()))
}

func (d *desk) outside(dec agent.Decision) {
	d.t.Helper()
	d.take(agent.FromOutside(dec, "operator", d.tick()))
}

// note takes an event that Step refuses.
func (d *desk) note(ev agent.Event) {
	d.t.Helper()
	var no *agent.Refusal
	if _, _, err := agent.Step(d.run, ev); !errors.As(err, &no) {
		d.t.Fatalf("%s was not refused", ev.Kind())
	}
	run, entry, ok, err := agent.Note(d.run, ev, no)
	if err != nil || !ok {
		d.t.Fatalf("note: %t, %v", ok, err)
	}
	d.run, d.entries = run, append(d.entries, entry)
}

func (d *desk) erase(ref agent.BodyRef) {
	d.t.Helper()
	run, entry, err := agent.Erase(d.run, ref, "operator", d.tick())
	if err != nil {
		d.t.Fatal(err)
	}
	delete(d.bodies, ref)
	d.run, d.entries = run, append(d.entries, entry)
}

func (d *desk) attempt() {
	d.t.Helper()
	run, entry, err := agent.Attempt(d.run, d.tick())
	if err != nil {
		d.t.Fatal(err)
	}
	d.run, d.entries = run, append(d.entries, entry)
}

// attemptAs records an attempt at the open effect by an engine that takes the call for
// one of another tool.
func (d *desk) attemptAs(tool string) {
	d.t.Helper()
	mistaken, call := d.run, *d.run.Call
	call.Proposal.Tool = tool
	mistaken.Call = &call
	run, entry, err := agent.Attempt(mistaken, d.tick())
	if err != nil {
		d.t.Fatal(err)
	}
	run.Call = d.run.Call
	d.run, d.entries = run, append(d.entries, entry)
}

// proposes is a turn that calls the tools.
func (d *desk) proposes(tools ...string) agent.Turned {
	turned := agent.Turned{Message: d.store(fmt.Sprint("turn ", len(d.entries))), Usage: agent.Usage{Input: 100, Output: 10}}
	for i, tool := range tools {
		p, body := enginetest.Propose(tool, fmt.Sprint(len(d.entries), "_", i), `{"n":1}`)
		d.bodies[body.Ref] = body.Data
		turned.Calls = append(turned.Calls, p)
	}
	return turned
}

func (d *desk) arguments() agent.BodyRef {
	if d.run.Call.Edited {
		return d.run.Call.Arguments
	}
	return d.store(string(enginetest.Arguments))
}

func (d *desk) checked() agent.Checked {
	tool, _ := d.run.Spec.Tool(d.run.Call.Proposal.Tool)
	return agent.Checked{Arguments: d.arguments(), Definition: tool.Definition}
}

func (d *desk) waiting() agent.Returned {
	return enginetest.Waiting(agent.Task{Run: d.run, Effect: *d.run.Open}, d.arguments())
}

func (d *desk) came(s agent.Status, c agent.Class) agent.Returned {
	return agent.Returned{Outcome: agent.Outcome{Status: s, Class: c, Sent: true, Body: d.store("raw " + string(s))}}
}

func (d *desk) told() agent.Observed {
	out := d.run.Call.Outcome
	o := agent.Observed{Status: out.Status, Class: out.Class, Reason: out.Reason}
	if out.Status != agent.StatusWaitingApproval && out.Status != agent.StatusResultUnknown {
		o.Message = d.store(fmt.Sprint("told ", len(d.entries)))
	}
	return o
}

// asked brings a call of the model's to the person's desk.
func (d *desk) asked(tool string, more ...string) *desk {
	d.t.Helper()
	d.node(d.proposes(append([]string{tool}, more...)...))
	d.waits()
	return d
}

func (d *desk) waits() {
	d.t.Helper()
	d.node(d.waiting())
	d.node(d.told())
}

func (d *desk) sign(by string) agent.Approve { return enginetest.Sign(d.run, by, d.now) }

// sent sends the call in hand and tells the model.
func (d *desk) sent(s agent.Status, c agent.Class) {
	d.t.Helper()
	d.node(d.checked())
	d.node(d.came(s, c))
	d.node(d.told())
}

func (d *desk) answers() *desk {
	d.t.Helper()
	d.node(agent.Turned{Message: d.store("answer")})
	return d
}

func (d *desk) edit(by, arguments string) agent.Edit {
	ref, cand := d.store(arguments), d.run.Call.Candidate
	wire, err := grant.SignEdit(enginetest.Key(by), grant.Edit{
		Candidate: cand.ID, Run: d.run.ID, Arguments: ref.SHA256, Bytes: ref.Bytes, Approver: by, Head: cand.Head, Time: d.now.Unix(),
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return agent.Edit{Signed: wire, Arguments: ref}
}

func (d *desk) refusal(by string) agent.Refuse {
	cand := d.run.Call.Candidate
	wire, err := grant.SignRefusal(enginetest.Key(by), grant.Refusal{
		Candidate: cand.ID, Run: d.run.ID, Approver: by, Head: cand.Head, Time: d.now.Unix(),
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return agent.Refuse{Candidate: cand.ID, Signed: wire}
}

// forge appends an entry past Step, chained as if it were one of ours.
func (d *desk) forge(e agent.Entry) {
	d.t.Helper()
	last := d.entries[len(d.entries)-1]
	e.Version, e.Run, e.Seq, e.Prev, e.Time = agent.Version, last.Run, last.Seq+1, last.Hash(), d.tick()
	if e.Kind == "" {
		e.Kind = agent.EntryEvent
	}
	for i := range e.Effects {
		e.Effects[i].Seq = e.Seq
	}
	d.entries = append(d.entries, sealed(d.t, e))
}

// payload is the data of an event.
func payload(t testing.TB, v any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func sealed(t testing.TB, e agent.Entry) agent.Entry {
	t.Helper()
	e, err := agent.ParseEntry(payload(t, e))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// rechain lets change rewrite entries and makes the chain whole again, as somebody
// would who may write to the state directory.
func (d *desk) rechain(change func(*agent.Entry)) {
	d.t.Helper()
	head := ""
	for i, e := range d.entries {
		change(&e)
		e.Prev = head
		d.entries[i] = sealed(d.t, e)
		head = d.entries[i].Hash()
	}
}

// rewrite changes what the event of one entry says, and makes the chain whole again.
func rewrite[P any](d *desk, seq int64, change func(*P)) {
	d.t.Helper()
	d.rechain(func(e *agent.Entry) {
		if e.Seq != seq {
			return
		}
		var p P
		if err := json.Unmarshal(e.Data, &p); err != nil {
			d.t.Fatal(err)
		}
		change(&p)
		e.Data = payload(d.t, p)
	})
}

// last is the sequence of the last entry that records the event.
func (d *desk) last(kind agent.Kind) int64 {
	d.t.Helper()
	for _, e := range slices.Backward(d.entries) {
		if e.Event == kind {
			return e.Seq
		}
	}
	d.t.Fatalf("no %s", kind)
	return 0
}

func (d *desk) body(ref agent.BodyRef) ([]byte, error) {
	data, ok := d.bodies[ref]
	if !ok {
		return nil, agent.ErrNoBody
	}
	return data, nil
}

func (d *desk) journal() iter.Seq2[agent.Entry, error] { return journal(d.entries) }

func journal(entries []agent.Entry) iter.Seq2[agent.Entry, error] {
	return func(yield func(agent.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// clean expects the audit to find nothing, with and without Step.
func (d *desk) clean() audit.Report {
	d.t.Helper()
	if _, err := audit.CheckAlone(d.journal(), d.body); err != nil {
		d.t.Errorf("the witness alone: %v", err)
	}
	report, err := audit.Check(d.journal(), d.body)
	if err != nil {
		d.t.Fatalf("check: %v", err)
	}
	return report
}
