package audit

import (
	"bytes"
	"encoding/json"
	"slices"

	"sallyport/agent"
)

// What a fork takes over from its parent, and what an operator gives in it.

// carried is how much was taken over.
type carried struct {
	entries int64 // of the fork's journal, behind the first
	last    int64 // the parent's entry that the last of them is from
	counted int   // calls that the parent had sent
}

// begun books what a fork begins with.
func (w *witness) begun(f *agent.Fork) {
	if f == nil {
		return
	}
	if f.Run == w.spec.Run || agent.CheckRunID(f.Run) != nil || f.Seq < 1 || len(f.Head) != 64 || f.Wall < 0 {
		w.fails(BreakFork, "a fork of entry %d of run %q, %q, after %d s is none", f.Seq, f.Run, f.Head, f.Wall)
	}
	w.counts.Wall = seconds(f.Wall)
	w.counts.Parent = f.Run
}

// carries checks where an event that is taken over stands: behind the start of a fork
// and before anything of its own, in the parent's order, and from no entry behind the
// one that the fork goes on from.
func (w *witness) carries(e *agent.Entry) {
	if e.Carried == 0 {
		return
	}
	next := e.Carried > w.carried.last
	switch e.Event {
	case agent.KindTurned, agent.KindTurnRefused, agent.KindReturned:
	case agent.KindObserved:
		next = e.Carried == w.carried.last
	default:
		w.fails(BreakFork, "%s is not taken over by a fork", e.Event)
	}
	switch fork := w.spec.Fork; {
	case fork == nil:
		w.fails(BreakFork, "the run is no fork, and takes over entry %d of another", e.Carried)
	case e.Carried > fork.Seq:
		w.fails(BreakFork, "it is from entry %d of run %q, and the fork goes on from entry %d", e.Carried, fork.Run, fork.Seq)
	case w.seq != w.carried.entries+2:
		w.fails(BreakFork, "the fork had gone on by itself when it took over entry %d", e.Carried)
	case !next:
		w.fails(BreakFork, "it is from entry %d of the parent, and stands behind entry %d", e.Carried, w.carried.last)
	}
	w.carried.entries++
	w.carried.last = e.Carried
}

// takesOver books a call with the outcome that it had in the parent. Nothing was sent.
func (w *witness) takesOver(c *call, r agent.Returned) {
	switch {
	case w.open == nil || w.open.Kind != agent.Prepare:
		w.fails(BreakFork, "an outcome is taken over in place of a call that was sent here")
	case r.Status == agent.StatusWaitingApproval || r.Class == agent.ClassBudget || !slices.Contains(statuses, r.Status):
		w.fails(BreakFork, "an outcome %q (%s) is not taken over", r.Status, r.Class)
	case !r.Counted && (r.Sent || r.Settled || r.Candidate != nil):
		w.fails(BreakFork, "the outcome of a call that was sent, and did not count")
	case r.Substituted:
		w.given(c, r.Outcome, true)
	case !r.Counted && (r.Status == agent.StatusOK || r.Status == agent.StatusResultUnknown):
		w.fails(BreakFork, "a call that was not sent returned %s", r.Status)
	case r.Counted && !r.Sent && (r.Status == agent.StatusOK || r.Status == agent.StatusResultUnknown):
		w.fails(BreakFork, "a call of which no request left returned %s", r.Status)
	case c.writes() && r.Sent && r.Status == agent.StatusUnavailable:
		w.fails(BreakFork, "a write that was sent is not merely unavailable")
	}
	if cand := r.Candidate; cand != nil && (cand.Check() != nil || cand.Run == w.spec.Run ||
		cand.Arguments != r.Arguments.SHA256 || cand.Bytes != r.Arguments.Bytes) {
		w.fails(BreakFork, "the candidate is not what was signed in the parent")
	}
	w.counts.Carried++
	if r.Counted {
		c.sent = w.seq
		w.carried.counted++
		w.overCalls()
	}
	refused := r.Reason == agent.ReasonRefused
	if !r.Counted && !r.Arguments.IsZero() && (refused || r.Reason == agent.ReasonExpired) {
		w.turnedDown = append(w.turnedDown, turnedDown{c.proposal.Tool, r.Arguments.SHA256, refused})
	}
	c.status, c.left = r.Status, r.Sent
}

// given checks an outcome that an operator gave: nothing was sent, and no write is made
// to look done. Once it is observed, its reason may be another.
func (w *witness) given(c *call, out agent.Outcome, observed bool) {
	settled := []agent.Status{agent.StatusOK, agent.StatusRejected, agent.StatusFailed, agent.StatusUnavailable}
	switch {
	case out.Sent || out.Request != "" || out.Reason != agent.ReasonSubstituted && !observed:
		w.fails(BreakFork, "an outcome that an operator gave says that it was sent, or not that it was given")
	case !slices.Contains(settled, out.Status) || out.Class == agent.ClassBudget || (out.Status == agent.StatusOK) != (out.Class == agent.ClassOK):
		w.fails(BreakFork, "an operator cannot give an outcome %s (%s)", out.Status, out.Class)
	case out.Status == agent.StatusOK && c.writes():
		w.fails(BreakFork, "an operator made a write look done")
	}
}

// substituted takes what an operator gives for the open effect.
func (w *witness) substituted(s agent.Substitute) {
	switch {
	case w.spec.Fork == nil:
		w.fails(BreakFork, "an operator replaced what happened in a run that is no fork")
	case (s.Turn == nil) == (s.Outcome == nil):
		w.fails(BreakFork, "what was given is neither a turn nor an outcome, or both")
	case w.open == nil || s.Turn != nil && w.open.Kind != agent.Ask || s.Outcome != nil && w.open.Kind != agent.Prepare:
		w.fails(BreakFork, "what was given is not what the run waits for")
	case s.Turn != nil && s.Turn.Usage != agent.Usage{}:
		w.fails(BreakFork, "a turn that was given has used tokens")
	case s.Outcome != nil && w.call != nil:
		w.given(w.call, *s.Outcome, false)
		if s.Outcome.Status == agent.StatusOK && w.call.tool.Name == "" {
			w.fails(BreakFork, "an operator made a call of an unknown tool look done")
		}
	}
	w.gives = &s
	w.counts.Substitutes++
}

// asGiven checks that what an operator gave is what came, and that nothing else says
// that it was given.
func (w *witness) asGiven(e *agent.Entry, payload any) {
	if e.Carried != 0 || answered(payload) == nil {
		return
	}
	if w.open == nil || w.open.gives == nil {
		if r, ok := payload.(agent.Returned); ok && r.Substituted {
			w.fails(BreakFork, "an outcome is recorded as given, and nobody gave it")
		}
		return
	}
	var want any = agent.Returned{Substituted: true}
	if s := w.open.gives; s.Turn != nil {
		want = *s.Turn
	} else if s.Outcome != nil {
		want = agent.Returned{Outcome: *s.Outcome, Substituted: true}
	}
	a, err1 := json.Marshal(want)
	b, err2 := json.Marshal(payload)
	if err1 != nil || err2 != nil || !bytes.Equal(a, b) {
		w.fails(BreakFork, "an operator had given what the effect brings, and something else came")
	}
}
