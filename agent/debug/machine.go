package debug

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/agent"
)

// Machine is the state machine in text, as of a moment: each state and where it leads,
// the current one marked with =>, and every row that leads on from it. The row that led
// here is marked with *.
func Machine(m Moment) string {
	var b strings.Builder
	for _, s := range agent.States() {
		mark := "  "
		if s == m.Run.State {
			mark = "=>"
		}
		line := fmt.Sprintf("%s %-18s %s", mark, s, strings.Join(leadsTo(s, m), "  "))
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	if m.Run.State.Final() {
		fmt.Fprintf(&b, "Nothing leads on from %s.\n", m.Run.State)
		return b.String()
	}
	fmt.Fprintf(&b, "From %s:\n", m.Run.State)
	for _, t := range agent.Table() {
		if !slices.Contains(t.From, m.Run.State) {
			continue
		}
		to := t.To
		if to == "" {
			to = m.Run.State
		}
		fmt.Fprintf(&b, "   %-17s -> %-18s by %s\n", t.Row, to, strings.Join(words(t.By), ", "))
	}
	return b.String()
}

// leadsTo are the other states that a state leads to, each once, in the table's order.
// The one just come from here is marked.
func leadsTo(s agent.State, m Moment) []string {
	var order []agent.State
	by := map[agent.State][]string{}
	for _, t := range agent.Table() {
		if t.To == "" || !slices.Contains(t.From, s) {
			continue
		}
		row := string(t.Row)
		if s == m.Was.State && t.Row == m.Entry.Row && t.To == m.Run.State {
			row += "*"
		}
		if by[t.To] == nil {
			order = append(order, t.To)
		}
		if !slices.Contains(by[t.To], row) {
			by[t.To] = append(by[t.To], row)
		}
	}
	out := make([]string, len(order))
	for i, to := range order {
		out[i] = fmt.Sprintf("-> %s (%s)", to, strings.Join(by[to], ", "))
	}
	return out
}
