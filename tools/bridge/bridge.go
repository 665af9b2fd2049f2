package bridge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sallyport/agent"
	"sallyport/tools"
)

// Config is what a bridge is made of: trusted configuration only.
type Config struct {
	Servers   []tools.Server
	Contracts []tools.Contract
	// Self is the path of the executable that plays the builtin servers.
	Self string
	// StateDir is the folder below which ledgers and the builtin servers'
	// configuration lie.
	StateDir string
	// Keys are the approvers' public keys, one line each, for the builtin servers.
	Keys []string
	// Definition returns the canonical definition of that digest, if the caller has
	// kept it with the run (see [Found.Definitions]), else nil. It may be nil: then the
	// servers are asked again.
	Definition func(digest string) []byte
	// Programs run inside the Host in place of the children of these servers, by prefix.
	// It is for programs that bring their server along, and for tests by the thousand.
	Programs map[string]Program
	Log      zerolog.Logger
	// Now is the clock that grants are held against; nil is time.Now.
	Now func() time.Time
}

// Call is one tool call on its way.
type Call struct {
	Run       agent.Run // as it is now; Run.Call is the call, with candidate and grants
	Name      string    // the tool's name as the model sent it
	Arguments string    // its arguments as the model sent them
	Edited    []byte    // a person's canonical arguments instead, or nil
	Head      string    // hash of the entry that opened the effect
}

// text is what is decoded: the person's arguments, where there are any.
func (c Call) text() string {
	if c.Edited != nil {
		return string(c.Edited)
	}
	return c.Arguments
}

// id is the call's own id, by which everything logged of it can be found.
func (c Call) id() string {
	if c.Run.Call == nil {
		return ""
	}
	return c.Run.Call.ID
}

// Bridge is the way from one run to its tool servers. It holds one connection for each
// server that has been needed, and is used for one effect at a time; Close may come at
// any time.
type Bridge struct {
	cfg      Config
	spec     agent.Spec
	registry *tools.Registry
	ids      requestIDs
	built    map[string]*tools.Tool // by the contract's name: the pinned definition, read
	prepared prepared

	ctx    context.Context // done once closed
	cancel context.CancelFunc
	mu     sync.Mutex
	conns  map[string]*connection // by prefix
	closed bool
}

// prepared is what the last Prepare of a call found, for the Send that follows it.
type prepared struct {
	call      string
	arguments []byte
}

var errClosed = errors.New("the bridge is closed")

