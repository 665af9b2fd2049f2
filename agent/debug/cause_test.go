package debug_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/agent/enginetest"
)

func why(t *testing.T, s *debug.Session, step int) (words []string) {
	t.Helper()
	chain, err := s.Causes(t.Context(), step)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chain {
		if c.Says == "" || s.Mark(c.Step).Row != c.Entry.Row {
			t.Errorf("step %d says %q of entry %d", c.Step, c.Says, c.Entry.Seq)
		}
		words = append(words, c.Word)
	}
	return words
}

func TestCauses_LeadFromAnOutcomeToTheTurn(t *testing.T) {
	d := newDesk(t)
	d.reported("r")
	s := d.open("r")
	for step, want := range map[int]string{
		1:  "start",
		4:  "result intent proposal start",
		5:  "outcome result intent proposal start",
		9:  "outcome result intent proposal start",
		11: "candidate check proposal start",
		15: "outcome result intent approval candidate check proposal start",
		16: "answer outcome result intent approval candidate check proposal start",
	} {
		if got := strings.Join(why(t, s, step), " "); got != want {
			t.Errorf("step %d: %s, want %s", step, got, want)
		}
	}
}

func TestCauses_NameBothApproversOfADestructiveCall(t *testing.T) {
	d := newDesk(t)
	d.begin(enginetest.Spec("d"))
	script := enginetest.Script{{enginetest.ToolDestroy}}
	run := d.serve("d", script)
	d.deliver("d", enginetest.Sign(run, "alice", time.Now()), "")
	d.deliver("d", enginetest.Sign(run, "bob", time.Now()), "")
	d.serve("d", script)
	s := d.open("d")
	chain, err := s.Causes(t.Context(), s.Steps()-1)
	if err != nil {
		t.Fatal(err)
	}
	var by []string
	for _, c := range chain {
		if c.Word == "approval" {
			by = append(by, c.Entry.Actor)
		}
	}
	if !slices.Equal(by, []string{"bob", "alice"}) {
		t.Errorf("approved by %v", by)
	}
}

func TestDiff_FindsTheFirstStepThatDiffers(t *testing.T) {
	d := newDesk(t)
	d.reported("a")
	d.reported("b")
	if got, err := debug.Diff(t.Context(), d.open("a"), d.open("b")); err != nil || !got.Same || got.Equal != 15 || len(got.Pinned) != 0 {
		t.Errorf("two runs of the same: %+v, %v", got, err)
	}
	d.begin(enginetest.Spec("stepped")) // how it was driven makes no difference
	d.deliver("stepped", agent.Pause{}, "p1")
	d.deliver("stepped", agent.StepOnce{}, "s1")
	d.serve("stepped", report)
	d.deliver("stepped", agent.Extend{Budget: agent.Budget{Calls: 1}}, "x1")
	d.deliver("stepped", agent.Resume{}, "r1")
	waiting := d.serve("stepped", report)
	d.deliver("stepped", enginetest.Sign(waiting, "alice", time.Now()), "")
	d.serve("stepped", report)
	if got, err := debug.Diff(t.Context(), d.open("a"), d.open("stepped")); err != nil || !got.Same || got.Equal != 15 {
		t.Errorf("one that was stepped: %+v, %v", got, err)
	}
	other := enginetest.Spec("c")
	other.Budget.Calls = 5
	d.begin(other)
	run := d.serve("c", report)
	got, err := debug.Diff(t.Context(), d.open("a"), d.open("c"))
	if err != nil || got.Same || got.A == nil || got.A.Step != 12 || got.B != nil || len(got.Pinned) != 1 || got.Pinned[0].Path != "budget.calls" {
		t.Errorf("a run that waits: %+v, %v", got, err)
	}
	d.deliver("c", agent.Refuse{Candidate: run.Call.Candidate.ID}, "no")
	d.serve("c", report)
	if got, err = debug.Diff(t.Context(), d.open("a"), d.open("c")); err != nil || got.A.Step != 12 || got.B.Entry.Row != agent.RowRefused {
		t.Errorf("a run in which it was refused: %+v, %v", got, err)
	}
	if !slices.ContainsFunc(got.Fields, func(f debug.Field) bool { return f.Path == "row" && f.A == `"granted"` && f.B == `"refused"` }) {
		t.Errorf("fields %+v", got.Fields)
	}
}

