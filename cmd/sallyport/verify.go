package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios"
	"sallyport/tools/bridge"
	"sallyport/tools/grant"
)

// statement is what a person says on the command line about an unknown outcome.
type statement struct {
	applied, notApplied, unknown bool

	as       string
	noResume bool
}

func (a *app) verifyCommand() *cobra.Command {
	var s statement
	c := &cobra.Command{
		Use: "verify RUN", Short: "Say, signed, what became of a write whose outcome is unknown", Args: oneRun,
		Long: `Show the evidence about a write whose outcome nobody knows: what was sent, in full,
what came back, and what every check found. Then ask what became of it. Exactly one of
the answers applied, not applied and unknown is signed with your key and recorded under
your name; anything else changes nothing.

Look for yourself before you answer: the model is told that your word is the truth.
After "not applied" it may propose the call anew, which needs an approval of its own.
After "unknown" nothing has changed, and no other write of the run is sent.

Without a terminal one of the flags is needed. Afterwards the run is served here, as
after approve.`,
		ValidArgsFunction: a.completeRuns(agent.Filter{State: agent.StateNeedsVerification}),
		RunE: func(c *cobra.Command, args []string) error {
			if n := c.Flags().Changed; n("applied") && n("not-applied") || n("applied") && n("unknown") || n("not-applied") && n("unknown") {
				return usage("say one of --applied, --not-applied and --unknown", "verify run %s: two answers", args[0])
			}
			return a.verify(c.Context(), args[0], s)
		},
	}
	c.Flags().BoolVar(&s.applied, "applied", false, "say without being asked that it took effect")
	c.Flags().BoolVar(&s.notApplied, "not-applied", false, "say without being asked that it did not, and never will")
	c.Flags().BoolVar(&s.unknown, "unknown", false, "say without being asked that you could not find out")
	c.Flags().StringVar(&s.as, "as", "", "sign with the key called `NAME`")
	c.Flags().BoolVar(&s.noResume, "no-resume", false, "say it only; do not serve the run")
	return c
}

// What is typed for each verdict.
const (
	answerApplied    = "applied"
	answerNotApplied = "not applied"
	answerUnknown    = "unknown"
)

var verdicts = map[string]string{
	answerApplied: grant.VerdictApplied, answerNotApplied: grant.VerdictNotApplied, answerUnknown: grant.VerdictUnknown,
}

// said is the answer that a flag gives; empty if none does.
func (s statement) said() string {
	switch {
	case s.applied:
		return answerApplied
	case s.notApplied:
		return answerNotApplied
	case s.unknown:
		return answerUnknown
	}
	return ""
}

func (a *app) verify(ctx context.Context, id string, s statement) error {
	return a.atDesk(id, s.as, func(d *desk) error {
		run, entries, err := scenarios.Load(ctx, d.host.Engine, id)
		if err != nil {
			return err
		}
		if run.State != agent.StateNeedsVerification {
			return fail(exitDenied, "see: "+d.command("show", id), "verify run %s: no outcome of it is unknown: the run is %s", id, stateWords(run))
		}
		if err := d.showUnknown(ctx, run, entries); err != nil {
			return err
		}
		said := s.said()
		if said == "" {
			if said, err = d.askUnknown(ctx, run); err != nil {
				return err
			}
		}
		key, err := d.signingKey(ctx, asWitness(run))
		if err != nil {
			return err
		}
		delivery, err := scenarios.Statement(run, key, verdicts[said], time.Now())
		if err != nil {
			return err
		}
		return d.stated(ctx, run, delivery, s.noResume)
	})
}

// asWitness is the run as it concerns a witness: every approver of it may say what
// happened, also one that has approved the call.
func asWitness(run agent.Run) agent.Run {
	run.Call = nil
	return run
}

const theUnknownQuestion = "Look for yourself, then type applied, not applied or unknown; anything else changes nothing.\nwhat became of it? "

// askUnknown asks what became of the write.
func (d *desk) askUnknown(ctx context.Context, run agent.Run) (said string, err error) {
	if !d.app.asks() {
		return "", fail(exitUnknown, "look for yourself, then say one of --applied, --not-applied and --unknown",
			"verify run %s: there is nobody to ask", run.ID)
	}
	if _, err := d.signer.pick(asWitness(run)); err != nil {
		return "", err
	}
	err = d.whileThere(ctx, run, func(ctx context.Context) (err error) {
		said, err = d.app.console().Choose(ctx, theUnknownQuestion, answerApplied, answerNotApplied, answerUnknown)
		return err
	})
	switch {
	case context.Cause(ctx) != nil:
		return "", context.Cause(ctx)
	case errors.Is(err, context.Canceled):
		return "", fail(exitDenied, "see: "+d.command("show", run.ID), "verify run %s: it has moved on", run.ID)
	case err != nil:
		return "", err
	case said == "":
		return "", fail(exitUnknown, d.command("verify", run.ID), "verify run %s: that is none of the three answers; nothing was changed", run.ID)
	}
	return said, nil
}

