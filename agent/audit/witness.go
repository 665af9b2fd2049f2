package audit

import (
	"slices"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// witness keeps books over the entries as they are recorded. It believes nothing that
// it can work out, and goes on after a break: what it says then may be a consequence.
type witness struct {
	broken func(seq int64, what What, format string, args ...any)
	find   func(seq int64, open Open, format string, args ...any)
	counts *Counts
	signed **Signed

	seq    int64     // of the entry in hand
	time   time.Time // of the entry in hand
	state  agent.State
	spec   agent.Spec
	budget agent.Budget
	held   bool
	open   *effect
	turn   *turn
	call   *call

	unreached  int       // in a row
	deadline   time.Time // of the pending candidate
	turnedDown []turnedDown
	carried    carried
	takes      *took             // of a fork, where its parent is at hand
	gives      *agent.Substitute // by the entry in hand
	spent      map[string]int64  // by candidate id: the entry that used it for a Send
	grants     map[string]int64  // by wire: the entry that took it in
}

// effect is the effect that the entries leave open.
type effect struct {
	agent.Effect
	head     string // hash of the entry that opened it
	released bool
	gives    *agent.Substitute // what it brings, if an operator said so
}

// turn is a turn of the model whose calls are made in order.
type turn struct {
	seq   int64
	calls []agent.Proposal
	next  int // index of the first call not begun
}

// fails records a break of the entry in hand.
func (w *witness) fails(what What, format string, args ...any) {
	w.broken(w.seq, what, format, args...)
}

// take takes the next entry. payload is what its event says.
func (w *witness) take(e *agent.Entry, payload any) {
	w.worked(e)
	w.seq, w.time = e.Seq, e.Time
	switch e.Kind {
	case agent.EntryEvent:
		w.event(e, payload)
	case agent.EntryAttempt:
		w.attempt(e)
	case agent.EntryNoted:
		w.noted(e)
	case agent.EntryErased:
		w.erased(e)
	default:
		w.fails(BreakEntry, "its kind %q is unknown", e.Kind)
	}
}

// worked counts the time since the entry before, if it was work.
func (w *witness) worked(e *agent.Entry) {
	switch w.state {
	case agent.StateModel, agent.StateExecute, agent.StateObserve:
		if !w.held && e.Kind != agent.EntryAttempt {
			w.counts.Wall += e.Time.Sub(w.time)
		}
	case agent.StateNone, agent.StateAwaitingApproval, agent.StateNeedsVerification,
		agent.StateCompleted, agent.StateFailed, agent.StateCancelled:
	}
}

// plain checks that an entry that moves nothing says nothing that would.
func (w *witness) plain(e *agent.Entry) {
	if w.seq == 1 {
		w.fails(BreakEntry, "a journal begins with the start of its run")
	}
	if e.Row != "" || e.State != "" || len(e.Effects) > 0 || e.Carried != 0 {
		w.fails(BreakEntry, "an entry %s moves no run, and records that it did", e.Kind)
	}
}

func (w *witness) attempt(e *agent.Entry) {
	w.plain(e)
	w.counts.Attempts++
	switch {
	case w.open == nil || w.open.Seq != e.Effect:
		w.fails(BreakEffect, "it attempts an effect that is not open")
	case w.open.Kind == agent.Send && w.call.writes():
		w.fails(BreakEffect, "it sends a write a second time")
	}
}

func (w *witness) noted(e *agent.Entry) {
	w.plain(e)
	w.counts.Notes++
	if w.counts.Notes > agent.MaxNoted {
		w.fails(BreakBudget, "more than %d refusals are noted", agent.MaxNoted)
	}
	if e.Code == "" {
		w.fails(BreakEntry, "a refusal without its reason")
	}
}

func (w *witness) erased(e *agent.Entry) {
	w.plain(e)
	if e.Body.IsZero() {
		w.fails(BreakEntry, "an erasure that names nothing")
	}
	if e.Origin != agent.OriginOperator {
		w.fails(BreakOrigin, "only an operator erases, not the %s", e.Origin)
	}
}

// event takes an event: its door, its row, what it says, and its effects.
func (w *witness) event(e *agent.Entry, payload any) {
	from := w.state
	if want := origin(payload); e.Origin != want {
		w.fails(BreakOrigin, "%s is the word of the %s, recorded as the %s's", e.Event, want, e.Origin)
	}
	w.gives = nil
	w.left(e, from)
	w.transition(e, from)
	w.carries(e)
	w.takes.take(e, payload)
	w.asGiven(e, payload)
	w.hears(e, payload)
	w.answers(e, payload)
	w.state = e.State
	w.opens(e, payload, from)
}

// origin is whose word an event is.
func origin(payload any) agent.Origin {
	switch p := payload.(type) {
	case agent.Turned, agent.TurnRefused:
		return agent.OriginModel
	case agent.Unreached, agent.Checked, agent.Returned, agent.Observed, agent.Verified:
		return agent.OriginRuntime
	case agent.Approve, agent.Edit, agent.Attest:
		return agent.OriginApprover
	case agent.Refuse:
		if p.Signed != "" {
			return agent.OriginApprover
		}
	case nil:
		return agent.OriginClock
	}
	return agent.OriginOperator
}

// left checks who ends the wait for a person (SPEC A5).
func (w *witness) left(e *agent.Entry, from agent.State) {
	if from != agent.StateAwaitingApproval || e.State == agent.StateAwaitingApproval {
		return
	}
	switch e.Event {
	case agent.KindApprove, agent.KindEdit, agent.KindRefuse, agent.KindTick, agent.KindCancel:
	default:
		w.fails(BreakApproval, "awaiting_approval was left by %s", e.Event)
	}
}

// transition looks the row up in the table.
func (w *witness) transition(e *agent.Entry, from agent.State) {
	if !slices.Contains(agent.Becomes(e.Event), e.Row) {
		w.fails(BreakTransition, "%s cannot become %s", e.Event, e.Row)
		return
	}
	for _, t := range agent.Table() {
		to := t.To
		if to == "" {
			to = from
		}
		if t.Row == e.Row && slices.Contains(t.From, from) && slices.Contains(t.By, e.Origin) && to == e.State {
			return
		}
	}
	w.fails(BreakTransition, "%s by the %s does not lead from %q to %q", e.Row, e.Origin, from, e.State)
}

// answered says which effects a result answers; none for what is no result.
func answered(payload any) []agent.EffectKind {
	switch payload.(type) {
	case agent.Turned, agent.TurnRefused, agent.Unreached:
		return []agent.EffectKind{agent.Ask}
	case agent.Checked:
		return []agent.EffectKind{agent.Prepare}
	case agent.Returned:
		return []agent.EffectKind{agent.Prepare, agent.Send}
	case agent.Observed:
		return []agent.EffectKind{agent.Observe}
	case agent.Verified:
		return []agent.EffectKind{agent.Verify}
	}
	return nil
}

// answers checks that a result answers the open effect.
func (w *witness) answers(e *agent.Entry, payload any) {
	kinds := answered(payload)
	if kinds == nil {
		return
	}
	if w.open == nil || w.open.Seq != e.Effect || !slices.Contains(kinds, w.open.Kind) {
		w.fails(BreakEffect, "%s answers an effect that is not open", e.Event)
	}
}

// opened says which effect a row opens. The rows that are not here open none.
var opened = map[agent.Row]agent.EffectKind{
	agent.RowStarted:          agent.Ask,
	agent.RowTurnRefused:      agent.Ask,
	agent.RowModelUnreached:   agent.Ask,
	agent.RowNextTurn:         agent.Ask,
	agent.RowProposed:         agent.Prepare,
	agent.RowNextCall:         agent.Prepare,
	agent.RowGranted:          agent.Prepare,
	agent.RowEdited:           agent.Prepare,
	agent.RowChecked:          agent.Send,
	agent.RowReturned:         agent.Observe,
	agent.RowRefused:          agent.Observe,
	agent.RowExpired:          agent.Observe,
	agent.RowSettled:          agent.Observe,
	agent.RowApprovalRequired: agent.Present,
	agent.RowOutcomeUnknown:   agent.Verify,
}

// opens checks which effect the event opens, and keeps what is open now.
func (w *witness) opens(e *agent.Entry, payload any, from agent.State) {
	want, some := opened[e.Row]
	if e.Row == agent.RowSubstituted && w.open != nil {
		want, some = w.open.Kind, true // anew
	}
	if !some {
		if len(e.Effects) > 0 {
			w.fails(BreakEffect, "%s opens no effect, recorded is %s", e.Row, e.Effects[0].Kind)
		}
		if answered(payload) != nil || from != e.State {
			w.open = nil
		}
		return
	}
	now := agent.Effect{Kind: want, Seq: e.Seq}
	if w.call != nil {
		now.Call = w.call.id
	}
	if len(e.Effects) != 1 || e.Effects[0].Kind != want || e.Effects[0].Seq != e.Seq || e.Effects[0].Call != now.Call {
		w.fails(BreakEffect, "%s opens %s of call %q alone; something else is recorded", e.Row, want, now.Call)
	}
	w.open = &effect{Effect: now, head: e.Hash(), released: !w.held || want == agent.Send, gives: w.gives}
}

// hears takes in what an event says.
func (w *witness) hears(e *agent.Entry, payload any) {
	switch p := payload.(type) {
	case agent.Spec:
		w.starts(e, p)
	case agent.Turned:
		w.turned(e, p)
	case agent.TurnRefused:
		w.spends(p.Usage)
	case agent.Unreached:
		w.notReached(e)
	case agent.Checked:
		w.sends(p)
	case agent.Returned:
		w.returned(e, p)
	case agent.Observed:
		w.observed(e, p)
	case agent.Verified:
		w.settles(e, p.Finding)
	case agent.Approve:
		w.approved(e, p)
	case agent.Refuse:
		w.refused(e, p)
	case agent.Edit:
		w.edited(e, p)
	case agent.Attest:
		w.attested(e, p)
	case agent.Cancel:
		w.cancelled(e, p)
	case agent.Pause:
		w.pauses()
	case agent.Resume:
		w.held = false
		w.release(true)
	case agent.StepOnce:
		w.release(true)
	case agent.Extend:
		w.extended(p.Budget)
	case agent.Substitute:
		w.substituted(p)
	case nil:
		w.ticked(e)
	}
	if opened[e.Row] == agent.Ask {
		w.mayAsk(e.Row)
	}
}

func (w *witness) pauses() {
	w.held = true
	if w.open != nil && w.open.Kind != agent.Send {
		w.release(false)
	}
}

func (w *witness) release(released bool) {
	if w.open != nil {
		w.open.released = released
	}
}

// starts pins what the run was begun with.
func (w *witness) starts(e *agent.Entry, s agent.Spec) {
	if w.seq != 1 || s.Run != e.Run {
		w.fails(BreakEntry, "a run starts once, with its first entry and under its own id")
		return
	}
	w.spec, w.budget = s, s.Budget
	w.begun(s.Fork)
	for _, t := range s.Tools {
		if need := signatures(t); t.Approvers < need {
			w.fails(BreakGrant, "the tool %q is pinned with %d signatures and needs %d", t.Name, t.Approvers, need)
		}
	}
	for _, a := range s.Approvers {
		if _, err := grant.ParsePublicKey(a.Key); err != nil {
			w.fails(BreakSignature, "it pins a key that is none: %v", err)
		}
	}
}

// turned takes a turn of the model, and begins the first of its calls.
func (w *witness) turned(e *agent.Entry, t agent.Turned) {
	w.spends(t.Usage)
	if w.call != nil || w.turn != nil {
		w.fails(BreakResult, "the model speaks while a call has no result")
	}
	if len(t.Calls) > agent.MaxCallsPerTurn {
		w.fails(BreakBudget, "%d calls in one turn, at most %d", len(t.Calls), agent.MaxCallsPerTurn)
	}
	if (e.Row == agent.RowAnswered) != (len(t.Calls) == 0) {
		w.fails(BreakResult, "a turn of %d calls cannot be %s", len(t.Calls), e.Row)
	}
	if e.Row != agent.RowProposed {
		return
	}
	if over := w.overSpent(); over != "" {
		w.fails(BreakBudget, "it goes on with %s", over)
	}
	w.turn = &turn{seq: e.Seq, calls: t.Calls}
	w.begin()
}

// cancelled takes the end that an operator sets: at once, or after a write in flight.
func (w *witness) cancelled(e *agent.Entry, c agent.Cancel) {
	flying := w.call.writes() && w.call.sent != 0
	unknown := w.state == agent.StateNeedsVerification
	switch want := e.Row == agent.RowCancelled; {
	case c.Abandon && !unknown:
		w.fails(BreakResult, "only a run whose outcome is unknown can be abandoned")
	case want && flying && !(c.Abandon && unknown):
		w.fails(BreakResult, "the run was ended while a write was in flight")
	case !want && !flying:
		w.fails(BreakResult, "no write is in flight that a cancel would wait for")
	}
}

// end says what is open after the last entry.
func (w *witness) end(last int64) {
	c := w.call
	switch {
	case c == nil:
	case c.writes() && c.sent != 0 && (w.state == agent.StateCancelled || w.state == agent.StateNeedsVerification):
		w.find(last, OpenUnknown, "call %s of %s: nobody knows whether it took effect", c.id, c.tool.Name)
	case w.state.Final():
		w.find(last, OpenUnanswered, "call %s of %q had no result when the run ended", c.id, c.proposal.Tool)
	case w.open != nil && w.open.Kind == agent.Send && c.writes():
		w.find(last, OpenSend, "call %s of %s is in flight, or was interrupted", c.id, c.tool.Name)
	}
}
