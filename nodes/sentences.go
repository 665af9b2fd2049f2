package nodes

import (
	"cmp"
	"strings"

	"sallyport/agent"
)

// Every sentence that the Host itself says to the model is in this file. They are
// fixed: no errno, no path, no text of a server gets in (SPEC B11).

// Why a reply of the model is no turn.
const (
	turnUnfinished    = "unfinished"     // it ended without a finish reason
	turnCutOff        = "cut_off"        // its length ran out
	turnFiltered      = "filtered"       // the provider withheld part of it
	turnUnknownFinish = "unknown_finish" // a finish reason that the Host does not know
	turnTooManyCalls  = "too_many_calls"
	turnDuplicateID   = "duplicate_id" // a call id twice
	turnEmpty         = "empty"        // neither text nor calls
	turnMalformed     = "malformed"    // a call without a name, an id too long, bad text
)

var turnSentences = map[string]string{
	turnUnfinished:    "Host: your last turn ended before it was complete. Nothing of it was carried out. Take the turn again.",
	turnCutOff:        "Host: your last turn was cut off because it was too long. Nothing of it was carried out. Take the turn again, shorter.",
	turnFiltered:      "Host: part of your last turn was withheld by the model's provider. Nothing of it was carried out. Take the turn again.",
	turnUnknownFinish: "Host: your last turn did not end in a known way. Nothing of it was carried out. Take the turn again.",
	turnTooManyCalls:  "Host: your last turn held more than 32 tool calls. Nothing of it was carried out. Propose fewer calls.",
	turnDuplicateID:   "Host: your last turn used a tool call id twice. Nothing of it was carried out. Take the turn again.",
	turnEmpty:         "Host: your last turn held neither text nor a tool call. Propose a call or answer.",
	turnMalformed:     "Host: a tool call of your last turn was malformed. Nothing of it was carried out. Take the turn again.",
}

// The reason of a call whose tool the run does not expose.
const reasonUnknownTool = "unknown_tool"

// decidedSentences say what persons and clocks decided.
var decidedSentences = map[string]string{
	agent.ReasonRefused:       "A person refused this call. Nothing was written. Do not propose it again.",
	agent.ReasonRefusedBefore: "A person refused this very call before. Nothing was written. Do not propose it again.",
	agent.ReasonExpired:       "Nobody decided in time. Nothing was written.",
}

// notMade ends every sentence about a call that was refused before it was sent.
const notMade = " The call was not made."

// unsentSentences say why nothing was sent, by the bridge's word (SPEC B10).
var unsentSentences = map[string]string{
	"arguments_too_large":  "The arguments are larger than 32,000 bytes." + notMade,
	"arguments_not_object": "The arguments are not one JSON object with distinct keys." + notMade,
	reasonUnknownTool:      "There is no tool of this name." + notMade,
	"arguments_invalid":    "The arguments do not fit the tool's parameters." + notMade,
	"budget":               "No tool calls are left." + notMade,
	"discovery":            "The tool's server could not be asked for its tools." + notMade,
	"closed":               "The connection to the tool's server is closed." + notMade,
	"definition_changed":   "The tool is no longer the one that was offered." + notMade,
	"definition_gone":      "The tool's server no longer offers it." + notMade,
	"server_schema":        "The arguments do not fit what the tool's server accepts." + notMade,
	"candidate":            "The arguments are of a kind that nobody can be asked to approve." + notMade,
	"timeout":              "The tool's server did not answer in time." + notMade,
	"lost":                 "The connection to the tool's server was lost." + notMade,
	"protocol_error":       "The tool's server did not answer properly." + notMade,
}

// sentSentences say what went wrong with a call that was sent (SPEC B8, B9). A write
// of such an outcome is verified before anything is said of it.
var sentSentences = map[string]string{
	"timeout":           "The tool did not answer in time.",
	"lost":              "The connection to the tool was lost.",
	"protocol_error":    "The tool's server did not answer properly.",
	"result_type":       "The tool did not complete the request.",
	"is_error":          "The tool reports an error.",
	"result_too_large":  "The tool's result is too large to be used.",
	reasonInvalidResult: "The tool's result is not valid.",
	reasonUnknownRef:    "No observation of this run has this ref.",
	reasonPastEnd:       "The data ends before this offset.",
	reasonErased:        "The operator has removed this data for good.",
}

// The sentences of outcomes that evidence decided.
const (
	settledApplied    = "Its outcome was unknown; a check found that it took effect."
	settledNotApplied = "Its outcome was unknown; a check found that it did not."
)

// resultSentences introduce the valid result of a tool, by status. What the tool
// itself says stands under "untrusted".
var resultSentences = map[agent.Status]string{
	agent.StatusOK:            "The tool has answered.",
	agent.StatusRejected:      "The tool refused the request.",
	agent.StatusFailed:        "The tool could not do what was asked.",
	agent.StatusResultUnknown: "The tool does not know what became of the request.",
}

// Outcomes without a valid result whose reason has no sentence of its own.
var (
	statusSentences = map[agent.Status]string{
		agent.StatusOK:            "The call was carried out.",
		agent.StatusRejected:      "The tool refused the request.",
		agent.StatusFailed:        "The call failed.",
		agent.StatusResultUnknown: "What became of the call is unknown.",
		agent.StatusUnavailable:   "The tool is unavailable.",
	}
	unsentStatusSentences = map[agent.Status]string{
		agent.StatusRejected:    "The call was refused before it was sent.",
		agent.StatusUnavailable: "The tool is unavailable." + notMade,
	}
)

// The notes on an edit, on data that is too large to be shown, and on data that has left
// the context.
const (
	editedUsed   = "A person changed the arguments; these were used: "
	editedUnused = "A person changed the arguments. "
	tooMuchData  = " Its data is too large to be shown; the operator has it."

	pieceOpened = "This is part of what a tool returned earlier."

	tooMuchDataOpens = " Its data is too large to be shown whole; " + OpenBody + " opens it in parts, by its ref."
	dataLeft         = " Its data has left this conversation to save room."
	dataLeftOpens    = " Its data has left this conversation to save room; " + OpenBody + " opens it again, by its ref."
)

// sentence is what the Host says of an outcome that brought no valid result. A reason
// without a sentence of its own falls back on the status.
func sentence(o agent.Observed, sent bool, spec *agent.Spec) string {
	if o.Reason == agent.ReasonSettled {
		if o.Status == agent.StatusOK {
			return settledApplied
		}
		return settledNotApplied
	}
	if s, ok := decidedSentences[o.Reason]; ok {
		return s
	}
	if sent {
		return cmp.Or(sentSentences[o.Reason], statusSentences[o.Status])
	}
	s := cmp.Or(unsentSentences[o.Reason], unsentStatusSentences[o.Status], statusSentences[o.Status])
	if o.Reason == reasonUnknownTool {
		s += toolNames(spec)
	}
	return s
}

// tooMuch is the note on data that is too large to be shown.
func tooMuch(spec *agent.Spec) string {
	if opensBodies(spec) {
		return tooMuchDataOpens
	}
	return tooMuchData
}

// toolNames lists the tools that the run pinned for the model; the names are the
// operator's.
func toolNames(spec *agent.Spec) string {
	var names []string
	for _, t := range spec.Tools {
		if !t.HostOnly {
			names = append(names, t.Name)
		}
	}
	if len(names) == 0 {
		return " There are no tools."
	}
	return " The tools are: " + strings.Join(names, ", ") + "."
}
