package picture

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/agent"
)

// place is where a state stands in the layout by hand, in units of the picture.
type place struct{ x, y, w, h float64 }

// places are those of the eight states on 900 by 560.
var places = map[agent.State]place{
	agent.StateModel:             {24, 60, 176, 96},
	agent.StateExecute:           {344, 60, 176, 96},
	agent.StateObserve:           {664, 60, 176, 96},
	agent.StateAwaitingApproval:  {344, 268, 176, 96},
	agent.StateNeedsVerification: {664, 420, 176, 96},
	agent.StateCompleted:         {24, 268, 132, 60},
	agent.StateFailed:            {130, 420, 132, 60},
	agent.StateCancelled:         {330, 420, 132, 60},
}

// machineHeight is the layout's.
const machineHeight = 566

// way is how an edge runs: its corners, the last of which has the tip, and where its rows
// are written, the first or the last line at y.
type way struct {
	edge
	corners [][2]float64
	x, y    float64
	at      anchor
	up      bool // lines grow upwards from y
}

// ways are all edges but those to cancelled, which every open state has.
var ways = []way{
	{edge{agent.StateNone, agent.StateModel}, [][2]float64{{64, 24}, {64, 60}}, 72, 44, start, true},
	{edge{agent.StateModel, agent.StateExecute}, [][2]float64{{200, 108}, {344, 108}}, 270, 101, middle, true},
	{edge{agent.StateExecute, agent.StateObserve}, [][2]float64{{520, 108}, {664, 108}}, 590, 101, middle, true},
	{edge{agent.StateObserve, agent.StateModel}, [][2]float64{{790, 60}, {790, 16}, {150, 16}, {150, 60}}, 290, 10, middle, true},
	{edge{agent.StateObserve, agent.StateExecute}, [][2]float64{{724, 60}, {724, 40}, {460, 40}, {460, 60}}, 592, 35, middle, true},
	{edge{agent.StateObserve, agent.StateAwaitingApproval}, [][2]float64{{694, 156}, {694, 292}, {520, 292}}, 605, 285, middle, true},
	{edge{agent.StateAwaitingApproval, agent.StateExecute}, [][2]float64{{432, 268}, {432, 156}}, 441, 206, start, false},
	{edge{agent.StateAwaitingApproval, agent.StateObserve}, [][2]float64{{520, 340}, {724, 340}, {724, 156}}, 614, 355, middle, false},
	{edge{agent.StateObserve, agent.StateNeedsVerification}, [][2]float64{{754, 156}, {754, 420}}, 746, 400, end, true},
	{edge{agent.StateNeedsVerification, agent.StateObserve}, [][2]float64{{788, 420}, {788, 156}}, 796, 294, start, false},
	{edge{agent.StateModel, agent.StateCompleted}, [][2]float64{{84, 156}, {84, 268}}, 92, 216, start, false},
	{edge{agent.StateModel, agent.StateFailed}, [][2]float64{{184, 156}, {184, 420}}, 192, 362, start, false},
	{edge{agent.StateObserve, agent.StateFailed}, [][2]float64{{840, 108}, {882, 108}, {882, 546}, {196, 546}, {196, 480}}, 540, 540, middle, true},
}

// toCancelled is the way that stands for all of those to cancelled.
var toCancelled = way{corners: [][2]float64{{620, 450}, {462, 450}}, x: 470, y: 443, at: start, up: true}

// Graph draws the machine, and where the run has been in it. Without a run it is the
// table alone.
func (s *Story) Graph(size Size) string {
	c := &canvas{size: size}
	y := s.header(c, "")
	switch size {
	case Small:
		y = s.cards(c, y+14)
		y = s.footer(c, 16, y+20, size.width()-32)
	case Wide:
		s.machine(c, y+26)
		bottom := s.shares(c, 930, y+34, 326)
		bottom = s.footer(c, 930, bottom+26, 326)
		y = max(y+26+machineHeight, bottom)
	case Normal:
		s.machine(c, y+26)
		y = s.footer(c, 24, y+26+machineHeight+18, size.width()-48)
	}
	return c.picture(y+20, s.graphTitle(), s.graphDesc(), true)
}

func (s *Story) graphTitle() string {
	if s.none() {
		return "The states of a run"
	}
	return fmt.Sprintf("The states of run %s", plain(s.run.ID))
}

