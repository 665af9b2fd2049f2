package calcserver

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sallyport/tools/stdio/stdiotest"
)

const childEnv = "SALLYPORT_CALC_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(Serve(context.Background(), os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func start(t testing.TB, version string) *stdiotest.Client {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{childEnv + "=1"}
	return stdiotest.Start(t, cmd, version)
}

// CHECKS 87, 93, SPEC C5.
func TestServe_AddsSevenAndFive(t *testing.T) {
	for _, version := range []string{stdiotest.Current, stdiotest.Older} {
		c := start(t, version)
		tools := c.Tools()
		var tool struct{ Name string }
		if len(tools) != 1 || json.Unmarshal(tools[0], &tool) != nil || tool.Name != "add" {
			t.Fatalf("tools: %s", tools)
		}
		got := c.Call("add", `{"a":7,"b":5}`)
		if got.IsError || len(got.Content) != 1 || got.Content[0].Type != "text" || got.Content[0].Text != "12" {
			t.Errorf("7+5: %+v", got)
		}
		if code := c.End(); code != 0 || c.Stderr() != "" {
			t.Errorf("exit %d, stderr %q", code, c.Stderr())
		}
	}
}

// CHECKS 88, 89, 91.
func TestServe_RefusesEveryOtherArgument(t *testing.T) {
	c := start(t, stdiotest.Current)
	for _, arguments := range []string{
		`{"a":"seven","b":5}`, `{"a":7}`, `{"b":5}`, `{}`, `null`, `[7,5]`, `"7"`, `7`,
		`{"a":true,"b":5}`, `{"a":1.0,"b":5}`, `{"a":1e0,"b":5}`, `{"a":"7","b":5}`, `{"a":null,"b":5}`,
		`{"a":7,"b":5,"c":1}`, `{"A":7,"b":5}`, `{"a":7,"B":5,"b":5}`,
		`{"a":7,"a":7,"b":5}`, `{"a":7,"\u0061":7,"b":5}`, `{"a":7,"b":5,"\ud800":1}`,
		`{"a":9223372036854775808,"b":0}`, `{"a":1e400,"b":0}`, `{"a":` + strings.Repeat("1", 33) + `,"b":0}`,
		`{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `,"b":0}`,
	} {
		got := c.Call("add", arguments)
		if !got.IsError || len(got.Content) != 1 || got.Content[0].Text != refusedArguments {
			t.Errorf("%.80s: %+v", arguments, got)
		}
	}
	if got := c.Call("add", `{"a":1,"b":2}`); got.IsError || got.Content[0].Text != "3" {
		t.Errorf("after the refusals: %+v", got)
	}
}

// CHECKS 91: exact to the last digit, overflow refused.
func TestServe_IsExact(t *testing.T) {
	c := start(t, stdiotest.Current)
	for _, test := range [][2]string{
		{`{"a":9007199254740993,"b":0}`, "9007199254740993"},
		{`{"a":9223372036854775806,"b":1}`, "9223372036854775807"},
		{`{"a":-9223372036854775807,"b":-1}`, "-9223372036854775808"},
		{`{"a":-9223372036854775808,"b":9223372036854775807}`, "-1"},
		{`{"a":0,"b":0}`, "0"},
	} {
		if got := c.Call("add", test[0]); got.IsError || got.Content[0].Text != test[1] {
			t.Errorf("%s: %+v, want %s", test[0], got, test[1])
		}
	}
	for _, arguments := range []string{`{"a":9223372036854775807,"b":1}`, `{"a":-9223372036854775808,"b":-1}`} {
		if got := c.Call("add", arguments); !got.IsError || got.Content[0].Text != refusedOverflow {
			t.Errorf("%s: %+v", arguments, got)
		}
	}
}

// CHECKS 90.
func TestServe_RefusesAnUnknownTool(t *testing.T) {
	for _, version := range []string{stdiotest.Current, stdiotest.Older} {
		c := start(t, version)
		for _, name := range []string{"addx", "", "Add", "add "} {
			got := c.Reply("tools/call", map[string]any{"name": name, "arguments": map[string]any{"a": 7, "b": 5}})
			if got.Error == nil || !strings.Contains(got.Error.Message, "Unknown tool") {
				t.Errorf("%q: %+v", name, got)
			}
		}
	}
}

// Requests that are piped in are answered before the end of the input ends the server.
func TestServe_AnswersWhatWasPipedIn(t *testing.T) {
	c := start(t, stdiotest.Current)
	for range 50 {
		c.Request("tools/call", json.RawMessage(`{"name":"add","arguments":{"a":1,"b":1}}`))
	}
	c.CloseInput()
	for range 50 {
		if m, ok := c.Next(); !ok || m.Error != nil {
			t.Fatalf("a request was not answered: %+v", m)
		}
	}
	if code := c.Wait(); code != 0 {
		t.Errorf("exit %d: %s", code, c.Stderr())
	}
}

// Well-formed lines that are odd as messages: answered, ignored, or the end of the connection, never a panic.
func TestServe_SurvivesOddMessages(t *testing.T) {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	for _, line := range []string{
		`{}`, `{"jsonrpc":"1.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0"}`, `{"jsonrpc":"2.0","id":1}`, `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":{},"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":5}`, `{"jsonrpc":"2.0","id":1,"method":""}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}`, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + meta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + meta + `,"name":5}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + meta + `,"name":"add"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + meta + `,"name":"add","arguments":5}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + meta + `,"name":"add","inputResponses":{"x":5}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + meta + `,"cursor":"bad"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2099-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":5}}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}`,
		`{"jsonrpc":"2.0","method":"tools/call"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled"}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
		`{"jsonrpc":"2.0","method":"initialize"}`, `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`,
		`{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"x"}}`, `{"jsonrpc":"2.0","id":1,"method":"resources/list"}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"x"}}`, `{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{` + meta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{` + meta + `}}`,
		`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":9223372036854775808,"method":"ping"}`, `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`,
	} {
		c := start(t, stdiotest.Current)
		c.Tools()
		c.TrySend(line)

		if code := c.End(); code != 0 && code != 1 || strings.Contains(c.Stderr(), "goroutine") {
			t.Errorf("%s: exit %d, stderr %.3000s", line, code, c.Stderr())
		}
	}
}

func TestAddExactly(t *testing.T) {
	for _, test := range []struct {
		a, b, sum int64
		err       error
	}{
		{math.MaxInt64, 0, math.MaxInt64, nil}, {math.MaxInt64, 1, 0, errOverflow}, {1, math.MaxInt64, 0, errOverflow},
		{math.MinInt64, 0, math.MinInt64, nil}, {math.MinInt64, -1, 0, errOverflow}, {-1, math.MinInt64, 0, errOverflow},
		{math.MaxInt64, math.MinInt64, -1, nil}, {math.MaxInt64, math.MaxInt64, 0, errOverflow},
	} {
		if sum, err := addExactly(test.a, test.b); sum != test.sum || err != test.err {
			t.Errorf("%d + %d = %d, %v", test.a, test.b, sum, err)
		}
	}
}

// Server start to the first answer.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		c := start(b, stdiotest.Current)
		c.Tools()
		b.StopTimer()
		c.End()
		b.StartTimer()
	}
}
