package screen

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/cmd/sallyport/terminal"
)

// MaxBody is how much of an outcome, or of a message of the context, is shown, in bytes;
// what is left out is said, with the command that shows it. A candidate, and the
// arguments of a call, are always shown in full.
const MaxBody = 64_000

// account writes what a step was about, for people.
type account struct {
	ctx    context.Context
	config *Config
	at     debug.Moment
	width  int
	b      bytes.Buffer
}

// about is what a step was about: the candidate that waits, or the call and what became
// of it, or the task, or the answer.
func about(ctx context.Context, c *Config, m debug.Moment, width int) fixed {
	a := &account{ctx: ctx, config: c, at: m, width: width}
	a.step()
	if shown := c.Displayed(); shown != "" {
		a.line("── Displayed ──\n%s", strings.TrimSuffix(shown, "\n"))
	}
	switch {
	case m.Run.State == agent.StateAwaitingApproval && m.Run.Call != nil && m.Run.Call.Candidate != nil:
		a.pending()
	case m.Run.Call != nil || m.Was.Call != nil:
		a.call()
	case m.Entry.Row == agent.RowStarted:
		a.start()
	}
	if m.Run.State.Final() {
		a.end()
	}
	a.spent()
	return wrapped(a.b.String(), width)
}

func (a *account) line(format string, args ...any) {
	fmt.Fprintf(&a.b, format+"\n", args...)
}

func (a *account) fact(name, format string, args ...any) {
	a.line("  %-9s %s", name, terminal.Line(fmt.Sprintf(format, args...)))
}

// step is what happened, and by whom.
func (a *account) step() {
	e := a.at.Entry
	a.line("── Step %d: %s ──", a.at.Step, e.Row)
	for _, t := range agent.Table() {
		if t.Row == e.Row && contains(t.From, a.at.Was.State) {
			a.line("%s", t.Says)
			break
		}
	}
	by := string(e.Origin)
	if e.Actor != "" {
		by += " " + e.Actor
	}
	a.fact("entry", "%d, %s, by %s", e.Seq, e.Time.Local().Format(time.RFC3339), by)
	if what := a.config.Detail(e); what != "" {
		a.fact("says", "%s", what)
	}
	if e.Carried != 0 {
		a.fact("carried", "from entry %d of run %s", e.Carried, a.at.Run.Spec.Fork.Run)
	}
	if o := a.at.Run.Open; o != nil && a.at.Run.State.Open() {
		held := ""
		if !o.Released {
			held = ", withheld"
		}
		a.fact("next", "%s%s", o.Kind, held)
	}
	if a.at.Run.Held {
		a.fact("paused", "what has not started is withheld")
	}
}

func contains(states []agent.State, s agent.State) bool {
	for _, o := range states {
		if o == s {
			return true
		}
	}
	return false
}

// pending is the candidate in full, as the commands show it.
func (a *account) pending() {
	p, err := a.config.Candidate(a.ctx, a.at.Run)
	if err == nil {
		err = p.Write(&a.b, a.width)
	}
	if err != nil {
		a.line("The candidate cannot be shown: %s", terminal.Message(err.Error()))
		return
	}
	a.line("Decide with :approve, :reject or :edit where the run is parked.")
}

// call is the call in hand, or the one that the step ended.
func (a *account) call() {
	c := a.at.Run.Call
	if c == nil {
		c = a.at.Was.Call
	}
	tool, _ := a.at.Run.Spec.Tool(c.Proposal.Tool)
	name := c.Proposal.Tool
	if name == "" {
		name = "a tool that the run does not have"
	}
	a.line("── The call of %s ──", terminal.Line(name))
	if tool.Name != "" {
		a.fact("risk", "%s, on server %s", tool.Risk, tool.Server)
	}
	a.fact("id", "%s, number %d of its turn", c.ID, c.Index+1)
	a.arguments(c)
	a.decided(c)
	a.outcome(c)
}

// arguments are those that count: the canonical ones once there are some, and else the
// model's text.
func (a *account) arguments(c *agent.Call) {
	if !c.Arguments.IsZero() {
		whose := "as they are sent"
		if c.Edited {
			whose = "as a person changed them"
		}
		a.body(fmt.Sprintf("── The arguments, %s (untrusted): ──", whose), c.Arguments, 0)
		return
	}
	raw, err := a.config.Session().Body(a.ctx, c.Proposal.Body)
	var p agent.ProposalBody
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		a.gone(err)
		return
	}
	a.line("── As the model sent it (untrusted): ──")
	a.untrusted(p.Name + " " + p.Arguments)
}

