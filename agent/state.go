package agent

// State is a place where a run can be. Five states work, three are final.
type State string

// The states of a run (SPEC A1). The zero value is "not started".
const (
	StateNone              State = ""
	StateModel             State = "model"              // the model proposes or answers
	StateExecute           State = "execute"            // one call is prepared, then sent
	StateObserve           State = "observe"            // its outcome is validated and stored
	StateAwaitingApproval  State = "awaiting_approval"  // a person decides on exact bytes
	StateNeedsVerification State = "needs_verification" // nobody knows whether a write took effect
	StateCompleted         State = "completed"
	StateFailed            State = "failed"
	StateCancelled         State = "cancelled"
)

// States lists every state that a started run can be in, the working ones first.
func States() []State {
	return []State{
		StateModel, StateExecute, StateObserve, StateAwaitingApproval, StateNeedsVerification,
		StateCompleted, StateFailed, StateCancelled,
	}
}

// Final reports whether nothing can follow: the run has completed, failed or been cancelled.
func (s State) Final() bool {
	return s == StateCompleted || s == StateFailed || s == StateCancelled
}

// Open reports whether the run has started and not ended.
func (s State) Open() bool { return s != StateNone && !s.Final() }

// working reports whether time spent in the state counts against the wall-time
// budget: waiting for a person, or for evidence, is free.
func (s State) working() bool {
	return s == StateModel || s == StateExecute || s == StateObserve
}

// Status is what became of a call, in the words of SPEC D7, B8 and B10.
type Status string

// The statuses. The first four a server can report; the last two are the Host's.
const (
	StatusOK              Status = "ok"
	StatusRejected        Status = "rejected"
	StatusFailed          Status = "failed"
	StatusResultUnknown   Status = "result_unknown"
	StatusUnavailable     Status = "unavailable"
	StatusWaitingApproval Status = "waiting_approval"
)

// Class sorts outcomes for the log and for acceptance runs (SPEC C3).
type Class string

// The classes. Every outcome has exactly one.
const (
	ClassOK                Class = "ok"
	ClassToolError         Class = "tool_error"
	ClassBudget            Class = "budget"
	ClassProtocolError     Class = "protocol_error"
	ClassTimeout           Class = "timeout"
	ClassPermissionRefused Class = "permission_refused"
)

// Risk is the class of a tool, taken from the operator's contract and never from
// what a server says of itself (SPEC B2, C1).
type Risk string

// The risks. A settle tool is host-only and can only void a candidate.
const (
	RiskRead        Risk = "read"
	RiskWrite       Risk = "write"
	RiskDestructive Risk = "destructive"
	RiskSettle      Risk = "settle"
)

// Writes reports whether a call of this risk may change something: its unknown
// outcome is verified, never retried, and it needs signatures.
func (r Risk) Writes() bool { return r != RiskRead }
