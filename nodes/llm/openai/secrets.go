package openai

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"sallyport/nodes"
)

// secrets are what a provider's words may repeat and a log may not hold.
type secrets struct {
	key     string
	request []byte
}

// How much of a secret is recognised, in bytes.
const (
	keyWindow     = 8  // a shorter key is taken out as a whole, and not looked for in turns
	keyHalf       = 16 // half of a key is as good as the whole if it is this long
	requestWindow = 24 // shorter words are likely to be names of fields
	maxShown      = 500
)

// forms are the key as it is and in base64 of both alphabets, wherever it begins among
// the three bytes that are encoded together; nil for a key that is too short to be told
// from other words.
func (s secrets) forms() []string {
	if len(s.key) < keyWindow {
		return nil
	}
	forms := []string{s.key}
	for before := range 3 {
		text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + s.key))
		text = text[(before*8+5)/6 : (before+len(s.key))*8/6] // what does not depend on its neighbours
		forms = append(forms, text)
		if url := strings.NewReplacer("+", "-", "/", "_").Replace(text); url != text {
			forms = append(forms, url)
		}
	}
	return forms
}

// out takes out of a text every stretch that the key or the request holds, and cuts it.
func (s secrets) out(text string) string {
	if len(text) > 2*maxShown {
		text = text[:2*maxShown]
	}
	forms := s.forms()
	if forms == nil && s.key != "" {
		text = strings.ReplaceAll(text, s.key, keyMark)
	}
	text = without(text, forms, keyWindow, keyMark)
	text = without(text, []string{string(s.request)}, requestWindow, "[...]")
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "..."
	}
	return text
}

const keyMark = "[key]"

// without replaces what a text shares with others, where that is window bytes or more.
func without(text string, secrets []string, window int, mark string) string {
	shared := sharing(text, secrets, window)
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

// sharing tells of each byte of a text whether it is in a stretch of window bytes that
// one of the secrets holds.
func sharing(text string, secrets []string, window int) []bool {
	shared := make([]bool, len(text))
	for _, secret := range secrets {
		for i := 0; i+window <= len(text); i++ {
			if strings.Contains(secret, text[i:i+window]) {
				for j := i; j < i+window; j++ {
					shared[j] = true
				}
			}
		}
	}
	return shared
}

// in reports whether a turn holds the key, or half of it.
func (s secrets) in(r nodes.Reply) bool {
	texts := []string{r.Text, r.Finish}
	for _, text := range r.Vendor {
		texts = append(texts, text)
	}
	for _, c := range r.Calls {
		texts = append(texts, c.ID, c.Name, c.Arguments)
		texts = append(texts, unescaped(c.Arguments)...)
	}
	for _, form := range s.forms() {
		window := min(len(form), max(keyHalf, len(form)/2))
		parts := map[string]bool{}
		for i := 0; i+window <= len(form); i++ {
			parts[form[i:i+window]] = true
		}
		for _, text := range texts {
			for i := 0; i+window <= len(text); i++ {
				if parts[text[i:i+window]] {
					return true
				}
			}
		}
	}
	return false
}

// unescaped are the texts in JSON, as far as it is JSON: what a tool would be given.
func unescaped(arguments string) []string {
	var texts []string
	d := json.NewDecoder(strings.NewReader(arguments))
	for {
		token, err := d.Token()
		if err != nil {
			return texts
		}
		if text, ok := token.(string); ok {
			texts = append(texts, text)
		}
	}
}

// veil shows a text that comes in pieces without the key, of which less than keyWindow
// bytes in a row are ever shown.
type veil struct {
	forms  []string
	before string // the last bytes that came
	marked bool   // the last of them was of the key
}

// piece is what to show of the next piece.
func (v *veil) piece(text string) string {
	whole := v.before + text
	shared := sharing(whole, v.forms, keyWindow)
	var b strings.Builder
	for i := len(v.before); i < len(whole); i++ {
		switch {
		case !shared[i]:
			b.WriteByte(whole[i])
		case !v.marked:
			b.WriteString(keyMark)
		}
		v.marked = shared[i]
	}
	v.before = whole[max(0, len(whole)-keyWindow+1):]
	return b.String()
}
