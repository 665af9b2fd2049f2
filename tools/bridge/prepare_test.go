package bridge

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/tools"
	"sallyport/tools/grant"
	"sallyport/tools/strictjson"
)

// CHECKS 47, 49, 79: what the model sends is held to the tool's fields before any
// server is asked.
func TestPrepare_RefusesArguments(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	r := s.begin(t)
	r.prepare(r.propose("s__find", `{"query":"x"}`)) // the bridge knows the tools now
	lists := s.lists()
	fill := func(n int) string { // an object of n bytes
		return `{"query":"x"` + strings.Repeat(" ", n-13) + `}`
	}
	for name, tc := range map[string]struct {
		tool, arguments, reason string
	}{
		"max as true":             {"s__find", `{"query":"x","max":true}`, ReasonArgumentsInvalid},
		"max as text":             {"s__find", `{"query":"x","max":"2"}`, ReasonArgumentsInvalid},
		"max as 2.0":              {"s__find", `{"query":"x","max":2.0}`, ReasonArgumentsInvalid},
		"max as null":             {"s__find", `{"query":"x","max":null}`, ReasonArgumentsInvalid},
		"max 0":                   {"s__find", `{"query":"x","max":0}`, ReasonArgumentsInvalid},
		"max 4":                   {"s__find", `{"query":"x","max":4}`, ReasonArgumentsInvalid},
		"no query":                {"s__find", `{}`, ReasonArgumentsInvalid},
		"81 characters":           {"s__find", `{"query":"` + strings.Repeat("証", 81) + `"}`, ReasonArgumentsInvalid},
		"an extra field":          {"s__find", `{"query":"x","approved":true}`, ReasonArgumentsInvalid},
		"the grant field":         {"s__save", `{"filename":"a.md","content":"c","grant":"g"}`, ReasonArgumentsInvalid},
		"approved":                {"s__save", `{"filename":"a.md","content":"c","approved":true}`, ReasonArgumentsInvalid},
		"nothing":                 {"s__find", ``, ReasonArgumentsNotObject},
		"null":                    {"s__find", `null`, ReasonArgumentsNotObject},
		"a number":                {"s__find", `5`, ReasonArgumentsNotObject},
		"a list":                  {"s__find", `[1]`, ReasonArgumentsNotObject},
		"NaN":                     {"s__find", `NaN`, ReasonArgumentsNotObject},
		"two objects":             {"s__find", `{"query":"x"}{"query":"y"}`, ReasonArgumentsNotObject},
		"a key twice":             {"s__find", `{"query":"x","qu\u0065ry":"y"}`, ReasonArgumentsNotObject},
		"cut off":                 {"s__find", `{"query":"x"`, ReasonArgumentsNotObject},
		"bad JSON, unknown tool":  {"s__none", `{`, ReasonArgumentsNotObject},
		"32,001 bytes":            {"s__find", fill(32_001), ReasonArgumentsTooLarge},
		"32,001 bytes, no object": {"s__none", strings.Repeat("[", 32_001), ReasonArgumentsTooLarge},
		"an unknown tool":         {"s__none", `{}`, ReasonUnknownTool},
		"a name without prefix":   {"find", `{"query":"x"}`, ReasonUnknownTool},
		"another prefix":          {"t__find", `{"query":"x"}`, ReasonUnknownTool},
		"a host-only tool":        {"s__settle", `{"filename":"a.md","grant":"g"}`, ReasonUnknownTool},
		"no name":                 {"", `{}`, ReasonUnknownTool},
	} {
		t.Run(name, func(t *testing.T) {
			r := *r
			r.t = t
			r.is(r.refused(r.propose(tc.tool, tc.arguments)).Outcome, agent.StatusRejected, agent.ClassToolError, tc.reason)
		})
	}
	if s.lists() != lists || s.calls() != 0 {
		t.Errorf("the server was asked")
	}
	if _, ok := r.prepare(r.propose("s__find", fill(32_000))).(agent.Checked); !ok {
		t.Errorf("32,000 bytes are refused")
	}
}

// Defaults are filled in, and the canonical bytes are what goes on (SPEC B6).
func TestPrepare_FillsDefaults(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	r := s.begin(t)
	got := r.prepare(r.propose("s__find", ` { "query" : "\u0078" } `)).(agent.Checked)
	if want := agent.NewBody([]byte(`{"max":3,"query":"x"}`)).Ref; got.Arguments != want {
		t.Errorf("arguments %v, want %v", got.Arguments, want)
	}
	if got.Server != "s" || got.Protocol != "2026-07-28" {
		t.Errorf("checked: %+v", got)
	}
}

