package nodes_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/agent/audit"
	"sallyport/nodes"
	"sallyport/nodes/llm"
	"sallyport/tools/strictjson"
)

// withOwn pins the Host's own tool.
func withOwn(s *agent.Spec) {
	own := nodes.OwnTool()
	s.Tools, s.Servers = append(s.Tools, own.Tool), append(s.Servers, own.Server)
}

// document is the data of a document, as the desk's tools return it.
func document(content string) (data string, ref agent.BodyRef) {
	text, err := strictjson.Encode(map[string]string{"content": content, "filename": "notes.md"})
	if err != nil {
		panic(err) // the tests say what JSON can
	}
	return string(text), agent.NewBody(text).Ref
}

// opens lets the model read a document and then open its data with these arguments.
func opens(t *testing.T, content, arguments string, change ...func(*desk)) *desk {
	t.Helper()
	d := open(t, script(call(toolRead, `{"filename":"notes.md"}`), call(nodes.OpenBody, arguments), say("done")), withOwn)
	data, _ := document(content)
	d.bridge.results[toolRead] = ok("Read.", data)
	for _, f := range change {
		f(d)
	}
	d.serve()
	d.in(agent.StateCompleted)
	return d
}

// piece is the data of a piece.
type piece struct {
	Offset int    `json:"offset"`
	Next   int    `json:"next"`
	Text   string `json:"text"`
}

