package debug

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sort"

	"sallyport/agent"
)

// Source is what a session reads of an engine: every [agent.Engine] is one. It is asked by
// several goroutines at once.
type Source interface {
	Journal(ctx context.Context, run string, from int64, follow bool) iter.Seq2[agent.Entry, error]
	Body(ctx context.Context, run string, ref agent.BodyRef) ([]byte, error)
}

// ErrEnded says that nothing can follow: the run has ended.
var ErrEnded = errors.New("the run has ended")

// A journal is kept in memory as marks, one for each step, and as the run before each
// page of pageEntries entries. The pages that are looked at are read again, and
// pagesKept of them are held.
const (
	pageEntries = 128
	pagesKept   = 4
)

// Session is a run that is looked at: a cursor on its steps, and breakpoints. A step is
// an entry that moved the run, numbered from 1. It is not for several goroutines at once.
type Session struct {
	source Source
	run    string

	marks     []Mark      // of every step
	before    []agent.Run // before each page
	last      agent.Run   // after the last entry that was read
	calls     []Call
	decisions []Decision
	words     map[string]string // strings that recur, once

	pages []*page // the one used last first
	here  Moment

	breakpoints []*Breakpoint
	numbered    int // breakpoints so far
}

// page is a part of the journal with the run around each of its steps.
type page struct {
	number  int
	first   int // the step of the first moment
	moments []Moment
}

// Open reads a run, checking all of it as [agent.Replay] does. The cursor is on the
// first step of a run that has ended, and else on the last. It is [agent.ErrNoRun] if
// there is none.
func Open(ctx context.Context, source Source, run string) (*Session, error) {
	s := &Session{source: source, run: run, words: map[string]string{}}
	if _, err := s.Refresh(ctx); err != nil {
		return nil, err
	}
	if len(s.marks) == 0 {
		return nil, fmt.Errorf("look at run %s: %w", run, agent.ErrNoRun)
	}
	at := 1
	if s.last.State.Open() {
		at = len(s.marks)
	}
	return s, s.move(ctx, at)
}

// ID is the run's.
func (s *Session) ID() string { return s.run }

// Spec is what the run was begun with.
func (s *Session) Spec() agent.Spec { return s.last.Spec }

// Steps is how many are recorded, as far as was read.
func (s *Session) Steps() int { return len(s.marks) }

// Last is the run after the last entry that was read.
func (s *Session) Last() agent.Run { return s.last }

// Moment is the step under the cursor.
func (s *Session) Moment() Moment { return s.here }

// Position is where the cursor is.
func (s *Session) Position() Position {
	p := s.here.Position
	p.Steps = len(s.marks)
	return p
}

// Mark is what is known of a step without reading; zero if there is no such step.
func (s *Session) Mark(step int) Mark {
	if step < 1 || step > len(s.marks) {
		return Mark{}
	}
	return s.marks[step-1]
}

// StepOf is the step at or before an entry; 0 if there is none.
func (s *Session) StepOf(seq int64) int {
	return sort.Search(len(s.marks), func(i int) bool { return s.marks[i].Seq > seq })
}

// Asked is the last step at or before one that asked the model for a turn; 0 if none did.
func (s *Session) Asked(step int) int {
	for n := min(step, len(s.marks)); n > 0; n-- {
		if s.marks[n-1].Opens == agent.Ask {
			return n
		}
	}
	return 0
}

// Body is content that the run names.
func (s *Session) Body(ctx context.Context, ref agent.BodyRef) ([]byte, error) {
	return s.source.Body(ctx, s.run, ref)
}

// Entries are those from one sequence to another, both included.
func (s *Session) Entries(ctx context.Context, from, to int64) iter.Seq2[agent.Entry, error] {
	return func(yield func(agent.Entry, error) bool) {
		if from > to {
			return
		}
		for e, err := range s.source.Journal(ctx, s.run, from, false) {
			if err == nil && e.Seq > to || !yield(e, err) || err != nil || e.Seq == to {
				return
			}
		}
	}
}

// Context is what build makes of the journal up to and with a step: what the model is
// sent, if the step asks it.
func Context[M any](ctx context.Context, s *Session, step int, build func(iter.Seq2[agent.Entry, error]) ([]M, error)) ([]M, error) {
	return build(s.Entries(ctx, 1, s.Mark(step).Seq))
}

