package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Why a request got no reply, besides the context's errors and a [FrameError].
var (
	// errLost: the connection ended: the server died or closed its output.
	errLost = errors.New("the connection to the server is lost")
	// errHungUp: the SDK gave the session up: it did not like the handshake.
	errHungUp = errors.New("the session was not opened")
	// errWrite: a request could not be written whole.
	errWrite = errors.New("the server does not take requests")
)

// limits of what a wire remembers and waits for.
const (
	// maxLate is how many requests that were given up may still be answered. A server
	// that owes more is not waited for.
	maxLate = 256
	// aside bounds a message that nobody waits for: a cancellation, or an answer to
	// the server's own request.
	aside = time.Second
)

// wire is one connection's stream of frames. It is the SDK's connection while the
// session is being opened; afterwards requests go through exchange, which keeps a
// reply's own bytes. Replies are taken only for requests that are open: anything else
// ends the connection. Notifications are dropped; the server's requests are turned
// down here, ping apart, so that nothing it sends is queued.
type wire struct {
	in  *frameReader
	out *os.File

	writing chan struct{} // holds one while a line is written
	mu      sync.Mutex
	open    map[string]chan frame // requests of exchange
	late    map[string]bool       // requests of exchange that were given up
	theirs  map[string]bool       // requests of the SDK
	forSDK  chan jsonrpc.Message
	done    chan struct{}
	why     error // why done is closed
	asides  sync.WaitGroup
	reading chan struct{} // closed when the reader has ended
}

func newWire(in io.Reader, out *os.File) *wire {
	w := &wire{
		in: newFrameReader(in), out: out, writing: make(chan struct{}, 1),
		open: map[string]chan frame{}, late: map[string]bool{}, theirs: map[string]bool{},
		forSDK: make(chan jsonrpc.Message), done: make(chan struct{}), reading: make(chan struct{}),
	}
	go w.read() // ends with the stream; wait waits for it
	return w
}

// Connect implements [mcp.Transport].
func (w *wire) Connect(context.Context) (mcp.Connection, error) { return w, nil }

// SessionID implements [mcp.Connection]: a stream has none.
func (w *wire) SessionID() string { return "" }

// Close implements [mcp.Connection].
func (w *wire) Close() error {
	w.end(errHungUp)
	return nil
}

// end closes the connection for the reason that is given first.
func (w *wire) end(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why == nil {
		w.why = why
		close(w.done)
	}
}

// alive reports whether the connection can still be used, as far as anybody knows.
func (w *wire) alive() bool {
	select {
	case <-w.done:
		return false
	default:
		return true
	}
}

// wait returns when no goroutine of the wire is left: the caller has closed both ends.
func (w *wire) wait() {
	<-w.reading
	w.asides.Wait()
}

func (w *wire) read() {
	defer close(w.reading)
	for {
		line, err := w.in.next()
		if err == nil {
			err = w.take(line)
		}
		var refused *FrameError
		switch {
		case err == nil:
		case errors.As(err, &refused):
			w.end(err)
			return
		default:
			w.end(errLost)
			return
		}
	}
}

// take gives a frame to whoever it is for.
func (w *wire) take(line []byte) error {
	f, err := parseFrame(line)
	switch {
	case err != nil:
		return err
	case f.reply:
		return w.answer(f, line)
	case f.id != "":
		return w.turnDown(f)
	}
	return nil // a notification: progress, lists that changed, logs; nothing hangs on them
}

// answer delivers a reply to the request that it is for.
func (w *wire) answer(f frame, line []byte) error {
	w.mu.Lock()
	waiting, ours := w.open[f.id]
	late, theirs := w.late[f.id], w.theirs[f.id]
	delete(w.open, f.id)
	delete(w.late, f.id)
	delete(w.theirs, f.id)
	w.mu.Unlock()
	switch {
	case ours:
		waiting <- f // has room for one
		return nil
	case late:
		return nil
	case !theirs:
		return refusedFrame(FrameReply)
	}
	msg, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return refusedFrame(FrameEnvelope)
	}
	select {
	case w.forSDK <- msg:
		return nil
	case <-w.done:
		return errLost
	}
}

