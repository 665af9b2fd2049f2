package debug

import (
	"context"

	"sallyport/agent"
)

// Reason says why a movement stopped.
type Reason string

// The reasons.
const (
	Stepped     Reason = "stepped"   // it went as far as it was asked to
	Reached     Reason = "reached"   // what it was to look for is here
	Hit         Reason = "hit"       // a breakpoint
	AtEnd       Reason = "end"       // of what is recorded
	AtBeginning Reason = "beginning" // of the run
)

// Stop is how a movement ended.
type Stop struct {
	Reason      Reason
	Breakpoints []*Breakpoint // that stop here
	Changed     []Field       // of watched paths, what it was and is
	Position
}

// Step goes one step forward.
func (s *Session) Step(ctx context.Context) (Stop, error) { return s.one(ctx, 1) }

// Back goes one step back. Nothing is undone: it only looks.
func (s *Session) Back(ctx context.Context) (Stop, error) { return s.one(ctx, -1) }

// Next goes forward to the end of the tool call in hand, or else of the next one.
func (s *Session) Next(ctx context.Context) (Stop, error) { return s.seek(ctx, 1, endsCall) }

// ReverseNext goes back to where the call before ended.
func (s *Session) ReverseNext(ctx context.Context) (Stop, error) { return s.seek(ctx, -1, endsCall) }

// Continue goes forward to a breakpoint, or to the end.
func (s *Session) Continue(ctx context.Context) (Stop, error) { return s.seek(ctx, 1, nowhere) }

// Rewind goes back to a breakpoint, or to the beginning.
func (s *Session) Rewind(ctx context.Context) (Stop, error) { return s.seek(ctx, -1, nowhere) }

// Until goes forward to where a state is entered, or to a breakpoint.
func (s *Session) Until(ctx context.Context, state agent.State) (Stop, error) {
	return s.seek(ctx, 1, func(m Moment) bool { return m.Run.State == state && m.Was.State != state })
}

// Goto goes to a step, past any breakpoint; to the nearest there is.
func (s *Session) Goto(ctx context.Context, step int) (Stop, error) {
	if step > len(s.marks) {
		if _, err := s.Refresh(ctx); err != nil {
			return s.stop(Stepped), err
		}
	}
	reason, to := Stepped, step
	switch {
	case step < 1:
		reason, to = AtBeginning, 1
	case step > len(s.marks):
		reason, to = AtEnd, len(s.marks)
	}
	err := s.move(ctx, to)
	return s.stop(reason), err
}

// Restart goes to the first step.
func (s *Session) Restart(ctx context.Context) (Stop, error) { return s.Goto(ctx, 1) }

func nowhere(Moment) bool { return false }

// endsCall reports whether a call is over with a step.
func endsCall(m Moment) bool {
	return m.Was.Call != nil && (m.Run.Call == nil || m.Run.Call.ID != m.Was.Call.ID || m.Run.State.Final())
}

// one goes one step; breakpoints are told of, not looked for.
func (s *Session) one(ctx context.Context, by int) (Stop, error) {
	there, err := s.to(ctx, by)
	if err != nil || there != "" {
		return s.stop(there), err
	}
	return s.judged(Stepped)
}

// seek goes on until a step is the one, or a breakpoint stops it.
func (s *Session) seek(ctx context.Context, by int, is func(Moment) bool) (Stop, error) {
	for {
		there, err := s.to(ctx, by)
		if err != nil || there != "" {
			return s.stop(there), err
		}
		if is(s.here) {
			return s.judged(Reached)
		}
		stop, err := s.judged("")
		if err != nil || len(stop.Breakpoints) > 0 {
			stop.Reason = Hit
			return stop, err
		}
	}
}

// to moves the cursor by a step, or says at which end it is.
func (s *Session) to(ctx context.Context, by int) (Reason, error) {
	if err := ctx.Err(); err != nil {
		return Stepped, err
	}
	step := s.here.Step + by
	switch {
	case step < 1:
		return AtBeginning, nil
	case step > len(s.marks) && s.last.State.Final():
		return AtEnd, nil
	case step > len(s.marks):
		if added, err := s.Refresh(ctx); err != nil || added == 0 {
			return AtEnd, err
		}
	}
	return "", s.move(ctx, step)
}

func (s *Session) stop(reason Reason) Stop { return Stop{Reason: reason, Position: s.Position()} }

// judged is a stop with the breakpoints that the cursor stands on.
func (s *Session) judged(reason Reason) (Stop, error) {
	stop := s.stop(reason)
	for _, b := range s.breakpoints {
		on, err := b.on(s.here)
		if err != nil {
			return stop, err
		}
		if !on {
			continue
		}
		b.Hits++
		stop.Breakpoints = append(stop.Breakpoints, b)
		if b.On == OnChange {
			stop.Changed = append(stop.Changed, b.change(s.here))
		}
	}
	for _, b := range stop.Breakpoints {
		if b.Once {
			_ = s.Clear(b.ID) // it was there just now
		}
	}
	return stop, nil
}
