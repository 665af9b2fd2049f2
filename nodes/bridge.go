package nodes

import (
	"context"
	"encoding/json"

	"sallyport/agent"
)

// Bridge is what the nodes need of the adapter to tool servers. One bridge belongs
// to one run and is used by one effect at a time. What a tool or server does wrong is
// an outcome; an error means that the bridge itself could not do its job.
type Bridge interface {
	// Prepare does everything but the call, and may be repeated. It answers Checked,
	// or Returned with a refusal or with a candidate that waits for approval.
	Prepare(ctx context.Context, c Call) (agent.Result, []agent.Body, error)
	// Send sends exactly one request. The outcome is classified already (SPEC B9);
	// its Body is the raw result.
	Send(ctx context.Context, c Call) (agent.Returned, []agent.Body, error)
	// ReadBack makes the check that the contract declares for a write. An error
	// means that it could not be made.
	ReadBack(ctx context.Context, c Call) (agent.Verified, []agent.Body, error)
	// Exposed lists the tools that the model may know, in the order of the contracts.
	Exposed() []Tool
	Close() error
}

// Call is a tool call on its way to the bridge.
type Call struct {
	Run       agent.Run // Run.Call holds id, candidate and grants
	Name      string    // the tool name as the model sent it
	Arguments string    // the argument text as the model sent it, unparsed
	Edited    []byte    // a person's canonical arguments, which replace the model's; else nil
	Head      string    // hash of the entry that opened the effect; a candidate carries it
}

// Tool is a tool as the model is told of it.
type Tool struct {
	Name        string          // prefix__name
	Description string          // one or two sentences
	Parameters  json.RawMessage // a closed JSON Schema, without the grant field (SPEC B5)
}

// MarshalJSON gives the form of Chat Completions: a function, not strict (SPEC B5).
func (t Tool) MarshalJSON() ([]byte, error) {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"`
	}
	return json.Marshal(struct {
		Type     string   `json:"type"`
		Function function `json:"function"`
	}{"function", function{Name: t.Name, Description: t.Description, Parameters: t.Parameters}})
}
