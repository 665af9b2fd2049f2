package chat_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"sallyport/nodes"
	"sallyport/nodes/llm/chat"
)

// transcript is a context with one of everything.
func transcript() nodes.Request {
	return nodes.Request{
		Messages: []nodes.Message{
			{Role: nodes.RoleSystem, Content: "rules"},
			{Role: nodes.RoleUser, Content: "task"},
			{Role: nodes.RoleUser, Content: "Host: again"},
			{
				Role:      nodes.RoleAssistant,
				ToolCalls: []nodes.ToolCall{{ID: "c1", Name: "docs__read", Arguments: `{"filename": "a.md"}`}, {ID: "c2", Name: "docs__list", Arguments: `{bad`}},
				Vendor:    map[string]string{"reasoning": "r1", "reasoning_content": "rc1"}, Adjusted: []string{"object_arguments"},
			},
			{Role: nodes.RoleTool, Content: "one", ToolCallID: "c1"},
			{Role: nodes.RoleTool, Content: "two", ToolCallID: "c2"},
			{Role: nodes.RoleAssistant, Content: "then", ToolCalls: []nodes.ToolCall{{ID: "c3", Name: "docs__list", Arguments: `{}`}}},
			{Role: nodes.RoleTool, Content: "three", ToolCallID: "c3"},
		},
		Tools: []nodes.Tool{{Name: "docs__read", Description: "Reads.", Parameters: json.RawMessage(
			`{"additionalProperties":false,"properties":{"filename":{"type":"string","pattern":"x","minLength":1},"pattern":{"default":{"pattern":1},"enum":[{"format":2}]},"any":true},"required":["filename"],"type":"object"}`)}},
		Run: "secret-run", Attempt: 3,
	}
}

func sent(t *testing.T, p chat.Profile, r nodes.Request, o chat.Options) map[string]any {
	t.Helper()
	data, err := p.Encode(r, o)
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.Encode(r, o)
	if err != nil || string(again) != string(data) {
		t.Fatalf("the same request is %s, then %s (%v)", data, again, err)
	}
	for _, never := range []string{"secret-run", "object_arguments", "adjusted", "vendor"} {
		if strings.Contains(string(data), never) {
			t.Errorf("the request holds %q: %s", never, data)
		}
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func messages(t *testing.T, body map[string]any) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, m := range body["messages"].([]any) {
		out = append(out, m.(map[string]any))
	}
	return out
}

// Each profile's row, as it shows in a request.
func TestEncode_FollowsTheProfile(t *testing.T) {
	type row struct {
		maxTokens      string
		content        any    // of a turn with calls only
		first, second  string // reasoning fields of the two turns, by name
		toolName       any    // of a tool message
		badArguments   string
		users          int
		schemaKeywords bool
	}
	const kept, wrapped = `{bad`, `{"not_an_object":"{bad"}`
	for name, want := range map[string]row{
		"openai":   {"max_completion_tokens", nil, "", "", nil, kept, 2, true},
		"azure":    {"max_completion_tokens", nil, "", "", nil, kept, 2, true},
		"ollama":   {"max_tokens", "", "reasoning=r1", "", "docs__list", wrapped, 2, true},
		"vllm":     {"max_tokens", nil, "reasoning=r1 reasoning_content=rc1", "", "docs__list", wrapped, 1, true},
		"llamacpp": {"max_tokens", "", "reasoning_content=rc1", "", "docs__list", wrapped, 1, false},
		"deepseek": {"max_tokens", nil, "reasoning_content=rc1", "reasoning_content=", nil, kept, 2, true},
		"lmstudio": {"max_tokens", "", "", "", nil, wrapped, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			body := sent(t, profile(t, name), transcript(), chat.Options{Model: "m", MaxTokens: 100})
			if body[want.maxTokens] != 100.0 || body["model"] != "m" || body["parallel_tool_calls"] != false || body["stream"] != false {
				t.Errorf("request %v", body)
			}
			ms := messages(t, body)
			ms = ms[1+want.users:]
			if got, there := ms[0]["content"]; !there || got != want.content {
				t.Errorf("content of a turn with calls only: %v", got)
			}
			if got := reasoning(ms[0]); got != want.first {
				t.Errorf("the first turn's reasoning is %q, want %q", got, want.first)
			}
			if got := reasoning(ms[3]); got != want.second {
				t.Errorf("the second turn's reasoning is %q, want %q", got, want.second)
			}
			if ms[2]["name"] != want.toolName || ms[2]["tool_call_id"] != "c2" || ms[2]["content"] != "two" {
				t.Errorf("tool message %v", ms[2])
			}
			calls := ms[0]["tool_calls"].([]any)
			if got := arguments(calls[1]); got != want.badArguments {
				t.Errorf("arguments that are no object go back as %s", got)
			}
			if got := arguments(calls[0]); got != `{"filename": "a.md"}` {
				t.Errorf("arguments go back as %s", got)
			}
			tool := body["tools"].([]any)[0].(map[string]any)["function"].(map[string]any)
			properties := tool["parameters"].(map[string]any)["properties"].(map[string]any)
			_, has := properties["filename"].(map[string]any)["pattern"]
			if has != want.schemaKeywords || tool["strict"] != false {
				t.Errorf("tool %v", tool)
			}
			asked, err := json.Marshal(properties["pattern"])
			if err != nil || string(asked) != `{"default":{"pattern":1},"enum":[{"format":2}]}` {
				t.Errorf("a property named pattern became %s", asked)
			}
			if anything, ok := properties["any"].(map[string]any); !ok || len(anything) != 0 {
				t.Errorf("true became %v", properties["any"])
			}
		})
	}
	if len(chat.Profiles()) != 7 {
		t.Errorf("profiles without a row here: %v", chat.Profiles())
	}
}

