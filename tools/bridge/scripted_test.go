package bridge

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/tools"
)

// A scripted server: a real child process that speaks MCP by hand and does wrong what
// its script says.

// script is what a scripted server does. The nth request of a kind gets the nth reply,
// and the last one for ever.
type script struct {
	// Protocol is what the server speaks; empty is 2026-07-28. An older one makes it
	// refuse server/discover.
	Protocol string
	// Views are what tools/list shows, from one listing of a child to its next: pages by
	// cursor.
	Views []map[string]json.RawMessage
	// Replies are given instead of the ordinary ones: by method, or by "call:TOOL".
	Replies map[string][]scripted
	// Ready, if set, is a line that is written before anything is read.
	Ready string
	// Deaf makes it read no more after the handshake.
	Deaf bool
	// Immortal makes it ignore end of input.
	Immortal bool
}

// scripted is one reply. $ID in a line stands for the request's id.
type scripted struct {
	Result json.RawMessage `json:",omitempty"`
	Error  json.RawMessage `json:",omitempty"`
	Before []string        // lines that are written first
	Line   string          // instead of a proper reply
	Flood  int             // bytes of one endless line instead
	Silent bool            // nothing instead
	Exit   bool            // the server ends instead; with Result, after it
	Closes bool            // its output, and goes on
}

// received is what a scripted server notes of each message.
type received struct {
	Method string
	Tool   string
	Params json.RawMessage
}

func init() { parts["scripted"] = func(args []string) { playScript(args[0], args[1]) } }

func playScript(file, record string) {
	var s script
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	log, err2 := os.OpenFile(record, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil || err2 != nil {
		panic(fmt.Sprint(err, err2))
	}
	p := player{script: s, log: log, counts: map[string]int{}, out: bufio.NewWriter(os.Stdout)}
	if s.Ready != "" {
		p.line(s.Ready)
	}
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		p.take(line)
		if s.Deaf && p.counts["tools/list"] > 0 {
			select {}
		}
	}
	if s.Immortal {
		select {}
	}
}

type player struct {
	script script
	log    *os.File
	counts map[string]int
	view   int
	out    *bufio.Writer
}

func (p *player) line(text string) {
	_, _ = p.out.WriteString(text + "\n")
	_ = p.out.Flush()
}

func (p *player) take(line []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	var params struct {
		Name   string `json:"name"`
		Cursor string `json:"cursor"`
	}
	if json.Unmarshal(line, &m) != nil || len(m.Params) > 0 && json.Unmarshal(m.Params, &params) != nil {
		panic("the Host sent " + string(line))
	}
	note, _ := json.Marshal(received{m.Method, params.Name, m.Params})
	_, _ = p.log.Write(append(note, '\n'))
	if m.ID == nil {
		return
	}
	id := string(m.ID)
	kind := m.Method
	if kind == "tools/call" {
		kind = "call:" + params.Name
	}
	n := p.counts[kind]
	p.counts[kind]++
	if replies := p.script.Replies[kind]; len(replies) > 0 {
		p.reply(id, replies[min(n, len(replies)-1)])
		return
	}
	p.reply(id, p.ordinary(m.Method, params.Cursor))
}

func (p *player) reply(id string, r scripted) {
	for _, l := range r.Before {
		p.line(strings.ReplaceAll(l, "$ID", id))
	}
	switch {
	case r.Silent:
	case r.Closes:
		_ = os.Stdout.Close()
	case r.Flood > 0:
		_, _ = io.CopyN(p.out, endlessly{}, int64(r.Flood))
		_ = p.out.Flush()
	case r.Line != "":
		p.line(strings.ReplaceAll(r.Line, "$ID", id))
	case r.Error != nil:
		p.line(`{"jsonrpc":"2.0","id":` + id + `,"error":` + string(r.Error) + `}`)
	case r.Result != nil:
		p.line(`{"jsonrpc":"2.0","id":` + id + `,"result":` + string(r.Result) + `}`)
	}
	if r.Exit {
		syscall.Exit(3) // at once: os.Exit sleeps for a second in a race build
	}
}

type endlessly struct{}

func (endlessly) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

