package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	sdk "github.com/openai/openai-go"
	"github.com/openai/openai-go/option"

	"sallyport/nodes"
	"sallyport/nodes/llm/chat"
)

// Model asks one model at one endpoint. It serves many runs at once.
type Model struct {
	config   Config
	profile  chat.Profile
	endpoint endpoint
	options  chat.Options
	http     *http.Client
	client   sdk.Client
	now      func() time.Time
}

var _ nodes.Model = (*Model)(nil)

// New makes a client. It opens no connection. Its errors name what is wrong with the
// configuration.
func New(c Config) (*Model, error) {
	p, e, err := c.check()
	if err != nil {
		return nil, fmt.Errorf("set up the model: %w", err)
	}
	m := &Model{
		config: c, profile: p, endpoint: e, http: bounded(c.HTTP), now: time.Now,
		options: chat.Options{
			Model: c.Model, MaxTokens: c.MaxTokens, Temperature: c.Temperature, Seed: c.Seed, Stream: c.Stream,
		},
	}
	// A Client that is made by hand has no defaults, and so reads no environment.
	m.client = sdk.Client{Options: []option.RequestOption{
		option.WithBaseURL(e.base), option.WithHTTPClient(m.http), option.WithMaxRetries(0),
		option.WithHeader("User-Agent", "sallyport"),
	}}
	// What the library tells of this machine is nobody's business.
	for _, name := range []string{"Lang", "Package-Version", "Os", "Arch", "Runtime", "Runtime-Version", "Retry-Count", "Timeout"} {
		m.client.Options = append(m.client.Options, option.WithHeaderDel("X-Stainless-"+name))
	}
	// The library appends the options of a request to these: with room left, requests that
	// run at once would take one another's, the key among them.
	m.client.Options = slices.Clip(m.client.Options)
	return m, nil
}

// Profile is the name of the profile in use.
func (m *Model) Profile() string { return m.profile.Name }

// Close closes connections that are not in use.
func (m *Model) Close() { m.http.CloseIdleConnections() }

// Turn implements [nodes.Model] with one request.
func (m *Model) Turn(ctx context.Context, r nodes.Request) (nodes.Reply, error) {
	body, err := m.profile.Encode(r, m.options)
	if err != nil {
		return nodes.Reply{}, fmt.Errorf("%w: %w", nodes.ErrModelFault, err)
	}
	key, err := m.key()
	if err != nil {
		return nodes.Reply{}, fmt.Errorf("%w: %w", nodes.ErrModelFault, err)
	}
	limited, cancel := context.WithTimeout(ctx, m.config.Timeout)
	defer cancel()
	a := &attempt{model: m, request: r, body: body, timeout: m.config.Timeout, secrets: secrets{key: key, request: body}}
	reply, err := a.do(a.traced(limited), key)
	switch {
	case err == nil && a.secrets.in(reply):
		return nodes.Reply{}, a.because(chat.ReasonKeyRepeated, "the response holds the key that it was asked with: no turn of this endpoint is kept")
	case err == nil:
		return chat.Estimate(reply, body), nil
	}
	if ctx.Err() != nil {
		return nodes.Reply{}, fmt.Errorf("ask the model: %w", ctx.Err())
	}
	return nodes.Reply{}, a.failure(limited, err)
}

// key is the key of this attempt; empty if there is none.
func (m *Model) key() (string, error) {
	if m.config.Key == nil {
		return "", nil
	}
	key, err := m.config.Key()
	if err != nil {
		return "", fmt.Errorf("find the model's key: %w", err)
	}
	for _, r := range key {
		if r <= ' ' || r > '~' {
			return "", errors.New("the model's key holds a character that no key has")
		}
	}
	return key, nil
}

// do sends the request and reads what comes back. Its errors are not fit to be shown:
// see failure.
func (a *attempt) do(ctx context.Context, key string) (nodes.Reply, error) {
	options := a.model.authorised(key)
	if a.model.config.Stream {
		options = append(options, option.WithHeader("Accept", "text/event-stream"))
	}
	var response *http.Response
	err := a.model.client.Post(ctx, a.model.endpoint.path, a.body, &response, options...)
	if response == nil {
		if err == nil {
			err = errors.New("there is no response")
		}
		return nodes.Reply{}, err
	}
	defer func() { _ = response.Body.Close() }() // nothing is left to be said about it
	if response.StatusCode != http.StatusOK {
		return nodes.Reply{}, a.refused(response)
	}
	if err != nil {
		return nodes.Reply{}, err
	}
	return a.read(response)
}

// authorised are the options of every request: the key, and the query of the endpoint.
func (m *Model) authorised(key string) []option.RequestOption {
	var options []option.RequestOption
	switch {
	case key == "":
	case m.profile.Name == "azure":
		options = append(options, option.WithHeader("Api-Key", key))
	default:
		options = append(options, option.WithAPIKey(key))
	}
	for name, values := range m.endpoint.query {
		options = append(options, option.WithQuery(name, values[0]))
	}
	return options
}

// refused is the failure of a status other than 200. The library has read the body of
// an error; one that it could not read says nothing.
func (a *attempt) refused(response *http.Response) error {
	var body []byte
	if response.StatusCode >= http.StatusBadRequest {
		if data, err := io.ReadAll(response.Body); err == nil {
			body = data
		}
	}
	u := chat.Failure(response.StatusCode, body)
	u.After = retryAfter(response.Header, a.model.now())
	return u
}

// read takes the response as what it says it is: a stream, or a whole one, which some
// give whatever was asked for.
func (a *attempt) read(response *http.Response) (nodes.Reply, error) {
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	switch {
	case err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json")):
		body, err := io.ReadAll(io.LimitReader(response.Body, chat.MaxResponse+1))
		if err != nil {
			return nodes.Reply{}, err
		}
		return a.model.profile.Decode(a.request.Tools, body)
	case err == nil && kind == "text/event-stream" && a.model.config.Stream:
		return a.stream(response.Body)
	}
	return nodes.Reply{}, chat.Unavailable(chat.ReasonBadResponse, errors.New("the response is of a content type that was not asked for"))
}

// stream reads events up to the end marker; what may follow it is not waited for.
func (a *attempt) stream(body io.Reader) (nodes.Reply, error) {
	assembler := a.model.profile.Assemble(a.request.Tools)
	shown := veil{forms: a.secrets.forms()}
	for data, err := range chat.Events(body) {
		if err != nil {
			return nodes.Reply{}, err
		}
		text, err := assembler.Add(data)
		if err != nil {
			return nodes.Reply{}, err
		}
		if text = shown.piece(text); text != "" && a.model.config.Text != nil {
			a.model.config.Text(a.request.Run, text)
		}
		if assembler.Done() {
			break
		}
	}
	return assembler.Reply()
}
