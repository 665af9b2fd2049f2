package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/nodes/llm"
	"sallyport/scenarios"
	"sallyport/scenarios/config"
)

// decision is how a person decides on the command line.
type decision struct {
	sha256   string
	as       string
	signed   bool
	noResume bool
	edit     edit
}

func (a *app) approveCommand() *cobra.Command {
	var d decision
	c := &cobra.Command{
		Use: "approve RUN", Short: "Show the pending candidate in full, ask, and sign exactly its bytes", Args: oneRun,
		Long: `Show what the run waits for, in full, and ask. The line approve signs exactly these
bytes; anything else refuses them for good. Without a terminal nothing is asked:
then --sha256 must name the bytes, as "sallyport approvals" and "show" print it.

With --edit the arguments are changed first: the text of the one argument that has
several lines, or that --field names, else all of them as JSON; --edit=FILE takes JSON,
or with --field that text. The edit is signed and grants nothing: the new candidate is
shown, with what was changed, and asked about. The model is told of the change.

Afterwards the run is served here until it ends or waits again, unless another
process serves it (then its journal is followed) or --no-resume is given.`,
		ValidArgsFunction: a.completeRuns(agent.Filter{State: agent.StateAwaitingApproval}),
		RunE: func(c *cobra.Command, args []string) error {
			if err := d.edit.check(c); err != nil {
				return err
			}
			return a.approve(c.Context(), args[0], d)
		},
	}
	c.Flags().StringVar(&d.sha256, "sha256", "", "approve without being asked: the `DIGEST` of the exact argument bytes")
	c.Flags().StringVar(&d.as, "as", "", "sign with the key called `NAME`")
	c.Flags().BoolVar(&d.noResume, "no-resume", false, "decide only; do not serve the run")
	d.edit.flags(c)
	return c
}

func (a *app) rejectCommand() *cobra.Command {
	var d decision
	c := &cobra.Command{
		Use: "reject RUN", Short: "Show the pending candidate in full and refuse it for good", Args: oneRun,
		ValidArgsFunction: a.completeRuns(agent.Filter{State: agent.StateAwaitingApproval}),
		RunE:              func(c *cobra.Command, args []string) error { return a.reject(c.Context(), args[0], d) },
	}
	c.Flags().BoolVar(&d.signed, "signed", false, "sign the refusal, so that it is recorded under your key's name")
	c.Flags().StringVar(&d.as, "as", "", "sign with the key called `NAME`; implies --signed")
	c.Flags().BoolVar(&d.noResume, "no-resume", false, "decide only; do not serve the run")
	return c
}

// deciding shows the pending candidate of a run and lets decide make of it what it
// does; then the run goes on.
func (a *app) deciding(ctx context.Context, id string, d decision,
	decide func(*desk, agent.Run) (agent.Delivery, error),
) error {
	return a.pendingAt(ctx, id, d, func(desk *desk, run agent.Run) error {
		delivery, err := decide(desk, run)
		if err != nil {
			return err
		}
		return a.decided(ctx, desk, run, delivery, d.noResume)
	})
}

// pendingAt shows the pending candidate of a run and lets use do the rest.
func (a *app) pendingAt(ctx context.Context, id string, d decision, use func(*desk, agent.Run) error) error {
	return a.atDesk(id, d.as, func(desk *desk) error {
		run, _, err := scenarios.Load(ctx, desk.host.Engine, id)
		if err != nil {
			return err
		}
		if run.State != agent.StateAwaitingApproval {
			return fail(exitDenied, "see: "+desk.command("show", id), "decide on run %s: no candidate is pending: the run is %s", id, stateWords(run))
		}
		if err := desk.show(ctx, run); err != nil {
			return err
		}
		return use(desk, run)
	})
}

// stateWords says where a run is, and why it ended.
func stateWords(run agent.Run) string {
	if run.Reason != "" {
		return fmt.Sprintf("%s (%s)", run.State, run.Reason)
	}
	return string(run.State)
}

func (a *app) approve(ctx context.Context, id string, d decision) error {
	if d.edit.from != "" {
		return a.approveEdited(ctx, id, d)
	}
	return a.deciding(ctx, id, d, func(desk *desk, run agent.Run) (agent.Delivery, error) {
		digest := run.Call.Candidate.Arguments
		d.sha256 = strings.ToLower(strings.TrimPrefix(d.sha256, "sha256:"))
		switch {
		case d.sha256 != "" && d.sha256 != digest:
			return agent.Delivery{}, fail(exitDenied, "look at the candidate again; the digest to name is the one of its arguments",
				"approve run %s: the pending candidate has sha256 %s, not %q", id, digest, d.sha256)
		case d.sha256 == "" && !a.asks():
			return agent.Delivery{}, fail(exitParked, desk.command("approve", id, "--sha256", digest),
				"approve run %s: there is nobody to ask, and no --sha256", id)
		case d.sha256 == "":
			if _, err := desk.signer.pick(run); err != nil {
				return agent.Delivery{}, err
			}
			answer, err := a.askOnce(ctx, desk, run)
			if err != nil {
				return agent.Delivery{}, err
			}
			if answer != terminal.Approved {
				return scenarios.Refusal(run, desk.host.Actor), nil
			}
		}
		key, err := desk.signingKey(ctx, run)
		if err != nil {
			return agent.Delivery{}, err
		}
		return scenarios.Approval(run, key, time.Now())
	})
}

