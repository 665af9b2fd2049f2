package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"sallyport/agent"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios"
	"sallyport/tools/grant"
)

// desk is where a command attends to one run: what serves it, who signs, and what the
// operator is told.
type desk struct {
	app  *app
	host *scenarios.Host
	run  string
	// signer gives the key that an approval on this terminal is signed with.
	signer signer
	// key, if it is set, is used instead.
	key *grant.PrivateKey
	// ask is whether a pending candidate is shown and asked about. Without it the run
	// parks.
	ask bool
	// scripted, if set, is decided instead of asking.
	scripted scenarios.Verb
	// keepTyped leaves what was typed before the question: in the demo, where nothing
	// is at stake.
	keepTyped bool
	// endOnRefusal ends the attending once a person has refused here.
	endOnRefusal bool
	// passing is whether the state goes with the process: there is no going on with it.
	passing bool
	// alone makes it an error that another process serves the run.
	alone bool
	// more is added to the commands that the operator is told: --state and the like.
	more string

	told *progress
}

// attend serves the run, asks where there is somebody to ask, and returns how it
// ended or why it rests. While another process serves the run, its journal is
// followed instead.
func (d *desk) attend(ctx context.Context) (agent.Run, error) {
	d.app.lastly(d.endAtOnce)
	d.told = d.app.progress(ctx, d.host.Engine, d.run)
	defer d.told.stop()
	for {
		run, err := d.serve(ctx)
		d.told.reach(run.Seq)
		if err != nil {
			return run, err
		}
		if run.State != agent.StateAwaitingApproval || run.Held || !d.ask && d.scripted == "" {
			return run, nil
		}
		if able, err := d.able(run); err != nil || !able {
			return run, err
		}
		answer, err := d.question(ctx, run)
		if err != nil {
			return run, err
		}
		if answer == terminal.Refused && d.endOnRefusal {
			run, _, err := scenarios.Load(ctx, d.host.Engine, d.run)
			d.told.reach(run.Seq)
			return run, err
		}
	}
}

// endAtOnce says how to go on after the process was ended at once.
func (d *desk) endAtOnce() {
	if d.passing {
		d.app.say("Ended at once. The folder is removed, and the run with it.")
		return
	}
	d.app.say("Ended at once. A write that was in flight has an unknown outcome, and is not sent again. Go on with:\n  %s", d.command("resume", d.run))
}

// serve moves the run on until it rests, here or wherever it is served.
func (d *desk) serve(ctx context.Context) (agent.Run, error) {
	for said := false; ; said = true {
		err := d.host.Serve(ctx, d.run)
		run, _, lost := scenarios.Load(context.WithoutCancel(ctx), d.host.Engine, d.run)
		switch {
		case context.Cause(ctx) != nil:
			return run, context.Cause(ctx)
		case errors.Is(err, agent.ErrServed) && lost == nil && !d.alone:
			if run.State.Final() || run.Rests() {
				return run, nil // whoever has it is letting go, or waits as we do
			}
			if !said {
				d.app.say("Another process serves run %s; following it.", d.run)
			}
			if err := d.follow(ctx, run); err != nil {
				return run, err
			}
		case err != nil:
			return run, errors.Join(err, lost)
		default:
			d.alone = false // we have it; should it be taken over later, it is followed
			return run, lost
		}
	}
}

// patience is how long a run that another process serves may show nothing new before
// it is tried whether that process is still there.
const patience = time.Second

// follow returns when the run has moved on, or after a while.
func (d *desk) follow(ctx context.Context, run agent.Run) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for e, err := range d.host.Engine.Journal(ctx, d.run, run.Seq+1, true) {
		if err != nil {
			return ignoreDone(ctx, err)
		}
		if run, err = agent.Apply(run, e); err != nil {
			return err
		}
		if run.Rests() || run.State.Final() {
			return nil
		}
	}
	return nil
}

func ignoreDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// able reports whether an approval could be signed here, before anybody is asked. That
// this user has signed already, and another must, leaves the run parked.
func (d *desk) able(run agent.Run) (bool, error) {
	if d.key != nil {
		return true, nil
	}
	_, err := d.signer.pick(run)
	if code, _ := codeOf(err); code == exitDenied {
		d.app.say("%s", terminal.Line(err.Error()))
		return false, nil
	}
	return err == nil, err
}

// signingKey is the key to sign with, unlocked.
func (d *desk) signingKey(ctx context.Context, run agent.Run) (grant.PrivateKey, error) {
	if d.key != nil {
		return *d.key, nil
	}
	return d.signer.key(ctx, run)
}

