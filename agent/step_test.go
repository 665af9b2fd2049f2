package agent_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/enginetest"
	"sallyport/tools/grant"
)

// trace is a run under way in a test: a journal in hand, on a clock that moves by a
// second an event.
type trace struct {
	t       *testing.T
	run     agent.Run
	entries []agent.Entry
	now     time.Time
}

var epoch = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

func begin(t *testing.T, spec agent.Spec) *trace {
	t.Helper()
	tr := &trace{t: t, now: epoch}
	tr.take(agent.Begin(spec, "operator", tr.now))
	return tr
}

// take expects the event to be accepted.
func (tr *trace) take(ev agent.Event) {
	tr.t.Helper()
	next, entry, err := agent.Advance(tr.run, ev)
	if err != nil {
		tr.t.Fatalf("%s in %s: %v", ev.Kind(), tr.run.State, err)
	}
	tr.run, tr.entries = next, append(tr.entries, entry)
}

func (tr *trace) tickTock() time.Time {
	tr.now = tr.now.Add(time.Second)
	return tr.now
}

func (tr *trace) node(r agent.Result) {
	tr.t.Helper()
	tr.take(agent.FromNode(tr.run.Open.Effect, r, tr.tickTock()))
}

func (tr *trace) outside(d agent.Decision) {
	tr.t.Helper()
	tr.take(agent.FromOutside(d, "operator", tr.tickTock()))
}

// clone lets a test go on from here twice.
func (tr *trace) clone() *trace {
	c := *tr
	c.entries = append([]agent.Entry{}, tr.entries...)
	return &c
}

func ref(text string) agent.BodyRef { return agent.NewBody([]byte(text)).Ref }

func proposes(tools ...string) agent.Turned {
	turned := agent.Turned{Message: ref("proposes"), Usage: agent.Usage{Input: 100, Output: 10}}
	for i, tool := range tools {
		p, _ := enginetest.Propose(tool, fmt.Sprint(i), `{"n":1}`)
		turned.Calls = append(turned.Calls, p)
	}
	return turned
}

var arguments = agent.NewBody(enginetest.Arguments).Ref

func (tr *trace) task() agent.Task { return agent.Task{Run: tr.run, Effect: *tr.run.Open} }

func (tr *trace) checked() agent.Checked {
	tool, _ := tr.run.Spec.Tool(tr.run.Call.Proposal.Tool)
	return agent.Checked{Arguments: arguments, Definition: tool.Definition}
}

func came(s agent.Status, c agent.Class) agent.Returned {
	return agent.Returned{Outcome: agent.Outcome{Status: s, Class: c, Sent: true}}
}

func observed(s agent.Status, c agent.Class) agent.Observed {
	return agent.Observed{Status: s, Class: c, Message: ref("told")}
}

// upToWaiting brings a run to awaiting_approval with a call of the tool.
func upToWaiting(t *testing.T, tool string) *trace {
	t.Helper()
	return waitingIn(begin(t, enginetest.Spec("r")), tool)
}

func waitingIn(tr *trace, tool string) *trace {
	tr.t.Helper()
	tr.node(proposes(tool, enginetest.ToolRead))
	tr.node(enginetest.Waiting(tr.task(), arguments))
	tr.node(agent.Observed{Status: agent.StatusWaitingApproval, Class: agent.ClassPermissionRefused})
	return tr
}

func (tr *trace) sign(by string) agent.Approve {
	return enginetest.Sign(tr.run, by, tr.now)
}

// upToSend brings a run to the open Send of a granted write.
func upToSend(t *testing.T) *trace {
	t.Helper()
	tr := upToWaiting(t, enginetest.ToolWrite)
	tr.outside(tr.sign("alice"))
	tr.node(tr.checked())
	return tr
}