func pieceOf(t *testing.T, o nodes.Observation) (p piece) {
	t.Helper()
	if o.Untrusted == nil {
		t.Fatalf("told %+v", o)
	}
	if err := json.Unmarshal(o.Untrusted.Data, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestOpenBody_OpensWhatAnObservationShowed(t *testing.T) {
	data, ref := document("line one\nline two")
	d := opens(t, "line one\nline two", fmt.Sprintf(`{"ref":%q}`, ref))
	o := d.lastTold()
	if p := pieceOf(t, o); p.Text != data || p.Offset != 0 || strings.Contains(string(o.Untrusted.Data), "next") {
		t.Errorf("opened %+v", p)
	}
	// The data is still another tool's.
	u := o.Untrusted
	if u.Source != (nodes.Source{Server: "docs", Tool: "read_document", File: "notes.md"}) || u.Ref != ref.String() || u.Bytes != ref.Bytes {
		t.Errorf("source %+v, ref %s of %d bytes", u.Source, u.Ref, u.Bytes)
	}
	if o.Status != agent.StatusOK || o.Message != "This is part of what a tool returned earlier." {
		t.Errorf("told %+v", o)
	}
	if seen := d.observed(); seen.Evidence != ref {
		t.Errorf("evidence %s", seen.Evidence)
	}
	if run := d.run(); run.Used.Calls != 2 || len(d.bridge.prepared) != 1 || len(d.bridge.sent) != 1 {
		t.Errorf("%d calls counted, %d reached the bridge", run.Used.Calls, len(d.bridge.sent))
	}
	report, err := audit.Check(d.engine.Journal(t.Context(), d.id, 1, false), func(r agent.BodyRef) ([]byte, error) {
		return d.engine.Body(t.Context(), d.id, r)
	})
	if err != nil || len(report.Findings) > 0 {
		t.Errorf("audit: %v, %v", report.Findings, err)
	}
}

func TestOpenBody_IsOfferedWhereItIsPinned(t *testing.T) {
	last := func(d *desk) string { return d.seen[0].Tools[len(d.seen[0].Tools)-1].Name }
	d := open(t, script(say("done")), withOwn)
	d.serve()
	if last(d) != nodes.OpenBody {
		t.Errorf("the last tool is %s", last(d))
	}
	no := false
	arguments := `{"ref":"sha256:00#0-1"}`
	unknown := llm.Turn{Call: &llm.Call{Tool: nodes.OpenBody, Arguments: &arguments, Offered: &no}}
	d = open(t, script(unknown, say("done")))
	d.serve()
	if last(d) == nodes.OpenBody {
		t.Error("it is offered to a run that did not pin it")
	}
	if o := d.lastTold(); o.Status != agent.StatusRejected || !strings.HasPrefix(o.Message, "There is no tool of this name.") {
		t.Errorf("told %+v", o)
	}
	// A run that another version began has pinned another definition.
	d = open(t, script(unknown, say("done")), func(s *agent.Spec) {
		withOwn(s)
		s.Tools[len(s.Tools)-1].Definition = strings.Repeat("0", 64)
	})
	d.serve()
	if o := d.lastTold(); last(d) == nodes.OpenBody || o.Message != "The tool is no longer the one that was offered. The call was not made." {
		t.Errorf("told %+v", o)
	}
}

// It opens no other content that the run keeps, nor what other runs keep.
func TestOpenBody_OpensNothingElse(t *testing.T) {
	other := open(t, script(call(toolRead, `{"filename":"notes.md"}`), say("done")))
	data, ofOther := document("of another run")
	other.bridge.results[toolRead] = ok("Read.", data)
	other.serve()
	if _, err := other.engine.Body(t.Context(), other.id, ofOther); err != nil {
		t.Fatal(err)
	}
	raw := ok("Read.", mustData("text"))
	task := agent.NewBody([]byte("Write a report about the evidence."))
	_, shown := document("text")
	for name, ref := range map[string]string{
		"another run's":        ofOther.String(),
		"the task":             task.Ref.String(),
		"the raw result":       agent.NewBody([]byte(raw)).Ref.String(),
		"arguments":            agent.NewBody([]byte(`{"filename":"notes.md"}`)).Ref.String(),
		"its definition":       nodes.OwnTool().Definition.Ref.String(),
		"a digest alone":       shown.SHA256,
		"another range":        strings.Replace(shown.String(), "#0-", "#1-", 1),
		"in capitals":          strings.ToUpper(shown.String()),
		"with a space":         shown.String() + " ",
		"a path":               "../desk",
		"the longest there is": strings.Repeat("a", 100),
	} {
		t.Run(name, func(t *testing.T) {
			d := opens(t, "text", fmt.Sprintf(`{"ref":%q}`, ref))
			o, seen := d.lastTold(), d.observed()
			if o.Status != agent.StatusRejected || o.Untrusted != nil || o.Message != "No observation of this run has this ref." || seen.Reason != "unknown_ref" {
				t.Errorf("told %+v, %s", o, seen.Reason)
			}
		})
	}
}

func mustData(content string) string { data, _ := document(content); return data }

// A message of the model, a grant and a candidate are named by the journal, and are not
// evidence.
func TestOpenBody_OpensNoMessageAndNoSignedDecision(t *testing.T) {
	d := open(t, script(call(toolSave, `{"content":"one","filename":"r.md"}`), say("done")), withOwn)
	d.serve()
	d.approve()
	d.serve()
	var named []agent.BodyRef
	for e, err := range d.engine.Journal(t.Context(), d.id, 1, false) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != agent.EntryEvent {
			continue
		}
		p, err := e.Payload()
		if err != nil {
			t.Fatal(err)
		}
		switch p := p.(type) {
		case agent.Turned:
			named = append(named, p.Message)
			for _, c := range p.Calls {
				named = append(named, c.Body)
			}
		case agent.Approve:
			named = append(named, agent.NewBody([]byte(p.Grant)).Ref)
		case agent.Observed:
			named = append(named, p.Message, p.ReadBack)
		}
	}
	if len(named) < 6 {
		t.Fatalf("%d references", len(named))
	}
	for _, ref := range named {
		if ref.IsZero() {
			continue
		}
		again := open(t, script(call(toolSave, `{"content":"one","filename":"r.md"}`), call(nodes.OpenBody, fmt.Sprintf(`{"ref":%q}`, ref)), say("done")), withOwn)
		again.serve()
		again.approve()
		again.serve()
		if o := again.lastTold(); o.Status != agent.StatusRejected {
			t.Errorf("%s: told %+v", ref, o)
		}
	}
}

func TestOpenBody_RefusesArgumentsBeforeTheyCount(t *testing.T) {
	_, ref := document("text")
	for arguments, reason := range map[string]string{
		`{}`:                                    "arguments_invalid",
		fmt.Sprintf(`{"ref":%q,"more":1}`, ref): "arguments_invalid",
		fmt.Sprintf(`{"ref":%q,"offset":-1}`, ref):        "arguments_invalid",
		fmt.Sprintf(`{"ref":%q,"offset":"0"}`, ref):       "arguments_invalid",
		fmt.Sprintf(`{"ref":%q,"offset":1.0}`, ref):       "arguments_invalid",
		fmt.Sprintf(`{"ref":%q,"length":0}`, ref):         "arguments_invalid",
		fmt.Sprintf(`{"ref":%q,"length":16001}`, ref):     "arguments_invalid",
		fmt.Sprintf(`{"ref":%q,"ref":%q}`, ref, ref):      "arguments_not_object",
		fmt.Sprintf(`{"ref":%q}{}`, ref):                  "arguments_not_object",
		`[1]`:                                             "arguments_not_object",
		`{"ref":"` + strings.Repeat("a", 32_000) + `"}`:   "arguments_too_large",
		`{"ref":"` + strings.Repeat("a", 101) + `"}`:      "arguments_invalid",
		fmt.Sprintf(`{"ref":%q,"approved":true}`, ref):    "arguments_invalid",
		fmt.Sprintf(`{"ref":%q,"offset":9007199e3}`, ref): "arguments_invalid",
	} {
		d := opens(t, "text", arguments)
		if o, seen := d.lastTold(), d.observed(); o.Status != agent.StatusRejected || seen.Reason != reason || d.run().Used.Calls != 1 {
			t.Errorf("%.60s: told %+v, %s, %d calls", arguments, o, seen.Reason, d.run().Used.Calls)
		}
	}
}

func TestOpenBody_RangesAreWithinTheData(t *testing.T) {
	data, ref := document("abc")
	last := len(data) - 1
	for _, row := range []struct {
		offset, length int
		text           string
		next           int
		reason         string
	}{
		{0, 1, data[:1], 1, ""},
		{1, len(data), data[1:], 0, ""},
		{last - 1, 1, data[last-1 : last], last, ""},
		{last, 1, data[last:], 0, ""},
		{last, nodes.MaxOpen, data[last:], 0, ""},
		{len(data), 1, "", 0, "past_end"},
		{len(data) + 1, 1, "", 0, "past_end"},
		{1 << 40, 1, "", 0, "past_end"},
	} {
		d := opens(t, "abc", fmt.Sprintf(`{"ref":%q,"offset":%d,"length":%d}`, ref, row.offset, row.length))
		o := d.lastTold()
		if row.reason != "" {
			if o.Status != agent.StatusRejected || o.Message != "The data ends before this offset." || d.observed().Reason != row.reason {
				t.Errorf("%+v: told %+v", row, o)
			}
			continue
		}
		if p := pieceOf(t, o); p.Text != row.text || p.Next != row.next || p.Offset != row.offset {
			t.Errorf("%+v: opened %+v", row, p)
		}
	}
}

// Piece by piece the whole is read, whatever its characters: none is cut in two, none
// lost, and no piece is larger than a result may be.
func TestOpenBody_PiecesMakeTheWhole(t *testing.T) {
	for name, row := range map[string]struct {
		content string
		length  int
	}{
		"plain":                {strings.Repeat("a", 24_000), nodes.MaxOpen},
		"three bytes":          {strings.Repeat("证", 8_000), nodes.MaxOpen},
		"three bytes, byte by": {"证据 and 😀.", 1},
		"four bytes":           {strings.Repeat("😀", 100), 5},
		"all of it escaped":    {strings.Repeat(`\`, 11_000), nodes.MaxOpen},
		"control characters":   {strings.Repeat("\x01", 4_000), nodes.MaxOpen},
	} {
		t.Run(name, func(t *testing.T) {
			data, ref := document(row.content)
			var got strings.Builder
			d := open(t, opener{ref.String(), row.length}, withOwn, func(s *agent.Spec) { s.Budget.Calls, s.Budget.Turns = 1<<20, 1<<20 })
			d.bridge.results[toolRead] = ok("", data)
			d.serve()
			d.in(agent.StateCompleted)
			for _, m := range d.told()[1:] {
				o, err := nodes.ParseObservation(m.Content)
				if err != nil {
					t.Fatal(err)
				}
				if len(o.Untrusted.Data) > nodes.MaxData {
					t.Fatalf("a piece of %d bytes", len(o.Untrusted.Data))
				}
				p := pieceOf(t, o)
				if len(p.Text) > max(row.length, 4) || p.Offset != got.Len() {
					t.Fatalf("a piece of %d bytes at %d, want at most %d at %d", len(p.Text), p.Offset, row.length, got.Len())
				}
				got.WriteString(p.Text)
			}
			if got.String() != data {
				t.Errorf("%d of %d bytes were opened", got.Len(), len(data))
			}
		})
	}
}

// An offset within a character begins with it.
func TestOpenBody_BeginsAtACharacter(t *testing.T) {
	data, ref := document("证据")
	at := strings.Index(data, "据")
	for offset := at; offset < at+3; offset++ {
		d := opens(t, "证据", fmt.Sprintf(`{"ref":%q,"offset":%d,"length":3}`, ref, offset))
		if p := pieceOf(t, d.lastTold()); p.Offset != at || p.Text != "据" && offset == at || !strings.HasPrefix(p.Text, "据") {
			t.Errorf("at %d: %+v", offset, p)
		}
	}
}

// opener reads a document and opens it piece by piece.
type opener struct {
	ref    string
	length int
}

func (p opener) Turn(_ context.Context, r nodes.Request) (nodes.Reply, error) {
	propose := func(tool, args string) (nodes.Reply, error) {
		return nodes.Reply{Calls: []nodes.ToolCall{{Name: tool, Arguments: args}}, Finish: nodes.FinishToolCalls}, nil
	}
	last := r.Messages[len(r.Messages)-1]
	if last.Role != nodes.RoleTool {
		return propose(toolRead, `{"filename":"notes.md"}`)
	}
	o, err := nodes.ParseObservation(last.Content)
	if err != nil {
		return nodes.Reply{}, err
	}
	var at piece
	if o.Message == "This is part of what a tool returned earlier." {
		if err := json.Unmarshal(o.Untrusted.Data, &at); err != nil {
			return nodes.Reply{}, err
		}
		if at.Next == 0 {
			return nodes.Reply{Text: "done", Finish: nodes.FinishStop}, nil
		}
	}
	return propose(nodes.OpenBody, fmt.Sprintf(`{"ref":%q,"offset":%d,"length":%d}`, p.ref, at.Next, p.length))
}

func TestOpenBody_CountsAsACall(t *testing.T) {
	_, ref := document("text")
	args := fmt.Sprintf(`{"ref":%q}`, ref)
	d := open(t, script(call(toolRead, `{"filename":"notes.md"}`), call(nodes.OpenBody, args), call(nodes.OpenBody, args), say("done")),
		withOwn, func(s *agent.Spec) { s.Budget.Calls = 2 })
	d.bridge.results[toolRead] = ok("", mustData("text"))
	d.serve()
	if run := d.in(agent.StateFailed); run.Reason != "budget:tool_calls" || run.Used.Calls != 2 {
		t.Errorf("ended by %s after %d calls", run.Reason, run.Used.Calls)
	}
	if o := d.lastTold(); o.Status != agent.StatusRejected || o.Message != "No tool calls are left. The call was not made." {
		t.Errorf("told %+v", o)
	}
}

// gone is a reader whose bodies of one reference cannot be had.
type gone struct {
	reader
	ref agent.BodyRef
	err error
}

func (g gone) Body(ctx context.Context, ref agent.BodyRef) ([]byte, error) {
	if ref == g.ref {
		return nil, g.err
	}
	return g.reader.Body(ctx, ref)
}

// What the operator erased is gone for the model too; what is missing without that is a
// fault of the store.
func TestOpenBody_ErasedDataIsNotOpened(t *testing.T) {
	_, ref := document("text")
	var sent agent.Task
	d := opens(t, "text", fmt.Sprintf(`{"ref":%q}`, ref))
	run := agent.Run{}
	for e, err := range d.engine.Journal(t.Context(), d.id, 1, false) {
		if err != nil {
			t.Fatal(err)
		}
		if run, err = agent.Apply(run, e); err != nil {
			t.Fatal(err)
		}
		if run.Open != nil && run.Open.Kind == agent.Send && run.Call.Proposal.Tool == nodes.OpenBody {
			sent = agent.Task{Run: run, Effect: *run.Open}
		}
	}
	n := nodes.New(nodes.Config{Model: script(), Bridge: d.bridge})
	sent.Reader = gone{reader{d}, ref, agent.ErrNoBody}
	report, err := n.Perform(t.Context(), sent)
	if got, is := report.Result.(agent.Returned); err != nil || !is || got.Status != agent.StatusRejected || got.Reason != "erased" || !got.Sent {
		t.Errorf("got %+v, %v", report.Result, err)
	}
	sent.Reader = gone{reader{d}, ref, errors.Join(agent.ErrNoBody, agent.ErrIntegrity)}
	if report, err = n.Perform(t.Context(), sent); !errors.Is(err, agent.ErrIntegrity) || report.Result != nil {
		t.Errorf("got %+v, %v", report.Result, err)
	}
	// It reads and changes nothing: performed again, it gives the same.
	sent.Reader = reader{d}
	one, err1 := n.Perform(t.Context(), sent)
	two, err2 := n.Perform(t.Context(), sent)
	if err := errors.Join(err1, err2); err != nil || fmt.Sprint(one) != fmt.Sprint(two) {
		t.Errorf("%+v, then %+v, %v", one, two, err)
	}
}

// What was opened can leave the context again; its reference is still the whole's.
func TestOpenBody_APieceLeavesTheContextLikeOtherData(t *testing.T) {
	_, ref := document(strings.Repeat("a", 9_000))
	args := fmt.Sprintf(`{"ref":%q,"offset":10,"length":5000}`, ref)
	d := open(t, script(call(toolRead, `{"filename":"notes.md"}`), call(nodes.OpenBody, args), call(nodes.OpenBody, args), say("done")), withOwn)
	d.bridge.results[toolRead] = ok("", mustData(strings.Repeat("a", 9_000)))
	d.config.Window = nodes.Window{Bytes: 14_000}
	d.serve()
	d.in(agent.StateCompleted)
	told := d.told()
	first, err := nodes.ParseObservation(told[1].Content)
	if err != nil || len(told) != 3 {
		t.Fatal(len(told), err)
	}
	if whole := whole(told); whole[0] || !whole[2] {
		t.Errorf("whole are %v", whole)
	}
	if first.Untrusted.Ref != ref.String() {
		t.Errorf("its reference is %s", first.Untrusted.Ref)
	}
}

// From the log alone the chain of the call can be rebuilt (SPEC C3).
func TestOpenBody_IsLoggedLikeOtherCalls(t *testing.T) {
	_, ref := document("secret text")
	d := opens(t, "secret text", fmt.Sprintf(`{"ref":%q}`, ref))
	var events []string
	for _, line := range strings.Split(strings.TrimSpace(d.log.String()), "\n") {
		var l struct {
			Event, Tool string
			Request     string `json:"mcp_request_id"`
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Tool == nodes.OpenBody {
			events = append(events, l.Event)
			if (l.Event == "request" || l.Event == "response" || l.Event == "outcome") != strings.HasPrefix(l.Request, "host-") {
				t.Errorf("%s", line)
			}
		}
	}
	if got := strings.Join(events, " "); got != "proposal decision request response outcome" {
		t.Errorf("logged: %s", got)
	}
	if strings.Contains(d.log.String(), "secret") {
		t.Error("the log holds the data")
	}
}
