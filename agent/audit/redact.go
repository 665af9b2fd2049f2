package audit

import (
	"iter"
	"slices"

	"sallyport/agent"
)

// WithoutCalls leaves out the content of every call of these tools, by the names that
// the model knows: the turns that propose one, its arguments, results and evidence, and
// every other body of the same bytes. It is for exports of runs whose contracts redact
// arguments; that the model quotes such content in a later turn, nobody can see from
// here. The entries are read once, now; bodies is as for [Check].
func WithoutCalls(
	entries iter.Seq2[agent.Entry, error], bodies func(agent.BodyRef) ([]byte, error), tools ...string,
) (func(agent.BodyRef) ([]byte, error), error) {
	if bodies == nil {
		bodies = WithoutBodies
	}
	s := secrets{tools: tools, refs: map[agent.BodyRef]bool{}}
	for e, err := range entries {
		if err != nil {
			return nil, err
		}
		if payload, err := e.Payload(); err == nil && e.Kind == agent.EntryEvent {
			s.take(&e, payload)
		}
	}
	return func(ref agent.BodyRef) ([]byte, error) {
		if s.refs[ref] {
			return nil, ErrNotIncluded
		}
		return bodies(ref)
	}, nil
}

// secrets follows the call in hand.
type secrets struct {
	tools []string
	refs  map[agent.BodyRef]bool
	calls []agent.Proposal // of the turn; the first is in hand
}

func (s *secrets) take(e *agent.Entry, payload any) {
	turned, proposes := payload.(agent.Turned)
	if proposes {
		s.calls = turned.Calls
	}
	if proposes && slices.ContainsFunc(s.calls, s.secret) || !proposes && len(s.calls) > 0 && s.secret(s.calls[0]) {
		for _, ref := range refs(payload) {
			s.refs[ref] = true
		}
	}
	if e.Row == agent.RowNextCall && len(s.calls) > 0 {
		s.calls = s.calls[1:]
	}
	if e.Row == agent.RowNextTurn {
		s.calls = nil
	}
}

func (s *secrets) secret(p agent.Proposal) bool { return slices.Contains(s.tools, p.Tool) }
