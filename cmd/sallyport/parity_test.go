package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aymanbagabas/go-udiff"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/scenarios"
	"sallyport/scenarios/config"
)

// playing is a scenario of the shipped ones, played in one place with one run id by
// one model after the other.
type playing struct {
	t    *testing.T
	dir  string // that the scenarios are played in
	text string // of the scenario, without its model
	path string
}

const playingRun = "the-run"

func newPlaying(t *testing.T, name string) *playing {
	t.Helper()
	base := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(base, "config"))
	t.Setenv("XDG_STATE_HOME", filepath.Join(base, "state"))
	for _, v := range []string{config.EnvKey, config.EnvBaseURL, config.EnvModel} {
		t.Setenv(v, "")
	}
	data, err := os.ReadFile(filepath.Join("../../scenarios/research", name+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	settings, err := os.ReadFile("../../scenarios/research/sallyport.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base, config.FileName), settings, 0o600); err != nil {
		t.Fatal(err)
	}
	return &playing{t: t, dir: filepath.Join(base, "stage"), text: string(data), path: filepath.Join(base, "scenario.yaml")}
}

// with writes the scenario with another model; empty is its own.
func (p *playing) with(model string) *scenarios.Scenario {
	p.t.Helper()
	text := p.text
	if model != "" {
		before, rest, found := strings.Cut(text, "\nmodel:\n")
		_, after, ended := strings.Cut(rest, "\napprovals:")
		if !ended {
			_, after, ended = strings.Cut(rest, "\nexpect:")
			after = "\nexpect:" + after
		} else {
			after = "\napprovals:" + after
		}
		if !found || !ended {
			p.t.Fatalf("the scenario is written otherwise:\n%s", text)
		}
		text = before + "\nmodel: " + model + after
	}
	if err := os.WriteFile(p.path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	s, err := scenarios.LoadFile(p.path, scenarios.LoadOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// play plays it and returns its journal. It must pass.
func (p *playing) play(s *scenarios.Scenario, streams bool, record func(agent.Run, nodes.Model) nodes.Model) []agent.Entry {
	p.t.Helper()
	entries, _ := p.played(s, streams, record)
	return entries
}

func (p *playing) played(s *scenarios.Scenario, streams bool, record func(agent.Run, nodes.Model) nodes.Model) ([]agent.Entry, scenarios.Setup) {
	p.t.Helper()
	self, err := exec.LookPath("sallyport")
	if err != nil {
		p.t.Fatal(err)
	}
	errs, err := os.CreateTemp(p.t.TempDir(), "stderr")
	if err != nil {
		p.t.Fatal(err)
	}
	a := &app{in: errs, out: errs, errs: errs, stdout: &stream{file: errs}, stderr: &stream{file: errs}, streams: streams}
	var entries []agent.Entry
	var setup scenarios.Setup
	r, err := scenarios.Play(p.t.Context(), s, scenarios.PlayOptions{
		StageOptions: scenarios.StageOptions{Self: self, Dir: p.dir, Run: playingRun, Endpoint: a.endpoint, Record: record},
		Began: func(st *scenarios.Stage, run agent.Run) func(agent.Run) {
			if setup, err = scenarios.ReadSetup(p.t.Context(), st.Host.Engine, run); err != nil {
				p.t.Fatal(err)
			}
			return func(agent.Run) {
				if _, entries, err = scenarios.Load(p.t.Context(), st.Host.Engine, run.ID); err != nil {
					p.t.Fatal(err)
				}
			}
		},
	})
	if err != nil || !r.Passed() {
		p.t.Fatalf("%+v, %v", r.Mismatches, err)
	}
	return entries, setup
}

// The members of entries in which runs of different models may differ, by event and
// path: what is made of times, what is made of keys and of the entries before, the
// tokens, and what the model is called. There are no others.
var mayDiffer = []string{
	"*.time", "*.prev",
	"start.data.model", "start.data.config", "start.data.approvers.key",
	"turned.data.usage", "turn_refused.data.usage",
	"returned.data.candidate.head", "approve.data.grant",
}

// journalText is a journal, an entry a paragraph, without what may differ.
func journalText(t *testing.T, entries []agent.Entry) string {
	t.Helper()
	var b strings.Builder
	for _, e := range entries {
		var tree any
		if err := json.Unmarshal(e.Bytes(), &tree); err != nil {
			t.Fatal(err)
		}
		without(tree, string(e.Event), "")
		data, err := json.MarshalIndent(tree, "", " ")
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(data, '\n'))
	}
	return b.String()
}

// without blanks what may differ at and below a path.
func without(tree any, event, path string) {
	switch at := tree.(type) {
	case []any:
		for _, item := range at {
			without(item, event, path)
		}
	case map[string]any:
		for name, value := range at {
			below := path + "." + name
			if slices.Contains(mayDiffer, event+below) || slices.Contains(mayDiffer, "*"+below) {
				if at[name] = "may differ"; name == "usage" {
					delete(at, name) // a script says nothing of it
				}
				continue
			}
			without(value, event, below)
		}
	}
}

// same reports whether two journals differ in nothing but what may.
func same(t *testing.T, what string, got, want []agent.Entry) {
	t.Helper()
	a, b := journalText(t, want), journalText(t, got)
	if a != b {
		t.Errorf("%s:\n%s", what, udiff.Unified("want", "got", a, b))
	}
}

// The same scenario with the scripted model, with a cassette, and with an endpoint,
// streamed and not, gives the same journal but for times, usage, keys and labels.
func TestParity_OneScenarioByEveryKindOfModel(t *testing.T) {
	for _, name := range []string{"approved", "refused", "hidden-instruction"} {
		t.Run(name, func(t *testing.T) {
			p := newPlaying(t, name)
			tape := filepath.Join(t.TempDir(), "script.jsonl")
			record, done, err := recorder(tape, nil)
			if err != nil {
				t.Fatal(err)
			}
			scripted, setup := p.played(p.with(""), false, record)
			if err := done(); err != nil {
				t.Fatal(err)
			}
			if scripted[0].Event != agent.KindStart || len(scripted) < 8 {
				t.Fatalf("%d entries", len(scripted))
			}
			same(t, "a cassette", p.play(p.with("{replay: "+tape+"}"), false, nil), scripted)

			endpoint := newProvider(t, setup.Script)
			t.Setenv(config.EnvBaseURL, endpoint.base())
			t.Setenv(config.EnvKey, "sk-parity")
			endpoint.admit("sk-parity")
			const model = "{openai: gpt-x, open_body: false}"
			second := filepath.Join(t.TempDir(), "endpoint.jsonl")
			if record, done, err = recorder(second, nil); err != nil {
				t.Fatal(err)
			}
			asked := p.play(p.with(model), false, record)
			if err := done(); err != nil {
				t.Fatal(err)
			}
			same(t, "an endpoint", asked, scripted)
			same(t, "an endpoint, streamed", p.play(p.with(model), true, nil), scripted)
			n := len(endpoint.requests())
			replayed := p.play(p.with("{replay: "+second+"}"), false, nil)
			same(t, "a cassette of an endpoint", replayed, scripted)
			if len(endpoint.requests()) != n {
				t.Error("a cassette asks the endpoint")
			}
			if a, b := usageOf(t, asked), usageOf(t, replayed); a != b || a.Input == 0 {
				t.Errorf("the endpoint says %+v, its cassette %+v", a, b)
			}
			if data, err := os.ReadFile(second); err != nil || strings.Contains(string(data), "sk-parity") {
				t.Errorf("the cassette holds the key; %v", err)
			}
		})
	}
}

// usageOf sums what the turns of a journal cost.
func usageOf(t *testing.T, entries []agent.Entry) agent.Usage {
	t.Helper()
	var sum agent.Usage
	for _, e := range entries {
		p, err := e.Payload()
		if err != nil {
			t.Fatal(err)
		}
		if turned, ok := p.(agent.Turned); ok {
			sum.Input += turned.Usage.Input
			sum.Output += turned.Usage.Output
		}
	}
	return sum
}

// The comparison sees what it should: another text, and another answer's bytes.
func TestParity_SeesADifference(t *testing.T) {
	p := newPlaying(t, "refused")
	want := p.play(p.with(""), false, nil)
	p.text = strings.Replace(p.text, "The board has voted", "The board has not voted", 1)
	if a, b := journalText(t, want), journalText(t, p.play(p.with(""), false, nil)); a == b {
		t.Error("other arguments make no difference")
	}
}