// CHECKS 51 and the order of B10: each call is wrong in one row and in every later one.
func TestPrepare_OrderOfRefusals(t *testing.T) {
	t.Parallel()
	changed := strings.Replace(saveTool, "Saves a text.", "Saves a file.", 1)
	s := newStand(t, script{Views: []map[string]json.RawMessage{
		onePage(findTool, saveTool, settleTool), onePage(findTool, changed, settleTool), onePage(findTool, saveTool, settleTool),
	}})
	r := s.begin(t)
	r.prepare(r.propose("s__find", `{"query":"x"}`))
	lists := s.lists()
	empty := func(c Call) Call { c.Run.Used.Calls = c.Run.Budget.Calls; return c }

	r.is(r.refused(empty(r.propose("none", `[`))).Outcome, agent.StatusRejected, agent.ClassToolError, ReasonArgumentsNotObject)
	r.is(r.refused(empty(r.propose("none", `{}`))).Outcome, agent.StatusRejected, agent.ClassToolError, ReasonUnknownTool)
	r.is(r.refused(empty(r.propose("s__save", `{"filename":"A.md"}`))).Outcome, agent.StatusRejected, agent.ClassToolError, ReasonArgumentsInvalid)
	r.is(r.refused(empty(r.propose("s__save", `{"filename":"A.md","content":"c"}`))).Outcome, agent.StatusRejected, agent.ClassBudget, ReasonBudget)
	if s.lists() != lists {
		t.Error("a call without budget made a discovery")
	}
	r.is(r.refused(r.propose("s__save", `{"filename":"A.md","content":"c"}`)).Outcome, agent.StatusRejected, agent.ClassPermissionRefused, ReasonDefinitionChanged)
	r.is(r.refused(r.propose("s__save", `{"filename":"A.md","content":"c"}`)).Outcome, agent.StatusRejected, agent.ClassToolError, ReasonServerSchema) // CHECKS 61
	r.is(r.refused(r.propose("s__save", `{"filename":"a.md","content":"c"}`)).Outcome, agent.StatusWaitingApproval, agent.ClassPermissionRefused, ReasonApproval)
	if s.calls() != 0 {
		t.Error("a refused call was sent")
	}
}

// The last call of a budget passes; one more does not, on a new bridge too, which asks
// nobody.
func TestPrepare_Budget(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	r := s.begin(t)
	c := r.propose("s__find", `{"query":"x"}`)
	c.Run.Used.Calls = c.Run.Budget.Calls
	r.is(r.refused(c).Outcome, agent.StatusRejected, agent.ClassBudget, ReasonBudget)
	if s.lists() != 1 {
		t.Error("a call without budget made a discovery")
	}
	c.Run.Used.Calls--
	if _, ok := r.prepare(c).(agent.Checked); !ok {
		t.Error("the last call of the budget is refused")
	}
}

