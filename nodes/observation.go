package nodes

import (
	"encoding/json"
	"fmt"

	"sallyport/agent"
	"sallyport/tools/strictjson"
)

// The bounds of what a tool may say to the model (SPEC B11).
const (
	// MaxData is the size of a result's data, in bytes of its canonical form.
	MaxData = 32_000
	// MaxRemark is the length of a result's own message, in characters.
	MaxRemark = 500
)

// Observation is the content of a tool message: status and message are the Host's
// words, all else is untrusted.
type Observation struct {
	Status    agent.Status `json:"status"`
	Message   string       `json:"message"` // fixed sentences only, and the bytes of an edit
	Untrusted *Untrusted   `json:"untrusted,omitempty"`
}

// Untrusted is what a tool returned, with the reference under which it is kept.
type Untrusted struct {
	Source Source          `json:"source"`
	Ref    string          `json:"ref"`               // sha256:HEX#0-BYTES, over the canonical data
	Bytes  int64           `json:"bytes"`             // of the whole data
	Remark string          `json:"message,omitempty"` // the tool's own message, cut to [MaxRemark] characters
	Data   json.RawMessage `json:"data,omitzero"`     // whole, or absent if larger than [MaxData]
}

// Source says where data comes from.
type Source struct {
	Server string `json:"server"` // the prefix
	Tool   string `json:"tool"`   // the server's own name
	File   string `json:"file,omitempty"`
}

// toolMessage is the one message that answers a call.
func toolMessage(id string, o Observation) (agent.Body, error) {
	content, err := strictjson.Encode(o)
	if err != nil {
		return agent.Body{}, fmt.Errorf("encode the observation of call id %q: %w", id, err)
	}
	return Message{Role: RoleTool, ToolCallID: id, Content: string(content)}.body()
}

// withoutData is the observation when its data has left the context; opens says that
// the model can have it opened again.
func (o Observation) withoutData(opens bool) Observation {
	left := *o.Untrusted
	left.Data = nil
	o.Untrusted = &left
	if opens {
		o.Message += dataLeftOpens
	} else {
		o.Message += dataLeft
	}
	return o
}

// ParseObservation reads the content of a tool message.
func ParseObservation(content string) (Observation, error) {
	var o Observation
	if err := strictjson.Decode([]byte(content), &o); err != nil {
		return o, fmt.Errorf("decode an observation: %w", err)
	}
	return o, nil
}
