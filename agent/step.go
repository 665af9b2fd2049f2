package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"sallyport/tools/grant"
)

// Step moves a run on by one event, and says which effects that opens. It is pure:
// no I/O, no clock, no goroutine; the same run and event give the same answer, in an
// engine, in Replay and in an audit. It verifies signed decisions itself. It returns
// a [*Refusal], and the run as it was, for an event that the run does not take.
//
// The new run has the sequence and time of the event; its Head is set by [Advance],
// which also encodes the entry.
func Step(run Run, ev Event) (Run, []Effect, error) {
	begun := run
	if run.State == StateNone {
		begun.Version = Version
	}
	next, _, err := step(begun, ev)
	if err != nil {
		return run, nil, err
	}
	next.by = ""
	if next.Open == nil || next.Open.Seq != next.Seq {
		return next, nil, nil
	}
	return next, []Effect{next.Open.Effect}, nil
}

func step(run Run, ev Event) (Run, Row, error) {
	if ev.body == nil {
		return run, "", refuse(CodeInvalid, "an empty event")
	}
	if beyond(run.Version, ev.body) {
		return run, "", refuse(CodeInvalid, "%s says what the run's format %d has no form for", ev.Kind(), run.Version)
	}
	ev.body = inFormat(run.Version, ev.body)
	if want := door(ev.body); ev.origin != want {
		return run, "", refuse(CodeIllegal, "%s comes from the %s, not from the %s", ev.Kind(), want, ev.origin)
	}
	if run.State.Final() {
		return run, "", refuse(CodeEnded, "the run has ended (%s); fork it to go on", run.State)
	}
	s := stepper{run: run, ev: ev}
	if err := s.arrive(); err != nil {
		return run, "", err
	}
	row, err := s.judge()
	if err != nil {
		return run, "", err
	}
	to, err := follow(run.State, row, ev)
	if err != nil {
		return run, "", err
	}
	s.enter(to)
	s.run.by = s.ev.actor
	return s.run, row, nil
}

// stepper is one step under way: run is the new run as far as it is known.
type stepper struct {
	run   Run
	ev    Event
	wants EffectKind  // the effect that the event opens, if any
	after time.Time   // when that may start; zero is at once
	gives *Substitute // what that effect brings, if an operator says so
}

// arrive does what every event does: sequence, time, working time; and it refuses a
// result whose effect is not the open one.
func (s *stepper) arrive() error {
	was := s.run
	s.run.Seq++
	if s.ev.time.Before(was.Time) {
		return refuse(CodeInvalid, "the event is earlier than the run")
	}
	if was.State.working() && !was.Held {
		s.run.Used.Wall += s.ev.time.Sub(was.Time)
	}
	s.run.Time = s.ev.time
	if err := s.carries(was); err != nil {
		return err
	}
	if r, ok := s.ev.body.(Result); ok {
		return s.answers(r)
	}
	return nil
}

// answers checks that r is the answer to the open effect.
func (s *stepper) answers(r Result) error {
	open := s.run.Open
	if open == nil || open.Seq != s.ev.effect {
		return refuse(CodeStale, "the effect that it answers is not open")
	}
	var fits bool
	switch r.(type) {
	case Turned, TurnRefused, Unreached:
		fits = open.Kind == Ask
	case Checked:
		fits = open.Kind == Prepare
	case Returned:
		fits = open.Kind == Prepare || open.Kind == Send
	case Observed:
		fits = open.Kind == Observe
	case Verified:
		fits = open.Kind == Verify
	}
	if !fits {
		return refuse(CodeInvalid, "%s does not answer %s", r.kind(), open.Kind)
	}
	if s.ev.carried != 0 {
		return nil
	}
	return open.answeredBy(r)
}

