package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios"
	"sallyport/scenarios/config"
)

// forkFlags are those of `fork`.
type forkFlags struct {
	from  int64
	id    string
	as    string
	model string
	more  agent.Budget
	serve bool
}

// entryNumber is the value of --from.
type entryNumber int64

// Set implements the flag.
func (n *entryNumber) Set(s string) error {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return errors.New("want the number of an entry, as `sallyport journal` shows it")
	}
	*n = entryNumber(v)
	return nil
}

// String implements the flag.
func (n *entryNumber) String() string { return strconv.FormatInt(int64(*n), 10) }

// Type implements the flag.
func (n *entryNumber) Type() string { return "N" }

func (a *app) forkCommand() *cobra.Command {
	var f forkFlags
	c := &cobra.Command{
		Use: "fork RUN", Short: "Begin a new run that goes on from an entry of another", Args: oneRun,
		Long: `Begin a new run that has everything that another had done by an entry of its journal,
and goes on from there. What was sent then is not sent again: its outcome is carried
over. A call that waited for approval is prepared anew, without signatures; a write of
which nobody knows whether it took effect stays unknown. The other run is not changed.

Tools are found anew with the servers of that run, and what is found is pinned; so are
its approvers, and its budgets with what the flags add. What it had used counts.

The id of the fork is printed on stdout. It is not served: go on with
"sallyport resume", or say --serve.`,
		ValidArgsFunction: a.completeRuns(agent.Filter{}),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("from") && f.from < 1 {
				return usage("number an entry as sallyport journal "+args[0]+" does, from 1", "fork run %s: --from %d", args[0], f.from)
			}
			return a.atDesk(args[0], f.as, func(d *desk) error { return a.fork(c.Context(), d, f) })
		},
	}
	c.Flags().Var((*entryNumber)(&f.from), "from", "go on from entry `N` of the journal (default: the last)")
	c.Flags().StringVar(&f.id, "id", "", "`RUN` id of the fork: 1 to 64 of a-z, 0-9 and -; beginning an id twice is once")
	c.Flags().StringVar(&f.as, "as", "", "sign with the key called `NAME`")
	c.Flags().StringVar(&f.model, "model", "", "ask an endpoint for the model `NAME` instead of the run's own model")
	c.Flags().BoolVar(&f.serve, "serve", false, "serve the fork, as resume does")
	additions(c, &f.more)
	return c
}

// fork begins a fork of the desk's run.
func (a *app) fork(ctx context.Context, d *desk, f forkFlags) error {
	c, err := d.continuation(ctx, f)
	if err != nil {
		return err
	}
	return d.beginFork(ctx, c, func(forked *desk) error {
		if f.serve {
			return a.servedFork(ctx, forked)
		}
		return a.begunFork(ctx, forked)
	})
}

// resumeFork goes on with an ended run by a fork of it.
func (a *app) resumeFork(ctx context.Context, d *desk, f resumeFlags) error {
	c, err := d.continuation(ctx, forkFlags{id: f.id, more: f.more})
	if err != nil {
		return err
	}
	if f.noServe {
		return d.beginFork(ctx, c, func(forked *desk) error { return a.begunFork(ctx, forked) })
	}
	// A fork is another run: it does not go on in the cassette of its parent.
	return recording(d.host, f.record, nil, func() error {
		return d.beginFork(ctx, c, func(forked *desk) error {
			forked.host.Record = d.host.Record
			return a.servedFork(ctx, forked)
		})
	})
}

// continuation plans the fork that the flags ask for.
func (d *desk) continuation(ctx context.Context, f forkFlags) (scenarios.Continuation, error) {
	var none scenarios.Continuation
	if f.id != "" {
		if err := agent.CheckRunID(f.id); err != nil {
			return none, usage("choose another id", "%w", err)
		}
		if f.id == d.run {
			return none, usage("choose another id", "fork run %s: --id %s is the run itself", d.run, f.id)
		}
	}
	from := f.from
	if from == 0 {
		run, _, err := scenarios.Load(ctx, d.host.Engine, d.run)
		if err != nil {
			return none, err
		}
		from = run.Seq
	}
	c, err := d.host.Continue(ctx, d.run, from)
	if err != nil {
		return none, d.forkErr(ctx, err)
	}
	if err := d.enough(c, f.more); err != nil {
		return none, err
	}
	c.Budget = sum(c.Budget, f.more)
	if c.Run = f.id; c.Run == "" {
		c.Run = scenarios.NewRunID(d.run)
	}
	if f.model != "" {
		if err := d.otherModel(&c, f.model); err != nil {
			return none, err
		}
	}
	return c, nil
}