// turnDown answers a request of the server: the Host offers it nothing.
func (w *wire) turnDown(f frame) error {
	answer := `{"jsonrpc":"2.0","id":` + f.id + `,"error":{"code":-32601,"message":"method not found"}}`
	if f.method == "ping" {
		answer = `{"jsonrpc":"2.0","id":` + f.id + `,"result":{}}`
	}
	_, err := w.write([]byte(answer), time.Now().Add(aside))
	return err
}

// Read implements [mcp.Connection]: the replies to the SDK's own requests.
func (w *wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-w.forSDK:
		return msg, nil
	case <-w.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements [mcp.Connection].
func (w *wire) Write(ctx context.Context, msg jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return fmt.Errorf("encode a message of the session: %w", err)
	}
	if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
		w.mu.Lock()
		w.theirs[fmt.Sprint(req.ID.Raw())] = true // the SDK counts its requests: 1, 2, …
		w.mu.Unlock()
	}
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(aside)
	}
	_, err = w.write(line, deadline)
	return err
}

// exchange sends one request and waits for its reply, at most until ctx is done; then
// the server is told that the request is given up. ctx has a deadline. sent is false
// only if no byte of the request left the Host. params is a JSON object.
func (w *wire) exchange(ctx context.Context, id, method string, params []byte) (f frame, sent bool, err error) {
	if err := ctx.Err(); err != nil {
		return frame{}, false, err
	}
	reply := make(chan frame, 1)
	w.mu.Lock()
	if w.why != nil {
		defer w.mu.Unlock()
		return frame{}, false, w.why
	}
	w.open[id] = reply
	w.mu.Unlock()

	line := make([]byte, 0, len(params)+len(method)+len(id)+64)
	line = append(line, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":`...)
	line = append(append(line, params...), '}')
	deadline, _ := ctx.Deadline()
	n, err := w.write(line, deadline)
	if err != nil {
		w.forget(id, false)
		return frame{}, n > 0, w.because(ctx, err)
	}
	select {
	case f := <-reply:
		return f, true, nil
	case <-ctx.Done():
		w.forget(id, true)
		w.cancel(id)
		return frame{}, true, ctx.Err()
	case <-w.done:
		select {
		case f := <-reply: // it came before the end
			return f, true, nil
		default:
			return frame{}, true, w.reason()
		}
	}
}

// because tells a time limit from a broken connection.
func (w *wire) because(ctx context.Context, err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil {
		return context.DeadlineExceeded
	}
	if !w.alive() {
		return w.reason()
	}
	return err
}

func (w *wire) reason() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.why
}

// forget stops waiting for a reply. One that may still come is expected.
func (w *wire) forget(id string, late bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.open, id)
	if late && len(w.late) < maxLate {
		w.late[id] = true
	}
}

// cancel tells the server, without waiting, that a request was given up.
func (w *wire) cancel(id string) {
	w.asides.Go(func() { // ends within a second; wait waits for it
		line := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `,"reason":"time limit"}}`
		_, _ = w.write([]byte(line), time.Now().Add(aside)) // the server may be gone
	})
}

// write sends one line. A line that was written in part ends the connection, and so
// does one that could not be written for any other reason than time.
func (w *wire) write(line []byte, deadline time.Time) (n int, err error) {
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	select {
	case w.writing <- struct{}{}:
		defer func() { <-w.writing }()
	case <-late.C:
		return 0, os.ErrDeadlineExceeded
	case <-w.done:
		return 0, w.reason()
	}
	if !w.alive() {
		return 0, w.reason()
	}
	if err := w.out.SetWriteDeadline(deadline); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		w.end(errLost)
		return 0, errLost
	}
	n, err = w.out.Write(append(line, '\n'))
	if err == nil {
		return n, nil
	}
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		w.end(errWrite)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, os.ErrDeadlineExceeded
	}
	return n, errWrite
}