// CHECKS 50, 59, CASES D6: any difference of the definition of the called tool refuses;
// another tool's, or another order of members, does not.
func TestPrepare_ComparesTheDefinition(t *testing.T) {
	t.Parallel()
	with := func(old, replacement string) string {
		if !strings.Contains(findTool, old) {
			t.Fatalf("the definition has no %q", old)
		}
		return strings.Replace(findTool, old, replacement, 1)
	}
	for name, tc := range map[string]struct {
		now    string
		reason string
	}{
		"the description":           {with("Finds a text.", "Finds a text!"), ReasonDefinitionChanged},
		"a title":                   {with(`"name":"find"`, `"name":"find","title":"Find"`), ReasonDefinitionChanged},
		"annotations":               {with(`"name":"find"`, `"name":"find","annotations":{"readOnlyHint":true}`), ReasonDefinitionChanged},
		"the input schema":          {with(`"maxLength":80`, `"maxLength":81`), ReasonDefinitionChanged},
		"the output schema":         {with(`"message":{"type":"string"}`, `"message":{"type":"string","maxLength":9}`), ReasonDefinitionChanged},
		"_meta":                     {with(`"name":"find"`, `"name":"find","_meta":{"v":2}`), ReasonDefinitionChanged},
		"an unknown member":         {with(`"name":"find"`, `"name":"find","later":1}`[:len(`"name":"find","later":1`)]), ReasonDefinitionChanged},
		"the text of a number":      {with(`"minimum":1`, `"minimum":1.0`), ReasonDefinitionChanged},
		"too large now":             {with("Finds a text.", strings.Repeat("a", 12_001)), ReasonDefinitionChanged},
		"gone":                      {`{"name":"other","description":"o","inputSchema":{"type":"object"}}`, ReasonDefinitionGone},
		"the order of its members":  {with(`"name":"find","description":"Finds a text.",`, `"description":"Finds a text.","name":"find",`), ""},
		"white space and an escape": {with(`"Finds a text."`, ` "Finds a\u0020text." `), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, script{Views: []map[string]json.RawMessage{
				onePage(findTool, saveTool, settleTool), onePage(tc.now, saveTool, settleTool),
			}})
			r := s.begin(t)
			if out := r.read(); out.Status != agent.StatusOK {
				t.Fatalf("%+v", out)
			}
			result := r.prepare(r.propose("s__find", `{"query":"x"}`))
			if tc.reason == "" {
				if _, ok := result.(agent.Checked); !ok {
					t.Errorf("refused: %+v", result)
				}
			} else {
				out, ok := result.(agent.Returned)
				if !ok {
					t.Fatalf("let through: %+v", result)
				}
				r.is(out.Outcome, agent.StatusRejected, agent.ClassPermissionRefused, tc.reason)
			}
			r.counts(3, 1)
			// Another tool of the same list goes on (CHECKS 59).
			r.is(r.refused(r.propose("s__save", saveArguments)).Outcome, agent.StatusWaitingApproval, agent.ClassPermissionRefused, ReasonApproval)
		})
	}
}

// A definition that changes between approval and call voids the grant.
func TestPrepare_ComparesTheDefinitionAfterTheGrant(t *testing.T) {
	t.Parallel()
	same := onePage(findTool, saveTool, settleTool)
	s := newStand(t, script{Views: []map[string]json.RawMessage{
		same, onePage(findTool, strings.Replace(saveTool, "Saves a text.", "Saves.", 1), settleTool),
	}})
	r := s.begin(t)
	c := r.granted(r.propose("s__save", saveArguments))
	r.is(r.refused(c).Outcome, agent.StatusRejected, agent.ClassPermissionRefused, ReasonDefinitionChanged)
	r.counts(3, 0)
}

// CHECKS 62: a list that is served as good for an hour is asked for again before every
// call.
func TestPrepare_BypassesTheListCache(t *testing.T) {
	t.Parallel()
	page := map[string]json.RawMessage{"": raw(`{"resultType":"complete","ttlMs":3600000,"cacheScope":"public","tools":[` + findTool + `,` + saveTool + `,` + settleTool + `]}`)}
	s := newStand(t, script{Views: []map[string]json.RawMessage{page}})
	r := s.begin(t)
	for range 3 {
		r.read()
	}
	r.counts(4, 3)
}

// CHECKS 60: a server that cannot be asked makes read and write unavailable; nothing is
// sent.
func TestPrepare_DiscoveryFails(t *testing.T) {
	t.Parallel()
	list := onePage(findTool, saveTool, settleTool)[""]
	for name, tc := range map[string]struct {
		then  scripted
		class agent.Class
	}{
		"an error":         {scripted{Error: raw(`{"code":-32603,"message":"/etc/secret"}`)}, agent.ClassProtocolError},
		"silence":          {scripted{Silent: true}, agent.ClassTimeout},
		"a junk line":      {scripted{Line: "listening"}, agent.ClassProtocolError},
		"an unknown reply": {scripted{Line: `{"jsonrpc":"2.0","id":77,"result":{}}`}, agent.ClassProtocolError},
		"a crash":          {scripted{Exit: true}, agent.ClassProtocolError},
		"null":             {scripted{Result: raw(`null`)}, agent.ClassProtocolError},
		"no tools":         {scripted{Result: raw(`{}`)}, agent.ClassProtocolError},
		"a null tool":      {scripted{Result: raw(`{"tools":[null]}`)}, agent.ClassProtocolError},
		"a result type":    {scripted{Result: raw(`{"resultType":"input_required","tools":[]}`)}, agent.ClassProtocolError},
		"a duplicate key":  {scripted{Result: raw(`{"tools":[],"tools":[]}`)}, agent.ClassProtocolError},
		"a 100 MB line":    {scripted{Flood: 100 << 20}, agent.ClassProtocolError},
		"900-deep nesting": {scripted{Result: raw(`{"tools":` + strings.Repeat("[", 900) + strings.Repeat("]", 900) + `}`)}, agent.ClassProtocolError},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, call := range []struct{ tool, arguments string }{{"s__find", `{"query":"x"}`}, {"s__save", saveArguments}} {
				s := newStand(t, script{Replies: map[string][]scripted{"tools/list": {{Result: list}, tc.then}}})
				r := s.begin(t)
				if _, ok := r.prepare(r.propose("s__find", `{"query":"x"}`)).(agent.Checked); !ok {
					t.Fatal("the first list of a child is in order")
				}
				if tc.class == agent.ClassTimeout {
					r.limit(impatient)
				}
				began := time.Now()
				out := r.refused(r.propose(call.tool, call.arguments))
				r.is(out.Outcome, agent.StatusUnavailable, tc.class, ReasonDiscovery)
				if took := time.Since(began); took > quick {
					t.Errorf("took %v", took)
				}
				if s.calls() != 0 {
					t.Error("the call was sent")
				}
				if strings.Contains(s.logs.String(), "/etc/secret") {
					t.Error("the server's text is in the log")
				}
			}
		})
	}
}

