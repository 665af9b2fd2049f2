package prove

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sallyport/agent"
)

// Verdict is what a proof came to.
type Verdict string

// The verdicts. Only Proven lets a gate open.
const (
	Proven    Verdict = "proven"     // every rule holds on every path
	Broken    Verdict = "broken"     // some path breaks a rule; it is shown
	NotProven Verdict = "not proven" // the walk did not come to an end
)

// Report is what a proof found.
type Report struct {
	Verdict  Verdict   `json:"verdict"`
	Tools    []Tool    `json:"tools"`
	Failures []Failure `json:"failures"`
	// Exceptions are failures that Options.Allow lets pass.
	Exceptions []Failure `json:"exceptions"`
	// Begins says why no run can be begun with what was asked; empty if one can.
	Begins string   `json:"begins,omitempty"`
	Notes  []string `json:"notes"`
	States int      `json:"states"` // visited
	Events int      `json:"events"` // offered to Step
	Depth  int      `json:"depth"`  // the steps of the longest of all shortest paths
}

// Tool is what a proof found about one tool.
type Tool struct {
	Name       string     `json:"name"`
	Risk       agent.Risk `json:"risk"`
	HostOnly   bool       `json:"host_only,omitempty"`
	SideEffect string     `json:"side_effect,omitempty"`
	// Needs is how many people must sign for a call, Asks how many its contract asks for.
	Needs     int      `json:"needs"`
	Asks      int      `json:"asks"`
	Approvers []string `json:"approvers,omitempty"` // who can
	// Paths are the shortest paths to an open Send, up to the names of approvers.
	Paths []Path `json:"paths"`
	More  int    `json:"more_paths,omitempty"` // beyond the [MaxPaths] that are listed
}

// MaxPaths is how many shortest paths of a tool are listed.
const MaxPaths = 16

// Path is a way from the start of a run.
type Path struct {
	Steps   []Step   `json:"steps"`
	Trusted []string `json:"trusted"` // the sentences of approvers and operators after the start
}

// Step is one event of a path.
type Step struct {
	Origin agent.Origin `json:"origin"`
	Event  agent.Kind   `json:"event,omitempty"` // empty where the process ends
	State  agent.State  `json:"state"`           // of the run afterwards
	Says   string       `json:"says"`
}

// trusted reports whether the step is the word of a person whom the run believes.
func (s Step) trusted() bool {
	return s.Event != agent.KindStart && (s.Origin == agent.OriginApprover || s.Origin == agent.OriginOperator)
}

// Failure is a rule that a path breaks.
type Failure struct {
	Rule string `json:"rule"`
	Tool string `json:"tool,omitempty"`
	Says string `json:"says"`
	Path Path   `json:"path"`
}

// sends notes a path to an open Send.
func (w *walk) sends(from int32, l label, next agent.Run, effects []agent.Effect) {
	for _, e := range effects {
		if e.Kind != agent.Send || next.Call == nil {
			continue
		}
		tool := next.Call.Proposal.Tool
		length := w.nodes[from].length.plus(l)
		f := w.found[tool]
		if f == nil || length.less(f.length) {
			f = &found{length: length}
			w.found[tool] = f
		}
		if length != f.length {
			continue
		}
		f.list(w.paths(from, edge{from, l, next.State}))
	}
}

// list adds paths that are not listed already: two walks may come to the same.
func (f *found) list(paths []Path) {
	for _, path := range paths {
		same := slices.ContainsFunc(f.paths, func(o Path) bool { return slices.Equal(o.Steps, path.Steps) })
		switch {
		case same:
		case len(f.paths) < MaxPaths:
			f.paths = append(f.paths, path)
		default:
			f.more++
		}
	}
}

// breaks notes a rule that a step breaks, if no shorter path is known to.
func (w *walk) breaks(b breach, from int32, l label, state agent.State) {
	known, ok := w.broken[b]
	if ok && len(known.Path.Steps) <= w.nodes[from].length.steps+1 {
		return
	}
	w.broken[b] = Failure{Rule: b.rule, Tool: b.tool, Says: rules[b.rule], Path: w.paths(from, edge{from, l, state})[0]}
}

// paths are all shortest paths to a node, each with one step more.
func (w *walk) paths(at int32, last edge) []Path {
	var all []Path
	var back func(at int32, tail []Step)
	back = func(at int32, tail []Step) {
		if len(all) > 4*MaxPaths {
			return
		}
		if at == 0 {
			all = append(all, path(tail))
			return
		}
		for _, e := range w.nodes[at].parents {
			back(e.from, append([]Step{e.step()}, tail...))
		}
	}
	back(at, []Step{last.step()})
	return all
}