// decided is what persons have said about the call so far.
func (a *account) decided(c *agent.Call) {
	for _, d := range a.config.Session().Decisions(a.at.Step) {
		if d.Call == c.ID {
			a.fact("decided", "step %d: %s by %s", d.Step, d.Row, d.By)
		}
	}
	for _, g := range c.Grants {
		a.fact("grant", "signed by %s, until %s", g.Approver, time.Unix(g.Expires, 0).Local().Format(time.RFC3339))
	}
}

func (a *account) outcome(c *agent.Call) {
	if c.Outcome == nil {
		if c.Sent {
			a.fact("outcome", "none yet: the intent is journaled, the request may have left")
		}
		return
	}
	o := c.Outcome
	a.line("── The outcome ──")
	a.fact("status", "%s", strings.TrimSpace(fmt.Sprintf("%s, class %s %s", o.Status, o.Class, o.Reason)))
	for _, how := range []struct {
		is   bool
		says string
	}{
		{c.Settled, "settled: found by evidence, or said by a person"},
		{c.Substituted, "given by an operator: nothing was sent"},
		{c.Carried != 0, fmt.Sprintf("carried over from entry %d of the parent", c.Carried)},
	} {
		if how.is {
			a.fact("how", "%s", how.says)
		}
	}
	if !o.Body.IsZero() {
		a.body("── What came back (untrusted): ──", o.Body, MaxBody)
	}
}

// start is the task, and what the run is bound to.
func (a *account) start() {
	s := a.at.Run.Spec
	a.fact("model", "%s", s.Model)
	for _, t := range s.Tools {
		who := ""
		if t.Approvers > 0 {
			who = fmt.Sprintf(", needs %d to sign", t.Approvers)
		}
		a.fact("tool", "%s, %s%s", t.Name, t.Risk, who)
	}
	for _, p := range s.Approvers {
		a.fact("approver", "%s", p.Key)
	}
	a.body("── The task: ──", s.Task, 0)
}

// end is how the run ended.
func (a *account) end() {
	a.line("── The run is %s ──", a.at.Run.State)
	if a.at.Run.Reason != "" {
		a.fact("reason", "%s", a.at.Run.Reason)
	}
	if !a.at.Run.Answer.IsZero() {
		a.answer()
	}
}

// answer is the model's last message.
func (a *account) answer() {
	text, err := a.config.Answer(a.ctx, a.at.Run)
	if err != nil {
		a.gone(err)
		return
	}
	a.line("── The answer, in the model's words (untrusted): ──")
	a.untrusted(text)
}

// spent is what the budgets have left.
func (a *account) spent() {
	u, b := a.at.Run.Used, a.at.Run.Budget
	a.line("── Used of the budget ──")
	a.fact("calls", "%d of %d", u.Calls, b.Calls)
	a.fact("turns", "%d of %d", u.Turns, b.Turns)
	a.fact("tokens", "%d of %d", u.Tokens, b.Tokens)
	a.fact("work", "%s of %s", u.Wall.Round(time.Millisecond), time.Duration(b.Wall)*time.Second)
}

// body shows content, at most so many bytes of it; 0 is all.
func (a *account) body(heading string, ref agent.BodyRef, most int) {
	data, err := a.config.Session().Body(a.ctx, ref)
	if err != nil {
		a.gone(err)
		return
	}
	a.line("%s", heading)
	rest := 0
	if most > 0 && len(data) > most {
		n := whole(string(data), most)
		data, rest = data[:n], len(data)-n
	}
	a.untrusted(string(data))
	if rest > 0 {
		a.line("%d bytes more; all of it with :body %s", rest, ref.SHA256)
	}
}

// whole is where a text can be cut, at most so far: between two characters.
func whole(text string, most int) int {
	for n := most; n > most-utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return most
}

func (a *account) untrusted(text string) {
	_ = terminal.Untrusted(&a.b, text, a.width) // a buffer takes it
}

// gone says that content is not there.
func (a *account) gone(err error) {
	if errors.Is(err, agent.ErrNoBody) {
		a.line("(the content was erased)")
		return
	}
	a.line("The content cannot be shown: %s", terminal.Message(err.Error()))
}
