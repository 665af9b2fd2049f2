package picture

import (
	"errors"
	"fmt"
	"iter"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/enginetest"
	"sallyport/tools/grant"
)

var epoch = time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)

// desk writes a journal by way of Step, on a clock that only the test moves.
type desk struct {
	t       testing.TB
	run     agent.Run
	entries []agent.Entry
	now     time.Time
}

func begin(t testing.TB, run string, change ...func(*agent.Spec)) *desk {
	t.Helper()
	spec := enginetest.Spec(run)
	for i := range spec.Tools {
		if spec.Tools[i].Approvers > 0 {
			spec.Tools[i].Expires = 24 * 3600
		}
	}
	for _, c := range change {
		c(&spec)
	}
	d := &desk{t: t, now: epoch}
	d.take(agent.Begin(spec, "carol", d.now))
	return d
}

func (d *desk) after(long time.Duration) *desk {
	d.now = d.now.Add(long)
	return d
}

func (d *desk) take(ev agent.Event) {
	d.t.Helper()
	next, entry, err := agent.Advance(d.run, ev)
	if err != nil {
		d.t.Fatalf("%s in %s: %v", ev.Kind(), d.run.State, err)
	}
	d.run, d.entries = next, append(d.entries, entry)
}

func (d *desk) node(r agent.Result) *desk {
	d.t.Helper()
	d.take(agent.FromNode(d.run.Open.Effect, r, d.now))
	return d
}

func (d *desk) outside(dec agent.Decision) *desk {
	d.t.Helper()
	d.take(agent.FromOutside(dec, "carol", d.now))
	return d
}

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

func (d *desk) attempt() *desk {
	d.t.Helper()
	run, entry, err := agent.Attempt(d.run, d.now)
	if err != nil {
		d.t.Fatal(err)
	}
	d.run, d.entries = run, append(d.entries, entry)
	return d
}

func ref(text string) agent.BodyRef { return agent.NewBody([]byte(text)).Ref }

// proposes is a turn of the model that calls the tools.
func (d *desk) proposes(tools ...string) *desk {
	d.t.Helper()
	turned := agent.Turned{Message: ref(fmt.Sprint("turn ", len(d.entries))), Usage: agent.Usage{Input: 1400, Output: 90}}
	for i, tool := range tools {
		p, _ := enginetest.Propose(tool, fmt.Sprint(len(d.entries), "_", i), secret)
		turned.Calls = append(turned.Calls, p)
	}
	return d.node(turned)
}

// secret is content that no picture may hold.
const secret = `{"content":"SECRET-CONTENT"}`

func (d *desk) arguments() agent.BodyRef {
	if d.run.Call.Edited {
		return d.run.Call.Arguments
	}
	return ref(fmt.Sprintf(`{"n":%d}`, d.run.Turn.Seq))
}

func (d *desk) checked() *desk {
	d.t.Helper()
	tool, _ := d.run.Spec.Tool(d.run.Call.Proposal.Tool)
	return d.node(agent.Checked{Arguments: d.arguments(), Definition: tool.Definition})
}

// waits brings the call in hand to a person.
func (d *desk) waits() *desk {
	d.t.Helper()
	return d.node(enginetest.Waiting(agent.Task{Run: d.run, Effect: *d.run.Open}, d.arguments())).told()
}

// came is what Send returns.
func (d *desk) came(s agent.Status, c agent.Class, reason string) *desk {
	d.t.Helper()
	return d.node(agent.Returned{Outcome: agent.Outcome{Status: s, Class: c, Reason: reason, Sent: true, Body: ref("raw")}})
}

// told tells the model what came, or nobody.
func (d *desk) told() *desk {
	d.t.Helper()
	out := d.run.Call.Outcome
	o := agent.Observed{Status: out.Status, Class: out.Class, Reason: out.Reason}
	if out.Status != agent.StatusWaitingApproval && out.Status != agent.StatusResultUnknown {
		o.Message = ref(fmt.Sprint("told ", len(d.entries)))
	}
	return d.node(o)
}

