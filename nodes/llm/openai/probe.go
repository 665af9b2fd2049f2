package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"sallyport/nodes"
	"sallyport/nodes/llm/chat"
)

// MaxProbe bounds the time of [Model.Models]; a shorter [Config.Timeout] counts.
const MaxProbe = 15 * time.Second

// Models asks the endpoint which models it has, with one request that costs nothing. What
// a name repeats of the key is taken out, and a long one is cut. The error is a
// [*nodes.Unavailable] as a turn's would be, without the key: with [chat.ReasonNotFound]
// the endpoint is there, and has no such list.
func (m *Model) Models(ctx context.Context) ([]string, error) {
	key, err := m.key()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", nodes.ErrModelFault, err)
	}
	a := &attempt{model: m, timeout: min(m.config.Timeout, MaxProbe), secrets: secrets{key: key}}
	limited, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	names, err := a.list(a.traced(limited), key)
	switch {
	case err == nil:
		return names, nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("ask for the models: %w", ctx.Err())
	}
	return nil, a.failure(limited, err)
}

func (a *attempt) list(ctx context.Context, key string) ([]string, error) {
	var response *http.Response
	err := a.model.client.Get(ctx, "models", nil, &response, a.model.authorised(key)...)
	if response == nil {
		if err == nil {
			err = errors.New("there is no response")
		}
		return nil, err
	}
	defer func() { _ = response.Body.Close() }() // nothing is left to be said about it
	if response.StatusCode != http.StatusOK {
		return nil, a.refused(response)
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, chat.MaxResponse+1))
	if err != nil {
		return nil, err
	}
	names, err := chat.Models(body)
	for i, name := range names {
		if name != a.model.config.Model {
			names[i] = a.secrets.out(name)
		}
	}
	return names, err
}

// Otherwise is the same model asked with another profile or other options, to see what
// an endpoint takes.
func (m *Model) Otherwise(change func(*chat.Profile, *chat.Options)) *Model {
	other := *m
	change(&other.profile, &other.options)
	other.config.Stream = other.options.Stream
	return &other
}
