package audit

import (
	"slices"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// What persons sign. Every signature is opened here anew, against the keys that the
// first entry pins, at the time of the entry that brings it.

// keys are the pinned keys that hold at the time of the entry in hand.
func (w *witness) keys() grant.Keys {
	var keys grant.Keys
	for _, a := range w.spec.Approvers {
		k, err := grant.ParsePublicKey(a.Key)
		if err == nil && (a.NotAfter.IsZero() || w.time.Before(a.NotAfter)) {
			keys = append(keys, k)
		}
	}
	return keys
}

// scripted reports whether nobody holds the key.
func (w *witness) scripted(k grant.PublicKey) bool {
	return slices.ContainsFunc(w.spec.Approvers, func(a agent.Approver) bool {
		return a.Scripted && a.Key == k.String()
	})
}

// asks takes the candidate of a call, and holds it against everything that the
// entries say themselves.
func (w *witness) asks(c *call, r agent.Returned) {
	cand, tool := *r.Candidate, c.tool
	server, _ := w.spec.Server(tool.Server)
	c.candidate, c.approvals, c.head = nil, nil, 0
	switch {
	case cand.Check() != nil:
		w.fails(BreakGrant, "the candidate is malformed: %v", cand.Check())
	case cand.Run != w.spec.Run || cand.Call != c.id:
		w.fails(BreakGrant, "the candidate is for another call")
	case cand.Tool != tool.Remote || cand.Definition != tool.Definition || cand.Audience != server.Audience || cand.Scope != server.Scope:
		w.fails(BreakGrant, "the candidate is for another tool")
	case cand.Arguments != r.Arguments.SHA256 || cand.Bytes != r.Arguments.Bytes:
		w.fails(BreakGrant, "the candidate is for other arguments")
	case c.edited != nil && *c.edited != r.Arguments:
		w.fails(BreakGrant, "the candidate is not for the edited arguments")
	case w.open == nil || cand.Head != w.open.head:
		w.fails(BreakGrant, "the candidate names another history")
	case w.spent[cand.ID] != 0:
		w.fails(BreakSpent, "candidate %s was used by entry %d already", cand.ID, w.spent[cand.ID])
	case w.refusedBefore(c, cand):
		c.status, c.left = agent.StatusRejected, false
	default:
		c.candidate, c.head = &cand, w.open.Seq
	}
}

// waits begins the wait for a person. The fourth candidate of a tool, after three
// that nobody approved, holds the run.
func (w *witness) waits(c *call) {
	if c.candidate == nil || c.status != agent.StatusWaitingApproval {
		w.fails(BreakApproval, "there is nothing to approve")
	}
	if !w.deadline.IsZero() {
		return
	}
	w.deadline = w.time.Add(seconds(c.tool.Expires))
	times := 0
	for _, t := range w.turnedDown {
		if t.tool == c.proposal.Tool {
			times++
		}
	}
	w.held = w.held || times >= agent.MaxTurnedDown
}

// turnedDown is a candidate that was refused or has expired.
type turnedDown struct {
	tool, arguments string
	refused         bool
}

// turnDown ends the wait without an approval.
func (w *witness) turnDown(refused bool) {
	c := w.call
	w.turnedDown = append(w.turnedDown, turnedDown{c.proposal.Tool, c.candidate.Arguments, refused})
	c.status, c.left = agent.StatusRejected, false
	c.candidate, c.approvals = nil, nil
	w.deadline = time.Time{}
}

// refusedBefore reports whether a person has refused this very call.
func (w *witness) refusedBefore(c *call, cand grant.Candidate) bool {
	return c.edited == nil && slices.Contains(w.turnedDown, turnedDown{c.proposal.Tool, cand.Arguments, true})
}

// pending is the call whose candidate waits for a person, if one does in time.
func (w *witness) pending(kind agent.Kind) (*call, bool) {
	c := w.call
	switch {
	case w.state != agent.StateAwaitingApproval || c == nil || c.candidate == nil:
		w.fails(BreakApproval, "%s while no candidate waits", kind)
	case !w.deadline.IsZero() && !w.time.Before(w.deadline):
		w.fails(BreakApproval, "%s after the candidate had expired", kind)
	default:
		return c, true
	}
	return nil, false
}

// name checks that a signed decision is recorded under its signer's name.
func (w *witness) name(e *agent.Entry, by grant.PublicKey) {
	if e.Actor != by.Name {
		w.fails(BreakSignature, "recorded as the word of %q, signed by %s", e.Actor, by.Name)
	}
}

func (w *witness) approved(e *agent.Entry, a agent.Approve) {
	c, ok := w.pending(e.Event)
	if !ok {
		return
	}
	claims, by, err := w.keys().OpenGrant(a.Grant)
	if err != nil {
		w.fails(BreakSignature, "the grant is not one: %v", err)
		return
	}
	w.name(e, by)
	taken := w.grants[a.Grant]
	switch {
	case taken != 0:
		w.fails(BreakSpent, "the grant was taken in by entry %d already", taken)
	case !claims.Candidate.Equal(*c.candidate):
		w.fails(BreakGrant, "the grant of %s is for another candidate", by.Name)
	case claims.CheckTime(w.time) != nil:
		w.fails(BreakGrant, "the grant of %s: %v", by.Name, claims.CheckTime(w.time))
	case claims.Expires-claims.NotBefore > c.tool.UseWithin+agent.GrantSkew:
		w.fails(BreakGrant, "the grant of %s lasts longer than the contract allows", by.Name)
	case slices.ContainsFunc(c.approvals, func(o approval) bool { return o.key == string(by.Key) || o.name == by.Name }):
		w.fails(BreakGrant, "%s has signed the candidate already", by.Name)
	default:
		w.accepts(e, c, by, a.Grant, claims)
	}
	if enough := len(c.approvals) >= signatures(c.tool); enough != (e.Row == agent.RowGranted) {
		w.fails(BreakGrant, "%d of %d signatures were taken as %s", len(c.approvals), signatures(c.tool), e.Row)
	}
}

// accepts books a grant that is good.
func (w *witness) accepts(e *agent.Entry, c *call, by grant.PublicKey, wire string, claims grant.Claims) {
	c.approvals = append(c.approvals, approval{string(by.Key), by.Name, claims.Expires})
	w.grants[wire] = e.Seq
	w.counts.Grants++
	*w.signed = &Signed{Seq: c.head, Head: c.candidate.Head, Approver: by.Name, By: e.Seq}
	if w.scripted(by) {
		w.find(e.Seq, OpenScripted, "%s signed with a key made for a demo or a scenario: nobody was asked", by.Name)
	}
}

func (w *witness) refused(e *agent.Entry, r agent.Refuse) {
	c, ok := w.pending(e.Event)
	if !ok {
		return
	}
	if r.Candidate != c.candidate.ID {
		w.fails(BreakApproval, "the refusal is for another candidate than the pending one")
	}
	if r.Signed != "" {
		d, by, err := w.keys().OpenRefusal(r.Signed)
		switch {
		case err != nil:
			w.fails(BreakSignature, "the refusal is not one: %v", err)
		case d.Run != w.spec.Run || d.Candidate != c.candidate.ID:
			w.fails(BreakSignature, "the refusal was signed for another candidate")
		default:
			w.name(e, by)
			w.counts.Statements++
		}
	}
	w.turnDown(true)
}

func (w *witness) edited(e *agent.Entry, ed agent.Edit) {
	c, ok := w.pending(e.Event)
	if !ok {
		return
	}
	d, by, err := w.keys().OpenEdit(ed.Signed)
	switch cand := c.candidate; {
	case err != nil:
		w.fails(BreakSignature, "the edit is not one: %v", err)
	case d.Run != w.spec.Run || d.Candidate != cand.ID || d.Head != cand.Head:
		w.fails(BreakSignature, "the edit was signed for another candidate")
	case d.Arguments != ed.Arguments.SHA256 || d.Bytes != ed.Arguments.Bytes:
		w.fails(BreakSignature, "the edit was signed for other arguments")
	default:
		w.name(e, by)
		w.counts.Statements++
	}
	c.edited, c.candidate, c.approvals = &ed.Arguments, nil, nil
	w.deadline = time.Time{}
}

func (w *witness) attested(e *agent.Entry, a agent.Attest) {
	c, ok := w.inHand(e.Event)
	if !ok {
		return
	}
	d, by, err := w.keys().OpenStatement(a.Signed)
	switch {
	case err != nil:
		w.fails(BreakSignature, "the statement is not one: %v", err)
		return
	case d.Run != w.spec.Run || d.Call != c.id:
		w.fails(BreakSignature, "the statement was signed about another call")
		return
	}
	w.name(e, by)
	w.counts.Statements++
	verdicts := map[string]agent.Finding{
		grant.VerdictApplied: agent.Applied, grant.VerdictNotApplied: agent.NotApplied, grant.VerdictUnknown: agent.Undecided,
	}
	w.settles(e, verdicts[d.Verdict])
}
