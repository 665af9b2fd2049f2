package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/scenarios"
)

// The commands of the operator: resume, pause, cancel.

func (a *app) resumeCommand() *cobra.Command {
	var as string
	var f modelFlags
	c := &cobra.Command{
		Use: "resume RUN", Short: "Go on with a run that was parked, paused, interrupted, or left by a crash", Args: oneRun,
		ValidArgsFunction: a.completeRuns(agent.Filter{Open: true}),
		RunE:              func(c *cobra.Command, args []string) error { return a.resume(c.Context(), args[0], as, f.record) },
	}
	c.Flags().StringVar(&as, "as", "", "sign with the key called `NAME` if a candidate is asked about")
	a.asked(c, &f)
	return c
}

func (a *app) resume(ctx context.Context, id, as, record string) error {
	return a.atDesk(id, as, func(d *desk) error {
		run, _, err := scenarios.Load(ctx, d.host.Engine, id)
		if err != nil {
			return err
		}
		if run.State.Final() {
			a.say("Run %s has ended already.", id)
			a.code = d.report(run)
			return a.result(ctx, d.host.Engine, run)
		}
		if run.Held {
			if _, err := a.steer(ctx, d, agent.Resume{}); err != nil {
				return err
			}
		}
		d.alone = true
		return recording(d.host, record, true, func() error { return d.goOn(ctx) })
	})
}

func (a *app) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pause RUN", Short: "Withhold everything that a run has not started", Args: oneRun,
		ValidArgsFunction: a.completeRuns(agent.Filter{Open: true}),
		RunE: func(c *cobra.Command, args []string) error {
			return a.atDesk(args[0], "", func(d *desk) error {
				_, err := a.steer(c.Context(), d, agent.Pause{})
				if err == nil {
					a.say("Run %s is paused; a call that was sent already ends by itself. Go on with:\n  %s", d.run, d.command("resume", d.run))
				}
				return err
			})
		},
	}
}

func (a *app) cancelCommand() *cobra.Command {
	var abandon bool
	c := &cobra.Command{
		Use: "cancel RUN", Short: "End a run; a write in flight is settled first", Args: oneRun,
		ValidArgsFunction: a.completeRuns(agent.Filter{Open: true}),
		RunE: func(c *cobra.Command, args []string) error {
			return a.atDesk(args[0], "", func(d *desk) error { return a.cancel(c.Context(), d, abandon) })
		},
	}
	c.Flags().BoolVar(&abandon, "abandon", false, "end it although the outcome of a write is unknown, and keep saying so")
	return c
}

func (a *app) cancel(ctx context.Context, d *desk, abandon bool) error {
	v, err := a.steer(ctx, d, agent.Cancel{Abandon: abandon})
	if err != nil {
		return err
	}
	switch {
	case v.Row == agent.RowCancelAsked:
		a.say("Run %s has a write in flight, or one whose outcome is unknown. It ends once that is settled. If nobody serves it:\n  %s",
			d.run, d.command("resume", d.run))
	case abandon:
		a.say("Run %s is cancelled. The outcome of its write stays unknown, and lists will keep saying so.", d.run)
		a.code = exitUnknown
	default:
		a.say("Run %s is cancelled.", d.run)
	}
	return nil
}

// steer delivers an operator's decision. Each invocation is a delivery of its own.
func (a *app) steer(ctx context.Context, d *desk, what agent.Decision) (agent.Verdict, error) {
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	v, err := d.host.Engine.Deliver(ctx, d.run, agent.Delivery{
		Key: "cli-" + hex.EncodeToString(key), Actor: d.host.Actor, Decision: what,
	})
	if err == nil && v.Refusal != nil {
		err = d.refused(v.Refusal)
	}
	return v, err
}
