package bridge

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sallyport/agent"
	"sallyport/tools"
)

// ModelTool is a tool as the model is told of it.
type ModelTool = tools.ModelTool

// Found is what one discovery of every server found.
type Found struct {
	// Tools and Servers are what a run pins: exposed and host-only tools in the order
	// of the contracts, and the servers that answered.
	Tools   []agent.Tool
	Servers []agent.Server
	// Exposed are the tools that the model may know, in the order of the contracts.
	// [tools.CheckExposed] says whether a model could mix them up.
	Exposed []ModelTool
	// Definitions are the canonical definitions that Tools pins by digest. A run that
	// keeps them as bodies can be resumed without asking a server what the model was
	// told: see [Config.Definition].
	Definitions []agent.Body
	// Problems are the servers and tools that are not there.
	Problems []Problem
}

// Problem is a server, or one tool of it, that cannot be used.
type Problem struct {
	Server string
	Tool   string       // the contract's name; empty if it is the whole server
	Reason tools.Reason // a fixed word
	// Required says that no run may be begun: the server is not optional.
	Required bool
	// Cause is what the Host saw of a server that is not there, made visible: the error of
	// its start, or how its process ended; empty if the reason says it all.
	Cause string
	// Detail is for the operator only. Of a server: the end of what it wrote to stderr,
	// made visible. Of a tool: what to do about the reason, in fixed words, where there
	// is more to say.
	Detail string
}

// Error names the server or tool, the reason and the cause.
func (p Problem) Error() string {
	text := "server " + p.Server
	if p.Tool != "" {
		text = "tool " + p.Tool
	}
	text += ": " + string(p.Reason)
	if p.Cause != "" {
		text += ": " + p.Cause
	}
	return text
}

// Discover starts every server, asks each once for its tools, and ends them again. The
// error is one of configuration, or of ctx; what a server does wrong is a Problem.
func Discover(ctx context.Context, cfg Config) (Found, error) {
	registry, err := tools.NewRegistry(cfg.Servers, cfg.Contracts)
	if err != nil {
		return Found{}, err
	}
	servers := registry.Servers()
	asked := make([]asking, len(servers))
	var all sync.WaitGroup
	for i, srv := range servers {
		all.Go(func() { asked[i] = askServer(ctx, cfg, srv, registry.Contracts()) }) // waited for below
	}
	all.Wait()
	if err := ctx.Err(); err != nil {
		return Found{}, err
	}
	f := finder{lists: map[string]listing{}, built: map[string]*tools.Tool{}}
	for i, srv := range servers {
		f.server(srv, asked[i])
	}
	f.tools(registry)
	return f.found, nil
}

// asking is the answer of one server to a discovery.
type asking struct {
	list     listing
	protocol string
	err      error
	ending   string // of the process, if it ended by itself
	detail   string
}

// cause is [Problem.Cause].
func (a asking) cause(reason string) string {
	switch {
	case reason == string(ReasonStart):
		text, _ := tools.Visible(a.err.Error())
		return strings.TrimPrefix(text, reason+": ")
	case reason == ReasonLost && a.ending == "":
		return "it closed a pipe and went on"
	case reason == ReasonLost:
		return "it ended: " + a.ending
	}
	return ""
}

func askServer(ctx context.Context, cfg Config, srv tools.Server, contracts []tools.Contract) (a asking) {
	cmd, err := cfg.launch(srv, contracts, "discovery-"+strings.ToLower(rand.Text()[:8]))
	if err != nil {
		return asking{err: fmt.Errorf("%w: %w", ReasonStart, err)}
	}
	var c *connection
	if c, err = dial(ctx, srv, cmd); err != nil {
		var failed *dialError
		if errors.As(err, &failed) {
			a.detail, a.ending = failed.stderr, failed.ending
		}
		a.err = err
		return a
	}
	a.protocol = c.protocol
	a.list, a.err = c.list(ctx, new(requestIDs), srv.Limit(), srv.ToolLimit())
	err = c.close()
	if a.err == nil {
		a.err = err
	}
	a.detail, a.ending = c.proc.errors.text(), c.proc.ending()
	return a
}

