package bridge

import (
	"context"
	"errors"

	"sallyport/agent"
	"sallyport/tools"
)

// The reasons of outcomes: fixed words, from which the nodes choose the sentence that
// the model reads. Refused before anything was sent (SPEC B10, in its order):
const (
	ReasonArgumentsTooLarge  = "arguments_too_large"  // row 1
	ReasonArgumentsNotObject = "arguments_not_object" // row 1
	ReasonUnknownTool        = "unknown_tool"         // row 2: unknown, host-only, unprefixed or undiscovered
	ReasonArgumentsInvalid   = "arguments_invalid"    // row 3
	ReasonBudget             = "budget"               // row 4
	ReasonDiscovery          = "discovery"            // row 5: the server could not be asked
	ReasonClosed             = "closed"               // row 5: the bridge has been closed
	ReasonDefinitionChanged  = "definition_changed"   // row 6
	ReasonDefinitionGone     = "definition_gone"      // row 6
	ReasonServerSchema       = "server_schema"        // row 7
	ReasonCandidate          = "candidate"            // row 8: no candidate can be made that fits into a grant
	ReasonApproval           = "approval"             // row 8: a person must decide
	ReasonGrantExpired       = "grant_expired"        // row 8: decided, but used too late; asked again
)

// What became of a request (SPEC B8, B9, in the order of B9).
const (
	ReasonTimeout        = "timeout"
	ReasonLost           = "lost"             // the connection ended, before the request or after
	ReasonProtocolError  = "protocol_error"   // an error reply, or one that cannot be decoded
	ReasonResultType     = "result_type"      // present and not complete
	ReasonIsError        = "is_error"         // the protocol's own mark
	ReasonResultTooLarge = "result_too_large" // over MaxResult
	ReasonInvalidResult  = "invalid_result"   // not of the declared schema, or of the shape of SPEC D7
	ReasonUnconfirmed    = "unconfirmed"      // valid, but nothing says that the write took effect
)

// What a read-back found out.
const (
	ReasonReadBack       = "read_back"           // it decides
	ReasonNoReadBack     = "no_read_back"        // the contract has none
	ReasonOtherContent   = "read_back_differs"   // something is there, or was, but not what was written
	ReasonReadBackFailed = "read_back_refused"   // the server did not answer `ok`
	ReasonNoArguments    = "arguments_not_known" // the exact arguments of the write cannot be rebuilt
	ReasonNoGrant        = "grant_not_carried"   // it needs the grant, which stayed with the run that this is a fork of
)

// Why a server's list is refused as a whole (SPEC B3), or cannot be had, and why one
// tool is not offered; besides the reasons of package tools.
const (
	ReasonListMalformed  tools.Reason = "list_malformed"
	ReasonListError      tools.Reason = "list_error" // an error reply
	ReasonListType       tools.Reason = "list_result_type"
	ReasonListPages      tools.Reason = "list_pages"  // a cursor after the last page that is asked for
	ReasonListCursor     tools.Reason = "list_cursor" // a cursor that repeats
	ReasonListDuplicate  tools.Reason = "list_duplicate"
	ReasonListTools      tools.Reason = "list_tools" // more than the server may list
	ReasonStart          tools.Reason = "start"      // the child could not be started
	ReasonVersion        tools.Reason = "protocol_version"
	ReasonMissing        tools.Reason = "missing"         // the server lacks a contracted tool
	ReasonSettleMissing  tools.Reason = "settle_missing"  // the tool's read-back is not offered
	ReasonSettleArgument tools.Reason = "settle_argument" // the read-back cannot be called as the contract says
)

// cause is the fixed word and the class for whatever kept a server from answering.
func cause(err error) (string, agent.Class) {
	var refused *FrameError
	var listed tools.Reason
	switch {
	case errors.Is(err, errClosed):
		return ReasonClosed, agent.ClassProtocolError
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return ReasonTimeout, agent.ClassTimeout
	case errors.As(err, &refused):
		return ReasonProtocolError, agent.ClassProtocolError
	case errors.As(err, &listed):
		return string(listed), agent.ClassProtocolError
	}
	return ReasonLost, agent.ClassProtocolError
}

// detail is [cause]'s word, with the reason of a refused frame: for logs and operators.
func detail(err error) string {
	word, _ := cause(err)
	var refused *FrameError
	if errors.As(err, &refused) {
		return word + ":" + string(refused.Reason)
	}
	return word
}
