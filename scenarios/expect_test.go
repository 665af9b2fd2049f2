package scenarios

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sallyport/agent"
)

func TestExpect_ListsWhatIsOtherwise(t *testing.T) {
	desk := t.TempDir()
	if err := os.MkdirAll(filepath.Join(desk, "reports"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(desk, "reports", "a.md"), []byte("apples"), 0o600); err != nil {
		t.Fatal(err)
	}
	content, sent := "pears", false
	call := Call{Tool: "docs__save_report", Status: agent.StatusOK, Class: agent.ClassOK, Sent: true}
	tests := []struct {
		name string
		e    Expect
		want []string
	}{
		{"nothing is expected", Expect{}, nil},
		{"all as expected", Expect{
			State: agent.StateCompleted, Calls: []ExpectCall{{Tool: "docs__save_report", Status: agent.StatusOK, Class: agent.ClassOK}},
			NotSent: []string{"docs__read_document"}, NoCall: []string{"docs__read_document"}, Only: map[string][]string{"reports": {"a.md"}},
			Files: map[string]File{"reports/a.md": {TextCheck: TextCheck{Contains: Texts{"app"}}, Mode: "0600", Size: &Range{6, 6}}, "reports/b.md": {Absent: true}},
		}, nil},
		{"state", Expect{State: agent.StateFailed}, []string{`state: got "completed", want "failed"`}},
		{"reason", Expect{Reason: "budget:tokens"}, []string{`reason: want "budget:tokens"`}},
		{"another call", Expect{Calls: []ExpectCall{{Tool: "x"}}}, []string{`calls.0.tool: got "docs__save_report", want "x"`}},
		{"a call too many", Expect{Calls: []ExpectCall{}}, []string{`calls: got "call 1, of \"docs__save_report\" (ok)", want "0 calls"`}},
		{"a call too few", Expect{Calls: []ExpectCall{{Tool: call.Tool}, {Tool: "y"}}}, []string{`calls.1: got "no such call", want "a call of \"y\""`}},
		{"sent", Expect{Calls: []ExpectCall{{Tool: call.Tool, Sent: &sent}}}, []string{`calls.0.sent: got "true", want "false"`}},
		{"class and reason", Expect{Calls: []ExpectCall{{Tool: call.Tool, Class: agent.ClassTimeout, Reason: "timeout"}}}, []string{
			`calls.0.class: got "ok", want "timeout"`, `calls.0.reason: want "timeout"`,
		}},
		{"sent although it must not be", Expect{NotSent: []string{call.Tool}}, []string{`not_sent.0: got "call 1 was one", want "no request to docs__save_report"`}},
		{"called although it must not be", Expect{NoCall: []string{call.Tool}}, []string{`no_call.0: got "call 1 was one", want "no call of docs__save_report"`}},
		{"a file that is there", Expect{Files: map[string]File{"reports/a.md": {Absent: true}}}, []string{`files.reports/a.md.absent: got "it is there", want "no file"`}},
		{"a file that is not", Expect{Files: map[string]File{"reports/b.md": {}}}, []string{`files.reports/b.md: got "it is not there", want "a file"`}},
		{"a file too many", Expect{Only: map[string][]string{"reports": {}}}, []string{`only.reports: got "a.md"`}},
		{"other content", Expect{Files: map[string]File{"reports/a.md": {TextCheck: TextCheck{Equals: &content, Lacks: Texts{"apples"}}, Size: &Range{7, 9}}}}, []string{
			`files.reports/a.md.equals: got "apples", want "pears"`,
			`files.reports/a.md.lacks.0: got "apples", want "a text without \"apples\""`,
			`files.reports/a.md.size: got "6", want "7-9"`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := &mismatches{}
			x := &facts{stage: &Stage{Scenario: &Scenario{}, Desk: desk}, run: agent.Run{State: agent.StateCompleted}, calls: []Call{call}}
			tt.e.end(m, x)
			if err := tt.e.compareCalls(m, x); err != nil {
				t.Fatal(err)
			}
			tt.e.files(m, x)
			var got []string
			for _, w := range m.list {
				got = append(got, w.String())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSample_GuessesArguments(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"nothing required", `{"type":"object","properties":{"a":{"type":"string"}}}`, `{}`},
		{"text, number, truth", `{"properties":{"a":{"type":"string","minLength":3},"n":{"type":"integer","minimum":5},"t":{"type":"boolean"}},"required":["a","n","t"]}`, `{"a":"aaa","n":5,"t":false}`},
		{"default and enum", `{"properties":{"a":{"default":"d"},"b":{"enum":["e","f"]}},"required":["a","b"]}`, `{"a":"d","b":"e"}`},
		{"pattern", `{"properties":{"f":{"type":"string","pattern":"^[a-z]+\\.md$"}},"required":["f"]}`, `{"f":"acceptance.md"}`},
		{"list and object", `{"properties":{"l":{"type":"array"},"o":{"type":"object"}},"required":["l","o"]}`, `{"l":[],"o":{}}`},
		{"an unknown type", `{"properties":{"x":{}},"required":["x"]}`, ""},
		{"a pattern that no word has", `{"properties":{"x":{"type":"string","pattern":"^zzz$"}},"required":["x"]}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := sample([]byte(tt.schema))
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
}

// CHECKS 98, 99: a chain without one of its links, or with an outcome that has no
// class, has a gap.
func TestChain_NamesItsGap(t *testing.T) {
	whole := Chain{Proposed: true, Decisions: []string{"waiting", "allowed"}, Approvals: []string{"approve ann"}, Requests: []string{"7"}, Status: "ok", Class: agent.ClassOK}
	if gap := whole.gap(true, true); gap != "" {
		t.Errorf("a whole chain has the gap %q", gap)
	}
	tests := map[string]func(*Chain){
		"no proposal":   func(c *Chain) { c.Proposed = false },
		"no decision":   func(c *Chain) { c.Decisions = nil },
		"no approval":   func(c *Chain) { c.Approvals = nil },
		"no request id": func(c *Chain) { c.Requests = nil },
		"no outcome":    func(c *Chain) { c.Status = "" },
		`the outcome has no class, or an unknown one: ""`:   func(c *Chain) { c.Class = "" },
		`the outcome has no class, or an unknown one: "od"`: func(c *Chain) { c.Class = "od" },
	}
	for want, breaks := range tests {
		c := whole
		breaks(&c)
		if gap := c.gap(true, true); gap != want {
			t.Errorf("got %q, want %q", gap, want)
		}
	}
	if gap := whole.gap(false, true); gap != "a request of a call that was not sent" {
		t.Errorf("got %q", gap)
	}
	if _, err := Chains([]byte("{}\nnot JSON\n")); err == nil {
		t.Error("a line that is not JSON passes")
	}
}

func TestNewRunID_IsAlwaysAnID(t *testing.T) {
	for _, name := range []string{"approved", "", "A b_c.d", "---", "证据", string(make([]byte, 200)), "x----------------------------------------------------------y"} {
		if id := NewRunID(name); agent.CheckRunID(id) != nil {
			t.Errorf("NewRunID(%q) = %q", name, id)
		}
	}
}
