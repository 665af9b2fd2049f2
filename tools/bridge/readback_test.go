package bridge

import (
	"encoding/json"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/tools"
	"sallyport/tools/strictjson"
)

// CHECKS 70, 73, CASES D9, A1, at the bridge: what a read-back decides.
func TestReadBack_Decides(t *testing.T) {
	t.Parallel()
	hello := strictjson.Digest([]byte("hello"))
	with := func(data string) scripted { return scripted{Result: statusResult("ok", "m", data)} }
	for name, tc := range map[string]struct {
		reply   scripted
		finding agent.Finding
		reason  string
	}{
		"the same content":            {with(`{"exists":true,"bytes":5,"sha256":"` + hello + `","spent":true}`), agent.Applied, ReasonReadBack},
		"the same, and not spent":     {with(`{"exists":true,"sha256":"` + hello + `","spent":false}`), agent.Applied, ReasonReadBack},
		"absent and not spent":        {with(`{"exists":false,"spent":false}`), agent.NotApplied, ReasonReadBack},
		"absent and spent":            {with(`{"exists":false,"spent":true}`), agent.Undecided, ReasonOtherContent},
		"absent, nothing of spent":    {with(`{"exists":false}`), agent.Undecided, ReasonOtherContent},
		"other content":               {with(`{"exists":true,"sha256":"` + strings.Repeat("0", 64) + `","spent":false}`), agent.Undecided, ReasonOtherContent},
		"an upper-case digest":        {with(`{"exists":true,"sha256":"` + strings.ToUpper(hello) + `"}`), agent.Undecided, ReasonOtherContent},
		"no data":                     {scripted{Result: raw(`{"structuredContent":{"status":"ok","message":"m"}}`)}, agent.Undecided, ReasonOtherContent},
		"rejected":                    {scripted{Result: statusResult("rejected", "m", "{}")}, agent.Undecided, ReasonReadBackFailed},
		"failed, though it would fit": {scripted{Result: statusResult("failed", "m", `{"exists":false,"spent":false}`)}, agent.Undecided, ReasonReadBackFailed},
		"isError":                     {scripted{Result: raw(`{"isError":true,"content":[]}`)}, agent.Undecided, ReasonReadBackFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The write itself claims success, whatever happened.
			s := newStand(t, script{Replies: map[string][]scripted{"call:settle": {tc.reply}}})
			r := s.begin(t)
			c := r.approved(saveArguments)
			r.is(r.send(c).Outcome, agent.StatusOK, agent.ClassOK, "")
			got, bodies, err := r.bridge.ReadBack(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			if got.Finding != tc.finding || got.Reason != tc.reason {
				t.Errorf("%s %s, want %s %s", got.Finding, got.Reason, tc.finding, tc.reason)
			}
			if len(bodies) != 1 || bodies[0].Ref != got.Evidence {
				t.Errorf("evidence %v", got.Evidence)
			}
			var asked struct{ Arguments map[string]string }
			calls := s.got("tools/call")
			if err := json.Unmarshal(calls[1].Params, &asked); err != nil {
				t.Fatal(err)
			}
			if calls[1].Tool != "settle" || asked.Arguments["filename"] != "a.md" || asked.Arguments["grant"] != c.Run.Call.Grants[0].Wire {
				t.Errorf("asked %s %v", calls[1].Tool, asked.Arguments)
			}
			r.counts(4, 2)
		})
	}
}

