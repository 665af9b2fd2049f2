package agent

import (
	"fmt"
	"iter"
	"slices"
	"time"
)

// Fork says of which run another is the continuation, and from where. The engine reads
// the rest in the parent's journal: see [Carry].
type Fork struct {
	Run  string `json:"run"`  // the parent
	Seq  int64  `json:"seq"`  // its entry from which the fork goes on
	Head string `json:"head"` // that entry's hash
	Wall int64  `json:"wall"` // whole seconds of working time that the parent had used by then
}

// Carried is how much of its parent's history a fork has taken over.
type Carried struct {
	Entries int64 // of the fork's journal, behind the first
	Last    int64 // the parent's entry that the last of them is from
	Calls   int   // calls whose outcome is the parent's
}

func (s *Spec) checkFork() error {
	f := s.Fork
	switch {
	case f == nil:
		return nil
	case CheckRunID(f.Run) != nil || f.Run == s.Run:
		return fmt.Errorf("fork of run %q: want another run", f.Run)
	case f.Seq < 1 || len(f.Head) != 64 || f.Wall < 0 || f.Wall > 1<<32:
		return fmt.Errorf("fork of run %q: entry %d, %q, after %d s: want an entry, its hash and its working time", f.Run, f.Seq, f.Head, f.Wall)
	}
	return nil
}

// ForkPoint says how to fork a run at an entry, or, with at 0, at the latest from which
// an ended run can go on: the last, or, of a completed run, the one before its answer.
// It returns the run as it was there: its Used is what the fork begins with, and the
// fork's budget has to be more. entries are the run's, from the first. It is a
// [*Refusal] where the run had completed by that entry: its message names the last one
// that serves.
func ForkPoint(entries iter.Seq2[Entry, error], at int64) (Fork, Run, error) {
	var run, before Run
	for e, err := range entries {
		if err != nil {
			return Fork{}, run, err
		}
		next, err := Apply(run, e)
		if err != nil {
			return Fork{}, run, err
		}
		if next.State == StateCompleted && run.State != StateCompleted {
			before = run
		}
		if run = next; run.Seq == at {
			break
		}
	}
	switch {
	case run.Seq == 0 || at != 0 && run.Seq != at:
		return Fork{}, run, refuse(CodeInvalid, "the run has no entry %d: its last is %d", at, run.Seq)
	case run.State == StateCompleted && at != 0:
		return Fork{}, run, completed(run, before.Seq)
	case run.State == StateCompleted:
		run = before
	}
	return Fork{Run: run.ID, Seq: run.Seq, Head: run.Head, Wall: int64(run.Used.Wall / time.Second)}, run, nil
}

func completed(run Run, last int64) *Refusal {
	return refuse(CodeEnded, "run %s has completed by entry %d, and nothing can follow an answer; the last entry from which a fork goes on is %d", run.ID, run.Seq, last)
}

