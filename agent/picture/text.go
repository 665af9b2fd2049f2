package picture

import (
	"fmt"
	"strings"

	"sallyport/agent"
)

// Text is the machine in lines: each state with the rows that lead on from it, how often
// each was taken, and where the run is now, marked with =>. Without a run it is the table.
func (s *Story) Text() string {
	var b strings.Builder
	if !s.none() {
		fmt.Fprintf(&b, "run %s: %s\n%s\n\n", plain(s.run.ID), s.ending(), s.facts())
	}
	for _, st := range agent.States() {
		sign := "  "
		if !s.none() && st == s.run.State {
			sign = "=>"
		}
		line := fmt.Sprintf("%s %s", sign, st)
		if s.visits[st] > 0 {
			line = fmt.Sprintf("%s %-20s %s", sign, st, s.stayed(st))
		}
		b.WriteString(line + "\n")
		for _, o := range s.outs(st) {
			to := string(o.to)
			if o.to == st {
				to = "(stays)"
			}
			line := fmt.Sprintf("       %-18s → %-20s%s", o.row, to, times(s.times(st, o.to, o.row)))
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	if kept := s.anywhere(); len(kept) > 0 {
		fmt.Fprintf(&b, "\nState kept by: %s\n", strings.Join(kept, ", "))
	}
	if !s.none() {
		fmt.Fprintf(&b, "\nPath: %s\n", s.Path())
	}
	return b.String()
}
