package chat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/nodes/llm/chat"
)

// desk are tools of which the first takes nothing and the second needs a field.
var desk = []nodes.Tool{
	{Name: "docs__list", Parameters: json.RawMessage(`{"additionalProperties":false,"properties":{},"type":"object"}`)},
	{Name: "docs__read", Parameters: json.RawMessage(`{"additionalProperties":false,"properties":{"filename":{"type":"string"}},"required":["filename"],"type":"object"}`)},
}

func profile(t testing.TB, name string) chat.Profile {
	t.Helper()
	p, err := chat.For(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// reason is the reason of an error, which must be a failure of the provider.
func reason(t testing.TB, err error) string {
	t.Helper()
	var u *nodes.Unavailable
	if !errors.As(err, &u) {
		t.Fatalf("%v is no Unavailable", err)
	}
	if u.Final != chat.Final(u.Reason) {
		t.Errorf("%s is final: %t", u.Reason, u.Final)
	}
	return u.Reason
}

// whole is a response around a message.
func whole(message, finish string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"message":%s,"finish_reason":%s}],"usage":{"prompt_tokens":9,"completion_tokens":4}}`, message, finish)
}

// stream puts the events of a response together.
func stream(t testing.TB, p chat.Profile, events ...string) (nodes.Reply, string, error) {
	t.Helper()
	a, shown := p.Assemble(desk), ""
	for _, e := range events {
		text, err := a.Add([]byte(e))
		if err != nil {
			return nodes.Reply{}, shown, err
		}
		shown += text
	}
	r, err := a.Reply()
	return r, shown, err
}

// delta is an event around a delta.
func delta(d string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":%s,"finish_reason":null}]}`, d)
}

// ends is the event that holds the finish reason.
func ends(word string) string {
	return fmt.Sprintf(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, word)
}

const done = "[DONE]"

func TestDecode_NamesWhatIsNoResponse(t *testing.T) {
	deep := strings.Repeat("[", 65) + strings.Repeat("]", 65)
	for name, row := range map[string]struct{ body, reason string }{
		"nothing":                  {"", "bad_response"},
		"a web page":               {"<html><body>502</body></html>", "bad_response"},
		"half of it":               {whole(`{"content":"x"}`, `"stop"`)[:40], "bad_response"},
		"two responses":            {whole(`{"content":"x"}`, `"stop"`) + whole(`{"content":"y"}`, `"stop"`), "bad_response"},
		"an array":                 {`[]`, "bad_response"},
		"null":                     {`null`, "bad_response"},
		"a member twice":           {`{"choices":[],"choices":[]}`, "bad_response"},
		"half a surrogate pair":    {whole(`{"content":"\ud83d"}`, `"stop"`), "bad_response"},
		"not UTF-8":                {whole("{\"content\":\"\xff\"}", `"stop"`), "bad_response"},
		"nested too deeply":        {`{"x":` + deep + `}`, "bad_response"},
		"a number of 33":           {`{"x":1` + strings.Repeat("0", 32) + `}`, "bad_response"},
		"an exponent bomb":         {`{"x":1e999999}`, "bad_response"},
		"NaN as arguments":         {whole(`{"tool_calls":[{"function":{"name":"docs__list","arguments":NaN}}]}`, `"tool_calls"`), "bad_response"},
		"no choices":               {`{"choices":[]}`, "no_choices"},
		"choices are absent":       {`{"id":"x"}`, "no_choices"},
		"choices are null":         {`{"choices":null}`, "no_choices"},
		"choices are an object":    {`{"choices":{}}`, "bad_response"},
		"two choices":              {`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"},{"message":{"content":"b"},"finish_reason":"stop"}]}`, "many_choices"},
		"no message":               {`{"choices":[{"finish_reason":"stop"}]}`, "bad_response"},
		"a message of the user":    {whole(`{"role":"user","content":"x"}`, `"stop"`), "bad_response"},
		"content is a number":      {whole(`{"content":5}`, `"stop"`), "bad_response"},
		"the finish is a number":   {whole(`{"content":"x"}`, `5`), "bad_response"},
		"calls are an object":      {whole(`{"tool_calls":{}}`, `"stop"`), "bad_response"},
		"a call is null":           {whole(`{"tool_calls":[null]}`, `"stop"`), "bad_response"},
		"a name is a number":       {whole(`{"tool_calls":[{"function":{"name":5}}]}`, `"stop"`), "bad_response"},
		"a negative cost":          {`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":-5}}`, "bad_response"},
		"a cost with a fraction":   {`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5.0}}`, "bad_response"},
		"an error object":          {`{"error":{"message":"?"}}`, "provider_error"},
		"an error text":            {`{"error":"model is loading"}`, "provider_error"},
		"an error of a limit":      {`{"error":{"type":"rate_limit_error"},"choices":[]}`, "rate_limited"},
		"an error with a status":   {`{"error":{"code":503}}`, "overloaded"},
		"an error beside a choice": {`{"error":{"code":"500"},` + whole(`{"content":"x"}`, `"stop"`)[1:], "server_error"},
		"an error of old engines":  {`{"object":"error","message":"?","type":"invalid_request_error"}`, "refused"},
		"a byte too many":          {whole(`{"content":"x"}`, `"stop"`) + strings.Repeat(" ", chat.MaxResponse), "bad_response"},
		"a call too many":          {whole(`{"tool_calls":[`+strings.Repeat(`{},`, chat.MaxCalls)+`{}]}`, `"stop"`), "bad_response"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := profile(t, "openai").Decode(desk, []byte(row.body))
			if err == nil || !reflect.DeepEqual(r, nodes.Reply{}) {
				t.Fatalf("got %+v, %v", r, err)
			}
			if got := reason(t, err); got != row.reason {
				t.Errorf("reason %q, want %q (%v)", got, row.reason, err)
			}
		})
	}
}

