package screen

import (
	"context"
	"strings"

	tea "charm.land/bubbletea/v2"

	"sallyport/agent"
	"sallyport/agent/debug"
)

// What keys do: movements of the cursor, of panes, and what is shown.

func (m *model) stepOn() {
	if m.lives("step") {
		return
	}
	m.moved(m.session().Step(m.ctx))
}

func (m *model) stepBack() { m.moved(m.session().Back(m.ctx)) }

func (m *model) next() {
	if !m.lives("next") {
		m.going("on", (*debug.Session).Next)
	}
}

func (m *model) on() {
	if !m.lives("continue") {
		m.going("on", (*debug.Session).Continue)
	}
}

func (m *model) previous() { m.going("back", (*debug.Session).ReverseNext) }
func (m *model) rewind()   { m.going("back", (*debug.Session).Rewind) }

// lives lets the run itself go on, where the recording ends and acting is allowed.
func (m *model) lives(command string) bool {
	s := m.session()
	if !m.acting || s.Last().State.Final() || s.Position().Step < s.Steps() {
		return false
	}
	m.perform(command, false)
	return true
}

// going moves the cursor by what may take many steps.
func (m *model) going(what string, move func(*debug.Session, context.Context) (debug.Stop, error)) {
	s := m.session()
	m.beside("going "+what, func(ctx context.Context) done {
		stop, err := move(s, ctx)
		if err != nil {
			return done{err: err}
		}
		return m.hit(ctx, done{stop: &stop})
	})
}

// person goes to the next step, in a direction, where a person was asked or decided.
func (m *model) person(by int) {
	s := m.session()
	for step := s.Position().Step + by; step >= 1 && step <= s.Steps(); step += by {
		if asks(s.Mark(step)) {
			m.moved(s.Goto(m.ctx, step))
			return
		}
	}
	m.say("No step %s asks a person, or is one's.", map[int]string{1: "after this", -1: "before this"}[by])
}

// asks reports whether a step asks a person, or is what one decided.
func asks(mark debug.Mark) bool {
	switch mark.Row {
	case agent.RowApprovalRequired, agent.RowGranted, agent.RowEndorsed, agent.RowEdited, agent.RowRefused, agent.RowExpired,
		agent.RowOutcomeUnknown, agent.RowSettled, agent.RowUndecided:
		return true
	}
	return false
}

// current is the pane that keys move: the help while it is shown.
func (m *model) current() *pane {
	if m.helping {
		return &m.help
	}
	return &m.panes[m.focus]
}

// line moves by lines; in the steps, by steps.
func (m *model) line(by int) {
	if m.focus == stepsPane && !m.helping {
		s := m.session()
		m.moved(s.Goto(m.ctx, s.Position().Step+by))
		return
	}
	m.current().scroll(by, m.shown(m.focus))
}

func (m *model) page(by int) { m.line(by * max(m.shown(m.focus)-1, 1)) }

// edge moves to the top or the bottom.
func (m *model) edge(by int) {
	s := m.session()
	switch {
	case m.focus != stepsPane || m.helping:
		m.current().scroll(by*m.current().count(), m.shown(m.focus))
	case by < 0:
		m.moved(s.Goto(m.ctx, 1))
	default:
		m.moved(s.Goto(m.ctx, s.Steps()))
	}
}

// turn goes from pane to pane: the steps, the call, and the others.
func (m *model) turn(by int) {
	m.helping = false
	next := (int(m.focus) + by + int(panes)) % int(panes)
	if m.stacked() && !m.zoomed { // three panes are there
		there := []paneID{stepsPane, callPane, m.under()}
		for i, id := range there {
			if id == m.focus {
				next = int(there[(i+by+len(there))%len(there)])
			}
		}
	}
	m.look(paneID(next))
}

// choose shows a pane, and lets keys move it if they do not move the steps.
func (m *model) choose(id paneID) {
	m.helping = false
	if m.focus == stepsPane && id != stepsPane && !m.zoomed && !m.narrow() {
		m.tab = id
		return
	}
	m.look(id)
}

// look lets keys move a pane.
func (m *model) look(id paneID) {
	m.focus = id
	if id != stepsPane {
		m.tab = id
	}
}

func (m *model) toggleZoom() {
	if m.focus == stepsPane && !m.zoomed {
		m.focus = m.tab // the steps over the whole screen show no more
	}
	m.zoomed = !m.zoomed
}

func (m *model) toggleFollow() {
	m.following = !m.following
	s := m.session()
	switch {
	case !m.following:
		m.say("New steps are not followed.")
	case s.Last().State.Final():
		m.say("The run has ended: there is nothing to follow.")
	default:
		m.moved(s.Goto(m.ctx, s.Steps()))
		m.say("New steps are followed.")
	}
}

func (m *model) toggleHelp() { m.helping = !m.helping }

func (m *model) open(sign byte) {
	m.helping = false
	m.prompt.open(sign)
}

// decide is a short cut: the question about the candidate.
func (m *model) decide() {
	if m.session().Last().State != agent.StateAwaitingApproval {
		m.say("Nothing waits for approval in this run.")
		return
	}
	m.run("approve")
}

func (m *model) redraw() { m.cmds = append(m.cmds, tea.ClearScreen) }

func (m *model) escape() {
	switch {
	case m.helping:
		m.helping = false
	case m.find.text != "":
		m.find = search{}
	case m.zoomed:
		m.zoomed = false
	default:
		m.focus = stepsPane
	}
}

func (m *model) quit() { m.cmds = append(m.cmds, tea.Quit) }

// search is a text that is looked for in a pane.
type search struct {
	text string
	at   int // the line where it was found last
}

// seek looks for a text from here on.
func (m *model) seek(text string) {
	if text == "" {
		m.find = search{}
		return
	}
	m.find = search{text: text, at: m.place() - 1}
	m.found(1)
}

// place is the line that the pane in hand is at.
func (m *model) place() int {
	if m.focus == stepsPane {
		return m.session().Position().Step - 1
	}
	return m.panes[m.focus].top
}

// found goes to the next line, in a direction, that holds the text; past the end it goes
// on from the other.
func (m *model) found(by int) {
	p := &m.panes[m.focus]
	n := p.count()
	want := strings.ToLower(m.find.text)
	for i := 1; i <= n; i++ {
		at := ((m.find.at+by*i)%n + n) % n
		if !strings.Contains(strings.ToLower(m.text(at)), want) {
			continue
		}
		m.find.at = at
		if m.focus == stepsPane {
			m.moved(m.session().Goto(m.ctx, at+1))
		} else {
			p.top = at
			p.scroll(0, m.shown(m.focus))
		}
		m.say("/%s: line %d of %d. n and N go on, esc ends it.", m.find.text, at+1, n)
		return
	}
	m.say("/%s is not in %s.", m.find.text, titles[m.focus])
	m.find = search{}
}

// text is a line of the pane in hand, in full.
func (m *model) text(at int) string {
	if m.focus == stepsPane {
		return steps{session: m.session()}.text(at)
	}
	return m.panes[m.focus].lines.line(at).text
}
