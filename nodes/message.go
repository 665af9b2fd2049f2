package nodes

import (
	"fmt"

	"sallyport/agent"
	"sallyport/tools/strictjson"
)

// Role says whose words a message holds, in the terms of Chat Completions.
type Role string

// The roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user" // the task, and what the Host says between turns
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one message of the context, in the form of Chat Completions.
type Message struct {
	Role       Role       `json:"role"`
	Content    string     `json:"content,omitempty"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`

	// Vendor is what a provider said of this turn beside text and calls, by its own
	// field's name: its reasoning. Whether it goes back is the provider's profile to
	// say; it is never shown as an instruction, and never as the turn's text.
	Vendor map[string]string `json:"vendor,omitempty"`
	// Adjusted names, in fixed words, what was read otherwise than the provider sent
	// it. It is kept for the operator and sent to nobody.
	Adjusted []string `json:"adjusted,omitempty"`
}

// ToolCall is a call that a model asks for: in a [Reply], and in the assistant
// message that goes back into the context. Its JSON is that of Chat Completions.
type ToolCall struct {
	ID        string // answered by exactly one tool message; empty in a Reply: the Host makes one
	Name      string // the tool's name, as the model sent it
	Arguments string // the argument text, as the model sent it, unparsed
}

// wireCall is the form of a ToolCall in Chat Completions.
type wireCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // always "function"
	Function wireFunction `json:"function"`
}

type wireFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// MarshalJSON gives the form of Chat Completions.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	return strictjson.Encode(wireCall{c.ID, "function", wireFunction{c.Name, c.Arguments}})
}

// UnmarshalJSON reads what MarshalJSON writes, strictly.
func (c *ToolCall) UnmarshalJSON(data []byte) error {
	var w wireCall
	if err := strictjson.Decode(data, &w); err != nil {
		return err
	}
	*c = ToolCall{ID: w.ID, Name: w.Function.Name, Arguments: w.Function.Arguments}
	return nil
}

// body is the message as it is stored: canonical JSON.
func (m Message) body() (agent.Body, error) {
	data, err := strictjson.Encode(m)
	if err != nil {
		return agent.Body{}, fmt.Errorf("encode a message of the %s: %w", m.Role, err)
	}
	return agent.NewBody(data), nil
}

// size is how much room the message takes: the bytes of its canonical JSON.
func (m Message) size() (int64, error) {
	body, err := m.body()
	return body.Ref.Bytes, err
}

func parseMessage(data []byte, want Role) (Message, error) {
	var m Message
	if err := strictjson.Decode(data, &m); err != nil {
		return m, fmt.Errorf("decode a message of the %s: %w", want, err)
	}
	if m.Role != want {
		return m, fmt.Errorf("a stored message is of the %q, want %q", m.Role, want)
	}
	return m, nil
}
