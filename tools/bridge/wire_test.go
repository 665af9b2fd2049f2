package bridge

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// peer is the server's side of a wire, played by a test.
type peer struct {
	t   *testing.T
	in  *bufio.Reader // what the Host sends
	out *os.File
	hin *os.File
}

func newPeer(t *testing.T) (*wire, *peer) {
	t.Helper()
	inR, inW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := inR.SetReadDeadline(time.Now().Add(patient)); err != nil { // a test fails rather than hang
		t.Fatal(err)
	}
	w := newWire(outR, inW)
	t.Cleanup(func() {
		_ = w.Close()
		for _, f := range []*os.File{inR, inW, outR, outW} {
			_ = f.Close()
		}
		w.wait()
	})
	return w, &peer{t: t, in: bufio.NewReader(inR), out: outW, hin: inR}
}

func (p *peer) hears(want string) {
	p.t.Helper()
	line, err := p.in.ReadString('\n')
	if err != nil || !strings.Contains(line, want) {
		p.t.Fatalf("the server hears %q, %v; want %s", line, err, want)
	}
}

func (p *peer) says(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.out, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// mustEnd waits for the connection to end.
func (w *wire) mustEnd(t *testing.T) {
	t.Helper()
	select {
	case <-w.done:
	case <-time.After(patient):
		t.Fatal("the connection goes on")
	}
}

type answered struct {
	f    frame
	sent bool
	err  error
}

func ask(w *wire, ctx context.Context, id string) <-chan answered {
	c := make(chan answered, 1)
	go func() {
		f, sent, err := w.exchange(ctx, id, "tools/call", []byte(`{}`))
		c <- answered{f, sent, err}
	}()
	return c
}

func TestWire_GivesEachReplyToItsRequest(t *testing.T) {
	w, p := newPeer(t)
	first, second := ask(w, within(t, patient), "1001"), ask(w, within(t, patient), "1002")
	p.hears("tools/call")
	p.hears("tools/call")
	p.says(`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`)
	p.says(`{"jsonrpc":"2.0","id":1002,"result":{"n":2}}`)
	p.says(`{"jsonrpc":"2.0","id":1001,"error":{"code":1}}`)
	if a := <-second; a.err != nil || !a.sent || string(a.f.result) != `{"n":2}` {
		t.Errorf("second: %+v", a)
	}
	if a := <-first; a.err != nil || string(a.f.fault) != `{"code":1}` {
		t.Errorf("first: %+v", a)
	}
}

func TestWire_AnswersAServersRequests(t *testing.T) {
	_, p := newPeer(t)
	p.says(`{"jsonrpc":"2.0","id":"p-1","method":"ping"}`)
	p.hears(`"id":"p-1","result":{}`)
	p.says(`{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}`)
	p.hears(`"id":7,"error":{"code":-32601`)
}

func TestWire_EndsTheConnection(t *testing.T) {
	for name, tc := range map[string]struct {
		line string
		want FrameReason
	}{
		"at a junk line":               {"hello", FrameSyntax},
		"at a reply to an unknown id":  {`{"jsonrpc":"2.0","id":99,"result":{}}`, FrameReply},
		"at a reply as text of the id": {`{"jsonrpc":"2.0","id":"1001","result":{}}`, FrameReply},
		"at a duplicate name":          {`{"jsonrpc":"2.0","id":1001,"result":{"a":1,"a":2}}`, FrameDuplicate},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newPeer(t)
			got := ask(w, within(t, patient), "1001")
			p.hears("tools/call")
			p.says(tc.line)
			a := <-got
			var refused *FrameError
			if !a.sent || !errors.As(a.err, &refused) || refused.Reason != tc.want {
				t.Errorf("%+v, want %s", a, tc.want)
			}
			if _, sent, err := w.exchange(within(t, patient), "1002", "tools/call", []byte(`{}`)); sent || err == nil {
				t.Errorf("a request after the end: sent %v, %v", sent, err)
			}
		})
	}
}

func TestWire_ASecondReplyEndsTheConnection(t *testing.T) {
	w, p := newPeer(t)
	got := ask(w, within(t, patient), "1001")
	p.hears("tools/call")
	p.says(`{"jsonrpc":"2.0","id":1001,"result":{}}`)
	if a := <-got; a.err != nil {
		t.Fatal(a.err)
	}
	p.says(`{"jsonrpc":"2.0","id":1001,"result":{"other":true}}`)
	w.mustEnd(t)
	var refused *FrameError
	if err := w.reason(); !errors.As(err, &refused) || refused.Reason != FrameReply {
		t.Error(err)
	}
}

// After a time limit the server is told, its late reply is dropped, and the connection
// goes on.
func TestWire_GivesUpARequest(t *testing.T) {
	t.Parallel()
	w, p := newPeer(t)
	a := <-ask(w, within(t, impatient), "1001")
	if !a.sent || !errors.Is(a.err, context.DeadlineExceeded) {
		t.Fatalf("%+v", a)
	}
	p.hears("tools/call")
	p.hears(`"notifications/cancelled","params":{"requestId":1001`)
	p.says(`{"jsonrpc":"2.0","id":1001,"result":{"late":true}}`)
	next := ask(w, within(t, patient), "1002")
	p.hears("tools/call")
	p.says(`{"jsonrpc":"2.0","id":1002,"result":{}}`)
	if a := <-next; a.err != nil {
		t.Error(a.err)
	}
}

func TestWire_KnowsThatNothingWasSent(t *testing.T) {
	t.Parallel()
	w, _ := newPeer(t)
	big := []byte(`{"fill":"` + strings.Repeat("a", 1<<20) + `"}`)
	if _, sent, err := w.exchange(within(t, impatient), "1001", "tools/call", big); !sent || err == nil {
		t.Errorf("a request that was written in part: sent %v, %v", sent, err)
	}
	if _, sent, err := w.exchange(within(t, impatient), "1002", "tools/call", []byte(`{}`)); sent || err == nil {
		t.Errorf("a request after that: sent %v, %v", sent, err)
	}

	w, p := newPeer(t)
	_ = p.hin.Close()
	if _, sent, err := w.exchange(within(t, patient), "1001", "tools/call", []byte(`{}`)); sent || !errors.Is(err, errWrite) {
		t.Errorf("a server that reads no more: sent %v, %v", sent, err)
	}

	w, p = newPeer(t)
	_ = p.out.Close()
	w.mustEnd(t)
	if _, sent, err := w.exchange(within(t, patient), "1001", "tools/call", []byte(`{}`)); sent || !errors.Is(err, errLost) {
		t.Errorf("a server that has gone: sent %v, %v", sent, err)
	}
}
