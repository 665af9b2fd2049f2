package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sallyport/tools/strictjson"
)

func reader(text string) (*lineReader, *replies) {
	owed := newReplies()
	owed.end() // nobody waits
	return newLineReader(io.NopCloser(strings.NewReader(text)), owed), owed
}

func TestLineReader_PassesOrRefusesALine(t *testing.T) {
	call := func(arguments string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":` + arguments + `}}`
	}
	mended := call("null") + "\n"
	for name, test := range map[string]struct {
		in, out string
		refused error
	}{
		"one":                    {`{"a":1}` + "\n", `{"a":1}` + "\n", nil},
		"no line end":            {`{"a":1}`, `{"a":1}` + "\n", nil},
		"white space around":     {" \t{\"a\":1} \r\n\n\r\n", `{"a":1}` + "\n", nil},
		"nothing":                {"", "", nil},
		"two":                    {"{}\n{}\n", "{}\n{}\n", nil},
		"after a refusal":        {"{}\n5\n{}\n", "{}\n", strictjson.ErrNotObject},
		"two on a line":          {"{}{}\n", "", strictjson.ErrTrailing},
		"split over lines":       {"{\n}\n", "", strictjson.ErrSyntax},
		"duplicate":              {`{"a":1,"a":2}` + "\n", "", strictjson.ErrDuplicate},
		"duplicate in arguments": {call(`{"a":1,"\u0061":2}`) + "\n", mended, nil},
		"surrogate in arguments": {call(`{"a":"\ud800"}`) + "\n", mended, nil},
		"bad text in arguments":  {call("{\"a\":\"\xff\"}") + "\n", mended, nil},
		"number in arguments":    {call(`{"a":1e999999}`) + "\n", mended, nil},
		"depth in arguments":     {call(strings.Repeat("[", 99)+strings.Repeat("]", 99)) + "\n", mended, nil},
		"syntax in arguments":    {call(`{"a":}`) + "\n", "", strictjson.ErrSyntax},
		"good and bad arguments": {strings.Replace(call(`{"a":1,"a":1}`), `"name"`, `"arguments":{},"name"`, 1) + "\n", "", strictjson.ErrDuplicate},
		"arguments and beside":   {strings.Replace(call(`{"a":1,"a":1}`), `"id":1`, `"id":1,"id":2`, 1) + "\n", "", strictjson.ErrDuplicate},
		"another method":         {strings.Replace(call(`{"a":1,"a":1}`), "tools/call", "prompts/get", 1) + "\n", "", strictjson.ErrDuplicate},
		"arguments elsewhere":    {`{"id":1,"method":"tools/call","arguments":{"a":1,"a":1},"params":{}}` + "\n", "", strictjson.ErrDuplicate},
	} {
		r, _ := reader(test.in)
		out, err := io.ReadAll(r)
		if err != nil || string(out) != test.out {
			t.Errorf("%s: %q, %v; want %q", name, out, err, test.out)
		}
		refused := r.refusal()
		if test.refused == nil && refused != nil || test.refused != nil && (!errors.Is(refused, test.refused) || !errors.Is(refused, ErrFrame)) {
			t.Errorf("%s: refused %v, want %v", name, refused, test.refused)
		}
	}
}

func TestLineReader_BoundsALine(t *testing.T) {
	line := func(size int) string { return `{"a":"` + strings.Repeat("x", size-8) + `"}` }
	for _, end := range []string{"", "\n", "\r\n"} {
		r, _ := reader(line(MaxLine) + end)
		if out, _ := io.ReadAll(r); len(out) != MaxLine+1 || r.refusal() != nil {
			t.Errorf("at the limit with %q: %d bytes, %v", end, len(out), r.refusal())
		}
		r, _ = reader(line(MaxLine+1) + end)
		if out, _ := io.ReadAll(r); len(out) != 0 || !errors.Is(r.refusal(), strictjson.ErrTooLarge) {
			t.Errorf("over the limit with %q: %d bytes, %v", end, len(out), r.refusal())
		}
	}
	endless := newLineReader(io.NopCloser(blanks{}), newReplies())
	if n, err := endless.Read(make([]byte, 10)); n != 0 || err != io.EOF || endless.refusal() == nil {
		t.Errorf("a line of endless blanks: %d %v", n, err)
	}
}

type blanks struct{}

func (blanks) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// The end of the input is held back until the replies are written, and no longer than lastReplies.
func TestReplies_HoldBackTheEnd(t *testing.T) {
	ask := `{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":"b","method":"ping"}` + "\n" +
		`{"jsonrpc":"2.0","id":3,"method":"subscriptions/listen"}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/x"}` + "\n" +
		`{"jsonrpc":"2.0","id":4,"method":"slow"}` + "\n" + `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}` + "\n"
	for name, test := range map[string]struct {
		answer func(w *replyWriter, r *lineReader)
		took   time.Duration
	}{
		"all answered": {func(w *replyWriter, _ *lineReader) {
			time.Sleep(time.Second)
			write(t, w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
			write(t, w, `{"jsonrpc":"2.0","id":9,"method":"ping"}`)
			time.Sleep(time.Second)
			write(t, w, `{"jsonrpc":"2.0","id":"b","error":{}}`)
		}, 2 * time.Second},
		"one is not": {func(w *replyWriter, _ *lineReader) {
			write(t, w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		}, lastReplies},
		"closed": {func(_ *replyWriter, r *lineReader) {
			time.Sleep(time.Second)
			_ = r.Close()
		}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				owed := newReplies()
				r := newLineReader(io.NopCloser(strings.NewReader(ask)), owed)
				lines := bufio.NewReader(r)
				for range strings.Count(ask, "\n") {
					if _, err := lines.ReadString('\n'); err != nil {
						t.Fatal(err)
					}
				}
				begun := time.Now()
				go test.answer(&replyWriter{out: nopCloser{io.Discard}, owed: owed}, r)
				if _, err := lines.ReadByte(); err != io.EOF {
					t.Error(err)
				}
				if took := time.Since(begun); took != test.took {
					t.Errorf("ended after %v, want %v", took, test.took)
				}
			})
		})
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

func write(t *testing.T, w io.Writer, line string) {
	if _, err := io.WriteString(w, line+"\n"); err != nil {
		t.Error(err)
	}
}

// What passes is strict JSON, one object a line, whatever comes in.
func FuzzLineReader(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1,"a":2}}}`,
		"{}\n\n[]\n", `{"method":"tools/call","params":{"arguments":"\ud800"}}`, "{\"a\":\"\xff\"}", `{"method":"tools/call","params":5}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		r, _ := reader(string(input))
		out, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out) {
			if _, err := strictjson.Members(line); err != nil {
				t.Fatalf("%q passed: %v", line, err)
			}
		}
	})
}
