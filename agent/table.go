package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/looplab/fsm"
)

// Row is a transition: what an event turned out to mean. Rows are past participles.
type Row string

// The rows of the transition table.
const (
	RowStarted          Row = "started"
	RowProposed         Row = "proposed"
	RowAnswered         Row = "answered"
	RowTurnRefused      Row = "turn_refused"
	RowModelUnreached   Row = "model_unreached"
	RowModelGaveUp      Row = "model_gave_up"
	RowChecked          Row = "checked"
	RowReturned         Row = "returned"
	RowNextCall         Row = "next_call"
	RowNextTurn         Row = "next_turn"
	RowApprovalRequired Row = "approval_required"
	RowGranted          Row = "granted"
	RowEndorsed         Row = "endorsed"
	RowEdited           Row = "edited"
	RowRefused          Row = "refused"
	RowExpired          Row = "expired"
	RowOutcomeUnknown   Row = "outcome_unknown"
	RowSettled          Row = "settled"
	RowUndecided        Row = "undecided"
	RowBudgetEnded      Row = "budget_ended"
	RowCancelled        Row = "cancelled"
	RowCancelAsked      Row = "cancel_asked"
	RowPaused           Row = "paused"
	RowResumed          Row = "resumed"
	RowStepped          Row = "stepped"
	RowExtended         Row = "extended"
	RowSubstituted      Row = "substituted"
)

// Transition is one line of the table: a row, from some states, by some origins. To
// is empty where the state is kept.
type Transition struct {
	Row  Row
	From []State
	To   State
	By   []Origin // whose events may become this row
	Says string   // one sentence, for docs and pictures
}

var (
	byModel    = []Origin{OriginModel}
	byRuntime  = []Origin{OriginRuntime}
	byOperator = []Origin{OriginOperator}
	byApprover = []Origin{OriginApprover}
	open       = []State{StateModel, StateExecute, StateObserve, StateAwaitingApproval, StateNeedsVerification}
	inCall     = []State{StateExecute, StateObserve, StateNeedsVerification}
)

// table is the one declaration of what may follow what (SPEC A1). The machine, the
// pictures, docs/states.md and the tests are all made from it.
var table = []Transition{
	{RowStarted, []State{StateNone}, StateModel, byOperator, "The run begins; its first entry pins tools, servers, approvers and budgets."},
	{RowProposed, []State{StateModel}, StateExecute, byModel, "The model proposes calls; the first is prepared."},
	{RowAnswered, []State{StateModel}, StateCompleted, byModel, "The model answers; the run has completed."},
	{RowTurnRefused, []State{StateModel}, "", byModel, "A turn is cut off or malformed; the model is told and asked again."},
	{RowModelUnreached, []State{StateModel}, "", byRuntime, "The model gave no turn; it is asked again after a pause."},
	{RowModelGaveUp, []State{StateModel}, StateFailed, byRuntime, "The model could not be reached; the run has failed."},
	{RowChecked, []State{StateExecute}, "", byRuntime, "Nothing stands against the call: the intent, which counts it and opens Send."},
	{RowReturned, []State{StateExecute}, StateObserve, byRuntime, "There is an outcome, from Prepare or from Send."},
	{RowNextCall, []State{StateObserve}, StateExecute, byRuntime, "The outcome is stored; the turn has another call."},
	{RowNextTurn, []State{StateObserve}, StateModel, byRuntime, "The outcome is stored; the model goes on."},
	{RowApprovalRequired, []State{StateObserve}, StateAwaitingApproval, byRuntime, "The call needs signatures; its exact candidate waits."},
	{RowGranted, []State{StateAwaitingApproval}, StateExecute, byApprover, "The required keys have signed these bytes; the call is prepared again."},
	{RowEndorsed, []State{StateAwaitingApproval}, "", byApprover, "The first of two keys has signed."},
	{RowEdited, []State{StateAwaitingApproval}, StateExecute, byApprover, "A person replaced the arguments; the call is prepared anew, without a grant."},
	{RowRefused, []State{StateAwaitingApproval}, StateObserve, []Origin{OriginApprover, OriginOperator}, "A person refused this candidate for good."},
	{RowExpired, []State{StateAwaitingApproval}, StateObserve, []Origin{OriginClock}, "Nobody decided in time."},
	{RowOutcomeUnknown, []State{StateObserve}, StateNeedsVerification, byRuntime, "Nobody knows whether a write took effect; nothing else is sent."},
	{RowSettled, []State{StateNeedsVerification}, StateObserve, []Origin{OriginRuntime, OriginApprover}, "Evidence, or a person, says what became of the write."},
	{RowUndecided, []State{StateNeedsVerification}, "", []Origin{OriginRuntime, OriginApprover}, "The evidence does not decide; a person must."},
	{RowBudgetEnded, []State{StateModel}, StateFailed, []Origin{OriginModel, OriginClock}, "A budget is exceeded; the run has failed with its name."},
	{RowBudgetEnded, []State{StateObserve}, StateFailed, byRuntime, "A budget is exceeded once the outcome is stored; the run has failed with its name."},
	{RowCancelled, open, StateCancelled, byOperator, "An operator ended the run."},
	{RowCancelled, []State{StateObserve}, StateCancelled, byRuntime, "Cancel was asked, and the write in flight has its final outcome."},
	{RowCancelAsked, inCall, "", byOperator, "Cancel was asked while a write is in flight; it is settled first."},
	{RowPaused, open, "", byOperator, "What has not started is withheld."},
	{RowResumed, open, "", byOperator, "What was withheld is released."},
	{RowStepped, open, "", byOperator, "One withheld effect is released."},
	{RowExtended, open, "", byOperator, "Budgets were raised."},
	{RowSubstituted, []State{StateModel, StateExecute}, "", byOperator, "In a fork, an operator gives the reply, or the result of a call that is not sent, that the open effect will have."},
}

