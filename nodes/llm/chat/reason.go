package chat

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"sallyport/nodes"
	"sallyport/tools/strictjson"
)

// The reasons for which a provider gave no turn. They are journaled; docs/providers.md
// explains them, and a test holds the page to this list.
const (
	ReasonRateLimited  = "rate_limited"     // 429
	ReasonOverloaded   = "overloaded"       // 503, 529, or it says so
	ReasonServerError  = "server_error"     // any other 5xx
	ReasonTimeout      = "timeout"          // the time of one attempt ran out in the middle of a response, or 408
	ReasonSilent       = "silent"           // it ran out before anything came
	ReasonCut          = "cut"              // the connection ended in the middle of a response
	ReasonUnreachable  = "unreachable"      // no connection: name, address, TLS
	ReasonAuth         = "auth"             // 401, 403; final
	ReasonQuota        = "quota"            // the account is empty; final
	ReasonNotFound     = "not_found"        // 404: no such model, or no such address; final
	ReasonRefused      = "refused"          // any other 4xx; final
	ReasonTooLong      = "context_too_long" // the request is longer than the model's context; final
	ReasonFiltered     = "filtered"         // the request was withheld by a content filter; final
	ReasonRedirected   = "redirected"       // 3xx: it is not followed; final
	ReasonProvider     = "provider_error"   // an error object of no known kind where a turn should be
	ReasonBadResponse  = "bad_response"     // not what Chat Completions answers, or too large
	ReasonNoChoices    = "no_choices"       // a response without a choice
	ReasonManyChoices  = "many_choices"     // more than the one that was asked for
	ReasonAfterFinish  = "after_finish"     // content after the finish reason or the end marker
	ReasonFinishTwice  = "finish_twice"     // a second finish reason
	ReasonKeyRepeated  = "key_repeated"     // the response holds the key; final
	maxWord            = 64                 // bytes of a provider's own word
	maxProviderMessage = 4096               // bytes of a provider's message that are looked at
)

// Reasons lists all reasons in the order of docs/providers.md.
func Reasons() []string {
	return []string{
		ReasonRateLimited, ReasonOverloaded, ReasonServerError, ReasonTimeout, ReasonSilent, ReasonCut, ReasonUnreachable,
		ReasonAuth, ReasonQuota, ReasonNotFound, ReasonRefused, ReasonTooLong, ReasonFiltered, ReasonRedirected,
		ReasonProvider, ReasonBadResponse, ReasonNoChoices, ReasonManyChoices, ReasonAfterFinish, ReasonFinishTwice,
		ReasonKeyRepeated,
	}
}

// Final reports whether a reason makes another attempt useless.
func Final(reason string) bool {
	switch reason {
	case ReasonAuth, ReasonQuota, ReasonNotFound, ReasonRefused, ReasonTooLong, ReasonFiltered, ReasonRedirected, ReasonKeyRepeated:
		return true
	}
	return false
}

// Unavailable is the failure of a reason.
func Unavailable(reason string, err error) *nodes.Unavailable {
	return &nodes.Unavailable{Reason: reason, Final: Final(reason), Err: err}
}

// ProviderError is what a provider says of a failure. Its message is the provider's
// text, which may repeat the request, the key included: whoever logs it redacts it first.
type ProviderError struct {
	Status  int    // of HTTP; 0 if the error came inside a response
	Type    string // a plain word, or empty
	Code    string // a plain word, or empty
	Message string
}

// Error implements error, with the message quoted.
func (e *ProviderError) Error() string {
	var b strings.Builder
	b.WriteString("the provider says")
	if e.Status != 0 {
		fmt.Fprintf(&b, " %d", e.Status)
	}
	for _, word := range []string{e.Type, e.Code} {
		if word != "" {
			b.WriteString(" " + word)
		}
	}
	if e.Message != "" {
		fmt.Fprintf(&b, ": %q", e.Message)
	}
	return b.String()
}

// Failure reads a response whose status is not 200. What is no JSON is not looked at.
func Failure(status int, body []byte) *nodes.Unavailable {
	e := &ProviderError{Status: status}
	if len(body) <= MaxResponse {
		if o, err := readObject(body); err == nil {
			e.read(o)
		}
	}
	return Unavailable(e.reason(), e)
}

// errorIn is the failure that an object of a response holds, or nil.
func errorIn(o object) error {
	if !o.has("error") && o.word("object") != "error" {
		return nil
	}
	e := &ProviderError{}
	e.read(o)
	return Unavailable(e.reason(), e)
}

// read takes what an error object says: {error: {…}}, {error: "text"}, or itself.
func (e *ProviderError) read(o object) {
	inner := o
	if o.has("error") {
		if text, ok, err := o.text("error"); err == nil && ok {
			e.Message = clip(text)
			return
		}
		var err error
		if inner, err = readObject(o["error"]); err != nil {
			return
		}
	}
	e.Type, e.Code = inner.word("type"), inner.word("code")
	if text, ok, err := inner.text("message"); err == nil && ok {
		e.Message = clip(text)
	}
}

func clip(text string) string {
	if len(text) > maxProviderMessage {
		return strings.ToValidUTF8(text[:maxProviderMessage], "")
	}
	return text
}

