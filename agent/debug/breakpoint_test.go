package debug_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/agent/enginetest"
)

// The steps at which each breakpoint stops are the same forwards and backwards.
func TestBreak_StopsWhereItSays(t *testing.T) {
	d := newDesk(t)
	d.reported("r")
	for text, want := range map[string][]int{
		"state awaiting_approval": {11},
		"awaiting_approval":       {11},
		"state model":             {5, 15}, // the first step is where the cursor is
		"tool desk__write":        {9},
		"desk__write":             {9},
		"tool desk__*":            {2, 6, 9},
		"tool desk__r?ad":         {2, 6},
		"risk write":              {9},
		"risk read":               {2, 6},
		"event approve":           {12},
		"row granted":             {12},
		"granted":                 {12},
		"budget calls>=2":         {7},
		"calls>=3":                {13},
		"budget calls==1":         {3},
		"budget turns>8%":         {6}, // of 24
		"budget calls>20%":        {13},
		"budget tokens>=101%":     nil, // what a turn takes is known behind it
		"budget calls>=100%":      nil,
		"budget tokens > 29":      {6},
		"step 7":                  {7},
		"7":                       {7},
		"event returned if call.outcome.status == \"ok\"":            {4, 8, 14},
		"row returned if used.calls > 2 && call.tool ~ \"desk__w*\"": {14},
		"reason refused":        nil,
		"state failed":          nil,
		"event checked if call": {3, 7, 13},
	} {
		s := d.open("r")
		if _, err := s.Break(text); err != nil {
			t.Errorf("break %s: %v", text, err)
			continue
		}
		if got := stops(t, s, s.Continue); !slices.Equal(got, want) {
			t.Errorf("break %s: stops at %v, want %v", text, got, want)
		}
		back := stops(t, s, s.Rewind)
		slices.Reverse(back)
		if len(back) > 0 && back[0] == 1 { // where nothing but the beginning stops it
			back = back[1:]
		}
		if !slices.Equal(back, want) {
			t.Errorf("break %s: on the way back it stops at %v, want %v", text, back, want)
		}
	}
}

func stops(t *testing.T, s *debug.Session, move mover) (at []int) {
	t.Helper()
	for {
		stop, err := move(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if stop.Reason != debug.Hit {
			return at
		}
		at = append(at, stop.Step)
	}
}

func TestBreak_SaysWhatItDoesNotKnow(t *testing.T) {
	d := newDesk(t)
	d.reported("r")
	s := d.open("r")
	for text, want := range map[string]string{
		"":                            "on one of state, tool",
		"nowhere":                     "it is no state, row, kind of event, risk or tool",
		"state waiting":               "want one of model, execute",
		"event aproved":               "want one of approve",
		"row gone":                    "want one of started",
		"risk high":                   "want one of read, write",
		"tool docs__save":             "the run has desk__read",
		"tool [":                      "syntax error",
		"budget calls":                "want such as calls>=8",
		"budget call>=8":              "want such as calls>=8",
		"budget calls<8":              "want such as calls>=8",
		"budget calls>=x":             "want such as calls>=8",
		"budget calls>=-1":            "want such as calls>=8",
		"budget calls>=101%":          "no more than 100% of the calls are ever used",
		"budget turns>100%":           "no more than 100% of the turns are ever used",
		"execute if":                  "the condition is missing",
		"state execute if ":           "the condition is missing",
		"budget calls>=NaN":           "want such as calls>=8",
		"step 0":                      "want a number from 1",
		"colour red":                  "want one of state, tool",
		"state model if":              "the condition is missing",
		"state model if run.colour":   "run has id, version",
		"state model if used.calls >": "it ends where a value should be",
	} {
		b, err := s.Break(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("break %q: %v, %v; want an error with %q", text, b, err, want)
		}
	}
	if len(s.Breakpoints()) != 0 {
		t.Errorf("refused, and yet there: %v", s.Breakpoints())
	}
}

func TestBreakpoints_AreNumberedClearedAndConditioned(t *testing.T) {
	d := newDesk(t)
	d.reported("r")
	s := d.open("r")
	for range 100 {
		if _, err := s.Break("granted"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Break("granted"); err == nil {
		t.Error("the hundred-and-first breakpoint was set")
	}
	for i := range 99 {
		if err := s.Clear(i + 2); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Clear(2); err == nil {
		t.Error("a breakpoint was cleared twice")
	}
	b, err := s.Break("returned")
	if err != nil || b.ID != 101 {
		t.Fatalf("a number was used again: %v, %v", b, err)
	}
	if err := s.Condition(101, "used.calls == 2"); err != nil || b.String() != "row returned if used.calls == 2" {
		t.Errorf("%s, %v", b, err)
	}
	if err := s.Condition(101, "used.calls =="); err == nil || b.Condition != "used.calls == 2" {
		t.Errorf("a bad condition: %v, left %q", err, b.Condition)
	}
	b.Once = true
	if got := stops(t, s, s.Continue); !slices.Equal(got, []int{8, 12}) {
		t.Errorf("stops at %v", got)
	}
	if got := s.Breakpoints(); len(got) != 1 || got[0].ID != 1 || got[0].Hits != 1 || b.Hits != 1 {
		t.Errorf("left %v", got)
	}
	got := s.Breakpoints()[0]
	got.Off = true
	if at := stops(t, s, s.Rewind); len(at) != 0 {
		t.Errorf("switched off, it stops at %v", at)
	}
}

func TestWatch_StopsAtEveryChange(t *testing.T) {
	d := newDesk(t)
	d.reported("r")
	s := d.open("r")
	w, err := s.Watch("used.calls")
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for {
		stop, err := s.Continue(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if stop.Reason != debug.Hit {
			break
		}
		seen = append(seen, fmt.Sprintf("%d: %s -> %s", stop.Step, stop.Changed[0].A, stop.Changed[0].B))
	}
	if want := []string{"3: 0 -> 1", "7: 1 -> 2", "13: 2 -> 3"}; !slices.Equal(seen, want) || w.Hits != 3 {
		t.Errorf("changes %q, want %q", seen, want)
	}
	for _, bad := range []string{"", "entry.row", "step", "call.colour", "used.calls[", "nothing"} {
		if _, err := s.Watch(bad); err == nil {
			t.Errorf("watch %q was set", bad)
		}
	}
}

func TestReasonBreakpoint_StopsAtTheRuleThatDecides(t *testing.T) {
	d := newDesk(t)
	spec := enginetest.Spec("r")
	spec.Budget.Calls = 1
	d.begin(spec)
	d.serve("r", enginetest.Script{{enginetest.ToolRead, enginetest.ToolRead}})
	s := d.open("r")
	if _, err := s.Break("reason budget"); err != nil {
		t.Fatal(err)
	}
	stop, err := s.Continue(t.Context())
	if err != nil || stop.Reason != debug.Hit || s.Moment().Entry.Event != agent.KindReturned {
		t.Fatalf("%+v, %v", stop, err)
	}
	if stop, err = s.Continue(t.Context()); err != nil || stop.Reason != debug.Hit || stop.State != agent.StateFailed {
		t.Fatalf("%+v, %v", stop, err)
	}
}