// finder makes a Found of the servers' answers.
type finder struct {
	found Found
	lists map[string]listing     // by prefix, of the servers that answered
	built map[string]*tools.Tool // by the contract's name
}

func (f *finder) server(srv tools.Server, a asking) {
	if a.err != nil {
		reason, _ := cause(a.err)
		f.found.Problems = append(f.found.Problems, Problem{
			Server: srv.Prefix, Reason: tools.Reason(reason), Required: !srv.Optional,
			Cause: a.cause(reason), Detail: a.detail,
		})
		return
	}
	pin := serverPin(srv)
	pin.Protocol = a.protocol
	f.found.Servers = append(f.found.Servers, pin)
	f.lists[srv.Prefix] = a.list
}

// tools builds every contracted tool first, since a write hangs on its read-back.
func (f *finder) tools(registry *tools.Registry) {
	refused := map[string]error{}
	for _, c := range registry.Contracts() {
		list, answered := f.lists[c.Prefix()]
		if !answered || c.Off() {
			continue
		}
		t, err := build(c, list)
		if err != nil {
			refused[c.Name] = err
			continue
		}
		f.built[c.Name] = t
	}
	for _, c := range registry.Contracts() {
		err := refused[c.Name]
		t := f.built[c.Name]
		if t != nil {
			err = f.settles(t)
		}
		switch {
		case err != nil:
			f.found.Problems = append(f.found.Problems, toolProblem(c, err))
		case t != nil:
			f.add(t)
		}
	}
}

func toolProblem(c tools.Contract, err error) Problem {
	p := Problem{Server: c.Prefix(), Tool: c.Name, Reason: reasonOf(err)}
	if text := err.Error(); text != string(p.Reason) {
		p.Detail = text
	}
	return p
}

// settles reports why a tool's read-back cannot be made, as a [tools.Reason]; nil if it
// can, or if the contract has none.
func (f *finder) settles(t *tools.Tool) error {
	if t.Contract.Settle == nil {
		return nil
	}
	back := f.built[t.Contract.Settle.Tool]
	if back == nil {
		return ReasonSettleMissing
	}
	if tools.CheckSettle(t, back) != nil {
		return ReasonSettleArgument
	}
	return nil
}

func (f *finder) add(t *tools.Tool) {
	c := t.Contract
	pin := agent.Tool{
		Name: c.Name, Server: c.Prefix(), Remote: c.Remote(), Risk: c.Risk, HostOnly: c.HostOnly,
		Definition: t.Definition.Digest, Approvers: c.Approvers(), Settle: c.Settle != nil,
	}
	if pin.Approvers > 0 {
		pin.Expires, pin.UseWithin = int64(c.Expires().Seconds()), int64(c.UseWithin().Seconds())
		if a := c.Approval; a != nil {
			pin.Role, pin.OwnKey = a.Role, a.OwnKey
		}
	}
	f.found.Tools = append(f.found.Tools, pin)
	f.found.Definitions = append(f.found.Definitions, agent.NewBody(t.Definition.Canonical))
	if c.Exposed() {
		f.found.Exposed = append(f.found.Exposed, t.Model)
	}
}

// build makes a contracted tool of a list. The error is a [tools.Reason].
func build(c tools.Contract, list listing) (*tools.Tool, error) {
	e := list[c.Remote()]
	if e == nil {
		return nil, ReasonMissing
	}
	d, err := e.define()
	if err != nil {
		return nil, err
	}
	return tools.NewTool(c, d)
}

func reasonOf(err error) tools.Reason {
	var r tools.Reason
	if errors.As(err, &r) {
		return r
	}
	return tools.DefinitionMalformed
}

// Missing lists the problems that keep a run from being begun.
func (f Found) Missing() []Problem {
	return slices.DeleteFunc(slices.Clone(f.Problems), func(p Problem) bool { return !p.Required })
}
