package agent

import (
	"fmt"
	"iter"
	"slices"
)

// Replay steps through a journal from its first entry and returns the run after the
// last. It checks the chain, every sequence, and that Step comes to the same row,
// state and effects again; signatures are verified on the way. A break is
// [ErrIntegrity] and names the entry; a run under newer rules is [ErrNewer].
func Replay(entries iter.Seq2[Entry, error]) (Run, error) {
	var run Run
	for e, err := range entries {
		if err != nil {
			return run, err
		}
		if run, err = Apply(run, e); err != nil {
			return run, err
		}
	}
	return run, nil
}

// Apply replays one entry on the run that the entries before it gave.
func Apply(run Run, e Entry) (Run, error) {
	broken := func(format string, args ...any) error {
		return fmt.Errorf("%w: run %s, entry %d: %s", ErrIntegrity, e.Run, e.Seq, fmt.Sprintf(format, args...))
	}
	if run.Seq == 0 {
		run.Version = e.Version
	}
	switch {
	case e.Version != run.Version:
		return run, broken("format %d in a run of format %d", e.Version, run.Version)
	case e.Seq != run.Seq+1:
		return run, broken("it follows entry %d", run.Seq)
	case e.Prev != run.Head:
		return run, broken("it does not name the entry before it")
	case run.Seq > 0 && e.Run != run.ID:
		return run, broken("it belongs to another run")
	case e.Time.Before(run.Time):
		return run, broken("it is earlier than the entry before it")
	}
	if e.Kind != EntryEvent && (e.Row != "" || e.State != "" || e.Effects != nil || e.Carried != 0) {
		return run, broken("kind %s moves no run", e.Kind)
	}
	switch e.Kind {
	case EntryEvent:
		return applyEvent(run, e, broken)
	case EntryAttempt:
		if !run.repeatable() || run.Open.Seq != e.Effect {
			return run, broken("an attempt at an effect that is not open, or must not be repeated")
		}
	case EntryNoted:
		if run.Noted++; run.Noted > MaxNoted {
			return run, broken("more than %d notes", MaxNoted)
		}
	case EntryErased:
	default:
		return run, broken("unknown kind %q", e.Kind)
	}
	return passed(run, e), nil
}

// passed moves a run past an entry that does not step. Working time runs on over a
// note; an attempt starts the clock anew.
func passed(run Run, e Entry) Run {
	if e.Kind != EntryAttempt && run.State.working() && !run.Held {
		run.Used.Wall += e.Time.Sub(run.Time)
	}
	run.Seq, run.Time, run.Head = e.Seq, e.Time, e.hash
	return run
}

func applyEvent(run Run, e Entry, broken func(string, ...any) error) (Run, error) {
	ev, err := e.said()
	if err != nil {
		return run, err
	}
	if spec, ok := ev.body.(Spec); ok && spec.Rules > Rules {
		return run, fmt.Errorf("run %s: rules %d: %w", e.Run, spec.Rules, ErrNewer)
	}
	next, row, err := step(run, ev)
	if err != nil {
		return run, broken("%v", err)
	}
	var effects []Effect
	if next.Open != nil && next.Open.Seq == next.Seq {
		next.Open.Head = e.hash
		effects = []Effect{next.Open.Effect}
	}
	switch {
	case next.ID != e.Run:
		return run, broken("it belongs to another run")
	case row != e.Row || next.State != e.State:
		return run, broken("recorded as %s to %s, is %s to %s", e.Row, e.State, row, next.State)
	case next.by != e.Actor:
		return run, broken("recorded as the word of %q, is that of %q", e.Actor, next.by)
	case !slices.EqualFunc(effects, e.Effects, Effect.equal):
		return run, broken("it records other effects than it opens")
	}
	next.by = ""
	next.Head = e.hash
	return next, nil
}
