package openai_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"sallyport/nodes"
	"sallyport/nodes/llm/openai"
)

// answer is what a provider does with one request.
type answer func(w http.ResponseWriter, r *http.Request)

// provider is an endpoint that answers one request after the other, as it is told, and
// keeps what it was sent. It speaks HTTP over pipes, so that the clock of a test may be
// a false one.
type provider struct {
	t       testing.TB
	conns   chan net.Conn
	stop    chan struct{}
	closed  sync.Once
	server  *http.Server
	answers []answer

	mu       sync.Mutex
	requests []recorded
}

// recorded is a request as it came.
type recorded struct {
	url    string
	header http.Header
	body   string
}

// serve starts a provider; the caller closes it.
func serve(t testing.TB, answers ...answer) *provider {
	p := &provider{t: t, conns: make(chan net.Conn), stop: make(chan struct{}), answers: answers}
	p.server = &http.Server{Handler: p}
	go func() { _ = p.server.Serve(p) }() // ends with close
	return p
}

func (p *provider) close() {
	p.closed.Do(func() { close(p.stop) })
	_ = p.server.Close()
}

// Accept, Close and Addr make the provider a net.Listener.
func (p *provider) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.stop:
		return nil, net.ErrClosed
	}
}

func (p *provider) Close() error   { p.closed.Do(func() { close(p.stop) }); return nil }
func (p *provider) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// dial is how a client reaches the provider, whatever name it has.
func (p *provider) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Error(err)
	}
	p.mu.Lock()
	n := len(p.requests)
	p.requests = append(p.requests, recorded{url: r.URL.String(), header: r.Header.Clone(), body: string(body)})
	p.mu.Unlock()
	if n >= len(p.answers) {
		http.Error(w, `{"error":{"message":"nothing is left to be said","type":"invalid_request_error"}}`, http.StatusBadRequest)
		return
	}
	p.answers[n](w, r)
}

// got are the requests so far.
func (p *provider) got() []recorded {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]recorded(nil), p.requests...)
}

const (
	testKey  = "sk-TESTKEY0123456789abcdefghijklmnop"
	testBase = "http://provider.test/v1"
)

// model is a client of the provider.
func (p *provider) model(change ...func(*openai.Config)) *openai.Model {
	p.t.Helper()
	c := openai.Config{
		Model: "test-model", BaseURL: testBase, Key: func() (string, error) { return testKey, nil },
		HTTP: &http.Client{Transport: &http.Transport{DialContext: p.dial, DisableKeepAlives: true}},
	}
	for _, f := range change {
		f(&c)
	}
	m, err := openai.New(c)
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

func streaming(c *openai.Config) { c.Stream = true }

func as(profile string) func(*openai.Config) {
	return func(c *openai.Config) { c.Profile = profile }
}

// whole answers with a body.
func whole(body string) answer { return status(http.StatusOK, "application/json", body) }

// events answers with a stream.
func events(body string) answer {
	return status(http.StatusOK, "text/event-stream; charset=utf-8", body)
}

func status(code int, kind, body string, header ...string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body) // a client that has gone is part of the test
	}
}

// cut sends the beginning of a response and ends the connection.
func cut(kind, body string) answer {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, body)
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// silent says nothing, or no more than this, until the client has gone.
func silent(body string) answer {
	return func(w http.ResponseWriter, r *http.Request) {
		if body != "" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, body)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}
}

// said is a whole turn of text.
func said(text string) answer {
	return whole(message(`{"role":"assistant","content":`+quote(text)+`}`, "stop"))
}

// message is the body of a whole response.
func message(m, finish string) string {
	word := "null"
	if finish != "" {
		word = quote(finish)
	}
	return fmt.Sprintf(`{"id":"r1","object":"chat.completion","choices":[{"index":0,"message":%s,"finish_reason":%s}],"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":40}}}`, m, word)
}

// deltas is the body of a stream: each delta an event, then the finish reason, the cost
// and the end marker.
func deltas(finish string, ds ...string) string {
	var b strings.Builder
	for _, d := range ds {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":null}]}\n\n", d)
	}
	if finish != "" {
		fmt.Fprintf(&b, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":%s}]}\n\n", quote(finish))
	}
	b.WriteString("data: {\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":20,\"prompt_tokens_details\":{\"cached_tokens\":40}}}\n\ndata: [DONE]\n\n")
	return b.String()
}

func quote(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err) // text of the tests
	}
	return string(data)
}

// simple is a request without tools.
var simple = nodes.Request{Messages: []nodes.Message{{Role: nodes.RoleUser, Content: "hello"}}, Run: "run-7", Attempt: 2}

// decoded is the body of a recorded request.
func (r recorded) decoded(t testing.TB) map[string]any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(r.body)))
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
