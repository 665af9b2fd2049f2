package scenarios

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/nodes/llm"
	"sallyport/scenarios/config"
	"sallyport/tools"
	"sallyport/tools/bridge"
	"sallyport/tools/grant"
)

// AcceptOptions say how a server is accepted.
type AcceptOptions struct {
	// Self is the executable that builtin servers are started from.
	Self string
	// Mute is the command line before which a server's own is put to get a server that
	// is never told of a call, and so never answers one.
	Mute []string
	// Tool is the exposed read tool to call, and Args its arguments as JSON; empty lets
	// acceptance choose, and guess.
	Tool, Args string
	// Log is where the JSON log is written; empty is a temporary file.
	Log string
	// Limit bounds the call that is to time out; zero is a second.
	Limit time.Duration
}

// Acceptance is the report on one server (SPEC C4).
type Acceptance struct {
	Server   string   `json:"server"`
	Protocol string   `json:"protocol,omitempty"`
	Tools    []string `json:"tools"`
	Problems []string `json:"problems"` // tools that are quarantined or missing, with the reason
	Checks   []Check  `json:"checks"`
	Chains   []Chain  `json:"chains"`
}

// Check is one thing that was tried.
type Check struct {
	Name    string `json:"name"`
	Passed  bool   `json:"passed"`
	Applies bool   `json:"applies"` // false: the server has nothing to try it with
	Says    string `json:"says"`
}

// Passed reports whether every check that applies has passed.
func (a Acceptance) Passed() bool {
	return !slices.ContainsFunc(a.Checks, func(c Check) bool { return c.Applies && !c.Passed })
}

