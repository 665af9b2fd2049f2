package debug_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/agent/enginetest"
)

// Whatever step is gone to, from wherever, the run there is what a replay up to there
// gives; over pages, with entries between that are no steps.
func TestSession_EveryStepIsWhatAReplayGives(t *testing.T) {
	d := newDesk(t)
	spec := enginetest.Spec("r")
	spec.Budget = agent.Budget{Calls: 500, Turns: 500, Tokens: 1 << 30, Wall: 1000}
	d.begin(spec)
	for range 3 { // noted, in the first page
		d.deliver("r", agent.Refuse{Candidate: "none"}, time.Now().String())
	}
	script := make(enginetest.Script, 100)
	for i := range script {
		script[i] = []string{enginetest.ToolRead}
	}
	d.serve("r", script)
	var want []agent.Run
	run := agent.Run{}
	for e, err := range d.engine.Journal(t.Context(), "r", 1, false) {
		if err != nil {
			t.Fatal(err)
		}
		if run, err = agent.Apply(run, e); err != nil {
			t.Fatal(err)
		}
		if e.Kind == agent.EntryEvent {
			want = append(want, run)
		}
	}
	s := d.open("r")
	if s.Steps() != len(want) || s.Steps() < 400 || s.Last().Seq != run.Seq || run.Noted != 3 {
		t.Fatalf("%d steps to entry %d, want %d to entry %d", s.Steps(), s.Last().Seq, len(want), run.Seq)
	}
	for i := range want {
		step := (i*163)%len(want) + 1 // all of them, far apart
		stop, err := s.Goto(t.Context(), step)
		if err != nil {
			t.Fatal(err)
		}
		m := s.Moment()
		if stop.Step != step || m.Run.Head != want[step-1].Head || m.Run.Used != want[step-1].Used || m.Entry.Hash() != m.Run.Head {
			t.Fatalf("step %d: %v, head %s, used %+v; want %s, %+v", step, stop.Position, m.Run.Head, m.Run.Used, want[step-1].Head, want[step-1].Used)
		}
		if s.StepOf(m.Seq) != step || s.Mark(step).State != m.State || s.Mark(step).Row != m.Entry.Row {
			t.Fatalf("step %d: entry %d is of step %d, mark %+v", step, m.Seq, s.StepOf(m.Seq), s.Mark(step))
		}
	}
}

// Going back and forth a hundred times only reads: nothing is sent, asked or appended.
func TestSession_BackAndForthOnlyReads(t *testing.T) {
	d := newDesk(t)
	d.reported("r")
	sent, asked, before := d.world.TotalSent(), d.world.Asked(), bytesOf(d, "r")
	if sent != 3 {
		t.Fatalf("%d calls were sent, want 3", sent)
	}
	s := d.open("r")
	for range 100 {
		stop, err := s.Continue(t.Context())
		if err != nil || stop.Reason != debug.AtEnd || stop.State != agent.StateCompleted {
			t.Fatalf("forth: %+v, %v", stop, err)
		}
		if stop, err = s.Rewind(t.Context()); err != nil || stop.Reason != debug.AtBeginning || stop.Step != 1 {
			t.Fatalf("back: %+v, %v", stop, err)
		}
	}
	if d.world.TotalSent() != sent || d.world.Asked() != asked || bytesOf(d, "r") != before {
		t.Errorf("sent %d and asked %d, was %d and %d; journal the same: %t", d.world.TotalSent(), d.world.Asked(), sent, asked, bytesOf(d, "r") == before)
	}
}

func bytesOf(d *desk, run string) (all string) {
	d.t.Helper()
	for e, err := range d.engine.Journal(context.Background(), run, 1, false) {
		if err != nil {
			d.t.Fatal(err)
		}
		all += string(e.Bytes()) + "\n"
	}
	return all
}

