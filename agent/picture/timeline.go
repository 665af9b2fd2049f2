package picture

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"sallyport/agent"
)

// Bounds above which a timeline counts instead of showing one by one.
const (
	maxStays = 140 // stays that are bars of their own
	maxCalls = 24  // calls that have a line of their own
	maxTools = 12  // lines of tools, where calls have none
	maxSigns = 80  // marks that are drawn one by one
	fewSigns = 4   // in a line, where there are more in all
)

// Timeline draws the time that the run spent in each state, its calls with what became of
// them, what people and the clock did, and the budgets. Waits are cut out, with their true
// length written. A zero Story gives a picture without time.
func (s *Story) Timeline(size Size) string { return s.timeline(size, true) }

func (s *Story) timeline(size Size, alone bool) string {
	c := &canvas{size: size}
	t := timeline{Story: s, c: c}
	t.x0, t.x1, t.left, t.right = 214, 676, 24, size.width()-24
	switch size {
	case Small:
		t.x0, t.x1, t.left, t.right = 16, 384, 16, 384
	case Wide:
		t.x0, t.x1 = 260, 1030
	case Normal:
	}
	t.y = s.header(c, "")
	t.scale = s.scaled(size, t.x0, t.x1-t.x0)
	t.axis()
	head := c.b.String()
	c.b.Reset()
	top := t.y
	t.timed = true
	t.stateRows()
	t.callRows()
	t.markRows()
	t.timed = false
	body := c.b.String()
	c.b.Reset()
	c.b.WriteString(head)
	if size != Small { // there, labels stand over the bars, and every row has its own
		t.bands(top, t.y+4, true)
	}
	c.b.WriteString(body)
	t.budgetRows()
	t.legend()
	return c.picture(t.y+24, fmt.Sprintf("The time of run %s", plain(s.run.ID)), s.timeDesc(), alone)
}

func (s *Story) timeDesc() string {
	var spent []string
	for _, st := range agent.States() {
		if s.visits[st] > 0 && !st.Final() {
			spent = append(spent, fmt.Sprintf("%s %s", st, duration(s.spent[st])))
		}
	}
	return fmt.Sprintf("%s. %s. Time: %s.", s.ending(), s.facts(), strings.Join(spent, ", "))
}

// timeline is one being drawn: from top to bottom, a row at a time.
type timeline struct {
	*Story
	c           *canvas
	scale       scale
	x0, x1      float64 // of the time
	left, right float64 // of what is written
	y           float64 // of the last thing drawn
	timed       bool    // rows have the tears of the time behind them
}

// tickRoom is how far ticks are from each other, at least.
const tickRoom = 76

// barHeight is that of a bar in a row.
const barHeight = 12

// row begins a row: its label, what is written at its end, and where its bar stands.
func (t *timeline) row(label, value string, sign outcome) float64 {
	indent := 0.0
	if sign < outcomes {
		indent = 16
	}
	if t.c.size == Small {
		t.y += 34
		room := t.c.letterRoom(value) + indent
		t.c.fit(t.left, t.y-15, t.right-t.left-room-8, cText, start, label)
		t.c.text(t.right, t.y-15, cSoft, end, value)
		if indent > 0 {
			t.c.sign(t.right-room, t.y-24, sign, "")
		}
		y := t.y - barHeight + 3
		if t.timed {
			t.bands(y-3, y+barHeight+3, false)
		}
		return y
	}
	t.y += 22
	t.c.fit(t.left, t.y-2, t.x0-t.left-14, cText, start, label)
	t.c.fit(t.x1+14+indent, t.y-2, t.right-t.x1-14-indent, cSoft, start, value)
	if indent > 0 {
		t.c.sign(t.x1+14, t.y-11, sign, "")
	}
	return t.y - barHeight
}

// letterRoom is the width of text at the end of a row.
func (c *canvas) letterRoom(text string) float64 { return float64(cells(text)) * cSoft.letter() }

// noSign is no sign at the end of a row.
const noSign = outcomes

func (t *timeline) head(text string) {
	t.y += 36
	t.c.text(t.left, t.y, cHead, start, text)
	t.y += 2
}

