package scenarios

import (
	"fmt"
	"path/filepath"
	"strings"

	"sallyport/agent"
	"sallyport/scenarios/config"
	"sallyport/tools"
)

// Scenario is a loaded task file or scenario file with its configuration. A scenario
// has a Title; a task file has none, and no Files, Approvals and Expect.
type Scenario struct {
	File      string // as it was named
	Title     string
	Task      string
	Files     map[string]string // of the workspace, by their path in it
	Approvals []Verb            // in the order in which candidates come up
	Expect    Expect
	Config    *config.Config

	setup  Setup
	budget agent.Budget
	label  string // of the model
	prices *agent.Prices
}

// Verb is a decision that a scenario gives.
type Verb string

// The verbs. Wait decides nothing: the run parks.
const (
	VerbApprove Verb = "approve"
	VerbReject  Verb = "reject"
	VerbWait    Verb = "wait"
)

// UnmarshalText reads one of the verbs.
func (v *Verb) UnmarshalText(text []byte) error {
	switch Verb(text) {
	case VerbApprove, VerbReject, VerbWait:
		*v = Verb(text)
		return nil
	}
	return fmt.Errorf("%q is no decision: write approve, reject or wait", text)
}

// IsScenario reports whether the file is a scenario and not only a task.
func (s *Scenario) IsScenario() bool { return s.Title != "" }

// Name is the file's name without folder and ending.
func (s *Scenario) Name() string {
	return strings.TrimSuffix(filepath.Base(s.File), filepath.Ext(s.File))
}

// Plan is the run that the file asks for, in the workspace and with the approvers of
// its configuration.
func (s *Scenario) Plan() Plan {
	return Plan{Task: s.Task, Setup: s.setup, Approvers: s.Config.Keys, Budget: s.budget, Model: s.label, Prices: s.prices, Config: s.Config}
}

// stagedPlan is Plan with another folder in place of the workspace of every document
// server.
func (s *Scenario) stagedPlan(desk string) Plan {
	p := s.Plan()
	p.Setup.Servers = make([]tools.Server, len(s.setup.Servers))
	for i, srv := range s.setup.Servers {
		if srv.Builtin == tools.BuiltinDocs {
			srv.Root = desk
			srv.Audience = config.Audience(srv)
		}
		p.Setup.Servers[i] = srv
	}
	return p
}
