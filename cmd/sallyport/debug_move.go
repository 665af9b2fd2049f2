package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/cmd/sallyport/terminal"
)

func movingVerbs() []verb {
	return []verb{
		{names: []string{"step", "s"}, args: "[N]", says: "go a step forward, or N; at the end of what is recorded, let the run go on by one effect", moves: true, do: (*shell).step},
		{names: []string{"next", "n"}, says: "go forward to the end of the tool call in hand, or of the next", moves: true,
			do: func(sh *shell, ctx context.Context, _ string) error {
				return sh.onward(ctx, (*debug.Session).Next)
			}},
		{names: []string{"continue", "c"}, says: "go forward to a breakpoint, or to where the run ends or waits", moves: true,
			do: func(sh *shell, ctx context.Context, _ string) error {
				return sh.onward(ctx, (*debug.Session).Continue)
			}},
		{names: []string{"until"}, args: "STATE", says: "go forward to where the state is entered", moves: true, do: (*shell).until,
			complete: func(sh *shell) []string { return sh.session.Known(debug.OnState) }},
		{names: []string{"back", "rs", "reverse-step"}, args: "[N]", says: "go a step back, or N: this only reads", moves: true, do: (*shell).back},
		{names: []string{"rn", "reverse-next"}, says: "go back to where the call before ended", moves: true,
			do: func(sh *shell, ctx context.Context, _ string) error {
				return sh.backward(ctx, (*debug.Session).ReverseNext)
			}},
		{names: []string{"rewind", "rc", "reverse-continue"}, says: "go back to a breakpoint, or to the beginning", moves: true,
			do: func(sh *shell, ctx context.Context, _ string) error {
				return sh.backward(ctx, (*debug.Session).Rewind)
			}},
		{names: []string{"goto", "g"}, args: "STEP|end", says: "go to a step", do: (*shell).goTo},
		{names: []string{"follow"}, says: "go along while another process serves the run, until a breakpoint, its end, or Ctrl-C", do: (*shell).follow},
		{names: []string{"where", "w"}, says: "say where the cursor is", do: func(sh *shell, ctx context.Context, _ string) error { return sh.where(ctx) }},
	}
}

// movement is one of the session's.
type movement func(*debug.Session, context.Context) (debug.Stop, error)

func none(verb, args string) error {
	if args != "" {
		return usage("", "%s: %q is too much", verb, args)
	}
	return nil
}

// times is how often a command is to be done.
func times(verb, args string) (int, error) {
	if args == "" {
		return 1, nil
	}
	n, err := strconv.Atoi(args)
	if err != nil || n < 1 {
		return 0, usage("", "%s %q: want a number from 1", verb, args)
	}
	return n, nil
}

func (sh *shell) step(ctx context.Context, args string) error {
	n, err := times("step", args)
	if err != nil {
		return err
	}
	var stop debug.Stop
	for range n {
		if stop, err = sh.session.Step(ctx); err != nil {
			return err
		}
		if stop.Reason != debug.AtEnd {
			continue
		}
		moved, err := sh.alive(ctx)
		if err != nil {
			return sh.halted(ctx, moved, err)
		}
		if !moved {
			break
		}
		if stop, err = sh.session.Goto(ctx, sh.session.Steps()); err != nil {
			return err
		}
	}
	return sh.stopped(ctx, stop)
}

// onward moves forward. Where what is recorded ends, the run itself goes on, effect by
// effect, so that it can stop where it is told to.
func (sh *shell) onward(ctx context.Context, move movement) error {
	for {
		stop, err := move(sh.session, ctx)
		if err != nil {
			return err
		}
		if stop.Reason != debug.AtEnd {
			return sh.stopped(ctx, stop)
		}
		moved, err := sh.alive(ctx)
		if err != nil {
			return sh.halted(ctx, moved, err)
		}
		if !moved {
			return sh.stopped(ctx, stop)
		}
	}
}

func (sh *shell) until(ctx context.Context, args string) error {
	state := agent.State(args)
	if state == agent.StateNone {
		return usage("", "until: want a state: %s", strings.Join(sh.session.Known(debug.OnState), ", "))
	}
	if known := sh.session.Known(debug.OnState); !slices.Contains(known, args) {
		return usage("states are "+strings.Join(known, ", "), "until %q: there is no such state", args)
	}
	return sh.onward(ctx, func(s *debug.Session, ctx context.Context) (debug.Stop, error) { return s.Until(ctx, state) })
}

