package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios"
)

func (a *app) extendCommand() *cobra.Command {
	var more agent.Budget
	var once string
	c := &cobra.Command{
		Use: "extend RUN", Short: "Raise the budgets of an open run", Args: oneRun,
		Long: `Raise budgets of an open run by what the flags say, each with its plus sign, and print
what the run has used and what it may use now. It does not serve the run: "sallyport
resume" does, and takes the same flags. A run that has ended cannot be extended;
resume goes on with a fork of it.

Each call of this command adds. With --once KEY the same addition counts once, however
often it is sent.`,
		ValidArgsFunction: a.completeRuns(agent.Filter{Open: true}),
		RunE: func(c *cobra.Command, args []string) error {
			if more == (agent.Budget{}) {
				return usage("say what to add, such as --calls +5", "extend run %s: nothing is to be added", args[0])
			}
			return a.atDesk(args[0], "", func(d *desk) error { return a.extend(c.Context(), d, more, once) })
		},
	}
	additions(c, &more)
	c.Flags().StringVar(&once, "once", "", "count all calls with this `KEY` once: 1 to 64 letters, digits and ._-")
	return c
}

// extended is what `extend` tells.
type extended struct {
	Run      string       `json:"run"`
	Seq      int64        `json:"seq"` // of the entry that records it
	Added    agent.Budget `json:"added"`
	Used     agent.Budget `json:"used"`
	Budget   agent.Budget `json:"budget"`
	Currency string       `json:"currency,omitempty"`
}

func (a *app) extend(ctx context.Context, d *desk, more agent.Budget, once string) error {
	run, seq, err := d.extend(ctx, more, once)
	if err != nil {
		return err
	}
	used := spentBudget(run.Used)
	if a.output == formatTable {
		if run.Held {
			a.say("Run %s stays paused. Go on with:\n  %s", d.run, d.command("resume", d.run))
		}
		return list(a, []string{"BUDGET", "USED", "LIMIT"}, budgetRows(used, run.Budget, run.Spec.Prices))
	}
	told := extended{Run: d.run, Seq: seq, Added: more, Used: used, Budget: run.Budget}
	if run.Spec.Prices != nil {
		told.Currency = run.Spec.Prices.Currency
	}
	return a.json(told, a.output == formatJSON)
}

var onceForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// extend raises the budgets of the run, and returns it as it is then, with the entry
// that records the extension.
func (d *desk) extend(ctx context.Context, more agent.Budget, once string) (agent.Run, int64, error) {
	if once != "" && !onceForm.MatchString(once) {
		return agent.Run{}, 0, usage("1 to 64 letters, digits and ._-", "extend run %s: --once %q is no key", d.run, once)
	}
	run, _, err := scenarios.Load(ctx, d.host.Engine, d.run)
	if err != nil {
		return run, 0, err
	}
	if run.State.Final() && once == "" {
		return run, 0, d.notExtended(run, more)
	}
	if err := tooMuch(run, more); err != nil {
		return run, 0, err
	}
	v, err := d.host.Engine.Deliver(ctx, d.run, agent.Delivery{
		Key: deliveryKey(once), Actor: d.host.Actor, Decision: agent.Extend{Budget: more},
	})
	switch {
	case err != nil:
		return run, 0, err
	case v.Refusal != nil && v.Refusal.Code == agent.CodeEnded:
		return run, 0, d.notExtended(run, more)
	case v.Refusal != nil && (v.Refusal.Code == agent.CodeInvalid || v.Refusal.Code == agent.CodeBudget):
		return run, 0, usage("", "extend run %s: %s", d.run, v.Refusal.Message)
	case v.Refusal != nil:
		return run, 0, d.refused(v.Refusal)
	}
	return d.wasExtended(ctx, v.Seq, more)
}

// notExtended is the failure to extend a run that has ended.
func (d *desk) notExtended(run agent.Run, more agent.Budget) error {
	next := d.command("resume", d.run, flagsOf(more))
	if run.State == agent.StateCompleted {
		next = d.command("fork", d.run, "--from", "N")
	}
	return fail(exitDenied, "go on with a fork of it: "+next, "extend run %s: it has ended: %s", d.run, terminal.Line(stateWords(run)))
}

// flagsOf are the flags that add a budget.
func flagsOf(more agent.Budget) string {
	text := ""
	for _, k := range budgetKinds {
		if n := k.of(&more); n > 0 {
			text += fmt.Sprintf(" --%s +%s", k.flag, k.show(n))
		}
	}
	return text[min(1, len(text)):]
}

// wasExtended loads the run and checks that the entry records this extension: a key
// that was used for another gives the verdict on that.
func (d *desk) wasExtended(ctx context.Context, seq int64, more agent.Budget) (agent.Run, int64, error) {
	run, entries, err := scenarios.Load(ctx, d.host.Engine, d.run)
	if err != nil {
		return run, 0, err
	}
	for _, e := range entries {
		if e.Seq != seq {
			continue
		}
		p, err := e.Payload()
		if err != nil {
			return run, 0, err
		}
		if x, ok := p.(agent.Extend); !ok || x.Budget != more {
			return run, 0, usage("choose another key", "extend run %s: the key of --once was used for something else, in entry %d", d.run, seq)
		}
		return run, seq, nil
	}
	return run, 0, errors.New("the verdict names an entry that is not in the journal")
}
