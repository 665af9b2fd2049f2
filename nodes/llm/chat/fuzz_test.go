package chat_test

import (
	"bytes"
	"errors"
	"testing"

	"sallyport/nodes"
	"sallyport/nodes/llm/chat"
)

// sound checks what holds of every reply, whatever came in.
func sound(t *testing.T, r nodes.Reply, err error) {
	t.Helper()
	var u *nodes.Unavailable
	switch {
	case err != nil && !errors.As(err, &u):
		t.Fatalf("%v is no Unavailable", err)
	case err != nil && (u.Reason == "" || r.Finish != "" || len(r.Calls) > 0):
		t.Fatalf("%+v beside %v", r, err)
	case r.Finish == "" && len(r.Calls) > 0:
		t.Fatalf("calls without a finish reason: %+v", r)
	case r.Usage.Input < 0 || r.Usage.Output < 0 || r.Usage.Cached < 0 || r.Usage.Cached > r.Usage.Input:
		t.Fatalf("usage %+v", r.Usage)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(whole(`{"content":"x","reasoning":"r"}`, `"stop"`)))
	f.Add([]byte(whole(`{"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"docs__list","arguments":""}}]}`, `"tool_calls"`)))
	f.Add([]byte(`{"error":{"message":"m","type":"t","code":429}}`))
	f.Add([]byte(`{"choices":[{"message":{"content":[{"type":"text","text":"a"}]},"finish_reason":null}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, name := range chat.Profiles() {
			r, err := profile(t, name).Decode(desk, body)
			sound(t, r, err)
		}
		_ = chat.Failure(400, body).Error()
	})
}

func FuzzAssembler(f *testing.F) {
	f.Add([]byte("data: " + delta(`{"content":"x"}`) + "\n\ndata: " + ends("stop") + "\n\ndata: [DONE]\n\n"))
	f.Add([]byte("data: " + delta(`{"tool_calls":[{"index":0,"id":"c","function":{"name":"docs__list","arguments":"{"}}]}`) + "\n\ndata: " +
		delta(`{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}`) + "\n\ndata: " + ends("tool_calls") + "\n\ndata: [DONE]\n"))
	f.Add([]byte(": keep-alive\r\n\r\nevent: error\r\ndata: {\"error\":{}}\r\n\r\n"))
	f.Fuzz(func(t *testing.T, body []byte) {
		a := profile(t, "vllm").Assemble(desk)
		ended, marked := false, false
		for data, err := range chat.Events(bytes.NewReader(body)) {
			if err != nil {
				break
			}
			marked = marked || string(bytes.TrimSpace(data)) == "[DONE]"
			ended = ended || bytes.Contains(data, []byte("finish_reason")) || bytes.Contains(data, []byte(`\u`))
			if _, err := a.Add(data); err != nil {
				break
			}
		}
		r, err := a.Reply()
		sound(t, r, err)
		if err == nil && len(r.Calls) > 0 && !(ended && marked) {
			t.Fatalf("calls of a stream without both ends: %+v", r)
		}
	})
}