// enough refuses additions that are too much, or that leave the fork where a budget
// ended its parent.
func (d *desk) enough(c scenarios.Continuation, more agent.Budget) error {
	if err := tooMuch(c.Was, more); err != nil {
		return err
	}
	over := exceededBy(c.Was)
	if over == nil {
		return nil
	}
	for _, k := range budgetKinds {
		used := spentBudget(c.Was.Used)
		if k.key == over.Budget && (k.of(&more) == 0 || k.of(&c.Was.Budget)+k.of(&more) < k.of(&used)) {
			return usage("add to it, such as: "+over.Flag, "fork run %s: it was ended by %s%s, having used %s of %s, and the fork would be too",
				d.run, budgetReason, over.Budget, over.Used, over.Limit)
		}
	}
	return nil
}

// otherModel lets the fork ask for another model.
func (d *desk) otherModel(c *scenarios.Continuation, name string) error {
	home, err := configHome()
	if err != nil {
		return err
	}
	user, err := config.LoadUser(home)
	if err != nil {
		return usage("", "%w", err)
	}
	if err := c.Ask(name, user, os.Getenv); err != nil {
		return usage("", "%w", err)
	}
	if c.Prices != nil {
		d.app.say("Its cost is counted with the prices of the run that it is a fork of.")
	}
	return nil
}

// beginFork begins the fork, tells what of, and lets use attend to it at a desk.
func (d *desk) beginFork(ctx context.Context, c scenarios.Continuation, use func(*desk) error) error {
	host, done, err := d.app.hostOn(d.host.Engine, d.host.StateDir, c.Run, d.host.Actor)
	if err != nil {
		return err
	}
	defer done()
	run, found, err := host.Fork(ctx, c)
	if err != nil {
		return d.forkErr(ctx, err)
	}
	d.app.tellFound(run, found)
	if changed := c.Changed(run); len(changed) > 0 {
		d.app.say("Pinned as they are now, since their definitions have changed: %s.", terminal.Line(strings.Join(changed, ", ")))
	}
	carried := carriedOver(run.Carried.Calls) + ", and none of them is sent again"
	if run.Carried.Calls == 1 {
		carried = carriedOver(1) + ", and is not sent again"
	}
	d.app.say("Run %s goes on from entry %d of run %s: %s. It has used %s.",
		run.ID, c.Point.Seq, d.run, carried, budgetTexts(budgetRows(spentBudget(run.Used), run.Budget, run.Spec.Prices)))
	return use(&desk{app: d.app, host: host, run: run.ID, signer: d.signer, ask: d.ask, more: d.more})
}

// carriedOver says how many calls a fork has from its parent.
func carriedOver(calls int) string {
	if calls == 1 {
		return "1 call is carried over"
	}
	return fmt.Sprintf("%d calls are carried over", calls)
}

// forkErr gives the errors of a fork their exit codes.
func (d *desk) forkErr(ctx context.Context, err error) error {
	var gone *scenarios.ToolsGone
	var erased *embedded.ErasedError
	var refused *agent.Refusal
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case errors.As(err, &gone):
		return fail(exitUnreachable, "no run was created; have its servers offer them again, as the run's contracts say", "%w", err)
	case errors.As(err, &erased), wasErased(err):
		return fail(exitDenied, "fork it from an entry before the content was named: "+d.command("journal", d.run), "%w", err)
	case errors.As(err, &refused):
		next := "see: " + d.command("journal", d.run)
		if refused.Code == agent.CodeEnded {
			last := "N"
			if c, err := d.host.Continue(ctx, d.run, 0); err == nil {
				last = fmt.Sprint(c.Point.Seq)
			}
			next = "have its last turn taken again with: " + d.command("fork", d.run, "--from", last)
		}
		return fail(forkCode(refused.Code), next, "fork run %s: %s", d.run, refused.Message)
	}
	return beginErr(ctx, err)
}

// forkCode is the exit code of a fork that was refused.
func forkCode(code string) exit {
	switch code {
	case agent.CodeInvalid, agent.CodeBudget:
		return exitUsage
	case agent.CodeUnknown:
		return exitUnknown
	}
	return exitDenied
}

// begunFork is what `fork` tells of a run that it does not serve.
type begunFork struct {
	Run    string      `json:"run"`
	State  agent.State `json:"state"`
	Fork   agent.Fork  `json:"fork"`
	Calls  int         `json:"carried"` // calls that are carried over
	Resume string      `json:"resume"`
}

func (a *app) begunFork(ctx context.Context, d *desk) error {
	run, _, err := scenarios.Load(ctx, d.host.Engine, d.run)
	if err != nil {
		return err
	}
	if a.output != formatTable {
		return a.json(begunFork{run.ID, run.State, *run.Spec.Fork, run.Carried.Calls, d.command("resume", d.run)}, a.output == formatJSON)
	}
	a.say("Go on with it:\n  %s", d.command("resume", d.run))
	return a.print("%s\n", d.run)
}

// servedFork serves a fork, with its id before the answer.
func (a *app) servedFork(ctx context.Context, d *desk) error {
	if a.output == formatTable {
		if err := a.print("%s\n", d.run); err != nil {
			return err
		}
	}
	return d.goOn(ctx)
}
