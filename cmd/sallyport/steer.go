package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/scenarios"
)

// The commands of the operator: resume, pause, cancel; extend.go and fork.go have the others.

// resumeFlags are those of `resume`.
type resumeFlags struct {
	as      string
	id      string
	more    agent.Budget
	noServe bool
	modelFlags
}

func (a *app) resumeCommand() *cobra.Command {
	var f resumeFlags
	c := &cobra.Command{
		Use: "resume RUN", Short: "Go on with a run that was parked, paused, interrupted, left by a crash, or ended by a budget", Args: oneRun,
		Long: `Go on with a run. With --calls, --turns, --tokens, --wall or --cost, each with its plus
sign, its budgets are raised first, as "sallyport extend" does. A run that has ended
stays as it is: then a fork of it is begun, which has everything that the run had done
and goes on before the call or turn that was refused. Its id is printed on stdout.
Nothing that was sent before is sent again.`,
		ValidArgsFunction: a.completeRuns(agent.Filter{Open: true}),
		RunE:              func(c *cobra.Command, args []string) error { return a.resume(c.Context(), args[0], f) },
	}
	c.Flags().StringVar(&f.as, "as", "", "sign with the key called `NAME` if a candidate is asked about")
	c.Flags().StringVar(&f.id, "id", "", "`RUN` id of the fork of a run that has ended; beginning an id twice is once")
	c.Flags().BoolVar(&f.noServe, "no-serve", false, "raise budgets or begin the fork only; do not serve it")
	additions(c, &f.more)
	a.asked(c, &f.modelFlags)
	return c
}

func (a *app) resume(ctx context.Context, id string, f resumeFlags) error {
	adds := f.more != (agent.Budget{})
	if f.noServe && !adds {
		return usage("leave --no-serve away, or say what to add, such as --calls +5", "resume run %s: nothing is to be done", id)
	}
	return a.atDesk(id, f.as, func(d *desk) error {
		run, _, err := scenarios.Load(ctx, d.host.Engine, id)
		if err != nil {
			return err
		}
		switch {
		case run.State.Final() && adds:
			return a.resumeFork(ctx, d, f)
		case run.State.Final():
			a.say("Run %s has ended already.", id)
			a.code = d.report(run)
			return a.result(ctx, d.host.Engine, run)
		case f.id != "":
			return usage("leave --id away: an open run is extended, not forked", "resume run %s: --id %s: it has not ended", id, f.id)
		}
		if f.noServe {
			return a.extend(ctx, d, f.more, "")
		}
		return recording(d.host, f.record, &run, func() error { return a.goOnWith(ctx, d, run, f.more) })
	})
}

// goOnWith goes on with an open run, which is extended first if there is something to add.
func (a *app) goOnWith(ctx context.Context, d *desk, run agent.Run, more agent.Budget) (err error) {
	if more != (agent.Budget{}) {
		if run, _, err = d.extend(ctx, more, ""); err != nil {
			return err
		}
		a.say("Run %s is extended; it has used %s.", run.ID, budgetTexts(budgetRows(spentBudget(run.Used), run.Budget, run.Spec.Prices)))
	}
	if run.Held {
		if _, err := a.steer(ctx, d, agent.Resume{}); err != nil {
			return err
		}
	}
	d.alone = true
	return d.goOn(ctx)
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
	v, err := d.host.Engine.Deliver(ctx, d.run, agent.Delivery{Key: deliveryKey(""), Actor: d.host.Actor, Decision: what})
	if err == nil && v.Refusal != nil {
		err = d.refused(v.Refusal)
	}
	return v, err
}

// deliveryKey is a key that the caller chose, or a new one.
func deliveryKey(once string) string {
	if once != "" {
		return "cli-once-" + once
	}
	key := make([]byte, 16)
	_, _ = rand.Read(key) // never fails
	return "cli-" + hex.EncodeToString(key)
}
