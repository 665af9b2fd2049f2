package prove

import (
	"slices"
	"strings"

	"sallyport/agent"
)

// key is what tells states apart: two runs with one key take the same events, up to
// names. Digests are renamed to what they stand for, counters are capped where only
// "any left" is asked, times become before and after.
func (w *walk) key(r *agent.Run, b *books) string {
	k := make(spelling, 0, 128)
	k.word(string(r.State))
	k.truth(b.cancelled, r.Operator != w.operators[0])
	if r.State.Final() {
		return string(k)
	}
	k.truth(r.Held, r.Cancelling)
	if r.Open == nil {
		k.word("-")
	} else {
		k.word(string(r.Open.Kind))
		k.truth(r.Open.Released)
	}
	w.spellCall(&k, r)
	w.spellTurn(&k, r)
	w.spellBudget(&k, r)
	w.spellTime(&k, r)
	w.spellBooks(&k, r, b)
	return string(k)
}

// situation is what Step can look at when it judges a signature: the key without the
// calls to come, what was refused before, and the budget. What is forged is offered once
// in each, since verifying is what takes time; what is genuine is offered in every state.
func (w *walk) situation(r *agent.Run) string {
	k := make(spelling, 0, 64)
	k.word(string(r.State))
	k.truth(r.Held, r.Cancelling, r.Operator != w.operators[0])
	if r.Open != nil {
		k.word(string(r.Open.Kind))
		k.truth(r.Open.Released)
	}
	w.spellCall(&k, r)
	w.spellTime(&k, r)
	return string(k)
}

// spelling is a key as it grows.
type spelling []byte

func (k *spelling) word(s string) { *k = append(append(*k, s...), '|') }

func (k *spelling) number(n int) { *k = append(*k, byte('0'+n), '|') }

func (k *spelling) truth(all ...bool) {
	for _, b := range all {
		if b {
			*k = append(*k, '1')
		} else {
			*k = append(*k, '0')
		}
	}
	*k = append(*k, '|')
}

func bytesOf(r agent.BodyRef) string {
	switch r {
	case agent.BodyRef{}:
		return "-"
	case argsModel:
		return "m"
	case argsEdited:
		return "e"
	}
	return "o"
}

// done reports whether no Send of the call in hand can come any more: it was sent, or
// has an outcome other than that somebody must be asked.
func done(r *agent.Run) bool {
	c := r.Call
	return c == nil || c.Sent || r.State == agent.StateObserve && c.Outcome != nil && c.Outcome.Status != agent.StatusWaitingApproval
}

// spellCall spells the call in hand as far as it matters still: once it is done, what it
// was to be sent with and who signed are history.
func (w *walk) spellCall(k *spelling, r *agent.Run) {
	c := r.Call
	if c == nil {
		k.word("no call")
		return
	}
	k.word(c.Proposal.Tool)
	if o := c.Outcome; o != nil {
		k.word(string(o.Status))
		k.truth(o.Class == agent.ClassBudget, o.Sent)
	}
	k.truth(c.Sent, c.Settled)
	if done(r) {
		return
	}
	k.word(bytesOf(c.Arguments))
	k.truth(c.Edited, c.Candidate != nil)
	if c.Candidate != nil {
		k.word(bytesOf(agent.BodyRef{SHA256: c.Candidate.Arguments, Bytes: c.Candidate.Bytes}))
	}
	w.spellGrants(k, r)
	k.truth(r.Deadline.IsZero(), r.Time.Before(r.Deadline))
}

func (w *walk) spellGrants(k *spelling, r *agent.Run) {
	var grants []string
	for _, g := range r.Call.Grants {
		word := "?"
		if at := slices.IndexFunc(w.signers, func(s signer) bool { return s.id == g.Key }); at >= 0 {
			word = string(rune('a' + w.signers[at].class))
			if w.signers[at].name == r.Operator {
				word += "!"
			}
		}
		if r.Time.Unix() >= g.Expires {
			word += "x"
		}
		grants = append(grants, word)
	}
	slices.Sort(grants)
	k.word(strings.Join(grants, ","))
}

// spellTurn spells the calls not begun, and which calls a person has refused: they are
// not asked about again.
func (w *walk) spellTurn(k *spelling, r *agent.Run) {
	if t := r.Turn; t != nil {
		for _, c := range t.Calls[min(t.Next, len(t.Calls)):] {
			k.word(c.Tool)
		}
	}
	for _, t := range w.tools {
		k.truth(slices.ContainsFunc(r.TurnedDown, func(d agent.TurnedDown) bool {
			return d.Refused && d.Tool == t.Name && d.Arguments == argsModel.SHA256
		}))
	}
}

// capped is how much is left, no more than most.
func capped(left, most int) int { return max(0, min(left, most)) }

func (w *walk) spellBudget(k *spelling, r *agent.Run) {
	if !w.tight {
		k.number(capped(r.Budget.Calls-r.Used.Calls, fewCalls))
		return
	}
	k.number(capped(r.Budget.Turns-r.Used.Turns, 1))
	k.number(min(r.Unreached, agent.MaxUnreached))
	k.truth(r.Used.Tokens > r.Budget.Tokens, r.Used.Wall > seconds(r.Budget.Wall))
}

func (w *walk) spellTime(k *spelling, r *agent.Run) {
	if w.dated {
		k.truth(r.Time.Before(w.until))
	}
}