// graphDesc is the picture in one sentence, for those who hear it.
func (s *Story) graphDesc() string {
	if s.none() {
		return "Eight states and the rows that lead from one to the next."
	}
	var seen []string
	for _, st := range agent.States() {
		if n := s.visits[st]; n > 0 {
			seen = append(seen, fmt.Sprintf("%s %s", st, several(n, "time", "times")))
		}
	}
	return fmt.Sprintf("%s. Entered: %s.", s.ending(), strings.Join(seen, ", "))
}

// machine draws the layout by hand, below y.
func (s *Story) machine(c *canvas, y float64) {
	now, _ := s.last()
	for _, w := range ways { // those not taken first, so that no line of theirs lies on top
		if s.level(w.edge) == 0 {
			s.way(c, w, y, w.edge == now)
		}
	}
	for _, w := range ways {
		if s.level(w.edge) > 0 {
			s.way(c, w, y, w.edge == now && !s.none())
		}
	}
	s.cancelling(c, y)
	c.b.WriteString(fmt.Sprintf(`<circle cx="64" cy="%s" r="6"%s/>`+"\n", number(y+22), cTipBeen.attributes()))
	for _, st := range agent.States() {
		s.box(c, st, places[st], y)
	}
}

// level is how much an edge matters: 0 not taken, 1 taken. Without a run all are equal.
func (s *Story) level(e edge) int {
	if s.none() || len(s.taken[e]) > 0 {
		return 1
	}
	return 0
}

// way draws an edge with its rows.
func (s *Story) way(c *canvas, w way, y float64, last bool) {
	line, tip := cWay, cTip
	switch {
	case last:
		line, tip = cLast, cTipLast
	case s.level(w.edge) > 0:
		line, tip = cTaken, cTipBeen
	}
	c.path(rounds(w.corners, y), line, "")
	c.path(tipOf(w.corners, y), tip, "")
	s.rows(c, w, y, rowsOf(w.edge), last)
}

// rows writes what leads along an edge, a line each.
func (s *Story) rows(c *canvas, w way, y float64, rows []agent.Row, last bool) {
	const lead = 14
	at := y + w.y
	if w.up {
		at -= lead * float64(len(rows)-1)
	}
	_, by := s.last()
	for _, row := range rows {
		n, k := s.times(w.from, w.to, row), cRow
		switch {
		case last && row == by:
			k = cRowLast
		case n > 0:
			k = cRowBeen
		}
		c.text(w.x, at, k, w.at, string(row)+times(n))
		at += lead
	}
}

// times is how often, where it happened.
func times(n int) string {
	switch {
	case n == 0:
		return ""
	case n < 10_000:
		return fmt.Sprintf(" ×%d", n)
	}
	return fmt.Sprintf(" ×%dk", n/1000)
}

// cancelling draws the one way that stands for those from every open state.
func (s *Story) cancelling(c *canvas, y float64) {
	w, from, n := toCancelled, agent.StateNone, 0
	for e, rows := range s.taken {
		if e.to == agent.StateCancelled {
			from, n = e.from, rows[agent.RowCancelled]
		}
	}
	line, tip, k := cWay, cTip, cRow
	says := "from any open state"
	switch {
	case n > 0:
		line, tip, k, says = cLast, cTipLast, cRowLast, "from "+string(from)
	case s.none():
		line, tip = cTaken, cTipBeen
	}
	c.path(rounds(w.corners, y), line, "")
	c.path(tipOf(w.corners, y), tip, "")
	c.text(w.x+6, y+w.y, k, w.at, string(agent.RowCancelled)+times(n))
	c.text(w.x+6, y+w.y+22, k, w.at, says)
}

// rounds is a line through corners, which are rounded.
func rounds(p [][2]float64, y float64) string {
	const r = 8
	var b strings.Builder
	fmt.Fprintf(&b, "M%s %s", number(p[0][0]), number(p[0][1]+y))
	for i := 1; i < len(p)-1; i++ {
		in, out := towards(p[i], p[i-1], r), towards(p[i], p[i+1], r)
		fmt.Fprintf(&b, "L%s %sQ%s %s %s %s", number(in[0]), number(in[1]+y), number(p[i][0]), number(p[i][1]+y), number(out[0]), number(out[1]+y))
	}
	n := len(p) - 1
	stop := towards(p[n], p[n-1], 6)
	fmt.Fprintf(&b, "L%s %s", number(stop[0]), number(stop[1]+y))
	return b.String()
}