// situations are the places that a run can be in, as far as Step tells them apart.
func situations(t *testing.T) []struct {
	name string
	tr   *trace
} {
	t.Helper()
	model := begin(t, enginetest.Spec("r"))
	prepare := model.clone()
	prepare.node(proposes(enginetest.ToolRead, enginetest.ToolRead))
	sendRead := prepare.clone()
	sendRead.node(sendRead.checked())
	observe := sendRead.clone()
	observe.node(came(agent.StatusOK, agent.ClassOK))
	waiting := upToWaiting(t, enginetest.ToolWrite)
	endorsed := upToWaiting(t, enginetest.ToolDestroy)
	endorsed.outside(endorsed.sign("alice"))
	granted := waiting.clone()
	granted.outside(granted.sign("alice"))
	sendWrite := upToSend(t)
	cancelling := sendWrite.clone()
	cancelling.outside(agent.Cancel{})
	observeUnknown := sendWrite.clone()
	observeUnknown.node(came(agent.StatusResultUnknown, agent.ClassTimeout))
	verify := observeUnknown.clone()
	verify.node(agent.Observed{Status: agent.StatusResultUnknown, Class: agent.ClassTimeout})
	undecided := verify.clone()
	undecided.node(agent.Verified{Finding: agent.Undecided})
	settled := verify.clone()
	settled.node(agent.Verified{Finding: agent.Applied})
	held := prepare.clone()
	held.outside(agent.Pause{})
	stepped := held.clone()
	stepped.outside(agent.StepOnce{})
	completed := model.clone()
	completed.node(agent.Turned{Message: ref("answer")})
	forkedModel := fork(t, model, model.run.Seq)
	forkedPrepare := fork(t, prepare, prepare.run.Seq)
	forkedVerify := fork(t, verify, verify.run.Seq)
	given := forkedPrepare.clone()
	given.outside(given.substitute())
	return []struct {
		name string
		tr   *trace
	}{
		{"start", &trace{t: t, now: epoch}},
		{"model", model},
		{"execute, Prepare open", prepare},
		{"execute, Prepare open, paused", held},
		{"execute, Prepare open, stepped", stepped},
		{"execute, Prepare open, granted", granted},
		{"execute, Send of a read open", sendRead},
		{"execute, Send of a write open", sendWrite},
		{"execute, Send of a write open, cancel asked", cancelling},
		{"observe, ok", observe},
		{"observe, write unknown", observeUnknown},
		{"observe, write settled", settled},
		{"awaiting_approval", waiting},
		{"awaiting_approval, one of two", endorsed},
		{"needs_verification, Verify open", verify},
		{"needs_verification, undecided", undecided},
		{"completed", completed},
		{"a fork, model", forkedModel},
		{"a fork, execute, Prepare open", forkedPrepare},
		{"a fork, execute, Prepare open, result given", given},
		{"a fork, needs_verification, Verify open", forkedVerify},
	}
}

// sample is an event of the kind that fits the situation as well as one can.
func (tr *trace) sample(k agent.Kind) agent.Event {
	effect := agent.Effect{}
	if tr.run.Open != nil {
		effect = tr.run.Open.Effect
	}
	at := tr.now.Add(time.Second)
	node := func(r agent.Result) agent.Event { return agent.FromNode(effect, r, at) }
	outside := func(d agent.Decision) agent.Event { return agent.FromOutside(d, "operator", at) }
	call := tr.run.Call
	candidate := grant.Candidate{Fields: []grant.Field{}}
	if call != nil && call.Candidate != nil {
		candidate = *call.Candidate
	}
	switch k {
	case agent.KindStart:
		return agent.Begin(enginetest.Spec("r"), "operator", at)
	case agent.KindTurned:
		return node(proposes(enginetest.ToolRead))
	case agent.KindTurnRefused:
		return node(agent.TurnRefused{Reason: "length", Message: ref("cut off")})
	case agent.KindUnreached:
		return node(agent.Unreached{Reason: "timeout"})
	case agent.KindChecked:
		if call != nil {
			return node(tr.checked())
		}
		return node(agent.Checked{Arguments: arguments})
	case agent.KindReturned:
		out := came(agent.StatusOK, agent.ClassOK)
		if effect.Kind == agent.Prepare {
			out = agent.Returned{Outcome: agent.Outcome{Status: agent.StatusRejected, Class: agent.ClassToolError}}
		}
		return node(out)
	case agent.KindObserved:
		if call != nil && call.Outcome != nil && call.Outcome.Status == agent.StatusResultUnknown {
			return node(agent.Observed{Status: agent.StatusResultUnknown, Class: agent.ClassTimeout})
		}
		return node(observed(agent.StatusOK, agent.ClassOK))
	case agent.KindVerified:
		return node(agent.Verified{Finding: agent.Applied})
	case agent.KindApprove:
		if candidate.ID == "" {
			return outside(agent.Approve{Grant: "none"})
		}
		return outside(agent.Approve{Grant: enginetest.SignCandidate(candidate, "bob", tr.now)})
	case agent.KindRefuse:
		return outside(agent.Refuse{Candidate: candidate.ID})
	case agent.KindEdit:
		return outside(tr.edit(candidate))
	case agent.KindAttest:
		return outside(tr.attest(candidate))
	case agent.KindCancel:
		return outside(agent.Cancel{})
	case agent.KindPause:
		return outside(agent.Pause{})
	case agent.KindResume:
		return outside(agent.Resume{})
	case agent.KindStepOnce:
		return outside(agent.StepOnce{})
	case agent.KindExtend:
		return outside(agent.Extend{Budget: agent.Budget{Calls: 1}})
	case agent.KindSubstitute:
		return outside(tr.substitute())
	case agent.KindTick:
		return agent.FromClock(at.Add(24 * time.Hour))
	}
	tr.t.Fatalf("no sample of an event of kind %s", k)
	return agent.Event{}
}

