package prove

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"sallyport/agent"
)

// DefaultMaxStates bounds the states that one walk visits if [Options] say nothing.
const DefaultMaxStates = 100_000

// StepFunc is the step that is explored. A proof explores [agent.Step]; a test of the
// proof itself gives it a Step from which something is missing.
type StepFunc func(agent.Run, agent.Event) (agent.Run, []agent.Effect, error)

// Options say what is proven.
type Options struct {
	// Spec holds the tools, servers, approvers and budget. Definitions may be empty:
	// they are digests that nothing but equality is asked of.
	Spec agent.Spec
	// SideEffects names, per tool, what its contract declares that it changes. Such a
	// tool is held to be a write, whatever risk it has.
	SideEffects map[string]string
	// Allow lists tools with a declared side effect that may be sent without a
	// signature. A tool of risk write or destructive cannot be allowed.
	Allow []string
	// Step is explored; nil is [agent.Step].
	Step StepFunc
	// MaxStates bounds each walk; 0 is [DefaultMaxStates]. A walk that reaches it proves
	// nothing.
	MaxStates int
	// Visited, if set, is told now and then how many states the walks have visited
	// together so far, by any goroutine.
	Visited func(states int64)
}

// visitedEvery is after how many states Visited is told.
const visitedEvery = 1000

// Prove explores every run that can come of the Spec. An error means that the question
// makes no sense, that Step broke, or that ctx is done, whose error it then wraps; what
// was found out is the Report.
func Prove(ctx context.Context, o Options) (Report, error) {
	if o.Step == nil {
		o.Step = agent.Step
	}
	if o.MaxStates == 0 {
		o.MaxStates = DefaultMaxStates
	}
	p := &proof{options: o, spec: abstract(o.Spec), found: map[string]*found{}, broken: map[breach]Failure{}}
	if err := p.pledges(); err != nil {
		return Report{}, err
	}
	if err := p.spec.Check(); err != nil {
		return Report{}, fmt.Errorf("prove: %w", err)
	}
	if err := p.explore(ctx); err != nil {
		return Report{}, err
	}
	return p.report(), nil
}

// proof is one proof under way.
type proof struct {
	options Options
	spec    agent.Spec // what is explored
	begins  error      // why no run can be begun with what was asked; nil if it can
	needs   map[string]int
	found   map[string]*found // by tool
	broken  map[breach]Failure
	states  int
	events  int
	depth   int
	bounded bool
	visited atomic.Int64 // by all walks, while they go on
}

// visit counts a state that a walk is at.
func (p *proof) visit() {
	if n := p.visited.Add(1); n%visitedEvery == 0 && p.options.Visited != nil {
		p.options.Visited(n)
	}
}

// breach is one rule broken by one tool: it is reported once, by its shortest path.
type breach struct{ rule, tool string }

// found is what leads to an open Send of a tool.
type found struct {
	length cost
	paths  []Path
	more   int // shortest paths that are not listed
}

// least is the smallest number of signatures that a risk takes, in this package's own
// words.
var least = map[agent.Risk]int{agent.RiskWrite: 1, agent.RiskDestructive: 2}

// pledges settles how many signatures each tool must have, and lowers the pinned risk
// of a tool that asks for fewer: a run cannot be begun with it, but what such a run
// would do can be shown.
func (p *proof) pledges() error {
	p.needs = map[string]int{}
	p.begins = p.spec.Check()
	for i := range p.spec.Tools {
		t := &p.spec.Tools[i]
		need := max(t.Approvers, least[t.Risk])
		if p.options.SideEffects[t.Name] != "" && t.Risk == agent.RiskRead && !t.HostOnly {
			need = max(need, 1)
		}
		p.needs[t.Name] = need
		if t.Approvers < least[t.Risk] {
			t.Risk = weaker(t.Approvers)
		}
	}
	for _, name := range p.options.Allow {
		if t, ok := p.spec.Tool(name); !ok || t.HostOnly {
			return fmt.Errorf("prove: %q is allowed to go unsigned, and there is no such tool for the model to call", name)
		}
		if t, _ := p.options.Spec.Tool(name); t.Risk.Writes() {
			return fmt.Errorf("prove: %s has risk %s: that it goes unsigned cannot be allowed", name, t.Risk)
		}
	}
	return nil
}

