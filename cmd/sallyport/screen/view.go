package screen

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"sallyport/agent"
	"sallyport/cmd/sallyport/terminal"
)

// From these sizes on there is more than the panes, or there are more of them.
const (
	narrowWidth   = 64  // less: one pane at a time
	wideWidth     = 120 // the call, and another pane under it
	tallHeight    = 40
	lowHeight     = 14 // less: no machine
	narrowSteps   = 30 // cells of the steps beside another pane
	wideSteps     = 70
	belowTheTitle = 2 // rows at the bottom: a message, the keys
)

func (m *model) narrow() bool { return m.width < narrowWidth }

// stacked reports whether the call has a place of its own over another pane.
func (m *model) stacked() bool { return m.width >= wideWidth && m.height >= tallHeight }

// under is the pane beneath the call.
func (m *model) under() paneID {
	if m.tab == callPane {
		return contextPane
	}
	return m.tab
}

// place is where a pane is shown.
type place struct {
	id            paneID
	width, height int // of its lines
}

// top are the rows above the panes.
func (m *model) top() []string {
	here := m.session().Moment()
	rows := []string{m.title()}
	if m.height < lowHeight || m.zoomed {
		return rows
	}
	next := m.session().Mark(here.Step + 1).Row
	if m.width >= pictureWidth && m.height >= tallHeight {
		rows = append(rows, drawn(here)...)
	} else {
		rows = append(rows, strip(here, m.width)...)
	}
	return append(rows, onward(here, next, m.width))
}

// places lays the panes out under that many rows.
func (m *model) places(top int) []place {
	body := max(m.height-top-belowTheTitle-1, 1) // less the row of titles
	switch {
	case m.zoomed || m.narrow():
		return []place{{m.focus, m.width, body}}
	case m.stacked():
		right := m.width - wideSteps - 2
		upper := body * 3 / 5
		return []place{{stepsPane, wideSteps, body}, {callPane, right, upper}, {m.under(), right, body - upper - 1}}
	}
	return []place{{stepsPane, narrowSteps, body}, {m.tab, m.width - narrowSteps - 2, body}}
}

// shown is how many lines of a pane are shown.
func (m *model) shown(id paneID) int {
	for _, p := range m.places(len(m.top())) {
		if p.id == id || m.helping {
			return p.height
		}
	}
	return 1
}

// draw makes the frame. It is called when nothing else has the session.
func (m *model) draw() {
	top := m.top()
	places := m.places(len(top))
	for _, p := range places {
		m.fill(p)
	}
	rows := append([]string{}, top...)
	m.unsaid = ""
	if m.helping {
		rows = append(rows, m.helpRows(max(m.height-len(top)-belowTheTitle, 1))...)
	} else {
		rows = append(rows, m.body(places)...)
	}
	rows = append(rows, m.foot()...)
	for i, r := range rows {
		if len(r) > m.width { // bytes: most rows need no more than this look
			rows[i] = fits(r, m.width)
		}
	}
	m.frame = strings.Join(rows[:min(len(rows), m.height)], "\n")
}

// drawFoot makes only what stands below the panes anew: there is a message, and something
// else may have the session.
func (m *model) drawFoot() {
	rows, foot := strings.Split(m.frame, "\n"), m.foot()
	if len(rows) <= len(foot) {
		return
	}
	for i, r := range foot {
		rows[len(rows)-len(foot)+i] = fits(r, m.width)
	}
	m.frame = strings.Join(rows, "\n")
}

// fill gives a pane what it shows at the cursor.
func (m *model) fill(p place) {
	s := m.session()
	here := s.Moment()
	w := &m.panes[p.id]
	of := fmt.Sprintf("%s %d %d", s.ID(), here.Step, p.width)
	switch p.id {
	case stepsPane:
		w.show("", steps{s, p.width})
		w.reveal(here.Step-1, p.height)
	case callPane:
		if w.of != of {
			w.show(of, about(m.ctx, &m.config, here, p.width))
		}
	case contextPane:
		m.fillContext(w, p)
	case journalPane:
		m.journal.session, m.journal.width = s, p.width
		if w.of != of {
			w.show(of, m.journal)
			w.reveal(int(here.Seq)-1, p.height)
		}
	case whyPane:
		if w.of != of {
			w.show(of, m.why(p.width))
		}
	case machinePane:
		if w.of != of {
			w.show(of, wrapped(listed(s, here), p.width))
		}
	case outputPane:
		m.fillOutput(w, p)
	}
	w.scroll(0, p.height)
}