func (tr *trace) edit(c grant.Candidate) agent.Edit {
	if c.ID == "" {
		return agent.Edit{Signed: "none"}
	}
	to := ref(`{"n":2}`)
	wire, err := grant.SignEdit(enginetest.Key("bob"), grant.Edit{
		Candidate: c.ID, Run: c.Run, Arguments: to.SHA256, Bytes: to.Bytes, Approver: "bob", Head: c.Head, Time: tr.now.Unix(),
	})
	if err != nil {
		tr.t.Fatal(err)
	}
	return agent.Edit{Signed: wire, Arguments: to}
}

func (tr *trace) attest(c grant.Candidate) agent.Attest {
	if c.ID == "" {
		return agent.Attest{Signed: "none"}
	}
	return enginetest.Statement(tr.run, "bob", string(agent.NotApplied), tr.now)
}

// substitute is what an operator could give for the open effect.
func (tr *trace) substitute() agent.Substitute {
	if tr.run.Open != nil && tr.run.Open.Kind == agent.Ask {
		turn := proposes(enginetest.ToolRead)
		turn.Usage = agent.Usage{}
		return agent.Substitute{Turn: &turn}
	}
	return agent.Substitute{Outcome: &agent.Outcome{
		Status: agent.StatusOK, Class: agent.ClassOK, Reason: agent.ReasonSubstituted, Body: ref("result"),
	}}
}

// TestStep_EveryEventInEverySituation is the whole behaviour on one page: what each
// event means in each place, or the code by which it is refused.
func TestStep_EveryEventInEverySituation(t *testing.T) {
	var b strings.Builder
	for _, s := range situations(t) {
		fmt.Fprintf(&b, "%s\n", s.name)
		for _, k := range agent.Kinds() {
			ev := s.tr.sample(k)
			next, entry, err := agent.Advance(s.tr.run, ev)
			var no *agent.Refusal
			switch {
			case errors.As(err, &no):
				fmt.Fprintf(&b, "  %-13s refused: %s\n", k, no.Code)
			case err != nil:
				t.Fatal(err)
			default:
				fmt.Fprintf(&b, "  %-13s %s → %s%s\n", k, entry.Row, next.State, opens(entry))
			}
		}
	}
	golden(t, "testdata/step.txt", b.String())
}

func opens(e agent.Entry) string {
	if len(e.Effects) == 0 {
		return ""
	}
	return ", opens " + string(e.Effects[0].Kind)
}

// TestStep_NoEventFromAnotherOrigin takes every event in every situation from every
// origin but its own: nothing may move.
func TestStep_NoEventFromAnotherOrigin(t *testing.T) {
	all := []agent.Origin{"", agent.OriginModel, agent.OriginRuntime, agent.OriginClock, agent.OriginApprover, agent.OriginOperator}
	tried := 0
	for _, s := range situations(t) {
		for _, k := range agent.Kinds() {
			ev := s.tr.sample(k)
			for _, o := range all {
				if o == ev.Origin() {
					continue
				}
				tried++
				if next, _, err := agent.Step(s.tr.run, agent.Forge(ev, o)); err == nil {
					t.Errorf("%s: %s by %q led to %s", s.name, k, o, next.State)
				}
			}
		}
	}
	if tried < 1000 {
		t.Fatalf("only %d combinations were tried", tried)
	}
}

