package openai_test

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/nodes/llm/openai"
)

// escaped is a text as JSON may write it, each character by its number.
func escaped(text string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return b.String()
}

// An endpoint that repeats the key where a turn is kept and shown gets no turn, and is not
// asked again.
func TestRun_KeepsNoTurnThatHoldsTheKey(t *testing.T) {
	std, url := base64.StdEncoding, base64.URLEncoding
	arguments := func(text string) string { return calls(call("c1", "docs__read", quote(text))) }
	for name, row := range map[string]struct {
		message string
		held    string // what may be nowhere
		key     string
	}{
		"in the text":             {message: `{"content":"my key is ` + testKey + `!"}`},
		"half of it":              {message: `{"content":"my key begins ` + testKey[:len(testKey)/2] + `"}`, held: testKey[:len(testKey)/2]},
		"in what it declines":     {message: `{"content":null,"refusal":"I keep ` + testKey + `"}`},
		"in reasoning":            {message: `{"content":"hi","reasoning":"Bearer ` + testKey + `"}`},
		"in reasoning_content":    {message: `{"content":"hi","reasoning_content":"` + testKey + `"}`},
		"in arguments":            {message: arguments(`{"filename":"` + testKey + `"}`)},
		"in arguments, escaped":   {message: arguments(`{"filename":"` + escaped(testKey) + `"}`), held: escaped(testKey)},
		"as a name of arguments":  {message: arguments(`{"` + escaped(testKey) + `":1}`), held: escaped(testKey)},
		"in arguments, an object": {message: calls(call("c1", "docs__read", `{"filename":"`+testKey+`"}`))},
		"as a call's name":        {message: calls(call("c1", testKey, `"{}"`))},
		"as a call's id":          {message: calls(call(testKey, "docs__list", `"{}"`))},
		"in base64":               {message: `{"content":"` + std.EncodeToString([]byte(testKey)) + `"}`, held: std.EncodeToString([]byte(testKey))[:40]},
		"in base64, with a word":  {message: `{"content":"` + std.EncodeToString([]byte("Bearer "+testKey)) + `"}`, held: std.EncodeToString([]byte("Bearer " + testKey))[:40]},
		"in base64, with another": {message: `{"content":"` + std.EncodeToString([]byte("k="+testKey+".")) + `"}`, held: std.EncodeToString([]byte("k=" + testKey))[:40]},
		"in base64 of addresses":  {message: `{"content":"` + url.EncodeToString([]byte(">>?~>>?~?>")) + `"}`, held: url.EncodeToString([]byte(">>?~>>?~?>")), key: ">>?~>>?~?>"},
		"of 8 bytes":              {message: `{"content":"it is 8bytekey."}`, held: "8bytekey", key: "8bytekey"},
	} {
		if row.key == "" {
			row.key = testKey
		}
		if row.held == "" {
			row.held = row.key
		}
		for _, form := range []string{"whole", "streamed"} {
			t.Run(name+"/"+form, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					finish := "stop"
					if strings.Contains(row.message, "tool_calls") {
						finish = "tool_calls"
					}
					shown := ""
					configure := func(c *openai.Config) {
						c.Key = func() (string, error) { return row.key, nil }
						c.Stream = form == "streamed"
						c.Text = func(_, delta string) { shown += delta }
					}
					first := whole(message(row.message, finish))
					if form == "streamed" {
						first = events(deltas(finish, row.message))
					}
					p := serve(t, first, said("asked again"))
					defer p.close()
					r := begin(t, p.model(configure))
					now := r.serve()
					if got := r.journal(); now.State != agent.StateFailed || now.Reason != "model:key_repeated" || !slices.Equal(got, []string{"unreached key_repeated final"}) {
						t.Errorf("%s (%s), %v", now.State, now.Reason, got)
					}
					if n := len(p.got()); n != 1 {
						t.Errorf("%d requests were sent", n)
					}
					for where, text := range map[string]string{"log": r.log.String(), "display": shown, "context": fmt.Sprintf("%+v", r.messages())} {
						if strings.Contains(text, row.held) {
							t.Errorf("the %s holds it: %s", where, text)
						}
					}
					if !strings.Contains(r.log.String(), "holds the key") {
						t.Errorf("the log says %s", r.log.String())
					}
				})
			})
		}
	}
}

// What is no key, or cannot be told from a word, is a turn.
func TestTurn_TakesWhatIsLikeAKey(t *testing.T) {
	for name, row := range map[string]struct{ key, text string }{
		"its beginning":       {testKey, "keys begin with " + testKey[:15]},
		"less than half":      {testKey + testKey[3:], "as in " + testKey[3:30]},
		"a short key":         {"ollama7", "ollama7 is an engine"},
		"no key":              {"", "anything"},
		"most of a key of 8":  {"8bytekey", "8byteke"},
		"a tail of 15 of it":  {testKey, testKey[len(testKey)-15:]},
		"most of a key of 15": {"fifteen-bytes-k", "fifteen-bytes-"},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := serve(t, said(row.text))
			defer p.close()
			r, err := p.model(func(c *openai.Config) { c.Key = func() (string, error) { return row.key, nil } }).Turn(t.Context(), simple)
			if err != nil || r.Text != row.text {
				t.Errorf("%s: %+v, %v", name, r, err)
			}
		})
	}
}

// Wherever a stream is cut into pieces, less than 8 bytes in a row of the key are shown,
// and all that is not the key's.
func TestTurn_ShowsNoKeyInPieces(t *testing.T) {
	for size := 1; size <= len(testKey)+1; size++ {
		synctest.Test(t, func(t *testing.T) {
			var ds []string
			for piece := range slices.Chunk([]byte("The key is "+testKey+", and that is all."), size) {
				ds = append(ds, `{"content":`+quote(string(piece))+`}`)
			}
			p := serve(t, events(deltas("stop", ds...)))
			defer p.close()
			shown := ""
			_, err := p.model(streaming, func(c *openai.Config) { c.Text = func(_, delta string) { shown += delta } }).Turn(t.Context(), simple)
			if err == nil {
				t.Error("it is a turn")
			}
			if !strings.HasPrefix(shown, "The key is ") || !strings.HasSuffix(shown, "[key], and that is all.") || strings.Count(shown, "[key]") != 1 {
				t.Errorf("pieces of %d: shown %q", size, shown)
			}
			for i := 0; i+8 <= len(testKey); i++ {
				if strings.Contains(shown, testKey[i:i+8]) {
					t.Errorf("pieces of %d: shown %q", size, shown)
				}
			}
		})
	}
}

// Errors repeat the key in base64 no more than as it is.
func TestTurn_TakesEncodedKeysOutOfErrors(t *testing.T) {
	for _, before := range []string{"", ":", "k=", "Bearer "} {
		synctest.Test(t, func(t *testing.T) {
			text := base64.StdEncoding.EncodeToString([]byte(before + testKey))
			p := serve(t, status(400, "application/json", `{"error":{"message":"odd: `+text+`"}}`))
			defer p.close()
			if u := failed(t, p.model()); strings.Contains(u.Error(), text[len(text)-16:]) || !strings.Contains(u.Error(), "[key]") {
				t.Errorf("%q: %v", before, u)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, status(400, "application/json", `{"error":{"message":"the short is short"}}`))
		defer p.close()
		_, err := p.model(func(c *openai.Config) { c.Key = func() (string, error) { return "short", nil } }).Turn(t.Context(), nodes.Request{Messages: simple.Messages})
		if err == nil || strings.Contains(err.Error(), "short") {
			t.Errorf("%v", err)
		}
	})
}
