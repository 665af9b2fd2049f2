package openai_test

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/nodes"
	"sallyport/nodes/llm/openai"
)

func TestNew_RefusesWhatCannotWork(t *testing.T) {
	for name, row := range map[string]struct {
		config openai.Config
		want   string
	}{
		"no model":               {openai.Config{}, "name is missing"},
		"an unknown profile":     {openai.Config{Model: "m", Profile: "gpt"}, `no profile "gpt"`},
		"a profile and no place": {openai.Config{Model: "m", Profile: "ollama"}, "ollama needs a base URL"},
		"a negative timeout":     {openai.Config{Model: "m", Timeout: -1}, "is none"},
		"negative tokens":        {openai.Config{Model: "m", MaxTokens: -1}, "is none"},
		"no URL":                 {openai.Config{Model: "m", BaseURL: "localhost"}, "is none"},
		"another scheme":         {openai.Config{Model: "m", BaseURL: "ftp://x/v1"}, `"ftp"`},
		"a password":             {openai.Config{Model: "m", BaseURL: "https://a:b@x/v1"}, "place of its own"},
		"a query":                {openai.Config{Model: "m", BaseURL: "https://x/v1?key=1"}, "goes on"},
		"the whole address":      {openai.Config{Model: "m", BaseURL: "https://x/v1/chat/completions/"}, "without it"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := openai.New(row.config); err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
	if m, err := openai.New(openai.Config{Model: "m"}); err != nil || m.Profile() != "openai" {
		t.Errorf("a model's name is enough: %v", err)
	}
}

func TestTurn_AsksTheConfiguredEndpoint(t *testing.T) {
	const azure = "/openai/deployments/gpt%2Fx/chat/completions?api-version="
	for name, row := range map[string]struct {
		base, profile, version string
		url, header            string
	}{
		"a path":                   {"http://p.test/v1", "", "", "/v1/chat/completions", "Authorization"},
		"a slash at the end":       {"http://p.test/v1/", "", "", "/v1/chat/completions", "Authorization"},
		"no path":                  {"http://p.test", "deepseek", "", "/chat/completions", "Authorization"},
		"azure, a resource":        {"http://p.test", "azure", "", azure + openai.DefaultAPIVersion, "Api-Key"},
		"azure, an older form":     {"http://p.test/openai/", "azure", "2025-01-01", azure + "2025-01-01", "Api-Key"},
		"azure, a deployment":      {"http://p.test/openai/deployments/d", "azure", "", "/openai/deployments/d/chat/completions?api-version=" + openai.DefaultAPIVersion, "Api-Key"},
		"azure, the newer form":    {"http://p.test/openai/v1", "azure", "", "/openai/v1/chat/completions", "Api-Key"},
		"azure, newer and a date":  {"http://p.test/openai/v1", "azure", "preview", "/openai/v1/chat/completions?api-version=preview", "Api-Key"},
		"a version without azure":  {"http://p.test/v1", "openai", "2025-01-01", "/v1/chat/completions", "Authorization"},
		"a guess by the host name": {"http://x.openai.azure.com", "", "", azure + openai.DefaultAPIVersion, "Api-Key"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := serve(t, said("hi"))
				defer p.close()
				m := p.model(func(c *openai.Config) {
					c.Model, c.BaseURL, c.Profile, c.APIVersion = "gpt/x", row.base, row.profile, row.version
				})
				if _, err := m.Turn(t.Context(), simple); err != nil {
					t.Fatal(err)
				}
				got := p.got()[0]
				if got.url != row.url {
					t.Errorf("asked %s, want %s", got.url, row.url)
				}
				for _, name := range []string{"Authorization", "Api-Key"} {
					if has := strings.Contains(got.header.Get(name), testKey); has != (name == row.header) {
						t.Errorf("header %s holds %q", name, got.header.Get(name))
					}
				}
			})
		})
	}
}

// What the library would read from the environment has no effect; nor does it tell of
// this machine.
func TestTurn_ReadsNoEnvironment(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_BASE_URL", "OPENAI_WEBHOOK_SECRET"} {
		t.Setenv(name, "http://from-the-environment.test")
	}
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, said("hi"), said("hi"))
		defer p.close()
		if _, err := p.model(func(c *openai.Config) { c.Key = nil }).Turn(t.Context(), simple); err != nil {
			t.Fatal(err)
		}
		if _, err := p.model(func(c *openai.Config) { c.Key = func() (string, error) { return "", nil } }).Turn(t.Context(), simple); err != nil {
			t.Fatal(err)
		}
		for _, r := range p.got() {
			names := strings.Join(slices.Sorted(maps.Keys(r.header)), " ")
			if names != "Accept Accept-Encoding Connection Content-Length Content-Type User-Agent" || r.header.Get("User-Agent") != "sallyport" {
				t.Errorf("headers %v", r.header)
			}
			if r.url != "/v1/chat/completions" {
				t.Errorf("asked %s", r.url)
			}
		}
	})
}

