package scenarios

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/scenarios/config"
)

func shippedScenario(t *testing.T, name string) *Scenario {
	t.Helper()
	s, err := LoadFile(filepath.Join("research", name+".yaml"), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// played plays a scenario in a folder of the test, which must be empty afterwards.
func played(t *testing.T, s *Scenario, o PlayOptions) (Result, error) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	o.Self, o.Show = executable(t), shown
	r, err := Play(t.Context(), s, o)
	left, lerr := os.ReadDir(os.Getenv("TMPDIR"))
	if lerr != nil || len(left) > 0 && r.Dir == "" {
		t.Errorf("left behind: %v, %v", left, lerr)
	}
	return r, err
}

func TestPlay_ShippedScenariosHold(t *testing.T) {
	files, err := filepath.Glob("*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if is, err := config.HasKey(file, data, "scenario"); err != nil || !is {
			if err != nil {
				t.Error(err)
			}
			continue
		}
		cases, err := LoadCases(file, LoadOptions{})
		if err != nil {
			t.Error(err)
			continue
		}
		for _, s := range cases {
			t.Run(filepath.Dir(file)+"/"+s.Name(), func(t *testing.T) {
				t.Parallel()
				if got := otherwise(t, s); got != "" {
					t.Error(got)
				}
			})
		}
	}
}

// An instruction in a document, obeyed by the model, writes nothing (CASES X1).
func TestPlay_HiddenInstructionIsStoppedByTheGate(t *testing.T) {
	r, err := played(t, shippedScenario(t, "hidden-instruction"), PlayOptions{})
	if err != nil || len(r.Calls) != 3 {
		t.Fatalf("%+v, %v", r.Calls, err)
	}
	for _, c := range r.Calls[1:] {
		if c.Tool != "docs__save_report" || c.Sent || c.Status != agent.StatusRejected {
			t.Errorf("%+v", c)
		}
	}
}

func TestPlay_ParksWithoutADecision(t *testing.T) {
	s := shippedScenario(t, "approved")
	dir := filepath.Join(t.TempDir(), "stage")
	r, err := played(t, s, PlayOptions{Decide: VerbWait, StageOptions: StageOptions{Dir: dir, Run: "parked"}})
	if err != nil || r.State != agent.StateAwaitingApproval || r.Compared {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "state", "keys", "parked.json")); err != nil || r.Dir != dir {
		t.Errorf("kept %q: %v", r.Dir, err)
	}
}

// The key of decisions that nobody made is pinned as scripted; who waits for a person
// pins an ordinary one (SPEC G2).
func TestPlay_ScriptedKeyIsPinnedAsSuch(t *testing.T) {
	for verb, want := range map[Verb]bool{"": true, VerbApprove: true, VerbReject: true, VerbWait: false} {
		var got agent.Approver
		_, err := played(t, shippedScenario(t, "demo"), PlayOptions{Decide: verb, Began: func(_ *Stage, run agent.Run) func(agent.Run) {
			got = run.Spec.Approvers[0]
			return func(agent.Run) {}
		}})
		if err != nil || got.Scripted != want {
			t.Errorf("decide %q: %+v, %v", verb, got, err)
		}
	}
}

func TestPlay_ScriptThatDoesNotFitNamesItsLine(t *testing.T) {
	s := shippedScenario(t, "refused")
	s.Approvals = []Deliveries{{List: []Delivery{{Do: VerbApprove}}, plain: true}} // the script expects a refusal
	_, err := played(t, s, PlayOptions{})
	text, rerr := os.ReadFile("research/refused.yaml")
	before, _, _ := strings.Cut(string(text), "status: rejected\n")
	want := fmt.Sprintf("refused.yaml:%d: it expects a message of status \"rejected\"", strings.Count(before, "\n")+1)
	if rerr != nil || !errors.Is(err, nodes.ErrModelFault) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v", err)
	}
}

func TestPlay_InterruptedCleansUp(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Play(ctx, shippedScenario(t, "approved"), PlayOptions{
		StageOptions: StageOptions{Self: executable(t)},
		Present: func(context.Context, *Stage, agent.Run) error {
			cancel()
			return ctx.Err()
		},
	})
	left, lerr := os.ReadDir(os.Getenv("TMPDIR"))
	if !errors.Is(err, context.Canceled) || lerr != nil || len(left) > 0 {
		t.Errorf("%v; left %v, %v", err, left, lerr)
	}
}

// What a run is served with does not change with its files.
func TestHost_ServesWithWhatTheRunWasBegunWith(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := shippedScenario(t, "refused")
	st, err := SetUp(s, StageOptions{Self: executable(t), Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	run, _, err := st.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.setup.Script.Turns = nil // as if the file had been edited
	if err := st.Host.Serve(t.Context(), run.ID); err != nil {
		t.Fatal(err)
	}
	run, _, err = Load(t.Context(), st.Host.Engine, run.ID)
	if err != nil || run.State != agent.StateAwaitingApproval {
		t.Fatalf("%s, %v", run.State, err)
	}
	got, err := ReadSetup(t.Context(), st.Host.Engine, run)
	if err != nil || len(got.Script.Turns) != 3 || len(got.Contracts) != 5 || len(got.Definitions) != 5 {
		t.Errorf("%+v, %v", got, err)
	}
	if err := errors.Join(st.Close(), st.Remove()); err != nil {
		t.Fatal(err)
	}
}

// Where two must sign, in a role, a scenario's approval is both signatures, by
// different keys that hold it.
func TestPlay_ApprovesWhatNeedsTwo(t *testing.T) {
	dir := t.TempDir()
	for name, change := range map[string]*strings.Replacer{
		"sallyport.yaml": strings.NewReplacer("approvers: 1", "approvers: 2, role: editor"),
		"approved.yaml":  strings.NewReplacer(),
	} {
		data, err := os.ReadFile(filepath.Join("research", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(change.Replace(string(data))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := LoadFile(filepath.Join(dir, "approved.yaml"), LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := played(t, s, PlayOptions{})
	if err != nil || !r.Passed() {
		t.Fatalf("%+v, %v", r, err)
	}
	if by := r.Calls[2].Approvers; len(by) != 2 || by[0] == by[1] {
		t.Errorf("signed by %q", by)
	}
}

// CHECKS 99: an outcome without a class fails the acceptance.
func TestAccept_UnclassifiedOutcomeFails(t *testing.T) {
	for class, want := range map[agent.Class]bool{agent.ClassProtocolError: true, "": false, "odd": false} {
		log, err := os.Create(filepath.Join(t.TempDir(), "log"))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{
			`{"event":"proposal","correlation_id":"c1"}`, `{"event":"decision","correlation_id":"c1","decision":"allowed"}`,
			`{"event":"request","correlation_id":"c1","mcp_request_id":"7"}`,
			`{"event":"outcome","correlation_id":"c1","status":"unavailable","class":"` + string(class) + `"}`,
		} {
			if _, err := log.WriteString(line + "\n"); err != nil {
				t.Fatal(err)
			}
		}
		a := &acceptance{log: log, ended: []trialEnd{{call: Call{ID: "c1", Status: agent.StatusUnavailable, Class: class, Sent: true}}}}
		if err := a.chains(); err != nil || a.report.Passed() != want {
			t.Errorf("class %q: %+v, %v", class, a.report.Checks, err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
