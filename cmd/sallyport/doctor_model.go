package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/nodes"
	"sallyport/nodes/llm/chat"
	"sallyport/nodes/llm/openai"
	"sallyport/scenarios"
	"sallyport/scenarios/config"
	"sallyport/tools"
)

// model looks which model answers, and asks it if it is one behind an endpoint.
func (d *doctor) model(ctx context.Context) {
	e, err := d.endpoint()
	switch {
	case err != nil:
		d.fail("model", exitUsage, "see docs/models.md", "%s", err)
		return
	case e == nil:
		return
	}
	m, ok := d.admitted(*e)
	if !ok || !d.reached(ctx, m, *e) {
		return
	}
	first := d.adds(ctx, *e)
	switch {
	case ctx.Err() != nil || d.denied():
	case d.live:
		d.quirks(ctx, m, *e, first)
	default:
		d.skip("streaming", "say --live to have it tried, with a few more short questions")
	}
}

// denied reports whether the endpoint did not take the key.
func (d *doctor) denied() bool {
	return slices.ContainsFunc(d.found, func(f finding) bool { return f.Check == "key" && f.Health == healthFail })
}

// endpoint is where the configured model is asked; nil if there is nothing to ask, which
// it has told then.
func (d *doctor) endpoint() (*config.Endpoint, error) {
	m := d.user.Model
	if d.conf != nil {
		m = d.conf.Model
	}
	switch kind := m.Kind(); {
	case kind == config.KindScript || kind == config.KindReplay:
		d.pass("model", "it is written down (%s), and nobody is asked; its file is read when a run begins", kind)
		return nil, nil
	case m.OpenAI == nil && os.Getenv(config.EnvModel) == "":
		d.warn("model", "set "+config.EnvModel+", or write `model: {openai: NAME}`: docs/models.md", "none is configured here; a task may name one itself")
		return nil, nil
	case m.OpenAI == nil:
		m.OpenAI = &config.OpenAI{}
	}
	e, err := m.OpenAI.Resolve("", os.Getenv)
	return &e, err
}

// admitted makes the client, if the user lets the endpoint be asked and the key is there.
func (d *doctor) admitted(e config.Endpoint) (*openai.Model, bool) {
	made, err := d.app.endpoint(e)
	if err != nil {
		d.failErr("model", "", fmt.Errorf("%s at %s: %w", e.Model, e.BaseURL, err))
		return nil, false
	}
	m, ok := made.(*openai.Model)
	if !ok {
		d.fail("model", exitFailed, "", "%s is no endpoint", e.Label())
		return nil, false
	}
	d.pass("model", "%s at %s, with the profile %s", e.Model, e.BaseURL, m.Profile())
	return m, true
}

// reached asks for the list of models, which costs nothing: it tells whether the endpoint
// is there, takes the key, and has the model. It reports whether to go on.
func (d *doctor) reached(ctx context.Context, m *openai.Model, e config.Endpoint) bool {
	began := time.Now()
	names, err := m.Models(ctx)
	took := time.Since(began).Round(time.Millisecond)
	var u *nodes.Unavailable
	switch {
	case ctx.Err() != nil:
		return false
	case err == nil:
		d.pass("endpoint", "it answers, after %s, and takes the key, or needs none", took)
		d.named(names, e.Model)
		return true
	case !errors.As(err, &u):
		d.failErr("key", "", err)
		return false
	}
	switch u.Reason {
	case chat.ReasonAuth:
		d.pass("endpoint", "it answers, after %s", took)
		d.fail("key", exitNoKey, "see which key is meant for it, and whether it may use the model: docs/models.md", "it is not taken: %s", u.Err)
		return false
	case chat.ReasonNotFound, chat.ReasonRefused, chat.ReasonBadResponse:
		d.pass("endpoint", "it answers, after %s, and has no list of models (%s)", took, u.Reason)
		return true
	}
	d.fail("endpoint", exitUnreachable, "start it, or mend base_url; by hand: curl "+e.BaseURL+"/models", "%s: %s", u.Reason, u.Err)
	return false
}

// What is shown of a list of models.
const (
	shownModels = 10 // names
	shownName   = 64 // characters of each
)