func TestDecode_TakesExactlyTheLimits(t *testing.T) {
	body := whole(`{"content":"x"}`, `"stop"`)
	body += strings.Repeat("\n", chat.MaxResponse-len(body)) // as some keep a connection alive
	if r, err := profile(t, "deepseek").Decode(desk, []byte(body)); err != nil || r.Text != "x" {
		t.Errorf("%d bytes: %+v, %v", len(body), r, err)
	}
	calls := whole(`{"tool_calls":[`+strings.Repeat(`{},`, chat.MaxCalls-1)+`{}]}`, `"stop"`)
	if r, err := profile(t, "openai").Decode(desk, []byte(calls)); err != nil || len(r.Calls) != chat.MaxCalls {
		t.Errorf("%d calls, %v", len(r.Calls), err)
	}
}

func TestDecode_ReadsWhatProvidersDiffer(t *testing.T) {
	call := func(args string) string {
		return fmt.Sprintf(`{"content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"docs__list","arguments":%s}}]}`, args)
	}
	made := func(args string) []nodes.ToolCall {
		return []nodes.ToolCall{{ID: "c1", Name: "docs__list", Arguments: args}}
	}
	for name, row := range map[string]struct {
		profile, message, finish string
		want                     nodes.Reply
	}{
		"text":                      {"openai", `{"role":"assistant","content":"x"}`, "stop", nodes.Reply{Text: "x", Finish: "stop"}},
		"content as an array":       {"openai", `{"content":[{"type":"text","text":"a"},{"type":"thinking","text":"no"},{"type":"text","text":"b"}]}`, "stop", nodes.Reply{Text: "ab", Finish: "stop"}},
		"content absent":            {"openai", `{"tool_calls":[{"id":"c1","function":{"name":"docs__list","arguments":"{}"}}]}`, "tool_calls", nodes.Reply{Calls: made("{}"), Finish: "tool_calls"}},
		"arguments as an object":    {"ollama", call(`{"b":1.0,"a":"\u0041"}`), "tool_calls", nodes.Reply{Calls: made(`{"a":"A","b":1.0}`), Finish: "tool_calls", Adjusted: []string{"object_arguments"}}},
		"stop with calls":           {"vllm", call(`"{}"`), "stop", nodes.Reply{Calls: made("{}"), Finish: "stop"}},
		"eos of an engine":          {"vllm", `{"content":"x"}`, "eos", nodes.Reply{Text: "x", Finish: "stop"}},
		"eos of a service":          {"openai", `{"content":"x"}`, "eos", nodes.Reply{Text: "x", Finish: "eos"}},
		"tool_call":                 {"llamacpp", call(`"{}"`), "tool_call", nodes.Reply{Calls: made("{}"), Finish: "tool_calls"}},
		"function_call":             {"azure", call(`"{}"`), "function_call", nodes.Reply{Calls: made("{}"), Finish: "tool_calls"}},
		"a finish of 65":            {"openai", `{"content":"x"}`, strings.Repeat("w", 65), nodes.Reply{Text: "x", Finish: "unknown"}},
		"an empty finish":           {"ollama", call(`"{}"`), "", nodes.Reply{}},
		"no arguments, by profile":  {"lmstudio", call(`""`), "tool_calls", nodes.Reply{Calls: made("{}"), Finish: "tool_calls", Adjusted: []string{"empty_arguments"}}},
		"null arguments":            {"lmstudio", call(`null`), "tool_calls", nodes.Reply{Calls: made("{}"), Finish: "tool_calls", Adjusted: []string{"empty_arguments"}}},
		"no arguments":              {"openai", call(`""`), "tool_calls", nodes.Reply{Calls: made(""), Finish: "tool_calls"}},
		"white space is not empty":  {"lmstudio", call(`" "`), "tool_calls", nodes.Reply{Calls: made(" "), Finish: "tool_calls"}},
		"no arguments, one needed":  {"lmstudio", `{"tool_calls":[{"id":"c1","function":{"name":"docs__read","arguments":""}}]}`, "tool_calls", nodes.Reply{Calls: []nodes.ToolCall{{ID: "c1", Name: "docs__read"}}, Finish: "tool_calls"}},
		"no arguments, no tool":     {"lmstudio", `{"tool_calls":[{"id":"c1","function":{"name":"docs__gone","arguments":""}}]}`, "tool_calls", nodes.Reply{Calls: []nodes.ToolCall{{ID: "c1", Name: "docs__gone"}}, Finish: "tool_calls"}},
		"arguments that are a 5":    {"openai", call(`5`), "tool_calls", nodes.Reply{Calls: made("5"), Finish: "tool_calls"}},
		"arguments that are a list": {"openai", call(`[ 1 ]`), "tool_calls", nodes.Reply{Calls: made("[1]"), Finish: "tool_calls"}},
		"reasoning":                 {"vllm", `{"content":"x","reasoning":"r","reasoning_content":""}`, "stop", nodes.Reply{Text: "x", Finish: "stop", Vendor: map[string]string{"reasoning": "r"}}},
		"reasoning of a service":    {"openai", `{"content":"x","reasoning_content":"r"}`, "stop", nodes.Reply{Text: "x", Finish: "stop", Vendor: map[string]string{"reasoning_content": "r"}}},
		"a refusal":                 {"openai", `{"content":null,"refusal":"I cannot."}`, "stop", nodes.Reply{Text: "I cannot.", Finish: "stop", Adjusted: []string{"refusal_as_text"}}},
		"a custom call":             {"openai", `{"tool_calls":[{"id":"c1","type":"custom","custom":{"name":"x","input":"y"}}]}`, "tool_calls", nodes.Reply{Calls: []nodes.ToolCall{{ID: "c1"}}, Finish: "tool_calls"}},
		"an id twice":               {"openai", `{"tool_calls":[{"id":"c1","function":{"name":"docs__list","arguments":"{}"}},{"id":"c1","function":{"name":"docs__list","arguments":"{}"}}]}`, "tool_calls", nodes.Reply{Calls: slices.Concat(made("{}"), made("{}")), Finish: "tool_calls"}},
	} {
		t.Run(name, func(t *testing.T) {
			row.want.Usage = agent.Usage{Input: 9, Output: 4}
			got, err := profile(t, row.profile).Decode(desk, []byte(whole(row.message, fmt.Sprintf("%q", row.finish))))
			if err != nil || !reflect.DeepEqual(got, row.want) {
				t.Errorf("got  %+v, %v\nwant %+v", got, err, row.want)
			}
		})
	}
}