// Carry makes the first entries of a fork: its start, and what it takes over from the
// parent, whose entries are given from the first. The parent is replayed up to the
// entry that the Spec names; then
//
//   - the model's turns, and refused turns, are taken over as they are;
//   - a call with a final outcome has it again, without being sent: with what the model
//     was told of it;
//   - a write that was sent, and of which nobody knows whether it took effect, or whose
//     outcome was not observed yet, keeps that state: it is never prepared anew;
//   - all else goes back to Prepare, without its approvals; so does the call that ended
//     the parent because its calls were used up;
//   - what clocks, persons and operators did is not taken over.
//
// Taken over is by Step, through its ordinary doors, at the given time, and against the
// fork's own budget: what the parent used counts. An engine appends all of it in one
// durable write, with the returned bodies, which are the parent's. It is a [*Refusal]
// where the fork cannot be, [ErrIntegrity] where the parent is not what the Spec says.
func Carry(spec Spec, actor string, parent iter.Seq2[Entry, error], at time.Time) ([]Commit, []BodyRef, error) {
	if spec.Fork == nil {
		return nil, nil, refuse(CodeInvalid, "run %s is no fork", spec.Run)
	}
	h := history{fork: &spec}
	if err := h.read(parent); err != nil {
		return nil, nil, fmt.Errorf("fork run %s at entry %d: %w", spec.Fork.Run, spec.Fork.Seq, err)
	}
	start := Begin(spec, actor, at)
	start.fork = true
	p := prefix{named: map[BodyRef]bool{{}: true}} // a reference that names nothing is not copied
	if err := p.take(start); err != nil {
		return nil, nil, err
	}
	for _, it := range h.items {
		if err := p.take(fromParent(p.run.Open.Effect, it.said, it.seq, at)); err != nil {
			return nil, nil, fmt.Errorf("carry entry %d of run %s: %w", it.seq, spec.Fork.Run, err)
		}
	}
	if used := p.run.Used.Wall; used > seconds(spec.Budget.Wall) {
		return nil, nil, refuse(CodeBudget, "the parent had used %v of working time, and the fork may use %d s", used, spec.Budget.Wall)
	}
	return p.commits, p.bodies, nil
}

// prefix is the beginning of a fork's journal.
type prefix struct {
	run     Run
	commits []Commit
	bodies  []BodyRef // in the order in which they are first named
	named   map[BodyRef]bool
}

func (p *prefix) take(ev Event) error {
	next, entry, err := Advance(p.run, ev)
	if err != nil {
		return err
	}
	if next.State.Final() {
		return refuse(CodeBudget, "the fork would end there (%s): what the parent used counts, so give it more", next.Reason)
	}
	p.run, p.commits = next, append(p.commits, Commit{Run: next, Entry: entry})
	for _, ref := range named(ev.body) {
		if !p.named[ref] {
			p.named[ref], p.bodies = true, append(p.bodies, ref)
		}
	}
	return nil
}

// history is what a fork takes over of its parent.
type history struct {
	fork  *Spec
	run   Run
	items []carriedItem
	turn  int // index of the turn in hand

	// Of the call in hand: the entries of its intent, of its outcome, and of that
	// outcome observed as unknown.
	sent, returned, unknown int64
	doubt                   Observed
}

// carriedItem is an event to be taken over, with the parent's entry that it is from.
type carriedItem struct {
	seq  int64
	said Result
}

// read replays the parent up to the entry that the fork goes on from.
func (h *history) read(parent iter.Seq2[Entry, error]) error {
	f := h.fork.Fork
	var before int64
	for e, err := range parent {
		if err != nil {
			return err
		}
		was := h.run
		if h.run, err = Apply(was, e); err != nil {
			return err
		}
		if h.run.State == StateCompleted && was.State != StateCompleted {
			before = was.Seq
		}
		if e.Kind == EntryEvent {
			if err := h.take(was, e); err != nil {
				return err
			}
		}
		if e.Seq == f.Seq {
			break
		}
	}
	switch {
	case h.run.Seq == 0:
		return ErrNoRun
	case h.run.ID != f.Run || h.run.Seq != f.Seq || h.run.Head != f.Head:
		return fmt.Errorf("%w: the run has no such entry: it ends with entry %d, %s", ErrIntegrity, h.run.Seq, h.run.Head)
	case h.run.State == StateCompleted:
		return completed(h.run, before)
	case f.Wall != int64(h.run.Used.Wall/time.Second):
		return refuse(CodeInvalid, "the run had used %v of working time by then, not %d s", h.run.Used.Wall, f.Wall)
	}
	return h.inHand()
}

// take notes what an event of the parent, which was in that state, says of its calls.
func (h *history) take(was Run, e Entry) error {
	ev, err := e.said()
	if err != nil {
		return err
	}
	switch p := ev.body.(type) {
	case Turned:
		if e.Row != RowAnswered {
			h.turn = len(h.items)
			h.carry(e.Seq, h.exposed(p))
		}
	case TurnRefused:
		h.carry(e.Seq, p)
	case Checked:
		h.sent = e.Seq
	case Returned:
		h.returned = e.Seq
		if p.Counted {
			h.sent = e.Seq
		}
	case Verified, Attest:
		if e.Row == RowSettled {
			h.returned, h.unknown = e.Seq, 0
		}
	case Observed:
		h.observed(was.Call, p, e)
	}
	return nil
}

