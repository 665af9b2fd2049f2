package debug_test

import (
	"context"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/agent/enginetest"
)

// desk is an engine with runs that a test makes.
type desk struct {
	t      testing.TB
	engine *enginetest.Memory
	world  *enginetest.World
}

func newDesk(t testing.TB) *desk {
	return &desk{t: t, engine: enginetest.NewMemory(nil, nil), world: &enginetest.World{}}
}

// begin begins a run.
func (d *desk) begin(spec agent.Spec) {
	d.t.Helper()
	if _, err := d.engine.Start(context.Background(), spec, "tester", []agent.Body{enginetest.Task}); err != nil {
		d.t.Fatal(err)
	}
}

// serve lets a run go on until it rests.
func (d *desk) serve(run string, script enginetest.Script) agent.Run {
	d.t.Helper()
	if err := d.engine.Serve(context.Background(), agent.ServeOptions{Runs: []string{run}}, d.world.Nodes(script)); err != nil {
		d.t.Fatal(err)
	}
	return d.run(run)
}

func (d *desk) run(id string) agent.Run {
	d.t.Helper()
	run, err := agent.Replay(d.engine.Journal(context.Background(), id, 1, false))
	if err != nil {
		d.t.Fatal(err)
	}
	return run
}

func (d *desk) deliver(run string, what agent.Decision, key string) agent.Verdict {
	d.t.Helper()
	v, err := d.engine.Deliver(context.Background(), run, enginetest.Deliver(what, key))
	if err != nil {
		d.t.Fatal(err)
	}
	return v
}

// report is a run of three calls, a save that alice approves among them.
var report = enginetest.Script{{enginetest.ToolRead}, {enginetest.ToolRead, enginetest.ToolWrite}}

// reported plays it to its end: 16 steps.
func (d *desk) reported(id string) {
	d.t.Helper()
	d.begin(enginetest.Spec(id))
	run := d.serve(id, report)
	if v := d.deliver(id, enginetest.Sign(run, "alice", time.Now()), ""); v.Row != agent.RowGranted {
		d.t.Fatalf("the approval gave %+v", v)
	}
	if run = d.serve(id, report); run.State != agent.StateCompleted {
		d.t.Fatalf("run %s is %s", id, run.State)
	}
}

func (d *desk) open(id string) *debug.Session {
	d.t.Helper()
	s, err := debug.Open(context.Background(), d.engine, id)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}
