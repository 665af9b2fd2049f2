package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sallyport/agent"
	"sallyport/agent/prove"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios/config"
	"sallyport/tools"
	"sallyport/tools/grant"
)

func (a *app) proveCommand() *cobra.Command {
	var allow []string
	c := &cobra.Command{
		Use: "prove [FILE]", Short: "Prove that nothing is written without its signatures, or show the path",
		Args: cobra.MaximumNArgs(1), Annotations: map[string]string{formatsKey: "text json mermaid"},
		Long: `Walk over every state that a run under a configuration can be in, and offer each every
event that a node, the model, the clock, an operator or an approver could bring: forged,
late and repeated grants, other arguments, changed definitions, pauses, cancels and
crashes with them. For each tool the shortest paths to a request that is sent are shown,
with the words of persons on them.

It passes (exit code 0) if no path sends a call of a tool that writes without signatures
by as many people as its contract asks for, over exactly its bytes and its definition;
none sends one call twice, or sends after a cancel, beyond the budget, or while nobody
knows what became of a write. Else it shows the path (exit code 1). A tool of risk read
whose contract declares a side_effect is held to be a write; --allow TOOL accepts that
it goes unsigned, and says so.

FILE is a sallyport.yaml, or a task or scenario file; without one, the sallyport.yaml
that is found from here. No server is started and no model asked. Keys are made for the
proof under the approvers' names. What is not proven is in docs/prove.md.`,
		Example: `  sallyport prove
  sallyport prove scenarios/research/approved.yaml -o mermaid
  sallyport prove --allow notes__append`,
		RunE: func(c *cobra.Command, args []string) error {
			p, err := a.provable(append(args, "")[0])
			if err != nil {
				return err
			}
			return a.prove(c.Context(), p, allow)
		},
	}
	c.Flags().StringArrayVar(&allow, "allow", nil, "let this `TOOL`, of risk read with a declared side effect, go unsigned")
	return c
}

// provable is what a proof is about.
type provable struct {
	spec    agent.Spec
	effects map[string]string // declared side effects, by tool
	notes   []string
}

func (a *app) prove(ctx context.Context, p provable, allow []string) error {
	p.staff(time.Now())
	visited, end := a.stateLine()
	r, err := prove.Prove(ctx, prove.Options{Spec: p.spec, SideEffects: p.effects, Allow: allow, Visited: visited})
	end()
	switch {
	case errors.Is(err, context.Canceled):
		return err // an interruption, which has a code of its own
	case err != nil:
		return usage("", "%w", err)
	}
	r.Notes = append(r.Notes, p.notes...)
	if err := a.report(r); err != nil {
		return err
	}
	switch r.Verdict {
	case prove.Proven:
		return nil
	case prove.NotProven:
		return fail(exitFailed, "prove fewer kinds of tools at a time", "not proven: there are more states than are visited")
	case prove.Broken:
	}
	return fail(exitFailed, "the output shows the path", "the proof fails")
}