// Table returns the transition table, for pictures, docs and proofs. Callers must
// not change it.
func Table() []Transition { return table }

// becomes says which rows an event of a kind may turn out to be.
var becomes = map[Kind][]Row{
	KindStart:       {RowStarted},
	KindTurned:      {RowProposed, RowAnswered, RowBudgetEnded},
	KindTurnRefused: {RowTurnRefused, RowBudgetEnded},
	KindUnreached:   {RowModelUnreached, RowModelGaveUp},
	KindChecked:     {RowChecked},
	KindReturned:    {RowReturned},
	KindObserved:    {RowNextCall, RowNextTurn, RowApprovalRequired, RowOutcomeUnknown, RowBudgetEnded, RowCancelled},
	KindVerified:    {RowSettled, RowUndecided},
	KindApprove:     {RowGranted, RowEndorsed},
	KindRefuse:      {RowRefused},
	KindEdit:        {RowEdited},
	KindAttest:      {RowSettled, RowUndecided},
	KindCancel:      {RowCancelled, RowCancelAsked},
	KindPause:       {RowPaused},
	KindResume:      {RowResumed},
	KindStepOnce:    {RowStepped},
	KindExtend:      {RowExtended},
	KindSubstitute:  {RowSubstituted},
	KindTick:        {RowExpired, RowBudgetEnded},
}

// Becomes returns the rows that an event of the kind may turn out to be.
func Becomes(k Kind) []Row { return slices.Clone(becomes[k]) }

// Kinds lists every kind of event, sorted.
func Kinds() []Kind { return slices.Sorted(maps.Keys(becomes)) }

// machines pools looplab machines: building one costs more than a step, and one
// that two goroutines share accepts illegal rows, since setting its state and
// firing are two calls.
var machines = sync.Pool{New: func() any { return newMachine() }}

func newMachine() *fsm.FSM {
	var events fsm.Events
	for _, t := range table {
		if t.To != "" {
			events = append(events, fsm.EventDesc{Name: string(t.Row), Src: names(t.From), Dst: string(t.To)})
			continue
		}
		for _, s := range t.From {
			events = append(events, fsm.EventDesc{Name: string(t.Row), Src: []string{string(s)}, Dst: string(s)})
		}
	}
	return fsm.NewFSM(string(StateNone), events, nil)
}

func names(states []State) []string {
	out := make([]string, len(states))
	for i, s := range states {
		out[i] = string(s)
	}
	return out
}

// follow asks the machine where a row leads from a state, and the maps whether this
// event, of this origin, may become the row.
func follow(from State, row Row, ev Event) (State, error) {
	if kind := ev.Kind(); !slices.Contains(becomes[kind], row) {
		return from, refuse(CodeIllegal, "an event %s cannot become %s", kind, row)
	}
	m := machines.Get().(*fsm.FSM)
	defer machines.Put(m)
	m.SetState(string(from))
	err := m.Event(context.Background(), string(row))
	var stays fsm.NoTransitionError
	if err != nil && !errors.As(err, &stays) {
		return from, refuse(CodeIllegal, "%s does not lead on from %s", row, place(from))
	}
	if by := ev.origin; !slices.Contains(origins[leaving{row, from}], by) {
		return from, refuse(CodeIllegal, "%s from %s is not for the %s to cause", row, place(from), by)
	}
	return State(m.Current()), nil
}

type leaving struct {
	row  Row
	from State
}

// origins says who may cause a row from a state: looplab has no guards.
var origins = func() map[leaving][]Origin {
	m := map[leaving][]Origin{}
	for _, t := range table {
		for _, from := range t.From {
			at := leaving{t.Row, from}
			m[at] = append(slices.Clip(m[at]), t.By...)
		}
	}
	return m
}()

func place(s State) string {
	if s == StateNone {
		return "a run that has not started"
	}
	return fmt.Sprintf("state %s", string(s))
}
