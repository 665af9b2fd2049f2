package openai_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/nodes"
	"sallyport/nodes/llm/chat"
	"sallyport/nodes/llm/openai"
)

// failed is the failure of one attempt, which must hold no key.
func failed(t *testing.T, m *openai.Model) *nodes.Unavailable {
	t.Helper()
	r, err := m.Turn(t.Context(), simple)
	var u *nodes.Unavailable
	if !errors.As(err, &u) {
		t.Fatalf("got %+v, %v", r, err)
	}
	if u.Final != chat.Final(u.Reason) {
		t.Errorf("%s is final: %t", u.Reason, u.Final)
	}
	for _, text := range []string{err.Error(), fmt.Sprintf("%+v", u), fmt.Sprintf("%#v", u.Err)} {
		if strings.Contains(text, "TESTKEY") || strings.Contains(text, "sk-TE") || strings.Contains(text, testKey[len(testKey)-8:]) {
			t.Errorf("the error holds the key: %s", text)
		}
	}
	return u
}

func TestTurn_NamesWhyThereIsNone(t *testing.T) {
	const json, page, stream = "application/json", "text/html", "text/event-stream"
	beginning := message(`{"content":"x"}`, "stop")[:60]
	delta := `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":null}]}` + "\n\n"
	for name, row := range map[string]struct {
		answer answer
		reason string
		stream bool
	}{
		"a rate limit":              {status(429, json, `{"error":{"message":"slow down"}}`), "rate_limited", false},
		"an empty account":          {status(429, json, `{"error":{"code":"insufficient_quota"}}`), "quota", false},
		"overloaded":                {status(503, page, `<html>`), "overloaded", false},
		"overloaded, by 529":        {status(529, json, `{}`), "overloaded", false},
		"a broken server":           {status(500, json, `{"error":{"message":"boom"}}`), "server_error", false},
		"a gateway's page":          {status(502, page, `<html><h1>Bad gateway</h1></html>`), "server_error", false},
		"a wrong key":               {status(401, json, `{"error":{"message":"Incorrect API key provided: sk-TE***mnop"}}`), "auth", false},
		"a forbidden model":         {status(403, page, ``), "auth", false},
		"no such model":             {status(404, json, `{"error":{"message":"model not found"}}`), "not_found", false},
		"a bad request":             {status(400, json, `{"error":{"message":"unknown field"}}`), "refused", false},
		"a bad entity":              {status(422, json, `{"detail":"?"}`), "refused", false},
		"a long context":            {status(400, json, `{"error":{"code":"context_length_exceeded","message":"?"}}`), "context_too_long", false},
		"an error past its limit":   {status(500, json, strings.Repeat(" ", openai.MaxErrorBody+1)), "server_error", false},
		"an error that is cut":      {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500); cut(json, "{")(w, r) }, "server_error", false},
		"a redirect":                {status(307, json, ``, "Location", "http://elsewhere.test/"), "redirected", false},
		"a page":                    {status(200, page, `<html>log in</html>`), "bad_response", false},
		"no content type":           {status(200, "", message(`{"content":"x"}`, "stop")), "bad_response", false},
		"plain text":                {status(200, "text/plain", message(`{"content":"x"}`, "stop")), "bad_response", false},
		"a stream unasked for":      {events(deltas("stop", `{"content":"x"}`)), "bad_response", false},
		"no content":                {status(204, json, ``), "bad_response", false},
		"junk":                      {whole(`{"choices":`), "bad_response", false},
		"too much":                  {whole(message(`{"content":"x"}`, "stop") + strings.Repeat(" ", chat.MaxResponse)), "bad_response", false},
		"an error in the response":  {whole(`{"error":{"code":"500","message":"boom"}}`), "server_error", false},
		"no choice":                 {whole(`{"choices":[]}`), "no_choices", false},
		"two choices":               {whole(`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"},{"message":{"content":"b"},"finish_reason":"stop"}]}`), "many_choices", false},
		"a response that is cut":    {cut(json, beginning), "cut", false},
		"cut before it begins":      {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "cut", false},
		"silence":                   {silent(""), "silent", false},
		"silence in the middle":     {silent(beginning), "timeout", false},
		"a stream that is cut":      {cut(stream, delta), "cut", true},
		"cut in a line":             {events(delta + `data: {"choices"`), "cut", true},
		"a stream's silence":        {silent(""), "silent", true},
		"an error in the stream":    {events(delta + "data: {\"error\":{\"type\":\"overloaded_error\"}}\n\n"), "overloaded", true},
		"an error for a stream":     {status(429, json, `{"error":{}}`), "rate_limited", true},
		"an error beside a stream":  {whole(`{"error":{"type":"server_error"}}`), "server_error", true},
		"finish, then more":         {events(deltas("", `{"content":"x"}`, `{}`)[:0] + delta + strings.Replace(delta, "null", `"stop"`, 1) + delta), "after_finish", true},
		"two finishes":              {events(strings.Replace(delta, "null", `"stop"`, 1) + strings.Replace(strings.Replace(delta, "null", `"stop"`, 1), `"x"`, `""`, 1)), "finish_twice", true},
		"an event that is too long": {events("data: " + strings.Repeat("x", 1<<20+1) + "\n\n"), "bad_response", true},
		"a page for a stream":       {status(200, page, deltas("stop", `{"content":"x"}`)), "bad_response", true},
		"an empty stream":           {events(""), "no_choices", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := serve(t, row.answer)
				defer p.close()
				m := p.model(func(c *openai.Config) { c.Stream = row.stream })
				begun := time.Now()
				if u := failed(t, m); u.Reason != row.reason {
					t.Errorf("reason %q, want %q: %v", u.Reason, row.reason, u)
				}
				waits := row.reason == "silent" || row.reason == "timeout"
				if took := time.Since(begun); waits != (took == openai.DefaultTimeout) {
					t.Errorf("it took %s", took)
				}
				if n := len(p.got()); n != 1 {
					t.Errorf("%d requests were sent", n)
				}
			})
		})
	}
}