func TestTurn_AsksForTheKeyEachTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, said("hi"), said("hi"))
		defer p.close()
		keys := []string{"first-key", "second-key"}
		m := p.model(func(c *openai.Config) {
			c.Key = func() (string, error) {
				if len(keys) == 0 {
					return "", errors.New("the file has gone")
				}
				k := keys[0]
				keys = keys[1:]
				return k, nil
			}
		})
		for range 2 {
			if _, err := m.Turn(t.Context(), simple); err != nil {
				t.Fatal(err)
			}
		}
		got := p.got()
		if got[0].header.Get("Authorization") != "Bearer first-key" || got[1].header.Get("Authorization") != "Bearer second-key" {
			t.Errorf("%v, %v", got[0].header, got[1].header)
		}
		if _, err := m.Turn(t.Context(), simple); !errors.Is(err, nodes.ErrModelFault) || len(p.got()) != 2 {
			t.Errorf("without a key: %v after %d requests", err, len(p.got()))
		}
	})
}

// Requests that run at once keep their own key: the library shares what it appends to.
func TestTurn_KeysOfRequestsAtOnceAreNotMixedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 50
		arrived := make(chan struct{})
		together := func(w http.ResponseWriter, r *http.Request) {
			<-arrived
			said(r.Header.Get("Authorization"))(w, r)
		}
		p := serve(t, slices.Repeat([]answer{together}, many)...)
		defer p.close()
		var mu sync.Mutex
		n := 0
		m := p.model(func(c *openai.Config) {
			c.Key = func() (string, error) {
				mu.Lock()
				defer mu.Unlock()
				n++
				return fmt.Sprintf("key-%d", n), nil
			}
		})
		heard := map[string]bool{}
		var wait sync.WaitGroup
		for range many {
			wait.Go(func() {
				r, err := m.Turn(t.Context(), simple)
				mu.Lock()
				defer mu.Unlock()
				if err != nil || heard[r.Text] {
					t.Errorf("%q, %v", r.Text, err)
				}
				heard[r.Text] = true
			})
		}
		synctest.Wait()
		close(arrived)
		wait.Wait()
		if len(heard) != many {
			t.Errorf("%d keys were used for %d requests", len(heard), many)
		}
	})
}

func TestTurn_SendsNoKeyThatIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t)
		defer p.close()
		for _, key := range []string{"two words", "a\nb: c", "schlüssel", "\x7f"} {
			_, err := p.model(func(c *openai.Config) { c.Key = func() (string, error) { return key, nil } }).Turn(t.Context(), simple)
			if !errors.Is(err, nodes.ErrModelFault) || strings.Contains(err.Error(), key) || len(p.got()) != 0 {
				t.Errorf("%q: %v", key, err)
			}
		}
	})
}

func TestTurn_SendsWhatWasChosen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, said("hi"))
		defer p.close()
		temperature, seed := 0.5, int64(7)
		m := p.model(func(c *openai.Config) { c.MaxTokens, c.Temperature, c.Seed = 50, &temperature, &seed })
		if _, err := m.Turn(t.Context(), simple); err != nil {
			t.Fatal(err)
		}
		r := p.got()[0]
		want := `{"max_completion_tokens":50,"messages":[{"content":"hello","role":"user"}],"model":"test-model","seed":7,"stream":false,"temperature":0.5}`
		if r.body != want || r.header.Get("Content-Type") != "application/json" {
			t.Errorf("sent %s as %s", r.body, r.header.Get("Content-Type"))
		}
	})
}

// The client's own connections work as a caller's do, and a caller's client is not changed.
func TestNew_LeavesTheCallersClientAlone(t *testing.T) {
	own := &http.Client{Timeout: time.Second}
	if _, err := openai.New(openai.Config{Model: "m", HTTP: own}); err != nil {
		t.Fatal(err)
	}
	if own.Transport != nil || own.CheckRedirect != nil {
		t.Error("the client was changed")
	}
}
