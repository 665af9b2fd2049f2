package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/tools"
)

// perRequest is the first protocol version in which every request says who asks.
const perRequest = "2026-07-28"

// firstRequest is where the bridge's own request ids begin. The SDK's, for opening the
// session, count from 1.
const firstRequest = 1000

// connection is one server's child with an open session.
type connection struct {
	proc     *process
	wire     *wire
	session  *mcp.ClientSession
	protocol string          // negotiated, and accepted
	meta     json.RawMessage // what every request carries in _meta; nil before perRequest
	pages    []page          // of the last list, for when the same bytes come again
}

// requestIDs numbers the requests of one bridge.
type requestIDs struct{ n atomic.Int64 }

func (r *requestIDs) next() string { return strconv.FormatInt(firstRequest+r.n.Add(1), 10) }

// dial starts the server and opens a session, within the server's time limit. The
// error is of a kind that [cause] knows.
func dial(ctx context.Context, srv tools.Server, cmd command) (*connection, error) {
	ctx, cancel := context.WithTimeout(ctx, srv.Limit())
	defer cancel()
	proc, err := startProcess(cmd)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ReasonStart, err)
	}
	c := &connection{proc: proc, wire: newWire(proc.stdout, proc.stdin)}
	if err := c.handshake(ctx, srv); err != nil {
		err = errors.Join(err, c.close())
		return nil, &dialError{err: err, stderr: proc.errors.text(), ending: proc.ending()}
	}
	return c, nil
}

// dialError is a failed handshake, with what the server wrote to stderr: that part is
// for the operator only, and not in the error's text.
type dialError struct {
	err    error
	stderr string
	ending string // of the process, if it ended by itself
}

func (e *dialError) Error() string { return "open a session: " + e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

func (c *connection) handshake(ctx context.Context, srv tools.Server) error {
	client := mcp.NewClient(self, &mcp.ClientOptions{
		Capabilities:   &mcp.ClientCapabilities{},
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true},
	})
	session, err := client.Connect(ctx, c.wire, &mcp.ClientSessionOptions{ProtocolVersion: srv.Accepts()[0]})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !c.wire.alive() && !errors.Is(c.wire.reason(), errHungUp):
		return c.wire.reason()
	case err != nil:
		return ReasonVersion // the server refuses every version that is offered, or answers it badly
	}
	c.session, c.protocol = session, session.InitializeResult().ProtocolVersion
	if !slices.Contains(srv.Accepts(), c.protocol) {
		return ReasonVersion
	}
	if c.protocol >= perRequest {
		c.meta, err = json.Marshal(map[string]any{
			mcp.MetaKeyProtocolVersion:    c.protocol,
			mcp.MetaKeyClientInfo:         self,
			mcp.MetaKeyClientCapabilities: struct{}{},
		})
	}
	return err
}

// self is what a server is told about the Host.
var self = &mcp.Implementation{Name: "sallyport", Version: "0"}

// request sends one request and waits for its reply within limit. members are those of
// params, as JSON; _meta is added.
func (c *connection) request(ctx context.Context, limit time.Duration, id, method string, params []param) (frame, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if c.meta != nil {
		params = append(params, param{"_meta", c.meta})
	}
	return c.wire.exchange(ctx, id, method, object(params))
}

// param is one member of an object whose name needs no escapes.
type param struct {
	name  string
	value []byte // JSON
}

func object(members []param) []byte {
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, '"'), m.name...), '"', ':')
		out = append(out, m.value...)
	}
	return append(out, '}')
}

// alive reports whether the connection can still be used, as far as anybody knows.
func (c *connection) alive() bool { return c.wire.alive() }

// close gives up what is in flight, then ends the child with all its descendants.
func (c *connection) close() error {
	c.wire.end(errLost)
	if c.session != nil {
		_ = c.session.Close() // has nothing in flight, and the stream is closed already
	}
	err := c.proc.close()
	c.wire.wait()
	return err
}
