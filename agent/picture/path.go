package picture

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/agent"
)

// Bounds of a path that is written out.
const (
	maxLoop  = 8  // parts of a loop that is recognised
	maxParts = 48 // parts before the middle is left out
)

// shortNames are those of states within a path.
var shortNames = map[agent.State]string{
	agent.StateAwaitingApproval: "approval", agent.StateNeedsVerification: "verification",
}

// Path is the way that the run took through the states, loops counted, and loops of loops:
// model → (execute → observe) ×3 → model. The middle of a very long one is left out, and
// said to be.
func (s *Story) Path() string {
	parts := loops(loops(s.names()))
	if left := len(parts) - maxParts; left > 0 {
		gap := "… " + several(left, "part", "parts") + " left out …"
		parts = slices.Concat(parts[:maxParts/2], []string{gap}, parts[len(parts)-maxParts/2:])
	}
	return strings.Join(parts, " → ")
}

// names are the states that the run was in, in order.
func (s *Story) names() []string {
	var out []string
	var was agent.State
	for _, st := range s.stays {
		if st.state == was {
			continue
		}
		was = st.state
		name, ok := shortNames[was]
		if !ok {
			name = string(was)
		}
		out = append(out, name)
	}
	return out
}

// loops folds a sequence: wherever parts repeat, the loop that covers most becomes one.
func loops(parts []string) []string {
	var out []string
	for len(parts) > 0 {
		size, times := 1, 1
		for n := 2; n <= maxLoop && 2*n <= len(parts); n++ {
			if again := repeats(parts, n); again > 1 && again*n > times*size {
				size, times = n, again
			}
		}
		text := parts[0]
		if times > 1 {
			text = fmt.Sprintf("(%s) ×%s", strings.Join(loops(parts[:size]), " → "), count(int64(times)))
		}
		out, parts = append(out, text), parts[times*size:]
	}
	return out
}

// repeats is how often the first n parts come one after the other.
func repeats(parts []string, n int) int {
	times := 1
	for (times+1)*n <= len(parts) && slices.Equal(parts[times*n:(times+1)*n], parts[:n]) {
		times++
	}
	return times
}
