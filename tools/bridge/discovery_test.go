package bridge

import (
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/tools"
	"sallyport/tools/strictjson"
)

func (s *stand) discover(t *testing.T) Found {
	t.Helper()
	found, err := Discover(t.Context(), s.cfg)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// reasons are the problems, by tool, or by server where it is the whole.
func (f Found) reasons() map[string]tools.Reason {
	m := map[string]tools.Reason{}
	for _, p := range f.Problems {
		m[p.Tool+map[bool]string{true: p.Server}[p.Tool == ""]] = p.Reason
	}
	return m
}

// CHECKS 1, 53, 64, CASES D7: what a run pins, and what the model is told.
func TestDiscover_PinsWhatItFinds(t *testing.T) {
	t.Parallel()
	extra := `{"name":"s__find","description":"Another.","inputSchema":{"type":"object"}}` // a name that looks prefixed takes no prefix
	s := newStand(t, script{Views: []map[string]json.RawMessage{onePage(saveTool, extra, findTool, settleTool)}})
	found := s.discover(t)
	if len(found.Problems) > 0 {
		t.Fatal(found.Problems)
	}
	digest := func(definition string) string {
		c, err := strictjson.Canonical([]byte(definition))
		if err != nil {
			t.Fatal(err)
		}
		return strictjson.Digest(c)
	}
	want := []agent.Tool{
		{Name: "s__find", Server: "s", Remote: "find", Risk: agent.RiskRead, Definition: digest(findTool)},
		{
			Name: "s__save", Server: "s", Remote: "save", Risk: agent.RiskWrite, Definition: digest(saveTool), Approvers: 1,
			Expires: 24 * 3600, UseWithin: 600, Settle: true,
		},
		{Name: "s__settle", Server: "s", Remote: "settle", Risk: agent.RiskSettle, HostOnly: true, Definition: digest(settleTool)},
	}
	if fmt.Sprint(found.Tools) != fmt.Sprint(want) {
		t.Errorf("tools %+v\nwant %+v", found.Tools, want)
	}
	for i, d := range found.Definitions {
		if d.Ref.SHA256 != found.Tools[i].Definition {
			t.Errorf("definition %d is not the one that is pinned", i)
		}
	}
	if got := fmt.Sprint(found.Servers); got != "[{s stand secret-scope 2026-07-28}]" {
		t.Errorf("servers %s", got)
	}
	var names []string
	for _, m := range found.Exposed {
		names = append(names, m.Name)
		wire, err := m.Wire()
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(wire), `"strict":false`) || !strings.Contains(string(m.Parameters), `"additionalProperties":false`) ||
			strings.Contains(string(wire), "grant") {
			t.Errorf("the model is told %s", wire)
		}
	}
	if got := strings.Join(names, " "); got != "s__find s__save" {
		t.Errorf("exposed: %s", got)
	}
	spec := agent.Spec{
		Run: "run-1", Task: agent.NewBody([]byte("t")).Ref, Tools: found.Tools, Servers: found.Servers, Budget: agent.DefaultBudget,
	}
	if err := spec.Check(); err != nil {
		t.Errorf("a run cannot pin it: %v", err)
	}
}

// junk is a tool without a contract.
func junk(i int) string {
	return fmt.Sprintf(`{"name":"junk-%d","description":"j","inputSchema":{"type":"object"}}`, i)
}

func junks(from, to int) string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, junk(i))
	}
	return strings.Join(all, ",")
}

// pages makes a list of these pages; the cursors are c1, c2, …
func pages(contents ...string) map[string]json.RawMessage {
	view := map[string]json.RawMessage{}
	for i, c := range contents {
		cursor, next := "", ""
		if i > 0 {
			cursor = fmt.Sprintf("c%d", i)
		}
		if i < len(contents)-1 {
			next = fmt.Sprintf(`"nextCursor":"c%d",`, i+1)
		}
		view[cursor] = raw(`{` + next + `"tools":[` + c + `]}`)
	}
	return view
}