// question shows the pending candidate, asks, and hands the answer in.
func (d *desk) question(ctx context.Context, run agent.Run) (terminal.Answer, error) {
	if err := d.show(ctx, run); err != nil {
		return terminal.Withdrawn, err
	}
	answer, err := d.answer(ctx, run)
	switch {
	case err != nil:
		return answer, err
	case answer == terminal.Withdrawn:
		d.app.say("The question is taken back: the run has moved on, or the candidate has expired.")
		return answer, nil
	}
	return answer, d.deliver(ctx, run, answer)
}

// answer is the scripted decision, or what is typed.
func (d *desk) answer(ctx context.Context, run agent.Run) (terminal.Answer, error) {
	switch d.scripted {
	case scenarios.VerbApprove:
		d.app.say("Decided beforehand, with a key made for this run: %s", d.scripted)
		return terminal.Approved, nil
	case scenarios.VerbReject:
		d.app.say("Decided beforehand: %s", d.scripted)
		return terminal.Refused, nil
	case scenarios.VerbWait:
		return terminal.Withdrawn, nil
	}
	return d.askOf(ctx, run)
}

// theQuestion is the one that is asked.
const theQuestion = "Type approve to let exactly this happen; anything else refuses it.\napprove? "

// askOf asks about a candidate that was shown just now. The question is taken back
// when the run moves on without it, or the candidate expires.
func (d *desk) askOf(ctx context.Context, run agent.Run) (terminal.Answer, error) {
	answer := terminal.Withdrawn
	err := d.whileThere(ctx, run, func(ctx context.Context) (err error) {
		answer, err = d.app.console().Ask(ctx, theQuestion)
		return err
	})
	if err != nil {
		return terminal.Withdrawn, err
	}
	return answer, nil
}

