package prove_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"sallyport/agent"
	"sallyport/agent/enginetest"
	"sallyport/agent/prove"
)

// spec is a spec with some of the suite's tools: read, write, destroy.
func spec(tools ...string) agent.Spec {
	s := enginetest.Spec("any")
	s.Tools = slices.DeleteFunc(s.Tools, func(t agent.Tool) bool { return !slices.Contains(tools, t.Name) })
	return s
}

func proven(t *testing.T, o prove.Options) prove.Report {
	t.Helper()
	r, err := prove.Prove(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d states, %d events, depth %d", r.States, r.Events, r.Depth)
	return r
}

func tool(t *testing.T, r prove.Report, name string) prove.Tool {
	t.Helper()
	at := slices.IndexFunc(r.Tools, func(t prove.Tool) bool { return t.Name == name })
	if at < 0 {
		t.Fatalf("the report does not name %s", name)
	}
	return r.Tools[at]
}

func TestProve_AWriteIsSentWithASignatureOnly(t *testing.T) {
	r := proven(t, prove.Options{Spec: spec(enginetest.ToolRead, enginetest.ToolWrite)})
	if r.Verdict != prove.Proven {
		t.Fatalf("%s\n%s", r.Verdict, r.Text())
	}
	paths := tool(t, r, enginetest.ToolWrite).Paths
	if len(paths) != 1 || len(paths[0].Steps) != 6 || len(paths[0].Trusted) != 1 || !strings.HasPrefix(paths[0].Trusted[0], "alice signs exactly") {
		t.Errorf("the paths to a write: %+v; want one of 6 steps on which alice signs", paths)
	}
	if paths := tool(t, r, enginetest.ToolRead).Paths; len(paths) != 1 || len(paths[0].Steps) != 3 || len(paths[0].Trusted) != 0 {
		t.Errorf("the paths to a read: %+v; want one of 3 steps without anybody's word", paths)
	}
}

func TestProve_ADestructiveCallIsSentWithTwoPeoplesSignaturesOnly(t *testing.T) {
	r := proven(t, prove.Options{Spec: spec(enginetest.ToolDestroy)})
	if r.Verdict != prove.Proven {
		t.Fatalf("%s\n%s", r.Verdict, r.Text())
	}
	paths := tool(t, r, enginetest.ToolDestroy).Paths
	if len(paths) != 1 || len(paths[0].Trusted) != 2 || !strings.HasPrefix(paths[0].Trusted[0], "alice ") || !strings.HasPrefix(paths[0].Trusted[1], "bob ") {
		t.Errorf("the paths to a destructive call: %+v; want one on which alice and bob sign", paths)
	}
}

func TestProve_EveryTwoKindsOfToolTogether(t *testing.T) {
	r := proven(t, prove.Options{Spec: spec(enginetest.ToolRead, enginetest.ToolWrite, enginetest.ToolDestroy)})
	if r.Verdict != prove.Proven {
		t.Fatalf("%s\n%s", r.Verdict, r.Text())
	}
}

func TestProve_AToolThatIsPinnedLikeAnotherIsReportedUnderItsOwnName(t *testing.T) {
	s := spec(enginetest.ToolRead)
	again := s.Tools[0]
	again.Name, again.Remote = "desk__read_too", "read_too"
	s.Tools = append(s.Tools, again)
	r := proven(t, prove.Options{Spec: s})
	if says := tool(t, r, "desk__read_too").Paths[0].Steps[1].Says; says != "The model proposes desk__read_too." {
		t.Errorf("the path of the second tool says %q", says)
	}
}

func TestProve_AToolForTheHostOnlyHasNoPath(t *testing.T) {
	s := spec(enginetest.ToolWrite)
	s.Tools = append(s.Tools, agent.Tool{Name: "desk__settle", Server: "desk", Remote: "settle", Risk: agent.RiskSettle, HostOnly: true})
	r := proven(t, prove.Options{Spec: s})
	if got := tool(t, r, "desk__settle"); r.Verdict != prove.Proven || len(got.Paths) != 0 {
		t.Errorf("%s, %d paths; want proven and none", r.Verdict, len(got.Paths))
	}
}

func TestProve_WhatNobodyCanSignIsNeverSent(t *testing.T) {
	for name, change := range map[string]func(*agent.Spec){
		"without approvers":            func(s *agent.Spec) { s.Approvers = nil },
		"a role that nobody holds":     func(s *agent.Spec) { s.Tools[0].Role = "treasurer" },
		"two of one person's two keys": func(s *agent.Spec) { s.Tools[0].Approvers, s.Approvers = 2, s.Approvers[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(enginetest.ToolWrite)
			change(&s)
			r := proven(t, prove.Options{Spec: s})
			if got := tool(t, r, enginetest.ToolWrite); r.Verdict != prove.Proven || len(got.Paths) != 0 {
				t.Errorf("%s, %d paths; want proven and none", r.Verdict, len(got.Paths))
			}
		})
	}
}

func TestProve_OnlyTheHolderOfTheRoleIsOnThePath(t *testing.T) {
	s := spec(enginetest.ToolWrite)
	s.Tools[0].Role, s.Approvers[1].Roles = "treasurer", []string{"treasurer"}
	got := tool(t, proven(t, prove.Options{Spec: s}), enginetest.ToolWrite)
	if len(got.Paths) != 1 || !strings.HasPrefix(got.Paths[0].Trusted[0], "bob ") || !slices.Equal(got.Approvers, []string{"bob"}) {
		t.Errorf("paths %+v, approvers %q; want one that bob signs", got.Paths, got.Approvers)
	}
}

func TestProve_AReadWithADeclaredSideEffectIsHeldToBeAWrite(t *testing.T) {
	o := prove.Options{Spec: spec(enginetest.ToolRead), SideEffects: map[string]string{enginetest.ToolRead: "sends a letter"}}
	r := proven(t, o)
	if r.Verdict != prove.Broken || len(r.Failures) != 1 {
		t.Fatalf("%s with %d failures; want broken with one", r.Verdict, len(r.Failures))
	}
	f := r.Failures[0]
	if f.Rule != "unsigned" || f.Tool != enginetest.ToolRead || len(f.Path.Steps) != 3 || len(f.Path.Trusted) != 0 {
		t.Errorf("the failure is %+v", f)
	}
	if !strings.Contains(r.Text(), "No person has a word on this path") || !strings.Contains(r.Text(), "FAIL: 1 rule is broken.") {
		t.Errorf("the text does not say so:\n%s", r.Text())
	}
	o.Allow = []string{enginetest.ToolRead}
	if r := proven(t, o); r.Verdict != prove.Proven || len(r.Exceptions) != 1 || !strings.Contains(r.Text(), "PASS, with 1 exception") {
		t.Errorf("allowed by name: %s with %d exceptions\n%s", r.Verdict, len(r.Exceptions), r.Text())
	}
}

func TestProve_AWriteThatIsPinnedWithTooFewSignatures(t *testing.T) {
	for name, c := range map[string]struct {
		tool      string
		approvers int
		trusted   int
	}{
		"a write by nobody":         {enginetest.ToolWrite, 0, 0},
		"a destructive call by one": {enginetest.ToolDestroy, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := spec(c.tool)
			s.Tools[0].Approvers = c.approvers
			r := proven(t, prove.Options{Spec: s})
			if r.Verdict != prove.Broken || r.Begins == "" || len(r.Failures) != 1 {
				t.Fatalf("%s, begins %q, %d failures", r.Verdict, r.Begins, len(r.Failures))
			}
			if f := r.Failures[0]; f.Rule != "unsigned" || len(f.Path.Trusted) != c.trusted {
				t.Errorf("the failure is %+v", f)
			}
			if _, err := prove.Prove(t.Context(), prove.Options{Spec: s, Allow: []string{c.tool}}); err == nil {
				t.Error("it can be allowed by name")
			}
		})
	}
}

