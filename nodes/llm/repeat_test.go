package llm

import (
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

func TestArgsRepeatATextInTheValues(t *testing.T) {
	for written, want := range map[string]string{
		`{a: {$text: {text: xy, times: 3}}}`:          `{"a":"xyxyxy"}`,
		`{a: [{$text: {text: "\n", times: 2}}, 1]}`:   `{"a":["\n\n",1]}`,
		`{a: {$text: {text: é, times: 262144}}}`:      `{"a":"` + strings.Repeat("é", 262_144) + `"}`,
		`{a: {text: xy, times: 3}}`:                   `{"a":{"text":"xy","times":3}}`,
		`{a: {$text: {text: x, times: 2}, b: plain}}`: `{"a":{"$text":{"text":"x","times":2},"b":"plain"}}`,
	} {
		var got Args
		if err := yaml.Unmarshal([]byte(written), &got); err != nil || string(got) != want {
			t.Errorf("%.80s: got %.80s, %v", written, got, err)
		}
	}
	for _, written := range []string{
		`{a: {$text: {text: é, times: 262145}}}`, `{a: {$text: {text: x, times: 0}}}`, `{a: {$text: {times: 3}}}`,
		`{a: {$text: x}}`, `{a: {$text: {text: x, times: many}}}`,
	} {
		var got Args
		if err := yaml.Unmarshal([]byte(written), &got); err == nil {
			t.Errorf("%s: got %.80s, want an error", written, got)
		}
	}
}
