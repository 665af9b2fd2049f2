package bridge

import (
	"context"
	"time"

	"sallyport/agent"
	"sallyport/tools"
	"sallyport/tools/strictjson"
)

// Send sends exactly one tools/call for a call that Prepare has checked, waits at most
// the tool's time limit in total, and classifies what comes back (SPEC B8, B9). It never
// connects again: where the connection is gone before a byte was written, the call is
// `unavailable` and not sent. The one exception is a read whose Send is repeated by a
// new process after a crash: it opens the connection and checks the definition first.
//
// Body holds the raw result, or the error object, for the operator. The error is one of
// the runtime: the arguments that were checked cannot be had.
func (b *Bridge) Send(ctx context.Context, c Call) (agent.Returned, []agent.Body, error) {
	ctx, stop := b.with(ctx)
	defer stop()
	pin, _ := b.spec.Tool(c.Name)
	s := sending{b: b, call: c, pin: pin, writes: pin.Risk.Writes()}
	out := s.perform(ctx)
	returned := agent.Returned{Outcome: out.Outcome}
	var bodies []agent.Body
	if out.body != nil {
		body := agent.NewBody(out.body)
		returned.Body, bodies = body.Ref, append(bodies, body)
	}
	b.logResponse(s, out)
	return returned, bodies, nil
}

// sending is one Send under way.
type sending struct {
	b      *Bridge
	call   Call
	pin    agent.Tool
	writes bool
	tool   *tools.Tool
	conn   *connection
	id     string // of the MCP request
}

// outcome is an outcome with the bytes that it is about.
type outcome struct {
	agent.Outcome
	detail string
	body   []byte
}

func (s *sending) perform(ctx context.Context) outcome {
	arguments, no := s.ready(ctx)
	if no != nil {
		return outcome{Outcome: no.Outcome, detail: no.detail}
	}
	s.id = s.b.ids.next()
	srv, _ := s.b.registry.Server(s.pin.Server)
	s.b.logRequest(s, arguments)
	f, sent, err := s.conn.callTool(ctx, s.tool.Contract.Limit(srv), s.id, s.pin.Remote, arguments)
	if err != nil {
		return s.lost(s.b.unlessClosed(err), sent)
	}
	out := judge(s.tool, s.writes, f)
	out.Sent, out.Request = true, s.id
	return out
}

// callTool sends one tools/call.
func (c *connection) callTool(ctx context.Context, limit time.Duration, id, name string, arguments []byte) (frame, bool, error) {
	text, err := strictjson.Encode(name)
	if err != nil {
		return frame{}, false, err
	}
	return c.request(ctx, limit, id, "tools/call", []param{{"name", text}, {"arguments", arguments}})
}

// ready finds connection, tool and the exact bytes to send, the grant included.
func (s *sending) ready(ctx context.Context) ([]byte, *refusal) {
	conn, ever := s.b.connection(s.pin.Server)
	if conn == nil && !ever && !s.writes {
		if no := s.reopen(ctx); no != nil {
			return nil, no
		}
		conn, _ = s.b.connection(s.pin.Server)
	}
	s.conn, s.tool = conn, s.b.tool(s.pin)
	if conn == nil || s.tool == nil {
		reason := ReasonLost
		if s.b.ctx.Err() != nil {
			reason = ReasonClosed
		}
		return nil, refuse(agent.StatusUnavailable, agent.ClassProtocolError, reason, "not_sent")
	}
	arguments, ok := s.b.arguments(s.call, s.tool)
	if !ok {
		return nil, refuse(agent.StatusRejected, agent.ClassPermissionRefused, ReasonArgumentsInvalid, "other_than_checked")
	}
	if s.pin.Approvers == 0 {
		return arguments, nil
	}
	signed, err := s.tool.WithGrant(arguments, s.call.wire(s.pin.Approvers))
	if err != nil {
		return nil, rejected(ReasonArgumentsInvalid, "grant_field")
	}
	return signed, nil
}

// reopen is rows 5 and 6 of SPEC B10 once more, for a read that another process had
// begun to send.
func (s *sending) reopen(ctx context.Context) *refusal {
	list, _, err := s.b.list(ctx, s.pin.Server)
	if err != nil {
		reason, class := cause(err)
		return refuse(agent.StatusUnavailable, class, reason, detail(err))
	}
	s.b.learn(s.pin.Server, list)
	return definitionRefusal(s.pin, list)
}

// arguments are the canonical bytes of a call that has been checked: from its Prepare,
// else read again. They count only if they are the bytes that the journal names.
func (b *Bridge) arguments(c Call, t *tools.Tool) ([]byte, bool) {
	if c.Run.Call == nil {
		return nil, false
	}
	want := c.Run.Call.Arguments
	try := func(data []byte, err error) bool {
		return err == nil && agent.NewBody(data).Ref == want
	}
	if data := b.prepared.arguments; b.prepared.call == c.id() && try(data, nil) {
		return data, true
	}
	if t != nil {
		if data, err := t.DecodeArguments(c.text()); try(data, err) {
			return data, true
		}
	}
	data, err := strictjson.Canonical([]byte(c.text()))
	return data, try(data, err)
}

// lost is the outcome of a request that got no reply (SPEC B8): of a write nobody knows
// what became, unless no byte of it left the Host.
func (s *sending) lost(err error, sent bool) outcome {
	reason, class := cause(err)
	out := outcome{detail: detail(err)}
	out.Status, out.Class, out.Reason, out.Sent = agent.StatusUnavailable, class, reason, sent
	if sent {
		out.Request = s.id
		if reason == ReasonClosed {
			out.Reason = ReasonLost // the request had gone already
		}
	}
	if s.writes && sent {
		out.Status = agent.StatusResultUnknown
	}
	return out
}