// Refresh reads what was appended since, and says how many steps that is. The cursor
// stays.
func (s *Session) Refresh(ctx context.Context) (added int, err error) {
	was := len(s.marks)
	err = s.readAhead(ctx)
	return len(s.marks) - was, err
}

// Await returns when there is a step that was not read before; it is read then. It is
// [ErrEnded] if none can come.
func (s *Session) Await(ctx context.Context) error {
	if s.last.State.Final() {
		return fmt.Errorf("wait for run %s: %w", s.run, ErrEnded)
	}
	was := len(s.marks)
	for e, err := range s.source.Journal(ctx, s.run, s.last.Seq+1, true) {
		if err == nil {
			err = s.take(e)
		}
		if err != nil {
			return err
		}
		if len(s.marks) > was {
			return nil
		}
	}
	return ctx.Err()
}

// take adds an entry to what is known.
func (s *Session) take(e agent.Entry) error {
	run, err := agent.Apply(s.last, e)
	if err != nil {
		return err
	}
	number := int(e.Seq-1) / pageEntries
	if number == len(s.before) {
		s.before = append(s.before, s.last)
	}
	s.forget(number)
	was := s.last
	s.last = run
	if e.Kind != agent.EntryEvent {
		return nil
	}
	m := Mark{
		Seq: e.Seq, Time: e.Time, Event: agent.Kind(s.word(string(e.Event))), Row: agent.Row(s.word(string(e.Row))),
		State: agent.State(s.word(string(e.State))), Carried: e.Carried != 0,
	}
	if len(e.Effects) > 0 {
		m.Opens = agent.EffectKind(s.word(string(e.Effects[0].Kind)))
	}
	if c := inHand(was, run); c != nil {
		m.Call, m.Tool = c.ID, s.word(c.Proposal.Tool)
	}
	s.marks = append(s.marks, m)
	return s.account(was, run, e)
}

// word is a string of which one copy is kept.
func (s *Session) word(w string) string {
	kept, ok := s.words[w]
	if !ok {
		kept = w
		s.words[w] = w
	}
	return kept
}

// inHand is the call that a step is about: the one after it, or the one that it ended.
func inHand(was, run agent.Run) *agent.Call {
	if run.Call != nil {
		return run.Call
	}
	return was.Call
}

// At is another step, without moving the cursor.
func (s *Session) At(ctx context.Context, step int) (Moment, error) {
	if step < 1 || step > len(s.marks) {
		return Moment{}, fmt.Errorf("run %s has no step %d: they are 1 to %d", s.run, step, len(s.marks))
	}
	number := int(s.marks[step-1].Seq-1) / pageEntries
	p, err := s.page(ctx, number)
	if err != nil {
		return Moment{}, err
	}
	m := p.moments[step-p.first]
	m.Steps = len(s.marks)
	return m, nil
}

// page reads a page, or finds it among those that are held.
func (s *Session) page(ctx context.Context, number int) (*page, error) {
	for i, p := range s.pages {
		if p.number == number {
			copy(s.pages[1:], s.pages[:i])
			s.pages[0] = p
			return p, nil
		}
	}
	from := int64(number*pageEntries) + 1
	to := min(from+pageEntries-1, s.last.Seq)
	p := &page{number: number, first: s.StepOf(from-1) + 1}
	run := s.before[number]
	for e, err := range s.Entries(ctx, from, to) {
		was := run
		if err == nil {
			run, err = agent.Apply(run, e)
		}
		if err != nil {
			return nil, err
		}
		if e.Kind == agent.EntryEvent {
			at := Position{Step: p.first + len(p.moments), Seq: e.Seq, State: run.State}
			p.moments = append(p.moments, Moment{Position: at, Entry: e, Was: was, Run: run})
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if run.Seq != to {
		return nil, fmt.Errorf("look at run %s: entry %d: %w: it is no longer there", s.run, run.Seq+1, agent.ErrIntegrity)
	}
	s.pages = append([]*page{p}, s.pages[:min(len(s.pages), pagesKept-1)]...)
	return p, nil
}

// forget drops a page that has grown.
func (s *Session) forget(number int) {
	for i, p := range s.pages {
		if p.number == number {
			s.pages = append(s.pages[:i:i], s.pages[i+1:]...)
			return
		}
	}
}

// move sets the cursor.
func (s *Session) move(ctx context.Context, step int) error {
	m, err := s.At(ctx, step)
	if err == nil {
		s.here = m
	}
	return err
}
