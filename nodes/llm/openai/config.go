package openai

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"sallyport/nodes/llm/chat"
)

// What Config leaves out.
const (
	DefaultTimeout    = 120 * time.Second
	DefaultBaseURL    = "https://api.openai.com/v1" // of the profile openai only
	DefaultAPIVersion = "2024-10-21"                // of the profile azure
)

// Config says which model is asked, where, and how. Model must be set.
type Config struct {
	// Model is the model's name; with the profile azure the deployment's.
	Model string
	// BaseURL is the address of the API, up to and without /chat/completions; with the
	// profile azure the resource's address will do. Only the profile openai has a default,
	// so that a key never goes where nobody sent it.
	BaseURL string
	// Profile is one of [chat.Profiles]. Empty is guessed from BaseURL.
	Profile string
	// APIVersion is sent by the profile azure.
	APIVersion string

	// Key is asked at each attempt, and what it returns is kept nowhere. Nil, or an empty
	// key, sends no authorization. Its error stops the runtime and leaves the run as it is.
	Key func() (string, error)

	// Timeout bounds one attempt, from the search for the address to the last byte of the
	// response; 0 is [DefaultTimeout].
	Timeout time.Duration
	// MaxTokens bounds what the model writes in one turn; 0 leaves it to the provider.
	MaxTokens   int64
	Temperature *float64
	Seed        *int64

	// Stream asks for a streamed response. The turn that comes of it is the same.
	Stream bool
	// Text is shown the text of a streamed turn as it comes, for display only: the turn
	// may turn out to be none. It is called in order for one run; runs may call at once.
	Text func(run, delta string)

	// HTTP replaces the client's own connections. Its redirects are not followed and its
	// responses are bounded all the same.
	HTTP *http.Client
}

// endpoint is where requests go.
type endpoint struct {
	base  string // ends in a slash
	path  string // below base
	query url.Values
	host  string
}

// check completes a configuration, or says what is wrong with it.
func (c *Config) check() (chat.Profile, endpoint, error) {
	switch {
	case c.Model == "":
		return chat.Profile{}, endpoint{}, errors.New("the model's name is missing")
	case c.Timeout < 0:
		return chat.Profile{}, endpoint{}, fmt.Errorf("a timeout of %s is none", c.Timeout)
	case c.MaxTokens < 0:
		return chat.Profile{}, endpoint{}, fmt.Errorf("a bound of %d tokens is none", c.MaxTokens)
	}
	if c.Timeout == 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Profile == "" {
		c.Profile = chat.Guess(c.BaseURL)
	}
	p, err := chat.For(c.Profile)
	if err != nil {
		return p, endpoint{}, err
	}
	if c.BaseURL == "" {
		if p.Name != "openai" {
			return p, endpoint{}, fmt.Errorf("the profile %s needs a base URL", p.Name)
		}
		c.BaseURL = DefaultBaseURL
	}
	u, err := baseURL(c.BaseURL)
	if err != nil {
		return p, endpoint{}, err
	}
	e := endpoint{path: "chat/completions", host: u.Host}
	if p.Name == "azure" {
		e.azure(u, c)
	}
	u.Path += "/"
	e.base = u.String()
	return p, e, nil
}

func baseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil, u.Host == "", u.Opaque != "", u.RawPath != "":
		return nil, errors.New("the base URL is none")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, fmt.Errorf("the base URL's scheme is %q: it must be https, or http", u.Scheme)
	case u.User != nil:
		return nil, errors.New("the base URL holds a user or password: the key has a place of its own")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the base URL goes on after its path")
	}
	u.Path = strings.TrimRight(u.Path, "/")
	if strings.HasSuffix(u.Path, "/chat/completions") {
		return nil, errors.New("the base URL goes up to /chat/completions, and without it")
	}
	return u, nil
}

// azure finds the path of a deployment. The newer form of the API, below /openai/v1, is
// that of other providers.
func (e *endpoint) azure(u *url.URL, c *Config) {
	if c.APIVersion != "" {
		e.query = url.Values{"api-version": {c.APIVersion}}
	}
	if strings.HasSuffix(u.Path, "/openai/v1") {
		return
	}
	if c.APIVersion == "" {
		e.query = url.Values{"api-version": {DefaultAPIVersion}}
	}
	if !strings.Contains(u.Path, "/openai/deployments/") {
		u.Path = strings.TrimSuffix(u.Path, "/openai")
		e.path = "openai/deployments/" + url.PathEscape(c.Model) + "/chat/completions"
	}
}
