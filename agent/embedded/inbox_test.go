package embedded

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/enginetest"
	"sallyport/tools/grant"
)

func TestDelivery_IsReadBackAsItWas(t *testing.T) {
	body := agent.NewBody([]byte(`{"n":2}`))
	for _, d := range []agent.Decision{
		agent.Approve{Grant: "a.b"},
		agent.Refuse{Candidate: "c"}, agent.Refuse{Candidate: "c", Signed: "s"},
		agent.Edit{Signed: "s", Arguments: body.Ref},
		agent.Attest{Signed: "s"},
		agent.Cancel{}, agent.Cancel{Abandon: true},
		agent.Pause{}, agent.Resume{}, agent.StepOnce{},
		agent.Extend{Budget: agent.Budget{Calls: 1, Turns: 2, Tokens: 3, Wall: 4}},
	} {
		raw, err := encodeDelivery(agent.Delivery{Key: "k", Actor: "anna", Decision: d, Bodies: []agent.Body{body}})
		if err != nil {
			t.Errorf("%T: %v", d, err)
			continue
		}
		got, err := decodeDelivery(raw)
		want := agent.Delivery{Actor: "anna", Decision: d, Bodies: []agent.Body{{Ref: body.Ref}}}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%T: got %+v, want %+v: %v", d, got, want, err)
		}
	}
}

func TestDelivery_RefusesWhatItDoesNotKnow(t *testing.T) {
	for raw, want := range map[string]error{
		`{"v":1,"kind":"pause","data":{}}`:                 agent.ErrNewer,
		`{"v":0,"kind":"vote","data":{}}`:                  agent.ErrIntegrity,
		`{"v":0,"kind":"start","data":{}}`:                 agent.ErrIntegrity,
		`{"v":0,"kind":"pause","data":{"x":1}}`:            agent.ErrIntegrity,
		`{"v":0,"kind":"pause","data":{},"forced":true}`:   agent.ErrIntegrity,
		`{"v":0,"kind":"pause","kind":"cancel","data":{}}`: agent.ErrIntegrity,
		`nothing`: agent.ErrIntegrity,
	} {
		if _, err := decodeDelivery([]byte(raw)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", raw, err, want)
		}
	}
	if _, err := encodeDelivery(agent.Delivery{Key: "k"}); err == nil {
		t.Error("a delivery without a decision was encoded")
	}
}

func TestDeliver_KeysHaveALength(t *testing.T) {
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{})
	begin(t, e, "r")
	for key, ok := range map[string]bool{"": false, strings.Repeat("k", MaxKey): true, strings.Repeat("k", MaxKey+1): false} {
		_, err := e.Deliver(t.Context(), "r", agent.Delivery{Key: key, Decision: agent.Pause{}})
		if (err == nil) != ok {
			t.Errorf("a key of %d bytes: %v", len(key), err)
		}
	}
	if _, err := e.Deliver(t.Context(), "none", agent.Delivery{Key: "k", Decision: agent.Pause{}}); !errors.Is(err, agent.ErrNoRun) {
		t.Errorf("to a run that is not there: %v, want ErrNoRun", err)
	}
}

// What an edit brings is a body of the run once it is taken, and kept nowhere if not.
func TestDeliver_AnEditBringsItsArguments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	e := opened(t, dir, Config{})
	begin(t, e, "r")
	serve(t, e, &enginetest.World{}, enginetest.Script{{enginetest.ToolWrite}}, "r")
	run := loadRun(t, e, "r")
	arguments := agent.NewBody([]byte(`{"n":2}`))
	sign := func(by string) agent.Edit {
		wire, err := grant.SignEdit(enginetest.Key(by), grant.Edit{
			Candidate: run.Call.Candidate.ID, Run: run.ID, Arguments: arguments.Ref.SHA256, Bytes: arguments.Ref.Bytes,
			Approver: by, Head: run.Call.Candidate.Head, Time: time.Now().Unix(),
		})
		if err != nil {
			t.Fatal(err)
		}
		return agent.Edit{Signed: wire, Arguments: arguments.Ref}
	}
	db := raw(t, dir)
	for _, c := range []struct {
		by   string
		row  agent.Row
		kept bool
	}{{"mallory", "", false}, {"alice", agent.RowEdited, true}} {
		d := enginetest.Deliver(sign(c.by), "")
		d.Bodies = []agent.Body{arguments}
		v, err := e.Deliver(t.Context(), "r", d)
		if err != nil || v.Row != c.row {
			t.Fatalf("an edit by %s: %+v, %v", c.by, v, err)
		}
		got, err := e.Body(t.Context(), "r", arguments.Ref)
		if (err == nil) != c.kept || c.kept && string(got) != string(arguments.Data) {
			t.Errorf("after an edit by %s its arguments are %q: %v", c.by, got, err)
		}
		if n := query(t, db, "SELECT count(*) FROM parcels"); n != "0" {
			t.Errorf("%s parcels are left after the verdict", n)
		}
	}
}

func TestDeliver_IsBoundedByItsContext(t *testing.T) {
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{})
	begin(t, e, "r")
	lock, err := takeLock(e.lockPath("r"), holder{os.Getpid(), true}) // who serves it does nothing
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, err := e.Deliver(ctx, "r", agent.Delivery{Key: "k", Decision: agent.Pause{}})
		answered <- err
	}()
	db := raw(t, e.dir)
	for query(t, db, "SELECT count(*) FROM inbox") != "1" {
		time.Sleep(time.Millisecond) // until it is durable
	}
	cancel()
	if err := <-answered; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "inbox") {
		t.Fatalf("got %v, want that it was cancelled, and where the decision is", err)
	}
	lock.release()
	if v := deliver(t, e, "r", agent.Pause{}, "k"); v.Row != agent.RowPaused || v.Seq != 2 {
		t.Errorf("delivered again: %+v", v)
	}
}

func TestLock_TheFileGoesWithTheRun(t *testing.T) {
	e := opened(t, filepath.Join(t.TempDir(), "state"), Config{})
	begin(t, e, "r")
	serve(t, e, &enginetest.World{}, nil, "r")
	if _, err := os.Stat(e.lockPath("r")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock of an ended run is still there: %v", err)
	}
	if v := deliver(t, e, "r", agent.Cancel{}, "late"); v.Refusal == nil || v.Refusal.Code != agent.CodeEnded {
		t.Errorf("a late decision: %+v", v)
	}
}

func TestHolder_IsParsedOrUnknown(t *testing.T) {
	for content, want := range map[string]holder{
		"12 serve\n": {12, true}, "12 deliver\n": {12, false}, "": {}, "12": {}, "x serve\n": {},
	} {
		if got := parseHolder([]byte(content)); got != want {
			t.Errorf("%q: %+v, want %+v", content, got, want)
		}
	}
}