// whileThere asks as long as the run is where it was: then the context is done.
func (d *desk) whileThere(ctx context.Context, run agent.Run, ask func(context.Context) error) error {
	asking, withdraw := context.WithCancel(ctx)
	defer withdraw()
	var watching sync.WaitGroup
	watching.Go(func() { // ends with asking; waited for below
		defer withdraw()
		d.moved(asking, run)
	})
	if !d.keepTyped {
		d.app.console().Discard()
	}
	err := ask(asking)
	withdraw()
	watching.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// moved returns when the run has left the place where it was asked about.
func (d *desk) moved(ctx context.Context, run agent.Run) {
	if !run.Deadline.IsZero() {
		expiring, cancel := context.WithDeadline(ctx, run.Deadline)
		defer cancel()
		ctx = expiring
	}
	for e, err := range d.host.Engine.Journal(ctx, d.run, run.Seq+1, true) {
		if err != nil || e.Kind == agent.EntryEvent {
			return
		}
	}
}

// deliver signs and hands in what was answered. That somebody else was faster is no
// error: the run has moved on.
func (d *desk) deliver(ctx context.Context, run agent.Run, answer terminal.Answer) error {
	delivery := scenarios.Refusal(run, d.host.Actor)
	if answer == terminal.Approved {
		key, err := d.signingKey(ctx, run)
		if err != nil {
			return err
		}
		if delivery, err = scenarios.Approval(run, key, time.Now()); err != nil {
			return err
		}
	}
	v, err := d.host.Deliver(ctx, run, delivery)
	if err != nil {
		return err
	}
	if v.Refusal != nil {
		d.app.say("The decision was not taken: %s", terminal.Line(refusalText(v.Refusal)))
	}
	return nil
}

// show writes the pending candidate in full.
func (d *desk) show(ctx context.Context, run agent.Run) error {
	p, err := d.candidate(ctx, run)
	if err != nil {
		return err
	}
	width := 0
	if d.app.console().Interactive() {
		width = d.app.console().Width()
	}
	return p.Write(d.app.stderr, width)
}

// candidate is the pending candidate with all that a person is shown of it.
func (d *desk) candidate(ctx context.Context, run agent.Run) (p terminal.Pending, err error) {
	args, err := candidateBytes(ctx, d.host.Engine, run)
	if err != nil {
		return p, err
	}
	setup, err := scenarios.ReadSetup(ctx, d.host.Engine, run)
	if err != nil {
		return p, err
	}
	tool, _ := run.Spec.Tool(run.Call.Proposal.Tool)
	contract, _ := setup.Contract(tool.Name)
	p = terminal.Pending{
		Candidate: *run.Call.Candidate, Arguments: args, Tool: tool, Signed: signers(run), Deadline: run.Deadline,
		SideEffect: contract.SideEffect, Rollback: contract.Rollback, Sends: contract.Effect != "", Recipients: contract.Recipients,
	}
	if run.Call.Edited {
		p.Edited, p.Was, err = d.edited(ctx, run)
	}
	return p, err
}

// report says how the run ended or what it waits for, on stderr, and gives the exit
// code of that.
func (d *desk) report(run agent.Run) exit {
	code := codeOfRun(run)
	say := d.app.say
	switch {
	case run.State == agent.StateCompleted:
		say("Run %s has completed.", run.ID)
	case exceededBy(run) != nil:
		x := exceededBy(run)
		say("Run %s is %s: %s. It had used %s of %s; in all %s.", run.ID, run.State, terminal.Line(run.Reason), x.Used, x.Limit,
			budgetTexts(budgetRows(spentBudget(run.Used), run.Budget, run.Spec.Prices)))
		if x.Budget == "model_turns" {
			d.reportRefused(context.Background(), run)
		}
		if !d.passing {
			say("Go on with a fork of it, in which nothing is sent again:\n  %s", d.command("resume", run.ID, x.Flag))
		}
	case run.State.Final():
		say("Run %s is %s: %s.", run.ID, run.State, terminal.Line(run.Reason))
		if strings.HasPrefix(run.Reason, modelReason) && !d.passing {
			d.reportUnreached(run)
		}
	case run.Held && run.Reason != "":
		say("Run %s is held: %s. Go on with one of:\n  %s\n  %s", run.ID, terminal.Line(run.Reason), d.command("resume", run.ID), d.command("cancel", run.ID))
	case run.Held:
		say("Run %s is paused. Go on with:\n  %s", run.ID, d.command("resume", run.ID))
	case run.State == agent.StateNeedsVerification:
		d.reportUnknown(run)
	case run.State == agent.StateAwaitingApproval:
		p := pendingOf(run)
		say("Run %s waits for approval of %s until %s. It was not asked about here. Go on with one of:\n  %s\n  %s\n  %s",
			run.ID, p.Tool, clock(p.Expires), d.command("approvals"),
			d.command("approve", run.ID, "--sha256", p.SHA256), d.command("reject", run.ID))
	default:
		say("Run %s is in state %s. Go on with:\n  %s", run.ID, run.State, d.command("resume", run.ID))
	}
	return code
}

// reportUnknown says what can still be done about a write whose outcome is unknown.
func (d *desk) reportUnknown(run agent.Run) {
	d.app.say("The outcome of a write in run %s is unknown. Nothing is sent again.", run.ID)
	if run.Open != nil {
		d.app.say("The check could not be made. Make it again with:\n  %s", d.command("resume", run.ID))
	} else {
		d.app.say("The check did not decide.")
	}
	d.app.say("See the evidence, look for yourself what became of it, and say so, signed, with:\n  %s", d.command("verify", run.ID))
	d.app.say("To give the run up, which keeps it listed as unknown:\n  %s", d.command("cancel", run.ID, "--abandon"))
}

// atDesk opens the state directory for a command about one run of it.
func (a *app) atDesk(id, as string, use func(*desk) error) error {
	dir, err := a.statePath()
	if err != nil {
		return err
	}
	return a.reading(func(e agent.Engine) error {
		operator, err := a.operator(as, dir)
		if err != nil {
			return err
		}
		host, done, err := a.hostOn(e, dir, id, operator)
		if err != nil {
			return err
		}
		defer done()
		return use(&desk{app: a, host: host, run: id, signer: signer{a, as, dir}, ask: a.asks(), more: a.stateFlag(dir)})
	})
}

// command is a command line that works when it is pasted.
func (d *desk) command(args ...string) string {
	return strings.TrimSpace(program() + " " + strings.Join(args, " ") + " " + d.more)
}

// codeOfRun is the exit code for how a run ended or why it rests.
func codeOfRun(run agent.Run) exit {
	switch {
	case run.State == agent.StateCompleted:
		return exitOK
	case run.State == agent.StateNeedsVerification || run.Reason == agent.ReasonAbandoned:
		return exitUnknown
	case strings.HasPrefix(run.Reason, modelReason):
		return exitUnreachable
	case run.State.Final():
		return exitFailed
	}
	return exitParked
}
