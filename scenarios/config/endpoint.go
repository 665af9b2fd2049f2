package config

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"sallyport/tools"
)

// The environment variables that fill in what files leave out.
const (
	EnvKey     = "OPENAI_API_KEY"
	EnvBaseURL = "OPENAI_BASE_URL"
	EnvModel   = "SALLYPORT_MODEL"
)

// DefaultBaseURL is where a model is asked if nobody says otherwise.
const DefaultBaseURL = "https://api.openai.com/v1"

// Endpoint is where and how the model of a run is asked, with everything that files
// and environment leave open filled in. It holds no secret, and does not say where one
// is: that is found anew by whoever serves the run ([User.Admit]).
type Endpoint struct {
	Model       string         `json:"model"`
	BaseURL     string         `json:"base_url"`          // in the form of [parseURL]
	Profile     string         `json:"profile,omitempty"` // empty: guessed from the base URL
	APIVersion  string         `json:"api_version,omitempty"`
	Timeout     tools.Duration `json:"timeout,omitempty"` // of one attempt; 0 is the client's default
	MaxTokens   int64          `json:"max_tokens,omitempty"`
	Temperature *float64       `json:"temperature,omitempty"`
	Seed        *int64         `json:"seed,omitempty"`
	// Surroundings says that OPENAI_BASE_URL named the base URL, and Keyed that there was
	// a key for it: a process that has neither does not go on in another way.
	Surroundings bool `json:"surroundings,omitempty"`
	Keyed        bool `json:"keyed,omitempty"`
}

// Label is what a run, its lists and its cassettes call the model: openai:NAME@HOST.
func (e Endpoint) Label() string {
	host := e.BaseURL
	if u, err := url.Parse(e.BaseURL); err == nil {
		host = u.Host
	}
	return KindOpenAI + ":" + e.Model + "@" + host
}

// Getenv is how the environment is asked: [os.Getenv] outside of tests.
type Getenv func(name string) string

// Resolve fills in what a file leaves out. name, if it is not empty, replaces the name
// of the model.
func (o *OpenAI) Resolve(name string, env Getenv) (Endpoint, error) {
	e := Endpoint{
		Model:   cmp.Or(name, o.Model, env(EnvModel)),
		Profile: o.Profile, APIVersion: o.APIVersion, Temperature: o.Temperature, Seed: o.Seed,
	}
	if e.Model == "" {
		return e, fmt.Errorf("no model is named: write `openai: NAME`, give --model NAME, or set %s", EnvModel)
	}
	if why := badName(e.Model); why != "" {
		return e, errors.New(why)
	}
	if o.Timeout != nil {
		e.Timeout = *o.Timeout
	}
	if o.MaxTokens != nil {
		e.MaxTokens = *o.MaxTokens
	}
	base, err := o.base(env)
	e.BaseURL, e.Surroundings = base, o.BaseURL == "" && env(EnvBaseURL) != ""
	return e, err
}

// base is the base URL: what the file says, else the environment, else the default.
func (o *OpenAI) base(env Getenv) (string, error) {
	if o.BaseURL != "" {
		return parseURL(o.BaseURL)
	}
	return envBase(env)
}

// envBase is the base URL that the environment names, else the default.
func envBase(env Getenv) (string, error) {
	given := env(EnvBaseURL)
	if given == "" {
		return DefaultBaseURL, nil
	}
	base, err := parseURL(given)
	if err != nil {
		return "", fmt.Errorf("%s: %w", EnvBaseURL, err)
	}
	return base, nil
}

// MaxURL bounds a base URL, in bytes.
const MaxURL = 500

// What is said of base URLs that may hold a secret: their lines are not shown.
const (
	urlWithUser = "a base URL holds no user and no password: keep the key in a variable or a file"
	urlWithMore = "a base URL has nothing after its path: remove what follows ? or #"
)