// weaker is the risk that Step lets a number of signatures be enough for.
func weaker(approvers int) agent.Risk {
	if approvers == 0 {
		return agent.RiskRead
	}
	return agent.RiskWrite
}

// profile is all of a tool that Step can tell from another: two tools of one profile
// differ in names and digests only.
type profile struct {
	risk      agent.Risk
	approvers int
	role      string
	ownKey    bool
	needs     int
}

func (p *proof) profile(t agent.Tool) profile {
	return profile{t.Risk, t.Approvers, t.Role, t.OwnKey, p.needs[t.Name]}
}

// kinds are the exposed tools, those of one profile together.
func (p *proof) kinds() [][]agent.Tool {
	var kinds [][]agent.Tool
	for _, t := range p.exposed() {
		at := slices.IndexFunc(kinds, func(k []agent.Tool) bool { return p.profile(k[0]) == p.profile(t) })
		if at < 0 {
			kinds, at = append(kinds, nil), len(kinds)
		}
		kinds[at] = append(kinds[at], t)
	}
	return kinds
}

func (p *proof) exposed() []agent.Tool {
	return slices.DeleteFunc(slices.Clone(p.spec.Tools), func(t agent.Tool) bool { return t.HostOnly })
}

// walks are what has to be explored: every two kinds of tool together, and two of each
// kind that takes signatures, so that a grant for the one can be tried on the other; and
// each kind alone where turns, tokens and time are short.
func (p *proof) walks() ([]*walk, error) {
	var walks []*walk
	add := func(tight bool, tools ...agent.Tool) error {
		w, err := newWalk(p, tools, tight)
		walks = append(walks, w)
		return err
	}
	kinds := p.kinds()
	for i, k := range kinds {
		if err := add(true, k[0]); err != nil {
			return nil, err
		}
		if len(k) > 1 && k[0].Approvers > 0 {
			if err := add(false, k[0], k[1]); err != nil {
				return nil, err
			}
		}
		for _, other := range kinds[i+1:] {
			if err := add(false, k[0], other[0]); err != nil {
				return nil, err
			}
		}
	}
	if len(kinds) < 2 { // the only kind, or no tool at all
		var alone []agent.Tool
		for _, k := range kinds {
			alone = k[:1]
		}
		return walks, add(false, alone...)
	}
	return walks, nil
}

// explore goes all walks, as many at once as there are processors, and takes what they
// found in their order.
func (p *proof) explore(ctx context.Context) error {
	walks, err := p.walks()
	if err != nil {
		return err
	}
	errs := make([]error, len(walks))
	var group sync.WaitGroup // waited for below
	turn := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, w := range walks {
		group.Go(func() {
			turn <- struct{}{}
			errs[i] = w.all(ctx)
			<-turn
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("prove: %w", err)
	}
	for _, w := range walks {
		p.take(w)
	}
	return errors.Join(errs...)
}

// take adds what a walk found.
func (p *proof) take(w *walk) {
	p.states += len(w.nodes)
	p.events += w.events
	p.depth = max(p.depth, w.deepest)
	p.bounded = p.bounded || w.bounded
	for tool, f := range w.found {
		known := p.found[tool]
		switch {
		case known == nil || f.length.less(known.length):
			p.found[tool] = f
		case f.length == known.length:
			known.list(f.paths)
		}
	}
	for b, f := range w.broken {
		if known, ok := p.broken[b]; !ok || len(f.Path.Steps) < len(known.Path.Steps) {
			p.broken[b] = f
		}
	}
}

// refusal reports whether Step turned an event down, which is an answer; any other
// error is none.
func refusal(err error) bool {
	var no *agent.Refusal
	return errors.As(err, &no)
}
