package nodes

import (
	"time"

	"github.com/rs/zerolog"

	"sallyport/agent"
)

// The Host's log: one JSON line per step of a call, joined by the correlation id,
// which is the call's id (SPEC C3). It holds fixed words, ids and names that the
// operator gave: no text of a model or a tool. The bridge writes the lines of the
// decision and of the request.

// logStep starts the line of a step of the call in hand.
func (n *Nodes) logStep(t agent.Task, event string, p agent.ProposalBody) *zerolog.Event {
	pin := pinned(t.Run)
	e := n.log.Info().
		Str("correlation_id", t.Run.Call.ID).
		Str("run", t.Run.ID).
		Str("event", event).
		Str("tool", pin.Name).
		Str("model_call_id", plainID(p.ID))
	if pin.Server != "" {
		e = e.Str("server", pin.Server)
	}
	return e
}

// logProposal notes a call before it is prepared for the first time: not when a
// grant or an edit prepares it again.
func (n *Nodes) logProposal(t agent.Task, p agent.ProposalBody) {
	c := t.Run.Call
	if c.Candidate != nil || c.Edited {
		return
	}
	n.logStep(t, "proposal", p).Int("index", c.Index).Str("proposal_sha256", c.Proposal.Body.SHA256).Send()
}

// logOutcome notes what became of a call, as the Host classifies it.
func (n *Nodes) logOutcome(o outcome) {
	out := o.task.Run.Call.Outcome
	e := n.logStep(o.task, "outcome", o.proposal).
		Str("status", string(o.seen.Status)).
		Str("class", string(o.seen.Class)).
		Str("reason", o.seen.Reason)
	if out.Request != "" {
		e = e.Str("mcp_request_id", out.Request)
	}
	e.Bool("final", !o.open()).Send()
}

// logOwn is what the bridge logs of other tools: the decision about a call, its request,
// and the response. The arguments have been checked and none is secret.
func (n *Nodes) logOwn(t agent.Task, event string, arguments []byte, out *agent.Outcome) {
	e := n.log.Info().Str("event", event).Str("correlation_id", t.Run.Call.ID).Str("run", t.Run.ID).
		Str("tool", OpenBody).Str("server", HostServer)
	if arguments != nil {
		e = e.RawJSON("sanitized_arguments", arguments)
	}
	if event != "decision" {
		e = e.Str("mcp_request_id", ownRequest(t))
	} else if out == nil {
		e = e.Str("decision", "allowed").Str("definition", pinned(t.Run).Definition)
	} else {
		e = e.Str("decision", "refused")
	}
	if out != nil {
		e = e.Str("status", string(out.Status)).Str("class", string(out.Class)).Str("reason", out.Reason).Bool("sent", out.Sent)
	}
	e.Msg(event)
}

// logFinding notes what a read-back says of a write whose outcome was unknown.
func (n *Nodes) logFinding(t agent.Task, p agent.ProposalBody, v agent.Verified) {
	n.logStep(t, "finding", p).Str("finding", string(v.Finding)).Str("reason", v.Reason).Send()
}

func (n *Nodes) logTurn(t agent.Task, r agent.Result, reply Reply, took time.Duration) {
	e := n.log.Info().Str("run", t.Run.ID).Str("event", "turn").
		Int("calls", len(reply.Calls)).
		Int64("input_tokens", reply.Usage.Input).
		Int64("output_tokens", reply.Usage.Output).
		Dur("took_ms", took)
	if reply.Usage.Cached > 0 {
		e = e.Int64("cached_tokens", reply.Usage.Cached)
	}
	if len(reply.Adjusted) > 0 {
		e = e.Strs("adjusted", reply.Adjusted) // fixed words
	}
	if no, ok := r.(agent.TurnRefused); ok {
		e = e.Str("refused", no.Reason)
	}
	e.Send()
}

func (n *Nodes) logUnreached(t agent.Task, reason string, u *Unavailable) {
	n.log.Warn().Str("run", t.Run.ID).Str("event", "model_unreached").
		Str("reason", reason).Bool("final", u.Final).AnErr("error", u.Err).Send()
}

// plainID is the model's own id of a call, as it may stand in the log. One that is
// more than plain letters, digits and marks is text, and only its hash is logged.
func plainID(id string) string {
	for _, r := range id {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
			r == '_' || r == '-' || r == '.' || r == ':'
		if !plain {
			return "sha256:" + agent.NewBody([]byte(id)).Ref.SHA256
		}
	}
	return id
}
