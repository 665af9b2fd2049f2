package agent

import (
	"time"

	"sallyport/tools/grant"
)

// Rules is the version of Step's behaviour. The first entry of a run pins it.
const Rules = 0

// Spec is what a run is begun with and never changes: the content of its first
// entry. Only the budget can be raised, by an event.
type Spec struct {
	Run       string     `json:"run"` // [a-z0-9-]{1,64}, from the caller: starting it twice is once
	Rules     int        `json:"rules"`
	Task      BodyRef    `json:"task"`            // the task's text
	Config    string     `json:"config"`          // digest of the configuration
	Model     string     `json:"model,omitempty"` // a label from trusted configuration
	Tools     []Tool     `json:"tools"`
	Servers   []Server   `json:"servers"`
	Approvers []Approver `json:"approvers"`
	Budget    Budget     `json:"budget"`
	Prices    *Prices    `json:"prices,omitempty"` // what tokens cost; without them cost is not counted
	Fork      *Fork      `json:"fork,omitempty"`   // of which run, and from where, it goes on
}

// Tool is a pinned tool: what the operator's contract and one discovery at the start
// said of it.
type Tool struct {
	Name       string `json:"name"`   // as the model knows it: prefix__alias
	Server     string `json:"server"` // the prefix
	Remote     string `json:"remote"` // the server's own name
	Risk       Risk   `json:"risk"`
	HostOnly   bool   `json:"host_only,omitempty"`
	Definition string `json:"definition"` // digest of the canonical definition
	Approvers  int    `json:"approvers"`  // signatures by different keys that Send needs
	Expires    int64  `json:"expires,omitempty"`
	UseWithin  int64  `json:"use_within,omitempty"`
	// Role is what an approver must hold to sign for the tool; empty is no more than
	// being an approver.
	Role string `json:"role,omitempty"`
	// OwnKey lets the operator who began the run be one of several approvers.
	OwnKey bool `json:"own_key,omitempty"`
	Settle bool `json:"settle,omitempty"` // the contract declares a read-back
}

// Server is a pinned server.
type Server struct {
	Prefix   string `json:"prefix"`
	Audience string `json:"audience"`
	Scope    string `json:"scope,omitempty"`
	Protocol string `json:"protocol"` // negotiated at the start
}

// Approver is a pinned key that may sign.
type Approver struct {
	Key      string    `json:"key"` // one line: ed25519 BASE64 NAME
	NotAfter time.Time `json:"not_after,omitzero"`
	Roles    []string  `json:"roles,omitempty"`
	Scripted bool      `json:"scripted,omitempty"` // made for one demo or scenario; nobody was asked
}

// Budget bounds a run. Exactly at a limit passes.
type Budget struct {
	Calls  int   `json:"calls"`  // tool calls; counted by the intent, never given back
	Turns  int   `json:"turns"`  // model turns
	Tokens int64 `json:"tokens"` // input and output together
	Wall   int64 `json:"wall"`   // seconds of working time; parked time is free
	// Cost is in millionths of the unit of the prices; 0 is no limit. A limit needs
	// prices: what is not counted cannot be bounded.
	Cost int64 `json:"cost,omitempty"`
}

// DefaultBudget is SPEC A8.
var DefaultBudget = Budget{Calls: 12, Turns: 24, Tokens: 200_000, Wall: 15 * 60}

// Limits of a run that no configuration raises.
const (
	// MaxCallsPerTurn bounds the proposals of one turn; more refuse the turn.
	MaxCallsPerTurn = 32
	// MaxUnreached is how often the model is tried in a row before the run fails.
	MaxUnreached = 4
	// MaxTurnedDown is how many candidates of one tool may be refused or expire
	// before the run is held at the next.
	MaxTurnedDown = 3
	// MaxNoted bounds the refused deliveries that a run journals.
	MaxNoted = 100
)

// Used is what a run has spent.
type Used struct {
	Calls  int
	Turns  int
	Tokens int64
	Wall   time.Duration
	Cost   int64 // millionths of the unit of the prices; 0 without prices
}