func reasoning(m map[string]any) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if strings.HasPrefix(name, "reasoning") {
			out = append(out, name+"="+m[name].(string))
		}
	}
	return strings.Join(out, " ")
}

func arguments(call any) string {
	return call.(map[string]any)["function"].(map[string]any)["arguments"].(string)
}

func TestEncode_AddsOnlyWhatWasChosen(t *testing.T) {
	names := func(o chat.Options, r nodes.Request) string {
		return strings.Join(slices.Sorted(maps.Keys(sent(t, profile(t, "openai"), r, o))), " ")
	}
	bare := nodes.Request{Messages: []nodes.Message{{Role: nodes.RoleUser, Content: "x"}}}
	if got := names(chat.Options{Model: "m"}, bare); got != "messages model stream" {
		t.Errorf("a bare request holds %s", got)
	}
	zero, seed := 0.0, int64(0)
	got := names(chat.Options{Model: "m", Temperature: &zero, Seed: &seed, Stream: true, MaxTokens: 1}, transcript())
	if got != "max_completion_tokens messages model parallel_tool_calls seed stream stream_options temperature tools" {
		t.Errorf("a full request holds %s", got)
	}
	if got := names(chat.Options{Model: "o3-mini"}, transcript()); strings.Contains(got, "parallel") {
		t.Errorf("a model that refuses parallel_tool_calls is sent %s", got)
	}
}

func TestEncode_LeavesTheHostsSchemaAlone(t *testing.T) {
	r := transcript()
	before := string(r.Tools[0].Parameters)
	sent(t, profile(t, "llamacpp"), r, chat.Options{Model: "m"})
	if string(r.Tools[0].Parameters) != before {
		t.Errorf("the schema became %s", r.Tools[0].Parameters)
	}
}

func TestEncode_DropsKeywordsAtEveryLevel(t *testing.T) {
	r := nodes.Request{Tools: []nodes.Tool{{Name: "t", Parameters: json.RawMessage(
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","maxLength":8000}}},"anyOf":[{"properties":{"b":{"pattern":"x"}}},true],"additionalProperties":{"format":"date"}}`)}}}
	body := sent(t, profile(t, "lmstudio"), r, chat.Options{Model: "m"})
	got, err := json.Marshal(body["tools"].([]any)[0].(map[string]any)["function"].(map[string]any)["parameters"])
	want := `{"additionalProperties":{},"anyOf":[{"properties":{"b":{}}},{}],"properties":{"a":{"items":{"type":"string"},"type":"array"}},"type":"object"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s", got)
	}
}

func TestProfiles_AreFoundByNameAndGuessed(t *testing.T) {
	if _, err := chat.For("gpt"); err == nil || !strings.Contains(err.Error(), `"gpt"`) || !strings.Contains(err.Error(), "lmstudio") {
		t.Errorf("an unknown profile: %v", err)
	}
	for url, want := range map[string]string{
		"":                          "openai",
		"https://api.openai.com/v1": "openai", "https://desk.openai.azure.com": "azure", "https://api.deepseek.com": "deepseek",
		"http://localhost:11434/v1": "ollama", "http://127.0.0.1:1234/v1": "lmstudio", "http://[::1]:8080/v1": "llamacpp",
		"http://localhost:8000/v1": "vllm", "https://notdeepseek.com": "openai", "::": "openai",
	} {
		if got := chat.Guess(url); got != want {
			t.Errorf("%s looks like %s, want %s", url, got, want)
		}
	}
}
