package audit

import (
	"iter"

	"sallyport/agent"
)

// CheckAlone checks without Step: as if Step let everything pass.
func CheckAlone(entries iter.Seq2[agent.Entry, error], bodies func(agent.BodyRef) ([]byte, error)) (Report, error) {
	return CheckWith(nil, entries, bodies)
}

// CheckWith checks beside another Step.
func CheckWith(apply func(agent.Run, agent.Entry) (agent.Run, error), entries iter.Seq2[agent.Entry, error], bodies func(agent.BodyRef) ([]byte, error)) (Report, error) {
	c := newChecker()
	c.apply = apply
	return check(c, entries, bodies)
}
