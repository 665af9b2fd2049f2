package openai_test

import (
	"encoding/json"
	"net/http"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/nodes/llm/chat"
	"sallyport/nodes/llm/openai"
)

// desk are the tools that the profiles' responses call.
var desk = nodes.Request{
	Messages: simple.Messages, Run: "run-7",
	Tools: []nodes.Tool{
		{Name: "docs__list", Description: "Lists.", Parameters: json.RawMessage(`{"additionalProperties":false,"properties":{},"type":"object"}`)},
		{Name: "docs__read", Description: "Reads.", Parameters: json.RawMessage(`{"additionalProperties":false,"properties":{"filename":{"type":"string"}},"required":["filename"],"type":"object"}`)},
	},
}

func load(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Each profile's own way to say the same two calls, whole and streamed.
func TestTurn_ReadsEachProfile(t *testing.T) {
	for name, want := range map[string]struct {
		ids      [2]string // empty: left to the Host
		text     string    // of the second call's arguments
		finish   string
		vendor   map[string]string
		adjusted []string
		usage    agent.Usage
	}{
		"openai":   {[2]string{"call_A", "call_B"}, `{"filename":"a.md"}`, "tool_calls", nil, nil, agent.Usage{Input: 100, Output: 20, Cached: 64}},
		"azure":    {[2]string{"call_A", "call_B"}, `{"filename":"a.md"}`, "tool_calls", nil, nil, agent.Usage{Input: 100, Output: 20}},
		"ollama":   {[2]string{"call_A", "call_B"}, `{"filename":"a.md"}`, "tool_calls", map[string]string{"reasoning": "first list"}, []string{"object_arguments"}, agent.Usage{Input: 100, Output: 20}},
		"vllm":     {[2]string{"chatcmpl-tool-A", "chatcmpl-tool-B"}, `{"filename": "a.md"}`, "stop", map[string]string{"reasoning": "first list"}, []string{"empty_arguments"}, agent.Usage{Input: 100, Output: 20}},
		"llamacpp": {[2]string{"", ""}, `{"filename":"a.md"}`, "tool_calls", map[string]string{"reasoning_content": "first list"}, nil, agent.Usage{Input: 100, Output: 20}},
		"deepseek": {[2]string{"call_A", "call_B"}, `{"filename": "a.md"}`, "tool_calls", map[string]string{"reasoning_content": "first list"}, nil, agent.Usage{Input: 100, Output: 20, Cached: 64}},
		"lmstudio": {[2]string{"193629320", ""}, `{"filename":"a.md"}`, "tool_calls", nil, []string{"empty_arguments", "usage_estimated"}, agent.Usage{Output: 14}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := serve(t, whole(load(t, name+".json")), events(load(t, name+".sse")))
				defer p.close()
				expected := nodes.Reply{
					Calls: []nodes.ToolCall{
						{ID: want.ids[0], Name: "docs__list", Arguments: "{}"},
						{ID: want.ids[1], Name: "docs__read", Arguments: want.text},
					},
					Finish: want.finish, Usage: want.usage, Vendor: want.vendor, Adjusted: want.adjusted,
				}
				for i, m := range []*openai.Model{p.model(as(name)), p.model(as(name), streaming)} {
					got, err := m.Turn(t.Context(), desk)
					if err != nil {
						t.Fatal(err)
					}
					if want.usage.Input == 0 { // estimated: of what was sent
						expected.Usage.Input = int64(len(p.got()[i].body)+chat.BytesPerToken-1) / chat.BytesPerToken
					}
					if !reflect.DeepEqual(got, expected) {
						t.Errorf("streamed %t: got  %+v\nwant %+v", i == 1, got, expected)
					}
				}
				body := p.got()[1].decoded(t)
				if body["stream"] != true || body["parallel_tool_calls"] != false {
					t.Errorf("sent %v", body)
				}
			})
		})
	}
	if len(chat.Profiles()) != 7 {
		t.Errorf("a profile is without a row: %v", chat.Profiles())
	}
}

func TestTurn_ShowsTextAsItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		shown := map[string][]string{}
		stream := deltas("stop", `{"reasoning":"hidden"}`, `{"content":"one "}`, `{"content":""}`, `{"content":"two"}`)
		p := serve(t, events(stream), events(stream), whole(message(`{"content":"one two","reasoning":"hidden"}`, "stop")))
		defer p.close()
		m := p.model(streaming, func(c *openai.Config) {
			c.Text = func(run, delta string) {
				mu.Lock()
				defer mu.Unlock()
				shown[run] = append(shown[run], delta)
			}
		})
		var wait sync.WaitGroup
		for _, run := range []string{"a", "b"} { // one model serves many runs at once
			wait.Go(func() {
				r := simple
				r.Run = run
				if got, err := m.Turn(t.Context(), r); err != nil || got.Text != "one two" {
					t.Errorf("%+v, %v", got, err)
				}
			})
		}
		wait.Wait()
		want := []string{"one ", "two"}
		if !reflect.DeepEqual(shown, map[string][]string{"a": want, "b": want}) {
			t.Errorf("shown %v", shown)
		}
		// A provider that does not stream answers all the same; there is nothing to show.
		if got, err := m.Turn(t.Context(), simple); err != nil || got.Text != "one two" || len(shown["run-7"]) != 0 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// What a stream holds behind its end marker is not waited for: some keep the connection.
func TestTurn_EndsWithTheEndMarker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, func(w http.ResponseWriter, r *http.Request) {
			events(deltas("stop", `{"content":"x"}`))(w, r)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		defer p.close()
		if got, err := p.model(streaming).Turn(t.Context(), simple); err != nil || got.Text != "x" {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestTurn_TellsNobodyOfTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, said("x"))
		defer p.close()
		if _, err := p.model().Turn(t.Context(), simple); err != nil {
			t.Fatal(err)
		}
		if r := p.got()[0]; strings.Contains(r.body+r.url, "run-7") {
			t.Errorf("sent %s to %s", r.body, r.url)
		}
	})
}
