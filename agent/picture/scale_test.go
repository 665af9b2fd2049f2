package picture

import (
	"testing"
	"time"

	"sallyport/agent"
)

// waitsOf is a story of work of a second and waits of a minute, in turn.
func waitsOf(n int) *Story {
	s := &Story{}
	at := epoch
	add := func(st agent.State, long time.Duration) {
		s.stays = append(s.stays, stay{state: st, from: at, to: at.Add(long)})
		at = at.Add(long)
	}
	for range n {
		add(agent.StateModel, time.Second)
		add(agent.StateAwaitingApproval, time.Minute)
	}
	add(agent.StateModel, time.Second)
	s.run.State = agent.StateCompleted
	return s
}

func torn(sc scale) int {
	n := 0
	for _, sp := range sc.spans {
		if sp.torn {
			n++
		}
	}
	return n
}

func TestScale_TearsAreFewAndNarrow(t *testing.T) {
	for size, tear := range tears {
		for n, want := range map[int]int{0: 0, 1: 1, tear.most: tear.most, tear.most + 1: tear.few} {
			sc := waitsOf(n).scaled(size, 100, 500)
			if torn(sc) != want {
				t.Errorf("size %d: %d of %d waits have a width, want %d", size, torn(sc), n, want)
			}
			if end := sc.end(); end < 599.9 || end > 600.1 {
				t.Errorf("size %d, %d waits: the time ends at %.1f of 600", size, n, end)
			}
			var wide float64
			for _, sp := range sc.spans {
				if sp.wait {
					wide += sp.x1 - sp.x0
				}
			}
			if wide > 500*tornShare+0.1 {
				t.Errorf("size %d: %d waits take %.0f of 500", size, n, wide)
			}
			if rest, long := sc.untorn(); rest != n-want || long != time.Duration(n-want)*time.Minute {
				t.Errorf("size %d: %d waits, %v, have no width", size, rest, long)
			}
		}
	}
}

// Work has its length: twice the time is twice the width, whatever waits lie between.
func TestScale_WorkKeepsItsLength(t *testing.T) {
	s := waitsOf(2)
	s.stays[2].to = s.stays[2].to.Add(time.Second)
	for i := 3; i < len(s.stays); i++ {
		s.stays[i].from, s.stays[i].to = s.stays[i].from.Add(time.Second), s.stays[i].to.Add(time.Second)
	}
	sc := s.scaled(Normal, 0, 488)
	wide := func(i int) float64 { return sc.at(s.stays[i].to) - sc.at(s.stays[i].from) }
	if wide(0) != 100 || wide(2) != 200 || wide(4) != 100 || wide(1) != 44 || wide(3) != 44 {
		t.Errorf("widths %.1f %.1f %.1f, waits %.1f %.1f", wide(0), wide(2), wide(4), wide(1), wide(3))
	}
	if mid := sc.at(epoch.Add(500 * time.Millisecond)); mid != 50 {
		t.Errorf("half a second lies at %.1f", mid)
	}
	if before, after := sc.at(epoch.Add(-time.Hour)), sc.at(epoch.Add(time.Hour)); before != 0 || after != 488 {
		t.Errorf("what lies outside lies at %.1f and %.1f", before, after)
	}
}

func TestScale_ARunWithoutTime(t *testing.T) {
	s := begin(t, "instant").answers().story()
	sc := s.scaled(Normal, 10, 100)
	if sc.at(epoch) != 10 || len(sc.ticks(tickRoom)) != 0 {
		t.Errorf("an instant lies at %.1f, with %d ticks", sc.at(epoch), len(sc.ticks(tickRoom)))
	}
	wait := &Story{stays: []stay{{state: agent.StateAwaitingApproval, from: epoch, to: epoch.Add(time.Hour)}}}
	wait.run.State = agent.StateCancelled
	if sc := wait.scaled(Normal, 0, 100); sc.end() != 100 {
		t.Errorf("a wait alone ends at %.1f of 100", sc.end())
	}
}

func TestScale_TicksAreRoundAndApart(t *testing.T) {
	for _, n := range []int{1, 3, 50} {
		s := waitsOf(n)
		sc := s.scaled(Wide, 0, 800)
		ticks := sc.ticks(tickRoom)
		if len(ticks) < 2 {
			t.Errorf("%d waits: %d ticks", n, len(ticks))
		}
		for i := 1; i < len(ticks); i++ {
			if ticks[i].x-ticks[i-1].x < tickRoom {
				t.Errorf("%d waits: ticks %q and %q are too near", n, ticks[i-1].says, ticks[i].says)
			}
		}
	}
}
