// Package stdiotest talks to an MCP server as a real child process, line by line and without a protocol
// library, so that a test sees exactly what is on the wire. Every line that the child writes to stdout must
// be one JSON-RPC message, or the test fails (SPEC D10).
package stdiotest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"testing"
	"time"
)

// The protocol versions that are tried.
const (
	Current = "2026-07-28" // stateless: every request carries its version
	Older   = "2025-11-25" // begins with initialize
)

// patience bounds the wait for one message or for the end of the child.
const patience = 20 * time.Second

// Message is one line from the server.
type Message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Result  json.RawMessage `json:"result"`
	Error   *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// Client is the other side of a child's stdin and stdout.
type Client struct {
	t        testing.TB
	cmd      *exec.Cmd
	stdin    io.WriteCloser
	version  string
	messages chan Message
	stderr   bytes.Buffer

	mu   sync.Mutex
	next int
}

// Start starts the child and a reader of its lines. The child is ended when the test ends.
func Start(t testing.TB, cmd *exec.Cmd, version string) *Client {
	t.Helper()
	c := &Client{t: t, cmd: cmd, version: version, messages: make(chan Message, 100)}
	cmd.Stderr = &c.stderr
	var err error
	if c.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() { defer close(read); c.read(stdout) }()
	t.Cleanup(func() {
		_ = c.stdin.Close()
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	if version == Older {
		c.Result("initialize", map[string]any{"protocolVersion": version, "capabilities": map[string]any{},
			"clientInfo": map[string]any{"name": "raw", "version": "1"}})
		c.Send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	return c
}

// read checks every line and hands it on.
func (c *Client) read(stdout io.Reader) {
	defer close(c.messages)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			if len(line) > 0 {
				c.t.Errorf("stdout ends with half a line: %.200q", line)
			}
			return
		}
		message, err := parse(line)
		if err != nil {
			c.t.Errorf("stdout: %v: %.200q", err, line)
			continue
		}
		c.messages <- message
	}
}

func parse(line []byte) (Message, error) {
	var m Message
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	var known struct {
		Message
		Params json.RawMessage `json:"params"`
	}
	if err := dec.Decode(&known); err != nil {
		return m, fmt.Errorf("not a JSON-RPC message: %w", err)
	}
	m = known.Message
	reply := (m.Result != nil) != (m.Error != nil) && m.ID != nil && m.Method == ""
	if m.Version != "2.0" || (!reply && m.Method == "") {
		return m, errors.New("not a JSON-RPC message")
	}
	return m, nil
}

// Send writes one line as it is.
func (c *Client) Send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.stdin, line+"\n"); err != nil {
		c.t.Fatalf("write to the server: %v\n%s", err, c.Stderr())
	}
}

// TrySend is Send to a server that may end while it reads.
func (c *Client) TrySend(line string) {
	_, _ = io.WriteString(c.stdin, line+"\n")
}

// Request sends a request and returns its id. params are marshalled, or taken as they are if they are a
// json.RawMessage of an object.
func (c *Client) Request(method string, params any) string {
	c.t.Helper()
	c.mu.Lock()
	c.next++
	id := fmt.Sprint(c.next)
	c.mu.Unlock()
	c.Send(c.Line(id, method, params))
	return id
}

// Line is the line of a request.
func (c *Client) Line(id, method string, params any) string {
	c.t.Helper()
	if params == nil {
		params = map[string]any{}
	}
	text, err := json.Marshal(params)
	if raw, ok := params.(json.RawMessage); ok {
		text, err = raw, nil // with its duplicates and odd numbers
	}
	if err != nil {
		c.t.Fatal(err)
	}
	if c.version == Current {
		meta := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + c.version +
			`","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
		rest := bytes.TrimSpace(text)[1:]
		if len(bytes.TrimSpace(rest)) > 1 {
			meta += ","
		}
		text = append([]byte(meta), rest...)
	}
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + string(text) + `}`
}

// Next returns the next message; ok is false once the child has closed stdout.
func (c *Client) Next() (m Message, ok bool) {
	c.t.Helper()
	select {
	case m, ok = <-c.messages:
		return m, ok
	case <-time.After(patience):
		_ = c.cmd.Process.Kill()
		c.t.Fatalf("no answer within %v", patience)
		return m, false
	}
}

// Reply sends a request and returns the reply to it; replies to others in between are an error.
func (c *Client) Reply(method string, params any) Message {
	c.t.Helper()
	id := c.Request(method, params)
	m, ok := c.Next()
	if !ok {
		c.t.Fatalf("%s: the server ended", method)
	}
	if string(m.ID) != id {
		c.t.Fatalf("%s: reply to %s, not to %s", method, m.ID, id)
	}
	return m
}

// Result sends a request that must succeed and returns its result.
func (c *Client) Result(method string, params any) json.RawMessage {
	c.t.Helper()
	m := c.Reply(method, params)
	if m.Error != nil {
		c.t.Fatalf("%s: error %d %s", method, m.Error.Code, m.Error.Message)
	}
	return m.Result
}

// CallResult is the result of a tools/call.
type CallResult struct {
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
	ResultType string          `json:"resultType"`
	Content    []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"content"`
}

// Call calls a tool with arguments as they are and returns its result.
func (c *Client) Call(tool, arguments string) CallResult {
	c.t.Helper()
	name, err := json.Marshal(tool)
	if err != nil {
		c.t.Fatal(err)
	}
	raw := c.Result("tools/call", json.RawMessage(`{"name":`+string(name)+`,"arguments":`+arguments+`}`))
	var result CallResult
	if err := json.Unmarshal(raw, &result); err != nil {
		c.t.Fatal(err)
	}
	return result
}

// Tools returns the definitions of tools/list, in order, as they are on the wire.
func (c *Client) Tools() []json.RawMessage {
	c.t.Helper()
	var list struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(c.Result("tools/list", nil), &list); err != nil {
		c.t.Fatal(err)
	}
	return list.Tools
}

// PID is the process id of the child.
func (c *Client) PID() int { return c.cmd.Process.Pid }

// CloseInput ends the child's stdin. It may have ended already.
func (c *Client) CloseInput() { _ = c.stdin.Close() }

// Wait returns the child's exit code (-1 after a signal), after all its output was read.
func (c *Client) Wait() int {
	c.t.Helper()
	timer := time.AfterFunc(patience, func() {
		c.t.Errorf("the server did not end within %v", patience)
		_ = c.cmd.Process.Kill()
	})
	defer timer.Stop()
	for range c.messages { // until stdout ends; what is left over was checked
	}
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		c.t.Fatal(err)
	}
	return c.cmd.ProcessState.ExitCode()
}

// End ends stdin and waits.
func (c *Client) End() int {
	c.t.Helper()
	c.CloseInput()
	return c.Wait()
}

// Stderr returns what the child wrote to stderr; complete after Wait.
func (c *Client) Stderr() string { return c.stderr.String() }