// CHECKS 60 with the default limit of 5 s.
func TestPrepare_DiscoveryHangsForFiveSeconds(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{Replies: map[string][]scripted{"tools/list": {{Result: onePage(findTool, saveTool, settleTool)[""]}, {Silent: true}}}})
	r := s.begin(t)
	r.prepare(r.propose("s__find", `{"query":"x"}`))
	r.limit(0)
	began := time.Now()
	r.is(r.refused(r.propose("s__find", `{"query":"x"}`)).Outcome, agent.StatusUnavailable, agent.ClassTimeout, ReasonDiscovery)
	if took := time.Since(began); took < tools.DefaultTimeout || took > quick {
		t.Errorf("took %v, want 5 s", took)
	}
}

// SPEC A7: a connection that is lost is replaced by the next Prepare, and everything is
// checked again.
func TestPrepare_ReplacesALostConnection(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{Replies: map[string][]scripted{"call:find": {{Exit: true}}}})
	r := s.begin(t)
	r.is(r.read().Outcome, agent.StatusUnavailable, agent.ClassProtocolError, ReasonLost)
	if _, ok := r.prepare(r.propose("s__find", `{"query":"x"}`)).(agent.Checked); !ok {
		t.Error("the next call is refused")
	}
	if n := len(s.got("server/discover")); n != 3 { // Discover, the bridge, the replacement
		t.Errorf("%d handshakes", n)
	}
	var opened, lost int
	for _, l := range r.logged() {
		if l["event"] == eventConnection {
			opened += map[any]int{"open": 1}[l["connection"]]
			lost += map[any]int{"lost": 1}[l["connection"]]
		}
	}
	if opened != 2 || lost != 1 {
		t.Errorf("the log has %d connections opened and %d lost", opened, lost)
	}
}