func TestStep_RefusesSendWithoutSignatures(t *testing.T) {
	other := ref(`{"n":6}`) // of the same size
	for name, test := range map[string]struct {
		tr   *trace
		edit func(*agent.Checked)
	}{
		"a write that nobody signed": {func() *trace {
			tr := begin(t, enginetest.Spec("r"))
			tr.node(proposes(enginetest.ToolWrite))
			return tr
		}(), nil},
		"other bytes than signed": {granted(t), func(c *agent.Checked) { c.Arguments = other }},
		"other size than signed":  {granted(t), func(c *agent.Checked) { c.Arguments.Bytes++ }},
		"another definition":      {granted(t), func(c *agent.Checked) { c.Definition = other.SHA256 }},
		"a tool not exposed": {func() *trace {
			tr := begin(t, enginetest.Spec("r"))
			tr.node(proposes(""))
			return tr
		}(), nil},
	} {
		c := test.tr.checked()
		if test.edit != nil {
			test.edit(&c)
		}
		_, _, err := agent.Step(test.tr.run, agent.FromNode(test.tr.run.Open.Effect, c, test.tr.now))
		var no *agent.Refusal
		if !errors.As(err, &no) || no.Code != agent.CodeUnsigned {
			t.Errorf("%s: %v, want refusal %s", name, err, agent.CodeUnsigned)
		}
	}
}

// TestStep_RefusesTheAnswerToAnotherEffect: an engine that starts an effect twice, or
// whose cancelled model answers late, moves nothing.
func TestStep_RefusesTheAnswerToAnotherEffect(t *testing.T) {
	tr := begin(t, enginetest.Spec("r"))
	first := tr.run.Open.Effect
	tr.node(agent.TurnRefused{Reason: "length", Message: ref("cut off")})
	late := agent.FromNode(first, proposes(enginetest.ToolRead), tr.tickTock())
	var no *agent.Refusal
	if _, _, err := agent.Step(tr.run, late); !errors.As(err, &no) || no.Code != agent.CodeStale {
		t.Errorf("the answer to an Ask that is closed: %v, want %s", err, agent.CodeStale)
	}
}

func granted(t *testing.T) *trace {
	t.Helper()
	tr := upToWaiting(t, enginetest.ToolWrite)
	tr.outside(tr.sign("alice"))
	return tr
}

// TestStep_RefusesAGrantAlteredInAnyClaim signs, with a trusted key, claims that
// differ from the pending candidate in one place each: SPEC G1, CHECKS 36–38, 42.
func TestStep_RefusesAGrantAlteredInAnyClaim(t *testing.T) {
	tr := upToWaiting(t, enginetest.ToolWrite)
	zero := strings.Repeat("0", 64)
	for name, alter := range map[string]func(*grant.Candidate){
		"audience":   func(c *grant.Candidate) { c.Audience = "desk-2" },
		"scope":      func(c *grant.Candidate) { c.Scope = "desk/other" },
		"run":        func(c *grant.Candidate) { c.Run = "other" },
		"tool":       func(c *grant.Candidate) { c.Tool = "destroy" },
		"call":       func(c *grant.Candidate) { c.Call = strings.Repeat("0", 32) },
		"definition": func(c *grant.Candidate) { c.Definition = zero },
		"arguments":  func(c *grant.Candidate) { c.Arguments = zero },
		"bytes":      func(c *grant.Candidate) { c.Bytes++ },
		"fields":     func(c *grant.Candidate) { c.Fields = []grant.Field{{Name: "n", SHA256: zero, Bytes: 1}} },
		"head":       func(c *grant.Candidate) { c.Head = zero },
	} {
		c := *tr.run.Call.Candidate
		alter(&c)
		c.ID = grant.CandidateID(c.Run, c.Call, c.Arguments, c.Definition)
		refused(t, tr, name, enginetest.SignCandidate(c, "alice", tr.now), agent.CodeOther)
	}
	for name, wire := range map[string]string{
		"an unknown key":  enginetest.SignCandidate(*tr.run.Call.Candidate, "mallory", tr.now),
		"one bit":         flip(tr.sign("alice").Grant),
		"cut":             tr.sign("alice").Grant[:100],
		"nothing":         "",
		"another kind":    tr.edit(*tr.run.Call.Candidate).Signed,
		"an edit's bytes": tr.edit(*tr.run.Call.Candidate).Signed[:200],
	} {
		refused(t, tr, name, wire, agent.CodeForged)
	}
	late := *tr.run.Call.Candidate
	refused(t, tr, "expired", enginetest.SignCandidate(late, "alice", tr.now.Add(-time.Hour)), agent.CodeLate)
	refused(t, tr, "not yet valid", enginetest.SignCandidate(late, "alice", tr.now.Add(time.Hour)), agent.CodeLate)
}

