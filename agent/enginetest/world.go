package enginetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// The tools of every run of the suite.
const (
	ToolRead    = "desk__read"    // needs nobody
	ToolWrite   = "desk__write"   // needs one signature
	ToolDestroy = "desk__destroy" // needs two, by different keys
)

// Script is what the model does: the tools that it calls, turn by turn. After the
// last turn it answers.
type Script [][]string

// World is what the nodes of the suite act on. It outlives engines, as the world
// does, and counts what they made happen. The zero value is ready; hooks are set
// before use.
type World struct {
	// Sending, if set, is called when a request has reached the server, before its
	// reply: it may block, and what it returns is the outcome. committed says
	// whether the server performed it.
	Sending func(call string) (status agent.Status, committed bool)
	// Asking, if set, is called before the model replies.
	Asking func(ctx context.Context) error
	// Preparing, if set, is called before Prepare returns.
	Preparing func()
	// Presenting, if set, is called when a candidate is shown.
	Presenting func()
	// Blind makes read-backs find nothing out.
	Blind bool
	// Now is the clock of Prepare; nil is time.Now.
	Now func() time.Time

	mu        sync.Mutex
	sent      map[string]int
	committed map[string]bool
	asked     int
}

// Sent says how many requests of a call reached the server.
func (w *World) Sent(call string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.sent[call]
}

// TotalSent says how many requests reached the server.
func (w *World) TotalSent() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	total := 0
	for _, n := range w.sent {
		total += n
	}
	return total
}

// Asked says how many turns the model was asked for.
func (w *World) Asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

// Nodes makes the nodes of a run that follows the script.
func (w *World) Nodes(script Script) func(agent.Run) (agent.Nodes, error) {
	return func(agent.Run) (agent.Nodes, error) { return &nodes{world: w, script: script}, nil }
}

type nodes struct {
	world  *World
	script Script
}

func (*nodes) Close() error { return nil }

// Perform implements [agent.Nodes].
func (n *nodes) Perform(ctx context.Context, t agent.Task) (agent.Report, error) {
	switch t.Effect.Kind {
	case agent.Ask:
		return n.ask(ctx, t)
	case agent.Prepare:
		return n.prepare(t)
	case agent.Send:
		return n.send(t)
	case agent.Observe:
		return n.observe(t)
	case agent.Verify:
		return n.verify(t)
	case agent.Present:
		if n.world.Presenting != nil {
			n.world.Presenting()
		}
		return agent.Report{}, nil
	}
	return agent.Report{}, fmt.Errorf("unknown effect %q", t.Effect.Kind)
}

func (n *nodes) ask(ctx context.Context, t agent.Task) (agent.Report, error) {
	n.world.mu.Lock()
	n.world.asked++
	n.world.mu.Unlock()
	if n.world.Asking != nil {
		if err := n.world.Asking(ctx); err != nil {
			return agent.Report{}, err
		}
	}
	turn := t.Run.Used.Turns
	if turn >= len(n.script) {
		answer := agent.NewBody([]byte(`{"role":"assistant","content":"done"}`))
		return agent.Report{Result: agent.Turned{Message: answer.Ref}, Bodies: []agent.Body{answer}}, nil
	}
	said := agent.NewBody(fmt.Appendf(nil, `{"role":"assistant","turn":%d}`, turn))
	report := agent.Report{Bodies: []agent.Body{said}}
	turned := agent.Turned{Message: said.Ref, Usage: agent.Usage{Input: 10, Output: 5}}
	for i, tool := range n.script[turn] {
		p, body := Propose(tool, fmt.Sprintf("c%d_%d", turn, i), `{"n":1}`)
		turned.Calls = append(turned.Calls, p)
		report.Bodies = append(report.Bodies, body)
	}
	report.Result = turned
	return report, nil
}

// Propose makes a proposal and its body.
func Propose(tool, id, arguments string) (agent.Proposal, agent.Body) {
	data, err := json.Marshal(agent.ProposalBody{ID: id, Name: tool, Arguments: arguments})
	if err != nil {
		panic(err) // three strings
	}
	body := agent.NewBody(data)
	return agent.Proposal{Tool: tool, Body: body.Ref}, body
}

// Arguments are the canonical argument bytes of every call of the suite.
var Arguments = []byte(`{"n":1}`)