// New makes the bridge of a run. It starts nothing and asks nobody. The error is one of
// configuration.
func New(cfg Config, spec agent.Spec) (*Bridge, error) {
	registry, err := tools.NewRegistry(cfg.Servers, cfg.Contracts)
	if err != nil {
		return nil, fmt.Errorf("bridge of run %s: %w", spec.Run, err)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	b := &Bridge{
		cfg: cfg, spec: spec, registry: registry,
		built: map[string]*tools.Tool{}, conns: map[string]*connection{},
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	return b, nil
}

// Exposed lists the tools that the run pinned for the model, in the order of the
// contracts. What it does not know yet it learns from [Config.Definition], or by asking
// the servers; a tool whose server does not answer, or whose definition is no longer
// the pinned one, is left out.
func (b *Bridge) Exposed() []ModelTool {
	var exposed []ModelTool
	asked := map[string]bool{}
	for _, pin := range b.spec.Tools {
		if pin.HostOnly {
			continue
		}
		t := b.tool(pin)
		if t == nil && !asked[pin.Server] {
			asked[pin.Server] = true
			if list, _, err := b.list(b.ctx, pin.Server); err == nil {
				b.learn(pin.Server, list)
			}
			t = b.tool(pin)
		}
		if t != nil {
			exposed = append(exposed, t.Model)
		}
	}
	return exposed
}

// Stderr is the end of what a server's present child has written to stderr, made
// visible; for the operator only.
func (b *Bridge) Stderr(prefix string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.conns[prefix]; c != nil {
		return c.proc.errors.text()
	}
	return ""
}

// Close gives up what is in flight, ends every child with its descendants and waits for
// them. Afterwards every call is `unavailable`. It may be called more than once.
func (b *Bridge) Close() error {
	b.mu.Lock()
	conns := b.conns
	b.conns, b.closed = map[string]*connection{}, true
	b.mu.Unlock()
	b.cancel()
	errs := make([]error, 0, len(conns))
	for _, c := range conns {
		c.wire.end(errClosed) // first of all: nothing waits while the children end
	}
	for prefix, c := range conns {
		if err := c.close(); err != nil {
			errs = append(errs, fmt.Errorf("close the server %s: %w", prefix, err))
		}
	}
	return errors.Join(errs...)
}

// tool is the pinned tool, ready to be used; nil if its definition is not known yet.
func (b *Bridge) tool(pin agent.Tool) *tools.Tool {
	if t := b.built[pin.Name]; t != nil {
		return t
	}
	if b.cfg.Definition == nil {
		return nil
	}
	raw := b.cfg.Definition(pin.Definition)
	if raw == nil {
		return nil
	}
	b.keep(pin, &entry{raw: raw})
	return b.built[pin.Name]
}

// keep reads a definition and keeps it if it is the pinned one.
func (b *Bridge) keep(pin agent.Tool, e *entry) {
	d, err := e.define()
	if err != nil || d.Digest != pin.Definition {
		return
	}
	c, ok := b.registry.Contract(pin.Name)
	if !ok {
		return
	}
	if t, err := tools.NewTool(c, d); err == nil {
		b.built[pin.Name] = t
	}
}

// learn keeps every pinned definition of a server's list that is not known yet.
func (b *Bridge) learn(prefix string, list listing) {
	for _, pin := range b.spec.Tools {
		if e := list[pin.Remote]; pin.Server == prefix && e != nil && b.built[pin.Name] == nil {
			b.keep(pin, e)
		}
	}
}

// list connects if need be and asks a server for its tools, anew.
func (b *Bridge) list(ctx context.Context, prefix string) (listing, *connection, error) {
	ctx, stop := b.with(ctx)
	defer stop()
	srv, ok := b.registry.Server(prefix)
	if !ok {
		return nil, nil, ReasonStart
	}
	c, err := b.connect(ctx, srv)
	if err != nil {
		return nil, nil, err
	}
	list, err := c.list(ctx, &b.ids, srv.Limit(), srv.ToolLimit())
	if err != nil {
		return nil, nil, b.unlessClosed(err)
	}
	return list, c, nil
}

// with ends what is under way when the bridge is closed.
func (b *Bridge) with(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(b.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

// unlessClosed says that the bridge was closed, if that is why something failed.
func (b *Bridge) unlessClosed(err error) error {
	if err != nil && b.ctx.Err() != nil {
		return errClosed
	}
	return err
}

// connection is the server's connection, if there is one that lives.
func (b *Bridge) connection(prefix string) (c *connection, ever bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c, ever = b.conns[prefix]
	if c != nil && !c.alive() {
		return nil, true
	}
	return c, ever
}

// connect returns the server's connection, and replaces one that is lost: a new child,
// a new handshake, the version checked again (SPEC A7).
func (b *Bridge) connect(ctx context.Context, srv tools.Server) (*connection, error) {
	if b.ctx.Err() != nil {
		return nil, errClosed
	}
	if c, _ := b.connection(srv.Prefix); c != nil {
		return c, nil
	}
	b.mu.Lock()
	lost := b.conns[srv.Prefix]
	b.mu.Unlock()
	if lost != nil {
		b.logConnection(srv.Prefix, lost, "lost")
		if err := lost.close(); err != nil {
			return nil, err
		}
	}
	cmd, err := b.cfg.launch(srv, b.registry.Contracts(), b.spec.Run)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ReasonStart, err)
	}
	c, err := dial(ctx, srv, cmd)
	if err != nil {
		return nil, b.unlessClosed(err)
	}
	if pin, ok := b.spec.Server(srv.Prefix); ok && pin.Protocol != "" && pin.Protocol != c.protocol {
		return nil, errors.Join(ReasonVersion, c.close())
	}
	b.mu.Lock()
	closed := b.closed
	if !closed {
		b.conns[srv.Prefix] = c
	}
	b.mu.Unlock()
	if closed {
		return nil, errors.Join(errClosed, c.close())
	}
	b.logConnection(srv.Prefix, c, "open")
	return c, nil
}
