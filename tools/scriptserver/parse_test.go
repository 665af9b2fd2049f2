package scriptserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/tools/scriptserver"
)

func TestParse_SaysWhere(t *testing.T) {
	for text, want := range map[string]string{
		`{"tools":[{"name":"a","replies":[{"txt":"b"}]}]}`:   `s.json:1:35: tools.0.replies.0.txt: `,
		"{\n  \"tools\": [\n    {\"nam\": \"a\"}\n  ]\n}":    `s.json:3:6: tools.0.nam: `,
		`{"tools":[{"name":"a","description":{"tims":3}}]}`:  `tools.0.description: unknown key "tims"`,
		`{"tools":[{"name":"a","when":{"lists":"x"}}]}`:      `tools.0.when.lists: "x" is no range of counts`,
		`{"tools":[{"name":"a","replies":[{"delay":"5"}]}]}`: `tools.0.replies.0.delay: "5" is no length of time`,
		`{"tools":[{"name":"a","count":"5"}]}`:               `s.json:1:31: tools.0.count: `,
		`{"tools":[{"name":"a","count":-1}]}`:                `s.json: tools.0.count: it is between 1 and 10000`,
		`{"tools":[{"name":"a","name":"b"}]}`:                `duplicate member name`,
		`{"ignores":["all"]}`:                                `ignores.0: "all" cannot be ignored`,
		`{"name":"a"} {}`:                                    `data after the JSON value`,
		`[]`:                                                 `s.json:`,
		``:                                                   `not valid JSON`,
		`{"capabilities":` + strings.Repeat("[", 80) + `}`:   `nested too deeply`,
		`{"name":"` + strings.Repeat("a", 1<<20) + `"}`:      `s.json`,
	} {
		_, err := scriptserver.Parse("s.json", []byte(text))
		var parse *scriptserver.ParseError
		if len(text) > 1<<20 { // what people write is bounded elsewhere; a description that a Host wrote may be large
			if err != nil {
				t.Errorf("a long one: %v", err)
			}
			continue
		}
		if !errors.As(err, &parse) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %q", text, err, want)
		}
	}
}

func TestSpan_IsReadFromNumbersAndTexts(t *testing.T) {
	for text, want := range map[string]scriptserver.Span{
		`1`: {1, 1}, `"3"`: {3, 3}, `"2-4"`: {2, 4}, `"2-"`: {2, math.MaxInt}, `"-4"`: {1, 4}, `2147483647`: {math.MaxInt32, math.MaxInt32},
	} {
		var s scriptserver.Span
		if err := json.Unmarshal([]byte(text), &s); err != nil || s != want {
			t.Errorf("%s: %v, %v", text, s, err)
		}
		again, err := json.Marshal(s)
		var back scriptserver.Span
		if err != nil || json.Unmarshal(again, &back) != nil || back != want {
			t.Errorf("%s is written %s: %v", text, again, err)
		}
	}
	for _, text := range []string{`0`, `-1`, `1.5`, `"-"`, `""`, `"a"`, `"1-2-3"`, `"4-2"`, `"0-2"`, `" 1"`, `2147483648`, `true`, `[1]`} {
		if err := json.Unmarshal([]byte(text), new(scriptserver.Span)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestReadRecord_RefusesWhatIsNoRecord(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, scriptserver.RecordFile), []byte("{\"start\":1}\nnot a line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := scriptserver.ReadRecord(folder); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
}

// A line that is too long to be anybody's ends the input; one below the limit is answered.
func TestServer_BoundsALine(t *testing.T) {
	t.Parallel()
	line := func(size int) string {
		frame := `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"%s"}}`
		return fmt.Sprintf(frame, strings.Repeat("a", size-len(frame)+2))
	}
	const most = 16 << 20
	for size, answers := range map[int]string{most - 1: `{"jsonrpc":"2.0","id":1,"result":{}}`, most: ""} { // with its line feed
		if got := pipe(t, "", "", line(size), pingLine); got[0] != answers {
			t.Errorf("%d bytes: %.100q", size, got)
		}
	}
}

// What a Host sends that is no message is noted and answered as JSON-RPC says.
func TestServer_AnswersJunk(t *testing.T) {
	t.Parallel()
	for _, junk := range []string{`junk`, `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `{"a":1,"a":2}`, `{}`, `{"id":1,"method":5}`} {
		if got := pipe(t, "", "", junk); !strings.Contains(got[0], `"id":null,"error":{"code":-32700`) {
			t.Errorf("%s: %q", junk, got)
		}
	}
}
