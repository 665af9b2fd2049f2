package nodes

import (
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"sallyport/agent"
)

// ErrContextFull: what cannot leave the context exceeds the window by itself.
var ErrContextFull = errors.New("the context is full")

// MinLeaves is the size of a tool message, in bytes, up to which its data is never taken
// out of the context: its reference would save next to nothing.
const MinLeaves = 1_000

// fold is a context while the journal is read, entry by entry. The size of a message is
// that of its canonical JSON, which the journal's references tell without a body.
//
// The rule. Each time that the model is about to be asked, and only then, the sizes are
// added up. If the sum is above the high-water mark, the window, then the oldest
// observations that the model has had a turn to see lose their data, one after another,
// until the sum is at or below the low-water mark, half the window. What is left of
// them are status and message, source, reference, size and the tool's own remark. If
// the sum is then still above the high-water mark, so do those that it has not seen
// yet, the largest first, until the sum is at or below the high-water mark. The head,
// what the model said itself and what the Host told it stay.
//
// What has lost its data never gets it back, so that from one request to the next the
// context only grows at its end, but for the few at which something was taken out; a
// provider's cache of the prefix holds in between.
type fold struct {
	high  int64
	body  func(agent.BodyRef) ([]byte, error)
	opens bool // the run offers the tool that opens data again

	items  []item
	sum    int64 // bytes of all items as they are
	seen   int   // items before this one were there when the model took its last turn
	oldest int   // no item before this one can lose its data
	full   bool  // the last request did not fit
}

// item is one message of the context.
type item struct {
	ref  agent.BodyRef // of the stored message
	role Role
	size int64
	data bool     // an observation that has its data
	held *Message // the message itself, if it is not the stored one
}

// low is the low-water mark.
func (f *fold) low() int64 { return f.high / 2 }

// keep adds a message that is no stored one.
func (f *fold) keep(m Message) error {
	size, err := m.size()
	if err != nil {
		return err
	}
	f.add(item{role: m.Role, size: size, held: &m})
	return nil
}

func (f *fold) add(i item) {
	f.items = append(f.items, i)
	f.sum += i.size
}

// take folds an entry in.
func (f *fold) take(e agent.Entry) error {
	if e.Kind != agent.EntryEvent {
		return nil
	}
	if err := f.hear(e); err != nil {
		return err
	}
	if slices.ContainsFunc(e.Effects, func(e agent.Effect) bool { return e.Kind == agent.Ask }) {
		return f.settle()
	}
	return nil
}

// hear adds the message of an entry, if it has one.
func (f *fold) hear(e agent.Entry) error {
	s, err := spokenBy(e)
	if err != nil || s.message.IsZero() {
		return err
	}
	switch e.Event {
	case agent.KindStart:
		return f.begin(e, s.message)
	case agent.KindTurned, agent.KindTurnRefused:
		f.seen = len(f.items)
	}
	f.add(item{ref: s.message, role: s.role, size: s.message.Bytes, data: !s.evidence.IsZero() && s.message.Bytes > MinLeaves})
	return nil
}

// begin adds the task.
func (f *fold) begin(e agent.Entry, task agent.BodyRef) error {
	p, err := e.Payload()
	if err != nil {
		return err
	}
	if spec, ok := p.(agent.Spec); ok {
		f.opens = opensBodies(&spec)
	}
	data, err := f.read(task)
	if err != nil {
		return err
	}
	if !utf8.Valid(data) {
		return fmt.Errorf("the task is not UTF-8")
	}
	return f.keep(Message{Role: RoleUser, Content: string(data)})
}

func (f *fold) read(ref agent.BodyRef) ([]byte, error) {
	data, err := f.body(ref)
	if err != nil {
		return nil, fmt.Errorf("read body %s: %w", ref, err)
	}
	return data, nil
}

// settle makes the context fit before the model is asked.
func (f *fold) settle() error {
	if f.sum > f.high {
		if err := f.shrinkSeen(); err != nil {
			return err
		}
		if err := f.shrinkUnseen(); err != nil {
			return err
		}
	}
	f.full = f.sum > f.high
	return nil
}

func (f *fold) shrinkSeen() error {
	for ; f.sum > f.low() && f.oldest < f.seen; f.oldest++ {
		if err := f.shrink(&f.items[f.oldest]); err != nil {
			return err
		}
	}
	return nil
}

func (f *fold) shrinkUnseen() error {
	var unseen []*item
	for i := f.seen; i < len(f.items); i++ {
		unseen = append(unseen, &f.items[i])
	}
	slices.SortStableFunc(unseen, func(a, b *item) int { return int(b.size - a.size) })
	for _, i := range unseen {
		if f.sum <= f.high {
			return nil
		}
		if err := f.shrink(i); err != nil {
			return err
		}
	}
	return nil
}

// shrink takes an observation's data out, if it has any and that saves something.
func (f *fold) shrink(i *item) error {
	if !i.data {
		return nil
	}
	i.data = false
	m, err := f.stored(i)
	if err != nil {
		return err
	}
	o, err := ParseObservation(m.Content)
	if err != nil {
		return err
	}
	if o.Untrusted == nil || o.Untrusted.Data == nil {
		return nil
	}
	left, err := toolMessage(m.ToolCallID, o.withoutData(f.opens))
	if err != nil || left.Ref.Bytes >= i.size {
		return err
	}
	if m, err = parseMessage(left.Data, RoleTool); err != nil {
		return err
	}
	f.sum += left.Ref.Bytes - i.size
	i.size, i.held = left.Ref.Bytes, &m
	return nil
}

func (f *fold) stored(i *item) (Message, error) {
	data, err := f.read(i.ref)
	if err != nil {
		return Message{}, err
	}
	return parseMessage(data, i.role)
}

// messages are the context as it is now.
func (f *fold) messages() ([]Message, error) {
	if f.full {
		return nil, fmt.Errorf("%w: %d bytes with all data taken out, %d fit", ErrContextFull, f.sum, f.high)
	}
	out := make([]Message, 0, len(f.items))
	for i := range f.items {
		if it := &f.items[i]; it.held != nil {
			out = append(out, *it.held)
			continue
		}
		m, err := f.stored(&f.items[i])
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}
