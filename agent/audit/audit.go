package audit

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"sallyport/agent"
)

// Check re-checks a run: the chain, the states, every signature, every Send, the
// results, the budgets, and every body that an entry names. The entries are all of
// the run's, in order, as an engine's Journal yields them; only their stored bytes are
// believed. bodies returns content, [agent.ErrNoBody], or [ErrNotIncluded]; nil leaves
// out all of them.
//
// The error is the first [*Break] by sequence; the report lists the others. A journal
// of a newer version is [agent.ErrNewer]. Any other error means that the journal could
// not be read, and says nothing about it.
func Check(entries iter.Seq2[agent.Entry, error], bodies func(agent.BodyRef) ([]byte, error)) (Report, error) {
	return check(newChecker(), entries, bodies)
}

func check(c *checker, entries iter.Seq2[agent.Entry, error], bodies func(agent.BodyRef) ([]byte, error)) (Report, error) {
	if bodies == nil {
		bodies = WithoutBodies
	}
	for e, err := range entries {
		if err == nil {
			err = c.entry(e.Bytes())
		} else {
			err = c.unreadable(err)
		}
		if err != nil {
			return c.report, err
		}
		if c.stopped {
			break
		}
	}
	if c.parent != nil && !c.lost && !c.stopped {
		if err := c.inherit(); err != nil {
			return c.report, err
		}
	}
	for _, ref := range c.content.order {
		data, err := bodies(ref)
		if err := c.body(ref, data, err); err != nil {
			return c.report, err
		}
	}
	return c.result()
}

// checker is one audit under way.
type checker struct {
	report  Report
	run     agent.Run // as Step has it
	apply   func(agent.Run, agent.Entry) (agent.Run, error)
	witness witness // as the entries have it
	content content
	// lost: the chain is broken, so that nothing behind it has a place. stopped: an
	// entry could not even be read.
	lost    bool
	stopped bool
	stepped bool // Step has refused: it goes no further
	// parent is the journal of the run that this one is a fork of; nil where it is not
	// at hand.
	parent  iter.Seq2[agent.Entry, error]
	altered *agent.Entry
	// trusts says whether the auditor trusts a pinned key; nil trusts all.
	trusts func(key string) bool
}

func newChecker() *checker {
	c := &checker{apply: agent.Apply, content: newContent()}
	c.witness = witness{
		broken: c.broken, find: c.find, counts: &c.report.Counts, signed: &c.report.Signed,
		spent: map[string]int64{}, grants: map[string]int64{},
	}
	return c
}

func (c *checker) broken(seq int64, what What, format string, args ...any) {
	if len(c.report.Breaks) < maxBreaks {
		c.report.Breaks = append(c.report.Breaks, Break{c.report.Run, seq, what, fmt.Sprintf(format, args...)})
	}
}

func (c *checker) find(seq int64, open Open, format string, args ...any) {
	c.report.Findings = append(c.report.Findings, Finding{seq, open, fmt.Sprintf(format, args...)})
}

// unreadable takes an error in place of the next entry.
func (c *checker) unreadable(err error) error {
	if errors.Is(err, agent.ErrNewer) || !errors.Is(err, agent.ErrIntegrity) {
		return err
	}
	c.stopped = true
	if !c.lost {
		c.broken(c.report.Entries+1, BreakEntry, "%s", c.own(err, c.report.Entries+1))
	}
	return nil
}

// own is what an error says beside what a break says anyway.
func (c *checker) own(err error, seq int64) string {
	text := strings.TrimPrefix(err.Error(), agent.ErrIntegrity.Error()+": ")
	return strings.TrimPrefix(text, fmt.Sprintf("run %s, entry %d: ", c.report.Run, seq))
}

// entry takes the stored bytes of the next entry.
func (c *checker) entry(raw []byte) error {
	e, err := agent.ParseEntry(raw)
	if err != nil {
		return c.unreadable(err)
	}
	if c.report.Run == "" {
		c.report.Run = e.Run
	}
	if c.lost {
		c.blame(e)
		return nil
	}
	if !c.follows(e) {
		c.lost = true
		return nil
	}
	if e.Time.Before(c.report.Updated) {
		c.broken(e.Seq, BreakTime, "it is earlier than the entry before it")
	}
	c.passed(e)
	payload, err := e.Payload()
	if e.Kind == agent.EntryEvent && err != nil {
		c.broken(e.Seq, BreakEntry, "%s", c.own(err, e.Seq))
		return nil
	}
	c.content.take(&e, payload)
	c.trust(&e, payload)
	c.witness.take(&e, payload)
	return c.step(e)
}

