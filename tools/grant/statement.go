package grant

// Edit replaces a candidate: the same call with other arguments. It grants
// nothing; what comes of it is a new candidate that needs a grant of its own.
type Edit struct {
	Candidate string `json:"candidate"` // id of the candidate that it replaces
	Run       string `json:"run"`
	Arguments string `json:"arguments"` // hex SHA-256 of the new canonical arguments
	Bytes     int64  `json:"bytes"`     // size of these arguments
	Approver  string `json:"approver"`  // the name of the signing key
	Head      string `json:"head"`      // hex hash of the journal entry before the candidate
	Time      int64  `json:"time"`      // Unix seconds of signing
}

// Refusal says that a named person refused a candidate.
type Refusal struct {
	Candidate string `json:"candidate"`
	Run       string `json:"run"`
	Approver  string `json:"approver"`
	Head      string `json:"head"`
	Time      int64  `json:"time"`
}

// The verdicts of a [Statement].
const (
	VerdictApplied    = "applied"     // the call took effect
	VerdictNotApplied = "not_applied" // it did not, and never will
	VerdictUnknown    = "unknown"     // the person could not find out
)

// Statement says what a named person found out about a call of unknown outcome.
type Statement struct {
	Call      string `json:"call"`
	Candidate string `json:"candidate"`
	Run       string `json:"run"`
	Verdict   string `json:"verdict"` // one of the Verdict constants
	Approver  string `json:"approver"`
	Head      string `json:"head"`
	Time      int64  `json:"time"`
}

func (e Edit) check() error {
	switch {
	case !isHex(e.Arguments, 64):
		return refused("arguments")
	case e.Bytes < 0:
		return refused("bytes")
	}
	return checkDecision(e.Candidate, e.Run, e.Approver, e.Head, e.Time)
}

func (r Refusal) check() error {
	return checkDecision(r.Candidate, r.Run, r.Approver, r.Head, r.Time)
}

func (s Statement) check() error {
	switch s.Verdict {
	case VerdictApplied, VerdictNotApplied, VerdictUnknown:
	default:
		return refused("verdict")
	}
	if !isLabel(s.Call, MaxCall) {
		return refused("call")
	}
	return checkDecision(s.Candidate, s.Run, s.Approver, s.Head, s.Time)
}

// checkDecision checks what edits, refusals and statements have in common.
func checkDecision(candidate, run, approver, head string, second int64) error {
	switch {
	case !isHex(candidate, 64):
		return refused("candidate")
	case !isRun(run):
		return refused("run")
	case !isName(approver):
		return refused("approver")
	case !isHex(head, 64):
		return refused("head")
	case !isTime(second):
		return refused("time")
	}
	return nil
}
