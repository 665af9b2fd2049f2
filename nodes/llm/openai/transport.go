package openai

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"sallyport/nodes/llm/chat"
)

// Limits on connections and responses.
const (
	// MaxErrorBody bounds the body of a response that is an error, in bytes.
	MaxErrorBody = 1 << 20

	maxHeader      = 64 << 10 // bytes
	connectTimeout = 15 * time.Second
)

// errTooLarge ends the reading of a body past its limit.
var errTooLarge = errors.New("the response is too large")

// bounded is a client that follows no redirect and whose bodies end at a limit: a copy of
// one's own, or a new one.
func bounded(own *http.Client) *http.Client {
	c := http.Client{}
	if own != nil {
		c = *own
	}
	if c.Transport == nil {
		c.Transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:    connectTimeout,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    16,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: maxHeader,
		}
	}
	c.Transport = limiter{c.Transport}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.Jar = nil
	return &c
}

// limiter bounds bodies and notes when something is heard.
type limiter struct{ next http.RoundTripper }

// hearing is the key of the context's value that notes the first byte of a body.
type hearing struct{}

// RoundTrip implements [http.RoundTripper].
func (l limiter) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	left := int64(chat.MaxStream)
	if response.StatusCode != http.StatusOK {
		left = MaxErrorBody
	}
	heard, _ := r.Context().Value(hearing{}).(*atomic.Bool)
	response.Body = &limitedBody{ReadCloser: response.Body, left: left, heard: heard}
	return response, nil
}

// CloseIdleConnections passes on what http.Client asks of its transport.
func (l limiter) CloseIdleConnections() {
	if c, ok := l.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// limitedBody ends with an error at its limit, where io.LimitReader would end like a
// whole body.
type limitedBody struct {
	io.ReadCloser
	left  int64
	heard *atomic.Bool
}

// Read implements [io.Reader].
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if n > 0 && b.heard != nil {
		b.heard.Store(true)
	}
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
