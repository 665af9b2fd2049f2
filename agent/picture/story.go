package picture

import (
	"fmt"
	"iter"
	"time"

	"sallyport/agent"
)

// Story is a run as its pictures tell it. The zero value is no run.
type Story struct {
	run   agent.Run // after the last entry
	began time.Time
	steps int // entries that moved the run

	stays  []stay
	taken  map[edge]map[agent.Row]int
	visits agent.Visits
	spent  map[agent.State]time.Duration
	waited time.Duration

	calls   []call
	marks   []mark
	carried int // entries that a fork took over
}

// edge is a way from one state to another, or back to the same.
type edge struct{ from, to agent.State }

// stay is a time that a run spent in one state, held or not, without a break.
type stay struct {
	state    agent.State
	held     bool
	by       agent.Row // that led here
	from, to time.Time
	first    int64 // sequence of the entry that began it
}

// waits reports whether the time was nobody's work: a person's, or a pause.
func (s stay) waits() bool {
	return s.held || s.state == agent.StateAwaitingApproval || s.state == agent.StateNeedsVerification
}

func (s stay) long() time.Duration { return s.to.Sub(s.from) }

// Read replays a journal from its first entry and keeps what the pictures need. An entry
// that does not follow from those before it is [agent.ErrIntegrity]; no entry at all is
// [agent.ErrNoRun].
func Read(entries iter.Seq2[agent.Entry, error]) (Story, error) {
	s := Story{taken: map[edge]map[agent.Row]int{}, visits: agent.Visits{}, spent: map[agent.State]time.Duration{}}
	for e, err := range entries {
		if err != nil {
			return Story{}, err
		}
		next, err := agent.Apply(s.run, e)
		if err != nil {
			return Story{}, err
		}
		was := s.run
		s.run = next
		if err := s.take(was, e); err != nil {
			return Story{}, err
		}
	}
	if s.run.Seq == 0 {
		return Story{}, fmt.Errorf("draw a run: %w", agent.ErrNoRun)
	}
	return s, nil
}

// take adds one entry, which led from was to the story's run.
func (s *Story) take(was agent.Run, e agent.Entry) error {
	if was.Seq == 0 {
		s.began = e.Time
	}
	s.pass(was, e.Time)
	if e.Carried != 0 {
		s.carried++
	}
	if e.Kind == agent.EntryEvent {
		s.step(was, e)
	}
	s.note(was, e)
	return s.call(was, e)
}

// pass lets the time until an entry go by in the state that the run was in.
func (s *Story) pass(was agent.Run, until time.Time) {
	if len(s.stays) == 0 {
		return
	}
	last := &s.stays[len(s.stays)-1]
	last.to = until
	long := until.Sub(was.Time)
	s.spent[was.State] += long
	if last.waits() {
		s.waited += long
	}
}

// step counts a row, and begins a stay where it led elsewhere.
func (s *Story) step(was agent.Run, e agent.Entry) {
	s.steps++
	at := edge{was.State, s.run.State}
	if s.taken[at] == nil {
		s.taken[at] = map[agent.Row]int{}
	}
	s.taken[at][e.Row]++
	if was.State != s.run.State {
		s.visits[s.run.State]++
	}
	if was.State != s.run.State || was.Held != s.run.Held {
		s.stays = append(s.stays, stay{state: s.run.State, held: s.run.Held, by: e.Row, from: e.Time, to: e.Time, first: e.Seq})
	}
}

// times is how often a row led along an edge.
func (s *Story) times(from, to agent.State, row agent.Row) int { return s.taken[edge{from, to}][row] }

// none reports whether there is no run: the picture is of the machine.
func (s *Story) none() bool { return s.run.Seq == 0 }

// lasted is the time from the first entry to the last.
func (s *Story) lasted() time.Duration { return s.run.Time.Sub(s.began) }

// last is how the run came to where it is.
func (s *Story) last() (edge, agent.Row) {
	n := len(s.stays)
	for i := n - 1; i > 0; i-- {
		if s.stays[i].state != s.stays[i-1].state {
			return edge{s.stays[i-1].state, s.stays[i].state}, s.stays[i].by
		}
	}
	return edge{agent.StateNone, s.run.State}, agent.RowStarted
}