// reason classifies an error, the most telling sign first.
func (e *ProviderError) reason() string {
	if r := e.byWord(); r != "" {
		return r
	}
	if r := byStatus(e.Status); r != "" {
		return r
	}
	status := 0
	if _, err := fmt.Sscanf(e.Code, "%3d", &status); err == nil && len(e.Code) == 3 {
		if r := byStatus(status); r != "" {
			return r
		}
	}
	return e.byFamily()
}

// byWord knows what a status alone does not say.
func (e *ProviderError) byWord() string {
	words := strings.ToLower(e.Type + " " + e.Code)
	message := strings.ToLower(e.Message)
	switch {
	case e.Status == 402, strings.Contains(words, "insufficient_quota"), strings.Contains(words, "billing"),
		strings.Contains(words, "insufficient_balance"):
		return ReasonQuota
	case e.Status == 401, e.Status == 403, e.Status == 429, e.Status >= 500:
		return ""
	case strings.Contains(words, "context_length"), strings.Contains(words, "context_size"),
		strings.Contains(message, "context length"), strings.Contains(message, "context size"),
		strings.Contains(message, "context window"):
		return ReasonTooLong
	case strings.Contains(words, "content_filter"):
		return ReasonFiltered
	}
	return ""
}

func byStatus(status int) string {
	switch {
	case status == 429:
		return ReasonRateLimited
	case status == 503, status == 529:
		return ReasonOverloaded
	case status >= 500 && status < 600:
		return ReasonServerError
	case status == 401, status == 403:
		return ReasonAuth
	case status == 404:
		return ReasonNotFound
	case status == 408:
		return ReasonTimeout
	case status == 413:
		return ReasonTooLong
	case status >= 400 && status < 500:
		return ReasonRefused
	case status >= 300 && status < 400:
		return ReasonRedirected
	case status > 0:
		return ReasonBadResponse
	}
	return ""
}

// byFamily goes by the words of an error that came without a status.
func (e *ProviderError) byFamily() string {
	words := strings.ToLower(e.Type + " " + e.Code)
	for _, family := range []struct{ sign, reason string }{
		{"rate_limit", ReasonRateLimited}, {"overloaded", ReasonOverloaded}, {"server_error", ReasonServerError},
		{"internal", ReasonServerError}, {"authentication", ReasonAuth}, {"permission", ReasonAuth},
		{"not_found", ReasonNotFound}, {"invalid_request", ReasonRefused},
	} {
		if strings.Contains(words, family.sign) {
			return family.reason
		}
	}
	return ReasonProvider
}

// bad is a response that is not what it should be. why is ours, not the provider's.
func bad(why string) error { return Unavailable(ReasonBadResponse, errors.New(why)) }

// badJSON names what the strict reader found; its errors hold nothing of the input.
func badJSON(err error) error {
	return Unavailable(ReasonBadResponse, fmt.Errorf("read the response: %w", err))
}

// object is a JSON object, its members by name as compact JSON.
type object map[string][]byte

// readObject reads a value that must be an object, strictly.
func readObject(data []byte) (object, error) {
	members, err := strictjson.Members(data)
	if err != nil {
		return nil, err
	}
	o := make(object, len(members))
	for _, m := range members {
		o[m.Name] = m.Value
	}
	return o, nil
}

// has reports whether a member is there and not null.
func (o object) has(name string) bool {
	v, ok := o[name]
	return ok && !bytes.Equal(v, []byte("null"))
}

// text is a member that must be a text if it is there; false if it is not.
func (o object) text(name string) (string, bool, error) {
	if !o.has(name) {
		return "", false, nil
	}
	var s string
	if err := strictjson.Decode(o[name], &s); err != nil {
		return "", false, bad(fmt.Sprintf("its member %s is no text", name))
	}
	return s, true, nil
}

// whole is a member that must be a whole number, not negative, if it is there.
func (o object) whole(name string) (int64, bool, error) {
	if !o.has(name) {
		return 0, false, nil
	}
	var n int64
	if err := strictjson.Decode(o[name], &n); err != nil || n < 0 || n > maxCount {
		return 0, false, bad(fmt.Sprintf("its member %s is no count", name))
	}
	return n, true, nil
}

// object is a member that must be an object if it is there; nil if it is not.
func (o object) object(name string) (object, error) {
	if !o.has(name) {
		return nil, nil
	}
	inner, err := readObject(o[name])
	if err != nil {
		return nil, bad(fmt.Sprintf("its member %s is no object", name))
	}
	return inner, nil
}

// list is a member that must be an array of objects if it is there.
func (o object) list(name string) ([]object, error) {
	if !o.has(name) {
		return nil, nil
	}
	values, err := elements(o[name])
	if err != nil {
		return nil, bad(fmt.Sprintf("its member %s is no array", name))
	}
	list := make([]object, len(values))
	for i, v := range values {
		if list[i], err = readObject(v); err != nil {
			return nil, bad(fmt.Sprintf("an element of its member %s is no object", name))
		}
	}
	return list, nil
}

// word is a member that may be a text or a number and is wanted as one plain word; empty
// if it is anything else.
func (o object) word(name string) string {
	v := o[name]
	var s string
	if strictjson.Decode(v, &s) != nil {
		s = string(v)
	}
	for _, r := range s {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.'
		if !plain {
			return ""
		}
	}
	if len(s) > maxWord || s == "null" {
		return ""
	}
	return s
}