// parseURL checks a base URL and gives it one form: scheme and host in lower case, no
// port that the scheme implies, no slash at the end. It never repeats what it refuses
// for holding a password.
func parseURL(text string) (string, error) {
	u, err := url.Parse(text)
	_, hidden := tools.Visible(text)
	switch {
	case err != nil || hidden > 0 || strings.ContainsAny(text, " \\") || strings.ContainsFunc(text, func(r rune) bool { return r > '~' }):
		return "", errors.New("this is no URL: write one such as " + DefaultBaseURL)
	case len(text) > MaxURL:
		return "", fmt.Errorf("a base URL has at most %d bytes", MaxURL)
	case u.User != nil:
		return "", errors.New(urlWithUser)
	case u.Scheme != "https" && u.Scheme != "http" || u.Opaque != "" || u.Hostname() == "" || strings.Contains(u.Host, "%"):
		return "", errors.New("a base URL begins with https:// and a host, or with http:// for this machine")
	case strings.HasSuffix(strings.TrimRight(u.Path, "/"), "/chat/completions"):
		return "", errors.New("a base URL goes up to /chat/completions, and without it: leave that away")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#"):
		return "", errors.New(urlWithMore)
	}
	where := u.EscapedPath()
	if clean := strings.TrimRight(where, "/"); clean != "" && path.Clean(clean) != clean || strings.Contains(where, "%2") {
		return "", errors.New("the path of a base URL is written out: without .., doubled slashes, or escaped ones")
	}
	host := strings.ToLower(u.Hostname())
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if port := u.Port(); port != "" && port != map[string]string{"https": "443", "http": "80"}[u.Scheme] {
		host += ":" + port
	}
	return u.Scheme + "://" + host + strings.TrimRight(where, "/"), nil
}

// loopback reports whether a base URL leads to this machine.
func loopback(base string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	host := u.Hostname()
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback() && addr.Zone() == ""
}

// unencrypted reports whether what is sent there can be read on the way.
func unencrypted(base string) bool { return strings.HasPrefix(base, "http://") && !loopback(base) }

// UserEndpoint is a base URL that the user lets documents be sent to, in whatever
// project, and the key that goes there: none, unless it says which.
type UserEndpoint struct {
	URL     string
	KeyEnv  string
	KeyFile string
}

type userEndpointForm struct {
	URL     string `yaml:"url" check:"required"`
	KeyEnv  string `yaml:"key_env"`
	KeyFile string `yaml:"key_file"`
}

// UnmarshalConfig reads a URL, or a mapping.
func (e *UserEndpoint) UnmarshalConfig(n Node) error {
	if text, ok := n.Text(); ok {
		*e = UserEndpoint{URL: text}
	} else {
		var form userEndpointForm
		if err := n.Decode(&form); err != nil {
			return err
		}
		*e = UserEndpoint(form)
	}
	return nil
}

// A Refused endpoint is one that nobody but a project's file names, or that is asked
// without encryption: documents would be sent there.
type Refused struct {
	URL    string
	Why    string
	Remedy string
}

// Error names the endpoint, why it is refused, and what to do.
func (r *Refused) Error() string { return fmt.Sprintf("%s: %s: %s", r.URL, r.Why, r.Remedy) }