func (h *history) carry(seq int64, r Result) { h.items = append(h.items, carriedItem{seq, r}) }

// exposed is a turn in which calls of what the fork does not expose name no tool.
func (h *history) exposed(t Turned) Turned {
	t.Calls = slices.Clone(t.Calls)
	for i, c := range t.Calls {
		if pin, ok := h.fork.Tool(c.Tool); !ok || pin.HostOnly {
			t.Calls[i].Tool = ""
		}
	}
	return t
}

// observed takes the last word on a call: the final outcome, or that it is unknown.
func (h *history) observed(c *Call, o Observed, e Entry) {
	switch {
	case e.Row == RowOutcomeUnknown:
		h.unknown, h.doubt = e.Seq, o
		return
	case e.Row == RowApprovalRequired:
		return
	case o.Class != ClassBudget: // else the fork goes on before the call
		out := *c.Outcome
		out.Status, out.Class, out.Reason = o.Status, o.Class, o.Reason
		h.known(c)
		h.carry(e.Seq, h.outcome(c, out, false))
		h.carry(e.Seq, o)
	}
	h.sent, h.returned, h.unknown = 0, 0, 0
}

// known takes the tool off a call whose outcome is known, where the fork would judge
// that outcome as that of a tool of another kind.
func (h *history) known(c *Call) {
	t, ok := h.items[h.turn].said.(Turned)
	if ok && h.writes(c) != h.forkWrites(c) {
		t.Calls = slices.Clone(t.Calls)
		t.Calls[c.Index].Tool = ""
		h.items[h.turn].said = t
	}
}

func (h *history) writes(c *Call) bool {
	pin, ok := h.run.Spec.Tool(c.Proposal.Tool)
	return ok && pin.Risk.Writes()
}

func (h *history) forkWrites(c *Call) bool {
	pin, ok := h.fork.Tool(c.Proposal.Tool)
	return ok && !pin.HostOnly && pin.Risk.Writes()
}

// outcome is what a call returned in the parent, as the fork takes it over. open says
// that it is not final: then a person may have to judge by what was signed.
func (h *history) outcome(c *Call, out Outcome, open bool) Returned {
	r := Returned{
		Outcome: out, Arguments: c.Arguments,
		Counted: c.Sent, Edited: c.Edited, Settled: c.Settled, Substituted: c.Substituted,
	}
	if open {
		r.Candidate = c.Candidate
	}
	return r
}

// inHand takes over a call that was under way: what was sent, and may have had an
// effect, is not prepared anew.
func (h *history) inHand() error {
	c := h.run.Call
	if c == nil || !c.Sent {
		return nil
	}
	back := h.returned >= h.sent // its outcome had come back
	switch {
	case !back && !h.writes(c):
		return nil // a read may be sent again
	case back && (h.unknown == 0 && c.Outcome.Status != StatusResultUnknown || !h.writes(c)):
		h.known(c)
		h.carry(h.returned, h.outcome(c, *c.Outcome, true))
		return nil
	case !h.forkWrites(c):
		return refuse(CodeUnknown, "nobody knows whether call %s of %s took effect, and the fork has no such tool that writes: settle it first", c.ID, c.Proposal.Tool)
	case !back:
		h.carry(h.sent, h.outcome(c, Outcome{Status: StatusResultUnknown, Class: ClassProtocolError, Reason: ReasonCrashed, Sent: true}, true))
	case h.unknown == 0:
		h.carry(h.returned, h.outcome(c, *c.Outcome, true))
	default:
		h.carry(h.unknown, h.outcome(c, *c.Outcome, true))
		h.carry(h.unknown, h.doubt)
	}
	return nil
}

