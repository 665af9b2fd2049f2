package agent

import (
	"cmp"
	"time"
)

// Summarize is the line of a run in a list.
func Summarize(run Run, started time.Time) Summary {
	s := Summary{
		ID: run.ID, State: run.State, Reason: run.Reason, Seq: run.Seq, Held: run.Held,
		Unknown: run.State == StateNeedsVerification || run.Reason == ReasonAbandoned,
		Started: started, Updated: run.Time,
	}
	if run.Spec.Fork != nil {
		s.Parent = run.Spec.Fork.Run
	}
	if run.Call != nil {
		s.Tool = run.Call.Proposal.Tool
	}
	if run.State == StateAwaitingApproval {
		s.Deadline = run.Deadline
	}
	return s
}

// Selects reports whether the filter lets a summary pass; the limit is the lister's.
func (f Filter) Selects(s Summary) bool {
	return (!f.Open || s.State.Open()) && (f.State == "" || f.State == s.State)
}

// Newest orders summaries by when they began, newest first.
func Newest(a, b Summary) int {
	if c := b.Started.Compare(a.Started); c != 0 {
		return c
	}
	return cmp.Compare(a.ID, b.ID)
}