// some are the first names of a list, cut, and how many there are if that is not all.
func some(names []string) string {
	shown := make([]string, min(len(names), shownModels))
	for i := range shown {
		shown[i] = names[i]
		if text := []rune(names[i]); len(text) > shownName {
			shown[i] = string(text[:shownName]) + "…"
		}
	}
	text := strings.Join(shown, ", ")
	if len(names) > shownModels {
		text += fmt.Sprintf(", … (%d in all)", len(names))
	}
	return text
}

func (d *doctor) named(names []string, model string) {
	switch {
	case slices.Contains(names, model):
		d.pass("model's name", "the endpoint lists %s, among %d", model, len(names))
	case len(names) == 0:
		d.skip("model's name", "the endpoint lists no models")
	default:
		d.warn("model's name", "name one that it lists, or have it loaded", "the endpoint does not list %s; it lists %s", model, some(names))
	}
}

// The run that the model is asked for.
const (
	sumTask = "What is 7 plus 5? Call the tool calc__add with a = 7 and b = 5. When you have its result, answer with the sum as a number, and nothing else."
	sumSays = "12"
)

var sumBudget = agent.Budget{Calls: 3, Turns: 6, Tokens: 60_000, Wall: 10 * 60}

// heard is a model that keeps what it said.
type heard struct {
	nodes.Model
	mu      sync.Mutex
	replies []nodes.Reply
	last    error
}

// Turn implements [nodes.Model].
func (h *heard) Turn(ctx context.Context, r nodes.Request) (nodes.Reply, error) {
	reply, err := h.Model.Turn(ctx, r)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.last = err
		return reply, err
	}
	h.replies = append(h.replies, reply)
	return reply, nil
}

// summed is how the run ended.
type summed struct {
	run     agent.Run
	refused []string // why turns were refused
	calls   []scenarios.Call
	answer  string
	heard   *heard
}

// adds has the model add two numbers in a run like any other, in a state directory of its
// own. It returns the first turn; nil if tool calling does not work.
func (d *doctor) adds(ctx context.Context, e config.Endpoint) *nodes.Reply {
	began := time.Now()
	s, err := d.sum(ctx, e)
	took := time.Since(began).Round(time.Millisecond)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		d.failErr("tool calling", "", fmt.Errorf("the run could not be made: %w", err))
		return nil
	}
	added := slices.ContainsFunc(s.calls, func(c scenarios.Call) bool { return c.Tool == "calc__add" && c.Status == agent.StatusOK })
	used := fmt.Sprintf("%d turns, %d tokens, %s", s.run.Used.Turns, s.run.Used.Tokens, took)
	switch {
	case added && s.run.State == agent.StateCompleted && strings.Contains(s.answer, sumSays) && len(s.refused) == 0:
		d.pass("tool calling", "it called calc__add, and answered with the sum: %s", used)
	case added && s.run.State == agent.StateCompleted && strings.Contains(s.answer, sumSays):
		d.warn("tool calling", "a larger model, or another template, makes fewer such turns", "it works, but turns were refused (%s): %s", strings.Join(s.refused, ", "), used)
	case added && s.run.State == agent.StateCompleted:
		d.warn("tool calling", "a larger model may read results better", "it called calc__add, and did not answer with the sum: %q; %s", clipped(s.answer), used)
	default:
		d.notCalled(s, used)
		return nil
	}
	return &s.heard.replies[0]
}

const toolAdvice = "choose a model that calls tools, and have its engine read the calls: vllm with --enable-auto-tool-choice and --tool-call-parser, llama.cpp with --jinja"

// turnAdvice is what to do about turns that were refused for these reasons.
func turnAdvice(reasons []string) string {
	for _, row := range []struct{ reason, do string }{
		{"cut_off", "raise max_tokens under model.openai, or leave it out, and see how much the engine itself lets a turn write"},
		{"duplicate_id", "update the engine, or the proxy before it: it gives two calls of a turn one id"},
		{"unfinished", "update the engine, or the proxy before it: its turns come without a finish reason, or its streams without their end marker [DONE]"},
		{"unknown_finish", "see which profile knows the engine's words for the end of a turn: docs/providers.md"},
		{"filtered", "see what the provider's content filter withholds"},
	} {
		if slices.Contains(reasons, row.reason) {
			return row.do
		}
	}
	return toolAdvice
}