// towards is the point at a distance from one corner on the way to the next.
func towards(from, to [2]float64, by float64) [2]float64 {
	switch {
	case to[0] > from[0]:
		return [2]float64{from[0] + by, from[1]}
	case to[0] < from[0]:
		return [2]float64{from[0] - by, from[1]}
	case to[1] > from[1]:
		return [2]float64{from[0], from[1] + by}
	}
	return [2]float64{from[0], from[1] - by}
}

// tipOf is the arrow's head at the end of a line.
func tipOf(p [][2]float64, y float64) string {
	n := len(p) - 1
	at := p[n]
	back := towards(at, p[n-1], 10)
	var l, r [2]float64
	if back[0] == at[0] {
		l, r = [2]float64{at[0] - 5, back[1]}, [2]float64{at[0] + 5, back[1]}
	} else {
		l, r = [2]float64{back[0], at[1] - 5}, [2]float64{back[0], at[1] + 5}
	}
	return fmt.Sprintf("M%s %sL%s %sL%s %sZ", number(at[0]), number(at[1]+y), number(l[0]), number(l[1]+y), number(r[0]), number(r[1]+y))
}

// rowsOf are the rows that lead along an edge, each once, in the table's order. Those
// that keep any state, whatever it is, belong to none.
func rowsOf(e edge) []agent.Row {
	var out []agent.Row
	for _, t := range agent.Table() {
		to := t.To
		if to == "" {
			to = e.from
		}
		if to == e.to && slices.Contains(t.From, e.from) && !anywhere(t) && !slices.Contains(out, t.Row) {
			out = append(out, t.Row)
		}
	}
	return out
}

// anywhere reports whether a row keeps every open state.
func anywhere(t agent.Transition) bool {
	open := 0
	for _, s := range t.From {
		if s.Open() {
			open++
		}
	}
	return t.To == "" && open == 5
}

// box draws a state: its name, how often and how long the run was there, and the rows
// that kept it.
func (s *Story) box(c *canvas, st agent.State, p place, y float64) {
	k := cBox
	switch {
	case !s.none() && st == s.run.State:
		k = cNow
	case s.visits[st] > 0 || s.none():
		k = cBeen
	}
	y += p.y
	c.rect(p.x, y, p.w, p.h, 10, k, s.stateHint(st))
	if st.Final() {
		c.rect(p.x+4, y+4, p.w-8, p.h-8, 7, cInner, "")
	}
	c.text(p.x+12, y+23, cName, start, string(st))
	line := y + 40
	if s.visits[st] > 0 {
		c.text(p.x+12, line, cSoft, start, s.stayed(st))
		if st == s.run.State {
			c.text(p.x+p.w-12, line, cHere, end, "now")
		}
	}
	line += 16
	for _, row := range s.kept(st) {
		c.text(p.x+12, line, cSmall, start, "↻ "+string(row)+times(s.times(st, st, row)))
		line += 14
	}
}

// stayed is how often a run was in a state, and how long in all.
func (s *Story) stayed(st agent.State) string {
	n := strings.TrimSpace(times(s.visits[st]))
	if st.Final() {
		return n
	}
	return n + " · " + duration(s.spent[st])
}

// kept are the rows that kept a state: of a run those that did, of the machine all.
func (s *Story) kept(st agent.State) []agent.Row {
	rows := rowsOf(edge{st, st})
	if s.none() {
		return rows
	}
	return slices.DeleteFunc(rows, func(r agent.Row) bool { return s.times(st, st, r) == 0 })
}

// stateHint is what is known of a state, in one line.
func (s *Story) stateHint(st agent.State) string {
	if s.none() {
		return string(st)
	}
	return fmt.Sprintf("%s: entered %s, %s in all", st, several(s.visits[st], "time", "times"), duration(s.spent[st]))
}

