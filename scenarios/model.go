package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/nodes/llm"
	"sallyport/nodes/llm/cassette"
	"sallyport/scenarios/config"
	"sallyport/tools"
)

// Replay is the cassette that a run is played from. It is kept with the run, so that
// the run goes on in the same way whatever becomes of the file.
type Replay struct {
	File string        `json:"file"` // for people
	Body agent.BodyRef `json:"body"`

	body agent.Body // until the run has begun
}

// choice settles which model a file's run asks. What the file leaves out is said by its
// configuration, by flags, and by the environment.
type choice struct {
	scenario *Scenario
	file     *config.File
	own      config.Model // what the file itself says
	options  LoadOptions
	// limited says that the file itself limits the cost.
	limited bool
	// script reads a scripted model.
	script func(*config.Script) (llm.Script, error)

	model  config.Model
	env    config.Getenv
	player *cassette.Player
}

// choose settles the model of a scenario, whose configuration is known.
func (c choice) choose() error {
	if err := c.file.Problems(c.own.Problems()); err != nil {
		return err
	}
	if c.env = c.options.Getenv; c.env == nil {
		c.env = os.Getenv
	}
	c.model = c.own.Over(c.scenario.Config.Model)
	user := &config.User{}
	if named := c.named(); named || c.model.OpenAI != nil {
		var err error
		if user, err = loadUser(c.options.UserDir); err != nil {
			return err
		}
		if named {
			c.model = c.asked(user)
		}
	}
	if err := c.answering(user); err != nil {
		return err
	}
	if err := c.window(); err != nil {
		return err
	}
	return c.costs()
}

func loadUser(dir string) (*config.User, error) {
	if dir == "" {
		var err error
		if dir, err = config.UserDir(); err != nil {
			return nil, err
		}
	}
	return config.LoadUser(dir)
}

// named reports whether a flag or the environment, and no file, says that an endpoint
// is asked.
func (c choice) named() bool {
	return c.options.Model != "" || c.model.Kind() == "" && c.env(config.EnvModel) != ""
}

// asked is the model with an endpoint in its place: the configuration's, or the user's,
// or one of which nothing but its name is known.
func (c choice) asked(user *config.User) config.Model {
	if c.model.OpenAI != nil {
		return c.model
	}
	from := config.Model{OpenAI: &config.OpenAI{}}
	for _, m := range []config.Model{c.scenario.Config.Model, user.Model} {
		if m.OpenAI != nil {
			from = m
			break
		}
	}
	m := c.model
	m.Script, m.Replay, m.Prices = nil, nil, nil
	return m.Over(from)
}

// answering sets the model up.
func (c *choice) answering(user *config.User) error {
	s := c.scenario
	switch c.model.Kind() {
	case config.KindScript:
		var err error
		s.label = config.KindScript
		s.setup.Script, err = c.script(c.model.Script)
		return err
	case config.KindOpenAI:
		return c.endpoint(user)
	case config.KindReplay:
		return c.replay()
	}
	return &config.Error{Diagnostics: []config.Diagnostic{c.file.Problem(
		"write `model: {openai: NAME}`, or a script, here or in the configuration; or give --model NAME, or set "+config.EnvModel,
		"nothing says which model answers", "task")}}
}

// endpoint settles where the model is asked, and whether it may be asked there.
func (c *choice) endpoint(user *config.User) error {
	e, err := c.model.OpenAI.Resolve(c.options.Model, c.env)
	switch {
	case err != nil && c.options.Model != "":
		return fmt.Errorf("the model %q: %w", c.options.Model, err)
	case err != nil:
		return c.place(c.own.OpenAI != nil, err, "model", config.KindOpenAI)
	}
	key, err := user.Admit(e.BaseURL, c.env)
	if err != nil {
		return c.place(c.own.OpenAI != nil, err, "model", config.KindOpenAI, "base_url")
	}
	e.Keyed = key.Here(c.env)
	c.scenario.setup.Endpoint, c.scenario.label = &e, e.Label()
	return nil
}

// maxModelLabel bounds the label of a recorded model, in bytes.
const maxModelLabel = 800