// SPEC B14: the negotiated version is checked against the list, and against the run's.
func TestConnection_ChecksTheProtocol(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{Protocol: "2025-11-25"})
	r := s.begin(t)
	if got := r.run.Spec.Servers[0].Protocol; got != "2025-11-25" {
		t.Errorf("negotiated %q", got)
	}
	r.is(r.read().Outcome, agent.StatusOK, agent.ClassOK, "")
	for _, g := range s.got("tools/call") {
		if strings.Contains(string(g.Params), "_meta") {
			t.Errorf("an older server was sent %s", g.Params)
		}
	}
	r.run.Spec.Servers[0].Protocol = "2026-07-28" // as if the run had begun with another
	r.open()
	r.is(r.refused(r.propose("s__find", `{"query":"x"}`)).Outcome, agent.StatusUnavailable, agent.ClassProtocolError, ReasonDiscovery)

	for name, tc := range map[string]struct {
		speaks string
		server tools.Server
		want   tools.Reason
	}{
		"an older one than listed": {"2025-06-18", tools.Server{}, ReasonVersion},
		"one that is listed":       {"2025-06-18", tools.Server{Protocols: []string{"2026-07-28", "2025-06-18"}}, ""},
		"one that is pinned":       {"2025-11-25", tools.Server{Protocol: "2025-11-25"}, ""},
		"another than pinned":      {"2025-11-25", tools.Server{Protocol: "2026-07-28"}, ReasonVersion},
		"garbage":                  {"2020-garbage", tools.Server{}, ReasonVersion},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, script{Protocol: tc.speaks})
			s.cfg.Servers[0].Protocol, s.cfg.Servers[0].Protocols = tc.server.Protocol, tc.server.Protocols
			found, err := Discover(t.Context(), s.cfg)
			if err != nil {
				t.Fatal(err)
			}
			var got tools.Reason
			if len(found.Problems) > 0 {
				got = found.Problems[0].Reason
			}
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// CHECKS 39: a write without a grant waits, with the candidate that says exactly what
// would be sent.
func TestPrepare_AsksForApproval(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	r := s.begin(t)
	c := r.propose("s__save", `{"filename":"a.md","content":"héllo"}`)
	out := r.refused(c)
	r.is(out.Outcome, agent.StatusWaitingApproval, agent.ClassPermissionRefused, ReasonApproval)
	got := out.Candidate
	arguments := []byte(`{"content":"héllo","filename":"a.md"}`)
	pin, _ := r.run.Spec.Tool("s__save")
	want, err := grant.Candidate{
		Audience: "stand", Scope: "secret-scope", Run: "run-1", Tool: "save", Call: c.id(), Definition: pin.Definition, Head: c.Head,
	}.Bind(arguments)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Equal(want) {
		t.Errorf("candidate %+v, want %+v", got, want)
	}
	if err := got.Matches(arguments); err != nil {
		t.Error(err)
	}
	r.counts(2, 0)
}

// What counts as a grant is checked again by Prepare itself.
func TestPrepare_ChecksTheGrants(t *testing.T) {
	t.Parallel()
	waits := func(reason string) func(*running, agent.Result) {
		return func(r *running, result agent.Result) {
			out, ok := result.(agent.Returned)
			if !ok {
				r.t.Fatalf("let through")
			}
			r.is(out.Outcome, agent.StatusWaitingApproval, agent.ClassPermissionRefused, reason)
		}
	}
	passes := func(r *running, result agent.Result) {
		if _, ok := result.(agent.Checked); !ok {
			r.t.Errorf("refused: %+v", result)
		}
	}
	for name, tc := range map[string]struct {
		change func(*running, *Call, *agent.Call)
		want   func(*running, agent.Result)
	}{
		"as signed":                 {func(*running, *Call, *agent.Call) {}, passes},
		"one second before the end": {func(r *running, _ *Call, _ *agent.Call) { r.now = r.now.Add(10*time.Minute - time.Second) }, passes},
		"at the end":                {func(r *running, _ *Call, _ *agent.Call) { r.now = r.now.Add(10 * time.Minute) }, waits(ReasonGrantExpired)},
		"no candidate":              {func(_ *running, _ *Call, c *agent.Call) { c.Candidate = nil }, waits(ReasonApproval)},
		"no grant":                  {func(_ *running, _ *Call, c *agent.Call) { c.Grants = nil }, waits(ReasonApproval)},
		"a cut grant":               {func(_ *running, _ *Call, c *agent.Call) { c.Grants[0].Wire = c.Grants[0].Wire[1:] }, waits(ReasonApproval)},
		"other arguments":           {func(_ *running, c *Call, _ *agent.Call) { c.Arguments = `{"filename":"b.md","content":"hello"}` }, waits(ReasonApproval)},
		"an unknown key": {func(r *running, _ *Call, c *agent.Call) {
			k, err := grant.NewPrivateKey("eve", nil)
			if err != nil {
				r.t.Fatal(err)
			}
			r.keys = append(r.keys, k)
			c.Grants[0] = r.sign(*c.Candidate, 2, time.Minute)
		}, waits(ReasonApproval)},
		"for another candidate": {func(r *running, _ *Call, c *agent.Call) {
			other, err := c.Candidate.Bind([]byte(`{"content":"evil","filename":"a.md"}`))
			if err != nil {
				r.t.Fatal(err)
			}
			c.Grants[0] = r.sign(other, 0, time.Minute)
		}, waits(ReasonApproval)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, script{})
			r := s.begin(t)
			c := r.granted(r.propose("s__save", saveArguments))
			asked := *c.Run.Call.Candidate
			tc.change(r, &c, c.Run.Call)
			result := r.prepare(c)
			tc.want(r, result)
			if out, ok := result.(agent.Returned); ok && c.Arguments == saveArguments {
				if out.Candidate.ID != asked.ID || out.Candidate.Head != c.Head {
					t.Errorf("asked again as %s at %s, want %s at %s", out.Candidate.ID, out.Candidate.Head, asked.ID, c.Head)
				}
			}
			if s.calls() != 0 {
				t.Error("prepare sent a call")
			}
		})
	}
}

