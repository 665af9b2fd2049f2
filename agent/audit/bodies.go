package audit

import (
	"errors"
	"fmt"

	"sallyport/agent"
)

// ErrNotIncluded: the content was left out on purpose. A body that is left out counts
// as not included; it is no break.
var ErrNotIncluded = errors.New("the body was left out")

// WithoutBodies stands for content that is not to be looked at, or not to be given
// away: it leaves out every body.
func WithoutBodies(agent.BodyRef) ([]byte, error) { return nil, ErrNotIncluded }

// named is a body that entries name.
type named struct{ first, last int64 }

// content is every body that the entries named so far, in the order in which they
// did, and what was erased.
type content struct {
	order  []agent.BodyRef
	named  map[agent.BodyRef]named
	erased map[string]int64 // by hash: the last entry that says so
}

func newContent() content {
	return content{named: map[agent.BodyRef]named{}, erased: map[string]int64{}}
}

// take notes what an entry names. What a refused delivery names was never stored.
func (c *content) take(e *agent.Entry, payload any) {
	if e.Kind == agent.EntryErased {
		c.erased[e.Body.SHA256] = e.Seq
	}
	if e.Kind != agent.EntryEvent {
		return
	}
	for _, ref := range refs(payload) {
		if ref.IsZero() {
			continue
		}
		n, known := c.named[ref]
		if !known {
			n.first = e.Seq
			c.order = append(c.order, ref)
		}
		n.last = e.Seq
		c.named[ref] = n
	}
}

// refs are the bodies that an event names.
func refs(payload any) []agent.BodyRef {
	switch p := payload.(type) {
	case agent.Spec:
		return []agent.BodyRef{p.Task}
	case agent.Turned:
		out := []agent.BodyRef{p.Message}
		for _, call := range p.Calls {
			out = append(out, call.Body)
		}
		return out
	case agent.TurnRefused:
		return []agent.BodyRef{p.Message}
	case agent.Checked:
		return []agent.BodyRef{p.Arguments}
	case agent.Returned:
		return []agent.BodyRef{p.Arguments, p.Body}
	case agent.Observed:
		return []agent.BodyRef{p.Message, p.Evidence, p.ReadBack}
	case agent.Verified:
		return []agent.BodyRef{p.Evidence}
	case agent.Edit:
		return []agent.BodyRef{p.Arguments}
	case agent.Substitute:
		var out []agent.BodyRef
		if p.Turn != nil {
			out = refs(*p.Turn)
		}
		if p.Outcome != nil {
			out = append(out, p.Outcome.Body)
		}
		return out
	}
	return nil // the others name no content
}

// body checks one body against its name. err is what fetching it gave; an error that
// says nothing about the content is returned.
func (c *checker) body(ref agent.BodyRef, data []byte, err error) error {
	n, erasedBy := c.content.named[ref], c.content.erased[ref.SHA256]
	switch {
	case errors.Is(err, ErrNotIncluded):
		c.report.Counts.NotIncluded++
	case errors.Is(err, agent.ErrNoBody) && erasedBy != 0:
		c.report.Counts.Erased++
	case errors.Is(err, agent.ErrNoBody):
		c.broken(n.first, BreakBody, "the body %s is missing", ref)
	case errors.Is(err, agent.ErrIntegrity):
		c.broken(n.first, BreakBody, "the body %s is damaged", ref)
	case err != nil:
		return fmt.Errorf("read body %s: %w", ref, err)
	case agent.NewBody(data).Ref != ref:
		c.broken(n.first, BreakBody, "the body %s is %s", ref, agent.NewBody(data).Ref)
	default:
		c.report.Counts.Bodies++
		if erasedBy > n.last {
			c.find(erasedBy, OpenStored, "the body %s was erased and is still stored", ref)
		}
	}
	return nil
}
