package prove

import (
	"slices"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// The rules that every path is held to.
const (
	ruleUnsigned = "unsigned"       // a Send without the required signatures over exactly its bytes and definition
	ruleChanged  = "changed"        // a Send under another definition than the pinned one
	ruleEdited   = "edited"         // a Send of other bytes than a person put in the model's place
	ruleTwice    = "twice"          // a second Send of one call
	ruleCancel   = "cancelled"      // a Send after cancel was asked
	ruleBudget   = "budget"         // a Send, or a turn, beyond the budget
	ruleUnknown  = "unknown"        // a Send while the outcome of a write is not known
	ruleRefused  = "refused"        // a Send of a call that was refused, or that nobody decided on in time
	ruleHeld     = "held"           // a Send that began while the run was paused
	ruleProposed = "unproposed"     // a Send of what the model did not propose, or may not
	ruleLeft     = "left unasked"   // what waited for a person went on without one
	ruleEnded    = "after the end"  // an event was taken after the run had ended
	ruleIntent   = "without intent" // a Send that no intent opened
	ruleStale    = "stale"          // an answer was taken to an effect that is not open
)

// rules says what each rule forbids, for people.
var rules = map[string]string{
	ruleUnsigned: "a call is sent without the signatures that it needs over exactly its bytes and definition",
	ruleChanged:  "a call is sent under another definition than the run pinned",
	ruleEdited:   "a call is sent with other bytes than those that a person put in the model's place",
	ruleTwice:    "one call is sent twice",
	ruleCancel:   "a call is sent after the run was cancelled",
	ruleBudget:   "the budget is exceeded",
	ruleUnknown:  "a call is sent while nobody knows whether a write took effect",
	ruleRefused:  "a call is sent that a person refused, or that nobody decided on in time",
	ruleHeld:     "a call is sent while the run is paused",
	ruleProposed: "something is sent that the model did not propose, or may not call",
	ruleLeft:     "what waits for a person goes on without one",
	ruleEnded:    "a run goes on after its end",
	ruleIntent:   "a call is sent without an intent",
	ruleStale:    "an answer is taken to an effect that is not open",
}

// books are what the walk itself knows of a path, from the events that Step accepted and
// the effects that it opened. They never look into the run.
type books struct {
	run       string // id
	operator  string
	seq       int64
	calls     []call // of the open turn
	sends     int
	turns     int
	budget    agent.Budget
	held      bool
	stepped   bool // one effect of the paused run was released
	cancelled bool
	unsettled string // the write that was sent and has no final outcome, by call
	pending   string // the call whose candidate waits, or waited last
	answered  agent.Effect
}

// call is a call that the model proposed.
type call struct {
	id, tool string
	sent     bool
	over     bool // refused, or not decided on in time
	edited   agent.BodyRef
	deadline time.Time // of the candidate
	grants   []signature
}

// signature is a grant that was accepted, as the books read it.
type signature struct {
	claims grant.Claims
	key    grant.PublicKey
	at     time.Time
}

func (b books) clone() books {
	b.calls = slices.Clone(b.calls)
	return b
}

func (b *books) call(id string) *call {
	for i := range b.calls {
		if b.calls[i].id == id {
			return &b.calls[i]
		}
	}
	return nil
}

func (b *books) toolOf(id string) string {
	if c := b.call(id); c != nil {
		return c.tool
	}
	return ""
}

// writes reports whether a call is one of a tool that changes something.
func (b *books) writes(w *walk, id string) bool {
	t, ok := w.spec.Tool(b.toolOf(id))
	return ok && (t.Risk.Writes() || w.proof.needs[t.Name] > 0)
}

// take enters an accepted event and the effects that it opened, and reports the rules
// that they break.
func (b *books) take(w *walk, ev agent.Event, open *agent.OpenEffect, effects []agent.Effect) []breach {
	b.seq++
	var broken []breach
	for _, e := range effects {
		switch e.Kind {
		case agent.Send:
			broken = append(broken, b.sending(w, ev, e)...)
		case agent.Ask:
			if b.turns+turn(ev) >= b.budget.Turns && b.budget.Turns > 0 {
				broken = append(broken, breach{ruleBudget, ""})
			}
		case agent.Prepare, agent.Observe, agent.Present, agent.Verify:
		}
	}
	b.enter(w, ev)
	if _, answers := ev.Payload().(agent.Result); answers {
		b.stepped = false
		if open != nil {
			b.answered = open.Effect
		}
	}
	return broken
}

func turn(ev agent.Event) int {
	switch ev.Payload().(type) {
	case agent.Turned, agent.TurnRefused:
		return 1
	}
	return 0
}

// enter books what the event says.
func (b *books) enter(w *walk, ev agent.Event) {
	b.turns += turn(ev)
	switch e := ev.Payload().(type) {
	case agent.Spec:
		b.run, b.budget, b.operator = e.Run, e.Budget, ev.Actor()
	case agent.Turned:
		b.calls = nil
		for i, p := range e.Calls {
			b.calls = append(b.calls, call{id: agent.CallID(b.run, b.seq, i), tool: p.Tool})
		}
	case agent.Returned:
		if e.Candidate != nil && b.call(e.Candidate.Call) != nil {
			b.pending = e.Candidate.Call
		}
	case agent.Observed:
		b.observes(w, e, ev.Time())
	case agent.Approve:
		b.signs(w, e, ev.Time())
	case agent.Edit:
		if c := b.call(b.pending); c != nil {
			c.edited, c.deadline = e.Arguments, time.Time{}
		}
	case agent.Refuse:
		b.turnDown()
	case agent.Cancel:
		b.cancelled = true
	case agent.Pause:
		b.held, b.stepped = true, false
	case agent.Resume:
		b.held, b.stepped = false, false
	case agent.StepOnce:
		b.stepped = true
	case agent.Extend:
		b.budget.Calls += e.Budget.Calls
		b.budget.Turns += e.Budget.Turns
	case nil: // a tick: the candidate has expired, or the run has ended
		b.turnDown()
	}
}

// observes settles the write in flight with a final outcome, and starts the time that a
// candidate may wait. An unknown outcome is none, whatever the model is told of it.
func (b *books) observes(w *walk, e agent.Observed, at time.Time) {
	if !e.Message.IsZero() && e.Status != agent.StatusResultUnknown {
		b.unsettled = ""
	}
	c := b.call(b.pending)
	if c == nil || e.Status != agent.StatusWaitingApproval || !c.deadline.IsZero() {
		return
	}
	if t, ok := w.spec.Tool(c.tool); ok {
		c.deadline = at.Add(seconds(t.Expires))
	}
}

func (b *books) turnDown() {
	if c := b.call(b.pending); c != nil {
		c.over = true
	}
}

// signs reads a grant that Step accepted with the books' own keys.
func (b *books) signs(w *walk, e agent.Approve, at time.Time) {
	claims, by, err := w.keys.OpenGrant(e.Grant)
	if err != nil {
		return // it signs nothing
	}
	s := w.signer(by)
	if s == nil || !s.until.IsZero() && !at.Before(s.until) {
		return
	}
	if c := b.call(claims.Candidate.Call); c != nil && at.Before(c.deadline) {
		c.grants = append(slices.Clip(c.grants), signature{claims: claims, key: by, at: at})
	}
}

func (w *walk) signer(by grant.PublicKey) *signer {
	for i := range w.signers {
		if w.signers[i].id == by.ID() && w.signers[i].name == by.Name {
			return &w.signers[i]
		}
	}
	return nil
}

// sending judges a Send that an event opened.
func (b *books) sending(w *walk, ev agent.Event, e agent.Effect) []breach {
	c := b.call(e.Call)
	if c == nil {
		return []breach{{ruleProposed, ""}}
	}
	tool, known := w.spec.Tool(c.tool)
	if !known || tool.HostOnly {
		return []breach{{ruleProposed, c.tool}}
	}
	intent, ok := ev.Payload().(agent.Checked)
	if !ok {
		return []breach{{ruleIntent, c.tool}}
	}
	var broken []breach
	for _, r := range []struct {
		rule string
		is   bool
	}{
		{ruleTwice, c.sent},
		{ruleCancel, b.cancelled},
		{ruleBudget, b.sends >= b.budget.Calls},
		{ruleUnknown, b.unsettled != ""},
		{ruleRefused, c.over},
		{ruleHeld, b.held && !b.stepped},
		{ruleChanged, intent.Definition != tool.Definition},
		{ruleEdited, !c.edited.IsZero() && c.edited != intent.Arguments},
		{ruleUnsigned, b.signed(w, c, tool, intent, ev.Time()) < w.proof.needs[tool.Name]},
	} {
		if r.is {
			broken = append(broken, breach{r.rule, c.tool})
		}
	}
	c.sent = true
	b.sends++
	if b.writes(w, c.id) {
		b.unsettled = c.id
	}
	return broken
}

// signed counts the people who signed exactly this call, with these bytes and this
// definition, whose grants hold now, and who may sign for the tool.
func (b *books) signed(w *walk, c *call, tool agent.Tool, intent agent.Checked, now time.Time) int {
	server, _ := w.spec.Server(tool.Server)
	var keys, names []string
	for _, s := range c.grants {
		is := s.claims.Candidate
		exact := is.Run == b.run && is.Call == c.id && is.Tool == tool.Remote &&
			is.Audience == server.Audience && is.Scope == server.Scope && is.Definition == intent.Definition &&
			is.Arguments == intent.Arguments.SHA256 && is.Bytes == intent.Arguments.Bytes
		fresh := s.claims.NotBefore <= s.at.Unix() && now.Unix() < s.claims.Expires &&
			s.claims.Expires-s.claims.NotBefore <= tool.UseWithin+agent.GrantSkew
		if !exact || !fresh || !b.entitled(w, tool, s.key) || slices.Contains(keys, s.key.ID()) || slices.Contains(names, s.key.Name) {
			continue
		}
		keys, names = append(keys, s.key.ID()), append(names, s.key.Name)
	}
	return len(keys)
}

// entitled reports whether the key may sign for the tool: by its role, and as another
// person than the one who began the run where several must sign.
func (b *books) entitled(w *walk, tool agent.Tool, by grant.PublicKey) bool {
	s := w.signer(by)
	return s != nil && (tool.Role == "" || slices.Contains(s.roles, tool.Role)) &&
		(tool.Approvers < 2 || tool.OwnKey || by.Name != b.operator)
}

// spellBooks spells what the books know beyond the run: a run with a sound history is
// never taken for one without.
func (w *walk) spellBooks(k *spelling, r *agent.Run, b *books) {
	if !w.tight {
		k.number(capped(b.budget.Calls-b.sends, fewCalls))
	}
	k.truth(b.held, b.stepped, b.unsettled != "")
	if r.Call == nil {
		return
	}
	earlier := false
	for i := range b.calls {
		switch c := &b.calls[i]; {
		case i < r.Call.Index:
			earlier = earlier || c.sent
		case i > r.Call.Index || !done(r):
			w.spellBooked(k, r, b, c)
		default:
			k.truth(c.sent, c.over)
		}
	}
	k.truth(earlier)
}

func (w *walk) spellBooked(k *spelling, r *agent.Run, b *books, c *call) {
	k.word(c.tool)
	k.truth(c.sent, c.over)
	k.word(bytesOf(c.edited))
	tool, ok := w.spec.Tool(c.tool)
	if !ok || len(c.grants) == 0 {
		return
	}
	args := argsModel
	if !c.edited.IsZero() {
		args = c.edited
	}
	signed := b.signed(w, c, tool, agent.Checked{Arguments: args, Definition: tool.Definition}, r.Time)
	k.number(capped(signed, w.proof.needs[tool.Name]))
}
