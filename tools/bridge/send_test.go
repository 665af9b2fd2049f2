package bridge

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/tools"
	"sallyport/tools/strictjson"
)

// sized is a valid result of exactly n bytes, as compact JSON; mark is added to it.
func sized(n int, mark string) json.RawMessage {
	build := func(fill int) string {
		return `{"content":[],` + mark + `"structuredContent":{"status":"ok","message":"` + strings.Repeat("a", fill) + `"}}`
	}
	return raw(build(n - len(build(0))))
}

// After each of these replies of the server: what a read and what a write is.
type replyCase struct {
	reply  scripted
	read   agent.Status
	write  agent.Status
	class  agent.Class
	reason string
}

const (
	unknown     = agent.StatusResultUnknown
	unavailable = agent.StatusUnavailable
)

// CHECKS 65 to 69 and 71 to 74, CASES D3 to D5, D10: the rows of B9.
var replyCases = map[string]replyCase{
	// Row 1: error reply, undecodable reply, lost session.
	"an error reply":              {scripted{Error: raw(`{"code":-32602,"message":"unknown tool /root/x"}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonProtocolError},
	"an error that says rejected": {scripted{Error: raw(`{"code":-32000,"message":"rejected, nothing was written"}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonProtocolError},
	"null":                        {scripted{Result: raw(`null`)}, unavailable, unknown, agent.ClassProtocolError, ReasonProtocolError},
	"a text":                      {scripted{Result: raw(`"ok"`)}, unavailable, unknown, agent.ClassProtocolError, ReasonProtocolError},
	"isError as text":             {scripted{Result: raw(`{"isError":"no","structuredContent":{"status":"ok","message":"m"}}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonProtocolError},
	"a garbage line":              {scripted{Line: "Saved!"}, unavailable, unknown, agent.ClassProtocolError, ReasonProtocolError},
	"garbage before the reply":    {scripted{Before: []string{"Saved!"}, Result: statusResult("ok", "m", "{}")}, unavailable, unknown, agent.ClassProtocolError, ReasonProtocolError},
	"a reply to an unknown id":    {scripted{Line: `{"jsonrpc":"2.0","id":5555,"result":{}}`}, unavailable, unknown, agent.ClassProtocolError, ReasonProtocolError},
	"a reply to no id":            {scripted{Line: `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}`}, unavailable, unknown, agent.ClassProtocolError, ReasonProtocolError},
	"a batch":                     {scripted{Line: `[{"jsonrpc":"2.0","id":$ID,"result":{}}]`}, unavailable, unknown, agent.ClassProtocolError, ReasonProtocolError},
	"a line of 100 MB":            {scripted{Flood: 100 << 20}, unavailable, unknown, agent.ClassProtocolError, ReasonProtocolError},
	"900-deep nesting":            {scripted{Result: raw(strings.Repeat(`[`, 900) + strings.Repeat(`]`, 900))}, unavailable, unknown, agent.ClassProtocolError, ReasonProtocolError},
	"300 giant exponents":         {scripted{Result: raw("[" + strings.Repeat("1e999999,", 299) + "1]")}, unavailable, unknown, agent.ClassProtocolError, ReasonProtocolError},
	"a duplicate status":          {scripted{Result: raw(`{"structuredContent":{"status":"failed","message":"m","status":"ok"}}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonProtocolError},
	"a crash":                     {scripted{Exit: true}, unavailable, unknown, agent.ClassProtocolError, ReasonLost},
	"half a reply":                {scripted{Flood: 10, Exit: true}, unavailable, unknown, agent.ClassProtocolError, ReasonLost},
	"a reply, then a crash":       {scripted{Result: statusResult("ok", "m", "{}"), Exit: true}, agent.StatusOK, agent.StatusOK, agent.ClassOK, ""},
	// Row 2: the result type.
	"input_required":   {scripted{Result: raw(`{"resultType":"input_required","structuredContent":{"status":"ok","message":"m"}}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonResultType},
	"task":             {scripted{Result: raw(`{"resultType":"task","task":{"taskId":"1"}}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonResultType},
	"an unknown type":  {scripted{Result: raw(`{"resultType":"later","isError":true}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonResultType},
	"a type of null":   {scripted{Result: raw(`{"resultType":null,"structuredContent":{"status":"ok","message":"m"}}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonResultType},
	"complete, said":   {scripted{Result: raw(`{"resultType":"complete","content":[],"structuredContent":{"status":"ok","message":"m"}}`)}, agent.StatusOK, agent.StatusOK, agent.ClassOK, ""},
	"complete, unsaid": {scripted{Result: raw(`{"structuredContent":{"status":"ok","message":"m"}}`)}, agent.StatusOK, agent.StatusOK, agent.ClassOK, ""},
	// Row 3: isError.
	"isError":                      {scripted{Result: raw(`{"isError":true,"content":[{"type":"text","text":"ENOENT /root/x"}]}`)}, agent.StatusFailed, unknown, agent.ClassToolError, ReasonIsError},
	"isError beside ok":            {scripted{Result: raw(`{"isError":true,"content":[],"structuredContent":{"status":"ok","message":"m"}}`)}, agent.StatusFailed, unknown, agent.ClassToolError, ReasonIsError},
	"isError and too large":        {scripted{Result: sized(32_001, `"isError":true,`)}, agent.StatusFailed, unknown, agent.ClassToolError, ReasonIsError},
	"isError with a broken status": {scripted{Result: raw(`{"isError":true,"structuredContent":{"status":"no"}}`)}, agent.StatusFailed, unknown, agent.ClassToolError, ReasonIsError},
	// Row 4: size.
	"32,000 bytes":           {scripted{Result: sized(32_000, "")}, agent.StatusOK, agent.StatusOK, agent.ClassOK, ""},
	"32,001 bytes":           {scripted{Result: sized(32_001, "")}, unavailable, unknown, agent.ClassProtocolError, ReasonResultTooLarge},
	"32,001, of it invalid":  {scripted{Result: raw(`{"structuredContent":{"status":"` + strings.Repeat("a", 32_000) + `"}}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonResultTooLarge},
	"24,000 times a":         {scripted{Result: statusResult("ok", "m", `{"content":"`+strings.Repeat("a", 24_000)+`"}`)}, agent.StatusOK, agent.StatusOK, agent.ClassOK, ""},
	`24,000 times "`:         {scripted{Result: statusResult("ok", "m", `{"content":"`+strings.Repeat(`\"`, 24_000)+`"}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonResultTooLarge},
	"24,000 escaped markups": {scripted{Result: statusResult("ok", "m", `{"content":"`+strings.Repeat(`\u003c`, 24_000)+`"}`)}, agent.StatusOK, agent.StatusOK, agent.ClassOK, ""},
	"1 MiB":                  {scripted{Result: sized(MaxFrame-100, "")}, unavailable, unknown, agent.ClassProtocolError, ReasonResultTooLarge},
	// Rows 5 and 6: schema and shape.
	"no structured content":      {scripted{Result: raw(`{"content":[{"type":"text","text":"ok"}]}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonInvalidResult},
	"an empty object":            {scripted{Result: raw(`{}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonInvalidResult},
	"an image only":              {scripted{Result: raw(`{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonInvalidResult},
	"structured as a list":       {scripted{Result: raw(`{"structuredContent":[]}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonInvalidResult},
	"no status":                  {scripted{Result: raw(`{"structuredContent":{"message":"m"}}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonInvalidResult},
	"no message":                 {scripted{Result: raw(`{"structuredContent":{"status":"ok"}}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonInvalidResult},
	"an extra field":             {scripted{Result: raw(`{"structuredContent":{"status":"ok","message":"m","note":"n"}}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonInvalidResult},
	"a bad status":               {scripted{Result: raw(`{"structuredContent":{"status":"done","message":"m"}}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonInvalidResult},
	"data as a list":             {scripted{Result: raw(`{"structuredContent":{"status":"ok","message":"m","data":[]}}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonInvalidResult},
	"waiting_approval as status": {scripted{Result: raw(`{"structuredContent":{"status":"waiting_approval","message":"m"}}`)}, unavailable, unknown, agent.ClassProtocolError, ReasonInvalidResult},
	"without data":               {scripted{Result: raw(`{"structuredContent":{"status":"ok","message":"m"}}`)}, agent.StatusOK, agent.StatusOK, agent.ClassOK, ""},
	"structured only":            {scripted{Result: raw(`{"structuredContent":{"status":"ok","message":"m","data":{"a":1}}}`)}, agent.StatusOK, agent.StatusOK, agent.ClassOK, ""},
	// Row 7: what the server says of its business passes unchanged.
	"rejected":       {scripted{Result: statusResult("rejected", "m", "{}")}, agent.StatusRejected, agent.StatusRejected, agent.ClassPermissionRefused, ""},
	"failed":         {scripted{Result: statusResult("failed", "m", "{}")}, agent.StatusFailed, agent.StatusFailed, agent.ClassToolError, ""},
	"result_unknown": {scripted{Result: statusResult("result_unknown", "m", "{}")}, unknown, unknown, agent.ClassToolError, ""},
}

func TestSend_ClassifiesReplies(t *testing.T) {
	t.Parallel()
	for name, tc := range replyCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, script{Replies: map[string][]scripted{"call:find": {tc.reply}, "call:save": {tc.reply}}})
			r := s.begin(t)
			began := time.Now()
			read := r.read()
			r.is(read.Outcome, tc.read, tc.class, tc.reason)
			if tc.reply.Exit {
				r.bridge.conns["s"].wire.mustEnd(t) // the next Prepare finds the connection lost
			}
			write := r.send(r.approved(saveArguments))
			r.is(write.Outcome, tc.write, tc.class, tc.reason)
			if took := time.Since(began); took > quick {
				t.Errorf("took %v", took)
			}
			if !read.Sent || !write.Sent || read.Request == "" || write.Request == read.Request {
				t.Errorf("read %+v, write %+v", read.Outcome, write.Outcome)
			}
			if n := s.calls(); n != 2 {
				t.Errorf("%d calls on the wire, want one each", n)
			}
			for _, text := range []string{"/root/x", "secret-scope", "Saved!", "hello", "eyJ"} {
				if strings.Contains(s.logs.String(), text) {
					t.Errorf("the log holds %q", text)
				}
			}
		})
	}
}

// CHECKS 72 and 97: no answer within the limit; the session goes on.
func TestSend_TimesOut(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{Replies: map[string][]scripted{"call:find": {{Silent: true}, {Result: statusResult("ok", "m", "{}")}}, "call:save": {{Silent: true}}}})
	r := s.begin(t)
	sendLate := func(c Call) agent.Outcome {
		r.limit(impatient)
		defer r.limit(patient)
		return r.send(c).Outcome
	}
	r.is(sendLate(r.checked(r.propose("s__find", `{"query":"x"}`))), unavailable, agent.ClassTimeout, ReasonTimeout)
	r.is(sendLate(r.approved(saveArguments)), unknown, agent.ClassTimeout, ReasonTimeout)
	r.is(r.read().Outcome, agent.StatusOK, agent.ClassOK, "")
	if n := len(s.got("server/discover")); n != 2 {
		t.Errorf("%d handshakes: a time-out ended the session", n)
	}
	if n := len(s.got("notifications/cancelled")); n != 2 {
		t.Errorf("the server was told of %d cancellations, want 2", n)
	}
	if n := s.calls(); n != 3 {
		t.Errorf("%d calls", n)
	}
}

// Progress does not extend a limit (SPEC B8).
func TestSend_ProgressDoesNotExtendTheLimit(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{Replies: map[string][]scripted{"call:find": {{
		Before: []string{`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`}, Silent: true,
	}}}})
	s.cfg.Contracts[0].Timeout = tools.Duration(impatient)
	r := s.begin(t)
	began := time.Now()
	r.is(r.read().Outcome, unavailable, agent.ClassTimeout, ReasonTimeout)
	if took := time.Since(began); took > quick {
		t.Errorf("took %v", took)
	}
}

// CHECKS 72 with the default limit of 5 s.
func TestSend_WaitsFiveSeconds(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{Replies: map[string][]scripted{"call:save": {{Silent: true}}}})
	r := s.begin(t)
	c := r.approved(saveArguments)
	r.limit(0)
	began := time.Now()
	r.is(r.send(c).Outcome, unknown, agent.ClassTimeout, ReasonTimeout)
	if took := time.Since(began); took < tools.DefaultTimeout || took > quick {
		t.Errorf("took %v, want 5 s", took)
	}
}

// A tool's own limit replaces the server's.
func TestSend_TakesTheToolsLimit(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{Replies: map[string][]scripted{"call:find": {{Silent: true}}}})
	s.cfg.Contracts[0].Timeout = tools.Duration(impatient)
	r := s.begin(t)
	began := time.Now()
	r.is(r.read().Outcome, unavailable, agent.ClassTimeout, ReasonTimeout)
	if took := time.Since(began); took > quick {
		t.Errorf("took %v", took)
	}
}

// The exact bytes go out: canonical arguments, and the grant in its field.
func TestSend_SendsTheApprovedBytes(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	r := s.begin(t)
	c := r.approved(`{"filename":"a.md","content":"<h\u00e9llo> 9007199254740993"}`)
	r.send(c)
	var sent struct {
		Name      string
		Arguments json.RawMessage
	}
	if err := json.Unmarshal(s.got("tools/call")[0].Params, &sent); err != nil {
		t.Fatal(err)
	}
	members, err := strictjson.Members(sent.Arguments)
	if err != nil || len(members) != 3 || members[2].Name != "grant" {
		t.Fatalf("sent %s, %v", sent.Arguments, err)
	}
	rest, err := strictjson.Object(members[:2])
	if err != nil {
		t.Fatal(err)
	}
	if sent.Name != "save" || agent.NewBody(rest).Ref != c.Run.Call.Arguments {
		t.Errorf("sent %s %s", sent.Name, rest)
	}
	if err := c.Run.Call.Candidate.Matches(rest); err != nil {
		t.Error(err)
	}
	var wire string
	if err := json.Unmarshal(members[2].Value, &wire); err != nil || wire != c.Run.Call.Grants[0].Wire {
		t.Errorf("grant %q", wire)
	}
}

// A write whose connection is gone before a byte was written has not been sent, and
// Send does not connect again.
func TestSend_NeverReconnects(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	r := s.begin(t)
	for _, c := range []Call{r.checked(r.propose("s__find", `{"query":"x"}`)), r.approved(saveArguments)} {
		r.bridge.conns["s"].wire.end(errLost)
		out := r.send(c)
		r.is(out.Outcome, unavailable, agent.ClassProtocolError, ReasonLost)
		if out.Sent || out.Request != "" {
			t.Errorf("%+v", out.Outcome)
		}
	}
	if s.calls() != 0 {
		t.Error("something was sent")
	}
	if n := len(s.got("server/discover")); n != 2 { // Discover and the bridge
		t.Errorf("%d handshakes", n)
	}
}

// A request of which no byte could be written has certainly not been sent.
func TestSend_NothingCouldBeWritten(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{Immortal: true})
	r := s.begin(t)
	c := r.approved(saveArguments)
	if err := r.bridge.conns["s"].proc.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	out := r.send(c)
	r.is(out.Outcome, unavailable, agent.ClassProtocolError, ReasonLost)
	if out.Sent || out.Request != "" || s.calls() != 0 {
		t.Errorf("%+v", out.Outcome)
	}
}

// The child dies between Prepare and Send, unnoticed or not: the write is unknown, or
// certainly not sent.
func TestSend_TheChildDiesBefore(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	r := s.begin(t)
	c := r.approved(saveArguments)
	if err := r.bridge.conns["s"].proc.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	out := r.send(c)
	if want := map[bool]agent.Status{true: unknown, false: unavailable}[out.Sent]; out.Status != want {
		t.Errorf("sent %v: %s, want %s", out.Sent, out.Status, want)
	}
	if s.calls() != 0 {
		t.Error("the dead child received a call")
	}
}

// CASES A2: a new process repeats the Send of a read, after asking whether the tool is
// the same; a write's it does not send.
func TestSend_AfterACrash(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{Views: []map[string]json.RawMessage{onePage(findTool, saveTool, settleTool)}})
	r := s.begin(t)
	read := r.checked(r.propose("s__find", `{"query":"x"}`))
	write := r.approved(saveArguments)
	r.open()
	r.is(r.send(write).Outcome, unavailable, agent.ClassProtocolError, ReasonLost)
	r.is(r.send(read).Outcome, agent.StatusOK, agent.ClassOK, "")
	r.is(r.send(read).Outcome, agent.StatusOK, agent.ClassOK, "")
	if n := s.calls(); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// Only the bytes that the journal names are sent.
func TestSend_RefusesOtherArguments(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	r := s.begin(t)
	c := r.checked(r.propose("s__find", `{"query":"x"}`))
	c.Run.Call.Arguments = agent.NewBody([]byte(`{"max":3,"query":"y"}`)).Ref
	out := r.send(c)
	if out.Status != agent.StatusRejected || out.Sent || s.calls() != 0 {
		t.Errorf("%+v, %d calls", out.Outcome, s.calls())
	}
}

// Close gives up a call in flight instead of waiting for it.
func TestBridge_CloseEndsACallInFlight(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{Replies: map[string][]scripted{"call:save": {{Silent: true}}}})
	r := s.begin(t)
	c := r.approved(saveArguments)
	got := make(chan agent.Returned, 1)
	go func() {
		out, _, _ := r.bridge.Send(t.Context(), c)
		got <- out
	}()
	s.waitForCall()
	began := time.Now()
	if err := r.bridge.Close(); err != nil {
		t.Fatal(err)
	}
	r.is((<-got).Outcome, unknown, agent.ClassProtocolError, ReasonLost)
	if took := time.Since(began); took > quick {
		t.Errorf("took %v", took)
	}
}

// plain are contracts for tools that do not answer in the shape of SPEC D7 (B13).
func plain(output, settle bool) func(*Config) {
	return func(c *Config) {
		for i := range c.Contracts[:2] {
			c.Contracts[i].Result = ""
			if !output {
				c.Contracts[i].Output = tools.OutputNone
			}
		}
		if !settle {
			c.Contracts[1].Settle = nil
		}
	}
}

// SPEC B13, CASES D3, D4: the Host derives the status.
func TestSend_DerivesTheStatus(t *testing.T) {
	t.Parallel()
	text := scripted{Result: raw(`{"content":[{"type":"text","text":"a"}]}`)}
	structured := scripted{Result: raw(`{"content":[],"structuredContent":{"status":"failed","message":"looks like D7"}}`)}
	for name, tc := range map[string]struct {
		contract    func(*Config)
		reply       scripted
		read, write agent.Status
		reason      string // of the write
	}{
		"structured, with settle":    {plain(true, true), structured, agent.StatusOK, agent.StatusOK, ""},
		"structured, without settle": {plain(true, false), structured, agent.StatusOK, unknown, ReasonUnconfirmed},
		"no output, text":            {plain(false, true), text, agent.StatusOK, agent.StatusOK, ""},
		"no output, nothing at all":  {plain(false, true), scripted{Result: raw(`{}`)}, unavailable, unknown, ReasonInvalidResult},
		"declared, but only text":    {plain(true, true), text, unavailable, unknown, ReasonInvalidResult},
		"isError":                    {plain(false, true), scripted{Result: raw(`{"isError":true,"content":[]}`)}, agent.StatusFailed, unknown, ReasonIsError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, script{Replies: map[string][]scripted{"call:find": {tc.reply}, "call:save": {tc.reply}}})
			r := s.begin(t, tc.contract)
			if got := r.read(); got.Status != tc.read {
				t.Errorf("read %+v, want %s", got.Outcome, tc.read)
			}
			if got := r.send(r.approved(saveArguments)); got.Status != tc.write || got.Reason != tc.reason {
				t.Errorf("write %+v, want %s %s", got.Outcome, tc.write, tc.reason)
			}
		})
	}
}

// CHECKS 98: from the log alone the chain of one call can be rebuilt, and nothing else
// is in it.
func TestLog_HoldsTheChainOfACall(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{Replies: map[string][]scripted{"call:save": {{Error: raw(`{"code":1,"message":"private words"}`)}}}})
	r := s.begin(t)
	r.read()
	c := r.approved(`{"filename":"a.md","content":"top \u202e secret"}`)
	out := r.send(c)
	var events, ids []string
	for _, l := range r.logged() {
		if l["correlation_id"] != c.id() {
			continue
		}
		events = append(events, l["event"].(string))
		if id, ok := l["mcp_request_id"].(string); ok {
			ids = append(ids, id)
		}
		if l["run"] != "run-1" || l["tool"] != "s__save" || l["server"] != "s" {
			t.Errorf("line %v", l)
		}
	}
	if got := strings.Join(events, " "); got != "decision decision request response" {
		t.Errorf("events: %s", got)
	}
	if len(ids) != 2 || ids[0] != out.Request || ids[1] != out.Request {
		t.Errorf("request ids %v, outcome has %s", ids, out.Request)
	}
	last := r.logged()[len(r.logged())-1]
	if last["status"] != "result_unknown" || last["class"] != "protocol_error" || last["sent"] != true {
		t.Errorf("last line %v", last)
	}
	for _, secret := range []string{"top", "secret", "private words", c.Run.Call.Grants[0].Wire, "secret-scope", "\u202e"} {
		if strings.Contains(s.logs.String(), secret) {
			t.Errorf("the log holds %q", secret)
		}
	}
}
