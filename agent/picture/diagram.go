package picture

import (
	"fmt"
	"strings"

	"sallyport/agent"
)

// Mermaid is the machine as a Mermaid state diagram, as [agent.Mermaid] draws it, with
// how often each row was taken; the path is a comment.
func (s *Story) Mermaid() string {
	if s.none() {
		return agent.Mermaid(nil, agent.StateNone)
	}
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	fmt.Fprintf(&b, "    %%%% run %s: %s\n", plain(s.run.ID), s.Path())
	for _, st := range agent.States() {
		if s.visits[st] > 0 {
			fmt.Fprintf(&b, "    %s: %s ×%d\n", st, st, s.visits[st])
		}
	}
	s.edges(func(e edge, rows string) {
		from := string(e.from)
		if e.from == agent.StateNone {
			from = "[*]"
		}
		fmt.Fprintf(&b, "    %s --> %s: %s\n", from, e.to, rows)
	})
	for _, st := range agent.States() {
		if st.Final() {
			fmt.Fprintf(&b, "    %s --> [*]\n", st)
		}
	}
	fmt.Fprintf(&b, "    classDef now font-weight:bold,stroke-width:3px\n    class %s now\n", s.run.State)
	return b.String()
}

// Dot is the machine for Graphviz, as [agent.Dot] draws it, with how often each row was
// taken; what was not taken is dotted, and the path is a comment.
func (s *Story) Dot() string {
	if s.none() {
		return agent.Dot(nil, agent.StateNone)
	}
	var b strings.Builder
	b.WriteString("digraph sallyport {\n\trankdir=LR;\n\tnode [shape=box, style=rounded];\n\tstart [shape=point];\n")
	fmt.Fprintf(&b, "\t// run %s: %s\n", plain(s.run.ID), s.Path())
	for _, st := range agent.States() {
		label, more := string(st), ""
		if n := s.visits[st]; n > 0 {
			label = fmt.Sprintf("%s ×%d", st, n)
		}
		if st.Final() {
			more = ", peripheries=2"
		}
		if st == s.run.State {
			more += ", penwidth=3"
		}
		fmt.Fprintf(&b, "\t%s [label=%q%s];\n", st, label, more)
	}
	s.edges(func(e edge, rows string) {
		from, more := string(e.from), ""
		if e.from == agent.StateNone {
			from = "start"
		}
		if s.level(e) == 0 {
			more = ", style=dotted"
		}
		fmt.Fprintf(&b, "\t%s -> %s [label=%q%s];\n", from, e.to, rows, more)
	})
	return b.String() + "}\n"
}

// edges yields every edge with its rows and how often each was taken, in the order of the
// states that they lead from.
func (s *Story) edges(yield func(e edge, rows string)) {
	for _, from := range append([]agent.State{agent.StateNone}, agent.States()...) {
		for _, to := range agent.States() {
			var words []string
			for _, row := range rowsOf(edge{from, to}) {
				words = append(words, string(row)+times(s.times(from, to, row)))
			}
			if len(words) > 0 {
				yield(edge{from, to}, strings.Join(words, ", "))
			}
		}
	}
}