func (p *player) ordinary(method, cursor string) scripted {
	version := p.script.Protocol
	if version == "" {
		version = "2026-07-28"
	}
	switch method {
	case "server/discover":
		if version < "2026-07-28" {
			return scripted{Error: raw(`{"code":-32601,"message":"method not found"}`)}
		}
		return scripted{Result: raw(`{"resultType":"complete","supportedVersions":["` + version + `"],"capabilities":{"tools":{}}}`)}
	case "initialize":
		return scripted{Result: raw(`{"protocolVersion":"` + version + `","capabilities":{"tools":{}},"serverInfo":{"name":"scripted","version":"1"}}`)}
	case "tools/list":
		if cursor == "" {
			p.view++
		}
		view := p.script.Views[min(p.view, len(p.script.Views))-1]
		return scripted{Result: view[cursor]}
	case "tools/call":
		return scripted{Result: statusResult("ok", "done", `{}`)}
	}
	return scripted{Error: raw(`{"code":-32601,"message":"method not found"}`)}
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// statusResult is a result in the shape of SPEC D7.
func statusResult(status, message, data string) json.RawMessage {
	return raw(`{"content":[{"type":"text","text":"` + message + `"}],"structuredContent":{"status":"` + status +
		`","message":"` + message + `","data":` + data + `}}`)
}

// onePage is a list of one page.
func onePage(definitions ...string) map[string]json.RawMessage {
	return map[string]json.RawMessage{"": raw(`{"resultType":"complete","tools":[` + strings.Join(definitions, ",") + `]}`)}
}

// The tools that scripted servers list: a read, a write with a grant, and its
// read-back.
const (
	statusSchema = `{"type":"object","properties":{"status":{"type":"string","enum":["ok","rejected","failed","result_unknown"]},` +
		`"message":{"type":"string"},"data":{"type":"object"}},"required":["status","message"],"additionalProperties":false}`
	findTool = `{"name":"find","description":"Finds a text.","inputSchema":{"type":"object","properties":{"query":{"type":"string","minLength":1,"maxLength":80},` +
		`"max":{"type":"integer","minimum":1,"maximum":3,"default":3}},"required":["query"],"additionalProperties":false},"outputSchema":` + statusSchema + `}`
	saveTool = `{"name":"save","description":"Saves a text.","inputSchema":{"type":"object","properties":{"filename":{"type":"string","pattern":"^[a-z.]+$"},` +
		`"content":{"type":"string","minLength":1},"grant":{"type":"string","minLength":1}},"required":["filename","content","grant"],"additionalProperties":false},` +
		`"outputSchema":` + statusSchema + `,"annotations":{"readOnlyHint":true}}`
	settleTool = `{"name":"settle","description":"Settles a save.","inputSchema":{"type":"object","properties":{"filename":{"type":"string"},"grant":{"type":"string"}},` +
		`"required":["filename","grant"],"additionalProperties":false},"outputSchema":` + statusSchema + `}`
)

// stand is a scripted server with what a bridge needs to use it.
type stand struct {
	t      testing.TB
	cfg    Config
	record string
	logs   *strings.Builder
}

// contracts are those of findTool, saveTool and settleTool.
func contracts() []tools.Contract {
	return []tools.Contract{
		{Name: "s__find", Owner: "o", Risk: agent.RiskRead, Result: tools.ResultStatus},
		{
			Name: "s__save", Owner: "o", Risk: agent.RiskWrite, Result: tools.ResultStatus, SideEffect: "creates a file",
			Rollback: "delete it", Approval: &tools.Approval{Approvers: 1}, GrantField: "grant", Redact: []string{"content"},
			Settle: &tools.Settle{
				Tool: "s__settle", Args: map[string]string{"filename": "filename", "grant": tools.GrantArg},
				AppliedWhen: map[string]tools.Match{"sha256": {SHA256Of: "content"}}, Voids: true,
			},
		},
		{Name: "s__settle", Owner: "o", Risk: agent.RiskSettle, HostOnly: true, Result: tools.ResultStatus, SideEffect: "voids"},
	}
}

// newStand writes the script and configures one server for it, with the prefix s.
// Without views it lists the three tools.
func newStand(t testing.TB, s script) *stand {
	t.Helper()
	if s.Views == nil {
		s.Views = []map[string]json.RawMessage{onePage(findTool, saveTool, settleTool)}
	}
	dir := t.TempDir()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	file, record := filepath.Join(dir, "script.json"), filepath.Join(dir, "received.jsonl")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	st := &stand{t: t, record: record, logs: &strings.Builder{}}
	st.cfg = Config{
		Servers: []tools.Server{{
			Prefix: "s", Command: child(t, "scripted", file, record), Scope: "secret-scope", Audience: "stand",
			Timeout: tools.Duration(patient),
		}},
		Contracts: contracts(),
	}
	return st
}

// got lists what the server has received; with a method, only that.
func (s *stand) got(method string) []received {
	s.t.Helper()
	text, err := os.ReadFile(s.record)
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	var all []received
	for line := range strings.Lines(string(text)) {
		var r received
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			s.t.Fatalf("%q: %v", line, err)
		}
		if method == "" || r.Method == method {
			all = append(all, r)
		}
	}
	return all
}

// waitForCall returns when the child has received a call: another process writes the
// record, and says so in no other way.
func (s *stand) waitForCall() {
	s.t.Helper()
	for range time.Tick(time.Millisecond) {
		if s.calls() > 0 || s.t.Context().Err() != nil {
			return
		}
	}
}

func (s *stand) calls() int { return len(s.got("tools/call")) }
func (s *stand) lists() int { return len(s.got("tools/list")) }