func (e edge) step() Step {
	return Step{Origin: e.label.origin, Event: e.label.kind, State: e.state, Says: e.label.sentence()}
}

func path(steps []Step) Path {
	p := Path{Steps: steps, Trusted: []string{}}
	for _, s := range steps {
		if s.trusted() {
			p.Trusted = append(p.Trusted, s.Says)
		}
	}
	return p
}

func (p *proof) report() Report {
	r := Report{
		Verdict: Proven, Tools: []Tool{}, Failures: []Failure{}, Exceptions: []Failure{},
		States: p.states, Events: p.events, Depth: p.depth,
	}
	for _, t := range p.options.Spec.Tools {
		r.Tools = append(r.Tools, p.tool(t))
	}
	p.failures(&r)
	if p.begins != nil {
		r.Begins = p.begins.Error()
	}
	switch {
	case len(r.Failures) > 0 || p.begins != nil:
		r.Verdict = Broken
	case p.bounded:
		r.Verdict = NotProven
	}
	return r
}

func (p *proof) failures(r *Report) {
	order := func(a, b breach) int { return cmp.Or(strings.Compare(a.tool, b.tool), strings.Compare(a.rule, b.rule)) }
	for _, b := range slices.SortedFunc(maps.Keys(p.broken), order) {
		f := p.broken[b]
		for _, name := range p.alike(b.tool) {
			f := f.renamed(b.tool, name)
			if b.rule == ruleUnsigned && slices.Contains(p.options.Allow, name) {
				r.Exceptions = append(r.Exceptions, f)
			} else {
				r.Failures = append(r.Failures, f)
			}
		}
	}
}

// explored is the tool that a walk used in place of t: the first of its profile.
func (p *proof) explored(t agent.Tool) string {
	for _, o := range p.exposed() {
		if p.profile(o) == p.profile(t) {
			return o.Name
		}
	}
	return t.Name
}

// alike are the tools that a walk's tool stands for.
func (p *proof) alike(name string) []string {
	names := []string{name}
	for _, t := range p.exposed() {
		if t.Name != name && p.explored(t) == name {
			names = append(names, t.Name)
		}
	}
	return names
}

// tool reports a tool, by the paths of the one that was explored in its place.
func (p *proof) tool(asked agent.Tool) Tool {
	t := Tool{
		Name: asked.Name, Risk: asked.Risk, HostOnly: asked.HostOnly, SideEffect: p.options.SideEffects[asked.Name],
		Needs: p.needs[asked.Name], Asks: asked.Approvers, Paths: []Path{},
	}
	if t.HostOnly {
		return t
	}
	if t.Needs > 0 {
		t.Approvers = p.able(asked)
	}
	as, _ := p.spec.Tool(asked.Name)
	name := p.explored(as)
	if f := p.found[name]; f != nil {
		for _, one := range f.paths {
			t.Paths = append(t.Paths, one.renamed(name, t.Name))
		}
		t.More = f.more
	}
	return t
}

// word is a tool's name, or another word of a sentence.
var word = regexp.MustCompile(`[A-Za-z0-9_-]+`)

func (p Path) renamed(was, is string) Path {
	if was == is || was == "" {
		return p
	}
	steps := slices.Clone(p.Steps)
	for i := range steps {
		steps[i].Says = word.ReplaceAllStringFunc(steps[i].Says, func(w string) string {
			if w == was {
				return is
			}
			return w
		})
	}
	return path(steps)
}

func (f Failure) renamed(was, is string) Failure {
	if was == f.Tool {
		f.Tool = is
	}
	f.Path = f.Path.renamed(was, is)
	return f
}

// Summary is the verdict in one sentence.
func (r Report) Summary() string {
	var writes []string
	for _, t := range r.Tools {
		if t.Needs > 0 {
			writes = append(writes, t.Name)
		}
	}
	switch {
	case r.Verdict == NotProven:
		return fmt.Sprintf("NOT PROVEN: the walk stopped after %d states; nothing is said about the rest.", r.States)
	case len(r.Failures) > 0:
		return fmt.Sprintf("FAIL: %s.", count(len(r.Failures), "rule is broken", "rules are broken"))
	case r.Verdict == Broken:
		return "FAIL: no run can be begun with this."
	case len(r.Exceptions) > 0:
		return fmt.Sprintf("PASS, with %s that was allowed by name: what else needs signatures is sent with them only.",
			count(len(r.Exceptions), "exception", "exceptions"))
	case len(writes) == 0:
		return "PASS: the model is shown no tool that needs a signature."
	}
	return fmt.Sprintf("PASS: no path sends a call of %s without the signatures that it needs.", strings.Join(writes, ", "))
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