// judge turns the event into a row, and the run into what that row makes of it.
func (s *stepper) judge() (Row, error) {
	switch e := s.ev.body.(type) {
	case Spec:
		return s.start(e)
	case Turned:
		return s.turned(e)
	case TurnRefused:
		return s.turnRefused(e)
	case Unreached:
		return s.unreached(e)
	case Checked:
		return s.checked(e)
	case Returned:
		return s.returned(e)
	case Observed:
		return s.observed(e)
	case Verified:
		return s.verified(e.Finding)
	case Approve:
		return s.approve(e)
	case Refuse:
		return s.refuse(e)
	case Edit:
		return s.edit(e)
	case Attest:
		return s.attest(e)
	case Cancel:
		return s.cancel(e)
	case Pause:
		return s.pause()
	case Resume:
		return s.resume()
	case StepOnce:
		return s.stepOnce()
	case Extend:
		return s.extend(e)
	case Substitute:
		return s.substitute(e)
	case tick:
		return s.tick()
	}
	return "", refuse(CodeInvalid, "an event of an unknown kind")
}

// enter goes to the state and opens the effect that the event wants. What was open
// stays open only if the state is kept and nothing answered it.
func (s *stepper) enter(to State) {
	r := &s.run
	kept := r.State == to
	r.State = to
	if s.wants == "" {
		if _, answered := s.ev.body.(Result); answered || !kept {
			r.Open = nil
		}
		return
	}
	e := Effect{Kind: s.wants, Seq: r.Seq, After: s.after}
	if r.Call != nil {
		e.Call = r.Call.ID
	}
	r.Open = &OpenEffect{Effect: e, Released: !r.Held || s.wants == Send, Substitute: s.gives}
}

func (s *stepper) start(spec Spec) (Row, error) {
	if s.run.State != StateNone {
		return "", refuse(CodeIllegal, "the run has started already")
	}
	if err := spec.Check(); err != nil {
		return "", refuse(CodeInvalid, "%v", err)
	}
	s.run.ID, s.run.Spec, s.run.Budget = spec.Run, spec, spec.Budget
	s.run.Operator = s.ev.actor
	if spec.Fork != nil {
		s.run.Used.Wall = seconds(spec.Fork.Wall)
	}
	s.say(spec.Task)
	s.wants = Ask
	return RowStarted, nil
}

// The model.

func (s *stepper) turned(t Turned) (Row, error) {
	if err := s.exposes(t); err != nil {
		return "", err
	}
	if err := s.heard(t.Usage, t.Message); err != nil {
		return "", err
	}
	if len(t.Calls) == 0 {
		s.run.Answer = t.Message
		return RowAnswered, nil
	}
	if over := s.overSpent(); over != "" {
		return s.budgetEnded(over)
	}
	s.run.Turn = &Turn{Seq: s.run.Seq, Calls: t.Calls}
	s.nextCall()
	return RowProposed, nil
}

// exposes checks that a turn has no more calls than it may, and names no tool that the
// run does not expose.
func (s *stepper) exposes(t Turned) error {
	if len(t.Calls) > MaxCallsPerTurn {
		return refuse(CodeInvalid, "%d calls in one turn, at most %d", len(t.Calls), MaxCallsPerTurn)
	}
	for _, c := range t.Calls {
		if pin, ok := s.run.Spec.Tool(c.Tool); c.Tool != "" && (!ok || pin.HostOnly) {
			return refuse(CodeInvalid, "a proposal names a tool that the run does not expose")
		}
	}
	return nil
}

func (s *stepper) turnRefused(t TurnRefused) (Row, error) {
	if err := s.heard(t.Usage, t.Message); err != nil {
		return "", err
	}
	if over := s.overTurn(); over != "" {
		return s.budgetEnded(over)
	}
	s.wants = Ask
	return RowTurnRefused, nil
}

func (s *stepper) unreached(u Unreached) (Row, error) {
	s.run.Unreached++
	if u.Final || s.run.Unreached >= MaxUnreached {
		s.run.Reason = "model:" + u.Reason
		return RowModelGaveUp, nil
	}
	s.wants, s.after = Ask, s.run.Time.Add(u.pause())
	return RowModelUnreached, nil
}

