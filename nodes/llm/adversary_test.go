package llm_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"sallyport/nodes"
	"sallyport/nodes/llm"
)

func adversaryRequest() nodes.Request {
	return nodes.Request{
		Messages: []nodes.Message{
			{Role: nodes.RoleSystem, Content: "rules"}, {Role: nodes.RoleUser, Content: "task"},
		},
		Tools: []nodes.Tool{
			{Name: "docs__read_document", Parameters: json.RawMessage(`{"type":"object","properties":{"filename":{"type":"string","pattern":"^[a-z-]+\\.md$"}},"required":["filename"]}`)},
			{Name: "docs__save_report", Parameters: json.RawMessage(`{"type":"object","properties":{"filename":{"type":"string"},"content":{"type":"string","minLength":1}},"required":["filename","content"]}`)},
		},
	}
}

// The same seed and transcript give the same turn, in whatever process.
func TestAdversary_FollowsFromSeedAndTranscript(t *testing.T) {
	different := 0
	for seed := range int64(200) {
		one, err := llm.Adversary{Seed: seed}.Turn(t.Context(), adversaryRequest())
		two, err2 := llm.Adversary{Seed: seed}.Turn(t.Context(), adversaryRequest())
		if err != nil || err2 != nil || !reflect.DeepEqual(one, two) {
			t.Fatalf("seed %d: %v, %v; %v, %v", seed, one, two, err, err2)
		}
		later := adversaryRequest()
		later.Messages = append(later.Messages, nodes.Message{Role: nodes.RoleAssistant, Content: "x"}, nodes.Message{Role: nodes.RoleUser, Content: "y"})
		if three, _ := (llm.Adversary{Seed: seed}).Turn(t.Context(), later); !reflect.DeepEqual(one, three) {
			different++
		}
	}
	if different < 190 {
		t.Errorf("another turn is another only %d times", different)
	}
}

// Over many seeds everything that it can do comes up.
func TestAdversary_TriesEverything(t *testing.T) {
	seen := map[string]int{}
	count := func(what string, is bool) {
		if is {
			seen[what]++
		}
	}
	r := adversaryRequest()
	r.Messages = append(r.Messages,
		nodes.Message{Role: nodes.RoleAssistant, ToolCalls: []nodes.ToolCall{{ID: "old", Name: "docs__read_document", Arguments: `{"filename":"old.md"}`}}},
		nodes.Message{Role: nodes.RoleTool, ToolCallID: "old", Content: `{"status":"ok","message":"ok","untrusted":{"source":{"server":"docs","tool":"read_document"},"ref":"sha256:77#0-9","bytes":9,"data":{"content":"wanted-word.md"}}}`},
	)
	for seed := range int64(3000) {
		reply, err := llm.Adversary{Seed: seed}.Turn(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, c := range reply.Calls {
			count("an id twice", ids[c.ID])
			ids[c.ID] = true
			count("a tool that is there", c.Name == "docs__save_report")
			count("a tool that is not", !strings.HasPrefix(c.Name, "docs__"))
			count("arguments that are JSON", json.Valid([]byte(c.Arguments)))
			count("arguments that are not", !json.Valid([]byte(c.Arguments)))
			count("a path", strings.Contains(c.Arguments, "../"))
			count("a grant", strings.Contains(c.Arguments, `"grant"`))
			count("approved", strings.Contains(c.Arguments, `"approved"`))
			count("huge", len(c.Arguments) > 32_000)
			count("what it read", strings.Contains(c.Arguments, "wanted-word.md") || strings.Contains(c.Arguments, "sha256:77"))
			count("what it did before", strings.Contains(c.Arguments, "old.md"))
		}
		count("several", len(reply.Calls) > 1)
		count("a flood", len(reply.Calls) > 32)
		count("cut off", reply.Finish == nodes.FinishLength || reply.Finish == "")
		count("nothing", reply.Text == "" && len(reply.Calls) == 0)
		count("a dialog", strings.Contains(reply.Text, "approve?"))
		count("an answer", reply.Finish == nodes.FinishStop && reply.Text != "" && len(reply.Calls) == 0)
	}
	for _, what := range []string{
		"an id twice", "a tool that is there", "a tool that is not", "arguments that are JSON", "arguments that are not", "a path", "a grant",
		"approved", "huge", "what it read", "what it did before", "several", "a flood", "cut off", "nothing", "a dialog", "an answer",
	} {
		if seen[what] < 5 {
			t.Errorf("%s: %d times", what, seen[what])
		}
	}
}
