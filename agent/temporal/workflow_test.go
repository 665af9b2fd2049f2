package temporal_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/agent/enginetest"
)

// pages are the stored bytes of a journal. They travel as bytes: JSON within JSON would be
// encoded anew, and the chain is over exactly these.
type pages [][]byte

func (p pages) Entries(context.Context) iter.Seq2[agent.Entry, error] {
	return func(yield func(agent.Entry, error) bool) {
		for _, raw := range p {
			if !yield(agent.ParseEntry(raw)) {
				return
			}
		}
	}
}

// flow is a run inside its workflow, and the Log for Judge and Recover of a Driver. All of it
// follows from the history: what activities brought, what updates said, the workflow's clock.
type flow struct {
	agent.Log
	run     agent.Run
	journal pages
	driver  agent.Driver
	effect  agent.Effect // in flight, if there is a future
	future  workflow.Future
	cancel  workflow.CancelFunc
}

func (f *flow) Commit(_ context.Context, c agent.Commit) error {
	if c.Entry.Seq != 0 { // else only a verdict
		f.journal = append(f.journal, c.Entry.Bytes())
	}
	return nil
}

func runWorkflow(ctx workflow.Context, spec agent.Spec, actor string) error {
	f := &flow{}
	f.driver = agent.Driver{Log: f, Now: func() time.Time { return workflow.Now(ctx) }}
	err := errors.Join(f.take(agent.Begin(spec, actor, workflow.Now(ctx))),
		workflow.SetQueryHandler(ctx, "journal", func() (pages, error) { return f.journal, nil }),
		workflow.SetUpdateHandler(ctx, "deliver", f.deliver))
	for err == nil && !f.run.State.Final() {
		err = f.move(ctx)
	}
	return err
}

// move starts what may start, waits until something happens, and takes it in.
func (f *flow) move(ctx workflow.Context) (err error) {
	due, set := f.run.Due()
	if f.future == nil && !f.run.Rests() { // a Present is nobody's here: who decides asks by query
		if after := f.run.Open.After; !workflow.Now(ctx).Before(after) {
			f.start(ctx)
		} else if !set || after.Before(due) {
			due, set = after, true
		}
	}
	seq, inTime := f.run.Seq, true
	happened := func() bool { return f.run.Seq != seq || f.future != nil && f.future.IsReady() }
	if set {
		inTime, err = workflow.AwaitWithTimeout(ctx, due.Sub(workflow.Now(ctx)), happened)
	} else {
		err = workflow.Await(ctx, happened)
	}
	if err == nil && !inTime {
		err = f.take(agent.FromClock(workflow.Now(ctx)))
	} else if err == nil && f.future != nil && f.future.IsReady() {
		err = f.settle(ctx)
	}
	return err
}

// start schedules the open effect. The entry that opened it and this command come of one
// workflow task: the server takes both, or neither.
func (f *flow) start(ctx workflow.Context) {
	ctx, f.cancel = workflow.WithCancel(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute,
		RetryPolicy:         &temporal.RetryPolicy{MaximumAttempts: 1}, // engines never retry, Step does
	}))
	f.effect, f.future = f.run.Open.Effect, workflow.ExecuteActivity(ctx, "Activity", f.journal)
}

// settle takes in what an activity brought. A lost one is what a crash is elsewhere: the
// Send of a write becomes an unknown outcome, all else an attempt more, after a pause.
func (f *flow) settle(ctx workflow.Context) error {
	var said agent.Entry // its event only: what the codec has for a Result
	err := f.future.Get(ctx, &said)
	f.future = nil
	if lost := (*temporal.TimeoutError)(nil); errors.As(err, &lost) {
		f.run, err = f.driver.Recover(context.Background(), f.run)
		if err == nil && f.run.Open.Seq == f.effect.Seq {
			err = workflow.Sleep(ctx, 10*time.Second)
		}
		return err
	}
	payload, wrong := said.Payload()
	result, ok := payload.(agent.Result)
	if !ok {
		return fmt.Errorf("%s brought %q, which is no result: %w", f.effect.Kind, said.Event, errors.Join(err, wrong))
	}
	return f.take(agent.FromNode(f.effect, result, workflow.Now(ctx)))
}

