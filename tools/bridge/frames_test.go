package bridge

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"sallyport/tools/strictjson"
)

// reply is a frame of n bytes.
func replyOf(n int) string {
	const head, foot = `{"jsonrpc":"2.0","id":1,"result":"`, `"}`
	return head + strings.Repeat("a", n-len(head)-len(foot)) + foot
}

func TestParseFrame(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	result := func(v string) string { return `{"jsonrpc":"2.0","id":1,"result":` + v + `}` }
	for name, tc := range map[string]struct {
		line string
		want FrameReason // "" is accepted
	}{
		"a reply":                          {`{"jsonrpc":"2.0","id":1,"result":{}}`, ""},
		"an error":                         {`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m"}}`, ""},
		"a request":                        {`{"jsonrpc":"2.0","id":"a","method":"ping"}`, ""},
		"a notification":                   {`{"jsonrpc":"2.0","method":"notifications/x","params":{}}`, ""},
		"members of an extension":          {`{"jsonrpc":"2.0","id":1,"result":{},"extra":1}`, ""},
		"a carriage return":                {"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r", ""},
		"1 MiB":                            {replyOf(MaxFrame), ""},
		"1 MiB and a byte":                 {replyOf(MaxFrame + 1), FrameTooLong},
		"depth 64":                         {result(nested(63)), ""},
		"depth 65":                         {result(nested(64)), FrameDepth},
		"depth 900":                        {result(nested(900)), FrameDepth},
		"a number of 32 characters":        {result(strings.Repeat("1", 32)), ""},
		"a number of 33 characters":        {result(strings.Repeat("1", 33)), FrameNumber},
		"exponent 308":                     {result("1e308"), ""},
		"exponent 309":                     {result("1e309"), FrameNumber},
		"exponent -309":                    {result("1e-309"), FrameNumber},
		"300 numbers with giant exponents": {result("[" + strings.Repeat("1e999999,", 299) + "1e999999]"), FrameNumber},
		"a junk line":                      {"Server listening on stdio", FrameSyntax},
		"an empty line":                    {"", FrameSyntax},
		"two values":                       {`{"jsonrpc":"2.0","id":1,"result":{}} {}`, FrameSyntax},
		"a batch":                          {`[{"jsonrpc":"2.0","id":1,"result":{}}]`, FrameEnvelope},
		"a duplicate name":                 {result(`{"a":1,"a":2}`), FrameDuplicate},
		"a duplicate name by escape":       {result(`{"a":1,"\u0061":2}`), FrameDuplicate},
		"a second result":                  {`{"jsonrpc":"2.0","id":1,"result":{},"result":{}}`, FrameDuplicate},
		"a lone surrogate":                 {result(`"\ud800"`), FrameUTF8},
		"not UTF-8":                        {result("\"\xff\""), FrameUTF8},
		"version 1.0":                      {`{"jsonrpc":"1.0","id":1,"result":{}}`, FrameEnvelope},
		"no version":                       {`{"id":1,"result":{}}`, FrameEnvelope},
		"id null":                          {`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}`, FrameEnvelope},
		"id an object":                     {`{"jsonrpc":"2.0","id":{},"result":{}}`, FrameEnvelope},
		"a reply without id":               {`{"jsonrpc":"2.0","result":{}}`, FrameEnvelope},
		"result and error":                 {`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`, FrameEnvelope},
		"neither":                          {`{"jsonrpc":"2.0","id":1}`, FrameEnvelope},
		"an error that is text":            {`{"jsonrpc":"2.0","id":1,"error":"no"}`, FrameEnvelope},
		"method and result":                {`{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, FrameEnvelope},
		"a method that is no text":         {`{"jsonrpc":"2.0","id":1,"method":5}`, FrameEnvelope},
		"a number":                         {"5", FrameEnvelope},
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			_, err := parseFrame([]byte(tc.line))
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			var refused *FrameError
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && !errors.As(err, &refused):
				t.Errorf("accepted, or another error: %v", err)
			case tc.want != "" && refused.Reason != tc.want:
				t.Errorf("refused as %s, want %s", refused.Reason, tc.want)
			}
		})
	}
}

func TestParseFrame_KeepsTheBytesOfAResult(t *testing.T) {
	const result = `{"z":9007199254740993,"a":1.50,"text":"<&> é"}`
	f, err := parseFrame([]byte(`{"jsonrpc":"2.0", "id":"x", "result": ` + result + ` }`))
	if err != nil {
		t.Fatal(err)
	}
	if f.id != `"x"` || string(f.result) != result {
		t.Errorf("id %s, result %s", f.id, f.result)
	}
}

func TestFrameReader(t *testing.T) {
	exact := replyOf(MaxFrame)
	r := newFrameReader(strings.NewReader("first\n" + exact + "\nlast"))
	for _, want := range []string{"first", exact} {
		line, err := r.next()
		if err != nil || string(line) != want {
			t.Fatalf("line of %d bytes, %v; want %d", len(line), err, len(want))
		}
	}
	if line, err := r.next(); err != io.EOF {
		t.Errorf("what follows the last line feed: %q, %v", line, err)
	}
}

// endless is a line without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return copy(p, bytes.Repeat([]byte("a"), len(p))), nil
}

// A line of any length is refused after little more than 1 MiB of it.
func TestFrameReader_BoundsALine(t *testing.T) {
	e := &endless{}
	_, err := newFrameReader(e).next()
	var refused *FrameError
	if !errors.As(err, &refused) || refused.Reason != FrameTooLong {
		t.Fatalf("%v", err)
	}
	if e.read > MaxFrame+64<<10 {
		t.Errorf("%d bytes were read", e.read)
	}
}

// FuzzFrames holds the filter to its promise: whatever a line is, it is refused for
// one of the fixed reasons, or it is a message that decodes to the same bytes again.
func FuzzFrames(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"a":[1,2.5e3,"\u00e9"]}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"\u0031","method":"ping","params":{}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"<b>"}}`))
	f.Add([]byte(`[{"jsonrpc":"2.0"}]`))
	f.Add([]byte("\xff\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := newFrameReader(bytes.NewReader(data))
		for {
			line, err := r.next()
			if err != nil {
				return
			}
			got, err := parseFrame(line)
			var refused *FrameError
			if err != nil {
				if !errors.As(err, &refused) || refused.Reason == "" {
					t.Fatalf("an error that is no refusal: %v", err)
				}
				continue
			}
			if strictjson.Check(line, strictjson.FrameLimits) != nil {
				t.Fatal("accepted what the strict check refuses")
			}
			if got.reply == (got.method != "") || got.reply && got.id == "" {
				t.Fatalf("neither reply nor request: %+v", got)
			}
			for _, part := range [][]byte{got.result, got.fault} {
				if part == nil {
					continue
				}
				again, err := strictjson.Compact(part)
				if err != nil || !bytes.Equal(again, part) {
					t.Fatalf("part %q compacts to %q: %v", part, again, err)
				}
			}
		}
	})
}
