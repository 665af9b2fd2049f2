package picture

import (
	"fmt"
	"strings"
)

// header writes what run it is, and how it stands; it returns the last base line.
func (s *Story) header(c *canvas, what string) float64 {
	x := 24.0
	if c.size == Small {
		x = 16
	}
	w := c.size.width() - 2*x
	if s.none() {
		c.text(x, 34, cTitle, start, "The states of a run")
		return c.wrapped(x, 56, w, 16, cSoft, "From the transition table that the runtime itself uses. Doubled frames are final.")
	}
	c.fit(x, 34, w, cTitle, start, strings.TrimSpace(plain(s.run.ID)+" "+what))
	y := c.wrapped(x, 56, w, 16, cText, s.ending())
	return c.wrapped(x, y+17, w, 16, cSoft, s.facts())
}

// ending is how the run stands, in one sentence.
func (s *Story) ending() string {
	text := "Now in " + string(s.run.State)
	if s.run.State.Final() {
		text = strings.ToUpper(string(s.run.State[:1])) + string(s.run.State[1:])
	}
	if s.run.Reason != "" {
		text += " (" + named(s.run.Reason) + ")"
	}
	if s.run.Held {
		text += ", paused"
	}
	return text
}

// facts are numbers of the run.
func (s *Story) facts() string {
	facts := []string{
		"began " + moment(s.began), "lasted " + duration(s.lasted()), "waited " + duration(s.waited),
		several(s.steps, "step", "steps"), several(len(s.calls), "call", "calls"),
	}
	if f := s.run.Spec.Fork; f != nil {
		facts = append(facts, fmt.Sprintf("fork of %s at entry %s, %s taken over", named(f.Run), count(f.Seq), several(s.carried, "entry", "entries")))
	}
	return strings.Join(facts, " · ")
}