func TestDecode_AProviderOutOfResourcesGaveNoTurn(t *testing.T) {
	body := []byte(whole(`{"content":"half"}`, `"insufficient_system_resource"`))
	if _, err := profile(t, "deepseek").Decode(nil, body); reason(t, err) != "overloaded" {
		t.Error(err)
	}
	if r, err := profile(t, "openai").Decode(nil, body); err != nil || r.Finish != "insufficient_system_resource" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestDecode_CountsWhatATurnCost(t *testing.T) {
	for name, row := range map[string]struct {
		usage string
		want  agent.Usage
	}{
		"plain":                   {`{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}`, agent.Usage{Input: 7, Output: 5}},
		"cached":                  {`{"prompt_tokens":7,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}`, agent.Usage{Input: 7, Output: 5, Cached: 4}},
		"cached, by another name": {`{"prompt_tokens":7,"completion_tokens":5,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":3}`, agent.Usage{Input: 7, Output: 5, Cached: 4}},
		"more cached than sent":   {`{"prompt_tokens":7,"prompt_cache_hit_tokens":400}`, agent.Usage{Input: 7, Cached: 7}},
		"null details":            {`{"prompt_tokens":7,"completion_tokens":5,"prompt_tokens_details":null}`, agent.Usage{Input: 7, Output: 5}},
		"null":                    {`null`, agent.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			body := fmt.Sprintf(`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":%s}`, row.usage)
			r, err := profile(t, "openai").Decode(nil, []byte(body))
			if err != nil || r.Usage != row.want {
				t.Errorf("got %+v, %v", r.Usage, err)
			}
			s, _, err := stream(t, profile(t, "openai"), delta(`{"content":"x"}`), ends("stop"), fmt.Sprintf(`{"choices":[],"usage":%s}`, row.usage), done)
			if err != nil || s.Usage != row.want {
				t.Errorf("streamed: got %+v, %v", s.Usage, err)
			}
		})
	}
}

