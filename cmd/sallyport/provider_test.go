package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"sallyport/nodes"
	"sallyport/nodes/llm"
)

// provider is an endpoint that speaks Chat Completions and plays a script.
type provider struct {
	*httptest.Server
	t      *testing.T
	script llm.Script

	mu    sync.Mutex
	key   string // the only one that is let in; empty lets everybody in
	asked []asking
}

// asking is a request as the endpoint received it.
type asking struct {
	header http.Header
	body   string
}

func newProvider(t *testing.T, script llm.Script) *provider {
	t.Helper()
	p := &provider{t: t, script: script}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

// base is the base URL of its API.
func (p *provider) base() string { return p.URL + "/v1" }

// admit lets only those in who send this key.
func (p *provider) admit(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key = key
}

// requests are all that it has received so far.
func (p *provider) requests() []asking {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]asking{}, p.asked...)
}

// providerRequest is what is read of a request.
type providerRequest struct {
	Model    string          `json:"model"`
	Messages []nodes.Message `json:"messages"`
	Tools    []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
	Stream bool `json:"stream"`
}

// ServeHTTP implements [http.Handler].
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Error(err)
	}
	p.mu.Lock()
	p.asked = append(p.asked, asking{r.Header, string(body)})
	key := p.key
	p.mu.Unlock()
	if key != "" && r.Header.Get("Authorization") != "Bearer "+key {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":{"message":"wrong key %s","code":"invalid_api_key"}}`, r.Header.Get("Authorization"))
		return
	}
	var q providerRequest
	if err := json.Unmarshal(body, &q); err != nil || r.URL.Path != "/v1/chat/completions" {
		p.t.Errorf("%s: %v", r.URL.Path, err)
	}
	ask := nodes.Request{Messages: q.Messages}
	for _, t := range q.Tools {
		ask.Tools = append(ask.Tools, nodes.Tool{Name: t.Function.Name})
	}
	reply, err := p.script.Turn(r.Context(), ask)
	if err != nil {
		p.t.Error(err)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if q.Stream {
		p.stream(w, q.Model, reply)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	p.write(w, "%s", completion(q.Model, "chat.completion", "message", turnOf(reply), reply.Finish))
}

func (p *provider) write(w io.Writer, format string, args ...any) {
	if _, err := fmt.Fprintf(w, format, args...); err != nil {
		p.t.Log(err)
	}
}

// turnOf is a reply as the message of a completion.
func turnOf(r nodes.Reply) map[string]any {
	m := map[string]any{"role": "assistant", "content": nil}
	if r.Text != "" {
		m["content"] = r.Text
	}
	if len(r.Calls) > 0 {
		m["tool_calls"] = r.Calls
	}
	return m
}

// providerUsage is what each turn costs.
var providerUsage = map[string]any{"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}

func completion(model, object, what string, content map[string]any, finish any) string {
	data, err := json.Marshal(map[string]any{
		"id": "chatcmpl-1", "object": object, "created": 1, "model": model, "usage": providerUsage,
		"choices": []any{map[string]any{"index": 0, what: content, "finish_reason": finish}},
	})
	if err != nil {
		panic(err)
	}
	return string(data)
}

// stream sends the reply in pieces of three characters.
func (p *provider) stream(w http.ResponseWriter, model string, r nodes.Reply) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(delta map[string]any, finish any) {
		p.write(w, "data: %s\n\n", completion(model, "chat.completion.chunk", "delta", delta, finish))
		w.(http.Flusher).Flush()
	}
	send(map[string]any{"role": "assistant"}, nil)
	for _, piece := range pieces(r.Text) {
		send(map[string]any{"content": piece}, nil)
	}
	for i, c := range r.Calls {
		head := map[string]any{"index": i, "id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": ""}}
		send(map[string]any{"tool_calls": []any{head}}, nil)
		for _, piece := range pieces(c.Arguments) {
			send(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": piece}}}}, nil)
		}
	}
	send(map[string]any{}, r.Finish)
	p.write(w, "data: [DONE]\n\n")
}

func pieces(text string) []string {
	var out []string
	for rest := []rune(text); len(rest) > 0; {
		n := min(3, len(rest))
		out, rest = append(out, string(rest[:n])), rest[n:]
	}
	return out
}

// secretsIn names what of these a text holds.
func secretsIn(text string, secrets ...string) []string {
	var found []string
	for _, s := range secrets {
		if strings.Contains(text, s) {
			found = append(found, s)
		}
	}
	return found
}
