package prove

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// walk explores the runs in which the model uses one or two tools. Budgets are small in
// every walk, since Step compares what is used with what is left and nothing else; in a
// tight one turns, tokens and working time are small too.
type walk struct {
	proof     *proof
	spec      agent.Spec
	tools     []agent.Tool
	tight     bool
	signers   []signer
	stranger  signer // nobody knows this key
	keys      grant.Keys
	operators []string
	jumps     []jump
	until     time.Time // when a key with an end ends
	dated     bool      // some key has one

	nodes   []node
	index   map[string]int32
	seen    map[string]bool // situations
	pen     pen
	events  int
	deepest int
	bounded bool
	found   map[string]*found // by tool
	broken  map[breach]Failure
}

// node is a state of the walk: a run, and what the books say of the path to it.
type node struct {
	run     agent.Run
	books   books
	length  cost
	parents []edge // every one that lies on a shortest path
}

// edge is a step into a node.
type edge struct {
	from  int32
	label label
	state agent.State // after the step
}

// cost orders paths: by their steps, then by what they do besides.
type cost struct{ steps, extra int }

func (c cost) less(o cost) bool {
	return c.steps < o.steps || c.steps == o.steps && c.extra < o.extra
}

func (c cost) plus(l label) cost { return cost{c.steps + 1, c.extra + l.extra} }

// The budgets of walks.
const (
	fewCalls  = 1
	ampleTime = 1 << 31 // seconds
	ample     = 1 << 30
	tightWall = 60 // seconds
)