// A fork is compared with its parent from where it left it.
func TestDiff_OfAForkBeginsBehindWhatItCarries(t *testing.T) {
	d := newDesk(t)
	d.reported("parent")
	spec := enginetest.ForkOf(t, d.engine, "parent", 10, "fork") // entry 10: before the save
	if _, err := d.engine.Start(t.Context(), spec, "tester", []agent.Body{enginetest.Task}); err != nil {
		t.Fatal(err)
	}
	parent, fork := d.open("parent"), d.open("fork")
	got, err := debug.Diff(t.Context(), parent, fork)
	if err != nil || got.Same || got.A == nil || got.A.Step != 10 || got.B != nil {
		t.Fatalf("before it went on: %+v, %v", got, err)
	}
	run := d.serve("fork", report)
	if run.State != agent.StateAwaitingApproval || d.world.TotalSent() != 3 {
		t.Fatalf("the fork is %s, %d sent; want it to wait for a new approval", run.State, d.world.TotalSent())
	}
	if got, err = debug.Diff(t.Context(), parent, d.open("fork")); err != nil || got.A.Step != 12 || got.Equal != 2 {
		t.Errorf("waiting: %+v, %v", got, err)
	}
	if back, err := debug.Diff(t.Context(), d.open("fork"), parent); err != nil || back.B.Step != 12 || back.A != nil {
		t.Errorf("the other way: %+v, %v", back, err)
	}
}

// A fork begins an open call again, so that call is compared too, wherever in it, or
// before anything is carried, the fork was begun.
func TestDiff_OfAForkFromWithinACall(t *testing.T) {
	d := newDesk(t)
	d.reported("parent")
	parent := d.open("parent")
	for seq := range int64(parent.Steps() - 2) {
		seq++
		id := fmt.Sprintf("fork-%d", seq)
		spec := enginetest.ForkOf(t, d.engine, "parent", seq, id)
		if _, err := d.engine.Start(t.Context(), spec, "tester", []agent.Body{enginetest.Task}); err != nil {
			t.Fatal(err)
		}
		run := d.serve(id, report)
		if run.State == agent.StateAwaitingApproval {
			d.deliver(id, enginetest.Sign(run, "alice", time.Now()), "")
			run = d.serve(id, report)
		}
		if run.State != agent.StateCompleted {
			t.Fatalf("fork from entry %d is %s", seq, run.State)
		}
		for _, pair := range [][2]string{{"parent", id}, {id, "parent"}} {
			if got, err := debug.Diff(t.Context(), d.open(pair[0]), d.open(pair[1])); err != nil || !got.Same || got.Equal == 0 {
				t.Errorf("%s: same %t after %d steps, at %+v, %v", pair, got.Same, got.Equal, got.Fields, err)
			}
		}
	}
}

func TestMachine_MarksWhereTheRunIs(t *testing.T) {
	d := newDesk(t)
	d.reported("r")
	s := d.open("r")
	m, err := s.At(t.Context(), 11)
	if err != nil {
		t.Fatal(err)
	}
	text := debug.Machine(m)
	for _, want := range []string{
		"\n=> awaiting_approval  -> execute (granted, edited)  -> observe (refused, expired)", "-> awaiting_approval (approval_required*)",
		"From awaiting_approval:\n   granted           -> execute            by approver\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it lacks %q:\n%s", want, text)
		}
	}
	if m, err = s.At(t.Context(), 16); err != nil || !strings.Contains(debug.Machine(m), "Nothing leads on from completed.") {
		t.Errorf("at the end: %v\n%s", err, debug.Machine(m))
	}
}