// Run is the state of a run after some entry of its journal. It is a value: Step
// returns a new one and never writes through what it was given.
type Run struct {
	ID string
	// Version is the journal format of the run's entries: its first entry's, so that a
	// newer program goes on in the form that it finds.
	Version int
	Seq     int64     // of the last entry; the first is 1
	Head    string    // hash of the last entry
	Time    time.Time // of the last entry
	Spec    Spec
	// Operator is who began the run, by the name that the engine's caller gave.
	Operator string
	// Budget is the Spec's, raised by extensions.
	Budget Budget
	Used   Used

	State  State
	Reason string // why the run ended, or what holds it

	Turn *Turn       // the model's open turn
	Call *Call       // the call in hand
	Open *OpenEffect // the effect that the run waits for

	Carried Carried // what a fork took over from its parent

	Held       bool      // paused: what has not started is withheld
	Cancelling bool      // cancel was asked while a write was in flight
	Deadline   time.Time // when the pending candidate expires
	Unreached  int       // attempts at the model in a row without a turn
	Noted      int       // refused deliveries journaled

	TurnedDown []TurnedDown // candidates that were refused or expired, in order

	Transcript Transcript
	Answer     BodyRef // the model's last message, once completed

	by string // whose word the last event was; for its entry
}

// Transcript is the head of what the model was told and said; the messages are in
// the journal's events.
type Transcript struct {
	Len  int    // messages so far
	Head string // hash over all of them, in order
}

// Turn is a turn of the model whose calls are being made, in order.
type Turn struct {
	Seq   int64 // of the proposed event
	Calls []Proposal
	Next  int // index of the first call not begun
}

// Call is a tool call in hand.
type Call struct {
	ID       string // hash of run, sequence and index
	Index    int    // within the turn
	Proposal Proposal
	// Arguments are the canonical bytes: from Prepare, or from an edit.
	Arguments BodyRef
	Edited    bool // a person's arguments, not the model's
	Candidate *grant.Candidate
	Grants    []Grant // for Candidate, by different keys
	Sent      bool    // an intent is journaled: here, or, of a call that is carried, in the parent
	Carried   int64   // the parent's entry that the outcome is from; 0 if it is this run's own
	Outcome   *Outcome
	Settled   bool // the outcome was found by evidence, not returned
	// Substituted says that an operator gave the outcome: nothing was sent.
	Substituted bool
}

// Grant is a signed grant that Step has verified and taken in.
type Grant struct {
	Wire     string // the envelope, as it goes to the server
	Key      string // id of the key
	Approver string // name of the key
	Expires  int64  // unix seconds; from then on the grant counts as none
}

// TurnedDown is a candidate that nobody approved.
type TurnedDown struct {
	Tool      string
	Arguments string // digest
	Refused   bool   // by a person; else it expired
}

// Tool returns the pinned tool of that exposed or host-only name.
func (s *Spec) Tool(name string) (Tool, bool) {
	for i := range s.Tools {
		if s.Tools[i].Name == name {
			return s.Tools[i], true
		}
	}
	return Tool{}, false
}

// Server returns the pinned server of that prefix.
func (s *Spec) Server(prefix string) (Server, bool) {
	for i := range s.Servers {
		if s.Servers[i].Prefix == prefix {
			return s.Servers[i], true
		}
	}
	return Server{}, false
}

// tool is the pinned tool of the call in hand; zero, a read without a name, if the
// model named none that the run has.
func (r *Run) tool() Tool {
	if r.Call == nil {
		return Tool{Risk: RiskRead}
	}
	t, ok := r.Spec.Tool(r.Call.Proposal.Tool)
	if !ok {
		return Tool{Risk: RiskRead}
	}
	return t
}

// Startable reports whether the open effect may start now or at its After.
func (r *Run) Startable() bool { return r.Open != nil && r.Open.Released }

// repeatable reports whether the open effect may be performed again: all but the Send
// of a write.
func (r *Run) repeatable() bool {
	return r.Open != nil && !(r.Open.Kind == Send && r.tool().Risk.Writes())
}

// Rests reports whether nothing happens to the run until somebody outside speaks or
// a deadline passes.
func (r *Run) Rests() bool {
	return !r.Startable() || r.Open.Kind == Present
}

// Due is when a tick is next accepted; false if no deadline is set.
func (r *Run) Due() (time.Time, bool) {
	switch {
	case r.State == StateAwaitingApproval && !r.Deadline.IsZero():
		return r.Deadline, true
	case r.State == StateModel && !r.Held:
		// Exactly at the limit passes, so the tick is due just after it.
		return r.Time.Add(seconds(r.Budget.Wall) - r.Used.Wall + time.Millisecond), true
	}
	return time.Time{}, false
}
