package agent_test

import (
	"testing"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

// forkSpec is a fork of the run at one of its entries.
func (tr *trace) forkSpec(at int64) agent.Spec {
	tr.t.Helper()
	point, _, err := agent.ForkPoint(each(tr.entries), at)
	if err != nil {
		tr.t.Fatal(err)
	}
	spec := enginetest.Spec("fork")
	spec.Fork = &point
	return spec
}

// fork goes on from an entry of the run in a run of its own.
func fork(t *testing.T, parent *trace, at int64) *trace {
	t.Helper()
	return parent.carried(parent.forkSpec(at))
}

func (tr *trace) carried(spec agent.Spec) *trace {
	tr.t.Helper()
	fork := &trace{t: tr.t, now: tr.tickTock()}
	commits, _, err := agent.Carry(spec, "operator", each(tr.entries), fork.now)
	if err != nil {
		tr.t.Fatal(err)
	}
	for _, c := range commits {
		fork.run, fork.entries = c.Run, append(fork.entries, c.Entry)
	}
	return fork
}