// Step.

// carries checks an event that a fork takes over: behind its start and before anything
// of its own, in the parent's order, and from no entry behind the one that it goes on
// from. was is the run before it.
func (s *stepper) carries(was Run) error {
	seq := s.ev.carried
	if seq == 0 {
		return nil
	}
	fork, last := was.Spec.Fork, was.Carried.Last
	next := seq > last
	switch s.ev.body.(type) {
	case Turned, TurnRefused, Returned:
	case Observed:
		next = seq == last // it belongs to the outcome before it
	default:
		return refuse(CodeInvalid, "%s is not carried", s.ev.Kind())
	}
	switch {
	case fork == nil:
		return refuse(CodeInvalid, "only a fork carries what another run has recorded")
	case was.Seq != 1+was.Carried.Entries:
		return refuse(CodeInvalid, "the fork has gone on by itself; nothing is carried any more")
	case !next || seq > fork.Seq:
		return refuse(CodeInvalid, "entry %d of run %s is not the next that is carried: the last was %d, the fork goes on from %d", seq, fork.Run, last, fork.Seq)
	}
	s.run.Carried.Entries++
	s.run.Carried.Last = seq
	return nil
}

// carried takes over what a call returned in the parent. Nothing is sent for it.
func (s *stepper) carried(e Returned) (Row, error) {
	by := Prepare
	if e.Counted {
		by = Send
	}
	switch {
	case s.run.Open.Kind != Prepare:
		return "", refuse(CodeInvalid, "an outcome is carried in place of a call that was prepared only")
	case e.Status == StatusWaitingApproval || e.Class == ClassBudget:
		return "", refuse(CodeInvalid, "an outcome %s (%s) is not carried", e.Status, e.Class)
	case !e.Counted && (e.Sent || e.Settled || e.Candidate != nil):
		return "", refuse(CodeInvalid, "the outcome of a call that was sent, and did not count")
	case !e.Substituted && !possible(by, s.run.tool().Risk, e.Outcome), e.Substituted && !substitutable(s.run.tool().Risk, e.Outcome, true):
		return "", refuse(CodeInvalid, "%s cannot have returned %s (sent: %t)", by, e.Status, e.Sent)
	case e.Candidate != nil && !e.signedElsewhere(s.run.ID):
		return "", refuse(CodeInvalid, "the candidate is not what was signed for this call in the parent")
	case e.Counted && s.run.Used.Calls >= s.run.Budget.Calls:
		return "", refuse(CodeBudget, "the parent had made more calls than the fork may: give it more")
	}
	c := s.call()
	out := e.Outcome
	c.Arguments, c.Outcome, c.Candidate = e.Arguments, &out, e.Candidate
	c.Sent, c.Edited, c.Settled, c.Substituted = e.Counted, e.Edited, e.Settled, e.Substituted
	c.Carried = s.ev.carried
	if e.Counted {
		s.run.Used.Calls++
	}
	s.run.Carried.Calls++
	s.remember(c)
	s.wants = Observe
	return RowReturned, nil
}

// signedElsewhere reports whether the candidate is one of another run over the
// arguments of this outcome.
func (r Returned) signedElsewhere(run string) bool {
	c := r.Candidate
	return c.Check() == nil && c.Run != run && c.Arguments == r.Arguments.SHA256 && c.Bytes == r.Arguments.Bytes
}

// remember keeps that nobody approved the call, so that a fork asks as little as its
// parent would have asked again.
func (s *stepper) remember(c *Call) {
	refused := c.Outcome.Reason == ReasonRefused
	if c.Sent || c.Arguments.IsZero() || !refused && c.Outcome.Reason != ReasonExpired {
		return
	}
	s.run.TurnedDown = append(slices.Clip(s.run.TurnedDown), TurnedDown{
		Tool: c.Proposal.Tool, Arguments: c.Arguments.SHA256, Refused: refused,
	})
}