func flip(wire string) string {
	b := []byte(wire)
	b[len(b)-20] ^= 1
	return string(b)
}

func refused(t *testing.T, tr *trace, name, wire, code string) {
	t.Helper()
	next, effects, err := agent.Step(tr.run, agent.FromOutside(agent.Approve{Grant: wire}, "x", tr.now))
	var no *agent.Refusal
	if !errors.As(err, &no) || no.Code != code {
		t.Errorf("%s: %v, want refusal %s", name, err, code)
	}
	if next.State != agent.StateAwaitingApproval || effects != nil {
		t.Errorf("%s: the run moved to %s", name, next.State)
	}
}

// TestStep_AnEditGrantsNothing: the edited call is prepared anew and asked for again.
func TestStep_AnEditGrantsNothing(t *testing.T) {
	tr := upToWaiting(t, enginetest.ToolWrite)
	old := *tr.run.Call.Candidate
	edit := tr.edit(old)
	tr.outside(edit)
	if tr.run.State != agent.StateExecute || tr.run.Call.Candidate != nil || len(tr.run.Call.Grants) != 0 {
		t.Fatalf("after the edit: %s, candidate %v, grants %d", tr.run.State, tr.run.Call.Candidate, len(tr.run.Call.Grants))
	}
	c := tr.checked()
	c.Arguments = edit.Arguments
	if _, _, err := agent.Step(tr.run, agent.FromNode(tr.run.Open.Effect, c, tr.now)); err == nil {
		t.Error("the edited call could be sent without a signature")
	}
	tr.node(enginetest.Waiting(tr.task(), edit.Arguments))
	tr.node(agent.Observed{Status: agent.StatusWaitingApproval, Class: agent.ClassPermissionRefused})
	refused(t, tr, "a grant for the old candidate", enginetest.SignCandidate(old, "alice", tr.now), agent.CodeOther)
	tr.outside(tr.sign("alice"))
	c = tr.checked()
	c.Arguments = edit.Arguments
	tr.node(c)
	if tr.run.Open.Kind != agent.Send {
		t.Errorf("the new candidate, signed, opens %s", tr.run.Open.Kind)
	}
}

// turnDown refuses the pending candidate and proposes the tool again.
func (tr *trace) turnDown(again string) {
	tr.t.Helper()
	tr.outside(agent.Refuse{Candidate: tr.run.Call.Candidate.ID})
	tr.node(observed(agent.StatusRejected, agent.ClassPermissionRefused))
	for tr.run.Open.Kind == agent.Prepare { // the read that was proposed beside it
		tr.node(tr.checked())
		tr.node(came(agent.StatusOK, agent.ClassOK))
		tr.node(observed(agent.StatusOK, agent.ClassOK))
	}
	tr.node(proposes(enginetest.ToolWrite))
	tr.node(enginetest.Waiting(tr.task(), ref(again)))
}

