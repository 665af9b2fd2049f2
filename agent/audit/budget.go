package audit

import (
	"time"

	"sallyport/agent"
)

// What a run spends, counted from the entries (SPEC A8).

// spends counts a turn of the model. A turn is only asked for while one is left.
func (w *witness) spends(u agent.Usage) {
	w.unreached = 0
	if w.counts.Turns >= w.budget.Turns {
		w.fails(BreakBudget, "it is turn %d of %d", w.counts.Turns+1, w.budget.Turns)
	}
	if u.Input < 0 || u.Output < 0 {
		w.fails(BreakBudget, "a turn of the model that gives tokens back")
	}
	if u.Cached < 0 || u.Cached > u.Input {
		w.fails(BreakBudget, "a turn of the model with %d of %d tokens cached", u.Cached, u.Input)
	}
	w.counts.Turns++
	w.counts.Tokens += u.Input + u.Output
}

// mayAsk checks that the budget had room for another turn when it was asked for.
func (w *witness) mayAsk(row agent.Row) {
	if row == agent.RowModelUnreached || row == agent.RowStarted {
		return // the turn that was asked for before, and the first
	}
	n := w.counts
	switch {
	case n.Turns >= w.budget.Turns:
		w.fails(BreakBudget, "it asks for turn %d of %d", n.Turns+1, w.budget.Turns)
	case n.Tokens > w.budget.Tokens:
		w.fails(BreakBudget, "it goes on with %d of %d tokens", n.Tokens, w.budget.Tokens)
	case w.overWall():
		w.fails(BreakBudget, "it goes on after %v of %d s", n.Wall, w.budget.Wall)
	}
}

func (w *witness) overWall() bool {
	return w.counts.Wall > seconds(w.budget.Wall)
}

func (w *witness) notReached(e *agent.Entry) {
	w.unreached++
	if w.unreached >= agent.MaxUnreached && e.Row == agent.RowModelUnreached {
		w.fails(BreakBudget, "the model is tried again after %d times in a row", w.unreached)
	}
}

// intent counts a call that is about to be sent.
func (w *witness) intent() {
	w.counts.Sends++
	if w.counts.Sends > w.budget.Calls {
		w.fails(BreakBudget, "it is call %d of %d", w.counts.Sends, w.budget.Calls)
	}
}

func (w *witness) extended(more agent.Budget) {
	if more.Calls < 0 || more.Turns < 0 || more.Tokens < 0 || more.Wall < 0 {
		w.fails(BreakBudget, "an extension that takes away")
	}
	w.budget.Calls += more.Calls
	w.budget.Turns += more.Turns
	w.budget.Tokens += more.Tokens
	w.budget.Wall += more.Wall
}

// ticked takes a deadline that has passed: of a candidate, or of the working time.
func (w *witness) ticked(e *agent.Entry) {
	switch e.Row {
	case agent.RowExpired:
		if w.call == nil || w.call.candidate == nil || w.deadline.IsZero() || w.time.Before(w.deadline) {
			w.fails(BreakApproval, "a candidate expired before its time")
			return
		}
		w.turnDown(false)
	case agent.RowBudgetEnded:
		if !w.overWall() {
			w.fails(BreakBudget, "the run was ended after %v of %d s", w.counts.Wall, w.budget.Wall)
		}
	default:
		w.fails(BreakTransition, "the clock cannot say %s", e.Row)
	}
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }
