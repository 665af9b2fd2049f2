package debug

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/agent"
)

// Subject is what a breakpoint looks at.
type Subject string

// The subjects.
const (
	OnState  Subject = "state"  // a state is entered
	OnTool   Subject = "tool"   // a call of a tool begins; * and ? as in file names
	OnRisk   Subject = "risk"   // a call of a risk begins
	OnEvent  Subject = "event"  // an event of a kind
	OnRow    Subject = "row"    // a row of the table
	OnReason Subject = "reason" // a rule of the policy decides: the reason of an outcome, or of the run's end
	OnBudget Subject = "budget" // what was used crosses a threshold
	OnStep   Subject = "step"   // a step
	OnChange Subject = "watch"  // the value at a path changes
)

// Subjects lists those of [Session.Break], in the order of the help.
func Subjects() []Subject {
	return []Subject{OnState, OnTool, OnRisk, OnEvent, OnRow, OnReason, OnBudget, OnStep}
}

// maxBreakpoints bounds the breakpoints of a session.
const maxBreakpoints = 100

// Breakpoint stops a movement. Its number is never used again in its session.
type Breakpoint struct {
	ID        int
	On        Subject
	Value     string
	Condition string   // that must hold besides; empty is none
	Once      bool     // it goes when it is hit
	Off       bool     // it stops nothing
	Hits      int      // how often it stopped, or was stepped on
	Do        []string // what to do then: kept for the caller

	is   func(*Moment) (bool, error)
	when condition
}

// String says what it stops at, as [Session.Break] reads it.
func (b *Breakpoint) String() string {
	text := string(b.On) + " " + b.Value
	if b.Condition != "" {
		text += " if " + b.Condition
	}
	return text
}

// on reports whether the breakpoint stops at a moment.
func (b *Breakpoint) on(m Moment) (bool, error) {
	if b.Off {
		return false, nil
	}
	is, err := b.is(&m)
	if err != nil || !is || b.when == nil {
		return is, err
	}
	return b.when.holds(&m)
}

// Break sets a breakpoint: a subject and its value, such as "state awaiting_approval",
// "tool docs__*", "risk write", "event approve", "row granted", "reason refused",
// "budget calls>=8", "budget tokens>50%" or "step 12", with " if " and a condition behind
// it or not. A state, row, kind of event, risk or number works without its subject.
func (s *Session) Break(text string) (*Breakpoint, error) {
	what, when, err := conditional(text)
	if err != nil {
		return nil, err
	}
	subject, value, _ := strings.Cut(strings.TrimSpace(what), " ")
	b := &Breakpoint{On: Subject(subject), Value: strings.TrimSpace(value)}
	if b.Value == "" {
		if b.On, b.Value, err = s.guess(subject); err != nil {
			return nil, err
		}
	}
	if err := s.aim(b); err != nil {
		return nil, err
	}
	return b, s.add(b, when)
}

// conditional cuts the condition off what it stands behind.
func conditional(text string) (what, when string, err error) {
	what, when, found := strings.Cut(strings.TrimSpace(text)+" ", " if ")
	if when = strings.TrimSpace(when); found && when == "" {
		return "", "", fmt.Errorf("set a breakpoint on %q: behind if, the condition is missing", strings.TrimSpace(what))
	}
	return what, when, nil
}

// Watch sets a breakpoint on the change of a value.
func (s *Session) Watch(at string) (*Breakpoint, error) {
	at, when, err := conditional(at)
	if err != nil {
		return nil, err
	}
	p, err := parsePath(strings.TrimSpace(at))
	if err != nil {
		return nil, err
	}
	if p[0] == "step" || p[0] == "entry" {
		return nil, fmt.Errorf("watch %s: it is another at every step; break on an event or a row", p)
	}
	b := &Breakpoint{On: OnChange, Value: p.String()}
	b.is = func(m *Moment) (bool, error) {
		f := b.change(*m)
		return f.A != f.B, nil
	}
	return b, s.add(b, when)
}

// add numbers a breakpoint and takes it in.
func (s *Session) add(b *Breakpoint, when string) error {
	if len(s.breakpoints) >= maxBreakpoints {
		return fmt.Errorf("set a breakpoint: there are %d already", maxBreakpoints)
	}
	if err := b.under(strings.TrimSpace(when)); err != nil {
		return err
	}
	s.numbered++
	b.ID = s.numbered
	s.breakpoints = append(s.breakpoints, b)
	return nil
}

// under gives the breakpoint a condition, or none.
func (b *Breakpoint) under(text string) error {
	var when condition
	if text != "" {
		var err error
		if when, err = parseCondition(text); err != nil {
			return err
		}
	}
	b.Condition, b.when = text, when
	return nil
}

