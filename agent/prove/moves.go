package prove

import (
	"slices"
	"strings"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// moves offers one run every kind of event of every origin.
type moves struct {
	walk  *walk
	run   *agent.Run
	last  agent.Effect // answered before: a second answer to it comes late
	fresh bool         // the first run in its situation
	offer func(agent.Event, label)
}

func (m *moves) all() {
	m.results()
	m.late()
	m.grants()
	m.refusals()
	m.edits()
	m.statements()
	m.operators()
	m.clock()
	m.outside(m.run.Time, m.walk.spec, label{says: "The run is started again."})
}

// outside offers what comes from outside. A Spec has a door of its own.
func (m *moves) outside(at time.Time, d any, l label) {
	switch d := d.(type) {
	case agent.Decision:
		m.offer(agent.FromOutside(d, m.walk.operators[0], at), l)
	case agent.Spec:
		m.offer(agent.Begin(d, m.walk.operators[0], at), l)
	}
}

// node offers an answer to the open effect.
func (m *moves) node(r agent.Result, l label) {
	if m.run.Open != nil {
		m.offer(agent.FromNode(m.run.Open.Effect, r, m.run.Time), l)
	}
}

// results offers every answer to the open effect that a node could give, and one of each
// kind that does not answer it.
func (m *moves) results() {
	if m.run.Open == nil {
		return
	}
	kind := m.run.Open.Kind
	if kind == agent.Ask {
		m.turns()
	}
	if kind == agent.Prepare {
		m.prepared()
	}
	if kind == agent.Send || kind == agent.Prepare {
		m.returned()
	}
	if kind == agent.Observe {
		m.observed()
	}
	if kind == agent.Verify {
		m.verified()
	}
	for _, r := range strays() {
		m.node(r, label{says: "The Host answers {with} with something else.", with: string(kind)})
	}
}

// late offers answers to an effect that was answered before.
func (m *moves) late() {
	if m.last.Seq == 0 {
		return
	}
	for _, r := range strays() {
		m.offer(agent.FromNode(m.last, r, m.run.Time), label{says: "An answer to an effect that is closed comes late, or twice.", late: true})
	}
	if w := m.walk; len(w.tools) > 0 && m.run.Call != nil {
		intent := agent.Checked{Arguments: m.wanted(), Definition: m.tool().Definition}
		m.offer(agent.FromNode(m.last, intent, m.run.Time), label{says: "An intent to send comes late, or twice.", tool: m.tool().Name, late: true})
	}
}

// strays are one answer of each kind.
func strays() []agent.Result {
	return []agent.Result{
		agent.Turned{Message: body("late")},
		agent.TurnRefused{Reason: "late", Message: body("late")},
		agent.Unreached{Reason: "late"},
		agent.Checked{Arguments: argsModel},
		agent.Returned{Outcome: outcome(agent.StatusOK, true)},
		agent.Observed{Status: agent.StatusOK, Class: agent.ClassOK, Message: body("late")},
		agent.Verified{Finding: agent.Applied},
	}
}

func outcome(s agent.Status, sent bool) agent.Outcome {
	return agent.Outcome{Status: s, Class: class(s), Sent: sent}
}

func class(s agent.Status) agent.Class {
	switch s {
	case agent.StatusOK:
		return agent.ClassOK
	case agent.StatusWaitingApproval:
		return agent.ClassPermissionRefused
	case agent.StatusRejected, agent.StatusFailed:
		return agent.ClassToolError
	case agent.StatusResultUnknown, agent.StatusUnavailable:
		return agent.ClassProtocolError
	}
	return agent.ClassProtocolError
}

// The model.

func (m *moves) turns() {
	said := body("the model's words")
	turn := func(l label, usage int64, names ...string) {
		t := agent.Turned{Message: said, Usage: agent.Usage{Input: usage}}
		for _, n := range names {
			t.Calls = append(t.Calls, agent.Proposal{Tool: n, Body: body("a proposal")})
		}
		m.node(t, l)
	}
	turn(label{says: "The model answers."}, 0)
	names := append(m.walk.names(), "")
	for _, a := range names {
		turn(label{says: "The model proposes {tool}.", tool: a}, 0, a)
	}
	for _, a := range names {
		if m.walk.tight {
			break // one call in a turn is enough there
		}
		for _, b := range names {
			turn(label{says: "The model proposes {tool}, and after it {with}.", tool: a, with: named(b), extra: 1}, 0, a, b)
		}
	}
	if m.walk.tight && len(m.walk.tools) > 0 {
		a := m.walk.tools[0].Name
		turn(label{says: "The model proposes {tool}, and has used more tokens than it may.", tool: a, extra: 1}, 20, a)
	}
	many := make([]string, agent.MaxCallsPerTurn+1)
	turn(label{says: "The model proposes more calls than a turn may have.", extra: 1}, 0, many...)
	for _, t := range m.walk.spec.Tools {
		if t.HostOnly {
			turn(label{says: "The model proposes {tool}, which is for the Host only.", tool: t.Name}, 0, t.Name)
		}
	}
	turn(label{says: "The model proposes a tool by a name that is not pinned."}, 0, "no__such_tool")
	m.node(agent.TurnRefused{Reason: "length", Message: said}, label{says: "The model's turn is cut off and refused."})
	m.node(agent.Unreached{Reason: "timeout"}, label{says: "The model gives no turn."})
	m.node(agent.Unreached{Reason: "timeout", Final: true}, label{says: "The model gives no turn, and will not."})
}

func (w *walk) names() []string {
	var names []string
	for _, t := range w.tools {
		names = append(names, t.Name)
	}
	return names
}

// A call.

// tool is the pinned tool of the call in hand, else the walk's first.
func (m *moves) tool() agent.Tool {
	if c := m.run.Call; c != nil {
		if t, ok := m.walk.spec.Tool(c.Proposal.Tool); ok {
			return t
		}
	}
	if len(m.walk.tools) > 0 {
		return m.walk.tools[0]
	}
	return agent.Tool{Definition: digest("nothing")}
}

// wanted are the bytes that the call in hand is to be sent with.
func (m *moves) wanted() agent.BodyRef {
	if c := m.run.Call; c != nil && c.Edited {
		return argsEdited
	}
	return argsModel
}

func (m *moves) prepared() {
	t := m.tool()
	want := m.wanted()
	m.node(agent.Checked{Arguments: want, Definition: t.Definition},
		label{says: "The Host finds nothing against the call: the intent to send {tool}.", tool: t.Name})
	intent := func(says string, args agent.BodyRef, definition string) {
		m.node(agent.Checked{Arguments: args, Definition: definition}, label{says: says, tool: t.Name, extra: 1})
	}
	for _, args := range []agent.BodyRef{argsModel, argsEdited, argsOther} {
		if args != want {
			intent("The Host intends to send {tool} with other bytes.", args, t.Definition)
		}
	}
	intent("The Host intends to send {tool} although its definition has changed.", want, digest("changed"))
	intent("The Host intends to send {tool} without saying which bytes.", agent.BodyRef{}, t.Definition)
	m.candidates(t, want)
	reject := agent.Returned{Outcome: outcome(agent.StatusRejected, false)}
	m.node(reject, label{says: "The Host refuses the call before it is sent.", tool: t.Name})
	reject.Class = agent.ClassBudget
	m.node(reject, label{says: "The Host finds no tool call left in the budget.", tool: t.Name})
}

// candidates offers what Prepare asks a person about: the call, and what it is not.
func (m *moves) candidates(t agent.Tool, want agent.BodyRef) {
	if m.run.Call == nil {
		return
	}
	ask := func(says string, c grant.Candidate, args agent.BodyRef) {
		m.node(agent.Returned{Outcome: outcome(agent.StatusWaitingApproval, false), Arguments: args, Candidate: &c}, label{says: says, tool: t.Name})
	}
	c := m.candidate(t, want, m.run.Open.Head)
	ask("The Host makes the candidate of {tool}: exactly these bytes need signatures.", c, want)
	ask("The Host makes a candidate of {tool} for other bytes than it shows.", c, argsOther)
	if want != argsModel {
		ask("The Host makes the candidate of {tool} from the model's bytes, not the person's.", m.candidate(t, argsModel, m.run.Open.Head), argsModel)
	}
	for _, v := range m.others(c) {
		if v.says != otherFields { // which arguments are listed one by one is the Host's choice
			ask("The Host makes a candidate with "+v.says+".", v.candidate, want)
		}
	}
	m.node(agent.Returned{Outcome: outcome(agent.StatusWaitingApproval, false), Arguments: want},
		label{says: "The Host asks for approval without a candidate.", tool: t.Name})
}

func (m *moves) candidate(t agent.Tool, args agent.BodyRef, head string) grant.Candidate {
	srv, _ := m.walk.spec.Server(t.Server)
	c := grant.Candidate{
		Audience: srv.Audience, Scope: srv.Scope, Run: m.run.ID, Tool: t.Remote, Call: m.run.Call.ID,
		Definition: t.Definition, Arguments: args.SHA256, Bytes: args.Bytes,
		Fields: []grant.Field{{Name: "n", SHA256: args.SHA256, Bytes: args.Bytes}}, Head: head,
	}
	return identified(c)
}

func identified(c grant.Candidate) grant.Candidate {
	c.ID = grant.CandidateID(c.Run, c.Call, c.Arguments, c.Definition)
	return c
}

// other is a candidate that differs from the one at hand.
type other struct {
	says      string
	candidate grant.Candidate
}

const otherFields = "other fields"

// others are candidates that differ from c in one claim each, or are of another call,
// another tool, or of the same call before it was edited.
func (m *moves) others(c grant.Candidate) []other {
	var all []other
	vary := func(says string, change func(*grant.Candidate)) {
		v := c
		change(&v)
		all = append(all, other{says, identified(v)})
	}
	vary("another audience", func(c *grant.Candidate) { c.Audience += "x" })
	vary("another scope", func(c *grant.Candidate) { c.Scope += "x" })
	vary("another run", func(c *grant.Candidate) { c.Run += "x" })
	vary("another tool", func(c *grant.Candidate) { c.Tool += "x" })
	vary("another call", func(c *grant.Candidate) { c.Call = strings.Repeat("0", len(c.Call)) })
	vary("another definition", func(c *grant.Candidate) { c.Definition = digest("changed") })
	vary("other bytes", func(c *grant.Candidate) { c.Arguments, c.Bytes = argsOther.SHA256, argsOther.Bytes })
	vary("another size", func(c *grant.Candidate) { c.Bytes++ })
	vary(otherFields, func(c *grant.Candidate) { c.Fields = []grant.Field{} })
	vary("another history", func(c *grant.Candidate) { c.Head = digest("another history") })
	before := argsModel
	if m.wanted() == argsModel {
		before = argsEdited
	}
	vary("the bytes before or after an edit", func(c *grant.Candidate) {
		c.Arguments, c.Bytes, c.Head = before.SHA256, before.Bytes, digest("another history")
	})
	for _, t := range m.walk.tools {
		if t.Remote != c.Tool {
			vary("the claims of {with}", func(c *grant.Candidate) {
				c.Tool, c.Definition, c.Call = t.Remote, t.Definition, strings.Repeat("0", len(c.Call))
			})
		}
	}
	return all
}

func (m *moves) returned() {
	t := m.tool().Name
	for _, s := range []agent.Status{
		agent.StatusOK, agent.StatusFailed, agent.StatusRejected, agent.StatusResultUnknown, agent.StatusUnavailable, agent.StatusWaitingApproval,
	} {
		m.node(agent.Returned{Outcome: outcome(s, true)}, label{says: "The call returns {with}.", with: string(s), tool: t})
		m.node(agent.Returned{Outcome: outcome(s, false)}, label{says: "The call returns {with}, and was not sent.", with: string(s), tool: t})
	}
}

func (m *moves) observed() {
	t := m.tool().Name
	for _, s := range []agent.Status{
		agent.StatusOK, agent.StatusFailed, agent.StatusRejected, agent.StatusResultUnknown, agent.StatusUnavailable, agent.StatusWaitingApproval,
	} {
		o := agent.Observed{Status: s, Class: class(s), Message: body("the tool message")}
		final := label{says: "The outcome is stored: {with}.", with: string(s), tool: t}
		if s == agent.StatusWaitingApproval {
			final.extra = 1
		}
		m.node(o, final)
		o.Message = agent.BodyRef{}
		waits := label{says: "The outcome stays open: {with}.", with: string(s), tool: t}
		if s == agent.StatusWaitingApproval {
			waits = label{says: "The candidate of {tool} waits for a person.", tool: t}
		}
		m.node(o, waits)
	}
	m.node(agent.Observed{Status: agent.StatusRejected, Class: agent.ClassBudget, Message: body("the tool message")},
		label{says: "The outcome is stored: the budget is empty.", tool: t})
}

func (m *moves) verified() {
	for _, f := range []agent.Finding{agent.Applied, agent.NotApplied, agent.Undecided, "perhaps"} {
		m.node(agent.Verified{Finding: f}, label{says: "The read-back finds: {with}.", with: string(f)})
	}
}

// Persons.

// sample is the pending candidate, else what could be one.
func (m *moves) sample() (grant.Candidate, bool) {
	switch c := m.run.Call; {
	case c == nil:
		return grant.Candidate{}, false
	case c.Candidate != nil:
		return *c.Candidate, true
	}
	return m.candidate(m.tool(), m.wanted(), m.run.Head), true
}

// waits reports whether a decision can mean something now. Elsewhere one of each kind is
// offered, here all.
func (m *moves) waits() bool { return m.run.State == agent.StateAwaitingApproval }

func (m *moves) grants() {
	c, ok := m.sample()
	if !ok || len(m.walk.signers) == 0 {
		m.outside(m.run.Time, agent.Approve{Grant: "no grant"}, label{says: "Something that is no grant arrives."})
		return
	}
	if !m.waits() {
		m.grant(m.walk.signers[0], c, m.run.Time, label{says: "{by} signs the candidate of {tool}."})
		return
	}
	next := map[int]bool{} // of each class, the first who has not signed is on the path that is shown
	for _, s := range m.walk.signers {
		l := label{says: "{by} signs exactly the candidate of {tool}."}
		if next[s.class] || m.signed(s) {
			l.extra = 1
		}
		next[s.class] = next[s.class] || !m.signed(s)
		m.grant(s, c, m.run.Time, l)
	}
	if !m.fresh {
		return
	}
	m.grant(m.walk.stranger, c, m.run.Time, label{says: "Somebody who calls himself {by} signs with a key that the run does not know."})
	for _, j := range m.walk.jumps {
		m.grant(m.willing(), c, m.run.Time.Add(j.by), label{says: "{by} signs the candidate of {tool}, " + j.says + ".", extra: 1})
	}
	for _, v := range m.others(c) {
		m.grant(m.willing(), v.candidate, m.run.Time, label{says: "{by}'s grant for a candidate with " + v.says + " arrives."})
	}
	m.oddGrants(c)
}

// oddGrants offers grants over the right candidate that are wrong in time or form.
func (m *moves) oddGrants(c grant.Candidate) {
	s, use := m.willing(), m.tool().UseWithin
	now := m.run.Time
	old := m.walk.pen.grant(s, c, now.Add(-seconds(use+agent.GrantSkew)), use)
	m.approve(old, now, s, label{says: "{by}'s grant arrives after it has expired."})
	m.approve(m.walk.pen.grant(s, c, now.Add(seconds(3600)), use), now, s, label{says: "{by}'s grant arrives before it is valid."})
	m.approve(m.walk.pen.grant(s, c, now, use+1), now, s, label{says: "{by}'s grant lasts longer than the contract allows."})
	good := m.walk.pen.grant(s, c, now, use)
	m.approve(good[:len(good)-2], now, s, label{says: "A grant that is cut off arrives."})
	flipped := []byte(good)
	if at := len(flipped) / 2; flipped[at] == 'A' {
		flipped[at] = 'B'
	} else {
		flipped[at] = 'A'
	}
	m.approve(string(flipped), now, s, label{says: "A grant in which one character is changed arrives."})
	m.approve("", now, s, label{says: "An empty grant arrives."})
}

// willing is an approver who may sign for the call and has not yet; else the first.
func (m *moves) willing() signer {
	t := m.tool()
	for _, s := range m.walk.signers {
		if !m.signed(s) && (t.Role == "" || slices.Contains(s.roles, t.Role)) && s.name != m.run.Operator {
			return s
		}
	}
	return m.walk.signers[0]
}

// signed reports whether somebody of that name has signed the pending candidate.
func (m *moves) signed(s signer) bool {
	return m.run.Call != nil && slices.ContainsFunc(m.run.Call.Grants, func(g agent.Grant) bool { return g.Approver == s.name })
}

func (m *moves) grant(s signer, c grant.Candidate, at time.Time, l label) {
	m.approve(m.walk.pen.grant(s, c, at, m.tool().UseWithin), at, s, l)
}

func (m *moves) approve(wire string, at time.Time, s signer, l label) {
	l.by, l.tool = s.name, m.tool().Name
	m.outside(at, agent.Approve{Grant: wire}, l)
}

func (m *moves) refusals() {
	c, ok := m.sample()
	if !ok {
		c.ID = digest("no candidate")
	}
	t := m.tool().Name
	m.outside(m.run.Time, agent.Refuse{Candidate: c.ID}, label{says: "The operator refuses the candidate of {tool}.", tool: t})
	if !m.waits() || !m.fresh || len(m.walk.signers) == 0 {
		return
	}
	m.outside(m.run.Time, agent.Refuse{Candidate: digest("another")}, label{says: "The operator refuses another candidate."})
	for _, s := range []signer{m.walk.signers[0], m.walk.stranger} {
		signed := agent.Refuse{Candidate: c.ID, Signed: m.walk.pen.refusal(s, c)}
		m.outside(m.run.Time, signed, label{says: "{by} refuses the candidate of {tool}, signed.", by: s.name, tool: t, extra: 1})
	}
}

func (m *moves) edits() {
	c, ok := m.sample()
	if !ok || len(m.walk.signers) == 0 {
		m.outside(m.run.Time, agent.Edit{Signed: "no edit", Arguments: argsEdited}, label{says: "Something that is no edit arrives."})
		return
	}
	edit := func(s signer, at time.Time, id, head string, args agent.BodyRef, says string) {
		signed := agent.Edit{Signed: m.walk.pen.edit(s, m.run.ID, id, head), Arguments: args}
		m.outside(at, signed, label{says: says, by: s.name, tool: m.tool().Name, extra: 1})
	}
	if m.walk.tight {
		return
	}
	s := m.willing()
	edit(s, m.run.Time, c.ID, c.Head, argsEdited, "{by} puts other arguments in place of those of {tool}.")
	if !m.waits() || !m.fresh {
		return
	}
	edit(m.walk.stranger, m.run.Time, c.ID, c.Head, argsEdited, "Somebody whom the run does not know edits the arguments of {tool}.")
	edit(s, m.run.Time, c.ID, c.Head, argsOther, "Other arguments than {by} signed come with the edit.")
	edit(s, m.run.Time, digest("another"), c.Head, argsEdited, "{by}'s edit of another candidate arrives.")
	edit(s, m.run.Time, c.ID, digest("another history"), argsEdited, "{by}'s edit of another history arrives.")
	for _, j := range m.walk.jumps {
		edit(s, m.run.Time.Add(j.by), c.ID, c.Head, argsEdited, "{by} edits the arguments of {tool}, "+j.says+".")
	}
}

func (m *moves) statements() {
	if m.run.Call == nil || len(m.walk.signers) == 0 {
		m.outside(m.run.Time, agent.Attest{Signed: "no statement"}, label{says: "Something that is no statement arrives."})
		return
	}
	attest := func(s signer, call, verdict, says string) {
		signed := agent.Attest{Signed: m.walk.pen.statement(s, m.run.ID, call, verdict)}
		m.outside(m.run.Time, signed, label{says: says, by: s.name, with: verdict, tool: m.tool().Name})
	}
	s := m.walk.signers[0]
	attest(s, m.run.Call.ID, grant.VerdictApplied, "{by} states what became of {tool}: {with}.")
	if m.run.State != agent.StateNeedsVerification {
		return
	}
	attest(s, m.run.Call.ID, grant.VerdictNotApplied, "{by} states what became of {tool}: {with}.")
	attest(s, m.run.Call.ID, grant.VerdictUnknown, "{by} states that nobody knows what became of {tool}.")
	if !m.fresh {
		return
	}
	attest(s, strings.Repeat("0", 32), grant.VerdictApplied, "{by}'s statement about another call arrives.")
	attest(m.walk.stranger, m.run.Call.ID, grant.VerdictApplied, "Somebody whom the run does not know states what became of {tool}.")
}

// Operators and the clock.

func (m *moves) operators() {
	now := m.run.Time
	m.outside(now, agent.Cancel{}, label{says: "The operator cancels the run."})
	m.outside(now, agent.Cancel{Abandon: true}, label{says: "The operator abandons the run."})
	m.outside(now, agent.Pause{}, label{says: "The operator pauses the run."})
	m.outside(now, agent.Resume{}, label{says: "The operator resumes the run."})
	m.outside(now, agent.StepOnce{}, label{says: "The operator lets the paused run take one step."})
	for _, j := range m.walk.jumps {
		m.outside(now.Add(j.by), agent.Pause{}, label{says: "The operator pauses the run, " + j.says + ".", extra: 1})
		m.outside(now.Add(j.by), agent.Resume{}, label{says: "The operator resumes the run, " + j.says + ".", extra: 1})
	}
	m.outside(now, agent.Substitute{Turn: &agent.Turned{Message: body("given")}}, label{says: "The operator gives the model's turn."})
	m.outside(now, agent.Substitute{Outcome: &agent.Outcome{Status: agent.StatusOK, Class: agent.ClassOK, Reason: agent.ReasonSubstituted}},
		label{says: "The operator gives what the call returns."})
	m.outside(now, agent.Extend{Budget: agent.Budget{Calls: -1}}, label{says: "The operator takes budget away."})
	m.extend()
}

// extend raises what is short; more of what is ample changes nothing.
func (m *moves) extend() {
	r := m.run
	more := func(b agent.Budget, what string) {
		m.outside(r.Time, agent.Extend{Budget: b}, label{says: "The operator adds " + what + " to the budget.", extra: 1})
	}
	if !m.walk.tight {
		if r.Budget.Calls-r.Used.Calls < fewCalls {
			more(agent.Budget{Calls: 1}, "a tool call")
		}
		return
	}
	if r.Budget.Turns-r.Used.Turns < 1 {
		more(agent.Budget{Turns: 1}, "a turn")
	}
	if r.Used.Tokens > r.Budget.Tokens {
		more(agent.Budget{Tokens: 100}, "tokens")
	}
	if r.Used.Wall > seconds(r.Budget.Wall) {
		more(agent.Budget{Wall: int64((r.Used.Wall-seconds(r.Budget.Wall))/time.Second) + 1}, "working time")
	}
}

func (m *moves) clock() {
	now := m.run.Time
	m.offer(agent.FromClock(now), label{says: "The clock ticks, and nothing need be due."})
	if due, ok := m.run.Due(); ok && due.After(now) {
		m.offer(agent.FromClock(due), label{says: "The clock says that the time is up."})
		m.offer(agent.FromClock(due.Add(-time.Millisecond*2)), label{says: "The clock ticks just before the time is up."})
	}
	m.offer(agent.FromClock(now.Add(-time.Second)), label{says: "The clock goes backwards."})
}
