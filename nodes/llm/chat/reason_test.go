package chat_test

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sallyport/nodes/llm/chat"
)

func TestFailure_IsNamed(t *testing.T) {
	for name, row := range map[string]struct {
		status int
		body   string
		reason string
	}{
		"a rate limit":           {429, `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`, "rate_limited"},
		"an empty account":       {429, `{"error":{"message":"?","type":"insufficient_quota","code":"insufficient_quota"}}`, "quota"},
		"an unpaid account":      {402, `{"error":{"message":"Insufficient Balance"}}`, "quota"},
		"overloaded":             {503, ``, "overloaded"},
		"overloaded, by 529":     {529, `<html>`, "overloaded"},
		"a broken server":        {500, `{"error":"context length"}`, "server_error"},
		"a gateway":              {502, `<html>`, "server_error"},
		"a wrong key":            {401, `{"error":{"code":"invalid_api_key"}}`, "auth"},
		"a forbidden model":      {403, ``, "auth"},
		"a model that is absent": {404, `{"error":{"code":"model_not_found"}}`, "not_found"},
		"a bad request":          {400, `{"error":{"code":"unknown_parameter"}}`, "refused"},
		"a bad entity":           {422, `{"detail":[{"msg":"?"}]}`, "refused"},
		"too long, by code":      {400, `{"error":{"code":"context_length_exceeded"}}`, "context_too_long"},
		"too long, by type":      {400, `{"error":{"code":400,"type":"exceed_context_size_error"}}`, "context_too_long"},
		"too long, by words":     {400, `{"object":"error","message":"This model's maximum context length is 4096 tokens."}`, "context_too_long"},
		"too large":              {413, ``, "context_too_long"},
		"a filtered request":     {400, `{"error":{"code":"content_filter","message":"?"}}`, "filtered"},
		"took too long":          {408, ``, "timeout"},
		"a redirect":             {307, ``, "redirected"},
		"no content":             {204, ``, "bad_response"},
		"an early hint":          {103, ``, "bad_response"},
		"an error twice":         {400, `{"error":{"code":"content_filter"},"error":{}}`, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := reason(t, chat.Failure(row.status, []byte(row.body))); got != row.reason {
				t.Errorf("reason %q, want %q", got, row.reason)
			}
		})
	}
}

func TestFailure_QuotesWhatTheProviderSays(t *testing.T) {
	u := chat.Failure(400, []byte(`{"error":{"message":"a\u001b[31m\nb","type":"evil\ntype","code":"plain_word"}}`))
	if got := u.Err.Error(); got != `the provider says 400 plain_word: "a\x1b[31m\nb"` {
		t.Errorf("%s", got)
	}
	long := chat.Failure(400, []byte(`{"error":{"message":"`+strings.Repeat("é", 5000)+`"}}`))
	var e *chat.ProviderError
	if !errors.As(long, &e) || len(e.Message) != 4096 {
		t.Errorf("a message of 10,000 bytes is kept with %d", len(e.Message))
	}
}

// The page for operators lists exactly the reasons and profiles that there are.
func TestProvidersPage_SaysWhatTheCodeSays(t *testing.T) {
	page, err := os.ReadFile("../../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := func(heading string) []string {
		_, section, ok := strings.Cut(string(page), "\n## "+heading+"\n")
		if !ok {
			t.Fatalf("the page has no section %q", heading)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		var names []string
		for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(section, -1) {
			names = append(names, m[1])
		}
		return names
	}
	if got := rows("When there is no turn"); !slices.Equal(got, chat.Reasons()) {
		t.Errorf("reasons on the page: %v\nin the code: %v", got, chat.Reasons())
	}
	if got := rows("Profiles"); !slices.Equal(got, chat.Profiles()) {
		t.Errorf("profiles on the page: %v\nin the code: %v", got, chat.Profiles())
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]* \\| (final|again) \\|").FindAllStringSubmatch(string(page), -1) {
		if chat.Final(m[1]) != (m[2] == "final") {
			t.Errorf("the page says %s of %s", m[2], m[1])
		}
	}
}
