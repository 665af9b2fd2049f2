package nodes

import "fmt"

// Window bounds what the model is given of its run: the messages of a request, without
// the descriptions of the tools. The zero window is [DefaultWindow]; in another, a field that
// is zero does not bound.
type Window struct {
	// Bytes bounds the messages as JSON, in bytes.
	Bytes int64 `json:"bytes,omitempty"`
	// Tokens bounds them in tokens, which are estimated: one for every
	// [BytesPerToken] bytes begun, since no two models count alike.
	Tokens int64 `json:"tokens,omitempty"`
}

// DefaultWindow leaves room for the tools and an answer in a model of 128,000 tokens.
var DefaultWindow = Window{Bytes: 300_000, Tokens: 100_000}

// The bounds of a window.
const (
	// BytesPerToken is a cautious estimate: English text has more than four bytes to a
	// token, Chinese about three, JSON with many escapes fewer than English.
	BytesPerToken = 3
	// MinWindow is the smallest window, in bytes, and in tokens a third of that: the
	// rules and one observation of the largest size, cut to its reference, fit.
	MinWindow = 12_000
	// MaxWindow is the largest, in bytes or tokens.
	MaxWindow = 1 << 30
)

// Check refuses a window that is too small to work in, or past what is countable.
func (w Window) Check() error {
	if w.Bytes != 0 && (w.Bytes < MinWindow || w.Bytes > MaxWindow) {
		return fmt.Errorf("a window of %d bytes: want %d to %d", w.Bytes, MinWindow, MaxWindow)
	}
	if w.Tokens != 0 && (w.Tokens < MinWindow/BytesPerToken || w.Tokens > MaxWindow) {
		return fmt.Errorf("a window of %d tokens: want %d to %d", w.Tokens, MinWindow/BytesPerToken, MaxWindow)
	}
	return nil
}

// high is the high-water mark in bytes: the smaller of the two bounds.
func (w Window) high() int64 {
	switch {
	case w == Window{}:
		return DefaultWindow.high()
	case w.Bytes == 0:
		return w.Tokens * BytesPerToken
	case w.Tokens == 0:
		return w.Bytes
	}
	return min(w.Bytes, w.Tokens*BytesPerToken)
}
