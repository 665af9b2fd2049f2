package scenarios

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/scenarios/config"
	"sallyport/tools"
	"sallyport/tools/grant"
)

func approver(t *testing.T, name string, notAfter time.Time, roles ...string) agent.Approver {
	t.Helper()
	key, err := grant.NewPrivateKey(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	return agent.Approver{Key: key.Public().String(), NotAfter: notAfter, Roles: roles}
}

// A run that nobody could ever approve is not begun; what each key lacks is said.
func TestPlan_CheckApprovers(t *testing.T) {
	now := time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)
	ann, bob := approver(t, "ann", time.Time{}), approver(t, "bob", time.Time{}, "editor")
	late, again := approver(t, "late", now), approver(t, "bob", time.Time{}, "editor")
	in := approver(t, "in", now.Add(time.Second))
	needs := func(approvers int, role string, own bool) tools.Contract {
		return tools.Contract{Name: "t__x", Risk: agent.RiskWrite, Approval: &tools.Approval{Approvers: approvers, Role: role, OwnKey: own}}
	}
	tests := []struct {
		name     string
		contract tools.Contract
		keys     []agent.Approver
		operator string
		want     string // empty: the run may begin
	}{
		{"no key", needs(1, "", false), nil, "ann", "tool t__x needs an approval, and you have no key to give it with"},
		{"one for one, the operator's", needs(1, "", false), []agent.Approver{ann}, "ann", ""},
		{"one for two", needs(2, "", false), []agent.Approver{ann}, "zoe", "tool t__x needs 2 approvals, by as many people, and only 1 can be given: by ann"},
		{"two for two", needs(2, "", false), []agent.Approver{ann, bob}, "zoe", ""},
		{"two for two, one the operator's", needs(2, "", false), []agent.Approver{ann, bob}, "ann", "only 1 can be given: by bob; not by ann (begins the run)"},
		{"the same with own_key", needs(2, "", true), []agent.Approver{ann, bob}, "ann", ""},
		{"two keys of one person", needs(2, "", false), []agent.Approver{bob, again}, "zoe", "only 1 can be given: by bob; not by bob (counts once)"},
		{"a role that nobody holds", needs(1, "chief", false), []agent.Approver{ann, bob}, "zoe",
			"needs an approval, in the role chief, and none of the keys can give one; not by ann (has not the role), bob (has not the role)"},
		{"a role that one holds", needs(1, "editor", false), []agent.Approver{ann, bob}, "zoe", ""},
		{"a key at its end", needs(1, "", false), []agent.Approver{late}, "zoe", "not by late (only until 2026-05-01)"},
		{"a key before its end", needs(1, "", false), []agent.Approver{in}, "zoe", ""},
		{"a read", tools.Contract{Name: "t__x", Risk: agent.RiskRead}, nil, "zoe", ""},
		{"a destructive one", tools.Contract{Name: "t__x", Risk: agent.RiskDestructive}, []agent.Approver{ann, bob}, "ann", "by bob; not by ann"},
		{"one that sends and is off", tools.Contract{Name: "t__x", Risk: agent.RiskWrite, Effect: tools.EffectSend}, nil, "zoe", ""},
	}
	for _, tt := range tests {
		err := Plan{Setup: Setup{Contracts: []tools.Contract{tt.contract}}, Approvers: tt.keys}.CheckApprovers(tt.operator, now)
		var not *NotApprovable
		if tt.want == "" && err != nil || tt.want != "" && (!errors.As(err, &not) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// Whoever begins a run, the host refuses it before anything is started or written.
func TestHost_BeginsNoRunThatNobodyCouldApprove(t *testing.T) {
	dir := t.TempDir()
	e, err := embedded.Open(dir, embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	h := &Host{Engine: e, StateDir: dir, Self: "no-such-program", Actor: "ann"}
	plan := shippedScenario(t, "approved").Plan()
	plan.Run, plan.Approvers = "r", nil
	var not *NotApprovable
	if _, _, err := h.Begin(context.Background(), plan); !errors.As(err, &not) || not.Tool != "docs__save_report" {
		t.Errorf("%v", err)
	}
	if _, _, err := Load(t.Context(), e, "r"); !errors.Is(err, agent.ErrNoRun) {
		t.Errorf("the run is there: %v", err)
	}
}

// SPEC C6: two tools that a model could not tell apart are a mistake of the
// configuration, at the second of them.
func TestHost_PlacesToolsThatClash(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "sallyport.yaml")
	text := "servers: {a: {builtin: calc}, b: {builtin: calc}}\ntools:\n" +
		"  b__add: {owner: me, risk: read, output: none}\n  a__add: {owner: me, risk: read, output: none}\n"
	put(t, file, text)
	put(t, filepath.Join(dir, "task.yaml"), "task: x\nmodel: {script: [{say: x}]}\n")
	s, err := LoadFile(filepath.Join(dir, "task.yaml"), LoadOptions{UserDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	e, err := embedded.Open(filepath.Join(dir, "state"), embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }()
	plan := s.Plan()
	plan.Run = "r"
	h := &Host{Engine: e, StateDir: dir, Self: executable(t), Actor: "ann"}
	var wrong *config.Error
	if _, _, err := h.Begin(t.Context(), plan); !errors.As(err, &wrong) || wrong.Diagnostics[0].Line != 4 {
		t.Errorf("%v", err)
	}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A script that is not there is named where the file names it.
func TestLoadFile_ScriptThatIsMissing(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "sallyport.yaml"), "servers: {calc: {builtin: calc}}\ntools: {calc__add: {owner: me, risk: read, output: none}}\n")
	put(t, filepath.Join(dir, "task.yaml"), "task: x\nmodel:\n  script: gone.yaml\n")
	_, err := LoadFile(filepath.Join(dir, "task.yaml"), LoadOptions{UserDir: dir})
	var wrong *config.Error
	if !errors.As(err, &wrong) || wrong.Diagnostics[0].Line != 3 || !strings.Contains(err.Error(), "gone.yaml: no such file") || !strings.Contains(err.Error(), "name a file") {
		t.Errorf("%v", err)
	}
}

// No key can be called as whoever begins a scenario's run is, whatever the run's id.
func TestPlay_IsNoApproverOfItsOwn(t *testing.T) {
	if key, err := grant.NewPrivateKey(actor, nil); err == nil {
		t.Errorf("a key can be called %q", key.Public().Name)
	}
}