// axis writes working time, and above it how long each wait was that is cut out.
func (t *timeline) axis() {
	t.y += 50
	if t.c.size == Small {
		t.c.text(t.left, t.y-29, cSmall, start, "working time; waits are cut out")
	} else {
		t.c.text(t.left, t.y-1, cSmall, start, "waits, cut out")
		t.c.text(t.left, t.y+16, cSmall, start, "working time")
	}
	t.waitLabels()
	t.y += 17
	for _, tk := range t.scale.ticks(tickRoom) {
		if tk.x+float64(cells(tk.says))*cSmall.letter() < t.x1+12 {
			t.c.text(tk.x, t.y, cSmall, start, tk.says)
		}
		t.c.line(tk.x, t.y+5, tk.x, t.y+10, cTear)
	}
	t.c.line(t.x0, t.y+10, t.x1, t.y+10, cGrid)
	t.y += 8
	if n, long := t.scale.untorn(); n > 0 {
		t.y += 16
		t.y = t.c.wrapped(t.x0, t.y, t.x1-t.x0, 14, cSmall, fmt.Sprintf("and %s, %s in all, that have no width here", several(n, "shorter wait", "shorter waits"), duration(long)))
		t.y += 6
	}
}

// waitLabels writes the lengths of waits over their tears, in two lines, the longest
// first; one that has no room beside longer ones is told by its hint alone.
func (t *timeline) waitLabels() {
	torn := slices.DeleteFunc(slices.Clone(t.scale.spans), func(sp span) bool { return !sp.torn })
	slices.SortStableFunc(torn, func(a, b span) int { return cmp.Compare(b.long(), a.long()) })
	var taken [2][][2]float64 // of the lower line and of the upper
	place := func(mid float64, says string) {
		half := float64(cells(says))*cSmall.letter()/2 + 3
		mid = min(max(mid, t.x0+half), t.x1-half)
		for i := range taken {
			if slices.ContainsFunc(taken[i], func(o [2]float64) bool { return mid-half < o[1] && o[0] < mid+half }) {
				continue
			}
			taken[i] = append(taken[i], [2]float64{mid - half, mid + half})
			t.c.text(mid, t.y-14*float64(i), cSmall, middle, says)
			return
		}
	}
	if t.scale.tail > 0 {
		place(t.x1, "goes on")
	}
	for _, sp := range torn {
		place((sp.x0+sp.x1)/2, duration(sp.long()))
	}
}

// bands draws the tears and the ticks behind the rows between two heights; the tears are
// told by hints where told is set.
func (t *timeline) bands(top, bottom float64, told bool) {
	var areas, edges, grid strings.Builder
	down := "V" + number(bottom)
	for _, sp := range t.scale.spans {
		if !sp.torn {
			continue
		}
		if told {
			t.c.rect(sp.x0, top, sp.x1-sp.x0, bottom-top, 0, cPanel, fmt.Sprintf("waited %s, until %s", duration(sp.long()), moment(sp.to)))
		} else {
			fmt.Fprintf(&areas, "M%s %s%sH%sV%sz", number(sp.x0), number(top), down, number(sp.x1), number(top))
		}
		fmt.Fprintf(&edges, "M%s %s%sM%s %s%s", number(sp.x0), number(top), down, number(sp.x1), number(top), down)
	}
	for _, tk := range t.scale.ticks(tickRoom) {
		fmt.Fprintf(&grid, "M%s %s%s", number(tk.x), number(top), down)
	}
	for _, layer := range []struct {
		d *strings.Builder
		k class
	}{{&areas, cPanel}, {&grid, cGrid}, {&edges, cTear}} {
		if layer.d.Len() > 0 {
			t.c.path(layer.d.String(), layer.k, "")
		}
	}
}

// stateRows draws a line for each state that the run was in.
func (t *timeline) stateRows() {
	t.head("Time in each state")
	for _, st := range agent.States() {
		if st.Final() || t.visits[st] == 0 {
			continue
		}
		y := t.row(string(st), t.stayed(st), noSign)
		if len(t.stays) > maxStays {
			t.crowd(y, st)
		} else {
			t.bars(y, st)
		}
		if st == t.run.State {
			t.c.path(fmt.Sprintf("M%s %sH%s", number(t.scale.end()+2), number(y+barHeight/2), number(t.x1)), cOpen, string(st)+" goes on")
		}
	}
}

// bars draws each stay in a state.
func (t *timeline) bars(y float64, st agent.State) {
	for i, stay := range t.stays {
		if stay.state != st || i == len(t.stays)-1 && stay.long() == 0 {
			continue
		}
		x0, x1 := t.scale.at(stay.from), t.scale.at(stay.to)
		says := fmt.Sprintf("%s for %s, from %s, entry %s (%s)", st, duration(stay.long()), clock(stay.from), count(stay.first), stay.by)
		k := cWork
		switch {
		case stay.held:
			k, says = cOpen, "paused in "+says
		case stay.waits():
			k = cWait
		}
		t.c.rect(min(x0, t.x1-2), y, max(2, x1-x0), barHeight, 2, k, says)
	}
}