func TestEstimate_CountsATurnOfUnknownCost(t *testing.T) {
	r := nodes.Reply{Text: "1234", Calls: []nodes.ToolCall{{Name: "ab", Arguments: "{}"}}, Adjusted: []string{"object_arguments"}}
	got := chat.Estimate(r, make([]byte, 10))
	if got.Usage != (agent.Usage{Input: 4, Output: 3}) || !slices.Equal(got.Adjusted, []string{"object_arguments", "usage_estimated"}) {
		t.Errorf("%+v", got)
	}
	r.Usage = agent.Usage{Input: 1}
	if got := chat.Estimate(r, make([]byte, 10)); got.Usage != r.Usage || len(got.Adjusted) != 1 {
		t.Errorf("a known cost became %+v", got)
	}
}

// CASES M2, M3: without a finish reason, or without the end marker, nothing is a call.
func TestAssembler_DemandsBothEnds(t *testing.T) {
	call := delta(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"docs__list","arguments":"{}"}}]}`)
	for name, events := range map[string][]string{
		"neither":          {call},
		"no end marker":    {call, ends("tool_calls")},
		"no finish reason": {call, done},
		"an empty finish":  {call, ends(""), done},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, err := stream(t, profile(t, "openai"), events...)
			if err != nil || r.Finish != "" || len(r.Calls) > 0 {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
	if r, _, err := stream(t, profile(t, "openai"), call, ends("tool_calls"), done); err != nil || r.Finish != "tool_calls" || len(r.Calls) != 1 {
		t.Errorf("with both: %+v, %v", r, err)
	}
}

func TestAssembler_NamesWhatIsNoStream(t *testing.T) {
	text := delta(`{"content":"x"}`)
	for name, row := range map[string]struct {
		events []string
		reason string
	}{
		"nothing":                         {nil, "no_choices"},
		"only the marker":                 {[]string{done}, "no_choices"},
		"only the cost":                   {[]string{`{"choices":[],"usage":{"prompt_tokens":1}}`, done}, "no_choices"},
		"junk":                            {[]string{text, `{"choices":`}, "bad_response"},
		"a member twice":                  {[]string{`{"choices":[],"choices":[]}`}, "bad_response"},
		"an error in the middle":          {[]string{text, `{"error":{"message":"boom","code":500}}`}, "server_error"},
		"two choices in an event":         {[]string{`{"choices":[{"delta":{}},{"delta":{}}]}`}, "many_choices"},
		"two choices in turn":             {[]string{text, `{"choices":[{"index":1,"delta":{"content":"y"}}]}`}, "many_choices"},
		"text after the finish":           {[]string{text, ends("stop"), text}, "after_finish"},
		"a call after the finish":         {[]string{text, ends("stop"), delta(`{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`)}, "after_finish"},
		"reasoning after the finish":      {[]string{text, ends("stop"), delta(`{"reasoning":"r"}`)}, "after_finish"},
		"two finishes":                    {[]string{text, ends("stop"), ends("tool_calls")}, "finish_twice"},
		"the same finish twice":           {[]string{text, ends("stop"), ends("stop")}, "finish_twice"},
		"an event after the marker":       {[]string{text, ends("stop"), done, `{"choices":[]}`}, "after_finish"},
		"the marker twice":                {[]string{text, ends("stop"), done, done}, "after_finish"},
		"one call by two names":           {[]string{delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"a"}}]}`), delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"b"}}]}`)}, "bad_response"},
		"an index that is no number":      {[]string{delta(`{"tool_calls":[{"index":"0"}]}`)}, "bad_response"},
		"an index below zero":             {[]string{delta(`{"tool_calls":[{"index":-1}]}`)}, "bad_response"},
		"a call past the limit":           {[]string{delta(`{"tool_calls":[` + strings.Repeat(`{"id":"","function":{"name":"a","arguments":"{}"}},`, chat.MaxCalls) + `{"function":{"name":"a","arguments":"{}"}}]}`)}, "bad_response"},
		"a stream without an end to text": {slices.Repeat([]string{delta(`{"content":"` + strings.Repeat("x", 1<<19) + `"}`)}, 9), "bad_response"},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, err := stream(t, profile(t, "openai"), row.events...)
			if err == nil {
				t.Fatalf("got %+v", r)
			}
			if got := reason(t, err); got != row.reason {
				t.Errorf("reason %q, want %q (%v)", got, row.reason, err)
			}
		})
	}
}

func TestAssembler_StaysInError(t *testing.T) {
	a := profile(t, "openai").Assemble(nil)
	_, first := a.Add([]byte(`{`))
	_, second := a.Add([]byte(ends("stop")))
	if _, err := a.Reply(); first == nil || second != first || err != first {
		t.Errorf("%v, %v, %v", first, second, err)
	}
}

func TestAssembler_BoundsTheEvents(t *testing.T) {
	a := profile(t, "openai").Assemble(nil)
	for i := range chat.MaxChunks {
		if _, err := a.Add([]byte(`{}`)); err != nil {
			t.Fatalf("event %d: %v", i+1, err)
		}
	}
	if _, err := a.Add([]byte(`{}`)); err == nil || reason(t, err) != "bad_response" {
		t.Errorf("event %d: %v", chat.MaxChunks+1, err)
	}
}

func TestAssembler_PassesOverWhatIsNoContent(t *testing.T) {
	r, shown, err := stream(t, profile(t, "azure"),
		`{"choices":[],"prompt_filter_results":[{"prompt_index":0}]}`,
		delta(`{"role":"assistant","content":""}`), delta(`{"content":"a"}`), `{"choices":[{"index":0,"content_filter_results":{}}]}`,
		`{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`,
		delta(`{"content":"","tool_calls":[]}`), delta(`{"content":null}`), `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2}}`, done)
	if err != nil || r.Text != "ab" || shown != "ab" || r.Finish != "stop" || r.Usage.Input != 3 {
		t.Errorf("got %+v, shown %q, %v", r, shown, err)
	}
}

// CASES M9 and its kind.
func TestAssembler_CorrelatesCalls(t *testing.T) {
	call := func(parts string) string { return delta(`{"tool_calls":[` + parts + `]}`) }
	read := func(id, args string) nodes.ToolCall {
		return nodes.ToolCall{ID: id, Name: "docs__read", Arguments: args}
	}
	for name, row := range map[string]struct {
		events []string
		want   []nodes.ToolCall
	}{
		"the id in the first delta only": {[]string{
			call(`{"index":0,"id":"a","function":{"name":"docs__read","arguments":""}}`), call(`{"index":0,"function":{"arguments":"{\"x\""}}`), call(`{"index":0,"function":{"arguments":":1}"}}`),
		}, []nodes.ToolCall{read("a", `{"x":1}`)}},
		"an index but no id": {[]string{
			call(`{"index":0,"function":{"name":"docs__read","arguments":"{"}}`), call(`{"index":0,"function":{"arguments":"}"}}`),
		}, []nodes.ToolCall{read("", `{}`)}},
		"the id and the name in every delta": {[]string{
			call(`{"index":0,"id":"a","function":{"name":"docs__read","arguments":"{"}}`), call(`{"index":0,"id":"a","function":{"name":"docs__read","arguments":"}"}}`),
		}, []nodes.ToolCall{read("a", `{}`)}},
		"empty ids and names later on": {[]string{
			call(`{"index":0,"id":"a","function":{"name":"docs__read","arguments":"{"}}`), call(`{"index":0,"id":"","function":{"name":"","arguments":"}"}}`),
		}, []nodes.ToolCall{read("a", `{}`)}},
		"the id after the name": {[]string{
			call(`{"index":0,"function":{"name":"docs__read"}}`), call(`{"index":0,"id":"a","function":{"arguments":"{}"}}`),
		}, []nodes.ToolCall{read("a", `{}`)}},
		"two on index 0 with new ids": {[]string{
			call(`{"index":0,"id":"a","function":{"name":"docs__read","arguments":"{\"n\":1}"}}`), call(`{"index":0,"id":"b","function":{"name":"docs__read","arguments":"{\"n\":2}"}}`),
		}, []nodes.ToolCall{read("a", `{"n":1}`), read("b", `{"n":2}`)}},
		"two on index 0 without ids": {[]string{
			call(`{"index":0,"function":{"name":"docs__read","arguments":"{\"n\":1}"}}`), call(`{"index":0,"function":{"name":"docs__read","arguments":"{\"n\":2}"}}`),
		}, []nodes.ToolCall{read("", `{"n":1}`), read("", `{"n":2}`)}},
		"the name in every delta, no id": {[]string{
			call(`{"index":0,"function":{"name":"docs__read","arguments":"{\"n\":\"}\\\"}\""}}`), call(`{"index":0,"function":{"name":"docs__read","arguments":"}"}}`),
		}, []nodes.ToolCall{read("", `{"n":"}\"}"}`)}},
		"the name again behind whole arguments": {[]string{
			call(`{"index":0,"function":{"name":"docs__read","arguments":"{}"}}`), call(`{"index":0,"function":{"name":"docs__read","arguments":""}}`),
		}, []nodes.ToolCall{read("", `{}`)}},
		"indices from 1, interleaved": {[]string{
			call(`{"index":1,"id":"a","function":{"name":"docs__read","arguments":"{\"n\""}}`), call(`{"index":2,"id":"b","function":{"name":"docs__read","arguments":"{\"n\""}}`),
			call(`{"index":1,"function":{"arguments":":1}"}}`), call(`{"index":2,"function":{"arguments":":2}"}}`),
		}, []nodes.ToolCall{read("a", `{"n":1}`), read("b", `{"n":2}`)}},
		"no index, whole calls": {[]string{
			call(`{"id":"a","function":{"name":"docs__read","arguments":{"n":1}}}`), call(`{"id":"b","function":{"name":"docs__read","arguments":{"n":2}}}`),
		}, []nodes.ToolCall{read("a", `{"n":1}`), read("b", `{"n":2}`)}},
		"no index, in pieces": {[]string{
			call(`{"id":"a","function":{"name":"docs__read","arguments":"{"}}`), call(`{"function":{"arguments":"}"}}`), call(`{"id":"b","function":{"name":"docs__read","arguments":"{"}}`), call(`{"function":{"arguments":"}"}}`),
		}, []nodes.ToolCall{read("a", `{}`), read("b", `{}`)}},
		"one id on two indices": {[]string{
			call(`{"index":0,"id":"a","function":{"name":"docs__read","arguments":"{}"}},{"index":1,"id":"a","function":{"name":"docs__read","arguments":"{}"}}`),
		}, []nodes.ToolCall{read("a", `{}`), read("a", `{}`)}},
		"a piece of no call": {[]string{call(`{"index":3,"function":{"arguments":"{}"}}`)}, []nodes.ToolCall{{Arguments: "{}"}}},
		"an object behind a text": {[]string{
			call(`{"index":0,"id":"a","function":{"name":"docs__read","arguments":"{}"}}`), call(`{"index":0,"function":{"arguments":{"n":1}}}`),
		}, []nodes.ToolCall{read("a", `{}{"n":1}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _, err := stream(t, profile(t, "openai"), append(row.events, ends("tool_calls"), done)...)
			if err != nil || !reflect.DeepEqual(r.Calls, row.want) {
				t.Errorf("got  %+v, %v\nwant %+v", r.Calls, err, row.want)
			}
		})
	}
}

