package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"sallyport/agent"
)

// CheckFork is [Check] of a fork with its parent's journal at hand: what the fork takes
// over is then compared with what the parent recorded, entry by entry, and a write of
// the parent that was under way must be among it. The parent's chain is followed up to
// the fork's entry; [Check] it by itself for the rest.
func CheckFork(entries iter.Seq2[agent.Entry, error], bodies func(agent.BodyRef) ([]byte, error), parent iter.Seq2[agent.Entry, error]) (Report, error) {
	c := newChecker()
	c.witness.takes = &took{}
	c.parent = parent
	return check(c, entries, bodies)
}

// took is what a fork has taken over, in its order.
type took struct {
	items []carriedItem
}

// carriedItem is one event that a fork takes over.
type carriedItem struct {
	fork   int64 // the fork's entry
	parent int64 // the parent's
	said   any
}

func (t *took) take(e *agent.Entry, payload any) {
	if t != nil && e.Carried != 0 {
		t.items = append(t.items, carriedItem{e.Seq, e.Carried, payload})
	}
}

// inherit compares what was taken over with the parent's journal.
func (c *checker) inherit() error {
	f := c.witness.spec.Fork
	if f == nil {
		c.broken(1, BreakFork, "the run is no fork")
		return nil
	}
	p := ancestor{}
	for e, err := range c.parent {
		if err == nil {
			err = p.entry(e.Bytes())
		}
		if errors.Is(err, agent.ErrIntegrity) || errors.Is(err, agent.ErrNoRun) {
			c.broken(1, BreakFork, "the parent: %s", c.own(err, 1))
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the journal of run %q: %w", f.Run, err)
		}
		if p.seq == f.Seq {
			break
		}
	}
	if p.run != f.Run || p.seq != f.Seq || p.head != f.Head {
		c.broken(1, BreakFork, "the fork is of entry %d of run %q, %s; the journal given has entry %d of run %q, %s", f.Seq, f.Run, f.Head, p.seq, p.run, p.head)
		return nil
	}
	p.end()
	c.sameAs(p.items)
	return nil
}

// sameAs compares what a fork has taken over with what it had to.
func (c *checker) sameAs(want []carriedItem) {
	got := c.witness.takes.items
	for i, w := range want {
		if i >= len(got) {
			c.broken(c.witness.carried.entries+1, BreakFork, "entry %d of the parent is not taken over", w.parent)
			return
		}
		g := got[i]
		if g.parent != w.parent || !same(g.said, w.said) {
			c.broken(g.fork, BreakFork, "it is not what entry %d of the parent says", w.parent)
			return
		}
	}
	if len(got) > len(want) {
		c.broken(got[len(want)].fork, BreakFork, "the parent has nothing like it")
	}
}

// same compares what a fork took over with what the parent says. A call whose tool the
// fork does not have, or not of that kind, names none there.
func same(fork, parent any) bool {
	a, aok := fork.(agent.Turned)
	b, bok := parent.(agent.Turned)
	if aok && bok && len(a.Calls) == len(b.Calls) {
		b.Calls = append([]agent.Proposal{}, b.Calls...)
		for i := range a.Calls {
			if a.Calls[i].Tool == "" {
				b.Calls[i].Tool = ""
			}
		}
		parent = b
	}
	if got, ok := fork.(agent.Returned); ok {
		parent = attested(got, parent)
	}
	one, err1 := json.Marshal(fork)
	two, err2 := json.Marshal(parent)
	return err1 == nil && err2 == nil && fmt.Sprintf("%T", fork) == fmt.Sprintf("%T", parent) && bytes.Equal(one, two)
}

// attested fills in what a person attested, which the fork says: applied, or not.
func attested(got agent.Returned, parent any) any {
	want, ok := parent.(agent.Returned)
	if ok && want.Settled && want.Status == "" && classes[got.Status] == got.Class && got.Class != "" {
		want.Status, want.Class = got.Status, got.Class
		return want
	}
	return parent
}

// ancestor follows the parent's journal, and says what a fork has to take over of it.
type ancestor struct {
	run   string
	seq   int64
	head  string
	spec  agent.Spec
	items []carriedItem
	call  *past // in hand
}

// past is what the parent's entries say of its call in hand.
type past struct {
	turn                    agent.Turned
	index                   int
	sent, returned, unknown int64          // the entries of intent, outcome, and that outcome observed as unknown
	last                    agent.Returned // what is known of it
	doubt                   agent.Observed
}

