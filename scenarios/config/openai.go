package config

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"sallyport/agent"
	"sallyport/nodes/llm/chat"
	"sallyport/tools"
)

// OpenAI is an endpoint that speaks Chat Completions, as people write it: the name of
// a model, or a mapping. What is absent comes from the environment, or has a default.
type OpenAI struct {
	Model      string          `yaml:"model" json:"model,omitempty"`
	BaseURL    string          `yaml:"base_url" json:"base_url,omitempty"`
	Profile    string          `yaml:"profile" json:"profile,omitempty"`
	APIVersion string          `yaml:"api_version" json:"api_version,omitempty"`
	KeyEnv     string          `yaml:"key_env" json:"-"`  // the user's own file only
	KeyFile    string          `yaml:"key_file" json:"-"` // likewise
	Timeout    *tools.Duration `yaml:"timeout" check:"positive" json:"timeout,omitempty"`
	MaxTokens  *int64          `yaml:"max_tokens" check:"positive" json:"max_tokens,omitempty"`
	// Temperature and Seed are sent only if they are said.
	Temperature *float64 `yaml:"temperature" json:"temperature,omitempty"`
	Seed        *int64   `yaml:"seed" json:"seed,omitempty"`
	Prices      *Prices  `yaml:"prices" json:"prices,omitempty"`
}

// Prices are what a model costs, for a million tokens each.
type Prices struct {
	// Currency is three capital letters, such as EUR.
	Currency string `yaml:"currency" check:"required" json:"currency"`
	// Input is the price of input tokens that no cache served.
	Input *Amount `yaml:"input" check:"required" json:"input"`
	// Cached is the price of those that a cache served; absent, it is that of Input.
	Cached *Amount `yaml:"cached" json:"cached,omitempty"`
	// Output is the price of output tokens.
	Output *Amount `yaml:"output" check:"required" json:"output"`
}

// problems lists what is wrong with prices; path leads to them.
func (p *Prices) problems(path ...string) []tools.Problem {
	if p == nil || currency.MatchString(p.Currency) {
		return nil
	}
	return []tools.Problem{{Path: append(path, "currency"), Message: fmt.Sprintf(
		"%q is no currency: write three capital letters, such as EUR", p.Currency)}}
}

// Pinned are the prices as a run pins them; nil for nil.
func (p *Prices) Pinned() *agent.Prices {
	if p == nil {
		return nil
	}
	cached := p.Input
	if p.Cached != nil {
		cached = p.Cached
	}
	return &agent.Prices{Currency: p.Currency, Input: int64(*p.Input), Cached: int64(*cached), Output: int64(*p.Output)}
}

// openAIForm is the mapping.
type openAIForm OpenAI

// UnmarshalConfig reads the name of a model, or a mapping.
func (o *OpenAI) UnmarshalConfig(n Node) error {
	if name, ok := n.Text(); ok {
		if strings.TrimSpace(name) == "" {
			return fmt.Errorf("the name of the model is empty: write one, or a mapping with base_url and leave it to %s", EnvModel)
		}
		*o = OpenAI{Model: name}
		return nil
	}
	if !n.IsMapping() {
		return fmt.Errorf("write the name of a model, such as `openai: NAME`, or a mapping with model and base_url")
	}
	var form openAIForm
	if err := n.Decode(&form); err != nil {
		return err
	}
	*o = OpenAI(form)
	return nil
}

// Limits of what is said of an endpoint.
const (
	// MaxModelName bounds the name of a model, in bytes.
	MaxModelName = 200
	// MaxModelTimeout bounds the time limit of one attempt.
	MaxModelTimeout = 10 * time.Minute
	// MaxTemperature is the highest temperature that Chat Completions knows.
	MaxTemperature = 2
)

var (
	currency   = regexp.MustCompile(`^[A-Z]{3}$`)
	apiVersion = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.-]{0,39}$`)
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
)

// problems lists what is wrong with it; own says that the user's own file says it.
func (o *OpenAI) problems(own bool) []tools.Problem {
	var found []tools.Problem
	wrong := func(key, format string, args ...any) {
		found = append(found, tools.Problem{Path: []string{"model", KindOpenAI, key}, Message: fmt.Sprintf(format, args...)})
	}
	if why := badName(o.Model); o.Model != "" && why != "" {
		wrong("model", "%s", why)
	}
	if o.BaseURL != "" {
		if _, err := parseURL(o.BaseURL); err != nil {
			wrong("base_url", "%v", err)
		}
	}
	if o.Profile != "" && !slices.Contains(chat.Profiles(), o.Profile) {
		wrong("profile", "there is no profile %q: profiles are %s", o.Profile, strings.Join(chat.Profiles(), ", "))
	}
	if o.APIVersion != "" && !apiVersion.MatchString(o.APIVersion) {
		wrong("api_version", "%q is no version of an API: write one such as 2025-04-01-preview", o.APIVersion)
	}
	if t := o.Timeout; t != nil && (t.Std() < time.Second || t.Std() > MaxModelTimeout) {
		wrong("timeout", "%s: one attempt has between 1s and %s", t, tools.Duration(MaxModelTimeout))
	}
	if t := o.Temperature; t != nil && !(*t >= 0 && *t <= MaxTemperature) {
		wrong("temperature", "%v: write a number from 0 to %d", *t, MaxTemperature)
	}
	found = append(found, o.Prices.problems("model", KindOpenAI, "prices")...)
	return append(found, keyProblems(o.KeyEnv, o.KeyFile, own, "model", KindOpenAI)...)
}

// keyForName is said of a key_env that is no name.
const keyForName = "write the name of an environment variable, not the key itself"

// keyOfProject is said of a key that a project names.
const keyOfProject = "a project cannot say which secret goes to an endpoint: remove the key, and write it under `endpoints` in your own configuration"

// keyProblems lists what is wrong with where a key is said to be.
func keyProblems(env, file string, own bool, path ...string) []tools.Problem {
	var found []tools.Problem
	wrong := func(key, message string) {
		found = append(found, tools.Problem{Path: append(path[:len(path):len(path)], key), Message: message})
	}
	for key, value := range map[string]string{"key_env": env, "key_file": file} {
		if value != "" && !own {
			wrong(key, keyOfProject)
		}
	}
	switch {
	case !own:
	case env != "" && file != "":
		wrong("key_file", "a key is in a variable or in a file: remove key_env or key_file")
	case env != "" && !envName.MatchString(env):
		wrong("key_env", keyForName)
	}
	return found
}

// CheckModelName reports what is wrong with the name of a model.
func CheckModelName(name string) error {
	if why := badName(name); why != "" {
		return errors.New(why)
	}
	return nil
}

// badName says what is wrong with the name of a model; empty if nothing is.
func badName(name string) string {
	_, hidden := tools.Visible(name)
	switch {
	case strings.TrimSpace(name) != name || name == "":
		return "the name of a model is neither empty nor has blanks around it"
	case len(name) > MaxModelName:
		return fmt.Sprintf("the name of a model has at most %d bytes", MaxModelName)
	case hidden > 0 || strings.ContainsAny(name, "\n\t "):
		return "the name of a model holds no blanks, and nothing that cannot be seen"
	}
	return ""
}