// Admit decides whether a run may ask its model at a base URL, whatever file named it,
// and which key goes there. It is asked when a run begins, and again by every process
// that serves it. The error is a [*Refused].
//
// Admitted are: what the user's own file lists under endpoints, or names for its own
// model; what OPENAI_BASE_URL names, or the default if that is not set; and this
// machine. Without encryption only this machine is asked, and what the file lists. The
// key of OPENAI_API_KEY goes to the endpoint of the environment; another key, to the
// endpoint that the user's file names it for; no key, anywhere else.
func (u *User) Admit(base string, env Getenv) (Key, error) {
	plain := unencrypted(base)
	for _, e := range u.Endpoints {
		if e.URL != base {
			continue
		}
		if key := (Key{Env: e.KeyEnv, File: e.KeyFile, Needed: true}); key.said() {
			return key, nil
		}
		if key, ok := u.modelKey(base, env); ok && key.said() {
			return key, nil
		}
		return Key{}, nil
	}
	switch surroundings, err := envBase(env); {
	case plain:
		return Key{}, &Refused{base, "documents would be sent there without encryption",
			"use https://, or list exactly this URL under `endpoints` in your own configuration"}
	case err != nil && !loopback(base):
		return Key{}, &Refused{base, err.Error(), "mend the variable"}
	case err == nil && surroundings == base:
		if key, ok := u.modelKey(base, env); ok && key.said() {
			return key, nil
		}
		return Key{Env: EnvKey, Needed: base == DefaultBaseURL}, nil
	}
	if key, ok := u.modelKey(base, env); ok {
		return cmp.Or(key, Key{Env: EnvKey}), nil
	}
	if loopback(base) {
		return Key{}, nil
	}
	if base == DefaultBaseURL {
		return Key{}, &Refused{base, EnvBaseURL + " names another endpoint, and the key of " + EnvKey + " is for that",
			"unset the variable, or list this endpoint under `endpoints` in your own configuration, with its key_env"}
	}
	return Key{}, &Refused{base, "only a project's file names this endpoint, and documents would be sent there",
		fmt.Sprintf("if you trust it, list it under `endpoints` in your own configuration, or set %s", EnvBaseURL)}
}

// Reach is [User.Admit] for a run that has begun: where the environment has changed
// since then, the error says what the run was begun with. A run that was begun with a
// key is not asked without one: then the error is an [ErrNoKey].
func (u *User) Reach(e Endpoint, env Getenv) (Key, error) {
	key, err := u.Admit(e.BaseURL, env)
	if err != nil {
		if refused := new(Refused); errors.As(err, &refused) && e.Surroundings && !unencrypted(e.BaseURL) {
			return key, &Refused{e.BaseURL, fmt.Sprintf("the run was begun with %s=%s, and here it is not set to that", EnvBaseURL, e.BaseURL),
				"set it again, or list this endpoint under `endpoints` in your own configuration"}
		}
		return key, err
	}
	found, err := key.Read(env)
	switch {
	case err != nil || found != "" || !e.Keyed:
		return key, err
	case e.Surroundings:
		return key, fmt.Errorf("%w: the run was begun with %s=%s and a key, and here there is none for it: "+
			"set it again, and %s, or list the endpoint under `endpoints` in your own configuration, with its key_env",
			ErrNoKey, EnvBaseURL, e.BaseURL, EnvKey)
	}
	return key, fmt.Errorf("%w: the run was begun with a key for %s, and here there is none for it: "+
		"set %s again, or list the endpoint under `endpoints` in your own configuration, with its key_env", ErrNoKey, e.BaseURL, EnvKey)
}

// keepsKey reports whether the key of an endpoint is in that variable.
func (u *User) keepsKey(variable string) bool {
	return variable == EnvKey || u.Model.OpenAI != nil && u.Model.OpenAI.KeyEnv == variable ||
		slices.ContainsFunc(u.Endpoints, func(e UserEndpoint) bool { return e.KeyEnv == variable })
}

// modelKey is the key that the user's own file names for its own model, if that is
// asked at this base URL.
func (u *User) modelKey(base string, env Getenv) (Key, bool) {
	o := u.Model.OpenAI
	if o == nil {
		return Key{}, false
	}
	own, err := o.base(env)
	if err != nil || own != base {
		return Key{}, false
	}
	return Key{Env: o.KeyEnv, File: o.KeyFile, Needed: o.KeyEnv != "" || o.KeyFile != ""}, true
}

// ModelTimeout is the time limit as package time knows it; 0 leaves it to the client.
func (e Endpoint) ModelTimeout() time.Duration { return e.Timeout.Std() }
