package stdio

import (
	"bytes"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"sallyport/tools/strictjson"
)

// replies are the requests that were passed on and not answered yet, by the text of their ids.
type replies struct {
	mu    sync.Mutex
	ids   map[string]bool
	done  chan struct{} // closed when ids is empty or nobody will wait longer; made by wait
	ended bool
}

func newReplies() *replies { return &replies{ids: map[string]bool{}} }

// ask notes what a line of the input asks for. A subscription is never answered, and a request that was
// given up need not be.
func (r *replies) ask(line []strictjson.Member) {
	var id, method, params string
	for _, member := range line {
		switch member.Name {
		case "id":
			id = string(member.Value)
		case "method":
			method = string(member.Value)
		case "params":
			params = string(member.Value)
		}
	}
	switch {
	case method == `"notifications/cancelled"`:
		r.settle(cancelled(params))
	case method != "" && method != `"subscriptions/listen"` && countable(id):
		r.mu.Lock()
		r.ids[id] = true
		r.mu.Unlock()
	}
}

// countable: a reply carries this text as its id. Other numbers come back changed, or not at all.
func countable(id string) bool {
	if strings.HasPrefix(id, `"`) {
		return true
	}
	_, err := strconv.ParseInt(id, 10, 64)
	return err == nil
}

func cancelled(params string) string {
	members, err := strictjson.Members([]byte(params))
	if err != nil {
		return ""
	}
	for _, member := range members {
		if member.Name == "requestId" {
			return string(member.Value)
		}
	}
	return ""
}

func (r *replies) settle(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ids, id)
	r.release()
}

// end lets a wait return at once.
func (r *replies) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.release()
}

func (r *replies) release() {
	if r.done != nil && (r.ended || len(r.ids) == 0) {
		close(r.done)
		r.done = nil
	}
}

// wait returns when nothing is owed, after end, or after limit.
func (r *replies) wait(limit time.Duration) {
	r.mu.Lock()
	if r.ended || len(r.ids) == 0 {
		r.mu.Unlock()
		return
	}
	done := make(chan struct{})
	r.done = done
	r.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// replyWriter passes messages on, one in each Write, and notes which requests they answer.
type replyWriter struct {
	out  io.WriteCloser
	owed *replies
}

func (w *replyWriter) Write(message []byte) (int, error) {
	n, err := w.out.Write(message)
	if id, ok := answered(message); ok {
		w.owed.settle(id)
	}
	return n, err
}

func (w *replyWriter) Close() error { return w.out.Close() }

// answered returns the id of a message that is a reply: it has an id and, after it, no method.
func answered(message []byte) (id string, ok bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(message), lenient)
	_ = eachMember(dec, func(name string) error {
		switch name {
		case "id":
			value, err := dec.ReadValue()
			id = string(value)
			return err
		case "result", "error":
			ok = id != ""
			return io.EOF // enough is known
		case "method":
			return io.EOF
		}
		return dec.SkipValue()
	})
	return id, ok
}