// replay reads the cassette.
func (c *choice) replay() error {
	r := c.model.Replay
	path, err := filepath.Abs(r.Beside(c.scenario.File))
	if err != nil {
		return fmt.Errorf("find the cassette %q: %w", r.File, err)
	}
	player, data, err := cassette.Load(path)
	if errors.As(err, new(*cassette.Error)) {
		return err // it names the place in the cassette
	}
	if err != nil {
		return r.Errorf("%v: name a file that `sallyport run --record` made, from the folder of this one", err)
	}
	if _, hidden := tools.Visible(player.Model()); hidden > 0 || len(player.Model()) > maxModelLabel {
		return r.Errorf("the cassette names a model that cannot be shown: record it anew")
	}
	body := agent.NewBody(data)
	c.player = player
	c.scenario.setup.Replay = &Replay{File: path, Body: body.Ref, body: body}
	c.scenario.label = config.KindReplay + ":" + player.Model()
	return nil
}

// window settles what the model is given. A cassette is played with the tools that it
// was recorded with.
func (c *choice) window() error {
	s := &c.scenario.setup
	if w := c.model.Context; w != nil {
		if w.Bytes != nil {
			s.Window.Bytes = *w.Bytes
		}
		if w.Tokens != nil {
			s.Window.Tokens = *w.Tokens
		}
		if err := s.Window.Check(); err != nil {
			return c.place(c.own.Context != nil, err, "model", "context")
		}
	}
	switch {
	case c.model.OpenBody != nil:
		s.OpenBody = *c.model.OpenBody
	case c.player != nil:
		s.OpenBody = c.player.Offers(nodes.OpenBody)
	default:
		s.OpenBody = s.Endpoint != nil
	}
	return nil
}

// costs pins the prices. A limit of cost needs some; where only the user's ceiling or
// the configuration limits it, a model that costs nothing needs none.
func (c *choice) costs() error {
	s := c.scenario
	s.prices = c.model.Costs().Pinned()
	if s.prices != nil || s.budget.Cost == 0 {
		return nil
	}
	problem := errors.New("the cost is limited, and nothing says what the model costs: write its `prices` under `model`")
	switch {
	case c.limited:
		return c.place(true, problem, "budgets", "cost")
	case s.setup.Endpoint != nil:
		return c.place(c.own.OpenAI != nil, problem, "model", config.KindOpenAI)
	}
	s.budget.Cost = 0
	return nil
}

// place puts a problem at its place: in the file itself, or in the configuration.
func (c *choice) place(own bool, err error, path ...string) error {
	problem := []tools.Problem{{Path: path, Message: err.Error()}}
	switch {
	case own:
		return c.file.Problems(problem)
	case c.model.Own(), path[1] == config.KindOpenAI && c.scenario.Config.Model.OpenAI == nil:
		return err
	}
	return c.scenario.Config.Problems(problem)
}

// ErrNoEndpoints: the program that serves a run reaches no endpoint of models.
var ErrNoEndpoints = errors.New("no endpoint of a model can be asked from here")

// model makes the model of a run from what it was begun with.
func (h *Host) model(ctx context.Context, run agent.Run, s Setup) (nodes.Model, error) {
	m, err := h.answering(ctx, run, s)
	if err == nil && h.Record != nil {
		m = h.Record(run, m)
	}
	return m, err
}

func (h *Host) answering(ctx context.Context, run agent.Run, s Setup) (nodes.Model, error) {
	switch {
	case h.Model != nil:
		return h.Model(run), nil
	case s.Endpoint != nil:
		return h.ask(*s.Endpoint)
	case s.Replay != nil:
		return h.player(ctx, run, *s.Replay)
	}
	return s.written(), nil
}

func (h *Host) ask(e config.Endpoint) (nodes.Model, error) {
	if h.Endpoint == nil {
		return nil, fmt.Errorf("ask %s: %w", e.Label(), ErrNoEndpoints)
	}
	m, err := h.Endpoint(e)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", e.Label(), err)
	}
	return m, nil
}

// player plays the cassette that is kept with a run.
func (h *Host) player(ctx context.Context, run agent.Run, r Replay) (nodes.Model, error) {
	data, err := h.Engine.Body(ctx, run.ID, r.Body)
	if err != nil {
		return nil, fmt.Errorf("read the cassette of run %s: %w", run.ID, err)
	}
	return cassette.Parse(r.File, data)
}

// prepared checks that the model of a run can be made before the run begins, and
// returns what is kept with it.
func (h *Host) prepared(s Setup) ([]agent.Body, error) {
	switch {
	case h.Model != nil:
	case s.Endpoint != nil:
		if _, err := h.ask(*s.Endpoint); err != nil {
			return nil, err
		}
	}
	if s.Replay != nil {
		return []agent.Body{s.Replay.body}, nil
	}
	return nil, nil
}
