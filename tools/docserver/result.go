package docserver

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/tools/strictjson"
)

// The business statuses of a result (SPEC D7).
const (
	StatusOK            = "ok"
	StatusRejected      = "rejected"
	StatusFailed        = "failed"
	StatusResultUnknown = "result_unknown"
)

// result is the one shape in which every tool answers.
type result struct {
	Status  string `json:"status"`
	Message string `json:"message"`
	Data    any    `json:"data"`

	// reason is for the log: a fixed word or one of our own errors, never outside text.
	reason error
}

// because returns the result with its reason for the log.
func (r result) because(err error) result {
	r.reason = err
	return r
}

// What is said when a call is not ok: fixed sentences, so that neither a path nor an errno nor the part of a
// grant that was wrong reaches the model (SPEC D8, B11).
var (
	refusedArguments = result{Status: StatusRejected, Message: "The arguments were refused."}
	refusedSave      = result{Status: StatusRejected, Message: "The arguments or the grant were refused. Nothing was written."}
	voidSave         = result{Status: StatusRejected, Message: "This approval was declared void. Nothing was written."}
	tooLargeSave     = result{Status: StatusRejected, Message: "The content is over 24,000 bytes. Nothing was written."}
	takenSave        = result{Status: StatusRejected, Message: "The file name is taken. Nothing was written."}
	failedSave       = result{Status: StatusFailed, Message: "The report could not be saved; nothing was written. The approval is used up."}
	unknownSave      = result{Status: StatusResultUnknown, Message: "It is not known whether the report was saved."}
	spentSave        = result{Status: StatusResultUnknown, Message: "This approval was used before. Nothing was written now; what came of it then is not known here."}
	failedRead       = result{Status: StatusFailed, Message: "The document cannot be read."}
	failedSearch     = result{Status: StatusFailed, Message: "The documents cannot be searched."}
	failedReport     = result{Status: StatusFailed, Message: "The report cannot be examined."}
	refusedSettle    = result{Status: StatusRejected, Message: "The arguments or the grant were refused. Nothing was declared void."}
	failedSettle     = result{Status: StatusFailed, Message: "The approval could not be declared void."}
)

// wire gives a result its protocol form. The body is sent once; content holds the message, or, when mirror
// is set, the body again for hosts that read only text (SPEC D7).
func (r result) wire(mirror bool) (*mcp.CallToolResult, error) {
	if r.Data == nil {
		r.Data = struct{}{}
	}
	body, err := strictjson.Encode(r)
	if err != nil {
		return nil, fmt.Errorf("encode a result: %w", err)
	}
	text := r.Message
	if mirror {
		text = string(body)
	}
	return &mcp.CallToolResult{
		Content:           []mcp.Content{&mcp.TextContent{Text: text}},
		StructuredContent: json.RawMessage(body),
	}, nil
}
