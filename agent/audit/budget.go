package audit

import (
	"fmt"
	"math/big"
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
	w.counts.Cost = w.charge(u)
}

// maxCost is where costs stop counting.
const maxCost = 1 << 62

// charge is what the run has cost after a turn: in millionths of the currency's unit,
// each turn rounded up. It is worked out the long way.
func (w *witness) charge(u agent.Usage) int64 {
	p := w.spec.Prices
	if p == nil || u.Input < u.Cached || u.Cached < 0 || u.Output < 0 {
		return w.counts.Cost
	}
	sum := new(big.Int)
	for _, part := range [][2]int64{{u.Input - u.Cached, p.Input}, {u.Cached, p.Cached}, {u.Output, p.Output}} {
		sum.Add(sum, new(big.Int).Mul(big.NewInt(part[0]), big.NewInt(part[1])))
	}
	sum.Add(sum, big.NewInt(999_999)).Div(sum, big.NewInt(1_000_000)).Add(sum, big.NewInt(w.counts.Cost))
	if !sum.IsInt64() {
		return maxCost
	}
	return min(sum.Int64(), maxCost)
}

// overSpent says what the turns of the model took too much of; empty if of nothing.
func (w *witness) overSpent() string {
	switch n := w.counts; {
	case n.Tokens > w.budget.Tokens:
		return fmt.Sprintf("%d of %d tokens", n.Tokens, w.budget.Tokens)
	case w.budget.Cost > 0 && n.Cost > w.budget.Cost:
		return fmt.Sprintf("%d of %d millionths of cost", n.Cost, w.budget.Cost)
	}
	return ""
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
	case w.overSpent() != "":
		w.fails(BreakBudget, "it goes on with %s", w.overSpent())
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
	w.overCalls()
}

// overCalls checks the calls that count: those sent, and those that the parent had sent.
func (w *witness) overCalls() {
	if n := w.counts.Sends + w.carried.counted; n > w.budget.Calls {
		w.fails(BreakBudget, "it is call %d of %d", n, w.budget.Calls)
	}
}

func (w *witness) extended(more agent.Budget) {
	if more.Calls < 0 || more.Turns < 0 || more.Tokens < 0 || more.Wall < 0 || more.Cost < 0 {
		w.fails(BreakBudget, "an extension that takes away")
	}
	w.budget.Calls += more.Calls
	w.budget.Turns += more.Turns
	w.budget.Tokens += more.Tokens
	w.budget.Wall += more.Wall
	w.budget.Cost += more.Cost
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
