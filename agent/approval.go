package agent

import (
	"slices"
	"time"

	"sallyport/tools/grant"
)

// What persons and operators decide. Signed decisions are verified here, against
// the keys that the run's first entry pinned.

func (s *stepper) approve(e Approve) (Row, error) {
	c, err := s.pending()
	if err != nil {
		return "", err
	}
	claims, by, err := s.keys().OpenGrant(e.Grant)
	if err != nil {
		return "", refuse(CodeForged, "%v", err)
	}
	if !claims.Candidate.Equal(*c.Candidate) {
		return "", refuse(CodeOther, "the grant is for another candidate than the pending one")
	}
	if err := s.timely(claims); err != nil {
		return "", err
	}
	if err := s.entitled(by); err != nil {
		return "", err
	}
	for _, g := range c.Grants {
		if g.Key == by.ID() || g.Approver == by.Name { // one person's old and new key are one approver
			return "", refuse(CodeTwice, "%s has signed this candidate already", by.Name)
		}
	}
	s.ev.actor = by.Name
	c.Grants = append(slices.Clip(c.Grants), Grant{
		Wire: e.Grant, Key: by.ID(), Approver: by.Name, Expires: claims.Expires,
	})
	if len(c.Grants) < s.run.tool().Approvers {
		return RowEndorsed, nil
	}
	s.wants = Prepare
	return RowGranted, nil
}

// entitled checks that the key may sign for this tool: its role, and that whoever began
// the run does not count as a second pair of eyes unless the contract says so.
func (s *stepper) entitled(by grant.PublicKey) error {
	tool := s.run.tool()
	if tool.Role != "" && !s.holds(by, tool.Role) {
		return refuse(CodeKey, "%s does not hold the role %q, which %s needs", by.Name, tool.Role, tool.Name)
	}
	if tool.Approvers > 1 && !tool.OwnKey && by.Name == s.run.Operator {
		return refuse(CodeKey, "%s began the run, and the contract of %s does not let its operator approve", by.Name, tool.Name)
	}
	return nil
}

func (s *stepper) holds(by grant.PublicKey, role string) bool {
	return slices.ContainsFunc(s.run.Spec.Approvers, func(a Approver) bool {
		k, err := grant.ParsePublicKey(a.Key)
		return err == nil && k.ID() == by.ID() && slices.Contains(a.Roles, role)
	})
}

// timely checks a grant against the clock of the event, and its length against what
// the contract allows.
func (s *stepper) timely(c grant.Claims) error {
	if err := s.inTime(); err != nil {
		return err
	}
	if err := c.CheckTime(s.run.Time); err != nil {
		return refuse(CodeLate, "%v", err)
	}
	if use := s.run.tool().UseWithin; c.Expires-c.NotBefore > use+GrantSkew {
		return refuse(CodeOther, "the grant lasts longer than the contract allows (%d s)", use)
	}
	return nil
}

// GrantSkew is how far before its signing time a grant begins to hold, in seconds:
// the clocks of signer and server may differ by that much.
const GrantSkew = 60

func (s *stepper) inTime() error {
	if !s.run.Deadline.IsZero() && !s.run.Time.Before(s.run.Deadline) {
		return refuse(CodeLate, "the candidate expired at %s", s.run.Deadline.Format(time.RFC3339))
	}
	return nil
}

// pending returns a copy of the call that waits for approval.
func (s *stepper) pending() (*Call, error) {
	if s.run.State != StateAwaitingApproval || s.run.Call == nil || s.run.Call.Candidate == nil {
		return nil, refuse(CodeNotWaiting, "no candidate is pending: the run is in state %s", s.run.State)
	}
	return s.call(), nil
}

// keys are the pinned approver keys that still hold at the event's time.
func (s *stepper) keys() grant.Keys {
	var keys grant.Keys
	for _, a := range s.run.Spec.Approvers {
		if !a.NotAfter.IsZero() && !s.run.Time.Before(a.NotAfter) {
			continue
		}
		if k, err := grant.ParsePublicKey(a.Key); err == nil {
			keys = append(keys, k)
		}
	}
	return keys
}

func (s *stepper) refuse(e Refuse) (Row, error) {
	c, err := s.pending()
	if err != nil {
		return "", err
	}
	candidate := e.Candidate
	if e.Signed != "" {
		r, by, err := s.keys().OpenRefusal(e.Signed)
		if err != nil {
			return "", refuse(CodeForged, "%v", err)
		}
		if r.Run != s.run.ID || r.Candidate != candidate {
			return "", refuse(CodeOther, "the refusal is for another candidate")
		}
		s.ev.actor = by.Name
	}
	if candidate != c.Candidate.ID {
		return "", refuse(CodeOther, "the refusal is for another candidate than the pending one")
	}
	if err := s.inTime(); err != nil {
		return "", err
	}
	s.decided(StatusRejected, ReasonRefused)
	return RowRefused, nil
}

// refusedBefore reports whether a person has refused this very call: asking again
// would only wear that person down. An edit is a person's own proposal.
func (s *stepper) refusedBefore(c *Call) bool {
	return !c.Edited && slices.ContainsFunc(s.run.TurnedDown, func(t TurnedDown) bool {
		return t.Refused && t.Tool == c.Proposal.Tool && t.Arguments == c.Candidate.Arguments
	})
}

