package llm_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"sallyport/nodes"
)

// Turns that gave none are not in the transcript: the request says how many there were.
func TestScript_FailuresAreCountedByAttempts(t *testing.T) {
	s := load(t, `script:
  - unavailable: rate_limited
  - unavailable: {reason: overloaded, after: 5s}
  - say: one
  - raw: <html>
  - say: two
  - unavailable: {reason: not_found, final: true}
`)
	for _, tt := range []struct {
		turns, attempt int
		text, reason   string
		after          time.Duration
		final          bool
	}{
		{0, 0, "", "rate_limited", 0, false}, {0, 1, "", "overloaded", 5 * time.Second, false}, {0, 2, "one", "", 0, false}, {0, 3, "one", "", 0, false},
		{1, 0, "", "bad_response", 0, false}, {1, 1, "two", "", 0, false}, {2, 0, "", "not_found", 0, true},
	} {
		r := request(tt.turns, "", "")
		r.Attempt = tt.attempt
		got, err := s.Turn(t.Context(), r)
		var u *nodes.Unavailable
		errors.As(err, &u)
		switch {
		case tt.reason == "" && (err != nil || got.Text != tt.text):
			t.Errorf("turn %d, attempt %d: %v, %v, want %q", tt.turns, tt.attempt, got, err, tt.text)
		case tt.reason != "" && (u == nil || u.Reason != tt.reason || u.After != tt.after || u.Final != tt.final):
			t.Errorf("turn %d, attempt %d: %v, want %q", tt.turns, tt.attempt, err, tt.reason)
		}
	}
	if _, err := s.Turn(t.Context(), request(3, "", "")); !errors.Is(err, nodes.ErrModelFault) {
		t.Errorf("past the end: %v", err)
	}
}

func TestScript_ReadsWhatProvidersSend(t *testing.T) {
	s := load(t, `script:
  - raw: {choices: [{index: 0, finish_reason: stop, message: {role: assistant, content: whole}}]}
  - chunks:
      - {choices: [{index: 0, delta: {content: in }}]}
      - '{"choices":[{"index":0,"delta":{"content":"parts"},"finish_reason":"stop"}]}'
      - "[DONE]"
  - profile: ollama
    raw: '{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"local"}}]}'
`)
	for turn, want := range []string{"whole", "inparts", "local"} {
		got, err := s.Turn(t.Context(), request(turn, "", ""))
		if err != nil || got.Text != want || got.Finish != nodes.FinishStop {
			t.Errorf("turn %d: %+v, %v, want %q", turn+1, got, err, want)
		}
	}
}

func TestScript_AProvidersTurnIsWhole(t *testing.T) {
	for text, want := range map[string]string{
		"script: [{raw: x, say: y}]":                            "is the whole turn",
		"script: [{raw: x, chunks: [y]}]":                       "not several",
		"script: [{say: x, profile: openai}]":                   "profile says how",
		"script: [{raw: x, profile: opnai}]":                    "is no profile: there are openai, azure",
		"script: [{unavailable: {final: true}}]":                "say why",
		"script: [{unavailable: {reason: cut, after: 5}}]":      "no length of time",
		"script: [{unavailable: {reason: cut, finally: true}}]": "finally",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