func (sh *shell) back(ctx context.Context, args string) error {
	n, err := times("back", args)
	if err != nil {
		return err
	}
	var stop debug.Stop
	for range n {
		if stop, err = sh.session.Back(ctx); err != nil {
			return err
		}
		if stop.Reason == debug.AtBeginning {
			break
		}
	}
	return sh.stopped(ctx, stop)
}

func (sh *shell) backward(ctx context.Context, move movement) error {
	stop, err := move(sh.session, ctx)
	if err != nil {
		return err
	}
	return sh.stopped(ctx, stop)
}

func (sh *shell) goTo(ctx context.Context, args string) error {
	if _, err := sh.session.Refresh(ctx); err != nil {
		return err
	}
	step := sh.session.Steps()
	if args != "end" {
		var err error
		if step, err = strconv.Atoi(args); err != nil || step < 1 {
			return usage("", "goto %q: want the number of a step, from 1, or end", args)
		}
	}
	stop, err := sh.session.Goto(ctx, step)
	if err != nil {
		return err
	}
	return sh.stopped(ctx, stop)
}

// follow goes along with a run that somebody else serves.
func (sh *shell) follow(ctx context.Context, _ string) error {
	if _, err := sh.session.Refresh(ctx); err != nil {
		return err
	}
	if _, err := sh.session.Goto(ctx, sh.session.Steps()); err != nil {
		return err
	}
	sh.shown = max(sh.shown, sh.session.Position().Seq)
	sh.print("Following run %s from %s.\n", sh.session.ID(), sh.session.Position())
	for {
		stop, err := sh.session.Step(ctx)
		sh.shown = max(sh.shown, sh.session.Position().Seq)
		switch {
		case err != nil:
			return err
		case stop.Reason == debug.AtEnd && sh.session.Last().State.Final(), len(stop.Breakpoints) > 0:
			if len(stop.Breakpoints) > 0 {
				stop.Reason = debug.Hit
			}
			return sh.stopped(ctx, stop)
		case stop.Reason == debug.AtEnd:
			if err := sh.session.Await(ctx); err != nil {
				return err
			}
		default:
			sh.print("%s\n", entryLine(sh.session.Moment().Entry))
		}
	}
}

// stopped says where a movement ended and why, shows what is displayed, and does what
// belongs to the breakpoints.
func (sh *shell) stopped(ctx context.Context, stop debug.Stop) error {
	changed := stop.Changed
	for _, b := range stop.Breakpoints {
		what := fmt.Sprintf("Breakpoint %d, %s", b.ID, terminal.Line(b.String()))
		if b.On == debug.OnChange && len(changed) > 0 {
			what = fmt.Sprintf("Watch %d, %s: %s -> %s", b.ID, terminal.Line(b.Value), terminal.Line(changed[0].A), terminal.Line(changed[0].B))
			changed = changed[1:]
		}
		sh.print("%s\n", what)
	}
	if err := sh.where(ctx); err != nil {
		return err
	}
	switch stop.Reason {
	case debug.AtBeginning:
		sh.print("This is the beginning of the run.\n")
	case debug.AtEnd:
		sh.end()
	case debug.Stepped, debug.Reached, debug.Hit:
		if stop.Step == stop.Steps && sh.stands() {
			sh.end()
		}
	}
	for _, b := range stop.Breakpoints {
		for _, line := range b.Do {
			sh.print("%s%s\n", prompt, terminal.Line(line))
			if err := sh.do(ctx, line); err != nil {
				return err
			}
		}
	}
	return nil
}

// stands reports whether no step can let the run go on.
func (sh *shell) stands() bool {
	run := sh.session.Last()
	return run.Open == nil || run.Open.Kind == agent.Present
}

// expired reports whether what the run waits for comes too late.
func expired(run agent.Run) bool {
	return !run.Deadline.IsZero() && !time.Now().Before(run.Deadline)
}