// fillContext shows the context of the cursor, once it was fetched.
func (m *model) fillContext(w *pane, p place) {
	want := wanted(m.session())
	switch {
	case want.step == 0:
		w.show("nothing", fixed{{"The model has not been asked yet.", plain}})
	case m.asked == want && !m.waiting:
		of := fmt.Sprint(m.session().ID(), want, p.width)
		if w.of != of {
			all, fresh := m.talk.lines(p.width)
			w.show(of, all)
			w.top = fresh
		}
	default:
		w.show("reading", fixed{{"reading …", faint}})
		if !m.waiting {
			m.waiting, m.fetched = true, want
			m.cmds = append(m.cmds, want.fetch(m.ctx, &m.config))
		}
	}
}

// fillOutput shows what commands wrote, the last of it first.
func (m *model) fillOutput(w *pane, p place) {
	of := fmt.Sprint("output", len(m.output), p.width)
	if w.of == of {
		return
	}
	shown, last := fixed{}, 0
	for _, l := range m.output {
		if strings.HasPrefix(l.text, outputHead) {
			last = len(shown)
		}
		for _, part := range broken(l.text, p.width) {
			shown = append(shown, line{part, l.face})
		}
	}
	if len(shown) == 0 {
		shown = fixed{{"Nothing yet: type : and a command, such as :help commands", faint}}
	}
	w.show(of, shown)
	w.top = last
}

// why is the chain of what led here.
func (m *model) why(width int) fixed {
	causes, err := m.session().Causes(m.ctx, m.session().Position().Step)
	var b strings.Builder
	for i, c := range causes {
		lead := "because of"
		if i == 0 {
			lead = "here is"
		}
		fmt.Fprintf(&b, "── %s the %s: step %d, %s ──\n  %s\n", lead, c.Word, c.Step, c.Entry.Row, c.Says)
		if what := m.config.Detail(c.Entry); what != "" {
			fmt.Fprintf(&b, "  %s\n", terminal.Line(what))
		}
	}
	if err != nil {
		fmt.Fprintf(&b, "The rest cannot be shown: %s\n", terminal.Message(err.Error()))
	}
	return wrapped(b.String(), width)
}

// title is the first row: which run, where in it, and what the screen may do.
func (m *model) title() string {
	s := m.session()
	what := "read-only"
	if m.acting {
		what = "ACTING"
	}
	switch last := s.Last(); {
	case last.State.Open() && last.Held:
		what = "paused  " + what
	case last.State.Open() && m.following && s.Position().Step == s.Steps():
		what = "following  " + what
	case last.State.Open():
		what = "open  " + what
	}
	return bar.in(ends(" "+terminal.Line(s.ID())+"  "+s.Position().String(), what+" ", m.width))
}

// ends sets one text at the left and one at the right.
func ends(left, right string, width int) string {
	if cells(right) >= width {
		return fit(left, width)
	}
	return fit(left, width-cells(right)) + right
}

// body is the row of titles and the panes.
func (m *model) body(places []place) []string {
	if len(places) == 1 {
		p := places[0]
		return append([]string{m.tabs(p, panesOf(m), m.width)}, m.rows(p)...)
	}
	left := places[0]
	lefts := append([]string{m.tabs(left, []paneID{stepsPane}, left.width)}, m.rows(left)...)
	var rights []string
	for i, p := range places[1:] {
		ids := panesOf(m)[1:]
		if len(places) == 3 {
			ids = [][]paneID{{callPane}, panesOf(m)[2:]}[i]
		}
		rights = append(rights, m.tabs(p, ids, p.width))
		rights = append(rights, m.rows(p)...)
	}
	out := make([]string, len(lefts))
	for i := range out {
		right := ""
		if i < len(rights) {
			right = rights[i]
		}
		out[i] = lefts[i] + faint.in("│") + " " + right
	}
	return out
}

func panesOf(*model) []paneID {
	out := make([]paneID, panes)
	for i := range out {
		out[i] = paneID(i)
	}
	return out
}

