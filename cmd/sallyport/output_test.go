package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestEscapeJSON_MeansTheSameAndHidesNothing(t *testing.T) {
	for _, text := range []string{"plain 证据 🙂", "a\u202Eb\u200b\u009b\ufeff\U000E0041\u2028c\x7f", "⟦\u2800"} {
		data, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		shown := escapeJSON(string(data))
		if strings.ContainsAny(shown, "\u202e\u200b\u009b\ufeff\U000E0041\u2028") {
			t.Errorf("%q lets %q through", text, shown)
		}
		var back string
		if err := json.Unmarshal([]byte(shown), &back); err != nil || back != text {
			t.Errorf("%q comes back as %q, %v", text, back, err)
		}
	}
}
