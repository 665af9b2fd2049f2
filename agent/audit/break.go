package audit

import (
	"fmt"

	"sallyport/agent"
)

// What says which promise of a journal is broken.
type What string

// The promises, each by the word that names its break.
const (
	BreakChain      What = "chain"      // an entry is missing, moved, altered, or of another run
	BreakEntry      What = "entry"      // an entry that cannot be read, or holds what its kind cannot
	BreakTime       What = "time"       // an entry is earlier than the one before
	BreakStep       What = "step"       // Step comes to something else than was recorded
	BreakTransition What = "transition" // the table has no such row from this state
	BreakOrigin     What = "origin"     // the event cannot have come through the door that is recorded
	BreakEffect     What = "effect"     // an effect opened, answered or repeated against the rules
	BreakApproval   What = "approval"   // awaiting_approval was left by no trusted event
	BreakSignature  What = "signature"  // a decision without a valid signature of a pinned key
	BreakGrant      What = "grant"      // a write sent without the required grants over exactly its bytes
	BreakSpent      What = "spent"      // a call, a candidate or a grant that served for two Sends
	BreakResult     What = "result"     // a call without exactly one final result
	BreakBudget     What = "budget"     // more was spent than the run was given
	BreakBody       What = "body"       // content that is missing or not what its name says
	BreakFork       What = "fork"       // a fork says something else than its parent, or what no operator may
	BreakTrust      What = "trust"      // the run pinned a key that the auditor does not trust
)

// Break is the place where a journal does not hold together. It wraps
// [agent.ErrIntegrity].
type Break struct {
	Run    string `json:"run,omitempty"`
	Seq    int64  `json:"seq"` // the entry: the one that should be there, where one is missing
	What   What   `json:"what"`
	Detail string `json:"detail"`
}

// Error implements error.
func (b *Break) Error() string {
	return fmt.Sprintf("%v: run %q, entry %d: %s: %s", agent.ErrIntegrity, b.Run, b.Seq, b.What, b.Detail)
}

// Unwrap makes every break an [agent.ErrIntegrity].
func (b *Break) Unwrap() error { return agent.ErrIntegrity }

// maxBreaks bounds the breaks that a report lists: behind the first few, one is the
// consequence of another.
const maxBreaks = 100