// trust checks that the auditor trusts the keys that the run pinned.
func (c *checker) trust(e *agent.Entry, payload any) {
	spec, ok := payload.(agent.Spec)
	if !ok || c.trusts == nil || e.Kind != agent.EntryEvent {
		return
	}
	for _, a := range spec.Approvers {
		if !c.trusts(a.Key) {
			c.broken(e.Seq, BreakTrust, "the run pinned the approver key %q, which is not among the trusted ones", a.Key)
		}
	}
}

// follows checks that the entry is the next of the chain.
func (c *checker) follows(e agent.Entry) bool {
	want := c.report.Entries + 1
	switch {
	case want > 1 && e.Run != c.report.Run:
		c.broken(want, BreakChain, "an entry of run %q stands in its place", e.Run)
	case e.Seq != want:
		c.broken(want, BreakChain, "it is missing: entry %d stands in its place", e.Seq)
	case e.Prev != c.report.Head:
		c.broken(want, BreakChain, "it does not name entry %d as it is: one of the two was altered", want-1)
		c.altered = &e
	default:
		return true
	}
	return false
}

// blame looks at the entry behind a broken link: if it names the later of the two as
// that is, then the earlier one was altered.
func (c *checker) blame(e agent.Entry) {
	was := c.altered
	c.altered = nil
	if was == nil || e.Seq != was.Seq+1 || e.Prev != was.Hash() || was.Seq == 1 {
		return
	}
	i := slices.IndexFunc(c.report.Breaks, func(b Break) bool { return b.Seq == was.Seq && b.What == BreakChain })
	if i >= 0 {
		b := &c.report.Breaks[i]
		b.Seq, b.Detail = was.Seq-1, fmt.Sprintf("it is not the entry that entry %d names", was.Seq)
	}
}

func (c *checker) passed(e agent.Entry) {
	r := &c.report
	if e.Seq == 1 {
		r.Started = e.Time
	}
	r.Entries, r.Head, r.Updated = e.Seq, e.Hash(), e.Time
}

// step lets Step come to the entry again, until it once does not.
func (c *checker) step(e agent.Entry) error {
	if c.stepped || c.apply == nil {
		return nil
	}
	run, err := c.apply(c.run, e)
	if errors.Is(err, agent.ErrNewer) {
		return err
	}
	if err != nil {
		c.stepped = true
		c.broken(e.Seq, BreakStep, "%s", c.own(err, e.Seq))
		return nil
	}
	c.run = run
	return nil
}

// result closes the books.
func (c *checker) result() (Report, error) {
	r := &c.report
	if r.Entries == 0 && len(r.Breaks) == 0 {
		c.broken(1, BreakChain, "it is missing: the journal is empty")
	}
	r.State = c.witness.state
	if len(r.Breaks) == 0 {
		c.witness.end(r.Entries)
		c.compare()
	}
	slices.SortStableFunc(r.Breaks, func(a, b Break) int { return cmp.Compare(a.Seq, b.Seq) })
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.Seq, b.Seq) })
	if len(r.Breaks) > 0 {
		first := r.Breaks[0]
		return *r, &first
	}
	return *r, nil
}

// compare holds the witness's books against Step's.
func (c *checker) compare() {
	if c.apply == nil {
		return
	}
	n := c.report.Counts
	mine := agent.Used{Calls: n.Sends + c.witness.carried.counted, Turns: n.Turns, Tokens: n.Tokens, Wall: n.Wall, Cost: n.Cost}
	switch last := c.report.Entries; {
	case mine != c.run.Used:
		c.broken(last, BreakBudget, "Step has counted %+v, the entries say %+v", c.run.Used, mine)
	case c.witness.budget != c.run.Budget:
		c.broken(last, BreakBudget, "Step allows %+v, the entries allow %+v", c.run.Budget, c.witness.budget)
	case c.witness.state != c.run.State:
		c.broken(last, BreakStep, "Step is in %s, the entries in %s", c.run.State, c.witness.state)
	}
}
