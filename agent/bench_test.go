package agent_test

import (
	"fmt"
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

// BenchmarkCarry is the start of a fork of a run of 10,000 entries, in memory.
func BenchmarkCarry(b *testing.B) {
	spec := enginetest.Spec("r")
	spec.Budget = agent.Budget{Calls: 10_000, Turns: 10_000, Tokens: 1 << 40, Wall: 1 << 20}
	run, first, err := agent.Advance(agent.Run{}, agent.Begin(spec, "operator", epoch))
	if err != nil {
		b.Fatal(err)
	}
	entries := []agent.Entry{first}
	for len(entries) < 10_000 {
		var r agent.Result
		switch run.Open.Kind {
		case agent.Ask:
			turn := proposes(enginetest.ToolRead)
			turn.Message = ref(fmt.Sprint(len(entries)))
			r = turn
		case agent.Prepare:
			tool, _ := run.Spec.Tool(run.Call.Proposal.Tool)
			r = agent.Checked{Arguments: arguments, Definition: tool.Definition}
		case agent.Send:
			r = came(agent.StatusOK, agent.ClassOK)
		case agent.Observe, agent.Present, agent.Verify:
			r = observed(agent.StatusOK, agent.ClassOK)
		}
		next, e, err := agent.Advance(run, agent.FromNode(run.Open.Effect, r, epoch))
		if err != nil {
			b.Fatal(err)
		}
		run, entries = next, append(entries, e)
	}
	point, _, err := agent.ForkPoint(each(entries), 0)
	if err != nil {
		b.Fatal(err)
	}
	spec.Run, spec.Fork = "f", &point
	for b.Loop() {
		if _, _, err := agent.Carry(spec, "operator", each(entries), epoch); err != nil {
			b.Fatal(err)
		}
	}
}