// reads makes a call that only reads, in the time given.
func (d *desk) reads(long time.Duration) *desk {
	d.t.Helper()
	return d.checked().after(long).came(agent.StatusOK, agent.ClassOK, "").told()
}

func (d *desk) approves(by string) *desk {
	d.t.Helper()
	return d.outside(enginetest.Sign(d.run, by, d.now))
}

func (d *desk) refuses(by string) *desk {
	d.t.Helper()
	cand := d.run.Call.Candidate
	wire, err := grant.SignRefusal(enginetest.Key(by), grant.Refusal{
		Candidate: cand.ID, Run: d.run.ID, Approver: by, Head: cand.Head, Time: d.now.Unix(),
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return d.outside(agent.Refuse{Candidate: cand.ID, Signed: wire})
}

func (d *desk) edits(by, arguments string) *desk {
	d.t.Helper()
	to, cand := ref(arguments), d.run.Call.Candidate
	wire, err := grant.SignEdit(enginetest.Key(by), grant.Edit{
		Candidate: cand.ID, Run: d.run.ID, Arguments: to.SHA256, Bytes: to.Bytes, Approver: by, Head: cand.Head, Time: d.now.Unix(),
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return d.outside(agent.Edit{Signed: wire, Arguments: to})
}

func (d *desk) answers() *desk {
	d.t.Helper()
	return d.node(agent.Turned{Message: ref("answer"), Usage: agent.Usage{Input: 2100, Output: 160}})
}

func (d *desk) journal() iter.Seq2[agent.Entry, error] {
	return func(yield func(agent.Entry, error) bool) {
		for _, e := range d.entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (d *desk) story() *Story {
	d.t.Helper()
	s, err := Read(d.journal())
	if err != nil {
		d.t.Fatal(err)
	}
	return &s
}

// report is the main job: a document is read, a report proposed, edited, approved after
// lunch, and saved.
func report(t testing.TB) *desk {
	d := begin(t, "quarterly-report")
	d.after(1800 * time.Millisecond).proposes(enginetest.ToolRead)
	d.after(20 * time.Millisecond).reads(240 * time.Millisecond)
	d.after(2100*time.Millisecond).proposes(enginetest.ToolRead, enginetest.ToolRead)
	d.after(15 * time.Millisecond).reads(410 * time.Millisecond)
	d.after(12*time.Millisecond).checked().after(900*time.Millisecond).came(agent.StatusFailed, agent.ClassToolError, "tool_error").told()
	d.after(3400 * time.Millisecond).proposes(enginetest.ToolWrite)
	d.after(30 * time.Millisecond).waits()
	d.after(38*time.Minute+12*time.Second).edits("alice", `{"n":2}`)
	d.after(25 * time.Millisecond).waits()
	d.after(4*time.Hour + 12*time.Minute).approves("alice")
	d.after(60*time.Millisecond).checked().after(350*time.Millisecond).came(agent.StatusOK, agent.ClassOK, "").after(80 * time.Millisecond).told()
	return d.after(1500 * time.Millisecond).answers()
}

// trouble is a run to which much happens: two keys, a refusal, an expiry, a pause, a crash,
// a model that is away, a forged grant, an outcome that nobody knows, and a budget that ends.
func trouble(t testing.TB) *desk {
	d := begin(t, "migration-17", func(s *agent.Spec) {
		s.Budget = agent.Budget{Calls: 6, Turns: 12, Tokens: 9000, Wall: 600, Cost: 40_000}
		s.Prices = &agent.Prices{Currency: "EUR", Input: 2_500_000, Cached: 250_000, Output: 10_000_000}
	})
	d.after(900 * time.Millisecond).node(agent.Unreached{Reason: "timeout", After: 2})
	d.after(3 * time.Second).node(agent.TurnRefused{Reason: "cut_off", Message: ref("again"), Usage: agent.Usage{Input: 900, Output: 40}})
	d.after(2*time.Second).proposes(enginetest.ToolDestroy, "", enginetest.ToolRead)
	d.after(50 * time.Millisecond).waits()
	d.note(agent.FromOutside(enginetest.Sign(d.run, "mallory", d.now), "mallory", d.after(4*time.Minute).now))
	d.after(9 * time.Minute).approves("alice")
	d.after(8*time.Minute + 20*time.Second).approves("bob")
	d.after(80*time.Millisecond).checked().after(5*time.Second).came(agent.StatusResultUnknown, agent.ClassTimeout, "timeout").told()
	d.node(agent.Verified{Finding: agent.Undecided, Reason: "other_bytes"})
	d.after(26 * time.Hour).outside(enginetest.Statement(d.run, "bob", "applied", d.now))
	d.told()
	d.node(agent.Returned{Outcome: agent.Outcome{Status: agent.StatusRejected, Class: agent.ClassToolError, Reason: "unknown_tool"}}).told()
	d.after(40 * time.Millisecond).outside(agent.Pause{})
	d.after(11 * time.Minute).outside(agent.Resume{})
	d.after(30 * time.Millisecond).checked().after(1200 * time.Millisecond).attempt()
	d.after(600*time.Millisecond).came(agent.StatusUnavailable, agent.ClassTimeout, "exited").told()
	d.after(2400 * time.Millisecond).proposes(enginetest.ToolWrite)
	d.after(45 * time.Millisecond).waits()
	d.after(3 * time.Minute).refuses("bob").told()
	d.after(1700 * time.Millisecond).proposes(enginetest.ToolWrite)
	d.after(45 * time.Millisecond).waits()
	d.after(24*time.Hour + time.Second).take(agent.FromClock(d.now))
	d.told()
	d.after(2 * time.Second).proposes(enginetest.ToolRead)
	d.reads(500 * time.Millisecond)
	return d.after(2 * time.Second).node(agent.Turned{
		Message: ref("more"), Usage: agent.Usage{Input: 4000, Output: 900},
		Calls: []agent.Proposal{{Tool: enginetest.ToolRead, Body: ref("call")}},
	})
}

// parked waits for its second key.
func parked(t testing.TB) *desk {
	d := begin(t, "cleanup-3")
	d.after(1200 * time.Millisecond).proposes(enginetest.ToolRead)
	d.reads(300 * time.Millisecond)
	d.after(1900 * time.Millisecond).proposes(enginetest.ToolDestroy)
	d.after(40 * time.Millisecond).waits()
	return d.after(7 * time.Minute).approves("alice")
}

// built are the journals of long runs, each made once: signing them takes its time.
var built = map[int]*desk{}

// endless is a run of many steps. It is for looking at, and belongs to all tests.
func endless(t testing.TB, steps int) *desk {
	t.Helper()
	if built[steps] == nil {
		built[steps] = long(t, steps)
	}
	d := *built[steps]
	d.t = t
	return &d
}

func long(t testing.TB, steps int) *desk {
	d := begin(t, "endless", func(s *agent.Spec) {
		s.Budget = agent.Budget{Calls: 100_000, Turns: 100_000, Tokens: 1 << 30, Wall: 1 << 30}
	})
	for turn := 0; len(d.entries) < steps; turn++ {
		d.after(time.Duration(700+turn*37%900)*time.Millisecond).proposes(enginetest.ToolRead, enginetest.ToolRead, enginetest.ToolWrite)
		d.reads(time.Duration(50+turn*13%400) * time.Millisecond)
		d.checked().after(90 * time.Millisecond)
		if turn%7 == 0 {
			d.came(agent.StatusFailed, agent.ClassToolError, "tool_error").told()
		} else {
			d.came(agent.StatusOK, agent.ClassOK, "").told()
		}
		d.waits().after(time.Duration(1+turn*turn%300) * time.Second)
		if turn%11 == 3 && turned(d.run) < agent.MaxTurnedDown-1 {
			d.refuses("bob").told()
			continue
		}
		d.approves([]string{"alice", "bob"}[turn%2]).reads(120 * time.Millisecond)
	}
	return d.after(time.Second).answers()
}

func turned(r agent.Run) int { return len(r.TurnedDown) }