// An error is read up to its limit, and one byte past it not at all.
func TestTurn_BoundsAnErrorsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := `{"error":{"code":"context_length_exceeded"}}`
		body += strings.Repeat(" ", openai.MaxErrorBody-len(body))
		p := serve(t, status(400, "application/json", body), status(400, "application/json", body+" "))
		defer p.close()
		for _, want := range []string{"context_too_long", "refused"} {
			if u := failed(t, p.model()); u.Reason != want {
				t.Errorf("reason %q, want %q", u.Reason, want)
			}
		}
	})
}

func TestTurn_NamesWhyThereIsNoConnection(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	tls := httptest.NewUnstartedServer(http.HandlerFunc(said("hi")))
	tls.Config.ErrorLog = log.New(io.Discard, "", 0)
	tls.StartTLS()
	defer tls.Close()
	garbage, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = garbage.Close() }()
	go func() {
		for {
			c, err := garbage.Accept()
			if err != nil {
				return
			}
			if r, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			_, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.9 "+testKey+"\r\n\r\n")
			_ = c.Close()
		}
	}()
	for name, row := range map[string]struct{ url, reason string }{
		"nobody listens":     {closed.URL, "unreachable"},
		"an unknown host":    {"http://no-such-host.invalid", "unreachable"},
		"a foreign CA":       {tls.URL, "unreachable"},
		"TLS to a plain one": {"https://" + strings.TrimPrefix(closed.URL, "http://"), "unreachable"},
		"no HTTP":            {"http://" + garbage.Addr().String(), "bad_response"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := openai.New(openai.Config{Model: "m", BaseURL: row.url, Key: func() (string, error) { return testKey, nil }})
			if err != nil {
				t.Fatal(err)
			}
			defer m.Close()
			if u := failed(t, m); u.Reason != row.reason {
				t.Errorf("reason %q, want %q: %v", u.Reason, row.reason, u)
			}
		})
	}
}

func TestTurn_ADialThatHangsIsUnreachable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		defer close(over)
		hang := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			<-over
			return nil, net.ErrClosed
		}}
		m, err := openai.New(openai.Config{Model: "m", BaseURL: testBase, HTTP: &http.Client{Transport: hang}, Timeout: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if u := failed(t, m); u.Reason != "unreachable" {
			t.Error(u)
		}
	})
}