// TestStep_AttemptsAtTheModelAreCountedInARow: a turn, even a refused one, begins the
// count anew; the last of a row gives up.
func TestStep_AttemptsAtTheModelAreCountedInARow(t *testing.T) {
	tr := begin(t, enginetest.Spec("r"))
	for range 2 {
		for range agent.MaxUnreached - 1 {
			tr.node(agent.Unreached{Reason: "timeout"})
		}
		tr.node(agent.TurnRefused{Reason: "length", Message: ref("cut off")})
	}
	for range agent.MaxUnreached {
		if tr.run.State != agent.StateModel {
			t.Fatalf("the run is %s (%s) before the last attempt", tr.run.State, tr.run.Reason)
		}
		tr.node(agent.Unreached{Reason: "timeout"})
	}
	if tr.run.State != agent.StateFailed || tr.run.Reason != "model:timeout" {
		t.Errorf("after %d attempts in a row: %s (%s)", agent.MaxUnreached, tr.run.State, tr.run.Reason)
	}
}

// TestStep_RolesAndOwnKeys: who may sign for a tool is the contract's to say.
func TestStep_RolesAndOwnKeys(t *testing.T) {
	spec := enginetest.Spec("r")
	spec.Approvers[1].Roles = []string{"editor"}
	for i := range spec.Tools {
		if spec.Tools[i].Name == enginetest.ToolWrite {
			spec.Tools[i].Role = "editor"
		}
	}
	tr := waitingIn(begin(t, spec), enginetest.ToolWrite)
	refused(t, tr, "alice without the role", tr.sign("alice").Grant, agent.CodeKey)
	tr.outside(tr.sign("bob"))

	for own, code := range map[bool]string{false: agent.CodeKey, true: ""} {
		spec := enginetest.Spec("r")
		for i := range spec.Tools {
			spec.Tools[i].OwnKey = own
		}
		tr := &trace{t: t, now: epoch}
		tr.take(agent.Begin(spec, "alice", tr.now))
		waitingIn(tr, enginetest.ToolDestroy)
		if code != "" {
			refused(t, tr, "the operator's own key", tr.sign("alice").Grant, code)
			continue
		}
		tr.outside(tr.sign("alice"))
	}
}

func TestStep_TheSameCallIsNotAskedForTwiceAfterARefusal(t *testing.T) {
	tr := upToWaiting(t, enginetest.ToolWrite)
	tr.turnDown(string(enginetest.Arguments))
	out := tr.run.Call.Outcome
	if out.Status != agent.StatusRejected || out.Reason != agent.ReasonRefusedBefore || tr.run.Call.Candidate != nil {
		t.Errorf("the call that was refused came back as %+v", out)
	}
}

// TestStep_TheFourthCandidateHoldsTheRun: three were turned down; the next is not
// shown before an operator resumes.
func TestStep_TheFourthCandidateHoldsTheRun(t *testing.T) {
	tr := upToWaiting(t, enginetest.ToolWrite)
	for i := range agent.MaxTurnedDown {
		if tr.run.Held {
			t.Fatalf("held at candidate %d", i+1)
		}
		tr.turnDown(fmt.Sprintf(`{"n":%d}`, i+2))
		tr.node(agent.Observed{Status: agent.StatusWaitingApproval, Class: agent.ClassPermissionRefused})
	}
	if !tr.run.Held || tr.run.Startable() || tr.run.Reason != agent.ReasonTurnedDown {
		t.Fatalf("the fourth: held %t, would be shown %t, reason %q", tr.run.Held, tr.run.Startable(), tr.run.Reason)
	}
	tr.outside(agent.Resume{})
	if !tr.run.Startable() || tr.run.Reason != "" {
		t.Errorf("after resume: would be shown %t, reason %q", tr.run.Startable(), tr.run.Reason)
	}
}

func TestStep_ADeadlineIsAcceptedWhenDueAndNotBefore(t *testing.T) {
	tr := upToWaiting(t, enginetest.ToolWrite)
	due, ok := tr.run.Due()
	if !ok || !due.Equal(tr.run.Time.Add(time.Hour)) {
		t.Fatalf("due %v, %t; want an hour after %v", due, ok, tr.run.Time)
	}
	if _, _, err := agent.Step(tr.run, agent.FromClock(due.Add(-time.Microsecond))); err == nil {
		t.Error("a tick before the deadline was taken")
	}
	late := agent.FromOutside(enginetest.Sign(tr.run, "alice", due), "x", due)
	var no *agent.Refusal
	if _, _, err := agent.Step(tr.run, late); !errors.As(err, &no) || no.Code != agent.CodeLate {
		t.Errorf("an approval at the deadline: %v, want %s", err, agent.CodeLate)
	}
	tr.take(agent.FromClock(due))
	if tr.run.State != agent.StateObserve || tr.run.Call.Outcome.Reason != agent.ReasonExpired {
		t.Errorf("after the deadline: %s, %+v", tr.run.State, tr.run.Call.Outcome)
	}
}

