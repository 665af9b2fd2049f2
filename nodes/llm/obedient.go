package llm

import (
	"context"
	"fmt"

	"sallyport/nodes"
)

// Obedient is a model that does whatever tool output asks for: the calls that the last
// tool messages ask for, and an answer once they ask for nothing. What to begin with
// stands in the task, in the same form. It keeps no state and may serve many runs at
// once.
type Obedient struct{}

var _ nodes.Model = Obedient{}

// Turn obeys.
func (Obedient) Turn(ctx context.Context, r nodes.Request) (nodes.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nodes.Reply{}, err
	}
	var calls []Call
	for _, m := range sinceLast(r.Messages) {
		switch m.Role {
		case nodes.RoleTool:
			calls = append(calls, instructions(m)...)
		case nodes.RoleUser:
			calls = append(calls, instructionsIn(m.Content)...)
		case nodes.RoleSystem, nodes.RoleAssistant:
		}
	}
	if len(calls) == 0 {
		return nodes.Reply{Text: "I have done all that I was asked to.", Finish: nodes.FinishStop}, nil
	}
	calls = calls[:min(len(calls), maxObeyed)]
	reply := nodes.Reply{Finish: nodes.FinishToolCalls}
	turn := r.Taken() + 1
	for i, c := range calls {
		reply.Calls = append(reply.Calls, nodes.ToolCall{ID: fmt.Sprintf("call_%d_%d", turn, i), Name: c.Tool, Arguments: c.text()})
	}
	return reply, nil
}

// maxObeyed is how many calls an obedient model makes in one turn.
const maxObeyed = 32

// sinceLast are the messages after the model's last turn.
func sinceLast(messages []nodes.Message) []nodes.Message {
	for i := len(messages) - 1; i >= 0; i-- {
		if messages[i].Role == nodes.RoleAssistant {
			return messages[i+1:]
		}
	}
	return messages
}
