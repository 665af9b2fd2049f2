package openai_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"sallyport/nodes"
	"sallyport/nodes/llm/chat"
	"sallyport/nodes/llm/openai"
)

// The list of models is one GET with the key, and fails as a turn does: with a reason,
// and without the key.
func TestModels_AsksOnceAndFailsAsATurnDoes(t *testing.T) {
	p := serve(t,
		whole(`{"data":[{"id":"a"},{"id":"b"}]}`),
		status(http.StatusUnauthorized, "application/json", `{"error":{"message":"wrong key `+testKey+`","code":"invalid_api_key"}}`),
		status(http.StatusNotFound, "text/plain", `no such page`),
		status(http.StatusForbidden, "application/json", `{}`),
		whole(`<html>`),
	)
	defer p.close()
	got, err := p.model().Models(t.Context())
	if err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%v, %v", got, err)
	}
	if r := p.got()[0]; r.url != "/v1/models" || r.header.Get("Authorization") != "Bearer "+testKey || r.body != "" {
		t.Errorf("%+v", r)
	}
	for _, want := range []string{chat.ReasonAuth, chat.ReasonNotFound, chat.ReasonAuth, chat.ReasonBadResponse} {
		_, err := p.model().Models(t.Context())
		var u *nodes.Unavailable
		if !errors.As(err, &u) || u.Reason != want || strings.Contains(err.Error(), testKey) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if n := len(p.got()); n != 5 {
		t.Errorf("%d requests", n)
	}
}

// A model that is asked otherwise leaves the first as it is.
func TestOtherwise_ChangesACopy(t *testing.T) {
	p := serve(t, whole(`{}`), whole(`{}`))
	defer p.close()
	m := p.model(func(c *openai.Config) { c.MaxTokens = 5 })
	ask := nodes.Request{Messages: []nodes.Message{{Role: nodes.RoleUser, Content: "x"}}}
	_, _ = m.Otherwise(func(p *chat.Profile, o *chat.Options) { p.MaxTokens, o.MaxTokens, o.Stream = "max_tokens", 7, true }).Turn(t.Context(), ask)
	_, _ = m.Turn(t.Context(), ask)
	got := p.got()
	if len(got) != 2 || !strings.Contains(got[0].body, `"max_tokens":7`) || !strings.Contains(got[0].body, `"stream":true`) ||
		!strings.Contains(got[1].body, `"max_completion_tokens":5`) || !strings.Contains(got[1].body, `"stream":false`) {
		t.Errorf("%+v", got)
	}
}

// What the doctor prints of a list holds no key, and no name without an end.
func TestModels_TakesTheKeyOutOfNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, whole(`{"data":[{"id":"m-`+testKey+`"},{"id":"`+strings.Repeat("x", 5000)+`"},{"id":"test-model"}]}`), silent(""))
		defer p.close()
		got, err := p.model().Models(t.Context())
		if err != nil || len(got) != 3 || got[0] != "m-[key]" || len(got[1]) > 510 || got[2] != "test-model" {
			t.Errorf("%q, %v", got, err)
		}
		// Its time is its own.
		if _, err := p.model().Models(t.Context()); err == nil || !strings.Contains(err.Error(), "nothing came in 15s") {
			t.Errorf("%v", err)
		}
	})
}
