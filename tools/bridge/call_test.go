package bridge

import (
	"testing"

	"sallyport/agent"
)

func TestBridge_OneCallEndToEnd(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	r := s.begin(t)
	out := r.read()
	r.is(out.Outcome, agent.StatusOK, agent.ClassOK, "")
	w := r.send(r.approved(saveArguments))
	r.is(w.Outcome, agent.StatusOK, agent.ClassOK, "")
	r.counts(1+1+2, 2)
}