func (n *nodes) prepare(t agent.Task) (agent.Report, error) {
	tool, ok := t.Run.Spec.Tool(t.Run.Call.Proposal.Tool)
	if !ok {
		return agent.Report{Result: agent.Returned{Outcome: agent.Outcome{
			Status: agent.StatusRejected, Class: agent.ClassToolError, Reason: "unknown_tool"}}}, nil
	}
	if t.Run.Used.Calls >= t.Run.Budget.Calls {
		return agent.Report{Result: agent.Returned{Outcome: agent.Outcome{
			Status: agent.StatusRejected, Class: agent.ClassBudget, Reason: "budget"}}}, nil
	}
	if n.world.Preparing != nil {
		n.world.Preparing()
	}
	args := agent.NewBody(Arguments)
	if t.Run.Call.Edited {
		args = agent.Body{Ref: t.Run.Call.Arguments}
	}
	report := agent.Report{}
	if args.Data != nil {
		report.Bodies = []agent.Body{args}
	}
	if tool.Approvers > 0 && !n.world.granted(t.Run.Call, tool.Approvers) {
		report.Result = Waiting(t, args.Ref)
		return report, nil
	}
	report.Result = agent.Checked{Arguments: args.Ref, Definition: tool.Definition}
	return report, nil
}

// granted reports whether enough grants hold now.
func (w *World) granted(c *agent.Call, need int) bool {
	now := time.Now
	if w.Now != nil {
		now = w.Now
	}
	valid := 0
	for _, g := range c.Grants {
		if now().Unix() < g.Expires {
			valid++
		}
	}
	return valid >= need
}

// Waiting is what Prepare returns for a call that needs signatures.
func Waiting(t agent.Task, args agent.BodyRef) agent.Returned {
	tool, _ := t.Run.Spec.Tool(t.Run.Call.Proposal.Tool)
	server, _ := t.Run.Spec.Server(tool.Server)
	c := grant.Candidate{
		ID:       grant.CandidateID(t.Run.ID, t.Run.Call.ID, args.SHA256, tool.Definition),
		Audience: server.Audience, Scope: server.Scope, Run: t.Run.ID, Tool: tool.Remote,
		Call: t.Run.Call.ID, Definition: tool.Definition, Arguments: args.SHA256, Bytes: args.Bytes,
		Fields: []grant.Field{}, Head: t.Effect.Head,
	}
	return agent.Returned{
		Outcome:   agent.Outcome{Status: agent.StatusWaitingApproval, Class: agent.ClassPermissionRefused},
		Arguments: args, Candidate: &c,
	}
}

func (n *nodes) send(t agent.Task) (agent.Report, error) {
	call := t.Run.Call.ID
	w := n.world
	w.mu.Lock()
	if w.sent == nil {
		w.sent, w.committed = map[string]int{}, map[string]bool{}
	}
	w.sent[call]++
	w.mu.Unlock()
	status, committed := agent.StatusOK, true
	if w.Sending != nil {
		status, committed = w.Sending(call)
	}
	w.mu.Lock()
	w.committed[call] = w.committed[call] || committed
	w.mu.Unlock()
	return agent.Report{Result: agent.Returned{Outcome: agent.Outcome{
		Status: status, Class: classOf(status), Sent: true, Request: "1"}}}, nil
}

func classOf(s agent.Status) agent.Class {
	switch s {
	case agent.StatusOK:
		return agent.ClassOK
	case agent.StatusRejected, agent.StatusWaitingApproval:
		return agent.ClassPermissionRefused
	case agent.StatusFailed:
		return agent.ClassToolError
	case agent.StatusResultUnknown, agent.StatusUnavailable:
		return agent.ClassTimeout
	}
	return agent.ClassProtocolError
}

func (n *nodes) observe(t agent.Task) (agent.Report, error) {
	out := t.Run.Call.Outcome
	o := agent.Observed{Status: out.Status, Class: out.Class, Reason: out.Reason}
	if out.Status == agent.StatusWaitingApproval || out.Status == agent.StatusResultUnknown {
		return agent.Report{Result: o}, nil
	}
	told := agent.NewBody(fmt.Appendf(nil, `{"role":"tool","call":%q,"status":%q}`, t.Run.Call.ID, out.Status))
	o.Message = told.Ref
	return agent.Report{Result: o, Bodies: []agent.Body{told}}, nil
}