// askOnce asks about a candidate that was shown just now; that the run moves on
// meanwhile is an error here.
func (a *app) askOnce(ctx context.Context, desk *desk, run agent.Run) (terminal.Answer, error) {
	answer, err := desk.askOf(ctx, run)
	if err == nil && answer == terminal.Withdrawn {
		err = fail(exitDenied, "see: "+desk.command("show", run.ID), "approve run %s: it has moved on, or the candidate has expired", run.ID)
	}
	return answer, err
}

func (a *app) reject(ctx context.Context, id string, d decision) error {
	return a.deciding(ctx, id, d, func(desk *desk, run agent.Run) (agent.Delivery, error) {
		if !d.signed && d.as == "" {
			return scenarios.Refusal(run, desk.host.Actor), nil
		}
		key, err := desk.signingKey(ctx, run)
		if err != nil {
			return agent.Delivery{}, err
		}
		return scenarios.SignedRefusal(run, key, time.Now())
	})
}

// decided hands a decision in and goes on with the run.
func (a *app) decided(ctx context.Context, desk *desk, run agent.Run, delivery agent.Delivery, noResume bool) error {
	v, err := desk.host.Deliver(ctx, run, delivery)
	if err != nil {
		return err
	}
	if v.Refusal != nil {
		return desk.refused(v.Refusal)
	}
	a.say("Run %s: %s.", desk.run, v.Row)
	if v.Row == agent.RowEndorsed {
		a.say("Another approver must sign too: %s", desk.command("approve", desk.run, "--as", "NAME"))
		a.code = exitParked
		return nil
	}
	if noResume {
		return nil
	}
	return desk.goOn(ctx)
}

// refused is the failure of a decision that the run did not take.
func (d *desk) refused(why *agent.Refusal) error {
	code, next := exitDenied, "see: "+d.command("show", d.run)
	switch why.Code {
	case agent.CodeForged: // no key that the run knows
		code = exitNoKey
	case agent.CodeEnded:
		next = "begin a new run; what became of this one: " + d.command("show", d.run)
	}
	return fail(code, next, "run %s: %s", d.run, refusalText(why))
}

// refusalText is a refusal for people.
func refusalText(r *agent.Refusal) string {
	if r.Code == agent.CodeEnded {
		return "it has ended, and what has ended is not gone on with"
	}
	return r.Message
}

// goOn attends to the run after a command, and ends with its exit code.
func (d *desk) goOn(ctx context.Context) error {
	run, err := d.attend(ctx)
	if err != nil {
		return d.interrupted(run, err)
	}
	d.app.code = d.report(run)
	return d.app.result(ctx, d.host.Engine, run)
}

// scriptFault begins the message about a script that does not fit its run.
const scriptFault = "the scripted model is at fault"

// interrupted is how an attendance that an error ended is told: what of, and how to go
// on with the run that it left behind.
func (d *desk) interrupted(run agent.Run, err error) error {
	code, next := codeOf(err)
	var script *llm.ScriptError
	var store *embedded.StoreError
	switch {
	case errors.As(err, &script):
		// The run keeps the script that it was begun with: to resume it fails again.
		code, err = exitUsage, fmt.Errorf("%s: %w; run %s stays open", scriptFault, script, d.run)
		next = "mend the script and begin a new run; end this one with: " + d.command("cancel", d.run)
	case replayErr(err, "") != nil:
		code, err = exitUsage, fmt.Errorf("%w; run %s stays open", replayErr(err, ""), d.run)
		next = "play it with what it was recorded with, or record it anew; end this run with: " + d.command("cancel", d.run)
	case errors.As(err, new(*config.Refused)), errors.Is(err, config.ErrNoKey):
		err = fmt.Errorf("%w; run %s stays open", err, d.run)
		next = "when that is done: " + d.command("resume", d.run)
	case errors.Is(err, agent.ErrServed):
		code, next = exitDenied, "watch it with: "+d.command("journal", d.run, "--follow")
	case errors.As(err, &store) && code == exitFailed:
		err = fmt.Errorf("the run has not failed, its state could not be written: %w", err)
	case code == exitInterrupted && unsettled(run):
		err = fmt.Errorf("%w; the outcome of a write is unknown, and nothing is sent again", err)
		next = "have it checked with: " + d.command("resume", d.run)
	case code == exitFailed && run.State == agent.StateNeedsVerification:
		code = exitUnknown
	}
	switch {
	case d.passing && code == exitInterrupted:
		err, next = fmt.Errorf("%w; the folder is removed, and the run with it", err), ""
	case d.passing:
		next = ""
	case next == "" && run.State.Open():
		next = d.command("resume", run.ID)
	}
	return &failure{code: code, err: err, next: next}
}

// unsettled reports whether the outcome of a write of the run is unknown.
func unsettled(run agent.Run) bool {
	return run.State == agent.StateNeedsVerification ||
		run.Call != nil && run.Call.Outcome != nil && run.Call.Outcome.Status == agent.StatusResultUnknown
}
