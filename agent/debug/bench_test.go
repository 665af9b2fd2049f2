package debug_test

import (
	"context"
	"math/rand/v2"
	"os"
	"runtime"
	"testing"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/agent/embedded"
	"sallyport/agent/enginetest"
)

// BenchmarkLong is a run of 10,000 steps on disk. Targets: it opens in less than 300 ms,
// goes anywhere in less than 20 ms, and holds less than 16 MiB.
func BenchmarkLong(b *testing.B) {
	engine := long(b, 10_000)
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			if _, err := debug.Open(b.Context(), engine, "long"); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/open")
	})
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	s, err := debug.Open(b.Context(), engine, "long")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("goto", func(b *testing.B) {
		random := rand.New(rand.NewPCG(1, 2))
		for b.Loop() {
			if _, err := s.Goto(b.Context(), 1+random.IntN(s.Steps())); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/1000, "ms/goto")
	})
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
			runtime.GC()
			runtime.ReadMemStats(&after)
		}
		b.ReportMetric(float64(after.HeapAlloc)-float64(before.HeapAlloc), "B-held")
		b.ReportMetric(float64(s.Steps()), "steps")
	})
	b.Run("continue", func(b *testing.B) {
		if _, err := s.Break("state failed if used.calls > 100000"); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if _, err := s.Restart(b.Context()); err != nil {
				b.Fatal(err)
			}
			if _, err := s.Continue(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// long makes a run of that many steps, or a few more: of calls that read.
func long(b *testing.B, steps int) agent.Engine {
	b.Helper()
	dir, err := os.MkdirTemp(os.Getenv("SALLYPORT_BENCH_DIR"), "bench")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(dir) }) // left to the system's own cleaning otherwise
	engine, err := embedded.Open(dir, embedded.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = engine.Close() })
	spec := enginetest.Spec("long")
	spec.Budget = agent.Budget{Calls: steps, Turns: steps, Tokens: 1 << 40, Wall: 1 << 20}
	ctx := context.Background()
	if _, err := engine.Start(ctx, spec, "tester", []agent.Body{enginetest.Task}); err != nil {
		b.Fatal(err)
	}
	script := make(enginetest.Script, steps/4)
	for i := range script {
		script[i] = []string{enginetest.ToolRead}
	}
	if err := engine.Serve(ctx, agent.ServeOptions{Runs: []string{"long"}}, (&enginetest.World{}).Nodes(script)); err != nil {
		b.Fatal(err)
	}
	return engine
}
