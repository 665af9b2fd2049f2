package agent_test

import (
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

// BenchmarkStep is a step without a signature: target under 5 µs and 30 allocations.
func BenchmarkStep(b *testing.B) {
	now := time.Unix(1_800_000_000, 0)
	run, _, err := agent.Step(agent.Run{}, agent.Begin(enginetest.Spec("bench"), "bench", now))
	if err != nil {
		b.Fatal(err)
	}
	p, _ := enginetest.Propose(enginetest.ToolRead, "c", "{}")
	ev := agent.FromNode(run.Open.Effect, agent.Turned{Message: enginetest.Task.Ref, Calls: []agent.Proposal{p}}, now)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := agent.Step(run, ev); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkAdvance adds the entry: encoded and hashed.
func BenchmarkAdvance(b *testing.B) {
	now := time.Unix(1_800_000_000, 0)
	run, _, err := agent.Advance(agent.Run{}, agent.Begin(enginetest.Spec("bench"), "bench", now))
	if err != nil {
		b.Fatal(err)
	}
	p, _ := enginetest.Propose(enginetest.ToolRead, "c", "{}")
	ev := agent.FromNode(run.Open.Effect, agent.Turned{Message: enginetest.Task.Ref, Calls: []agent.Proposal{p}}, now)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := agent.Advance(run, ev); err != nil {
			b.Fatal(err)
		}
	}
}