// heard counts a turn, taken or refused, and adds its message to the transcript.
func (s *stepper) heard(u Usage, message BodyRef) error {
	const most = 1 << 40
	if u.Input < 0 || u.Output < 0 || u.Input > most || u.Output > most {
		return refuse(CodeInvalid, "a turn of %d and %d tokens", u.Input, u.Output)
	}
	if u.Cached < 0 || u.Cached > u.Input {
		return refuse(CodeInvalid, "a turn of %d tokens, %d of them cached", u.Input, u.Cached)
	}
	s.run.Used.Turns++
	s.run.Used.Tokens += u.Input + u.Output
	s.run.Used.Cost = s.run.Spec.Prices.add(s.run.Used.Cost, u)
	s.run.Unreached = 0
	s.say(message)
	return nil
}

// overTurn names the budget that another turn of the model would exceed.
func (s *stepper) overTurn() string {
	if s.run.Used.Turns >= s.run.Budget.Turns {
		return "model_turns"
	}
	if over := s.overSpent(); over != "" {
		return over
	}
	if s.overWall() {
		return "wall_time"
	}
	return ""
}

// overSpent names the budget that what the model's turns took exceeds.
func (s *stepper) overSpent() string {
	used, b := s.run.Used, s.run.Budget
	switch {
	case used.Tokens > b.Tokens:
		return "tokens"
	case b.Cost > 0 && used.Cost > b.Cost:
		return "cost"
	}
	return ""
}

func (s *stepper) overWall() bool { return s.run.Used.Wall > seconds(s.run.Budget.Wall) }

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

func (s *stepper) budgetEnded(which string) (Row, error) {
	s.run.Reason = "budget:" + which
	return RowBudgetEnded, nil
}

// say adds a message to the transcript's head.
func (s *stepper) say(message BodyRef) {
	if message.IsZero() {
		return
	}
	sum := sha256.Sum256([]byte(s.run.Transcript.Head + message.SHA256))
	s.run.Transcript = Transcript{Len: s.run.Transcript.Len + 1, Head: hex.EncodeToString(sum[:])}
}

// A call.

// nextCall takes the next proposal of the turn in hand.
func (s *stepper) nextCall() {
	t := *s.run.Turn
	s.run.Call = &Call{ID: CallID(s.run.ID, t.Seq, t.Next), Index: t.Next, Proposal: t.Calls[t.Next]}
	t.Next++
	s.run.Turn, s.run.Deadline = &t, time.Time{}
	s.wants = Prepare
}

// call gives the step a copy of the call in hand that it may write to.
func (s *stepper) call() *Call {
	c := *s.run.Call
	s.run.Call = &c
	return &c
}

func (s *stepper) checked(e Checked) (Row, error) {
	if !s.run.Open.Released {
		return "", refuse(CodeHeld, "the run is paused; the call is prepared again when it resumes")
	}
	tool, known := s.run.Spec.Tool(s.run.Call.Proposal.Tool)
	switch {
	case !known || tool.HostOnly:
		return "", refuse(CodeUnsigned, "the call is for a tool that the run does not expose")
	case e.Definition != tool.Definition:
		return "", refuse(CodeUnsigned, "the definition is not the pinned one")
	case s.run.Used.Calls >= s.run.Budget.Calls:
		return "", refuse(CodeBudget, "no tool calls are left")
	}
	c := s.call()
	if c.Edited && c.Arguments != e.Arguments {
		return "", refuse(CodeUnsigned, "the arguments are not those of the edit")
	}
	if err := signed(tool, c, e); err != nil {
		return "", err
	}
	for _, g := range c.Grants {
		if s.run.Time.Unix() >= g.Expires {
			return "", refuse(CodeLate, "the grant of %s expired before the call was sent", g.Approver)
		}
	}
	c.Arguments, c.Sent = e.Arguments, true
	s.run.Used.Calls++
	s.wants = Send
	return RowChecked, nil
}

