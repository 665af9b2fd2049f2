package audit

import (
	"iter"

	"sallyport/agent"
)

// CheckAlone checks without Step: as if Step let everything pass.
func CheckAlone(entries iter.Seq2[agent.Entry, error], bodies func(agent.BodyRef) ([]byte, error)) (Report, error) {
	c := newChecker()
	c.apply = nil
	return check(c, entries, bodies)
}