// stateLine is the one line of progress that a proof has on a terminal; end takes it
// away, once nobody calls visited any more.
func (a *app) stateLine() (visited func(int64), end func()) {
	if !term.IsTerminal(int(a.errs.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil, func() {}
	}
	var mu sync.Mutex
	most := int64(0)
	draw := func(text string) { _, _ = fmt.Fprint(a.stderr, clearLine+text) }
	visited = func(states int64) {
		mu.Lock()
		defer mu.Unlock()
		if states > most { // who counted first may come second
			most = states
			draw(fmt.Sprintf("%d states so far", states))
		}
	}
	return visited, func() {
		if most > 0 {
			draw("")
		}
	}
}

func (a *app) report(r prove.Report) error {
	switch a.output {
	case formatJSON:
		return a.json(r, true)
	case formatMermaid:
		return a.print("%s", r.Mermaid())
	}
	shown, _ := terminal.Escape(r.Text())
	return a.print("%s", shown)
}

// provable reads a configuration, or the file that one goes with. What a configuration
// is refused for may be the very thing that a proof is to show.
func (a *app) provable(file string) (provable, error) {
	task, err := isTask(file)
	if err != nil {
		return provable{}, err
	}
	if task {
		s, err := a.loadFile(file, "")
		if err != nil {
			return a.weak(cmp.Or(a.configFile, beside(file)), err)
		}
		return pinned(s.Config.Servers, s.Config.Tools, s.Config.Keys, s.Plan().Budget), nil
	}
	if file == "" {
		file = cmp.Or(a.configFile, beside("."))
	}
	if file == "" {
		return provable{}, usage("name one: sallyport prove FILE", "%w", config.ErrNotFound)
	}
	c, err := config.Load(file, config.Options{})
	if err != nil {
		return a.weak(file, usage("", "%w", err))
	}
	for _, w := range c.Warnings {
		a.warn("Warning", w.String())
	}
	return pinned(c.Servers, c.Tools, c.Keys, c.Budget), nil
}

// beside is the configuration that goes with a file or folder; empty if there is none.
func beside(start string) string {
	file, err := config.Find(start)
	if err != nil {
		return ""
	}
	return file
}

// isTask reports whether the file is a task or scenario file.
func isTask(file string) (bool, error) {
	if file == "" {
		return false, nil
	}
	f, err := parseFile(file)
	if err != nil {
		return false, usage("", "%w", err)
	}
	return f.Root().Has("task") || f.Root().Has("scenario"), nil
}

func parseFile(name string) (*config.File, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the file: %w", err)
	case !info.Mode().IsRegular() || info.Size() > config.MaxFile:
		return nil, fmt.Errorf("read %q: it is no ordinary file of at most %d bytes", name, config.MaxFile)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	return config.ParseFile(name, data)
}

// pinned is what a run under the configuration would pin if every server offered what
// the contracts name. The definitions stay open: nothing but their equality matters.
func pinned(servers []tools.Server, contracts []tools.Contract, keys []agent.Approver, budget agent.Budget) provable {
	p := provable{effects: map[string]string{}}
	p.spec.Approvers, p.spec.Budget = slices.Clone(keys), budget
	for _, s := range servers {
		p.spec.Servers = append(p.spec.Servers, agent.Server{Prefix: s.Prefix, Audience: s.Audience, Scope: s.Scope})
	}
	for _, c := range contracts {
		if c.Off() {
			p.notes = append(p.notes, fmt.Sprintf("%s sends something out and is switched off: no run has it.", c.Name))
			continue
		}
		p.add(c)
	}
	return p
}

func (p *provable) add(c tools.Contract) {
	t := agent.Tool{
		Name: c.Name, Server: c.Prefix(), Remote: c.Remote(), Risk: c.Risk, HostOnly: c.HostOnly,
		Approvers: c.Approvers(), Settle: c.Settle != nil,
	}
	if t.Approvers > 0 {
		t.Expires, t.UseWithin = int64(c.Expires().Seconds()), int64(c.UseWithin().Seconds())
		if c.Approval != nil {
			t.Role, t.OwnKey = c.Approval.Role, c.Approval.OwnKey
		}
	}
	p.spec.Tools = append(p.spec.Tools, t)
	if declares(c.SideEffect) {
		p.effects[t.Name] = c.SideEffect
	}
}

// staff leaves out the keys that have ended, and lets others stand in where too few are
// left: a proof in which nobody can sign would say nothing.
func (p *provable) staff(now time.Time) {
	p.spec.Approvers = slices.DeleteFunc(p.spec.Approvers, func(k agent.Approver) bool {
		return !k.NotAfter.IsZero() && !now.Before(k.NotAfter)
	})
	stand := 0
	for _, t := range p.spec.Tools {
		for able := p.able(t); able < t.Approvers; able++ {
			stand++
			key, err := grant.NewPrivateKey(fmt.Sprintf("stand-in-%d", stand), nil)
			if err != nil {
				panic(err) // the name is ours
			}
			a := agent.Approver{Key: key.Public().String()}
			if t.Role != "" {
				a.Roles = []string{t.Role}
			}
			p.spec.Approvers = append(p.spec.Approvers, a)
		}
	}
	if stand > 0 {
		p.notes = append(p.notes, "too few keys are configured to sign for every tool; approvers called stand-in-N take the missing places.")
	}
}

// able counts the people who may sign for a tool.
func (p *provable) able(t agent.Tool) int {
	var names []string
	for _, a := range p.spec.Approvers {
		key, err := grant.ParsePublicKey(a.Key)
		if err == nil && (t.Role == "" || slices.Contains(a.Roles, t.Role)) && !slices.Contains(names, key.Name) {
			names = append(names, key.Name)
		}
	}
	return len(names)
}

// weak reads of a refused configuration what it asks of approvers. If it asks too little
// the proof shows what would come of it; else the refusal stands.
func (a *app) weak(file string, why error) (provable, error) {
	var refused *config.Error
	if file == "" || !errors.As(why, &refused) {
		return provable{}, why
	}
	f, err := parseFile(file)
	if err != nil {
		return provable{}, why
	}
	p := provable{effects: map[string]string{}}
	p.spec.Budget = agent.DefaultBudget
	found := false
	contracts := f.Root().Get("tools")
	for _, name := range contracts.Keys() {
		t, ok := asked(name, contracts.Get(name))
		if !ok {
			return provable{}, why
		}
		found = found || t.Approvers < leastSigned(t.Risk)
		p.spec.Tools = append(p.spec.Tools, t)
		if !slices.ContainsFunc(p.spec.Servers, func(s agent.Server) bool { return s.Prefix == t.Server }) {
			p.spec.Servers = append(p.spec.Servers, agent.Server{Prefix: t.Server})
		}
		if effect, _ := contracts.Get(name).Get("side_effect").Text(); declares(effect) {
			p.effects[name] = effect
		}
	}
	if !found {
		return provable{}, why
	}
	a.warn("Refused", refused.Error())
	p.notes = append(p.notes, "the configuration is refused, so that no run has it; only its risks and approvals were read.")
	return p, nil
}

// asked is the tool as a refused contract would have it, word for word.
func asked(name string, contract config.Node) (agent.Tool, bool) {
	prefix, remote, ok := strings.Cut(name, tools.Separator)
	risk, _ := contract.Get("risk").Text()
	hostOnly, _ := contract.Get("host_only").Scalar()
	t := agent.Tool{Name: name, Server: prefix, Remote: remote, Risk: agent.Risk(risk), HostOnly: hostOnly == "true"}
	if t.HostOnly {
		return t, ok
	}
	switch t.Risk {
	case agent.RiskRead, agent.RiskWrite, agent.RiskDestructive:
	case agent.RiskSettle:
		return t, false
	default: // whatever the file says
		return t, false
	}
	if approval := contract.Get("approval"); approval.IsMapping() {
		t.Approvers = leastSigned(t.Risk)
		if n, given := approval.Get("approvers").Scalar(); given {
			if _, err := fmt.Sscan(n, &t.Approvers); err != nil || t.Approvers < 0 || t.Approvers > tools.MaxApprovers {
				return t, false
			}
		}
		t.Role, _ = approval.Get("role").Text()
		own, _ := approval.Get("own_key").Scalar()
		t.OwnKey = own == "true"
	}
	if t.Approvers > 0 {
		t.Expires, t.UseWithin = int64(tools.DefaultExpires.Seconds()), int64(tools.DefaultUseWithin.Seconds())
	}
	return t, ok
}

// leastSigned is how many people must sign for a call of a risk, at the least.
func leastSigned(r agent.Risk) int {
	switch r {
	case agent.RiskWrite:
		return 1
	case agent.RiskDestructive:
		return 2
	case agent.RiskRead, agent.RiskSettle:
	}
	return 0
}

// declares reports whether a side effect is declared: none, n/a and nothing are none.
func declares(effect string) bool {
	return !slices.Contains([]string{"", "none", "n/a", "na", "nothing", "-"}, strings.Trim(strings.ToLower(strings.TrimSpace(effect)), "."))
}
