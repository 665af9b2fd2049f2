package agent

import (
	"fmt"
	"strings"
)

// Visits counts, for a picture of one run, how often each state was entered.
type Visits map[State]int

// Mermaid draws the table as a Mermaid state diagram. With visits the states are
// labelled with their counts; now, if not empty, is marked.
func Mermaid(visits Visits, now State) string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	for _, s := range States() {
		if n, ok := visits[s]; ok {
			fmt.Fprintf(&b, "    %s: %s ×%d\n", s, s, n)
		}
	}
	eachEdge(func(from, to State, label string) {
		fmt.Fprintf(&b, "    %s --> %s: %s\n", mermaidState(from), to, label)
	})
	for _, s := range States() {
		if s.Final() {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	if now != StateNone {
		fmt.Fprintf(&b, "    classDef now font-weight:bold,stroke-width:3px\n    class %s now\n", now)
	}
	return b.String()
}

func mermaidState(s State) string {
	if s == StateNone {
		return "[*]"
	}
	return string(s)
}

// Dot draws the table for Graphviz, with visits and the current state as [Mermaid].
func Dot(visits Visits, now State) string {
	var b strings.Builder
	b.WriteString("digraph sallyport {\n\trankdir=LR;\n\tnode [shape=box, style=rounded];\n\tstart [shape=point];\n")
	for _, s := range States() {
		label := string(s)
		if n, ok := visits[s]; ok {
			label = fmt.Sprintf("%s ×%d", s, n)
		}
		var more string
		if s.Final() {
			more = ", peripheries=2"
		}
		if s == now {
			more += ", penwidth=3"
		}
		fmt.Fprintf(&b, "\t%s [label=%q%s];\n", s, label, more)
	}
	eachEdge(func(from, to State, label string) {
		name := string(from)
		if from == StateNone {
			name = "start"
		}
		fmt.Fprintf(&b, "\t%s -> %s [label=%q];\n", name, to, label)
	})
	b.WriteString("}\n")
	return b.String()
}

// everywhere are rows that keep any open state: drawn, they would hide the rest.
func everywhere(t Transition) bool { return t.To == "" && len(t.From) == len(open) }

// eachEdge yields the edges of a picture in the table's order, rows between the same
// two states joined.
func eachEdge(yield func(from, to State, label string)) {
	type edge struct{ from, to State }
	var order []edge
	labels := map[edge][]string{}
	for _, t := range table {
		if everywhere(t) {
			continue
		}
		for _, from := range t.From {
			to := t.To
			if to == "" {
				to = from
			}
			e := edge{from, to}
			if labels[e] == nil {
				order = append(order, e)
			}
			labels[e] = append(labels[e], string(t.Row))
		}
	}
	for _, e := range order {
		yield(e.from, e.to, strings.Join(labels[e], ", "))
	}
}