func TestSession_MovesAsItSays(t *testing.T) {
	d := newDesk(t)
	d.reported("r")
	s := d.open("r")
	ctx := t.Context()
	for _, c := range []struct {
		name   string
		move   func() (debug.Stop, error)
		step   int
		reason debug.Reason
	}{
		{"back at the beginning", func() (debug.Stop, error) { return s.Back(ctx) }, 1, debug.AtBeginning},
		{"next, to the end of a read", func() (debug.Stop, error) { return s.Next(ctx) }, 5, debug.Reached},
		{"next, to the end of the second", func() (debug.Stop, error) { return s.Next(ctx) }, 9, debug.Reached},
		{"until the save waits", func() (debug.Stop, error) { return s.Until(ctx, agent.StateAwaitingApproval) }, 11, debug.Reached},
		{"reverse next", func() (debug.Stop, error) { return s.ReverseNext(ctx) }, 9, debug.Reached},
		{"next over the approval", func() (debug.Stop, error) { return s.Next(ctx) }, 15, debug.Reached},
		{"step", func() (debug.Stop, error) { return s.Step(ctx) }, 16, debug.Stepped},
		{"step at the end", func() (debug.Stop, error) { return s.Step(ctx) }, 16, debug.AtEnd},
		{"next at the end", func() (debug.Stop, error) { return s.Next(ctx) }, 16, debug.AtEnd},
		{"until what never comes", func() (debug.Stop, error) { return s.Until(ctx, agent.StateFailed) }, 16, debug.AtEnd},
		{"goto", func() (debug.Stop, error) { return s.Goto(ctx, 3) }, 3, debug.Stepped},
		{"goto beyond the end", func() (debug.Stop, error) { return s.Goto(ctx, 17) }, 16, debug.AtEnd},
		{"goto the last", func() (debug.Stop, error) { return s.Goto(ctx, 16) }, 16, debug.Stepped},
		{"goto before the beginning", func() (debug.Stop, error) { return s.Goto(ctx, 0) }, 1, debug.AtBeginning},
	} {
		stop, err := c.move()
		if err != nil || stop.Step != c.step || stop.Reason != c.reason || s.Position() != stop.Position {
			t.Errorf("%s: %s (%s), %v; want step %d (%s)", c.name, stop.Position, stop.Reason, err, c.step, c.reason)
		}
	}
	if at, want := s.Position().String(), "@ step 1/16 · seq 1 · model"; at != want {
		t.Errorf("position %q, want %q", at, want)
	}
}

func TestSession_FollowsARunThatIsServedElsewhere(t *testing.T) {
	d := newDesk(t)
	d.begin(enginetest.Spec("r"))
	s := d.open("r")
	if stop, err := s.Step(t.Context()); err != nil || stop.Reason != debug.AtEnd {
		t.Fatalf("step beyond what is recorded: %+v, %v", stop, err)
	}
	came := make(chan error, 1)
	go func() { came <- s.Await(context.Background()) }() // ends with the first step
	run := d.serve("r", report)
	if err := <-came; err != nil || s.Steps() < 2 {
		t.Fatalf("awaited %d steps, %v", s.Steps(), err)
	}
	if stop, err := s.Continue(t.Context()); err != nil || stop.State != agent.StateAwaitingApproval || stop.Steps != 11 {
		t.Fatalf("continue: %+v, %v", stop, err)
	}
	if s.Last().Head != run.Head {
		t.Errorf("it read up to %s, the run is at %s", s.Last().Head, run.Head)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Await(late); !errors.Is(err, context.Canceled) {
		t.Errorf("await with a context that is done: %v", err)
	}
	d.deliver("r", enginetest.Sign(run, "alice", time.Now()), "")
	d.serve("r", report)
	if added, err := s.Refresh(t.Context()); err != nil || added != 5 || s.Position().Step != 11 {
		t.Errorf("refreshed by %d, %v; at %s", added, err, s.Position())
	}
	if err := s.Await(t.Context()); !errors.Is(err, debug.ErrEnded) {
		t.Errorf("await of a run that has ended: %v", err)
	}
}

func TestOpen_BeginsWhereThereIsSomethingToSee(t *testing.T) {
	d := newDesk(t)
	d.reported("ended")
	if p := d.open("ended").Position(); p.Step != 1 {
		t.Errorf("of a run that has ended: %s", p)
	}
	d.begin(enginetest.Spec("open"))
	d.serve("open", report)
	if p := d.open("open").Position(); p.Step != 11 || p.State != agent.StateAwaitingApproval {
		t.Errorf("of a run that is open: %s", p)
	}
	if _, err := debug.Open(t.Context(), d.engine, "none"); !errors.Is(err, agent.ErrNoRun) {
		t.Errorf("of no run: %v", err)
	}
}

func TestSession_TellsCallsAndDecisionsAsOfAStep(t *testing.T) {
	d := newDesk(t)
	d.reported("r")
	s := d.open("r")
	all := s.Calls(0)
	if len(all) != 3 || all[2].Tool != enginetest.ToolWrite || all[2].Status != agent.StatusOK || all[2].First != 9 || all[2].Last != 15 || !all[2].Sent {
		t.Errorf("calls %+v", all)
	}
	if _, err := s.Goto(t.Context(), 11); err != nil {
		t.Fatal(err)
	}
	then := s.Calls(11)
	if len(then) != 3 || then[2].Status != agent.StatusWaitingApproval || then[2].Sent || then[2].Last != 0 || then[1].Last != 9 {
		t.Errorf("calls while the save waits %+v", then)
	}
	if n := len(s.Calls(8)); n != 2 {
		t.Errorf("%d calls by step 8", n)
	}
	if n := len(s.Decisions(11)); n != 0 {
		t.Errorf("%d decisions by step 11", n)
	}
	if got := s.Decisions(12); len(got) != 1 || got[0].By != "alice" || got[0].Row != agent.RowGranted || got[0].Tool != enginetest.ToolWrite {
		t.Errorf("decisions %+v", got)
	}
	if s.Asked(8) != 5 || s.Asked(5) != 5 || s.Asked(4) != 1 {
		t.Errorf("asked at %d, %d, %d", s.Asked(8), s.Asked(5), s.Asked(4))
	}
}
