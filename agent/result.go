package agent

import (
	"time"

	"sallyport/tools/grant"
)

// Result is what a node hands back for an effect: the sealed set of what comes from
// inside. A Result cannot decide anything: the origin of the event that it becomes
// is the model's or the runtime's, whatever it says.
//
//sumtype:decl
type Result interface {
	kind() Kind
	result()
}

// Turned is a complete turn of the model: an answer if it holds no calls, else
// proposals. It answers Ask.
type Turned struct {
	Message BodyRef    `json:"message"` // the assistant message, as it goes back into the context
	Calls   []Proposal `json:"calls,omitempty"`
	Usage   Usage      `json:"usage,omitzero"`
}

// Proposal is one tool call that the model asks for.
type Proposal struct {
	// Tool is the exposed name that the run pinned, or "" where the model named
	// something else: free text of the model stays out of the journal.
	Tool string `json:"tool"`
	// Body holds the call as the model sent it: see [ProposalBody].
	Body BodyRef `json:"body"`
}

// ProposalBody is the content behind [Proposal.Body].
type ProposalBody struct {
	ID        string `json:"id"`        // the model's call id; answered exactly once
	Name      string `json:"name"`      // the tool name, as sent
	Arguments string `json:"arguments"` // the argument text, as sent, unparsed
}

// Usage is what a turn cost, in tokens, as the model's provider counts them.
type Usage struct {
	Input  int64 `json:"input,omitempty"`
	Output int64 `json:"output,omitempty"`
	// Cached is how many of the Input tokens the provider served from its cache. A run
	// that was begun in a format before version 2 does not keep it.
	Cached int64 `json:"cached,omitempty"`
}

// TurnRefused is a turn of the model that does not count as one: cut off, malformed,
// or with a call id twice. The model is told, and asked again while the budget
// lasts. It answers Ask.
type TurnRefused struct {
	Reason  string  `json:"reason"`  // a fixed word
	Message BodyRef `json:"message"` // what the model is told
	Usage   Usage   `json:"usage,omitzero"`
}

// Unreached says that the model gave no turn at all. It answers Ask.
type Unreached struct {
	Reason string `json:"reason"` // a fixed word
	// After is the pause before the next attempt, in seconds.
	After int64 `json:"after,omitempty"`
	// Final says that another attempt is useless.
	Final bool `json:"final,omitempty"`
}

// Checked says that nothing stands against the call any more: the intent. Appending
// it counts the call and opens Send. It answers Prepare.
type Checked struct {
	Arguments  BodyRef `json:"arguments"`  // the exact bytes that will be sent, without the grant field
	Definition string  `json:"definition"` // digest of the definition found just now; must be the pinned one
	Server     string  `json:"server,omitempty"`
	Protocol   string  `json:"protocol,omitempty"` // negotiated on the connection in use
}

// Outcome is what became of a call, as the Host classifies it.
type Outcome struct {
	Status  Status  `json:"status"`
	Class   Class   `json:"class"`
	Reason  string  `json:"reason,omitempty"`  // a fixed word that says which rule decided
	Body    BodyRef `json:"body,omitzero"`     // the raw result, for the operator
	Request string  `json:"request,omitempty"` // the MCP request id
	Sent    bool    `json:"sent,omitempty"`    // a request left the Host, or may have
}

// Returned is an outcome. It answers Prepare, which refuses or asks for approval,
// and Send.
type Returned struct {
	Outcome
	// Arguments are the canonical argument bytes, where there are any.
	Arguments BodyRef `json:"arguments,omitzero"`
	// Candidate is what a person must sign: with StatusWaitingApproval, or, of an outcome
	// that a fork carries and that is not final, what was signed in the parent.
	Candidate *grant.Candidate `json:"candidate,omitempty"`

	// Of an outcome that a fork carries only: what the call was in the parent.
	Counted bool `json:"counted,omitempty"` // its intent was journaled there: it counts here too
	Edited  bool `json:"edited,omitempty"`  // a person had replaced its arguments
	Settled bool `json:"settled,omitempty"` // evidence, or a person, had decided

	// Substituted says that an operator gave the outcome: see [Substitute].
	Substituted bool `json:"substituted,omitempty"`
}

// Observed is the validated outcome of a call: what the model will be told. It
// answers Observe.
type Observed struct {
	Status  Status  `json:"status"` // may be worse than what was returned, never better
	Class   Class   `json:"class"`
	Reason  string  `json:"reason,omitempty"`
	Message BodyRef `json:"message,omitzero"` // the tool message; none while the outcome is open
	// Evidence is the stored body that the message quotes.
	Evidence BodyRef `json:"evidence,omitzero"`
	// ReadBack is what the server answered when an ok write was confirmed.
	ReadBack BodyRef `json:"read_back,omitzero"`
}

// Verified is what a read-back found out about a write whose outcome was unknown.
// It answers Verify.
type Verified struct {
	Finding  Finding `json:"finding"`
	Reason   string  `json:"reason,omitempty"`
	Evidence BodyRef `json:"evidence,omitzero"`
}

// Finding is the verdict of evidence on a write.
type Finding string

// The findings. Undecided leaves the run to a person.
const (
	Applied    Finding = "applied"
	NotApplied Finding = "not_applied"
	Undecided  Finding = "undecided"
)

func (Turned) result()      {}
func (TurnRefused) result() {}
func (Unreached) result()   {}
func (Checked) result()     {}
func (Returned) result()    {}
func (Observed) result()    {}
func (Verified) result()    {}

func (Turned) kind() Kind      { return KindTurned }
func (TurnRefused) kind() Kind { return KindTurnRefused }
func (Unreached) kind() Kind   { return KindUnreached }
func (Checked) kind() Kind     { return KindChecked }
func (Returned) kind() Kind    { return KindReturned }
func (Observed) kind() Kind    { return KindObserved }
func (Verified) kind() Kind    { return KindVerified }

// pause is how long the engine waits before it asks the model again.
func (u Unreached) pause() time.Duration { return time.Duration(u.After) * time.Second }
