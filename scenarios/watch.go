package scenarios

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// watch counts how often each point of a run is reached, and does there what the
// scenario's operator and clock do. Its methods may be called by several goroutines.
type watch struct {
	play    *play
	mu      sync.Mutex
	reached map[Point]int
	jumped  map[int]bool
}

func newWatch(p *play) *watch {
	return &watch{play: p, reached: map[Point]int{}, jumped: map[int]bool{}}
}

// direct makes nodes that act before and after each effect.
func (w *watch) direct(n agent.Nodes) agent.Nodes { return directed{n, w} }

type directed struct {
	agent.Nodes
	watch *watch
}

// Perform implements [agent.Nodes].
func (d directed) Perform(ctx context.Context, t agent.Task) (agent.Report, error) {
	kind := t.Effect.Kind
	outer := d.watch.play.context()
	if _, err := d.watch.reach(outer, before[kind], t.Run); err != nil {
		return agent.Report{}, err
	}
	report, err := d.Nodes.Perform(ctx, t)
	if at := after[kind]; err == nil && at != "" {
		if _, acted := d.watch.reach(outer, at, t.Run); acted != nil {
			return agent.Report{}, acted
		}
	}
	return report, err
}

// reach counts a point and does what is to be done there. It reports whether an
// operator acted, or the clock was set ahead where the run rests.
func (w *watch) reach(ctx context.Context, at Point, run agent.Run) (bool, error) {
	w.mu.Lock()
	w.reached[at]++
	n := w.reached[at]
	w.mu.Unlock()
	w.play.tape.add(record{Reached: at})
	acted := false
	for i, j := range w.play.stage.Scenario.Clock {
		if j.At == at && max(1, j.Nth) == n && !w.jumpOnce(i) {
			w.play.stage.clock.jump(j.Jump.Std())
			w.play.tape.add(record{Jump: int64(j.Jump), Jumped: &i})
			acted = true
		}
	}
	for i, a := range w.play.stage.Scenario.Operator {
		if a.At != at || max(1, a.Nth) != n || w.play.tape.has(i) {
			continue
		}
		if err := w.play.act(ctx, i, a, run); err != nil {
			return acted, err
		}
		acted = true
	}
	return acted, nil
}

func (w *watch) jumpOnce(i int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.jumped[i]
	w.jumped[i] = true
	return was
}

// jump sets the clock of the stage ahead.
func (p *play) jump(d time.Duration) {
	p.stage.clock.jump(d)
	p.tape.add(record{Jump: int64(d)})
}

// act does what the operator's i-th action says.
func (p *play) act(ctx context.Context, i int, a Action, run agent.Run) error {
	d := agent.Delivery{Key: agent.DeliveryKey(fmt.Sprintf("operator %d of %s", i, run.ID)), Actor: p.stage.Host.Actor}
	switch a.Do {
	case ActPause:
		d.Decision = agent.Pause{}
	case ActResume:
		d.Decision = agent.Resume{}
	case ActStep:
		d.Decision = agent.StepOnce{}
	case ActCancel:
		d.Decision = agent.Cancel{}
	case ActAbandon:
		d.Decision = agent.Cancel{Abandon: true}
	case ActExtend:
		d.Decision = agent.Extend{Budget: agent.Budget{Calls: a.Calls, Turns: a.Turns, Tokens: a.Tokens}}
	case ActAgain:
		p.tape.add(record{Acted: &i, Given: &verdict{Path: []string{"operator", index(i)}, Genuine: true, Want: a.Expect}})
		return nil
	case ActAttest:
		var err error
		if d, err = Statement(run, p.stage.key(a.By), a.Says, p.stage.clock.now()); err != nil {
			return err
		}
	}
	v, err := p.stage.Host.Deliver(ctx, run, d)
	if err != nil {
		return fmt.Errorf("play %q: operator %d, %s: %w", p.stage.Scenario.File, i, a.Do, err)
	}
	p.tape.add(record{Acted: &i, Given: p.verdict(v, true, a.Expect, "operator", index(i))})
	return nil
}

func (p *play) verdict(v agent.Verdict, genuine bool, want *ExpectVerdict, path ...string) *verdict {
	out := &verdict{Path: path, Genuine: genuine, Want: want, Row: v.Row}
	if v.Refusal != nil {
		out.Code, out.Row = v.Refusal.Code, ""
	}
	return out
}

// key is the key of an approver; the first for an empty name.
func (st *Stage) key(name string) grant.PrivateKey {
	for _, k := range st.Keys {
		if k.Public().Name == name {
			return k
		}
	}
	return st.Keys[0]
}