// notCalled says why the sum did not come about.
func (d *doctor) notCalled(s summed, used string) {
	why, final := strings.CutPrefix(s.run.Reason, "model:")
	switch {
	case final && why == chat.ReasonAuth:
		d.fail("key", exitNoKey, "see which key is meant for it, and whether it may use the model: docs/models.md", "it is not taken: %s", s.said())
	case final && why == chat.ReasonNotFound:
		d.fail("tool calling", exitUnreachable, "name a model that the endpoint has, and see whether base_url ends as it should, usually in /v1", "%s", s.said())
	case final && why == chat.ReasonRefused:
		do := "see what it does not take: sallyport doctor --live tries which profile fits, docs/providers.md has what they send"
		if strings.Contains(strings.ToLower(s.said()), "tool") {
			do = toolAdvice + "; or another profile: docs/providers.md"
		}
		d.fail("tool calling", exitUnreachable, do, "the request is refused: %s", s.said())
	case final:
		d.fail("tool calling", exitUnreachable, "docs/providers.md says what "+why+" means", "%s: %s", why, s.said())
	case len(s.calls) > 0:
		c := s.calls[len(s.calls)-1]
		d.fail("tool calling", exitFailed, toolAdvice, "it called %q, which came to %s (%s); %s", c.Tool, c.Status, c.Reason, used)
	case len(s.refused) > 0:
		d.fail("tool calling", exitFailed, turnAdvice(s.refused), "its turns were refused (%s); %s", strings.Join(s.refused, ", "), used)
	default:
		d.fail("tool calling", exitFailed, toolAdvice, "it answered without calling the tool: %q; %s", clipped(s.answer), used)
	}
}

// said is what was last heard of a model that gave no turn.
func (s summed) said() string {
	if s.heard.last == nil {
		return s.run.Reason
	}
	var u *nodes.Unavailable
	if errors.As(s.heard.last, &u) && u.Err != nil {
		return u.Err.Error()
	}
	return s.heard.last.Error()
}

// maxAnswer is how much of an answer is shown, in bytes.
const maxAnswer = 200

func clipped(text string) string {
	if len(text) > maxAnswer {
		return strings.ToValidUTF8(text[:maxAnswer], "") + "…"
	}
	return text
}

// sum runs it.
func (d *doctor) sum(ctx context.Context, e config.Endpoint) (s summed, err error) {
	conf, _, err := d.builtinConfig()
	if err != nil {
		return s, err
	}
	dir := filepath.Join(d.scratch, "state")
	engine, err := embedded.Open(dir, engineConfig())
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	s.heard = &heard{}
	host := &scenarios.Host{
		Engine: engine, StateDir: dir, Self: d.self, Actor: "doctor", Endpoint: d.app.endpoint, Log: zerolog.Nop(),
		Record: func(_ agent.Run, m nodes.Model) nodes.Model { s.heard.Model = m; return s.heard },
	}
	calc := func(p string) bool { return p != "calc" }
	_, _, err = host.Begin(ctx, scenarios.Plan{
		Run: "doctor", Task: sumTask, Budget: sumBudget, Model: e.Label(),
		Setup: scenarios.Setup{
			File: "sallyport doctor", Endpoint: &e,
			Servers:   slices.DeleteFunc(conf.Servers, func(t tools.Server) bool { return calc(t.Prefix) }),
			Contracts: slices.DeleteFunc(conf.Tools, func(c tools.Contract) bool { return calc(c.Prefix()) }),
		},
	})
	if err != nil {
		return s, err
	}
	if err := host.Serve(ctx, "doctor"); err != nil {
		return s, err
	}
	run, entries, err := scenarios.Load(ctx, engine, "doctor")
	if err != nil {
		return s, err
	}
	s.run = run
	for _, entry := range entries {
		if p, err := entry.Payload(); err == nil && entry.Kind == agent.EntryEvent {
			if t, ok := p.(agent.TurnRefused); ok {
				s.refused = append(s.refused, t.Reason)
			}
		}
	}
	if s.calls, err = scenarios.Calls(entries); err != nil {
		return s, err
	}
	s.answer, err = answer(ctx, engine, run)
	return s, err
}