// bins is how many columns a crowded row has.
func (t *timeline) bins() int { return max(60, int((t.x1-t.x0)/5)) }

// crowd draws, for each bin of the time, which share of it was spent in the state.
func (t *timeline) crowd(y float64, st agent.State) {
	share := make([]float64, t.bins())
	wide := (t.x1 - t.x0) / float64(len(share))
	for _, stay := range t.stays {
		if stay.state != st {
			continue
		}
		x0, x1 := t.scale.at(stay.from)-t.x0, t.scale.at(stay.to)-t.x0
		for i := int(x0 / wide); i < len(share) && float64(i)*wide <= x1; i++ {
			share[i] += max(0, min(x1, float64(i+1)*wide)-max(x0, float64(i)*wide)) / wide
		}
	}
	k := cWork
	if (stay{state: st}).waits() {
		k = cWait
	}
	t.columns(y, share, k.attributes(), fmt.Sprintf("%s: %s, %s in all; the height is the share of the time", st, several(t.visits[st], "stay", "stays"), duration(t.spent[st])))
}

// columns draws values between 0 and 1 as columns of a row, in one path.
func (t *timeline) columns(y float64, values []float64, attributes, says string) {
	wide := (t.x1 - t.x0) / float64(len(values))
	var d strings.Builder
	for i, v := range values {
		if v <= 0 {
			continue
		}
		h := max(2, min(1, v)*(barHeight+2))
		fmt.Fprintf(&d, "M%s %sh%sv-%sh-%sz", number(t.x0+float64(i)*wide), number(y+barHeight), number(wide-0.6), number(h), number(wide-0.6))
	}
	if d.Len() > 0 {
		t.c.element("path", `d="`+d.String()+`"`+attributes, says)
	}
}

// callRows draws a line for each call, or for each tool where there are too many.
func (t *timeline) callRows() {
	switch n := len(t.calls); {
	case n == 0:
	case n <= maxCalls:
		t.head("Calls")
		for i := range t.calls {
			t.callRow(i+1, &t.calls[i])
		}
	default:
		t.head("Calls by tool")
		for _, group := range byTool(t.calls) {
			t.toolRow(group)
		}
	}
}

func (t *timeline) callRow(n int, k *call) {
	o := k.came()
	value := k.word() + " · " + duration(k.long())
	if k.carried {
		value = k.word() + " · carried"
	}
	y := t.row(fmt.Sprintf("%d %s", n, named(k.tool)), value, o)
	x0, x1 := t.scale.at(k.from), t.scale.at(k.to)
	t.c.line(x0, y+barHeight/2, max(x1, x0+3), y+barHeight/2, cSpan)
	says := t.callHint(n, k)
	i := sort.Search(len(t.stays), func(i int) bool { return t.stays[i].to.After(k.from) })
	drawn := false
	for ; i < len(t.stays) && t.stays[i].from.Before(k.to); i++ {
		if st := t.stays[i]; !st.waits() && st.long() > 0 {
			a, b := t.scale.at(later(st.from, k.from)), t.scale.at(earlier(st.to, k.to))
			t.c.bar(min(a, t.x1-4), y, max(4, b-a), barHeight, o, says)
			drawn = true
		}
	}
	if !drawn {
		t.c.bar(min(x0, t.x1-4), y, 4, barHeight, o, says)
	}
	if k.open {
		t.c.path(fmt.Sprintf("M%s %sH%s", number(t.scale.end()+2), number(y+barHeight/2), number(t.x1)), cOpen, "goes on")
	}
}

// word is what became of a call, as it is written.
func (c *call) word() string {
	words := looks[c.came()].word
	if c.edited {
		words += ", edited"
	}
	if c.replaced {
		words += ", replaced"
	}
	return words
}

// tried is how often a call's effects were begun again.
func (c *call) tried() string {
	if c.attempts == 0 {
		return ""
	}
	return ", performed again " + several(c.attempts, "time", "times")
}

func (t *timeline) callHint(n int, k *call) string {
	text := fmt.Sprintf("call %d, %s, %s: %s after %s, from %s, entry %s", n, named(k.tool), k.danger(), k.word()+k.tried(), duration(k.long()), clock(k.from), count(k.first))
	if k.reason != "" {
		text += ", " + named(k.reason)
	}
	return text
}

