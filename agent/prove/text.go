package prove

import (
	"fmt"
	"strings"

	"sallyport/agent"
)

// Text is the report in plain words. Steps that a person took, and that the run believes,
// are marked.
func (r Report) Text() string {
	var b strings.Builder
	for _, t := range r.Tools {
		t.write(&b)
	}
	writeFailures(&b, "Broken", r.Failures)
	writeFailures(&b, "Allowed by name", r.Exceptions)
	if r.Begins != "" {
		fmt.Fprintf(&b, "No run can be begun with this: %s. What is shown is what such a run would do.\n\n", r.Begins)
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "Note: %s\n", n)
	}
	if len(r.Notes) > 0 {
		b.WriteByte('\n')
	}
	fmt.Fprintf(&b, "%d states were visited and %d events offered to them; the farthest state is %s away.\n",
		r.States, r.Events, count(r.Depth, "step", "steps"))
	fmt.Fprintf(&b, "%s\n", r.Summary())
	return b.String()
}

func (t Tool) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s: %s, %s\n", t.Name, t.Risk, t.rests())
	if t.HostOnly {
		b.WriteByte('\n')
		return
	}
	if t.SideEffect != "" {
		fmt.Fprintf(b, "  Its contract declares: %s\n", t.SideEffect)
	}
	switch n := len(t.Paths) + t.More; {
	case n == 0:
		b.WriteString("  No path leads to a Send of it.\n")
	case n == 1:
		b.WriteString("  The shortest path to its Send:\n")
	default:
		fmt.Fprintf(b, "  The %d shortest paths to its Send:\n", n)
	}
	for i, p := range t.Paths {
		if i > 0 {
			b.WriteString("  or\n")
		}
		p.write(b)
	}
	if t.More > 0 {
		fmt.Fprintf(b, "  and %d more.\n", t.More)
	}
	b.WriteByte('\n')
}

// rests says on what a Send of the tool rests.
func (t Tool) rests() string {
	switch {
	case t.HostOnly:
		return "for the Host only: no proposal of it is taken"
	case t.Asks < t.Needs:
		return fmt.Sprintf("needs %s, and its contract asks for %d", count(t.Needs, "signature", "signatures by different people"), t.Asks)
	case t.Needs == 0:
		return "no signature, since its contract says that it changes nothing"
	case len(t.Approvers) == 0:
		return fmt.Sprintf("%s, and nobody can sign", count(t.Needs, "signature", "signatures by different people"))
	}
	return fmt.Sprintf("%s of %s", count(t.Needs, "signature", "signatures by different people"), strings.Join(t.Approvers, ", "))
}

func (p Path) write(b *strings.Builder) {
	for i, s := range p.Steps {
		mark := " "
		if s.trusted() {
			mark = "*"
		}
		fmt.Fprintf(b, "  %s %2d  %-9s %s → %s\n", mark, i+1, s.Origin, s.Says, place(s.State))
	}
	switch {
	case len(p.Trusted) == 0:
		b.WriteString("    No person has a word on this path after the start.\n")
	default:
		fmt.Fprintf(b, "    * trusted: %s\n", strings.Join(p.Trusted, " "))
	}
}

func place(s agent.State) string {
	if s == agent.StateNone {
		return "not started"
	}
	return string(s)
}

func writeFailures(b *strings.Builder, title string, all []Failure) {
	for _, f := range all {
		fmt.Fprintf(b, "%s: %s", title, f.Says)
		if f.Tool != "" {
			fmt.Fprintf(b, " (%s)", f.Tool)
		}
		fmt.Fprintf(b, ". The shortest path:\n")
		f.Path.write(b)
		b.WriteByte('\n')
	}
}

// Mermaid draws the paths as one flow chart: those that break a rule, or, where none
// does, the shortest path to a Send of each tool. Trusted steps are thick.
func (r Report) Mermaid() string {
	var b strings.Builder
	b.WriteString("flowchart TD\n")
	n := 0
	draw := func(title string, p Path) {
		n++
		p.draw(&b, n, title)
	}
	for _, f := range append(append([]Failure{}, r.Failures...), r.Exceptions...) {
		draw(strings.TrimSpace(f.Tool+" "+f.Rule), f.Path)
	}
	if n == 0 {
		for _, t := range r.Tools {
			for _, p := range t.Paths {
				draw(t.Name, p)
			}
		}
	}
	return b.String()
}

func (p Path) draw(b *strings.Builder, n int, title string) {
	fmt.Fprintf(b, "    subgraph p%d[\"%s\"]\n        p%d_0((start))\n", n, quoted(title), n)
	for i, s := range p.Steps {
		line := "-->"
		if s.trusted() {
			line = "==>"
		}
		fmt.Fprintf(b, "        p%d_%d %s|\"%s: %s\"| p%d_%d[\"%s\"]\n",
			n, i, line, s.Origin, quoted(s.Says), n, i+1, place(s.State))
	}
	b.WriteString("    end\n")
}

// quoted is a text inside a Mermaid label.
func quoted(text string) string {
	return strings.NewReplacer(`"`, "#quot;", "<", "#lt;", ">", "#gt;", "`", "'").Replace(text)
}