// TestStep_ParkedTimeIsFree: SPEC A8.
func TestStep_ParkedTimeIsFree(t *testing.T) {
	tr := upToWaiting(t, enginetest.ToolWrite)
	was := tr.run.Used.Wall
	tr.now = tr.now.Add(30 * time.Minute)
	tr.outside(tr.sign("alice"))
	if tr.run.Used.Wall != was {
		t.Errorf("half an hour of waiting cost %v", tr.run.Used.Wall-was)
	}
	model := begin(t, enginetest.Spec("r"))
	limit := time.Duration(agent.DefaultBudget.Wall) * time.Second
	if _, _, err := agent.Step(model.run, agent.FromClock(epoch.Add(limit))); err == nil {
		t.Error("a run that worked exactly its budget was ended")
	}
	next, _, err := agent.Step(model.run, agent.FromClock(epoch.Add(limit+time.Millisecond)))
	if err != nil || next.Reason != "budget:wall_time" {
		t.Errorf("past the budget: %v, reason %q", err, next.Reason)
	}
}

func TestStep_TurnAndTokenBudgetsEndARun(t *testing.T) {
	for name, test := range map[string]struct {
		budget agent.Budget
		want   string
	}{
		"turns":  {agent.Budget{Calls: 12, Turns: 1, Tokens: 1000, Wall: 900}, "budget:model_turns"},
		"tokens": {agent.Budget{Calls: 12, Turns: 24, Tokens: 109, Wall: 900}, "budget:tokens"},
	} {
		spec := enginetest.Spec("r")
		spec.Budget = test.budget
		tr := begin(t, spec)
		tr.node(proposes(enginetest.ToolRead)) // 110 tokens
		if tr.run.State == agent.StateExecute {
			tr.node(tr.checked())
			tr.node(came(agent.StatusOK, agent.ClassOK))
			tr.node(observed(agent.StatusOK, agent.ClassOK))
		}
		if tr.run.State != agent.StateFailed || tr.run.Reason != test.want {
			t.Errorf("%s: %s, %q; want failed, %q", name, tr.run.State, tr.run.Reason, test.want)
		}
	}
	exact := enginetest.Spec("r")
	exact.Budget.Tokens = 110
	tr := begin(t, exact)
	tr.node(proposes(enginetest.ToolRead))
	if tr.run.State != agent.StateExecute {
		t.Errorf("exactly at the token budget: %s, %q", tr.run.State, tr.run.Reason)
	}
}

// TestStep_NeverWritesThroughItsArgument: a run is a value.
func TestStep_NeverWritesThroughItsArgument(t *testing.T) {
	for _, s := range situations(t) {
		for _, k := range agent.Kinds() {
			before := fmt.Sprintf("%+v", deep(s.tr.run))
			_, _, _ = agent.Advance(s.tr.run, s.tr.sample(k))
			if after := fmt.Sprintf("%+v", deep(s.tr.run)); after != before {
				t.Errorf("%s: %s changed the run that it was given:\n%s\n%s", s.name, k, before, after)
			}
		}
	}
}

// deep spells out what a run points to.
func deep(r agent.Run) []any {
	out := []any{r.State, r.Seq, r.Head, r.Used, r.Budget, r.Held, r.Cancelling, r.Noted, r.Deadline}
	if r.Turn != nil {
		out = append(out, *r.Turn)
	}
	if r.Call != nil {
		out = append(out, *r.Call, r.Call.Candidate != nil)
		if r.Call.Outcome != nil {
			out = append(out, *r.Call.Outcome)
		}
	}
	if r.Open != nil {
		out = append(out, *r.Open)
	}
	return out
}