func (n *nodes) verify(t agent.Task) (agent.Report, error) {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	v := agent.Verified{Finding: agent.NotApplied}
	switch {
	case n.world.Blind, len(t.Run.Call.Grants) == 0: // what reads back needs the grant
		v.Finding = agent.Undecided
	case n.world.committed[t.Run.Call.ID]:
		v.Finding = agent.Applied
	}
	return agent.Report{Result: v}, nil
}

// Key is a signing key that is the same in every run of the tests.
func Key(name string) grant.PrivateKey {
	k, err := grant.NewPrivateKey(name, &seeded{sha256.Sum256([]byte(name))})
	if err != nil {
		panic(err) // fixed input
	}
	return k
}

// seeded is a source of bytes that follow from a seed.
type seeded struct{ state [32]byte }

func (s *seeded) Read(p []byte) (int, error) {
	for i := range p {
		s.state = sha256.Sum256(s.state[:])
		p[i] = s.state[0]
	}
	return len(p), nil
}

// Spec is a run of the suite with its three tools, and alice and bob to approve.
func Spec(run string) agent.Spec {
	digest := func(name string) string {
		sum := sha256.Sum256([]byte(name))
		return hex.EncodeToString(sum[:])
	}
	tool := func(name string, risk agent.Risk, approvers int) agent.Tool {
		t := agent.Tool{Name: name, Server: "desk", Remote: name[len("desk__"):], Risk: risk, Definition: digest(name), Approvers: approvers}
		if approvers > 0 {
			t.Expires, t.UseWithin, t.Settle = 3600, 600, true
		}
		return t
	}
	return agent.Spec{
		Run: run, Rules: agent.Rules, Task: Task.Ref, Config: digest("config"), Model: "script",
		Tools: []agent.Tool{
			tool(ToolRead, agent.RiskRead, 0), tool(ToolWrite, agent.RiskWrite, 1), tool(ToolDestroy, agent.RiskDestructive, 2),
		},
		Servers:   []agent.Server{{Prefix: "desk", Audience: "desk-1", Scope: "desk/tests", Protocol: "2026-07-28"}},
		Approvers: []agent.Approver{{Key: Key("alice").Public().String()}, {Key: Key("bob").Public().String()}},
		Budget:    agent.DefaultBudget,
	}
}

// Task is the body of the suite's task.
var Task = agent.NewBody([]byte("do what the script says"))

// Sign makes a grant for the candidate that a run waits with.
func Sign(run agent.Run, by string, now time.Time) agent.Approve {
	return agent.Approve{Grant: SignCandidate(*run.Call.Candidate, by, now)}
}

// SignCandidate makes a grant for any candidate, for ten minutes from now.
func SignCandidate(c grant.Candidate, by string, now time.Time) string {
	wire, err := grant.SignGrant(Key(by), grant.Claims{
		Candidate: c, Grant: "0123456789abcdef0123456789abcdef", Approver: by,
		NotBefore: now.Unix() - agent.GrantSkew, Expires: now.Unix() + 600,
	})
	if err != nil {
		panic(err) // the candidate comes from a run
	}
	return wire
}

// Deliver wraps a decision with its key.
func Deliver(d agent.Decision, key string) agent.Delivery {
	switch signed := d.(type) {
	case agent.Approve:
		key = agent.DeliveryKey(signed.Grant)
	case agent.Edit:
		key = agent.DeliveryKey(signed.Signed)
	case agent.Attest:
		key = agent.DeliveryKey(signed.Signed)
	case agent.Refuse, agent.Cancel, agent.Pause, agent.Resume, agent.StepOnce, agent.Extend, agent.Substitute:
		// the caller mints these
	}
	return agent.Delivery{Key: key, Actor: "tester", Decision: d}
}

// Statement is a signed statement about the write whose outcome is unknown.
func Statement(run agent.Run, by, verdict string, now time.Time) agent.Attest {
	wire, err := grant.SignStatement(Key(by), grant.Statement{
		Call: run.Call.ID, Candidate: run.Call.Candidate.ID, Run: run.ID,
		Verdict: verdict, Approver: by, Head: run.Head, Time: now.Unix(),
	})
	if err != nil {
		panic(err) // the run waits with a candidate
	}
	return agent.Attest{Signed: wire}
}