// A read-back that could not be made is an error, and can be made later: by a new
// process too, and after the write's connection is lost.
func TestReadBack_CanBeRepeated(t *testing.T) {
	t.Parallel()
	hello := strictjson.Digest([]byte("hello"))
	good := scripted{Result: statusResult("ok", "m", `{"exists":true,"sha256":"`+hello+`"}`)}
	for name, first := range map[string]scripted{
		"silence":           {Silent: true},
		"a crash":           {Exit: true},
		"an error reply":    {Error: raw(`{"code":1,"message":"m"}`)},
		"an invalid result": {Result: raw(`{"structuredContent":{"status":"ok"}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, script{Replies: map[string][]scripted{"call:save": {{Exit: true}}, "call:settle": {good, first, good}}})
			r := s.begin(t)
			c := r.approved(saveArguments)
			r.is(r.send(c).Outcome, agent.StatusResultUnknown, agent.ClassProtocolError, ReasonLost)
			found := func() agent.Finding {
				t.Helper()
				got, _, err := r.bridge.ReadBack(t.Context(), c)
				if err != nil {
					return ""
				}
				return got.Finding
			}
			if got := found(); got != agent.Applied {
				t.Fatalf("on a new connection: %q", got)
			}
			if first.Silent { // also the list must come within it
				r.limit(2 * impatient)
			}
			if got := found(); got != "" {
				t.Errorf("the check could not be made, and found %q", got)
			}
			r.limit(patient)
			if got := found(); got != agent.Applied {
				t.Errorf("once more: %q", got)
			}
			r.open()
			if got := found(); got != agent.Applied {
				t.Errorf("by another process: %q", got)
			}
			saves := 0
			for _, g := range s.got("tools/call") {
				saves += map[string]int{"save": 1}[g.Tool]
			}
			if saves != 1 {
				t.Errorf("the write was sent %d times", saves)
			}
		})
	}
}

// The evidence is worth nothing if the read-back itself is another tool now.
func TestReadBack_ComparesTheDefinition(t *testing.T) {
	t.Parallel()
	same := onePage(findTool, saveTool, settleTool)
	s := newStand(t, script{Views: []map[string]json.RawMessage{same, same, onePage(findTool, saveTool, strings.Replace(settleTool, "Settles a save.", "S.", 1))}})
	r := s.begin(t)
	c := r.approved(saveArguments)
	r.send(c)
	got, _, err := r.bridge.ReadBack(t.Context(), c)
	if err != nil || got.Finding != agent.Undecided || got.Reason != ReasonDefinitionChanged {
		t.Errorf("%+v, %v", got, err)
	}
	r.counts(4, 1)
}

// Without `voids` absence proves nothing; plain equality compares text of servers that
// know no digest.
func TestReadBack_OfAThirdParty(t *testing.T) {
	t.Parallel()
	peek := `{"name":"settle","description":"Shows a text.","inputSchema":{"type":"object","properties":{"filename":{"type":"string"}},"required":["filename"]}}`
	contract := func(c *Config) {
		c.Contracts[1].Settle = &tools.Settle{
			Tool: "s__settle", Args: map[string]string{"filename": "filename"},
			AppliedWhen: map[string]tools.Match{"content": {Equals: "content"}},
		}
		c.Contracts[2] = tools.Contract{Name: "s__settle", Owner: "o", Risk: agent.RiskRead, HostOnly: true, Output: tools.OutputNone}
	}
	for name, tc := range map[string]struct {
		reply scripted
		want  agent.Finding
	}{
		"the same text":        {scripted{Result: raw(`{"content":[{"type":"text","text":"hel"},{"type":"text","text":"lo"}]}`)}, agent.Applied},
		"the same, structured": {scripted{Result: raw(`{"content":[],"structuredContent":{"content":"h\u0065llo"}}`)}, agent.Applied},
		"another text":         {scripted{Result: raw(`{"content":[{"type":"text","text":"hello\n"}]}`)}, agent.Undecided},
		"absent":               {scripted{Result: raw(`{"content":[],"structuredContent":{"exists":false,"spent":false}}`)}, agent.Undecided},
		"an error":             {scripted{Result: raw(`{"isError":true,"content":[]}`)}, agent.Undecided},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, script{
				Views: []map[string]json.RawMessage{onePage(findTool, saveTool, peek)}, Replies: map[string][]scripted{"call:settle": {tc.reply}},
			})
			r := s.begin(t, contract)
			c := r.approved(saveArguments)
			r.send(c)
			got, _, err := r.bridge.ReadBack(t.Context(), c)
			if err != nil || got.Finding != tc.want {
				t.Errorf("%+v, %v; want %s", got, err, tc.want)
			}
		})
	}
}

func TestReadBack_NeedsAContract(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	r := s.begin(t, func(c *Config) { c.Contracts[1].Settle = nil })
	c := r.approved(saveArguments)
	r.send(c)
	got, _, err := r.bridge.ReadBack(t.Context(), c)
	if err != nil || got.Finding != agent.Undecided || got.Reason != ReasonNoReadBack {
		t.Errorf("%+v, %v", got, err)
	}
}
