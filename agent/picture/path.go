package picture

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/agent"
)

// Bounds of a path that is written out.
const (
	maxLoop  = 8  // states of a loop that is recognised
	maxParts = 48 // parts before the middle is left out
)

// shortNames are those of states within a path.
var shortNames = map[agent.State]string{
	agent.StateAwaitingApproval: "approval", agent.StateNeedsVerification: "verification",
}

func shortName(st agent.State) string {
	if name, ok := shortNames[st]; ok {
		return name
	}
	return string(st)
}

// part is a piece of a path: states that came one after the other, that often.
type part struct {
	states []agent.State
	times  int
}

func (p part) String() string {
	names := make([]string, len(p.states))
	for i, st := range p.states {
		names[i] = shortName(st)
	}
	text := strings.Join(names, " → ")
	if p.times > 1 {
		return fmt.Sprintf("(%s) ×%s", text, count(int64(p.times)))
	}
	return text
}

// Path is the way that the run took through the states, loops counted: model → (execute →
// observe) ×3 → model. The middle of a very long one is left out, and said to be.
func (s *Story) Path() string {
	parts := loops(s.states())
	words := make([]string, 0, maxParts+1)
	for i, p := range parts {
		if len(parts) > maxParts && i >= maxParts/2 && i < len(parts)-maxParts/2 {
			if i == maxParts/2 {
				words = append(words, "… "+several(len(parts)-maxParts, "part", "parts")+" left out …")
			}
			continue
		}
		words = append(words, p.String())
	}
	return strings.Join(words, " → ")
}

// states are those that the run was in, in order.
func (s *Story) states() []agent.State {
	var out []agent.State
	for _, st := range s.stays {
		if n := len(out); n == 0 || out[n-1] != st.state {
			out = append(out, st.state)
		}
	}
	return out
}

// loops folds a sequence: wherever states repeat, the loop that covers most is taken.
func loops(states []agent.State) []part {
	var out []part
	for len(states) > 0 {
		best := part{states[:1], 1}
		for n := 2; n <= maxLoop && 2*n <= len(states); n++ {
			times := 1
			for (times+1)*n <= len(states) && slices.Equal(states[times*n:(times+1)*n], states[:n]) {
				times++
			}
			if times > 1 && times*n > best.times*len(best.states) {
				best = part{states[:n], times}
			}
		}
		out, states = append(out, best), states[best.times*len(best.states):]
	}
	return out
}
