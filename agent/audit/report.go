package audit

import (
	"time"

	"sallyport/agent"
)

// Report is what an audit found. Beside an error it holds what was found all the same.
type Report struct {
	Run     string      `json:"run"`
	Entries int64       `json:"entries"` // that were read and follow one another
	Head    string      `json:"head"`    // hash of the last of them
	State   agent.State `json:"state"`   // after the last
	Started time.Time   `json:"started,omitzero"`
	Updated time.Time   `json:"updated,omitzero"`
	// Signed is the newest history that a valid approval vouches for; nil if none
	// was given. Entries after it may have been cut off without a trace.
	Signed   *Signed   `json:"signed,omitempty"`
	Counts   Counts    `json:"counts"`
	Findings []Finding `json:"findings,omitempty"` // what is open, in order of entries
	Breaks   []Break   `json:"breaks,omitempty"`   // in order of entries, at most 100; the first is the error
}

// Signed is a head that somebody's key has signed.
type Signed struct {
	Seq      int64  `json:"seq"`      // the entry whose hash was signed
	Head     string `json:"head"`     // its hash
	Approver string `json:"approver"` // whose key it was
	By       int64  `json:"by"`       // the entry that records the approval
}

// Counts are an audit's own: none is taken from the run that wrote the journal.
type Counts struct {
	Calls       int           `json:"calls"`                 // begun: prepared at least once, or taken over
	Sends       int           `json:"sends"`                 // intents; with those of the parent that count, what the budget counts as calls
	Writes      int           `json:"writes"`                // sends that needed signatures
	Results     int           `json:"results"`               // calls with their one final result
	Grants      int           `json:"grants"`                // valid approvals
	Statements  int           `json:"statements"`            // valid signed edits, refusals and statements
	Turns       int           `json:"turns"`                 // of the model
	Tokens      int64         `json:"tokens"`                // input and output
	Wall        time.Duration `json:"wall"`                  // working time, nanoseconds
	Parent      string        `json:"parent,omitempty"`      // of a fork: the run whose outcomes it took over
	Carried     int           `json:"carried,omitempty"`     // of a fork: calls with the outcome that they had there
	Substitutes int           `json:"substitutes,omitempty"` // of a fork: turns and outcomes that an operator gave
	Cost        int64         `json:"cost"`                  // millionths of the unit of the pinned prices
	Attempts    int           `json:"attempts"`              // effects that were performed again
	Notes       int           `json:"notes"`                 // decisions and results that were refused
	Bodies      int           `json:"bodies"`                // checked against their names
	Erased      int           `json:"erased"`                // bodies whose erasure the journal records
	NotIncluded int           `json:"not_included"`          // bodies that the auditor was not given
}

// Open says what an open finding is about.
type Open string

// The findings. None is a break.
const (
	OpenSend       Open = "send_open"       // a write is in flight, or the process ended during it
	OpenUnknown    Open = "outcome_unknown" // nobody knows whether a write took effect
	OpenUnanswered Open = "unanswered"      // the run ended during a call
	OpenScripted   Open = "scripted"        // a key approved that no person holds
	OpenStored     Open = "erased_stored"   // content is there though the journal says erased
)

// Finding is something that an auditor should know and that breaks no promise.
type Finding struct {
	Seq    int64  `json:"seq"`
	Open   Open   `json:"open"`
	Detail string `json:"detail"`
}
