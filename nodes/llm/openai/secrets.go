package openai

import "strings"

// secrets are what a provider's words may repeat and a log may not hold.
type secrets struct {
	key     string
	request []byte
}

// How much of a secret is recognised, in bytes.
const (
	keyWindow     = 8  // a shorter key is taken out as a whole
	requestWindow = 24 // shorter words are likely to be names of fields
	maxShown      = 500
)

// out takes out of a text every stretch that the key or the request holds, and cuts it.
func (s secrets) out(text string) string {
	if len(text) > 2*maxShown {
		text = text[:2*maxShown]
	}
	if s.key != "" {
		text = without(text, s.key, min(keyWindow, len(s.key)), "[key]")
	}
	text = without(text, string(s.request), requestWindow, "[...]")
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "..."
	}
	return text
}

// without replaces what a text shares with another, where that is window bytes or more.
func without(text, secret string, window int, mark string) string {
	shared := make([]bool, len(text))
	for i := 0; i+window <= len(text); i++ {
		if strings.Contains(secret, text[i:i+window]) {
			for j := i; j < i+window; j++ {
				shared[j] = true
			}
		}
	}
	var b strings.Builder
	for i := range len(text) {
		switch {
		case !shared[i]:
			b.WriteByte(text[i])
		case i == 0 || !shared[i-1]:
			b.WriteString(mark)
		}
	}
	return b.String()
}
