package bridge

import (
	"github.com/rs/zerolog"

	"sallyport/agent"
	"sallyport/tools"
)

// The Host's log has one JSON line for each step of a call, found again by its
// correlation id, which is the call's id (SPEC C3). The bridge logs what it decides and
// what goes over the wire; proposal and final outcome are the nodes'. Lines hold fixed
// words, ids and sanitized arguments: no grant, key or scope, no argument that the
// contract redacts, no text of a server, and of what the model wrote only arguments
// that have been checked.

// The bridge's events.
const (
	eventConnection = "connection"
	eventDecision   = "decision"
	eventRequest    = "request"
	eventResponse   = "response"
	eventReadBack   = "read_back"
)

// The decisions of a Prepare.
const (
	decisionAllowed = "allowed"
	decisionRefused = "refused"
	decisionWaiting = "waiting"
)

func (b *Bridge) line(event string, c Call, pin agent.Tool) *zerolog.Event {
	return b.cfg.Log.Info().
		Str("event", event).
		Str("correlation_id", c.id()).
		Str("run", b.spec.Run).
		Str("tool", pin.Name).
		Str("server", pin.Server)
}

func (b *Bridge) sanitized(e *zerolog.Event, pin agent.Tool, arguments []byte) *zerolog.Event {
	c, ok := b.registry.Contract(pin.Name)
	if !ok || arguments == nil {
		return e
	}
	return e.RawJSON("sanitized_arguments", tools.Sanitize(arguments, c))
}

// approved adds who signed, where somebody had to.
func approved(e *zerolog.Event, c Call, pin agent.Tool) *zerolog.Event {
	if pin.Approvers == 0 || c.Run.Call == nil || len(c.Run.Call.Grants) == 0 {
		return e
	}
	names := make([]string, len(c.Run.Call.Grants))
	for i, g := range c.Run.Call.Grants {
		names[i] = g.Approver
	}
	return e.Strs("approver", names)
}

func (b *Bridge) logDecision(p preparation, no *refusal) {
	e := b.sanitized(b.line(eventDecision, p.call, p.pin), p.pin, p.arguments)
	e = approved(e, p.call, p.pin)
	if no == nil {
		e.Str("decision", decisionAllowed).Str("definition", p.pin.Definition).
			Str("protocol", p.conn.protocol).Msg(eventDecision)
		return
	}
	decision := decisionRefused
	if no.candidate != nil {
		decision = decisionWaiting
		e = e.Str("candidate", no.candidate.ID)
	}
	e.Str("decision", decision).Str("status", string(no.Status)).Str("class", string(no.Class)).
		Str("reason", no.Reason).Str("detail", no.detail).Msg(eventDecision)
}

func (b *Bridge) logRequest(s *sending, sent []byte) {
	e := b.sanitized(b.line(eventRequest, s.call, s.pin), s.pin, sent) // leaves the grant field out
	approved(e, s.call, s.pin).Str("mcp_request_id", s.id).Msg(eventRequest)
}

func (b *Bridge) logResponse(s sending, out outcome) {
	b.line(eventResponse, s.call, s.pin).Str("mcp_request_id", s.id).Bool("sent", out.Sent).
		Str("status", string(out.Status)).Str("class", string(out.Class)).
		Str("reason", out.Reason).Str("detail", out.detail).Int("bytes", len(out.body)).Msg(eventResponse)
}

func (b *Bridge) logFinding(r readBack, found agent.Verified) {
	b.line(eventReadBack, r.call, r.write).Str("mcp_request_id", r.id).
		Str("finding", string(found.Finding)).Str("reason", found.Reason).Msg(eventReadBack)
}

func (b *Bridge) logConnection(prefix string, c *connection, what string) {
	e := b.cfg.Log.Info().Str("event", eventConnection).Str("run", b.spec.Run).
		Str("server", prefix).Str("connection", what).Str("protocol", c.protocol)
	if why := c.wire.reason(); why != nil {
		e = e.Str("detail", detail(why))
	}
	e.Msg(eventConnection)
}
