package openai

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"sallyport/nodes"
	"sallyport/nodes/llm/chat"
)

// attempt is one request, and what is known of how far it came.
type attempt struct {
	model     *Model
	request   nodes.Request
	body      []byte
	timeout   time.Duration
	secrets   secrets
	connected atomic.Bool // there was a connection, TLS and all
	heard     atomic.Bool // at least one byte of a response's body came
}

// traced is a context that notes how far the attempt comes.
func (a *attempt) traced(ctx context.Context) context.Context {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { a.connected.Store(true) },
	})
	return context.WithValue(ctx, hearing{}, &a.heard)
}

// failure is an error of do as it may be shown and journaled: with a reason, and
// without the key.
func (a *attempt) failure(ctx context.Context, err error) error {
	var u *nodes.Unavailable
	if errors.As(err, &u) {
		return a.shown(u)
	}
	switch {
	case errors.Is(err, errTooLarge), errors.Is(err, chat.ErrTooLarge):
		return a.because(chat.ReasonBadResponse, "the response is too large")
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && !a.connected.Load():
		return a.because(chat.ReasonUnreachable, fmt.Sprintf("there was no connection in %s", a.timeout))
	case errors.Is(ctx.Err(), context.DeadlineExceeded) && a.heard.Load():
		return a.because(chat.ReasonTimeout, fmt.Sprintf("the response was not complete in %s", a.timeout))
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return a.because(chat.ReasonSilent, fmt.Sprintf("nothing came in %s", a.timeout))
	case !a.connected.Load():
		return a.because(chat.ReasonUnreachable, fmt.Sprintf("%q", a.secrets.out(err.Error())))
	case strings.Contains(err.Error(), "headers exceeded"), strings.Contains(err.Error(), "header list larger"):
		return a.because(chat.ReasonBadResponse, "the response's headers are too large")
	case strings.Contains(err.Error(), "malformed"):
		return a.because(chat.ReasonBadResponse, "the response is not HTTP")
	}
	return a.because(chat.ReasonCut, "the connection ended before the response did")
}

func (a *attempt) because(reason, why string) error {
	return chat.Unavailable(reason, fmt.Errorf("ask %s: %s", a.model.endpoint.host, why))
}

// shown is a failure whose words from the provider may be logged. Of a refused key only
// the fixed words are kept: providers print parts of it there.
func (a *attempt) shown(u *nodes.Unavailable) error {
	clean := *u
	var said *chat.ProviderError
	if errors.As(u.Err, &said) {
		e := *said
		e.Type, e.Code, e.Message = a.secrets.out(e.Type), a.secrets.out(e.Code), a.secrets.out(e.Message)
		if u.Reason == chat.ReasonAuth {
			e.Message = ""
		}
		clean.Err = &e
	}
	clean.Err = fmt.Errorf("ask %s: %w", a.model.endpoint.host, clean.Err)
	return &clean
}

// retryAfter is the pause that a provider asks for, in seconds or until a date; 0 if it
// asks for none that can be understood.
func retryAfter(h http.Header, now time.Time) time.Duration {
	for _, form := range []struct {
		name string
		unit time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		text := strings.TrimSpace(h.Get(form.name))
		if n, err := strconv.ParseFloat(text, 64); err == nil && n >= 0 {
			if pause := n * float64(form.unit); pause < math.MaxInt64 {
				return time.Duration(pause)
			}
			return math.MaxInt64
		}
	}
	when, err := http.ParseTime(h.Get("Retry-After"))
	if err != nil {
		return 0
	}
	return max(0, when.Sub(now))
}