func (p *ancestor) entry(raw []byte) error {
	e, err := agent.ParseEntry(raw)
	if err != nil {
		return err
	}
	if e.Seq != p.seq+1 || e.Prev != p.head || p.seq > 0 && e.Run != p.run {
		return fmt.Errorf("%w: entry %d does not follow entry %d", agent.ErrIntegrity, e.Seq, p.seq)
	}
	p.run, p.seq, p.head = e.Run, e.Seq, e.Hash()
	if e.Kind != agent.EntryEvent {
		return nil
	}
	said, err := e.Payload()
	if err != nil {
		return err
	}
	p.hears(&e, said)
	return nil
}

func (p *ancestor) takes(seq int64, said any) {
	p.items = append(p.items, carriedItem{parent: seq, said: said})
}

func (p *ancestor) hears(e *agent.Entry, said any) {
	switch s := said.(type) {
	case agent.Spec:
		p.spec = s
		return
	case agent.TurnRefused:
		p.takes(e.Seq, s)
		return
	case agent.Turned:
		if e.Row != agent.RowAnswered {
			p.takes(e.Seq, s)
			p.call = &past{turn: s}
		}
		return
	}
	if p.call != nil {
		p.call.hears(e, said)
		if o, ok := said.(agent.Observed); ok {
			p.observed(e, o)
		}
	}
}

// hears takes what an event says of the call in hand.
func (c *past) hears(e *agent.Entry, said any) {
	switch s := said.(type) {
	case agent.Checked:
		c.sent, c.last.Arguments = e.Seq, s.Arguments
	case agent.Returned:
		c.returns(e, s)
	case agent.Edit:
		c.last.Edited, c.last.Arguments, c.last.Candidate = true, s.Arguments, nil
	case agent.Verified:
		verdict := map[agent.Finding]agent.Status{agent.Applied: agent.StatusOK, agent.NotApplied: agent.StatusFailed}
		c.settled(e, verdict[s.Finding])
	case agent.Attest:
		c.settled(e, "") // what was attested is signed; the observation behind it tells
	case agent.Refuse, nil:
		c.last.Outcome = agent.Outcome{}
	}
}

func (c *past) returns(e *agent.Entry, r agent.Returned) {
	c.returned = e.Seq
	if e.Carried == 0 {
		r.Edited = c.last.Edited
	} else if r.Counted {
		c.sent = e.Seq
	}
	if r.Arguments.IsZero() {
		r.Arguments = c.last.Arguments
	}
	if r.Candidate == nil {
		r.Candidate = c.last.Candidate
	}
	c.last = r
}

// settled takes the verdict on an unknown outcome.
func (c *past) settled(e *agent.Entry, as agent.Status) {
	if e.Row == agent.RowSettled {
		c.returned, c.unknown = e.Seq, 0
		c.last.Settled, c.last.Status, c.last.Reason = true, as, agent.ReasonSettled
		c.last.Class = classes[as]
	}
}

// classes are those of what evidence, or a person, decides.
var classes = map[agent.Status]agent.Class{agent.StatusOK: agent.ClassOK, agent.StatusFailed: agent.ClassToolError}

// observed takes the last word on a call, and goes on to the next.
func (p *ancestor) observed(e *agent.Entry, o agent.Observed) {
	c := p.call
	switch {
	case e.Row == agent.RowOutcomeUnknown:
		c.unknown, c.doubt = e.Seq, o
		c.last.Status, c.last.Class, c.last.Reason = o.Status, o.Class, o.Reason
		return
	case e.Row == agent.RowApprovalRequired:
		return
	case o.Class != agent.ClassBudget:
		r := c.last
		r.Status, r.Class, r.Reason = o.Status, o.Class, o.Reason
		r.Counted, r.Candidate = c.sent != 0, nil
		p.takes(e.Seq, r)
		p.takes(e.Seq, o)
	}
	p.call = nil
	if e.Row == agent.RowNextCall {
		p.call = &past{turn: c.turn, index: c.index + 1}
	}
}

// end says what of a call under way a fork takes over: what may have had an effect.
func (p *ancestor) end() {
	c := p.call
	if c == nil || c.sent == 0 || c.index >= len(c.turn.Calls) {
		return
	}
	tool, known := p.spec.Tool(c.turn.Calls[c.index].Tool)
	c.last.Counted = true
	switch back := c.returned >= c.sent; {
	case !back && (!known || !tool.Risk.Writes()):
	case !back:
		c.last.Outcome = agent.Outcome{Status: agent.StatusResultUnknown, Class: agent.ClassProtocolError, Reason: agent.ReasonCrashed, Sent: true}
		c.last.Settled, c.last.Substituted = false, false
		p.takes(c.sent, c.last)
	case c.unknown != 0:
		p.takes(c.unknown, c.last)
		p.takes(c.unknown, c.doubt)
	default:
		p.takes(c.returned, c.last)
	}
}