// Breakpoints lists them by number.
func (s *Session) Breakpoints() []*Breakpoint { return slices.Clone(s.breakpoints) }

// Breakpoint is the one of that number.
func (s *Session) Breakpoint(id int) (*Breakpoint, error) {
	for _, b := range s.breakpoints {
		if b.ID == id {
			return b, nil
		}
	}
	return nil, fmt.Errorf("there is no breakpoint %d", id)
}

// Clear removes a breakpoint.
func (s *Session) Clear(id int) error {
	if _, err := s.Breakpoint(id); err != nil {
		return err
	}
	s.breakpoints = slices.DeleteFunc(slices.Clone(s.breakpoints), func(b *Breakpoint) bool { return b.ID == id })
	return nil
}

// Condition gives a breakpoint another condition, or, empty, none.
func (s *Session) Condition(id int, text string) error {
	b, err := s.Breakpoint(id)
	if err != nil {
		return err
	}
	return b.under(strings.TrimSpace(text))
}

// Known lists the values that a subject can have in this run; nil if they are without
// end.
func (s *Session) Known(on Subject) []string {
	switch on {
	case OnState:
		return words(agent.States())
	case OnTool:
		return s.tools()
	case OnRisk:
		return words([]agent.Risk{agent.RiskRead, agent.RiskWrite, agent.RiskDestructive})
	case OnEvent:
		return words(agent.Kinds())
	case OnRow:
		return rows()
	case OnReason, OnBudget, OnStep, OnChange:
	}
	return nil
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

func (s *Session) tools() (out []string) {
	for _, t := range s.last.Spec.Tools {
		if !t.HostOnly {
			out = append(out, t.Name)
		}
	}
	return out
}

func rows() (out []string) {
	for _, t := range agent.Table() {
		if !slices.Contains(out, string(t.Row)) {
			out = append(out, string(t.Row))
		}
	}
	return out
}

// guess finds the subject of a value that stands alone.
func (s *Session) guess(word string) (Subject, string, error) {
	if word == "" {
		return "", "", fmt.Errorf("set a breakpoint: on one of %s, and a value", strings.Join(words(Subjects()), ", "))
	}
	if _, err := strconv.Atoi(word); err == nil {
		return OnStep, word, nil
	}
	for _, on := range []Subject{OnState, OnRow, OnEvent, OnRisk, OnTool} {
		if slices.Contains(s.Known(on), word) {
			return on, word, nil
		}
	}
	if strings.ContainsAny(word, "<>=") {
		return OnBudget, word, nil
	}
	if strings.ContainsAny(word, "*?") {
		return OnTool, word, nil
	}
	return "", "", fmt.Errorf("set a breakpoint on %q: it is no state, row, kind of event, risk or tool; say which with one of %s",
		word, strings.Join(words(Subjects()), ", "))
}

// aim makes the breakpoint look at its subject.
func (s *Session) aim(b *Breakpoint) error {
	if known := s.Known(b.On); b.On != OnTool && known != nil && !slices.Contains(known, b.Value) {
		return fmt.Errorf("set a breakpoint on %s %q: want one of %s", b.On, b.Value, strings.Join(known, ", "))
	}
	var is func(*Moment) bool
	switch b.On {
	case OnState:
		is = func(m *Moment) bool { return string(m.Run.State) == b.Value && m.Was.State != m.Run.State }
	case OnTool:
		if err := s.namesTool(b.Value); err != nil {
			return err
		}
		is = begins(func(c *viewCall) bool { fits, _ := path.Match(b.Value, c.Tool); return fits })
	case OnRisk:
		is = begins(func(c *viewCall) bool { return string(c.Risk) == b.Value })
	case OnEvent:
		is = func(m *Moment) bool { return string(m.Entry.Event) == b.Value }
	case OnRow:
		is = func(m *Moment) bool { return string(m.Entry.Row) == b.Value }
	case OnReason:
		is = decides(b.Value)
	case OnBudget:
		t, err := parseThreshold(b.Value)
		if err != nil {
			return err
		}
		is = func(m *Moment) bool { return t.over(&m.Run) && !t.over(&m.Was) }
	case OnStep:
		n, err := strconv.Atoi(b.Value)
		if err != nil || n < 1 {
			return fmt.Errorf("set a breakpoint on step %q: want a number from 1", b.Value)
		}
		is = func(m *Moment) bool { return m.Step == n }
	default:
		return fmt.Errorf("set a breakpoint on %q: want one of %s", b.On, strings.Join(words(Subjects()), ", "))
	}
	b.is = func(m *Moment) (bool, error) { return is(m), nil }
	return nil
}

// namesTool checks that the run has such a tool.
func (s *Session) namesTool(pattern string) error {
	for _, name := range s.tools() {
		if fits, err := path.Match(pattern, name); err != nil || fits {
			return err
		}
	}
	return fmt.Errorf("set a breakpoint on tool %q: the run has %s", pattern, strings.Join(s.tools(), ", "))
}

// begins reports whether a call that fits begins.
func begins(fits func(*viewCall) bool) func(*Moment) bool {
	return func(m *Moment) bool {
		c := m.Run.Call
		return c != nil && (m.Was.Call == nil || m.Was.Call.ID != c.ID) && fits(callView(&m.Run))
	}
}

// decides reports whether a rule of that name decides: what was returned or observed has
// it as its reason, or the run ends or is held by it. A part before a colon is enough.
func decides(name string) func(*Moment) bool {
	is := func(reason string) bool { return reason == name || strings.HasPrefix(reason, name+":") }
	return func(m *Moment) bool {
		if is(m.Run.Reason) && !is(m.Was.Reason) {
			return true
		}
		if m.Entry.Event != agent.KindReturned && m.Entry.Event != agent.KindObserved && m.Entry.Event != agent.KindTurnRefused &&
			m.Entry.Event != agent.KindUnreached && m.Entry.Event != agent.KindVerified {
			return false
		}
		if m.Run.Call != nil && m.Run.Call.Outcome != nil && m.Entry.Event == agent.KindReturned {
			return is(m.Run.Call.Outcome.Reason)
		}
		var said struct {
			Reason string `json:"reason"`
		}
		return json.Unmarshal(m.Entry.Data, &said) == nil && is(said.Reason)
	}
}

// threshold is a comparison of what was used with a number, or with a part of the limit.
type threshold struct {
	of      func(agent.Budget) int64
	how     string
	n       float64
	percent bool
}

var budgetOf = map[string]func(agent.Budget) int64{
	"calls":  func(b agent.Budget) int64 { return int64(b.Calls) },
	"turns":  func(b agent.Budget) int64 { return int64(b.Turns) },
	"tokens": func(b agent.Budget) int64 { return b.Tokens },
	"wall":   func(b agent.Budget) int64 { return b.Wall },
	"cost":   func(b agent.Budget) int64 { return b.Cost },
}

const budgetNames = "calls, turns, tokens, wall (seconds) or cost (millionths)"

// parseThreshold reads NAME OP NUMBER, or NAME OP PERCENT%.
func parseThreshold(text string) (threshold, error) {
	bad := fmt.Errorf("set a breakpoint on budget %q: want such as calls>=8 or tokens>50%%, of %s", text, budgetNames)
	at := strings.IndexAny(text, "<>=")
	if at < 0 {
		return threshold{}, bad
	}
	name, whole := strings.TrimSpace(text[:at]), text
	t := threshold{of: budgetOf[name]}
	for _, how := range []string{">=", ">", "=="} { // what is used only grows
		if rest, ok := strings.CutPrefix(text[at:], how); ok {
			t.how = how
			text = strings.TrimSpace(rest)
			break
		}
	}
	number, percent := strings.CutSuffix(text, "%")
	n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if t.of == nil || t.how == "" || err != nil || !(n >= 0) {
		return threshold{}, bad
	}
	if percent && (n > 100 || n == 100 && t.how == ">") && (name == "calls" || name == "turns") {
		return threshold{}, fmt.Errorf("set a breakpoint on budget %q: no more than 100%% of the %s are ever used", whole, name)
	}
	t.n, t.percent = n, percent
	return t, nil
}

// over reports whether what the run has used fulfils the comparison.
func (t threshold) over(r *agent.Run) bool {
	if r.State == agent.StateNone {
		return false
	}
	u := r.Used
	used := agent.Budget{Calls: u.Calls, Turns: u.Turns, Tokens: u.Tokens, Wall: int64(u.Wall / time.Second), Cost: u.Cost}
	has, want := float64(t.of(used)), t.n
	if t.percent {
		limit := t.of(r.Budget)
		if limit == 0 {
			return false // there is no limit to have a part of
		}
		want = t.n / 100 * float64(limit)
	}
	switch t.how {
	case ">":
		return has > want
	case "==":
		return has == want
	}
	return has >= want
}

// change is what a step made of the watched value.
func (b *Breakpoint) change(m Moment) Field {
	f := Field{Path: b.Value}
	p, err := parsePath(b.Value)
	if err != nil {
		return f // it was parsed when it was set
	}
	before := m
	before.Run = m.Was
	f.A, f.B = p.text(&before), p.text(&m)
	return f
}

// text is the value as JSON; null where there is none.
func (p place) text(m *Moment) string {
	v, err := p.in(m)
	if err != nil {
		return "null"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "null"
	}
	return string(raw)
}
