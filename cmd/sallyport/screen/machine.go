package screen

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"sallyport/agent"
	"sallyport/agent/debug"
)

// picture is the machine drawn, for terminals with room for it. Names of states and rows
// in it are found and lit; a test compares it with the table.
var picture = []string{
	`               ┌─────────────── next_turn ────────────────┐`,
	`               v                  ┌────── next_call ──────┤`,
	` started ──> model ──proposed──> execute ──returned──> observe ──approval_required──> awaiting_approval`,
	`               │                  ^                     ^ │ ^                            │      │`,
	`            answered              └── granted, edited ──┼─┼─┼────────────────────────────┘      │`,
	`               v                                        │ │ └──────── refused, expired ─────────┘`,
	`           completed                                    │ └──outcome_unknown──> needs_verification`,
	` failed: model_gave_up, budget_ended    cancelled       └───────── settled ────────────┘`,
}

// pictureWidth is how many cells the picture takes.
const pictureWidth = 106

// drawn is the picture with the current state lit, the row that led to it, and what leads
// on from it.
func drawn(m debug.Moment) []string {
	out := make([]string, len(picture))
	for i, l := range picture {
		var b strings.Builder
		for _, w := range wordsOf(l) {
			b.WriteString(faceOf(w, m).in(w))
		}
		out[i] = b.String()
	}
	return out
}

// wordsOf cuts a line of the picture into names and what is between them.
func wordsOf(l string) []string {
	var out []string
	start, was := 0, false
	for i, r := range l {
		is := r == '_' || unicode.IsLower(r) && r != 'v'
		if r == 'v' { // the tip of an arrow, unless it is in a word
			is = was || i+1 < len(l) && unicode.IsLower(rune(l[i+1]))
		}
		if is != was && i > start {
			out = append(out, l[start:i])
			start = i
		}
		was = is
	}
	return append(out, l[start:])
}

// faceOf is how a name of the picture looks at a moment.
func faceOf(name string, m debug.Moment) face {
	switch {
	case agent.State(name) == m.Run.State:
		return lit
	case agent.Row(name) == m.Entry.Row:
		return strong
	case agent.State(name) == m.Was.State, slices.ContainsFunc(leads(m.Run.State), func(t agent.Transition) bool { return string(t.Row) == name }):
		return plain
	}
	return faint
}

// leads are the rows that lead on from a state.
func leads(s agent.State) []agent.Transition {
	return slices.DeleteFunc(slices.Clone(agent.Table()), func(t agent.Transition) bool { return !slices.Contains(t.From, s) })
}

// strip is the machine in two rows, for terminals without room for the picture: the
// working states, the final ones, and the row that led here.
func strip(m debug.Moment, width int) []string {
	state := func(s agent.State) string {
		switch {
		case s == m.Run.State:
			return lit.in("[" + string(s) + "]")
		case s == m.Was.State:
			return string(s)
		}
		return faint.in(string(s))
	}
	first := " " + strings.Join([]string{state(agent.StateModel), state(agent.StateExecute), state(agent.StateObserve)}, " > ") +
		" > " + state(agent.StateAwaitingApproval) + "  " + state(agent.StateNeedsVerification)
	second := " " + state(agent.StateCompleted) + "  " + state(agent.StateFailed) + "  " + state(agent.StateCancelled)
	return []string{first, second + strong.in(cut("   "+came(m), width-cells(second)))}
}

// came is how a run came to where it is.
func came(m debug.Moment) string {
	switch {
	case m.Was.State == agent.StateNone:
		return "by " + string(m.Entry.Row)
	case m.Was.State == m.Run.State:
		return "by " + string(m.Entry.Row) + ", which stays"
	}
	return "by " + string(m.Entry.Row) + " from " + string(m.Was.State)
}

// onward says what leads on; the row that the journal has next stands in brackets.
func onward(m debug.Moment, next agent.Row, width int) string {
	if m.Run.State.Final() {
		return faint.in(cut(" nothing leads on from "+string(m.Run.State), width))
	}
	const lead = " leads on: "
	shown := map[agent.Row]bool{}
	texts := []string{}
	for _, t := range leads(m.Run.State) {
		if shown[t.Row] || always(t) && t.Row != next {
			continue
		}
		shown[t.Row] = true
		text := string(t.Row)
		if t.Row == next {
			texts = slices.Insert(texts, 0, "["+text+"]")
			continue
		}
		texts = append(texts, text)
	}
	rest := cut(lead+strings.Join(texts, " ")+"; an operator can cancel or pause", width)
	if next == "" {
		return faint.in(rest)
	}
	taken := lead + texts[0]
	if len(rest) < len(taken) {
		return rest
	}
	return faint.in(lead) + strong.in(texts[0]) + faint.in(rest[len(taken):])
}

// always reports whether an operator can cause a row in any open state.
func always(t agent.Transition) bool {
	return slices.Equal(t.By, []agent.Origin{agent.OriginOperator}) && t.Row != agent.RowStarted && t.Row != agent.RowRefused
}

// listed is every state and where it leads, as of a moment: the current one is marked,
// and the row that led to it.
func listed(s *debug.Session, m debug.Moment) string {
	visits := entered(s, m.Step)
	var b strings.Builder
	for _, state := range agent.States() {
		mark := "  "
		if state == m.Run.State {
			mark = "=>"
		}
		fmt.Fprintf(&b, "%s %s", mark, state)
		if n := visits[state]; n > 0 {
			fmt.Fprintf(&b, ", entered %d times", n)
		}
		b.WriteByte('\n')
		for _, t := range leads(state) {
			to, taken := "stays", " "
			if t.To != "" {
				to = "-> " + string(t.To)
			}
			if t.Row == m.Entry.Row && state == m.Was.State {
				taken = "*"
			}
			if !always(t) || taken == "*" {
				fmt.Fprintf(&b, "   %s %-17s %s\n", taken, t.Row, to)
			}
		}
	}
	b.WriteString("An operator can cancel, pause, resume, step or extend\nany run that has not ended.\n")
	return b.String()
}

// entered counts how often each state was entered by a step.
func entered(s *debug.Session, step int) agent.Visits {
	visits, was := agent.Visits{}, agent.StateNone
	for i := range step {
		if now := s.Mark(i + 1).State; now != was {
			visits[now]++
			was = now
		}
	}
	return visits
}