func newWalk(p *proof, of []agent.Tool, tight bool) (*walk, error) {
	w := &walk{
		proof: p, spec: p.spec, tools: of, tight: tight,
		index: map[string]int32{}, seen: map[string]bool{}, pen: pen{}, found: map[string]*found{}, broken: map[breach]Failure{}, operators: []string{"operator"},
	}
	need, use, wait := 0, int64(0), int64(0)
	for _, t := range of {
		need, use, wait = max(need, t.Approvers), max(use, t.UseWithin), max(wait, t.Expires)
	}
	w.spec.Tools = slices.Clone(of)
	if at := slices.IndexFunc(p.spec.Tools, func(t agent.Tool) bool { return t.HostOnly }); at >= 0 {
		w.spec.Tools = append(w.spec.Tools, p.spec.Tools[at])
	}
	if use > 0 {
		w.jumps = append(w.jumps, jump{seconds(use + 1), "so late that every grant has expired"})
	}
	if wait > 0 {
		w.jumps = append(w.jumps, jump{seconds(wait + 1), "so late that the candidate has expired"})
	}
	if tight {
		w.jumps = append(w.jumps, jump{seconds(tightWall + 1), "so late that the working time is used up"})
	}
	w.until = epoch.Add(seconds(use + 1))
	w.budget()
	return w, w.staff(need)
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

func (w *walk) budget() {
	b := &w.spec.Budget
	b.Calls = min(b.Calls, fewCalls)
	b.Turns, b.Tokens, b.Wall = ample, ample, ampleTime
	if w.tight {
		b.Calls, b.Turns, b.Tokens, b.Wall = ample, 2, 10, tightWall
	}
}

// staff makes the keys of the walk. Where somebody who began a run may not sign for it,
// runs are begun by an approver too.
func (w *walk) staff(need int) (err error) {
	if w.signers, err = signers(w.spec, need, w.until); err != nil {
		return fmt.Errorf("prove: %w", err)
	}
	w.dated = slices.ContainsFunc(w.signers, func(s signer) bool { return !s.until.IsZero() })
	w.stranger.name = "mallory"
	if len(w.signers) > 0 {
		w.stranger.name = w.signers[0].name
	}
	if w.stranger.key, err = grant.NewPrivateKey(w.stranger.name, nil); err != nil {
		return fmt.Errorf("prove: %w", err)
	}
	w.spec.Approvers = nil
	for _, s := range w.signers {
		w.spec.Approvers = append(w.spec.Approvers, s.approver())
		w.keys = append(w.keys, s.key.Public())
	}
	if len(w.signers) > 0 && slices.ContainsFunc(w.tools, func(t agent.Tool) bool { return t.Approvers > 1 }) {
		w.operators = append(w.operators, w.signers[0].name)
	}
	return nil
}

// all visits every state, unless ctx ends it.
func (w *walk) all(ctx context.Context) error {
	root := agent.Run{Version: agent.Version}
	w.nodes = []node{{run: root}}
	w.index[""] = 0
	for _, by := range w.operators {
		if err := w.offer(0, agent.Begin(w.spec, by, epoch), starts(by, w.operators[0])); err != nil {
			return err
		}
	}
	for at := 1; at < len(w.nodes); at++ {
		if ctx.Err() != nil {
			return nil // explore says so, for all walks
		}
		w.proof.visit()
		if len(w.nodes) > w.proof.options.MaxStates {
			w.bounded = true
			return nil
		}
		if err := w.expand(int32(at)); err != nil {
			return err
		}
		w.nodes[at].run, w.nodes[at].books = agent.Run{}, books{} // only the way back is needed now
	}
	return nil
}

// expand offers a state every event.
func (w *walk) expand(at int32) error {
	var failed error
	run, kept := w.nodes[at].run, w.nodes[at].books // nodes may move as more are found
	situation := w.situation(&run)
	m := moves{walk: w, run: &run, last: kept.answered, fresh: !w.seen[situation]}
	w.seen[situation] = true
	m.offer = func(ev agent.Event, l label) {
		if failed == nil {
			failed = w.step(at, run, kept, ev, l)
		}
	}
	m.all()
	if failed == nil {
		failed = w.crash(at, run, kept)
	}
	return failed
}

// offer is step from a node.
func (w *walk) offer(at int32, ev agent.Event, l label) error {
	return w.step(at, w.nodes[at].run, w.nodes[at].books, ev, l)
}

// step lets Step judge one event, and takes what it makes of it into the books.
func (w *walk) step(at int32, run agent.Run, kept books, ev agent.Event, l label) error {
	w.events++
	next, effects, err := w.proof.options.Step(run, ev)
	if err != nil {
		if refusal(err) {
			return nil
		}
		return fmt.Errorf("prove: step %s in state %s: %w", ev.Kind(), run.State, err)
	}
	next.Head = head(run.Head, next.Seq)
	if len(effects) > 0 && next.Open != nil {
		open := *next.Open
		open.Head = next.Head
		next.Open = &open
	}
	l.origin, l.kind = ev.Origin(), ev.Kind()
	after := kept.clone()
	broken := after.take(w, ev, run.Open, effects)
	broken = append(broken, moved(run, next, ev, l)...)
	w.sends(at, l, next, effects)
	for _, b := range broken {
		w.breaks(b, at, l, next.State)
	}
	if len(broken) > 0 {
		return nil // what comes after is of no interest
	}
	w.reach(at, next, after, l)
	return nil
}

// moved are rules on the step itself: nothing follows an end, nothing answers an effect
// that is not open, and only a person, an operator or the clock moves on what waits for a
// person (SPEC A5).
func moved(was, is agent.Run, ev agent.Event, l label) []breach {
	switch {
	case l.late:
		return []breach{{ruleStale, ""}}
	case was.State.Final():
		return []breach{{ruleEnded, ""}}
	case was.State == agent.StateAwaitingApproval && is.State != was.State:
		if o := ev.Origin(); o == agent.OriginModel || o == agent.OriginRuntime {
			return []breach{{ruleLeft, ""}}
		}
	}
	return nil
}

// head is a hash of an entry that nobody writes.
func head(prev string, seq int64) string {
	sum := sha256.Sum256(strconv.AppendInt([]byte(prev), seq, 10))
	return hex.EncodeToString(sum[:])
}

// reach adds a state, or a shortest way to one that is known.
func (w *walk) reach(from int32, run agent.Run, kept books, l label) {
	length := w.nodes[from].length.plus(l)
	step := edge{from, l, run.State}
	key := w.key(&run, &kept)
	at, known := w.index[key]
	if !known {
		w.index[key] = int32(len(w.nodes))
		w.nodes = append(w.nodes, node{run: run, books: kept, length: length, parents: []edge{step}})
		w.deepest = max(w.deepest, length.steps)
		return
	}
	n := &w.nodes[at]
	switch {
	case length.less(n.length):
		n.length, n.parents = length, []edge{step}
	case length == n.length && at != from:
		n.parents = append(n.parents, step)
	}
}

// crash ends the process while an effect is open, and lets the driver's own rules say
// what a recovery makes of it: the effect is performed again, or becomes an outcome.
func (w *walk) crash(at int32, run agent.Run, kept books) error {
	if run.Open == nil || run.State.Final() {
		return nil
	}
	log := &memory{}
	d := agent.Driver{Log: log, Now: func() time.Time { return run.Time }}
	_, err := d.Recover(context.Background(), run)
	if err != nil && !refusal(err) {
		return fmt.Errorf("prove: recover in state %s: %w", run.State, err)
	}
	switch log.entry.Kind {
	case agent.EntryAttempt:
		if run.Open.Kind == agent.Send && kept.writes(w, run.Open.Call) {
			l := label{says: "The process ends while the call is in flight; on recovery it is sent again.", tool: kept.toolOf(run.Open.Call)}
			l.origin = agent.OriginRuntime
			w.breaks(breach{ruleTwice, l.tool}, at, l, run.State)
		}
	case agent.EntryEvent:
		out := agent.Returned{Outcome: agent.Outcome{
			Status: agent.StatusResultUnknown, Class: agent.ClassProtocolError, Reason: agent.ReasonCrashed, Sent: true,
		}}
		return w.step(at, run, kept, agent.FromNode(run.Open.Effect, out, run.Time),
			label{says: "The process ends while the call is in flight; on recovery its outcome is unknown."})
	case agent.EntryNoted, agent.EntryErased, "":
	}
	return nil
}

// memory is the log of one recovery.
type memory struct {
	agent.Log
	entry agent.Entry
}

// Commit implements [agent.Log].
func (m *memory) Commit(_ context.Context, c agent.Commit) error {
	m.entry = c.Entry
	return nil
}