// signed checks the invariant that matters: no Send without the required number of
// signatures, by different keys, over exactly its bytes. The grants of a call were
// verified when they were taken in; here they are counted and compared.
func signed(tool Tool, c *Call, e Checked) error {
	if tool.Approvers == 0 {
		return nil
	}
	cand := c.Candidate
	if cand == nil || len(c.Grants) < tool.Approvers {
		return refuse(CodeUnsigned, "%d of %d signatures", len(c.Grants), tool.Approvers)
	}
	if cand.Arguments != e.Arguments.SHA256 || cand.Bytes != e.Arguments.Bytes || cand.Definition != e.Definition {
		return refuse(CodeUnsigned, "the signatures are for other bytes")
	}
	return nil
}

func (s *stepper) returned(e Returned) (Row, error) {
	if s.ev.carried != 0 {
		return s.carried(e)
	}
	if e.Counted || e.Edited || e.Settled {
		return "", refuse(CodeInvalid, "an outcome of this run that says what it was in another")
	}
	waits := e.Status == StatusWaitingApproval
	if waits != (e.Candidate != nil) {
		return "", refuse(CodeInvalid, "a candidate and waiting_approval go together")
	}
	c := s.call()
	if waits {
		if err := s.candidate(*e.Candidate, e.Arguments); err != nil {
			return "", err
		}
		if c.Edited && c.Arguments != e.Arguments {
			return "", refuse(CodeInvalid, "the candidate is not for the edited arguments")
		}
		c.Candidate, c.Grants = e.Candidate, nil
	}
	if !e.Substituted && !possible(s.run.Open.Kind, s.run.tool().Risk, e.Outcome) {
		return "", refuse(CodeInvalid, "%s cannot return %s (sent: %t)", s.run.Open.Kind, e.Status, e.Sent)
	}
	if !e.Arguments.IsZero() {
		c.Arguments = e.Arguments
	}
	out := e.Outcome
	if waits && s.refusedBefore(c) {
		out = Outcome{Status: StatusRejected, Class: ClassPermissionRefused, Reason: ReasonRefusedBefore}
		c.Candidate = nil
	}
	c.Outcome, c.Settled, c.Substituted = &out, false, e.Substituted
	s.wants = Observe
	return RowReturned, nil
}

// possible reports whether an effect can have this outcome: Prepare sends nothing and
// so has no result, Send asks nobody, what is ok was sent, and a write that was sent
// is never merely unavailable.
func possible(by EffectKind, risk Risk, out Outcome) bool {
	switch out.Status {
	case StatusUnavailable:
		return !out.Sent || by == Send && !risk.Writes()
	case StatusRejected:
		return by == Send || !out.Sent
	case StatusWaitingApproval:
		return by == Prepare && !out.Sent
	case StatusOK, StatusResultUnknown:
		return by == Send && out.Sent
	case StatusFailed:
		return by == Send
	}
	return false
}

// candidate checks that a candidate is for this call and binds what Step knows.
func (s *stepper) candidate(c grant.Candidate, args BodyRef) error {
	tool, ok := s.run.Spec.Tool(s.run.Call.Proposal.Tool)
	server, known := s.run.Spec.Server(tool.Server)
	switch {
	case !ok || !known || tool.Approvers == 0:
		return refuse(CodeInvalid, "a candidate for a call that needs none")
	case c.Check() != nil:
		return refuse(CodeInvalid, "a malformed candidate")
	case c.Run != s.run.ID || c.Call != s.run.Call.ID || c.Head != s.run.Open.Head:
		return refuse(CodeInvalid, "a candidate for another call or another history")
	case c.Tool != tool.Remote || c.Definition != tool.Definition ||
		c.Audience != server.Audience || c.Scope != server.Scope:
		return refuse(CodeInvalid, "a candidate for another tool")
	case c.Arguments != args.SHA256 || c.Bytes != args.Bytes:
		return refuse(CodeInvalid, "a candidate for other arguments")
	}
	return nil
}