// CHECKS 54, 56, CASES D8: the rules for a list as a whole.
func TestDiscover_ListRules(t *testing.T) {
	t.Parallel()
	three := findTool + "," + saveTool + "," + settleTool
	for name, tc := range map[string]struct {
		view  map[string]json.RawMessage
		most  int
		want  tools.Reason // of the server
		pages int
	}{
		"4 pages":                      {pages(findTool, saveTool, settleTool, junk(1)), 0, "", 4},
		"a cursor after page 4":        {pages(findTool, saveTool, settleTool, junk(1), junk(2)), 0, ReasonListPages, 4},
		"a repeated cursor":            {map[string]json.RawMessage{"": raw(`{"nextCursor":"a","tools":[` + three + `]}`), "a": raw(`{"nextCursor":"a","tools":[]}`)}, 0, ReasonListCursor, 2},
		"an empty cursor":              {map[string]json.RawMessage{"": raw(`{"nextCursor":"","tools":[` + three + `]}`)}, 0, "", 1},
		"a cursor of null":             {map[string]json.RawMessage{"": raw(`{"nextCursor":null,"tools":[` + three + `]}`)}, 0, "", 1},
		"a cursor that is no text":     {map[string]json.RawMessage{"": raw(`{"nextCursor":5,"tools":[` + three + `]}`)}, 0, ReasonListMalformed, 1},
		"a duplicate":                  {pages(three + "," + findTool), 0, ReasonListDuplicate, 1},
		"a duplicate without contract": {pages(three+","+junk(1), junk(1)), 0, ReasonListDuplicate, 2},
		"16 tools":                     {pages(three + "," + junks(0, 13)), 0, "", 1},
		"17 tools":                     {pages(three + "," + junks(0, 14)), 0, ReasonListTools, 1},
		"17 tools on two pages":        {pages(three+","+junks(0, 13), junk(13)), 0, ReasonListTools, 2},
		"17 tools, raised":             {pages(three + "," + junks(0, 14)), 17, "", 1},
		"not complete":                 {map[string]json.RawMessage{"": raw(`{"resultType":"task","tools":[` + three + `]}`)}, 0, ReasonListType, 1},
		"page 2 not complete":          {map[string]json.RawMessage{"": raw(`{"nextCursor":"a","tools":[` + three + `]}`), "a": raw(`{"resultType":"input_required","tools":[]}`)}, 0, ReasonListType, 2},
		"a tool without name":          {pages(three + `,{"description":"d"}`), 0, ReasonListMalformed, 1},
		"a null tool":                  {pages(three + `,null`), 0, ReasonListMalformed, 1},
		"no list":                      {map[string]json.RawMessage{"": raw(`{"tools":{}}`)}, 0, ReasonListMalformed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, script{Views: []map[string]json.RawMessage{tc.view}})
			s.cfg.Servers[0].MaxTools = tc.most
			found := s.discover(t)
			if got := found.reasons()["s"]; got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
			if n := s.lists(); n != tc.pages {
				t.Errorf("%d pages were asked for, want %d", n, tc.pages)
			}
			if tc.want == "" && len(found.Tools) != 3 {
				t.Errorf("problems %v", found.Problems)
			}
			if tc.want != "" && (len(found.Missing()) != 1 || len(found.Tools) != 0) {
				t.Errorf("%d missing servers, tools %v", len(found.Missing()), found.Tools)
			}
		})
	}
}

// definition is findTool with a description that makes the compact definition n bytes.
func definition(n int, letter string) string {
	empty := strings.Replace(findTool, "Finds a text.", "", 1)
	return strings.Replace(findTool, "Finds a text.", strings.Repeat(letter, (n-len(empty))/len(letter))+strings.Repeat("a", (n-len(empty))%len(letter)), 1)
}

