package audit

import (
	"slices"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// call is the call in hand, as the entries tell it.
type call struct {
	id        string
	proposal  agent.Proposal
	tool      agent.Tool // pinned; a read without a name if the run has none of that name
	edited    *agent.BodyRef
	candidate *grant.Candidate // pending, or granted
	head      int64            // the entry that the candidate's head is the hash of
	approvals []approval       // of the candidate, by different persons
	sent      int64            // the entry of the intent
	status    agent.Status     // as returned, decided or settled
	left      bool             // a request left the Host, or may have
}

// approval is a grant that was verified here.
type approval struct {
	key, name string
	expires   int64
}

// writes reports whether the call may change something. A nil call does not.
func (c *call) writes() bool { return c != nil && c.tool.Risk.Writes() }

// unknown reports whether nobody knows what became of a write.
func (c *call) unknown() bool {
	return c.writes() && c.left && c.status == agent.StatusResultUnknown
}

// signatures is how many a Send of the tool needs: what was pinned, and never less
// than its risk asks for. What only voids candidates needs none.
func signatures(t agent.Tool) int {
	switch t.Risk {
	case agent.RiskWrite:
		return max(t.Approvers, 1)
	case agent.RiskDestructive:
		return max(t.Approvers, 2)
	case agent.RiskRead, agent.RiskSettle:
	}
	return t.Approvers
}

// begin takes the next call of the turn in hand.
func (w *witness) begin() {
	t := w.turn
	if t == nil || t.next >= len(t.calls) {
		w.fails(BreakResult, "the turn has no further call")
		return
	}
	p := t.calls[t.next]
	w.call = &call{id: agent.CallID(w.spec.Run, t.seq, t.next), proposal: p, tool: agent.Tool{Risk: agent.RiskRead}}
	if tool, ok := w.spec.Tool(p.Tool); ok {
		w.call.tool = tool
		if tool.HostOnly {
			w.fails(BreakGrant, "the model proposes %q, which is for the Host only", p.Tool)
		}
	}
	t.next++
	w.deadline = time.Time{}
	w.counts.Calls++
}

// inHand is the call that an event is about.
func (w *witness) inHand(kind agent.Kind) (*call, bool) {
	if w.call == nil {
		w.fails(BreakResult, "%s without a call", kind)
	}
	return w.call, w.call != nil
}

// sends checks the promise that matters most: what is sent was not sent before, and
// if it changes something, the required persons have signed exactly its bytes.
func (w *witness) sends(s agent.Checked) {
	w.intent()
	c, ok := w.inHand(agent.KindChecked)
	if !ok {
		return
	}
	if c.sent != 0 {
		w.fails(BreakSpent, "call %s was sent by entry %d already", c.id, c.sent)
	}
	c.sent = w.seq
	switch {
	case w.open != nil && !w.open.released:
		w.fails(BreakEffect, "it is sent while the run is paused")
	case c.tool.Name == "":
		w.fails(BreakGrant, "it is sent to a tool that the run has not pinned")
	case s.Definition != c.tool.Definition:
		w.fails(BreakGrant, "the definition of %q is not the pinned one", c.tool.Name)
	case c.edited != nil && *c.edited != s.Arguments:
		w.fails(BreakGrant, "the arguments are not those of the edit")
	}
	if need := signatures(c.tool); need > 0 {
		w.counts.Writes++
		w.granted(c, s, need)
	}
}

// granted checks the signatures of a Send. That the candidate is for this call, this
// tool and the pinned definition was checked when it was made.
func (w *witness) granted(c *call, s agent.Checked, need int) {
	cand := c.candidate
	switch {
	case cand == nil:
		w.fails(BreakGrant, "a call of %q is sent that nobody was asked about", c.tool.Name)
		return
	case len(c.approvals) < need:
		w.fails(BreakGrant, "a call of %q is sent with %d of %d signatures", c.tool.Name, len(c.approvals), need)
	case cand.Arguments != s.Arguments.SHA256 || cand.Bytes != s.Arguments.Bytes:
		w.fails(BreakGrant, "the bytes that are sent are %s; signed is sha256:%s#0-%d", s.Arguments, cand.Arguments, cand.Bytes)
	case slices.ContainsFunc(c.approvals, func(a approval) bool { return w.time.Unix() >= a.expires }):
		w.fails(BreakGrant, "a grant had expired when the call was sent")
	}
	if by, used := w.spent[cand.ID]; used {
		w.fails(BreakSpent, "candidate %s was used by entry %d already", cand.ID, by)
	}
	w.spent[cand.ID] = w.seq
}

// statuses are what a call can return.
var statuses = []agent.Status{
	agent.StatusOK, agent.StatusRejected, agent.StatusFailed, agent.StatusResultUnknown,
	agent.StatusUnavailable, agent.StatusWaitingApproval,
}

// returned takes the outcome of Prepare or Send.
func (w *witness) returned(e *agent.Entry, r agent.Returned) {
	c, ok := w.inHand(agent.KindReturned)
	if !ok {
		return
	}
	if e.Carried != 0 {
		w.takesOver(c, r)
		return
	}
	if r.Counted || r.Edited || r.Settled {
		w.fails(BreakFork, "an outcome of this run says what it was in another")
	}
	if r.Substituted {
		w.given(c, r.Outcome, false)
		c.status, c.left = r.Status, false
		return
	}
	bySend := w.open != nil && w.open.Kind == agent.Send
	switch {
	case !slices.Contains(statuses, r.Status):
		w.fails(BreakResult, "the status %q is none", r.Status)
	case (r.Status == agent.StatusWaitingApproval) != (r.Candidate != nil):
		w.fails(BreakGrant, "a candidate and waiting_approval go together")
	case bySend && r.Status == agent.StatusWaitingApproval:
		w.fails(BreakResult, "a call that was sent waits for nobody")
	case !bySend && (r.Sent || r.Status == agent.StatusOK || r.Status == agent.StatusResultUnknown):
		w.fails(BreakResult, "a call that was not sent returned %s", r.Status)
	case bySend && c.writes() && r.Sent && r.Status == agent.StatusUnavailable:
		w.fails(BreakResult, "a write that was sent is not merely unavailable")
	}
	c.status, c.left = r.Status, r.Sent
	if r.Candidate != nil {
		w.asks(c, r)
	}
}

// observed takes what the model is told: the one final result, unless the call waits
// or its outcome is unknown.
func (w *witness) observed(e *agent.Entry, o agent.Observed) {
	c, ok := w.inHand(agent.KindObserved)
	if !ok {
		return
	}
	if c.status != agent.StatusOK && o.Status != c.status {
		w.fails(BreakResult, "%s was observed of a call that returned %s", o.Status, c.status)
	}
	c.status = o.Status
	switch e.Row {
	case agent.RowApprovalRequired:
		w.waits(c)
	case agent.RowOutcomeUnknown:
		if !c.unknown() {
			w.fails(BreakResult, "the outcome of the call is known: %s", c.status)
		}
	default:
		w.final(e, c, o)
	}
}

// final closes the call, and begins the next one if there is one.
func (w *witness) final(e *agent.Entry, c *call, o agent.Observed) {
	switch {
	case o.Message.IsZero():
		w.fails(BreakResult, "call %s was closed without a result", c.id)
	case c.unknown():
		w.fails(BreakResult, "call %s was closed though nobody knows what became of it", c.id)
	case c.status == agent.StatusWaitingApproval:
		w.fails(BreakResult, "call %s was closed while it waits", c.id)
	default:
		w.counts.Results++
	}
	w.call = nil
	if e.Row == agent.RowNextCall {
		if w.overWall() {
			w.fails(BreakBudget, "it goes on after %v of %d s", w.counts.Wall, w.budget.Wall)
		}
		w.begin()
		return
	}
	if t := w.turn; e.Row == agent.RowNextTurn && t != nil && t.next < len(t.calls) {
		w.fails(BreakResult, "%d calls of the turn were passed over", len(t.calls)-t.next)
	}
	w.turn = nil
}

// settles takes the verdict of evidence, or of a person, on an unknown outcome.
func (w *witness) settles(e *agent.Entry, f agent.Finding) {
	c, ok := w.inHand(e.Event)
	if !ok {
		return
	}
	if w.state != agent.StateNeedsVerification || !c.unknown() {
		w.fails(BreakResult, "an outcome was settled that is not unknown")
	}
	want := agent.RowSettled
	switch f {
	case agent.Applied:
		c.status = agent.StatusOK
	case agent.NotApplied:
		c.status = agent.StatusFailed
	case agent.Undecided:
		want = agent.RowUndecided
	default:
		w.fails(BreakResult, "the finding %q is none", f)
		return
	}
	if e.Row != want {
		w.fails(BreakResult, "the finding %s was taken as %s", f, e.Row)
	}
}