func destructive(c *Config) {
	c.Contracts[1].Risk = agent.RiskDestructive
	c.Contracts[1].Approval = &tools.Approval{Approvers: 2}
}

// A destructive tool needs two people.
func TestPrepare_WantsTwoSignatures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		signers []int
		passes  bool
	}{
		"one":        {[]int{0}, false},
		"one, twice": {[]int{0, 0}, false},
		"two":        {[]int{0, 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, script{})
			r := s.begin(t, destructive)
			c := r.granted(r.propose("s__save", saveArguments), tc.signers...)
			if _, ok := r.prepare(c).(agent.Checked); ok != tc.passes {
				t.Errorf("let through: %v", ok)
			}
		})
	}
	s := newStand(t, script{})
	r := s.begin(t, destructive)
	c := r.approved(saveArguments, 0, 1)
	r.send(c)
	var sent struct{ Arguments struct{ Grant string } }
	if err := json.Unmarshal(s.got("tools/call")[0].Params, &sent); err != nil {
		t.Fatal(err)
	}
	keys := grant.Keys{r.keys[0].Public(), r.keys[1].Public()}
	if _, err := keys.OpenGrants(sent.Arguments.Grant, 2); err != nil {
		t.Errorf("the server received %q: %v", sent.Arguments.Grant, err)
	}
}

// A contract may demand approval of a read (SPEC C2).
func TestPrepare_AReadMayNeedApproval(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	r := s.begin(t, func(c *Config) { c.Contracts[0].Approval = &tools.Approval{Approvers: 1} })
	c := r.granted(r.propose("s__find", `{"query":"x"}`))
	out := r.send(r.checked(c))
	r.is(out.Outcome, agent.StatusOK, agent.ClassOK, "")
	if got := string(s.got("tools/call")[0].Params); strings.Contains(got, "grant") {
		t.Errorf("a tool without a grant field was sent %s", got)
	}
}

// CHECKS 46, at the bridge: a grant beside a read changes nothing.
func TestPrepare_AGrantBesideAReadChangesNothing(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	r := s.begin(t)
	c := r.propose("s__find", `{"query":"x"}`)
	c.Run.Call.Grants = []agent.Grant{{Wire: "wire", Approver: "ann"}}
	r.is(r.send(r.checked(c)).Outcome, agent.StatusOK, agent.ClassOK, "")
	if got := string(s.got("tools/call")[0].Params); strings.Contains(got, "wire") {
		t.Errorf("sent %s", got)
	}
}

// A person's arguments replace the model's, as the exact bytes that were signed.
func TestPrepare_TakesAnEdit(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	r := s.begin(t)
	edited := []byte(`{"content":"better","filename":"b.md"}`)
	c := r.propose("s__save", `{"filename":"a.md","content":"hello"}`)
	c.Edited = edited
	out := r.refused(c)
	if want := agent.NewBody(edited).Ref; out.Candidate == nil || out.Arguments != want {
		t.Errorf("%+v", out)
	}
	c.Edited = []byte(`{"filename":"b.md","content":"better"}`)
	r.is(r.refused(c).Outcome, agent.StatusRejected, agent.ClassToolError, ReasonArgumentsInvalid)
	c.Edited = []byte(`{"content":"better","filename":"b.md","grant":"g"}`)
	r.is(r.refused(c).Outcome, agent.StatusRejected, agent.ClassToolError, ReasonArgumentsInvalid)
}