// tire holds the run before a candidate of a tool is shown of which [MaxTurnedDown]
// were refused or have expired: an operator resumes it, or cancels.
func (s *stepper) tire() {
	tool := s.run.Call.Proposal.Tool
	times := 0
	for _, t := range s.run.TurnedDown {
		if t.Tool == tool {
			times++
		}
	}
	if times >= MaxTurnedDown {
		s.run.Held, s.run.Reason = true, ReasonTurnedDown
	}
}

func (s *stepper) edit(e Edit) (Row, error) {
	c, err := s.pending()
	if err != nil {
		return "", err
	}
	d, by, err := s.keys().OpenEdit(e.Signed)
	if err != nil {
		return "", refuse(CodeForged, "%v", err)
	}
	switch {
	case d.Run != s.run.ID || d.Candidate != c.Candidate.ID || d.Head != c.Candidate.Head:
		return "", refuse(CodeOther, "the edit is for another candidate than the pending one")
	case d.Arguments != e.Arguments.SHA256 || d.Bytes != e.Arguments.Bytes:
		return "", refuse(CodeOther, "the edit was signed for other arguments")
	}
	if err := s.inTime(); err != nil {
		return "", err
	}
	if err := s.entitled(by); err != nil {
		return "", err
	}
	s.ev.actor = by.Name
	c.Arguments, c.Edited = e.Arguments, true
	c.Candidate, c.Grants, c.Outcome = nil, nil, nil
	s.run.Deadline = time.Time{}
	s.wants = Prepare
	return RowEdited, nil
}

// StillUnknown is the verdict of a statement that leaves the outcome open.
const StillUnknown = "unknown"

func (s *stepper) attest(e Attest) (Row, error) {
	if s.run.State != StateNeedsVerification {
		return "", refuse(CodeNotWaiting, "no outcome of the run is unknown")
	}
	d, by, err := s.keys().OpenStatement(e.Signed)
	if err != nil {
		return "", refuse(CodeForged, "%v", err)
	}
	if d.Run != s.run.ID || d.Call != s.run.Call.ID {
		return "", refuse(CodeOther, "the statement is about another call")
	}
	s.ev.actor = by.Name
	if d.Verdict == StillUnknown {
		return RowUndecided, nil
	}
	return s.verified(Finding(d.Verdict))
}

func (s *stepper) cancel(e Cancel) (Row, error) {
	unsettled := s.writeUnsettled()
	switch {
	case s.run.State == StateNeedsVerification && e.Abandon:
		s.run.Reason = ReasonAbandoned
		return RowCancelled, nil
	case e.Abandon:
		return "", refuse(CodeInvalid, "only a run whose outcome is unknown can be abandoned")
	case unsettled && s.run.Cancelling:
		return "", refuse(CodeUnknown, "cancel was asked already; a write is in flight or its outcome unknown: settle it, or cancel with --abandon")
	case unsettled:
		s.run.Cancelling = true
		return RowCancelAsked, nil
	}
	s.run.Reason = ReasonOperator
	return RowCancelled, nil
}

// writeUnsettled reports whether a write has been, or may have been, sent and its
// outcome is not final.
func (s *stepper) writeUnsettled() bool {
	c := s.run.Call
	return c != nil && c.Sent && s.run.tool().Risk.Writes()
}

func (s *stepper) pause() (Row, error) {
	if s.run.Held {
		return "", refuse(CodeIllegal, "the run is paused already")
	}
	s.run.Held = true
	if o := s.run.Open; o != nil && o.Kind != Send {
		s.release(false)
	}
	return RowPaused, nil
}

func (s *stepper) resume() (Row, error) {
	if !s.run.Held {
		return "", refuse(CodeIllegal, "the run is not paused")
	}
	s.run.Held, s.run.Reason = false, ""
	s.release(true)
	return RowResumed, nil
}

func (s *stepper) stepOnce() (Row, error) {
	if !s.run.Held || s.run.Open == nil || s.run.Open.Released {
		return "", refuse(CodeIllegal, "nothing is withheld that a step could release")
	}
	s.release(true)
	return RowStepped, nil
}

// release opens or closes the gate before the open effect.
func (s *stepper) release(released bool) {
	if s.run.Open == nil {
		return
	}
	o := *s.run.Open
	o.Released = released
	s.run.Open = &o
}

func (s *stepper) extend(e Extend) (Row, error) {
	b, more := &s.run.Budget, e.Budget
	if more.Calls < 0 || more.Turns < 0 || more.Tokens < 0 || more.Wall < 0 || more.Cost < 0 || more == (Budget{}) {
		return "", refuse(CodeInvalid, "an extension adds to a budget")
	}
	if more.Cost > 0 && b.Cost == 0 {
		return "", refuse(CodeInvalid, "the run has no limit of cost that could be raised")
	}
	b.Calls, b.Turns = b.Calls+more.Calls, b.Turns+more.Turns
	b.Tokens, b.Wall, b.Cost = b.Tokens+more.Tokens, b.Wall+more.Wall, b.Cost+more.Cost
	if !b.sane() {
		return "", refuse(CodeInvalid, "the extended budget is too large")
	}
	return RowExtended, nil
}