// end says what is the end of what is recorded.
func (sh *shell) end() {
	run := sh.session.Last()
	switch {
	case run.State.Final():
		sh.print("This is the end: the run is %s.\n", terminal.Line(stateWords(run)))
	case run.State == agent.StateAwaitingApproval && expired(run):
		sh.print("This is the end of what is recorded: the candidate has expired at %s, which a step records.\n", clock(run.Deadline))
	case run.State == agent.StateAwaitingApproval:
		sh.print("This is the end of what is recorded: the run waits for a decision. See it with call; approve, reject or edit it.\n")
	case run.State == agent.StateNeedsVerification && run.Open == nil:
		sh.print("This is the end of what is recorded: the outcome of a write is unknown. Look for yourself, then say so with verify.\n")
	default:
		sh.print("This is the end of what is recorded.\n")
	}
}

// where says where the cursor is, and what happened there.
func (sh *shell) where(ctx context.Context) error {
	m := sh.session.Moment()
	state := ""
	if m.Run.Held && m.Run.State.Open() {
		state = " (paused)"
	}
	sh.print("%s%s\n%s\n", sh.session.Position(), state, entryLine(m.Entry))
	for _, p := range sh.displays {
		if err := sh.display1(p); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// alive lets the run itself go on by one effect, and reports whether it did. It is paused
// first, so that it goes no further; what it waits for is not decided here.
func (sh *shell) alive(ctx context.Context) (bool, error) {
	if _, err := sh.session.Refresh(ctx); err != nil {
		return false, err
	}
	run := sh.session.Last()
	overdue := expired(run)
	switch {
	case sh.readOnly || run.State.Final():
		return false, nil
	case sh.stands() && !overdue:
		return false, nil
	}
	if overdue && run.State == agent.StateAwaitingApproval {
		sh.print("The candidate has expired at %s: this is recorded now.\n", clock(run.Deadline))
	}
	seq := run.Seq
	err := sh.app.atDesk(run.ID, "", func(d *desk) error {
		if !run.Held {
			if _, err := sh.app.steer(ctx, d, agent.Pause{}); err != nil {
				return err
			}
			sh.print("The run is paused, and goes on from here by single steps.\n")
		}
		if err := sh.tell(ctx); err != nil {
			return err
		}
		return sh.lively(ctx, func() error {
			if o := sh.session.Last().Open; o != nil && !o.Released {
				if _, err := sh.app.steer(ctx, d, agent.StepOnce{}); err != nil {
					return err
				}
			}
			_, err := d.serve(ctx)
			return err
		})
	})
	if told := sh.tell(ctx); err == nil {
		err = told
	}
	return sh.session.Last().Seq > seq, err
}

// lively does what lets the run go on, and meanwhile writes a line for each entry as soon
// as it is recorded. While it is at work, Ctrl-C is answered.
func (sh *shell) lively(ctx context.Context, do func() error) error {
	told := watching(ctx, sh.engine, sh.session.ID(), sh.shown+1, func(e agent.Entry) { sh.print("live: %s\n", entryLine(e)) })
	sh.serving.Store(true)
	err := do()
	sh.serving.Store(false)
	_, lost := sh.session.Refresh(context.WithoutCancel(ctx))
	told.reach(sh.session.Last().Seq)
	told.stop()
	sh.shown = max(sh.shown, told.last)
	return errors.Join(err, lost)
}

// halted is a movement that failed after the run itself went on, or that was interrupted:
// the cursor is at what happened last.
func (sh *shell) halted(ctx context.Context, moved bool, err error) error {
	if !moved && ctx.Err() == nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if _, lost := sh.session.Goto(ctx, sh.session.Steps()); lost != nil {
		return errors.Join(err, lost)
	}
	return errors.Join(err, sh.where(ctx))
}

// tell reads what was appended, and writes a line for each entry of it.
func (sh *shell) tell(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx) // what happened is told
	if _, err := sh.session.Refresh(ctx); err != nil {
		return err
	}
	last := sh.session.Last().Seq
	for e, err := range sh.session.Entries(ctx, sh.shown+1, last) {
		if err != nil {
			return err
		}
		sh.print("live: %s\n", entryLine(e))
	}
	sh.shown = max(sh.shown, last)
	return nil
}
