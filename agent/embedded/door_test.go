package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/agent/enginetest"
	"sallyport/tools/grant"
)

func init() { verbs["approve"] = deliverApproval }

// revoked is a door that lets no approval pass that alice signed.
func revoked(_ agent.Run, d agent.Decision) *agent.Refusal {
	if a, ok := d.(agent.Approve); ok {
		keys := grant.Keys{enginetest.Key("alice").Public()}
		if _, _, err := keys.OpenGrant(a.Grant); err == nil {
			return &agent.Refusal{Code: agent.CodeKey, Message: "the key of alice was revoked"}
		}
	}
	return nil
}

// deliverApproval signs what a run waits with and says what became of it. Arguments:
// state, run, whose key, and "revoked" where this process knows that alice's was.
func deliverApproval(ctx context.Context, args []string) (err error) {
	config := embedded.Config{}
	if args[3] == "revoked" {
		config.Door = revoked
	}
	e, err := embedded.Open(args[0], config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	run, err := agent.Replay(e.Journal(ctx, args[1], 1, false))
	if err != nil {
		return err
	}
	v, err := e.Deliver(ctx, args[1], enginetest.Deliver(enginetest.Sign(run, args[2], time.Now()), ""))
	if err != nil {
		return err
	}
	if v.Refusal != nil {
		fmt.Println("refused", v.Refusal.Code)
		return nil
	}
	fmt.Println(v.Row)
	return nil
}

// A key that was pinned, and revoked since, opens nothing: neither here nor in another
// process, whoever gives the verdict.
func TestDoor_ARevokedKeyIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := open(t, dir, embedded.Config{Door: revoked})
	script := enginetest.Script{{enginetest.ToolWrite}}
	w := &enginetest.World{}
	begin(t, e, "r")
	serve(t, e, w, script, "r")
	spawn(t, command("approve", dir, "r", "alice", "revoked")).expect("refused key")
	run := replayed(t, e, "r")
	// Signed anew: the same bytes would only get the same verdict again.
	here := enginetest.Deliver(enginetest.Sign(run, "alice", time.Now().Add(time.Second)), "")
	if v, err := e.Deliver(t.Context(), "r", here); err != nil || v.Refusal == nil || v.Refusal.Code != agent.CodeKey {
		t.Errorf("delivered here: %+v, %v; want it refused at the door", v, err)
	}
	if run = replayed(t, e, "r"); run.State != agent.StateAwaitingApproval || run.Noted != 2 {
		t.Errorf("the run is in %s and has noted %d; want awaiting_approval, 2", run.State, run.Noted)
	}
	spawn(t, command("approve", dir, "r", "bob", "revoked")).expect("granted")
	serve(t, e, w, script, "r")
	if run = replayed(t, e, "r"); run.State != agent.StateCompleted || w.TotalSent() != 1 {
		t.Errorf("%s, sent %d; want completed with the other key, 1", run.State, w.TotalSent())
	}
}

// Who serves the run stands at the door, also for what another process brings.
func TestDoor_TheServingProcessStandsAtIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := open(t, dir, embedded.Config{Door: func(run agent.Run, d agent.Decision) *agent.Refusal {
		if _, ok := d.(agent.Pause); ok && run.ID == "r" {
			return &agent.Refusal{Code: agent.CodeKey, Message: "not today"}
		}
		return nil
	}})
	begin(t, e, "r")
	asked, reply := make(chan struct{}), make(chan struct{})
	w := &enginetest.World{Asking: func(context.Context) error { close(asked); <-reply; return nil }}
	letGo := sync.OnceFunc(func() { close(reply) })
	t.Cleanup(letGo)
	served := make(chan error, 1)
	go func() { // ends with reply
		served <- e.Serve(context.Background(), agent.ServeOptions{Runs: []string{"r"}}, w.Nodes(nil))
	}()
	<-asked
	spawn(t, command("pause", dir, "r", "k")).expect("refused key") // by a process without a door
	letGo()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	if run := replayed(t, e, "r"); run.State != agent.StateCompleted || run.Noted != 1 {
		t.Errorf("the run is in %s and has noted %d; want completed, 1", run.State, run.Noted)
	}
}
