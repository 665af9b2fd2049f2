package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"
)

// Engine keeps runs and moves them on. It is the seam between what a run means,
// which Step says, and how it lasts. An engine steps in memory, appends the event
// and the effects that it opens in one durable write, performs the effects, and
// takes what comes back as the next event; in this order and no other. It never
// retries: Step does.
type Engine interface {
	// Start begins a run, durably, with the bodies that its Spec names. Starting an
	// id that exists with an equal Spec returns the run as it is; with another Spec
	// it is [ErrExists].
	//
	// A Spec with a Fork begins a run with what it carries of another run of this
	// engine, see [Carry], in one durable write, with the bodies that this names, which
	// are copied: [ErrNoRun] if there is no such parent, [ErrNoBody] if one of its bodies
	// is gone, [ErrIntegrity] if it has another history than the Spec says, a [*Refusal]
	// if it cannot be forked there or the fork's budget is less than what was used.
	Start(ctx context.Context, spec Spec, actor string, bodies []Body) (Run, error)
	// Deliver hands a decision to a run and waits for the verdict. The same Delivery
	// key gives the first verdict again. A decision that Step refuses is a Verdict
	// with a Refusal, not an error.
	Deliver(ctx context.Context, run string, d Delivery) (Verdict, error)
	// Journal yields the entries from sequence from on. With follow it waits for
	// more until the run has ended or ctx is done.
	Journal(ctx context.Context, run string, from int64, follow bool) iter.Seq2[Entry, error]
	// Body returns the content that an entry of the run names, or [ErrNoBody].
	Body(ctx context.Context, run string, ref BodyRef) ([]byte, error)
	// List returns summaries, newest first; it may lag behind.
	List(ctx context.Context, filter Filter) ([]Summary, error)
	// Serve performs the effects of runs. open makes the nodes of a run, closed when
	// it parks, ends, or Serve returns. Serve returns nil when what it was asked to
	// serve rests, and ctx.Err() when interrupted: then nothing new was started and
	// a Send in flight was waited for.
	Serve(ctx context.Context, opts ServeOptions, open func(Run) (Nodes, error)) error
	Close() error
}

// ServeOptions says what to serve.
type ServeOptions struct {
	// Runs are the ids to serve until each rests or has ended; empty serves every
	// open run until ctx is done.
	Runs []string
}

// Nodes perform the effects of one run.
type Nodes interface {
	// Perform does what the task's effect says. A nil Result has nothing to report
	// (Present). An error means that the runtime could not do its job: the effect
	// stays open and the run can be resumed. A done ctx should end it soon; a Send
	// under way is never interrupted by the engine.
	Perform(ctx context.Context, t Task) (Report, error)
	Close() error
}

// Task is one effect to perform, with the run as it was after the last entry.
type Task struct {
	Run    Run
	Effect OpenEffect
	Reader Reader
}

// Reader reads the run's own journal and bodies.
type Reader interface {
	Entries(ctx context.Context) iter.Seq2[Entry, error]
	Body(ctx context.Context, ref BodyRef) ([]byte, error)
}

// Report is what a node hands back.
type Report struct {
	Result Result
	Bodies []Body
}

// Delivery is a decision on its way to a run.
type Delivery struct {
	// Key makes a delivery idempotent: for signed decisions the hash of the signed
	// bytes (see [DeliveryKey]), else minted by the client.
	Key      string
	Actor    string
	Decision Decision
	Bodies   []Body // the arguments of an edit
}

// Verdict is what became of a delivery.
type Verdict struct {
	Seq     int64    `json:"seq"` // of the entry that records it; 0 if none does
	Row     Row      `json:"row,omitempty"`
	State   State    `json:"state"` // of the run afterwards
	Refusal *Refusal `json:"refusal,omitempty"`
}

// Filter selects runs for List. The zero value selects all.
type Filter struct {
	Open  bool  // only runs that have not ended
	State State // only runs in this state
	Limit int   // 0 is no limit
}

// Summary is a run in a list.
type Summary struct {
	ID       string    `json:"id"`
	State    State     `json:"state"`
	Reason   string    `json:"reason,omitempty"`
	Seq      int64     `json:"seq"`
	Held     bool      `json:"held,omitempty"`
	Unknown  bool      `json:"unknown,omitempty"` // the outcome of a write is, or stayed, unknown
	Tool     string    `json:"tool,omitempty"`    // of the call in hand
	Started  time.Time `json:"started"`
	Updated  time.Time `json:"updated"`
	Deadline time.Time `json:"deadline,omitzero"`
	Parent   string    `json:"parent,omitempty"` // the run that it is a fork of
}

// Errors of engines. Callers branch on them with errors.Is.
var (
	// ErrNoRun: the state directory has no run of that id.
	ErrNoRun = errors.New("no such run")
	// ErrExists: the id is taken by a run that was begun otherwise.
	ErrExists = errors.New("the run id is taken")
	// ErrNoBody: the content is not there (erased, or never was).
	ErrNoBody = errors.New("no such body")
	// ErrServed: another process, or another part of this one, serves the run.
	ErrServed = errors.New("the run is being served elsewhere")
	// ErrConflict: the journal has moved on since the caller read it.
	ErrConflict = errors.New("the journal has moved on")
	// ErrIntegrity: the journal does not hold together.
	ErrIntegrity = errors.New("journal integrity")
	// ErrNewer: the journal was written by a newer version.
	ErrNewer = errors.New("written by a newer version of sallyport")
)

// Refusal says why Step did not take an event. The run did not change.
type Refusal struct {
	Code    string `json:"code"` // a fixed word: see the Code constants
	Message string `json:"message"`
}

// Error implements error.
func (r *Refusal) Error() string { return fmt.Sprintf("refused (%s): %s", r.Code, r.Message) }

// The codes of refusals.
const (
	CodeIllegal    = "illegal"     // no row leads on from this state for this event
	CodeEnded      = "ended"       // the run has ended; fork it
	CodeStale      = "stale"       // the effect that it answers is not open
	CodeHeld       = "held"        // an intent that arrived while the run is paused
	CodeNotWaiting = "not_waiting" // no candidate is pending
	CodeOther      = "other"       // it is about another candidate, call or run
	CodeLate       = "late"        // after the deadline of the candidate or of the grant
	CodeForged     = "forged"      // no valid signature of a known key
	CodeKey        = "key"         // the key is not, or no longer, among the run's approvers
	CodeTwice      = "twice"       // this key has signed the candidate already
	CodeUnsigned   = "unsigned"    // an open Send would lack a signature, or exact bytes
	CodeNotDue     = "not_due"     // a tick before anything is due
	CodeUnknown    = "unknown"     // the outcome of a write is unknown; settle or abandon it
	CodeInvalid    = "invalid"     // the event itself is malformed
	CodeBudget     = "budget"      // the budget does not allow it
)

func refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}