// cards draws the machine as a column: each state with the rows that lead on from it.
func (s *Story) cards(c *canvas, y float64) float64 {
	now, by := s.last()
	w := c.size.width() - 32
	for _, st := range agent.States() {
		outs := s.outs(st)
		p := place{16, y, w, 34 + 15*float64(len(outs))}
		if len(outs) > 0 {
			p.h += 6
		}
		s.card(c, st, p)
		line := y + 38
		for _, o := range outs {
			k := cSmall
			n := s.times(st, o.to, o.row)
			switch {
			case !s.none() && o.edge == now && o.row == by:
				k = cRowLast
			case n > 0:
				k = cRowBeen
			}
			arrow := "→ " + string(o.to)
			if o.to == st {
				arrow = "↻ stays"
			}
			c.text(28, line+4, k, start, string(o.row)+times(n))
			c.text(16+w-12, line+4, k, end, arrow)
			line += 15
		}
		y += p.h + 10
	}
	return y
}

func (s *Story) card(c *canvas, st agent.State, p place) {
	k := cBox
	switch {
	case !s.none() && st == s.run.State:
		k = cNow
	case s.visits[st] > 0:
		k = cBeen
	}
	c.rect(p.x, p.y, p.w, p.h, 10, k, s.stateHint(st))
	if st.Final() {
		c.rect(p.x+3, p.y+3, p.w-6, p.h-6, 7, cInner, "")
	}
	c.text(p.x+12, p.y+22, cName, start, string(st))
	if s.visits[st] == 0 {
		return
	}
	says := s.stayed(st)
	if st == s.run.State {
		c.text(p.x+p.w-12, p.y+22, cHere, end, "now")
		c.text(p.x+p.w-42, p.y+22, cSoft, end, says)
		return
	}
	c.text(p.x+p.w-12, p.y+22, cSoft, end, says)
}

// out is a row that leads on from a state.
type out struct {
	edge
	row agent.Row
}

// outs are the rows that lead on from a state, in the table's order; of a run, those
// that were taken, and cancelled only then.
func (s *Story) outs(st agent.State) []out {
	var all []out
	for _, t := range agent.Table() {
		to := t.To
		if to == "" {
			to = st
		}
		o := out{edge{st, to}, t.Row}
		if !slices.Contains(t.From, st) || anywhere(t) || slices.Contains(all, o) {
			continue
		}
		if s.none() || s.times(st, to, t.Row) > 0 {
			all = append(all, o)
		}
	}
	return all
}

// shares draws how the time of the run divides over the states.
func (s *Story) shares(c *canvas, x, y, w float64) float64 {
	if s.none() {
		return y
	}
	c.text(x, y, cHead, start, "Time in each state")
	y += 10
	total := s.lasted()
	for _, st := range agent.States() {
		if s.visits[st] == 0 || st.Final() {
			continue
		}
		c.text(x, y+14, cText, start, string(st))
		c.text(x+w, y+14, cSoft, end, s.stayed(st))
		c.rect(x, y+20, w, 8, 2, cFrame, "")
		if total > 0 && s.spent[st] > 0 {
			k := cWork
			if (stay{state: st}).waits() {
				k = cWait
			}
			c.rect(x, y+20, max(2, w*float64(s.spent[st])/float64(total)), 8, 2, k, s.stateHint(st))
		}
		y += 38
	}
	return y
}

// footer writes the path, and the rows that keep any state.
func (s *Story) footer(c *canvas, x, y, w float64) float64 {
	if s.none() {
		c.text(x, y, cHead, start, "Rows that keep any open state")
		return c.wrapped(x, y+18, w, 16, cSoft, strings.Join(s.anywhere(), ", "))
	}
	c.text(x, y, cHead, start, "The path taken")
	y = c.wrapped(x, y+18, w, 16, cText, s.Path())
	if kept := s.anywhere(); len(kept) > 0 {
		y = c.wrapped(x, y+20, w, 16, cSoft, "State kept by: "+strings.Join(kept, ", "))
	}
	return y
}

// anywhere are the rows that keep any state; of a run those that were taken.
func (s *Story) anywhere() []string {
	var out []string
	for _, t := range agent.Table() {
		if !anywhere(t) {
			continue
		}
		n := 0
		for _, st := range agent.States() {
			n += s.times(st, st, t.Row)
		}
		if n > 0 || s.none() {
			out = append(out, string(t.Row)+times(n))
		}
	}
	return out
}