func TestProve_AllowNamesAToolThatThereIs(t *testing.T) {
	if _, err := prove.Prove(t.Context(), prove.Options{Spec: spec(enginetest.ToolRead), Allow: []string{"desk__no"}}); err == nil {
		t.Error("a name that means nothing is taken")
	}
}

func TestProve_AWalkThatDoesNotEndProvesNothing(t *testing.T) {
	full := proven(t, prove.Options{Spec: spec(enginetest.ToolWrite)})
	r := proven(t, prove.Options{Spec: spec(enginetest.ToolWrite), MaxStates: 100})
	if r.Verdict != prove.NotProven || !strings.Contains(r.Text(), "NOT PROVEN") {
		t.Errorf("after 100 states: %s", r.Verdict)
	}
	if r := proven(t, prove.Options{Spec: spec(enginetest.ToolWrite), MaxStates: full.States}); r.Verdict != prove.Proven {
		t.Errorf("with as many states as there are: %s", r.Verdict)
	}
}

// What the walk does not reach it does not prove: every row of the table is seen, with
// every state that it leads to, and every kind of event is offered.
func TestProve_TheWalkTakesEveryRowOfTheTable(t *testing.T) {
	var mu sync.Mutex
	type move struct {
		from, to agent.State
		kind     agent.Kind
	}
	seen, offered := map[move]bool{}, map[agent.Kind]bool{}
	_, err := prove.Prove(t.Context(), prove.Options{
		Spec: spec(enginetest.ToolRead, enginetest.ToolDestroy),
		Step: func(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
			next, effects, err := agent.Step(r, ev)
			mu.Lock()
			defer mu.Unlock()
			offered[ev.Kind()] = true
			if err == nil {
				seen[move{r.State, next.State, ev.Kind()}] = true
			}
			return next, effects, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range agent.Kinds() {
		if !offered[k] {
			t.Errorf("no event %s is offered", k)
		}
	}
	for _, row := range agent.Table() {
		for _, from := range row.From {
			to := row.To
			if to == "" {
				to = from
			}
			if !slices.ContainsFunc(agent.Kinds(), func(k agent.Kind) bool {
				return slices.Contains(agent.Becomes(k), row.Row) && seen[move{from, to, k}]
			}) && row.Row != agent.RowSubstituted { // only forks take it, and no fork is walked
				t.Errorf("row %s is not seen to lead from %q to %q", row.Row, from, to)
			}
		}
	}
}

func TestReport_TheDiagramShowsWhatIsBrokenElseThePaths(t *testing.T) {
	sound := proven(t, prove.Options{Spec: spec(enginetest.ToolWrite)}).Mermaid()
	if !strings.HasPrefix(sound, "flowchart TD\n") || !strings.Contains(sound, `p1_4 ==>|"approver: alice signs exactly the candidate of desk__write."| p1_5["execute"]`) {
		t.Errorf("the diagram of a proof:\n%s", sound)
	}
	o := prove.Options{Spec: spec(enginetest.ToolRead), SideEffects: map[string]string{enginetest.ToolRead: "sends a letter"}}
	if broken := proven(t, o).Mermaid(); !strings.Contains(broken, `subgraph p1["desk__read unsigned"]`) {
		t.Errorf("the diagram of what is broken:\n%s", broken)
	}
}

// A proof can take long: it stops where it is when it is told to.
func TestProve_StopsWhenItIsToldTo(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var steps, after atomic.Int64
	_, err := prove.Prove(ctx, prove.Options{
		Spec: spec(enginetest.ToolRead, enginetest.ToolWrite, enginetest.ToolDestroy),
		Step: func(r agent.Run, ev agent.Event) (agent.Run, []agent.Effect, error) {
			steps.Add(1)
			if ctx.Err() != nil {
				after.Add(1)
			}
			return agent.Step(r, ev)
		},
		Visited: func(int64) { cancel() },
	})
	if !errors.Is(err, context.Canceled) || steps.Load() == 0 || after.Load() > steps.Load()/2 {
		t.Errorf("%v after %d steps, %d of them too many", err, steps.Load(), after.Load())
	}
}