func TestTurn_TheClientsOwnConnectionsWork(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(said("hi")))
	defer s.Close()
	m, err := openai.New(openai.Config{Model: "m", BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if r, err := m.Turn(t.Context(), simple); err != nil || r.Text != "hi" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestTurn_TooManyHeadersAreABadResponse(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(status(http.StatusBadRequest, "application/json", `{}`, "X-Long", strings.Repeat("x", 3<<20))))
	defer s.Close()
	m, err := openai.New(openai.Config{Model: "m", BaseURL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if u := failed(t, m); u.Reason != "bad_response" || !strings.Contains(u.Error(), "headers are too large") {
		t.Error(u)
	}
}

func TestTurn_AnInterruptionIsNoFailureOfTheProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, silent(""))
		defer p.close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := p.model().Turn(ctx, simple)
		var u *nodes.Unavailable
		if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &u) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTurn_TakesThePauseThatIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it is 2000-01-01
		for name, row := range map[string]struct {
			status int
			header []string
			after  time.Duration
		}{
			"seconds":                  {429, []string{"Retry-After", "7"}, 7 * time.Second},
			"a fraction":               {429, []string{"Retry-After", "0.5"}, 500 * time.Millisecond},
			"a date":                   {429, []string{"Retry-After", "Sat, 01 Jan 2000 00:10:00 GMT"}, 10 * time.Minute},
			"a date that has passed":   {429, []string{"Retry-After", "Fri, 31 Dec 1999 00:00:00 GMT"}, 0},
			"milliseconds":             {429, []string{"Retry-After-Ms", "1500"}, 1500 * time.Millisecond},
			"both":                     {429, []string{"Retry-After-Ms", "1500", "Retry-After", "2"}, 1500 * time.Millisecond},
			"none":                     {429, nil, 0},
			"junk":                     {429, []string{"Retry-After", "soon"}, 0},
			"a negative one":           {429, []string{"Retry-After", "-5"}, 0},
			"not a number":             {429, []string{"Retry-After", "NaN"}, 0},
			"one past every clock":     {429, []string{"Retry-After", "1e300"}, math.MaxInt64},
			"of an overloaded one":     {503, []string{"Retry-After", "7"}, 7 * time.Second},
			"of a server with a fault": {500, []string{"Retry-After", "7"}, 7 * time.Second},
		} {
			p := serve(t, status(row.status, "application/json", `{}`, row.header...))
			if u := failed(t, p.model()); u.After != row.after {
				t.Errorf("%s: a pause of %s, want %s", name, u.After, row.after)
			}
			p.close()
		}
	})
}

// The key goes to one origin, and is in nothing that a log gets.
func TestTurn_KeepsTheKeyToItself(t *testing.T) {
	echo := func(code int, kind, form string, header ...string) answer {
		return func(w http.ResponseWriter, r *http.Request) {
			status(code, kind, fmt.Sprintf(form, r.Header.Get("Authorization")), header...)(w, r)
		}
	}
	for name, row := range map[string]struct {
		answer answer
		keeps  string // what the error still says
	}{
		"in an error":              {echo(400, "application/json", `{"error":{"message":"bad header %s","code":"invalid_header"}}`), `invalid_header: "bad header Bearer [key]"`},
		"in an error's words":      {echo(500, "application/json", `{"error":{"type":"x","code":%q}}`), "500"},
		"as a code":                {status(400, "application/json", `{"error":{"code":"`+testKey+`"}}`), "[key]"},
		"a part of it":             {status(400, "application/json", `{"error":{"message":"key `+testKey[:12]+`... is odd"}}`), `"key [key]... is odd"`},
		"where parts are usual":    {status(401, "application/json", `{"error":{"message":"Incorrect: sk-TE*****nop","code":"invalid_api_key"}}`), "401 invalid_api_key"},
		"in a page":                {echo(502, "text/html", `<pre>%s</pre>`), "502"},
		"in a page that is no 502": {echo(200, "text/html", `<pre>%s</pre>`), "content type"},
		"in a redirect":            {status(302, "text/html", testKey, "Location", "http://elsewhere.test/?key="+testKey), "302"},
		"in a response's error":    {echo(200, "application/json", `{"error":{"message":"%s"}}`), `"Bearer [key]"`},
		"in a broken response":     {echo(200, "application/json", `{"choices": %s`), "not valid JSON"},
		"in a header that is none": {func(w http.ResponseWriter, r *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(c, "HTTP/1.1 "+r.Header.Get("Authorization")+"\r\n\r\n")
				_ = c.Close()
			}
		}, "not HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := serve(t, row.answer, said("the redirect was followed"))
				defer p.close()
				u := failed(t, p.model())
				if !strings.Contains(u.Error(), row.keeps) {
					t.Errorf("the error says %q, want %q in it", u.Error(), row.keeps)
				}
				if n := len(p.got()); n != 1 {
					t.Errorf("%d requests were sent", n)
				}
			})
		})
	}
}

// Providers repeat requests in their errors; contracts keep arguments out of the log.
func TestTurn_KeepsTheRequestOutOfTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		secret := "the content of a report that nobody may log"
		p := serve(t, status(422, "application/json", `{"error":{"message":"field required, input: {'content': '`+secret+`'}"}}`))
		defer p.close()
		r := nodes.Request{Messages: []nodes.Message{{Role: nodes.RoleUser, Content: secret}}}
		_, err := p.model().Turn(t.Context(), r)
		if err == nil || strings.Contains(err.Error(), "nobody may log") || !strings.Contains(err.Error(), "field required") {
			t.Errorf("got %v", err)
		}
	})
}