// A stream is the same turn as the whole response, wherever it is cut.
func TestAssembler_GivesTheReplyOfTheWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := profile(t, rapid.SampledFrom(chat.Profiles()).Draw(rt, "profile"))
		text := rapid.StringOf(rapid.SampledFrom([]rune("aé証😀 \"\\\n{}"))).Draw(rt, "text")
		thought := rapid.StringOf(rapid.SampledFrom([]rune("rß{\""))).Draw(rt, "thought")
		args := rapid.SliceOfN(rapid.SampledFrom([]string{`{}`, `{"filename":"a.md"}`, `{"x":"}{\"","y":[{}]}`, ``, `{`, `5`, `{}{}`}), 0, 4).Draw(rt, "args")
		word := rapid.SampledFrom([]string{"stop", "tool_calls", "length", "eos", ""}).Draw(rt, "finish")
		from := rapid.IntRange(0, 1).Draw(rt, "first index")
		repeat := rapid.Bool().Draw(rt, "ids repeat")

		message := map[string]any{"role": "assistant", "content": text, "reasoning": thought}
		var calls []any
		for i, a := range args {
			calls = append(calls, map[string]any{"id": fmt.Sprint("c", i), "type": "function", "function": map[string]any{"name": desk[i%2].Name, "arguments": a}})
		}
		if calls != nil {
			message["tool_calls"] = calls
		}
		want, err := p.Decode(desk, []byte(whole(encode(t, message), encode(t, word))))
		if err != nil {
			rt.Fatal(err)
		}

		var events []string
		for _, piece := range pieces(rt, thought) {
			events = append(events, delta(encode(t, map[string]any{"reasoning": piece})))
		}
		for _, piece := range pieces(rt, text) {
			events = append(events, delta(encode(t, map[string]any{"content": piece})))
		}
		for i, a := range args {
			for n, piece := range pieces(rt, a) {
				c := map[string]any{"index": i + from, "function": map[string]any{"arguments": piece}}
				if n == 0 {
					c["function"].(map[string]any)["name"] = desk[i%2].Name
				}
				if n == 0 || repeat {
					c["id"] = fmt.Sprint("c", i)
				}
				events = append(events, delta(encode(t, map[string]any{"tool_calls": []any{c}})))
			}
		}
		events = append(events, ends(word), `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4}}`, done)
		got, shown, err := stream(t, p, events...)
		if err != nil || !reflect.DeepEqual(got, want) || shown != text {
			rt.Errorf("streamed %+v, %v\nwhole    %+v", got, err, want)
		}
	})
}

// pieces cuts a text at random places between characters; at least one piece.
func pieces(rt *rapid.T, text string) []string {
	rest, out := []rune(text), []string{}
	for len(rest) > 0 {
		n := rapid.IntRange(1, len(rest)).Draw(rt, "piece")
		out, rest = append(out, string(rest[:n])), rest[n:]
	}
	if len(out) == 0 {
		out = append(out, "")
	}
	return out
}

func encode(t testing.TB, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
