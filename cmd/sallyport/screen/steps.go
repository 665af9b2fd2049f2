package screen

import (
	"fmt"
	"time"

	"sallyport/agent/debug"
	"sallyport/cmd/sallyport/terminal"
)

// steps is the timeline: one line for each step, made when it is shown.
type steps struct {
	session *debug.Session
	width   int
}

func (s steps) count() int { return s.session.Steps() }

func (s steps) line(i int) line {
	at := s.session.Position().Step
	mark, f := " ", plain
	if i+1 == at {
		mark, f = ">", lit
	}
	short, rest := s.columns(i)
	if s.width >= wideSteps {
		short += rest
	}
	return line{fit(mark+short, s.width-1) + " ", f}
}

// text is all that the line says.
func (s steps) text(i int) string {
	short, rest := s.columns(i)
	return short + rest
}

// columns are what the line says: first what a narrow pane shows of it.
func (s steps) columns(i int) (short, rest string) {
	m := s.session.Mark(i + 1)
	digits := len(fmt.Sprint(s.session.Steps()))
	row := string(m.Row)
	if m.Carried {
		row += "~"
	}
	since := elapsed(m.Time.Sub(s.session.Mark(1).Time))
	return fmt.Sprintf("%*d %-17s %7s", max(digits, 2), i+1, row, since), fmt.Sprintf(" %-18s %s", m.State, terminal.Line(m.Tool))
}

// elapsed is a time since the beginning, in seven cells where that is enough.
func elapsed(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("+%.3fs", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("+%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 100*time.Hour:
		return fmt.Sprintf("+%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("+%dd%02dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