// take advances the run, or notes an intent that a pause or an expiry overtook.
func (f *flow) take(ev agent.Event) error {
	next, entry, err := agent.Advance(f.run, ev)
	if no := (*agent.Refusal)(nil); errors.As(err, &no) {
		switch no.Code {
		case agent.CodeNotDue:
			return nil
		case agent.CodeHeld, agent.CodeLate:
			next, entry, _, err = agent.Note(f.run, ev, no)
		}
	}
	if err != nil {
		return err
	}
	f.turn(next)
	return f.Commit(context.Background(), agent.Commit{Entry: entry})
}

// turn goes on to the next run, and lets go of an activity that it does not wait for.
func (f *flow) turn(next agent.Run) {
	f.run = next
	if f.future != nil && (next.Open == nil || next.Open.Seq != f.effect.Seq) {
		f.cancel()
		f.future = nil
	}
}

// deliver is the update; its id is the delivery's key, and has one verdict.
func (f *flow) deliver(_ workflow.Context, said agent.Entry) (agent.Verdict, error) {
	d, err := agent.DecodeDecision(said.Event, said.Data)
	if err != nil {
		return agent.Verdict{}, err
	}
	run, v, err := f.driver.Judge(context.Background(), f.run, agent.Delivery{Actor: said.Actor, Decision: d})
	f.turn(run)
	return v, err
}

// nodes are the embedded engine's and, as activities, the workflow's: these get the journal,
// from which the run follows. Bodies would go to a store of all workers, not into the history.
type nodes struct {
	agent.Nodes
	dies atomic.Value // the worker of this effect, once, after performing it
}

func (n *nodes) Activity(ctx context.Context, p pages) (agent.Entry, error) {
	run, err := agent.Replay(p.Entries(ctx))
	if err != nil {
		return agent.Entry{}, err
	}
	report, err := n.Perform(ctx, agent.Task{Run: run, Effect: *run.Open})
	if err != nil {
		return agent.Entry{}, err
	}
	data, err := json.Marshal(report.Result)
	return agent.Entry{Event: agent.FromNode(run.Open.Effect, report.Result, run.Time).Kind(), Data: data}, err
}

func (n *nodes) Perform(ctx context.Context, task agent.Task) (agent.Report, error) {
	report, err := n.Nodes.Perform(ctx, task)
	if n.dies.CompareAndSwap(string(task.Effect.Kind), "") {
		err = temporal.NewHeartbeatTimeoutError()
	}
	return report, err
}

// story is a run and its rows: one tool a turn, signers a minute apart, an effect whose worker dies.
type story struct{ name, tools, signers, dies, rows string }

func TestWorkflow_HasTheJournalOfTheEmbeddedEngine(t *testing.T) {
	const reads, asks, ends = "proposed checked returned next_turn ", "proposed returned approval_required ", " next_turn answered"
	for _, s := range []story{
		{"a read, a granted write, an answer", "desk__read desk__write", "alice", "", "started " + reads + asks + "granted checked returned" + ends},
		{"nobody decides in time", "desk__write", "", "", "started " + asks + "expired" + ends},
		{"two keys, one of them twice", "desk__destroy", "alice alice bob", "", "started " + asks + "endorsed noted granted checked returned" + ends},
		{"a lost write", "desk__write", "alice", "send", "started " + asks + "granted checked returned outcome_unknown settled" + ends},
		{"a lost read", "desk__read", "", "send", "started proposed checked attempt returned" + ends},
	} {
		t.Run(s.name, func(t *testing.T) { s.embedded(t, s.workflow(t)) })
	}
}

// TestWorkflow_RefusesAForkByName: its parent's journal is another workflow's history, which
// a workflow cannot read; so the engine will have to hand it in. Until then it says so.
func TestWorkflow_RefusesAForkByName(t *testing.T) {
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	spec := enginetest.Spec("fork")
	spec.Fork = &agent.Fork{Run: "demo", Seq: 1, Head: strings.Repeat("0", 64)}
	env.ExecuteWorkflow(runWorkflow, spec, "tester")
	if err := env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "this engine cannot fork") {
		t.Errorf("a fork: %v, want that this engine cannot", err)
	}
}