// CHECKS 52, 55 to 58, CASES D2: one bad tool is quarantined with its reason, calling
// it is rejected, the others work.
func TestDiscover_QuarantinesOneTool(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() { // ends with the listener
		if c, err := listener.Accept(); err == nil {
			t.Error("a $ref was fetched")
			_ = c.Close()
		}
	}()
	input := func(schema string) string {
		return `{"name":"find","description":"Finds.","inputSchema":` + schema + `,"outputSchema":` + statusSchema + `}`
	}
	for name, tc := range map[string]struct {
		tool string
		want tools.Reason
	}{
		"12,000 bytes":        {definition(12_000, "a"), ""},
		"12,001 bytes":        {definition(12_001, "a"), tools.DefinitionTooLarge},
		"12,000 bytes of 証":   {definition(12_000, "証"), ""},
		"12,001 bytes of 証":   {definition(12_001, "証"), tools.DefinitionTooLarge},
		"$ref to the network": {input(`{"type":"object","properties":{"q":{"$ref":"http://` + listener.Addr().String() + `/s"}}}`), tools.SchemaKeyword},
		"a dangling $ref":     {input(`{"type":"object","properties":{"q":{"$ref":"#/$defs/none"}}}`), tools.SchemaKeyword},
		"a property named so": {input(`{"type":"object","properties":{"$ref":{"type":"string","enum":["$ref"]}}}`), ""},
		"input not an object": {input(`{"type":"string"}`), tools.InputNotObject},
		"no output schema":    {`{"name":"find","description":"Finds.","inputSchema":{"type":"object"}}`, tools.OutputMissing},
		"an empty one":        {`{"name":"find","description":"Finds.","inputSchema":{"type":"object"},"outputSchema":{}}`, tools.OutputMissing},
		"a keyword":           {input(`{"type":"object","patternProperties":{}}`), tools.SchemaKeyword},
		"depth 9":             {input(strings.Repeat(`{"type":"object","properties":{"a":`, 9) + `{}` + strings.Repeat(`}}`, 9)), tools.SchemaDepth},
		"items as a list":     {input(`{"type":"object","properties":{"a":{"type":"array","items":[{}]}}}`), tools.SchemaInvalid},
		"absent":              {junk(1), ReasonMissing},
		"a huge neighbour":    {findTool + `,{"name":"huge","inputSchema":{"type":"object"},"description":"` + strings.Repeat("a", 50_000) + `"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, script{Views: []map[string]json.RawMessage{onePage(tc.tool, saveTool, settleTool)}})
			r := s.begin(t)
			found := s.discover(t)
			if got := found.reasons()["s__find"]; got != tc.want {
				t.Fatalf("%q, want %q", got, tc.want)
			}
			if tc.want == tools.SchemaKeyword && !strings.Contains(found.Problems[0].Detail, "keyword") {
				t.Errorf("the operator is told %q", found.Problems[0].Detail)
			}
			if len(found.Missing()) != 0 {
				t.Errorf("one bad tool keeps the run from starting: %v", found.Missing())
			}
			if tc.want != "" {
				r.is(r.refused(r.propose("s__find", `{"query":"x"}`)).Outcome, agent.StatusRejected, agent.ClassToolError, ReasonUnknownTool)
			}
			r.is(r.send(r.approved(saveArguments)).Outcome, agent.StatusOK, agent.ClassOK, "")
		})
	}
}

// A contract's own pin, its read-back, and a switched-off send tool.
func TestDiscover_HoldsTheContract(t *testing.T) {
	t.Parallel()
	t.Run("another definition than pinned", func(t *testing.T) {
		t.Parallel()
		s := newStand(t, script{})
		s.cfg.Contracts[0].Pin = strings.Repeat("0", 64)
		if got := s.discover(t).reasons()["s__find"]; got != tools.DefinitionPin {
			t.Errorf("%q", got)
		}
	})
	t.Run("no output, said so", func(t *testing.T) {
		t.Parallel()
		s := newStand(t, script{Views: []map[string]json.RawMessage{onePage(`{"name":"find","description":"F.","inputSchema":{"type":"object"}}`, saveTool, settleTool)}})
		s.cfg.Contracts[0].Result, s.cfg.Contracts[0].Output = "", tools.OutputNone
		if got := s.discover(t); len(got.Problems) != 0 {
			t.Errorf("%v", got.Problems)
		}
	})
	t.Run("the read-back is missing", func(t *testing.T) {
		t.Parallel()
		s := newStand(t, script{Views: []map[string]json.RawMessage{onePage(findTool, saveTool)}})
		got := s.discover(t).reasons()
		if got["s__settle"] != ReasonMissing || got["s__save"] != ReasonSettleMissing {
			t.Errorf("%v", got)
		}
	})
	t.Run("the read-back takes other arguments", func(t *testing.T) {
		t.Parallel()
		s := newStand(t, script{})
		delete(s.cfg.Contracts[1].Settle.Args, "grant")
		if got := s.discover(t).reasons()["s__save"]; got != ReasonSettleArgument {
			t.Errorf("%v", got)
		}
	})
	t.Run("a send tool that is off", func(t *testing.T) {
		t.Parallel()
		s := newStand(t, script{})
		s.cfg.Contracts[1].Effect = tools.EffectSend
		found := s.discover(t)
		if len(found.Tools) != 2 || len(found.Exposed) != 1 {
			t.Errorf("%+v", found.Tools)
		}
	})
}

// CASES D1: the model knows an alias, the server its own name.
func TestDiscover_GivesAnAlias(t *testing.T) {
	t.Parallel()
	odd := strings.Replace(findTool, `"name":"find"`, `"name":"text.find/v1"`, 1)
	s := newStand(t, script{Views: []map[string]json.RawMessage{onePage(odd, saveTool, settleTool)}})
	s.cfg.Contracts[0].Name = "s__text.find/v1"
	r := s.begin(t)
	pin := r.run.Spec.Tools[0]
	if pin.Remote != "text.find/v1" || strings.ContainsAny(pin.Name, "./") {
		t.Errorf("pinned %+v", pin)
	}
	r.is(r.send(r.checked(r.propose(pin.Name, `{"query":"x"}`))).Outcome, agent.StatusOK, agent.ClassOK, "")
	if got := s.got("tools/call")[0].Tool; got != "text.find/v1" {
		t.Errorf("the server was asked for %q", got)
	}
}

// CHECKS 63: prefixes are unique.
func TestNew_RefusesPrefixesThatCollide(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	s.cfg.Servers = append(s.cfg.Servers, s.cfg.Servers[0])
	if _, err := New(s.cfg, agent.Spec{}); err == nil {
		t.Error("two servers have one prefix")
	}
	if _, err := Discover(t.Context(), s.cfg); err == nil {
		t.Error("two servers have one prefix")
	}
	if len(s.got("")) != 0 {
		t.Error("a server was started")
	}
}

// A server that cannot be started, dies, hangs, floods or lies ends the discovery with
// its name and a reason; an optional one does not keep a run from starting.
func TestDiscover_NamesAMissingServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script script
		change func(*tools.Server)
		want   tools.Reason
		cause  string
	}{
		"no such program": {script{}, func(s *tools.Server) { s.Command = []string{"/nonexistent/server"} }, ReasonStart, `start the server "/nonexistent/server": fork/exec /nonexistent/server: no such file or directory`},
		"no such folder":  {script{}, func(s *tools.Server) { s.Dir = "/nonexistent" }, ReasonStart, "no such file or directory"},
		"a crash":         {script{Replies: map[string][]scripted{"server/discover": {{Exit: true}}}}, nil, ReasonLost, "it ended: exit status 3"},
		"a closed pipe":   {script{Replies: map[string][]scripted{"server/discover": {{Closes: true}}}, Immortal: true}, nil, ReasonLost, "it closed a pipe and went on"},
		"silence":         {script{Replies: map[string][]scripted{"server/discover": {{Silent: true}}}}, func(s *tools.Server) { s.Timeout = tools.Duration(impatient) }, ReasonTimeout, ""},
		"a banner":        {script{Ready: "Server running on stdio"}, nil, ReasonProtocolError, ""},
		"a flood":         {script{Replies: map[string][]scripted{"server/discover": {{Flood: 100 << 20}}}}, nil, ReasonProtocolError, ""},
		"refuses":         {script{Protocol: "2025-11-25", Replies: map[string][]scripted{"initialize": {{Error: raw(`{"code":1,"message":"no"}`)}}}}, nil, ReasonVersion, ""},
		"no list":         {script{Replies: map[string][]scripted{"tools/list": {{Error: raw(`{"code":1,"message":"no"}`)}}}}, nil, ReasonListError, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, tc.script)
			if tc.change != nil {
				tc.change(&s.cfg.Servers[0])
			}
			began := time.Now()
			found := s.discover(t)
			if took := time.Since(began); took > quick {
				t.Errorf("took %v", took)
			}
			if got := found.reasons()["s"]; got != tc.want || len(found.Missing()) != 1 {
				t.Errorf("%q, missing %v; want %q", got, found.Missing(), tc.want)
			}
			if got := found.Problems[0]; (got.Cause == "") != (tc.cause == "") || !strings.HasSuffix(got.Error(), tc.cause) {
				t.Errorf("%q, want it to end with %q", got.Error(), tc.cause)
			}
			s.cfg.Servers[0].Optional = true
			if found := s.discover(t); len(found.Problems) != 1 || len(found.Missing()) != 0 {
				t.Errorf("optional: %v", found.Missing())
			}
		})
	}
}

// A resumed run knows what the model was told without asking a server, if the
// definitions were kept; else it asks.
func TestExposed_OfAResumedRun(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	found := s.discover(t)
	kept := map[string][]byte{}
	for _, d := range found.Definitions {
		kept[d.Ref.SHA256] = d.Data
	}
	s.cfg.Definition = func(digest string) []byte { return kept[digest] }
	r := s.begin(t)
	lists := s.lists()
	if got := r.bridge.Exposed(); fmt.Sprint(got) != fmt.Sprint(found.Exposed) {
		t.Errorf("%v", got)
	}
	r.is(r.refused(r.propose("s__find", `{}`)).Outcome, agent.StatusRejected, agent.ClassToolError, ReasonArgumentsInvalid)
	if s.lists() != lists {
		t.Error("the server was asked")
	}

	r.stand.cfg.Definition = nil
	r.open()
	if got := r.bridge.Exposed(); fmt.Sprint(got) != fmt.Sprint(found.Exposed) {
		t.Errorf("%v", got)
	}
	if s.lists() != lists+1 {
		t.Errorf("the server was asked %d times", s.lists()-lists)
	}
}

// The operator sees the end of a server's stderr, made visible (CASES X2).
func TestDiscover_KeepsStderrForTheOperator(t *testing.T) {
	t.Parallel()
	s := newStand(t, script{})
	s.cfg.Servers[0].Command = child(t, "complain")
	found := s.discover(t)
	if len(found.Problems) != 1 {
		t.Fatal(found.Problems)
	}
	if got, want := found.Problems[0].Detail, "line ⟦U+001B⟧]8;;⟦U+0007⟧⟦U+202E⟧⟦U+200B⟧⟦U+E0041⟧⟦0xFF⟧\nend⟦U+000D⟧"; got != want {
		t.Errorf("detail %q, want %q", got, want)
	}
	if strings.Contains(found.Problems[0].Error(), "line") {
		t.Error("stderr is part of the error's text")
	}
}
