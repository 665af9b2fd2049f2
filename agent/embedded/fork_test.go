package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/agent/enginetest"
)

func init() { verbs["fork"] = forkIt }

// forkIt starts run f as a fork of run p at its latest. Arguments: state.
func forkIt(ctx context.Context, args []string) (err error) {
	e, err := embedded.Open(args[0], embedded.Config{Crash: crashing()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	spec, err := forkOf(ctx, e)
	if err != nil {
		return err
	}
	run, err := e.Start(ctx, spec, "tester", []agent.Body{enginetest.Task})
	if err == nil {
		fmt.Println("forked", run.Seq)
	}
	return err
}

func forkOf(ctx context.Context, e *embedded.Engine) (agent.Spec, error) {
	point, _, err := agent.ForkPoint(e.Journal(ctx, "p", 1, false), 0)
	spec := enginetest.Spec("f")
	spec.Fork = &point
	return spec, err
}

var forkScript = enginetest.Script{{enginetest.ToolRead, enginetest.ToolWrite}, {enginetest.ToolRead}}

// parent makes run p, which has completed after a granted write.
func parent(t *testing.T, e *embedded.Engine) *enginetest.World {
	t.Helper()
	w := &enginetest.World{}
	begin(t, e, "p")
	serve(t, e, w, forkScript, "p")
	if _, err := e.Deliver(t.Context(), "p", enginetest.Deliver(enginetest.Sign(replayed(t, e, "p"), "alice", time.Now()), "")); err != nil {
		t.Fatal(err)
	}
	serve(t, e, w, forkScript, "p")
	if run := replayed(t, e, "p"); run.State != agent.StateCompleted {
		t.Fatalf("the parent is in %s", run.State)
	}
	return w
}

// A process that is killed while it starts a fork leaves no run, or all that it carries.
func TestFork_AKillLeavesNothingOrAll(t *testing.T) {
	for point := 1; ; point++ {
		dir := filepath.Join(t.TempDir(), "state")
		e := open(t, dir, embedded.Config{})
		w := parent(t, e)
		spec, err := forkOf(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		cmd := command("fork", dir)
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", crashVariable, point))
		c := spawn(t, cmd)
		said := c.rest()
		killed := c.wait() != nil
		if killed == (len(said) > 0) {
			t.Fatalf("point %d: the child said %q: %v", point, said, c.err)
		}
		var found int64
		for entry, err := range e.Journal(t.Context(), "f", 1, false) {
			if err != nil && !errors.Is(err, agent.ErrNoRun) {
				t.Fatal(err)
			}
			found = entry.Seq
		}
		run, err := e.Start(t.Context(), spec, "tester", []agent.Body{enginetest.Task})
		if err != nil {
			t.Fatal(err)
		}
		if found != 0 && found != run.Seq {
			t.Errorf("point %d: the fork had %d entries of %d", point, found, run.Seq)
		}
		sent := w.TotalSent()
		serve(t, e, w, forkScript, "f")
		if now := replayed(t, e, "f"); now.State != agent.StateCompleted || w.TotalSent() != sent {
			t.Errorf("point %d: the fork is in %s and sent %d requests, want completed and none", point, now.State, w.TotalSent()-sent)
		}
		if !killed {
			if point < 2 {
				t.Error("no kill point lies within the start of a fork")
			}
			return
		}
	}
}

// What was erased in the parent is not carried, and the error names it.
func TestFork_NamesAnErasedBody(t *testing.T) {
	e := open(t, filepath.Join(t.TempDir(), "state"), embedded.Config{})
	parent(t, e)
	var message agent.BodyRef
	for entry, err := range e.Journal(t.Context(), "p", 1, false) {
		if err != nil {
			t.Fatal(err)
		}
		if entry.Row == agent.RowNextCall {
			payload, err := entry.Payload()
			if err != nil {
				t.Fatal(err)
			}
			message = payload.(agent.Observed).Message
		}
	}
	if err := e.Erase(t.Context(), "p", message, "anna"); err != nil {
		t.Fatal(err)
	}
	spec, err := forkOf(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	var gone *embedded.ErasedError
	if _, err := e.Start(t.Context(), spec, "tester", []agent.Body{enginetest.Task}); !errors.As(err, &gone) || gone.Ref != message || gone.Run != "p" {
		t.Errorf("the fork: %v, want that anna erased %s of run p", err, message)
	}
	if _, err := e.Body(t.Context(), "f", message); !errors.Is(err, agent.ErrNoRun) {
		t.Errorf("the fork is there: %v", err)
	}
}

// A fork does not depend on its parent: what is erased or collected there stays in it.
func TestFork_OutlivesItsParent(t *testing.T) {
	e := open(t, filepath.Join(t.TempDir(), "state"), embedded.Config{})
	w := parent(t, e)
	spec, err := forkOf(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	run, err := e.Start(t.Context(), spec, "tester", nil) // the task comes from the parent too
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Erase(t.Context(), "p", enginetest.Task.Ref, "anna"); err != nil {
		t.Fatal(err)
	}
	if got, err := e.Body(t.Context(), "f", enginetest.Task.Ref); err != nil || string(got) != string(enginetest.Task.Data) {
		t.Errorf("the fork's task: %q, %v", got, err)
	}
	if c, err := e.Collect(t.Context(), time.Now().Add(time.Hour), embedded.CollectOptions{}); err != nil || c.Runs != 1 {
		t.Fatalf("collected %+v, %v; want the parent", c, err)
	}
	again, err := e.Start(t.Context(), spec, "tester", nil)
	if err != nil || again.Head != run.Head {
		t.Errorf("the second start gave %s, %v; want %s", again.Head, err, run.Head)
	}
	serve(t, e, w, forkScript, "f")
	if now := replayed(t, e, "f"); now.State != agent.StateCompleted {
		t.Errorf("the fork is in %s", now.State)
	}
}