// stated hands a statement in and goes on with the run.
func (d *desk) stated(ctx context.Context, run agent.Run, delivery agent.Delivery, noResume bool) error {
	v, err := d.host.Deliver(ctx, run, delivery)
	if err != nil {
		return err
	}
	if v.Refusal != nil {
		return d.refused(v.Refusal)
	}
	d.app.say("Run %s: %s, by %s.", d.run, v.Row, delivery.Actor)
	switch {
	case v.Row == agent.RowUndecided:
		run, _, err := scenarios.Load(ctx, d.host.Engine, d.run)
		if err != nil {
			return err
		}
		d.app.code = d.report(run)
		return nil
	case noResume:
		return nil
	}
	return d.goOn(ctx)
}

// showUnknown writes the evidence about the write in hand.
func (d *desk) showUnknown(ctx context.Context, run agent.Run, entries []agent.Entry) error {
	if run.Call == nil || run.Call.Candidate == nil {
		return fmt.Errorf("show the evidence of run %s: %w: its call has no candidate", run.ID, agent.ErrIntegrity)
	}
	args, err := candidateBytes(ctx, d.host.Engine, run)
	if err != nil {
		return err
	}
	setup, err := scenarios.ReadSetup(ctx, d.host.Engine, run)
	if err != nil {
		return err
	}
	tool, _ := run.Spec.Tool(run.Call.Proposal.Tool)
	contract, _ := setup.Contract(tool.Name)
	u := terminal.Unknown{
		Candidate: *run.Call.Candidate, Arguments: args, Tool: tool, Signed: signers(run),
		Unfinished: run.Open != nil, SideEffect: contract.SideEffect, Rollback: contract.Rollback,
	}
	if u.Edited, _, err = d.edited(ctx, run); err != nil {
		return err
	}
	if f := run.Spec.Fork; f != nil && run.Call.Carried > 0 {
		u.SentIn, u.SentAt = f.Run, run.Call.Carried
	}
	for _, e := range callEntries(entries) {
		if err := d.testify(ctx, &u, run, e); err != nil {
			return err
		}
	}
	u.Outcome = *run.Call.Outcome // the Host's last word, which a check may have made worse
	width := 0
	if d.app.console().Interactive() {
		width = d.app.console().Width()
	}
	return u.Write(d.app.stderr, width)
}

// callEntries are the events and attempts of the call in hand, from its proposal on.
func callEntries(entries []agent.Entry) []agent.Entry {
	var of []agent.Entry
	for _, e := range entries {
		if e.Kind != agent.EntryEvent && e.Kind != agent.EntryAttempt {
			continue
		}
		if e.Row == agent.RowProposed || e.Row == agent.RowNextCall {
			of = nil
		}
		of = append(of, e)
	}
	return of
}

// testify takes what one entry says about the write.
func (d *desk) testify(ctx context.Context, u *terminal.Unknown, run agent.Run, e agent.Entry) error {
	if e.Kind == agent.EntryAttempt {
		if !u.Sent.IsZero() || u.SentIn != "" { // what may be repeated behind the intent is a check
			u.Again++
		}
		return nil
	}
	payload, err := e.Payload()
	if err != nil {
		return err
	}
	switch p := payload.(type) {
	case agent.Checked:
		u.Sent = e.Time
	case agent.Returned:
		u.Reply, err = d.evidence(ctx, p.Body)
	case agent.Observed:
		if !p.ReadBack.IsZero() { // the check that an ok did not stand up to
			c := terminal.Check{Time: e.Time, Finding: agent.Undecided, Reason: p.Reason}
			c.Evidence, err = d.evidence(ctx, p.ReadBack)
			u.Checks = append(u.Checks, c)
		}
	case agent.Verified:
		c := terminal.Check{Time: e.Time, Finding: p.Finding, Reason: p.Reason}
		if p.Reason == bridge.ReasonNoGrant && u.SentIn != "" {
			c.Reason += fmt.Sprintf(": the outcome was not confirmed in run %s, and the grant to ask with stayed there", u.SentIn)
		}
		c.Evidence, err = d.evidence(ctx, p.Evidence)
		u.Checks = append(u.Checks, c)
	case agent.Attest:
		said, by, err := pinnedKeys(run).OpenStatement(p.Signed)
		if err != nil {
			return fmt.Errorf("read a statement of run %s: %w", run.ID, err)
		}
		u.Statements = append(u.Statements, terminal.Statement{Time: e.Time, By: by.Name, Verdict: said.Verdict})
	}
	return err
}

// evidence is a server's answer; that it was erased is no error.
func (d *desk) evidence(ctx context.Context, ref agent.BodyRef) ([]byte, error) {
	if ref.IsZero() {
		return nil, nil
	}
	data, err := d.host.Engine.Body(ctx, d.run, ref)
	if wasErased(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the evidence of run %s: %w", d.run, err)
	}
	return data, nil
}
