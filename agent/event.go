package agent

import "time"

// Origin says whose word an event is. It follows from the door that the event came
// through; no caller fills it in.
type Origin string

// The origins.
const (
	OriginModel    Origin = "model"    // what the model produced
	OriginRuntime  Origin = "runtime"  // what the Host's own nodes found
	OriginClock    Origin = "clock"    // a deadline
	OriginApprover Origin = "approver" // a signed decision; Step verifies it
	OriginOperator Origin = "operator" // whoever may use the state directory
)

// Kind names what an event says, in the journal.
type Kind string

// The kinds. docs/journal.md lists them beside the rows that each may become.
const (
	KindStart       Kind = "start"
	KindTurned      Kind = "turned"
	KindTurnRefused Kind = "turn_refused"
	KindUnreached   Kind = "unreached"
	KindChecked     Kind = "checked"
	KindReturned    Kind = "returned"
	KindObserved    Kind = "observed"
	KindVerified    Kind = "verified"
	KindApprove     Kind = "approve"
	KindRefuse      Kind = "refuse"
	KindEdit        Kind = "edit"
	KindAttest      Kind = "attest"
	KindCancel      Kind = "cancel"
	KindPause       Kind = "pause"
	KindResume      Kind = "resume"
	KindStepOnce    Kind = "step_once"
	KindExtend      Kind = "extend"
	KindSubstitute  Kind = "substitute"
	KindTick        Kind = "tick"
)

// payload is what an event says: a Start, a Result, a Decision or a tick.
type payload interface{ kind() Kind }

// Event is one thing that happened to a run, with its time and its origin. It can
// only be made through a door: [Begin], [FromNode], [FromOutside], [FromClock].
type Event struct {
	time   time.Time
	origin Origin
	actor  string // who, within the origin: an operator's name; approvers are named by their signature
	effect int64  // for results: the sequence of the event that opened the effect
	body   payload

	carried int64 // the parent's entry that a fork takes the event from; 0 for its own
	fork    bool  // a start that what it carries follows: see [Carry]
}

// Time is when the engine took the event in.
func (e Event) Time() time.Time { return e.time }

// Origin says through which door the event came.
func (e Event) Origin() Origin { return e.origin }

// Actor names who it was, within the origin.
func (e Event) Actor() string { return e.actor }

// Kind names what the event says.
func (e Event) Kind() Kind {
	if e.body == nil {
		return ""
	}
	return e.body.kind()
}

// Payload returns what the event says: a [Spec], a [Result], a [Decision], or nil
// for a tick.
func (e Event) Payload() any {
	if _, ok := e.body.(tick); ok {
		return nil
	}
	return e.body
}

// tick says that a deadline may have passed.
type tick struct{}

func (tick) kind() Kind { return KindTick }

func (Spec) kind() Kind { return KindStart }

// Begin is the door of the operator who starts a run.
func Begin(spec Spec, actor string, at time.Time) Event {
	spec = spec.whole()
	return Event{time: stamp(at), origin: door(spec), actor: actor, body: spec}
}

// FromNode is the door of the nodes: r answers the effect. A turn is the model's
// word, all else the runtime's.
func FromNode(e Effect, r Result, at time.Time) Event {
	return Event{time: stamp(at), origin: door(r), effect: e.Seq, body: r}
}

// fromParent is the door of what a fork carries: r is what entry seq of its parent
// says. [Carry] alone opens it.
func fromParent(e Effect, r Result, seq int64, at time.Time) Event {
	ev := FromNode(e, r, at)
	ev.carried = seq
	return ev
}

// FromOutside is the door of persons and operators. A signed decision has the
// origin approver whoever delivers it, since Step believes its signature only.
func FromOutside(d Decision, actor string, at time.Time) Event {
	return Event{time: stamp(at), origin: door(d), actor: actor, body: d}
}

// FromClock is the door of the engine's clock.
func FromClock(at time.Time) Event {
	return Event{time: stamp(at), origin: door(tick{}), body: tick{}}
}

// stamp strips what a journal cannot keep: the monotonic reading, the zone and
// what lies below a microsecond.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// door is the origin that follows from what an event says. Step refuses an event of
// any other.
func door(p payload) Origin {
	switch p := p.(type) {
	case Turned, TurnRefused:
		return OriginModel
	case Result:
		return OriginRuntime
	case Approve, Edit, Attest:
		return OriginApprover
	case Refuse:
		if p.Signed != "" {
			return OriginApprover
		}
		return OriginOperator
	case tick:
		return OriginClock
	}
	return OriginOperator // a Spec and the unsigned decisions
}