// tabs is the row over a pane: which panes can be there, the one that is, and how much of
// it there is above and below.
func (m *model) tabs(p place, ids []paneID, width int) string {
	var texts []string
	used := 0
	for _, id := range ids {
		text, f := m.label(id, width), faint
		if id == p.id {
			f = strong
		}
		if id == p.id && id == m.focus {
			text, f = "["+text+"]", lit
		}
		texts = append(texts, f.in(text))
		used += cells(text) + 1
	}
	row := strings.Join(texts, " ")
	more := m.extent(p)
	rule := func(n int) string { return faint.in(strings.Repeat("─", max(n, 0))) }
	switch room := width - used - cells(more); {
	case more == "":
		return row + " " + rule(width-used)
	case room > 0:
		return row + " " + rule(room-1) + " " + faint.in(more)
	}
	m.unsaid = titles[p.id] + " " + more
	return row + " " + rule(width-used)
}

// label is what a pane is called in a row of that width.
func (m *model) label(id paneID, width int) string {
	switch {
	case id == machinePane && width < narrowWidth:
		return "5 Mach"
	case id == outputPane && width < narrowWidth:
		return "6 Out"
	}
	return fmt.Sprintf("%d %s", id, titles[id])
}

// extent says which lines of how many are shown, where not all are.
func (m *model) extent(p place) string {
	w := &m.panes[p.id]
	if w.count() <= p.height {
		return ""
	}
	return fmt.Sprintf("%d-%d of %d", w.top+1, min(w.top+p.height, w.count()), w.count())
}

// rows are the lines of a pane that are shown, as many as it is high. Whatever made them,
// nothing goes to the terminal from here that it could obey.
func (m *model) rows(p place) []string {
	w := &m.panes[p.id]
	out := make([]string, p.height)
	for i := range out {
		l := line{}
		if at := w.top + i; at < w.count() {
			l = w.lines.line(at)
		}
		if p.id == stepsPane && len(l.text) == 0 {
			l.text = strings.Repeat(" ", p.width)
		}
		out[i] = l.face.in(harmless(l.text))
	}
	return out
}

// harmless is a text without what is not plainly visible. All text was escaped before it
// came here: this is for the day when somebody forgets.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '⟦' || terminal.Visible(r) {
			return r
		}
		return utf8.RuneError
	}, text)
}

// helpRows are the help.
func (m *model) helpRows(height int) []string {
	w := &m.help
	w.show("help", wrapped(helpText(), m.width))
	w.scroll(0, height)
	out := make([]string, height)
	for i := range out {
		if at := w.top + i; at < w.count() {
			l := w.lines.line(at)
			out[i] = l.face.in(l.text)
		}
	}
	if below := w.below(height); below > 0 {
		out[height-1] = faint.in(fmt.Sprintf("  %d lines more: j, k", below+1))
	}
	return out
}

// foot is what was done last, and what can be done, or what is being typed.
func (m *model) foot() []string {
	f := plain
	if m.urgent {
		f = warning
	}
	message := m.message
	if message == "" {
		message, f = m.standing()
	}
	said := fit(" "+message, m.width)
	if m.unsaid != "" {
		said = ends(" "+message, " "+m.unsaid+" ", m.width)
	}
	keys := " s b step  n p call  c r run  [ ] people  tab pane  enter whole  / : ? q"
	if m.prompt.sign != 0 {
		typed := []rune(string(m.prompt.sign) + terminal.Line(m.prompt.text))
		for len(typed) > 0 && cells(string(typed)) > m.width-1 { // its end is what matters
			typed = typed[1:]
		}
		return []string{f.in(said), string(typed) + lit.in(" ")}
	}
	return []string{f.in(said), faint.in(cut(keys, m.width))}
}

// standing is what is worth saying where nothing was done.
func (m *model) standing() (string, face) {
	last := m.session().Last()
	switch {
	case last.State == agent.StateAwaitingApproval:
		return "The run waits for a person: " + terminal.Line(last.Call.Proposal.Tool) + ".", warning
	case last.State == agent.StateNeedsVerification:
		return "The outcome of a write is unknown: a person must look. See :verify.", warning
	}
	return "", plain
}

// fits cuts a row that has faces in it.
func fits(row string, width int) string {
	if cells(row) <= width {
		return row
	}
	return faces[plain].MaxWidth(width).Render(row)
}