func (s *stepper) observed(e Observed) (Row, error) {
	c := s.call()
	was := c.Outcome
	switch {
	case was.Status != StatusOK && e.Status != was.Status, (e.Class == ClassBudget) != (was.Class == ClassBudget):
		return "", refuse(CodeInvalid, "observed %s of a call that returned %s", e.Status, was.Status)
	case e.Status == StatusWaitingApproval:
		return s.approvalRequired(c)
	case e.Status == StatusResultUnknown && s.run.tool().Risk.Writes() && was.Sent:
		out := *was
		out.Status, out.Class, out.Reason = e.Status, e.Class, e.Reason
		c.Outcome = &out
		s.wants = Verify
		return RowOutcomeUnknown, nil
	case e.Message.IsZero():
		return "", refuse(CodeInvalid, "a final outcome without its message")
	}
	s.say(e.Message)
	s.run.Call = nil
	if s.run.Cancelling {
		s.run.Reason = ReasonOperator
		return RowCancelled, nil
	}
	if e.Class == ClassBudget {
		return s.budgetEnded("tool_calls")
	}
	if s.run.Turn.Next < len(s.run.Turn.Calls) {
		if s.overWall() {
			return s.budgetEnded("wall_time")
		}
		s.nextCall()
		return RowNextCall, nil
	}
	if over := s.overTurn(); over != "" {
		return s.budgetEnded(over)
	}
	s.run.Turn = nil
	s.wants = Ask
	return RowNextTurn, nil
}

func (s *stepper) approvalRequired(c *Call) (Row, error) {
	if c.Candidate == nil || c.Outcome.Status != StatusWaitingApproval {
		return "", refuse(CodeInvalid, "no candidate to wait for")
	}
	if s.run.Deadline.IsZero() {
		s.run.Deadline = s.run.Time.Add(seconds(s.run.tool().Expires))
		s.tire()
	}
	s.wants = Present
	return RowApprovalRequired, nil
}

func (s *stepper) verified(f Finding) (Row, error) {
	c := s.call()
	out := *c.Outcome
	switch f {
	case Applied:
		out.Status, out.Class, out.Reason = StatusOK, ClassOK, ReasonSettled
	case NotApplied:
		out.Status, out.Class, out.Reason = StatusFailed, ClassToolError, ReasonSettled
	case Undecided:
		return RowUndecided, nil
	default:
		return "", refuse(CodeInvalid, "a finding that is none")
	}
	c.Outcome, c.Settled = &out, true
	s.wants = Observe
	return RowSettled, nil
}

// tick takes what has come due, and refuses if nothing has.
func (s *stepper) tick() (Row, error) {
	switch {
	case s.run.State == StateAwaitingApproval && !s.run.Deadline.IsZero() && !s.run.Time.Before(s.run.Deadline):
		s.decided(StatusRejected, ReasonExpired)
		return RowExpired, nil
	case s.run.State == StateModel && !s.run.Held && s.overWall():
		return s.budgetEnded("wall_time")
	}
	return "", refuse(CodeNotDue, "nothing is due")
}

// decided gives the pending call the outcome that no approval brought.
func (s *stepper) decided(status Status, reason string) {
	c := s.call()
	s.run.TurnedDown = append(slices.Clip(s.run.TurnedDown), TurnedDown{
		Tool: c.Proposal.Tool, Arguments: c.Candidate.Arguments, Refused: reason == ReasonRefused,
	})
	c.Outcome = &Outcome{Status: status, Class: ClassPermissionRefused, Reason: reason}
	c.Grants = nil
	s.run.Deadline = time.Time{}
	s.wants = Observe
}

// The reasons of outcomes that Step itself decides. Nodes and bridge have more.
const (
	ReasonRefused       = "refused"        // a person refused the candidate
	ReasonRefusedBefore = "refused_before" // a person refused the same call earlier in the run
	ReasonExpired       = "expired"        // nobody decided in time
	ReasonSettled       = "settled"        // evidence or a statement decided
	ReasonCrashed       = "crashed"        // the process ended while a write was in flight
	ReasonSubstituted   = "substituted"    // an operator gave it, in a fork
)

// The reasons of runs that an operator ended. A budget's is "budget:" and its name.
const (
	ReasonOperator  = "operator"
	ReasonAbandoned = "outcome_unknown" // the outcome of a write stays unknown
	// ReasonTurnedDown holds a run whose tool had too many candidates refused.
	ReasonTurnedDown = "turned_down"
)