// Accept runs the fixed acceptance against one server of a configuration: one
// discovery, one call that succeeds, one without permission, refused by the Host and,
// where grants are checked by the server, by the server too, and one that times out,
// a read and a write, which end differently. Then the chain of each call is rebuilt
// from the log alone (SPEC C4). Every call goes through the same engine, nodes and
// bridge as in any run. No write reaches the server except with a grant that it must
// refuse. An [*Unreachable] server gives no report.
func Accept(ctx context.Context, c *config.Config, prefix string, o AcceptOptions) (_ Acceptance, err error) {
	a := &acceptance{options: o, report: Acceptance{Server: prefix, Tools: []string{}, Problems: []string{}}}
	if err := a.choose(c, prefix); err != nil {
		return a.report, err
	}
	if err := a.setUp(); err != nil {
		return a.report, err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	if err := a.discover(ctx); err != nil {
		return a.report, err
	}
	for _, step := range []func(context.Context) error{a.success, a.withoutPermission, a.refusedByServer, a.timeouts} {
		if err := step(ctx); err != nil {
			return a.report, err
		}
	}
	return a.report, a.chains()
}

// acceptance is one under way.
type acceptance struct {
	options   AcceptOptions
	server    tools.Server
	contracts []tools.Contract
	config    *config.Config
	budget    agent.Budget
	report    Acceptance

	dir   string
	host  *Host
	key   grant.PrivateKey
	other grant.PrivateKey // whom the server is told of, when it is to refuse
	log   *os.File
	runs  int
	ended []trialEnd

	read, write bridge.ModelTool // the tools to try; no name if there is none
}

// trialEnd is how the one call of a trial ended.
type trialEnd struct {
	call     Call
	state    agent.State
	approved bool   // a decision was given
	raw      []byte // the server's result, if it gave one
}

// choose picks the server and its contracts.
func (a *acceptance) choose(c *config.Config, prefix string) error {
	at := slices.IndexFunc(c.Servers, func(s tools.Server) bool { return s.Prefix == prefix })
	if at < 0 {
		var have []string
		for _, s := range c.Servers {
			have = append(have, s.Prefix)
		}
		return fmt.Errorf("accept %q: the configuration %q has no such server; its servers are %s", prefix, c.File, strings.Join(have, ", "))
	}
	a.config, a.server, a.budget = c, c.Servers[at], agent.DefaultBudget
	a.server.Optional = false // it is the one that this is about
	for _, t := range c.Tools {
		if t.Prefix() == prefix {
			a.contracts = append(a.contracts, t)
		}
	}
	return nil
}

func (a *acceptance) setUp() (err error) {
	if a.dir, err = os.MkdirTemp("", "sallyport-accept-"); err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	if a.key, err = grant.NewPrivateKey("acceptance", nil); err != nil {
		return err
	}
	if a.other, err = grant.NewPrivateKey("somebody-else", nil); err != nil {
		return err
	}
	path := a.options.Log
	if path == "" {
		path = filepath.Join(a.dir, "log.jsonl")
	}
	if a.log, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	state := filepath.Join(a.dir, stateFolder)
	engine, err := embedded.Open(state, embedded.Config{Actor: "acceptor"})
	if err != nil {
		return err
	}
	a.host = &Host{
		Engine: engine, StateDir: state, Self: a.options.Self, Actor: "acceptor",
		Log: zerolog.New(a.log).With().Timestamp().Logger(),
	}
	return nil
}

func (a *acceptance) close() error {
	var errs []error
	if a.host != nil {
		errs = append(errs, a.host.Engine.Close())
	}
	if a.log != nil {
		errs = append(errs, a.log.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(a.dir))...)
}

func (a *acceptance) approvers() []agent.Approver {
	roles := rolesOf(a.contracts)
	return []agent.Approver{
		{Key: a.key.Public().String(), Scripted: true, Roles: roles},
		{Key: a.other.Public().String(), Scripted: true, Roles: roles},
	}
}

func (a *acceptance) check(name string, passed bool, format string, args ...any) {
	a.report.Checks = append(a.report.Checks, Check{Name: name, Passed: passed, Applies: true, Says: fmt.Sprintf(format, args...)})
}

func (a *acceptance) lacks(name, why string) {
	a.report.Checks = append(a.report.Checks, Check{Name: name, Says: why})
}

// discover records what the server offers, and picks the tools to try.
func (a *acceptance) discover(ctx context.Context) error {
	found, err := a.host.Discover(ctx, Setup{Servers: []tools.Server{a.server}, Contracts: a.contracts}, a.approvers())
	if err != nil {
		return placed(a.config, err)
	}
	for _, s := range found.Servers {
		a.report.Protocol = s.Protocol
	}
	for _, p := range found.Problems {
		a.report.Problems = append(a.report.Problems, p.Error())
	}
	for _, t := range found.Exposed {
		a.report.Tools = append(a.report.Tools, t.Name)
		risk := a.contract(t.Name).Risk
		switch {
		case a.options.Tool == t.Name && risk == agent.RiskRead, a.options.Tool == "" && a.read.Name == "" && risk == agent.RiskRead:
			a.read = t
		case a.write.Name == "" && risk.Writes():
			a.write = t
		}
	}
	a.check("discovery", len(found.Exposed) > 0, "protocol %s, %d tools for the model, %d not usable", a.report.Protocol, len(found.Exposed), len(found.Problems))
	if a.options.Tool != "" && a.read.Name == "" {
		return fmt.Errorf("accept %q: it offers no read tool %q; for the model there are %q", a.server.Prefix, a.options.Tool, a.report.Tools)
	}
	return nil
}

func (a *acceptance) contract(name string) tools.Contract {
	c, _ := Setup{Contracts: a.contracts}.Contract(name)
	return c
}

// arguments for a tool: those that were given for the read, or guessed ones.
func (a *acceptance) arguments(t bridge.ModelTool) (string, error) {
	if a.options.Args != "" && t.Name == a.read.Name {
		return a.options.Args, nil
	}
	args, err := sample(t.Parameters)
	if err != nil {
		return "", fmt.Errorf("accept %q: tool %s: %w", a.server.Prefix, t.Name, err)
	}
	return args, nil
}

// trial is one run with one call.
type trial struct {
	tool    bridge.ModelTool
	change  func(*tools.Contract) // of the tool's contract
	server  tools.Server
	approve int // how many signatures are given
}

// try performs a trial and returns how its call ended.
func (a *acceptance) try(ctx context.Context, t trial) (trialEnd, error) {
	args, err := a.arguments(t.tool)
	if err != nil {
		return trialEnd{}, err
	}
	contracts := slices.Clone(a.contracts)
	for i := range contracts {
		if contracts[i].Name == t.tool.Name && t.change != nil {
			t.change(&contracts[i])
		}
	}
	a.runs++
	plan := Plan{
		Run: fmt.Sprintf("acceptance-%d", a.runs), Task: "Acceptance of a server.", Model: "script",
		Approvers: a.approvers(), Budget: a.budget,
		Setup: Setup{File: "acceptance", Servers: []tools.Server{t.server}, Contracts: contracts, Script: llm.Script{Turns: []llm.Turn{
			{Call: &llm.Call{Tool: t.tool.Name, Arguments: &args}}, {Say: "done"},
		}}},
	}
	run, _, err := a.host.Begin(ctx, plan)
	if err != nil {
		return trialEnd{}, err
	}
	end := trialEnd{}
	for {
		if err := a.host.Serve(ctx, run.ID); err != nil {
			return end, err
		}
		var entries []agent.Entry
		if run, entries, err = Load(ctx, a.host.Engine, run.ID); err != nil {
			return end, err
		}
		told, err := Calls(entries)
		if err != nil {
			return end, err
		}
		if len(told) != 1 {
			return end, fmt.Errorf("accept %q: %d calls in a run of one", a.server.Prefix, len(told))
		}
		end.call, end.state = told[0], run.State
		if end.raw, err = a.result(ctx, run.ID, entries); err != nil {
			return end, err
		}
		if run.State != agent.StateAwaitingApproval || t.approve == 0 {
			a.ended = append(a.ended, end)
			return end, nil
		}
		t.approve--
		end.approved = true
		if err := a.sign(ctx, run); err != nil {
			return end, err
		}
	}
}

// sign gives the next signature, by the next key.
func (a *acceptance) sign(ctx context.Context, run agent.Run) error {
	key := a.key
	if len(run.Call.Grants) > 0 {
		key = a.other
	}
	d, err := Approval(run, key, time.Now())
	if err != nil {
		return err
	}
	v, err := a.host.Deliver(ctx, run, d)
	if err == nil && v.Refusal != nil {
		err = v.Refusal
	}
	return err
}

func (e trialEnd) String() string {
	sent := "not sent"
	if e.call.Sent {
		sent = "sent"
	}
	words := []string{string(e.call.Status), "class " + string(e.call.Class)}
	if e.call.Reason != "" {
		words = append(words, "reason "+e.call.Reason)
	}
	return e.call.Tool + ": " + strings.Join(append(words, sent), ", ")
}

// result is what the server returned last in a run; nil if nothing was kept.
func (a *acceptance) result(ctx context.Context, run string, entries []agent.Entry) ([]byte, error) {
	for _, e := range slices.Backward(entries) {
		if e.Kind != agent.EntryEvent || e.Event != agent.KindReturned {
			continue
		}
		p, err := e.Payload()
		if err != nil {
			return nil, err
		}
		if r, ok := p.(agent.Returned); ok && !r.Body.IsZero() {
			return a.host.Engine.Body(ctx, run, r.Body)
		}
		return nil, nil
	}
	return nil, nil
}

// beginsWithText reports whether a result's first content block is a text. A tool
// without an output schema says nothing else that could be relied on.
func beginsWithText(raw []byte) bool {
	var result struct {
		Content []struct {
			Type string  `json:"type"`
			Text *string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(raw, &result) != nil || len(result.Content) == 0 {
		return false
	}
	first := result.Content[0]
	return first.Type == "text" && first.Text != nil
}

func (a *acceptance) success(ctx context.Context) error {
	const name = "a call that succeeds"
	if a.read.Name == "" {
		a.check(name, false, "there is no read tool to call: contract one")
		return nil
	}
	end, err := a.try(ctx, trial{tool: a.read, server: a.server})
	if err != nil {
		return err
	}
	ok := end.call.Status == agent.StatusOK && end.call.Class == agent.ClassOK && end.call.Sent
	if ok && a.contract(a.read.Name).Output == tools.OutputNone && !beginsWithText(end.raw) {
		a.check(name, false, "%s, but its result does not begin with a text", end)
		return nil
	}
	a.check(name, ok, "%s", end)
	return nil
}

// withoutPermission has the Host refuse: the call needs a signature and has none. With
// one it goes through.
func (a *acceptance) withoutPermission(ctx context.Context) error {
	if a.read.Name == "" {
		return nil
	}
	asks := func(c *tools.Contract) {
		c.Approval = &tools.Approval{Approvers: 1, Expires: tools.Duration(time.Hour), UseWithin: tools.Duration(time.Minute)}
	}
	end, err := a.try(ctx, trial{tool: a.read, server: a.server, change: asks})
	if err != nil {
		return err
	}
	refused := end.call.Status == agent.StatusWaitingApproval && end.call.Class == agent.ClassPermissionRefused
	a.check("without permission, refused by the host", refused && !end.call.Sent && end.state == agent.StateAwaitingApproval, "%s", end)
	if end, err = a.try(ctx, trial{tool: a.read, server: a.server, change: asks, approve: 1}); err != nil {
		return err
	}
	a.check("the same with an approval", end.call.Status == agent.StatusOK && slices.Equal(end.call.Approvers, []string{"acceptance"}), "%s", end)
	return nil
}

// refusedByServer sends a write with a grant by a key that the server does not know.
func (a *acceptance) refusedByServer(ctx context.Context) error {
	const name = "without permission, refused by the server"
	c := a.contract(a.write.Name)
	if a.write.Name == "" || c.GrantField == "" {
		a.lacks(name, "no contracted write whose grants the server checks itself")
		return nil
	}
	var strangers []string
	for i := range 2 {
		k, err := grant.NewPrivateKey(fmt.Sprintf("stranger-%d", i), nil)
		if err != nil {
			return err
		}
		strangers = append(strangers, k.Public().String())
	}
	a.host.serverKeys = strangers
	end, err := a.try(ctx, trial{tool: a.write, server: a.server, approve: c.Approvers()})
	a.host.serverKeys = nil
	if err != nil {
		return err
	}
	a.check(name, end.call.Status == agent.StatusRejected && end.call.Class == agent.ClassPermissionRefused && end.call.Sent, "%s", end)
	return nil
}

// timeouts keeps the server from hearing of a call: a read is unavailable then, and of
// a write nobody knows.
func (a *acceptance) timeouts(ctx context.Context) error {
	muted, err := a.muted()
	if err != nil {
		return err
	}
	limit := a.options.Limit
	if limit == 0 {
		limit = time.Second
	}
	quick := func(c *tools.Contract) {
		c.Timeout, c.Settle = tools.Duration(limit), nil
	}
	for _, t := range []struct {
		name   string
		tool   bridge.ModelTool
		status agent.Status
	}{
		{"a read that times out", a.read, agent.StatusUnavailable},
		{"a write that times out", a.write, agent.StatusResultUnknown},
	} {
		if t.tool.Name == "" {
			a.lacks(t.name, "no contracted tool of this risk")
			continue
		}
		end, err := a.try(ctx, trial{tool: t.tool, server: muted, change: quick, approve: a.contract(t.tool.Name).Approvers()})
		if err != nil {
			return err
		}
		a.check(t.name, end.call.Status == t.status && end.call.Class == agent.ClassTimeout && end.call.Sent, "%s", end)
	}
	return nil
}

// muted is the server behind a relay that keeps calls from it.
func (a *acceptance) muted() (tools.Server, error) {
	s := a.server
	command := s.Command
	if s.Builtin != "" {
		command = []string{a.options.Self, "mcp", s.Builtin}
		if s.Builtin == tools.BuiltinDocs {
			file, err := a.docsConfig()
			if err != nil {
				return s, err
			}
			command = append(command, "--config", file)
		}
	}
	// The relay has the clean environment of a server, and so no PATH to look into.
	program, err := exec.LookPath(command[0])
	if err != nil {
		return s, fmt.Errorf("accept %q: %w", s.Prefix, err)
	}
	s.Builtin, s.Root, s.MirrorText = "", "", false
	s.Command = append(append(slices.Clone(a.options.Mute), program), command[1:]...)
	return s, nil
}

// docsConfig is what a document server is started with, as the bridge would write it.
func (a *acceptance) docsConfig() (string, error) {
	ledger := filepath.Join(a.dir, "ledger")
	if err := os.MkdirAll(ledger, 0o700); err != nil {
		return "", err
	}
	data, err := json.Marshal(map[string]any{
		"root": a.server.Root, "scope": a.server.Scope, "audience": a.server.Audience, "ledger": ledger,
		"keys": []string{a.key.Public().String()},
	})
	if err != nil {
		return "", err
	}
	file := filepath.Join(a.dir, "docs.json")
	return file, os.WriteFile(file, data, 0o600)
}

// chains rebuilds every chain from the log file and compares it with the journal.
func (a *acceptance) chains() error {
	data, err := os.ReadFile(a.log.Name())
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	if a.report.Chains, err = Chains(data); err != nil {
		return err
	}
	var gaps []string
	for _, end := range a.ended {
		at := slices.IndexFunc(a.report.Chains, func(c Chain) bool { return c.ID == end.call.ID })
		switch {
		case at < 0:
			gaps = append(gaps, end.call.ID+" is not in the log")
		case a.report.Chains[at].Class != end.call.Class:
			gaps = append(gaps, fmt.Sprintf("%s has class %q in the log and %q in the journal", end.call.ID, a.report.Chains[at].Class, end.call.Class))
		default:
			if gap := a.report.Chains[at].gap(end.call.Sent, end.approved); gap != "" {
				gaps = append(gaps, end.call.ID+": "+gap)
			}
		}
	}
	a.check("the chain of every call, from the log alone", len(gaps) == 0, "%d calls%s", len(a.ended), strings.Join(append([]string{""}, gaps...), "; "))
	return nil
}