// danger is the risk of a call's tool, as the run pinned it.
func (c *call) danger() string {
	if c.risk == "" {
		return "no tool of the run"
	}
	return named(string(c.risk))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// toolCalls are the calls of one tool.
type toolCalls struct {
	tool  string
	calls []call
}

// byTool groups calls, the most called first; the least called share a group.
func byTool(calls []call) []toolCalls {
	index := map[string]int{}
	var out []toolCalls
	for _, k := range calls {
		i, ok := index[k.tool]
		if !ok {
			i = len(out)
			index[k.tool] = i
			out = append(out, toolCalls{tool: k.tool})
		}
		out[i].calls = append(out[i].calls, k)
	}
	slices.SortStableFunc(out, func(a, b toolCalls) int { return cmp.Compare(len(b.calls), len(a.calls)) })
	if len(out) > maxTools {
		rest := toolCalls{tool: several(len(out)-maxTools+1, "other tool", "other tools")}
		for _, g := range out[maxTools-1:] {
			rest.calls = append(rest.calls, g.calls...)
		}
		out = append(out[:maxTools-1], rest)
	}
	return out
}

// toolRow draws how many calls of a tool ended in each bin, the outcomes on top of each
// other, ok at the bottom.
func (t *timeline) toolRow(g toolCalls) {
	bins := t.bins() / 2
	var at [outcomes][]float64
	var total [outcomes]int
	most := 1.0
	sum := make([]float64, bins)
	for i := range g.calls {
		k := &g.calls[i]
		o := k.came()
		if at[o] == nil {
			at[o] = make([]float64, bins)
		}
		b := min(bins-1, max(0, int((t.scale.at(k.to)-t.x0)/(t.x1-t.x0)*float64(bins))))
		at[o][b]++
		sum[b]++
		most = max(most, sum[b])
		total[o]++
	}
	t.y += 4
	y := t.row(named(g.tool), tally(total), worst(total))
	base := make([]float64, bins)
	for o := range outcomes {
		if at[o] != nil {
			t.pile(y, at[o], base, most, o, fmt.Sprintf("%s: %s", named(g.tool), tally(total)))
		}
	}
}

// pile draws one outcome's columns on those that lie there already.
func (t *timeline) pile(y float64, values, base []float64, most float64, o outcome, says string) {
	wide := (t.x1 - t.x0) / float64(len(values))
	const tall = barHeight + 3
	var d strings.Builder
	for i, v := range values {
		if v == 0 {
			continue
		}
		h := max(2, v/most*tall)
		bottom := y + barHeight - base[i]
		fmt.Fprintf(&d, "M%s %sh%sv-%sh-%sz", number(t.x0+float64(i)*wide), number(bottom), number(wide-1), number(h), number(wide-1))
		base[i] += h
	}
	t.c.element("path", `d="`+d.String()+`"`+t.c.filled(o), says)
}

// tally is how many calls had which outcome.
func tally(total [outcomes]int) string {
	var words []string
	for o, n := range total {
		if n > 0 {
			words = append(words, count(int64(n))+" "+looks[o].word)
		}
	}
	return strings.Join(words, ", ")
}

// worst is the outcome that a reader should see first.
func worst(total [outcomes]int) outcome {
	for _, o := range []outcome{unknown, failed, unavailable, rejected, waiting, unfinished} {
		if total[o] > 0 {
			return o
		}
	}
	return wentWell
}

// markRows draws a line for everything that somebody did.
func (t *timeline) markRows() {
	rows := markRows(t.marks)
	if len(rows) == 0 {
		return
	}
	t.head("Decisions and events")
	for _, r := range rows {
		value := "×" + count(int64(len(r.marks)))
		if len(r.marks) == 1 {
			value = t.when(r.marks[0].at)
			if n := r.marks[0].call; n > 0 {
				value = fmt.Sprintf("call %d · %s", n, value)
			}
		}
		y := t.row(r.says, value, noSign)
		t.c.line(t.x0, y+barHeight/2, t.x1, y+barHeight/2, cGrid)
		if len(t.marks) > maxSigns && len(r.marks) > fewSigns {
			t.density(y, r)
			continue
		}
		for _, m := range r.marks {
			t.mark(y, m)
		}
	}
}

// when is a moment as the run needs it: with its day, if the run had several.
func (s *Story) when(at time.Time) string {
	if s.began.UTC().YearDay() == s.run.Time.UTC().YearDay() && s.lasted() < 24*time.Hour {
		return clock(at)
	}
	return at.UTC().Format("2 Jan 15:04")
}

// density draws how many marks of a row lie in each bin.
func (t *timeline) density(y float64, r markRow) {
	values := make([]float64, t.bins())
	most := 1.0
	for _, m := range r.marks {
		i := min(len(values)-1, max(0, int((t.scale.at(m.at)-t.x0)/(t.x1-t.x0)*float64(len(values)))))
		values[i]++
		most = max(most, values[i])
	}
	for i := range values {
		values[i] /= most
	}
	t.columns(y, values, cMark.attributes(), r.says+" ×"+count(int64(len(r.marks))))
}

func (t *timeline) mark(y float64, m mark) {
	x, y := min(max(t.scale.at(m.at), t.x0+5), t.x1-5), y+barHeight/2
	says := m.says + ", " + moment(m.at) + ", entry " + count(m.seq)
	if m.call > 0 {
		says += fmt.Sprintf(", call %d", m.call)
	}
	t.c.element("path", fmt.Sprintf(`d="%s" transform="translate(%s %s)"`, shapes[m.shape].path, number(x), number(y))+shapes[m.shape].class.attributes(), says)
}

// shapes are drawn around their middle.
var shapes = map[shape]struct {
	path  string
	class class
}{
	triangle: {"M0-6L6 5H-6Z", cMark},
	cross:    {"M-4-4L4 4M-4 4L4-4", cRing},
	diamond:  {"M0-6L6 0L0 6L-6 0Z", cMark},
	square:   {"M-5-5H5V5H-5Z", cMark},
	circle:   {"M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0", cMark},
	ring:     {"M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0", cRing},
}

// budgetRows draws how much of each budget is used.
func (t *timeline) budgetRows() {
	if t.none() {
		return
	}
	t.head("Budgets used")
	for _, b := range t.budgets() {
		value, share := b.used+" of "+b.limit, b.share
		if b.limit == "" {
			value = b.used + ", no limit"
		}
		over := share > 1
		if over {
			value += ", over"
		}
		y := t.row(b.name, value, noSign)
		t.c.rect(t.x0, y, t.x1-t.x0, barHeight, 2, cFrame, b.name+": "+value)
		switch {
		case over:
			t.c.bar(t.x0, y, t.x1-t.x0, barHeight, failed, b.name+": "+value)
		case share > 0:
			t.c.rect(t.x0, y, max(2, (t.x1-t.x0)*share), barHeight, 2, cGauge, b.name+": "+value)
		}
	}
}

// spentBudget is one budget of the run.
type spentBudget struct {
	name, used, limit string
	share             float64
}

// budgets are those of SPEC A8, raised as the run's were.
func (s *Story) budgets() []spentBudget {
	u, b := s.run.Used, s.run.Budget
	share := func(used, of float64) float64 {
		switch {
		case of > 0:
			return used / of
		case used > 0:
			return 2
		}
		return 0
	}
	out := []spentBudget{
		{"tool calls", count(int64(u.Calls)), count(int64(b.Calls)), share(float64(u.Calls), float64(b.Calls))},
		{"turns of the model", count(int64(u.Turns)), count(int64(b.Turns)), share(float64(u.Turns), float64(b.Turns))},
		{"tokens", count(u.Tokens), count(b.Tokens), share(float64(u.Tokens), float64(b.Tokens))},
		{"working time", duration(u.Wall), duration(time.Duration(b.Wall) * time.Second), share(u.Wall.Seconds(), float64(b.Wall))},
	}
	if p := s.run.Spec.Prices; p != nil {
		cost := spentBudget{name: "cost in " + plain(p.Currency), used: money(u.Cost)}
		if b.Cost > 0 {
			cost.limit, cost.share = money(b.Cost), share(float64(u.Cost), float64(b.Cost))
		}
		out = append(out, cost)
	}
	return out
}

// money is an amount in millionths of the unit.
func money(millionths int64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%d.%06d", millionths/1_000_000, millionths%1_000_000), "0"), ".")
}

// legend explains the outcomes that occur.
func (t *timeline) legend() {
	var seen [outcomes]bool
	for i := range t.calls {
		seen[t.calls[i].came()] = true
	}
	x := t.left
	t.y += 34
	for o, is := range seen {
		if !is {
			continue
		}
		word := looks[o].word
		wide := 56 + float64(cells(word))*cSoft.letter()
		if x+wide > t.right {
			x, t.y = t.left, t.y+20
		}
		t.c.bar(x, t.y-10, 20, barHeight, outcome(o), "")
		t.c.sign(x+26, t.y-9, outcome(o), "")
		t.c.text(x+41, t.y, cSoft, start, word)
		x += wide + 8
	}
	if x == t.left {
		t.y -= 20
	}
}