// Arguments of many fields still fit into a grant: the digest of the whole stays.
func TestPrepare_CandidateFitsIntoAGrant(t *testing.T) {
	t.Parallel()
	var properties, arguments []string
	for i := range 40 {
		properties = append(properties, fmt.Sprintf(`"field-%02d":{"type":"string"}`, i))
		arguments = append(arguments, fmt.Sprintf(`"field-%02d":"x"`, i))
	}
	wide := `{"name":"save","description":"Saves.","inputSchema":{"type":"object","properties":{"content":{"type":"string"},"filename":{"type":"string"},"grant":{"type":"string"},` +
		strings.Join(properties, ",") + `}},"outputSchema":` + statusSchema + `}`
	s := newStand(t, script{Views: []map[string]json.RawMessage{onePage(findTool, wide, settleTool)}})
	r := s.begin(t)
	out := r.refused(r.propose("s__save", `{"content":"c","filename":"a.md",`+strings.Join(arguments, ",")+`}`))
	r.is(out.Outcome, agent.StatusWaitingApproval, agent.ClassPermissionRefused, ReasonApproval)
	if len(out.Candidate.Fields) != 2 || out.Candidate.Fields[0].Name != "content" {
		t.Errorf("fields %+v", out.Candidate.Fields)
	}
	if !out.Candidate.Fits("bob") {
		t.Error("nobody could sign it")
	}
}

// A candidate whose grant has no room for what the read-back compares is not made:
// the server would refuse what a person has signed.
func TestPrepare_CandidateListsWhatTheReadBackCompares(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	for audience, want := range map[int]string{88: ReasonApproval, grant.MaxAudience: ReasonCandidate} {
		r := s.begin(t, func(c *Config) { c.Servers[0].Audience = strings.Repeat("a", audience) })
		if out := r.refused(r.propose("s__save", saveArguments)); out.Reason != want {
			t.Errorf("an audience of %d characters: %s, want %s", audience, out.Reason, want)
		}
	}
}

// SPEC D5, last sentence: nobody is asked to approve what the builtin server must
// refuse.
func TestPrepare_AppliesTheByteLimitOfTheBuiltin(t *testing.T) {
	b := &Bridge{}
	var err error
	if b.registry, err = tools.NewRegistry([]tools.Server{{Prefix: "docs", Builtin: "docs", Root: "/r", Scope: "s"}}, nil); err != nil {
		t.Fatal(err)
	}
	for bytes, want := range map[int]bool{24_000: false, 24_001: true} {
		for tool, limited := range map[string]bool{"save_report": true, "read_document": false} {
			p := preparation{b: b, pin: agent.Tool{Server: "docs", Remote: tool}}
			arguments, err := strictjson.Encode(map[string]string{"content": strings.Repeat("a", bytes)})
			if err != nil {
				t.Fatal(err)
			}
			if got := p.oversized(arguments); got != (want && limited) {
				t.Errorf("%d bytes for %s: %v", bytes, tool, got)
			}
		}
	}
}

// CHECKS 82: after Close nothing is called.
func TestBridge_Closed(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	r := s.begin(t)
	c := r.checked(r.propose("s__find", `{"query":"x"}`))
	w := r.approved(saveArguments)
	if err := r.bridge.Close(); err != nil {
		t.Fatal(err)
	}
	r.is(r.refused(r.propose("s__find", `{"query":"x"}`)).Outcome, agent.StatusUnavailable, agent.ClassProtocolError, ReasonClosed)
	for _, c := range []Call{c, w} {
		out := r.send(c)
		r.is(out.Outcome, agent.StatusUnavailable, agent.ClassProtocolError, ReasonClosed)
		if out.Sent {
			t.Error("claims to be sent")
		}
	}
	if _, _, err := r.bridge.ReadBack(t.Context(), w); !errors.Is(err, errClosed) {
		t.Errorf("read-back: %v", err)
	}
	if s.calls() != 0 {
		t.Error("a call was sent after Close")
	}
	if err := r.bridge.Close(); err != nil {
		t.Error(err)
	}
}

// CHECKS 83: no descriptor is left after closing, or after starts that fail.
func TestBridge_LeavesNoDescriptor(t *testing.T) {
	s := newStand(t, script{})
	r := s.begin(t)
	before := openFiles(t)
	for range 5 {
		r.open()
		r.read()
		if err := r.bridge.Close(); err != nil {
			t.Fatal(err)
		}
	}
	silent := newStand(t, script{Replies: map[string][]scripted{"server/discover": {{Exit: true}}}})
	for range 5 {
		if _, err := Discover(t.Context(), silent.cfg); err != nil {
			t.Fatal(err)
		}
	}
	if after := openFiles(t); after > before {
		t.Errorf("%d descriptors before, %d after", before, after)
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		if open, err := os.ReadDir(dir); err == nil {
			return len(open)
		}
	}
	return 0
}
