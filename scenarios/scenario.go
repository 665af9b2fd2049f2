package scenarios

import (
	"path/filepath"
	"strings"
	"time"

	"sallyport/agent"
	"sallyport/scenarios/config"
	"sallyport/tools"
)

// Scenario is a loaded task file or scenario file with its configuration. A scenario
// has a Title; a task file has none, and no Files, Approvals and Expect.
type Scenario struct {
	File      string // as it was named
	Case      string // of its matrix, such as "model=a,policy=b"; empty without one
	Title     string
	Task      string
	Covers    []string             // ids of the rules and cases that it shows
	Approvers []Approver           // made for the stage; none lets the stage make who is needed
	BegunBy   string               // the operator's name; empty is the scenario itself
	Files     map[string]StageFile // of the stage, by their path in it
	Approvals []Deliveries         // in the order in which candidates come up
	Operator  []Action             // what else an operator does
	Faults    []Fault              // at which the process dies, or its disk is full
	Clock     []ClockJump
	Expect    Expect
	Config    *config.Config

	setup   Setup
	budget  agent.Budget
	label   string // of the model
	prices  *agent.Prices
	scripts []serverScript
	file    *config.File // to place what is otherwise than expected
}

// Approver is a person of the stage: a key is made for the name.
type Approver struct {
	Name  string
	Roles []string
}

// IsScenario reports whether the file is a scenario and not only a task.
func (s *Scenario) IsScenario() bool { return s.Title != "" }

// Name is the file's name without folder and ending, and the case.
func (s *Scenario) Name() string {
	if s.Case == "" {
		return s.base()
	}
	return s.base() + "[" + s.Case + "]"
}

// ahead is how far the scenario sets the Host's clock ahead in all.
func (s *Scenario) ahead() time.Duration {
	var sum time.Duration
	for _, j := range s.Clock {
		sum += j.Jump.Std()
	}
	for _, all := range s.Approvals {
		for _, d := range all.List {
			sum += d.After.Std()
		}
	}
	return sum
}

// base is the file's name without folder and ending.
func (s *Scenario) base() string {
	return strings.TrimSuffix(filepath.Base(s.File), filepath.Ext(s.File))
}

// Plan is the run that the file asks for, in the workspace and with the approvers of
// its configuration.
func (s *Scenario) Plan() Plan {
	return Plan{Task: s.Task, Setup: s.setup, Approvers: s.Config.Keys, Budget: s.budget, Model: s.label, Prices: s.prices, Config: s.Config}
}

// stagedPlan is Plan with the servers as they are on a stage.
func (s *Scenario) stagedPlan(st *Stage) Plan {
	p := s.Plan()
	p.Setup.Servers = make([]tools.Server, len(s.setup.Servers))
	for i, srv := range s.setup.Servers {
		p.Setup.Servers[i] = config.Placed(st.server(srv), st.Desk)
	}
	return p
}