func (s story) nodes(t *testing.T, now func() time.Time) *nodes {
	var script enginetest.Script
	for tool := range strings.FieldsSeq(s.tools) {
		script = append(script, []string{tool})
	}
	w := &enginetest.World{Now: now}
	t.Cleanup(func() {
		if want := strings.Count(s.rows, "checked") + strings.Count(s.rows, "attempt"); w.TotalSent() != want {
			t.Errorf("%d requests were sent, want %d", w.TotalSent(), want)
		}
	})
	inner, _ := w.Nodes(script)(agent.Run{})
	n := &nodes{Nodes: inner}
	n.dies.Store(s.dies)
	return n
}

func must(t *testing.T, err error) {
	if t.Helper(); err != nil {
		t.Fatal(err)
	}
}

// workflow plays the story in a workflow, whose clock skips what nobody waits for.
func (s story) workflow(t *testing.T) (journal pages) {
	env := new(testsuite.WorkflowTestSuite).NewTestWorkflowEnvironment()
	env.RegisterActivity(s.nodes(t, env.Now).Activity)
	read := func() {
		v, err := env.QueryWorkflow("journal")
		must(t, errors.Join(err, v.Get(&journal)))
	}
	for i, who := range strings.Fields(s.signers) {
		env.RegisterDelayedCallback(func() {
			read()
			run, err := agent.Replay(journal.Entries(t.Context()))
			must(t, err)
			d := enginetest.Deliver(enginetest.Sign(run, who, env.Now()), "")
			kind, data, err := agent.EncodeDecision(d.Decision)
			must(t, err)
			for range 2 { // the second has the verdict of the first
				env.UpdateWorkflowNoRejection("deliver", d.Key, t, agent.Entry{Actor: d.Actor, Event: kind, Data: data})
			}
		}, time.Duration(i+1)*time.Minute)
	}
	env.ExecuteWorkflow(runWorkflow, enginetest.Spec("demo"), "tester")
	must(t, env.GetWorkflowError())
	read()
	return journal
}

// embedded plays the story by the clock and the decisions of the journal, and compares every byte.
func (s story) embedded(t *testing.T, journal pages) {
	entries, rows := []agent.Entry{}, []string{}
	for e, err := range journal.Entries(t.Context()) {
		must(t, err)
		entries, rows = append(entries, e), append(rows, cmp.Or(string(e.Row), string(e.Kind)))
	}
	if got := strings.Join(rows, " "); got != s.rows {
		t.Errorf("rows %s, want %s", got, s.rows)
	}
	e, err := (*embedded.Engine)(nil), error(nil)
	stored := func() (p pages) {
		for entry, err := range e.Journal(t.Context(), "demo", 1, false) {
			if err == nil { // else the run is about to start
				p = append(p, entry.Bytes())
			}
		}
		return p
	}
	now := func() time.Time { return entries[min(len(stored()), len(entries)-1)].Time }
	e, err = embedded.Open(t.TempDir(), embedded.Config{Now: now})
	must(t, err)
	defer func() { must(t, e.Close()) }()
	_, err = e.Start(t.Context(), enginetest.Spec("demo"), "tester", []agent.Body{enginetest.Task})
	must(t, err)
	n := s.nodes(t, now)
	serve := func() error {
		return e.Serve(t.Context(), agent.ServeOptions{Runs: []string{"demo"}}, func(agent.Run) (agent.Nodes, error) { return n, nil })
	}
	for _, next := range entries {
		if d, err := agent.DecodeDecision(next.Event, next.Data); err == nil {
			must(t, serve())
			_, err = e.Deliver(t.Context(), "demo", enginetest.Deliver(d, ""))
			must(t, err)
		}
	}
	_ = serve() // ends where a node dies, or a candidate waits
	must(t, serve())
	if got := stored(); !slices.EqualFunc(got, journal, bytes.Equal) {
		t.Errorf("embedded:\n%s\nworkflow:\n%s", got, journal)
	}
}
