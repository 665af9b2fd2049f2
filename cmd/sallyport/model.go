package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/nodes/llm/cassette"
	"sallyport/nodes/llm/openai"
	"sallyport/scenarios"
	"sallyport/scenarios/config"
)

// modelFlags are those of commands that ask a model.
type modelFlags struct {
	model  string
	record string
}

// asked adds the flags of a command that goes on with a run.
func (a *app) asked(c *cobra.Command, f *modelFlags) {
	c.Flags().BoolVar(&a.streams, "stream", false, "show on stderr what the model says as it comes; the run is the same")
	c.Flags().StringVar(&f.record, "record", "", "record what the model answers in `FILE`, to be played again with: model: {replay: FILE}")
}

// liveLabel stands before what a model says as it comes.
const liveLabel = "The model says, as it comes (untrusted):"

// endpoint makes the model of runs that ask an endpoint, if the user lets them: by now,
// whatever was so when the run began.
func (a *app) endpoint(e config.Endpoint) (nodes.Model, error) {
	key, err := admitted(e)
	if err != nil {
		return nil, err
	}
	c := openai.Config{
		Model: e.Model, BaseURL: e.BaseURL, Profile: e.Profile, APIVersion: e.APIVersion, Timeout: e.Timeout.Std(),
		MaxTokens: e.MaxTokens, Temperature: e.Temperature, Seed: e.Seed, Stream: a.streams,
		Key: func() (string, error) { return key.Read(os.Getenv) },
	}
	if a.streams {
		width := a.console().Width()
		c.Text = func(_, delta string) { a.stderr.piece(liveLabel, delta, width) }
	}
	m, err := openai.New(c)
	if err != nil {
		return nil, usage("mend the model's configuration", "%w", err)
	}
	return m, nil
}

// admitted decides whether an endpoint may be asked, and with which key.
func admitted(e config.Endpoint) (config.Key, error) {
	home, err := configHome()
	if err != nil {
		return config.Key{}, err
	}
	user, err := config.LoadUser(home)
	if err != nil {
		return config.Key{}, usage("", "%w", err)
	}
	key, err := user.Reach(e, os.Getenv)
	if refused := new(config.Refused); errors.As(err, &refused) {
		return key, usage("", "%w", err)
	}
	return key, err
}

// recorder records the model of one run in a file: a new one, or, for a run that goes
// on, also the one that was begun with it. The caller calls done. Without a path nothing
// is recorded.
func recorder(path string, goesOn *agent.Run) (record func(agent.Run, nodes.Model) nodes.Model, done func() error, err error) {
	if path == "" {
		return nil, func() error { return nil }, nil
	}
	r, err := cassette.Create(path)
	switch {
	case errors.Is(err, fs.ErrExist) && goesOn != nil:
		if r, err = cassette.Append(path); err != nil {
			break
		}
		if wrong := r.Fits(goesOn.ID, goesOn.Spec.Model); wrong != nil {
			return nil, nil, errors.Join(usage("give a new file: what this one records is another run's", "record in %q: %w", path, wrong), r.Close())
		}
	case errors.Is(err, fs.ErrExist):
		return nil, nil, usage("choose another file; a run that goes on goes on in its cassette with: sallyport resume RUN --record FILE",
			"record in %q: the file is there already", path)
	}
	if fault := new(cassette.Error); errors.As(err, &fault) {
		return nil, nil, usage("give a new file: this one is damaged, or no cassette", "record: %w", err)
	}
	if err != nil {
		return nil, nil, usage("give a file that can be written, in a folder that is there", "record: %w", err)
	}
	return func(run agent.Run, m nodes.Model) nodes.Model { return r.Model(run.Spec.Model, m) }, r.Close, nil
}

// recording lets a host record while it is used.
func recording(host *scenarios.Host, path string, goesOn *agent.Run, use func() error) (err error) {
	var done func() error
	if host.Record, done, err = recorder(path, goesOn); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	return use()
}

// tapeFault begins the message about a cassette that does not fit its run.
const tapeFault = "the cassette cannot be played"

// replayErr is the failure of a cassette; nil if err is none.
func replayErr(err error, next string) error {
	var tape *cassette.Error
	if !errors.As(err, &tape) {
		return nil
	}
	return fail(exitUsage, next, "%w", fmt.Errorf("%s: %w", tapeFault, tape))
}
