package picture

import (
	"time"

	"sallyport/agent"
)

// mark is something that happened at one moment: a decision, an attempt, a refusal.
type mark struct {
	says  string // what, with the name of who
	shape shape
	at    time.Time
	seq   int64
	call  int // number of the call that it is about, from 1; 0 is none
}

// shape is how a mark is drawn.
type shape int

const (
	triangle shape = iota // a yes
	cross                 // a no, or the end of a time
	diamond               // other arguments, another outcome
	square                // a verdict on an unknown outcome
	circle                // an operator
	ring                  // again, or not at all
)

// decisions say, for rows that somebody caused, what that was.
var decisions = map[agent.Row]struct {
	says  string
	shape shape
	named bool // the name of who it was follows
}{
	agent.RowGranted:        {"approved by", triangle, true},
	agent.RowEndorsed:       {"approved by", triangle, true},
	agent.RowEdited:         {"edited by", diamond, true},
	agent.RowRefused:        {"refused by", cross, true},
	agent.RowExpired:        {"nobody decided in time", cross, false},
	agent.RowCancelled:      {"cancelled by", circle, true},
	agent.RowCancelAsked:    {"cancel asked by", circle, true},
	agent.RowPaused:         {"paused by", circle, true},
	agent.RowResumed:        {"resumed by", circle, true},
	agent.RowStepped:        {"stepped by", circle, true},
	agent.RowExtended:       {"budget raised by", circle, true},
	agent.RowSubstituted:    {"replaced by", diamond, true},
	agent.RowTurnRefused:    {"turn refused", ring, false},
	agent.RowModelUnreached: {"model not reached", ring, false},
	agent.RowModelGaveUp:    {"model not reached", cross, false},
	agent.RowBudgetEnded:    {"budget ended", cross, false},
}

// note keeps what an entry says that somebody did.
func (s *Story) note(was agent.Run, e agent.Entry) {
	m := mark{at: e.Time, seq: e.Seq}
	if was.Call != nil {
		m.call = len(s.calls)
	}
	switch e.Kind {
	case agent.EntryEvent:
		if !m.decided(e) {
			return
		}
	case agent.EntryAttempt:
		m.says, m.shape = "performed again", ring
	case agent.EntryNoted:
		m.says, m.shape = who("turned away:", e), ring
	case agent.EntryErased:
		m.says, m.shape = who("content erased by", e), circle
	}
	s.marks = append(s.marks, m)
}

func (m *mark) decided(e agent.Entry) bool {
	d, ok := decisions[e.Row]
	if !ok && e.Row != agent.RowSettled && e.Row != agent.RowUndecided {
		return false
	}
	m.says, m.shape = d.says, d.shape
	switch {
	case ok && d.named:
		m.says = who(d.says, e)
	case ok:
	case e.Origin == agent.OriginApprover:
		m.says, m.shape = who("verdict by", e), square
	case e.Row == agent.RowSettled:
		m.says, m.shape = "read-back decided", square
	default:
		m.says, m.shape = "read-back left it open", ring
	}
	return true
}

// who says by whom something was done; what was done comes first, so that no name, however
// long, hides it.
func who(did string, e agent.Entry) string {
	name := e.Actor
	if name == "" {
		name = string(e.Origin)
	}
	return did + " " + named(name)
}

// markRow is a line of the timeline with all marks that say the same.
type markRow struct {
	says  string
	marks []mark
}

// maxMarkRows bounds the lines of marks; the rest share one.
const maxMarkRows = 16

// markRows groups marks by what they say, in order of first appearance.
func markRows(marks []mark) []markRow {
	var rows []markRow
	index := map[string]int{}
	for _, m := range marks {
		i, ok := index[m.says]
		if !ok {
			i = len(rows)
			if i == maxMarkRows {
				i--
				rows[i].says = "and others"
			} else {
				rows = append(rows, markRow{says: m.says})
			}
			index[m.says] = i
		}
		rows[i].marks = append(rows[i].marks, m)
	}
	return rows
}
