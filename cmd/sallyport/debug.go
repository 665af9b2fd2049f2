package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios"
)

// debugFlags are those of `debug`.
type debugFlags struct {
	do       []string
	id       string
	keep     string
	readOnly bool
	model    string
	passing  bool // the run goes with its folder
	screenFlags
}

func (a *app) debugCommand() *cobra.Command {
	var f debugFlags
	c := &cobra.Command{
		Use: "debug FILE|RUN", Short: "Step through a run, forwards and backwards, and see why it is where it is", Args: cobra.ExactArgs(1),
		Long: `Look at a run step by step, or begin one from a task or scenario file and step through
it as it happens. Going back only reads: nothing is sent again. Where the recording ends,
a step lets the run itself go on by one effect, unless --read-only is given; before that it
is paused. What writes waits for a signature here as everywhere.

A FILE has a dot or a slash in its name. Its run is begun, and held before its first
effect. A scenario's folder is removed at the end unless --keep names one.

On a terminal the debugger has the whole screen, which only looks until :act (or --act)
lets it act; ? is its help. With --line it is a line that commands are typed on; there help
names them. Without a terminal they are read from stdin, or given with
--exec, and the first that fails ends the debugger with its exit code. Leaving the debugger
leaves the run as it is: a paused run stays paused.`,
		Annotations:       map[string]string{formatsKey: string(formatTable)},
		ValidArgsFunction: a.completeRuns(agent.Filter{}),
		RunE:              func(c *cobra.Command, args []string) error { return a.debug(c.Context(), args[0], f) },
	}
	c.Flags().StringArrayVar(&f.do, "exec", nil, "do `COMMAND`, then leave; may be given several times")
	c.Flags().StringVar(&f.id, "id", "", "with a FILE: the `RUN` id")
	c.Flags().StringVar(&f.keep, "keep", "", "with a scenario file: play in `DIR` and keep it")
	c.Flags().BoolVar(&f.readOnly, "read-only", false, "only look: nothing acts on the run")
	c.Flags().StringVar(&f.model, "model", "", "with a FILE: ask an endpoint for the model `NAME`, whatever the file says")
	c.Flags().BoolVar(&a.streams, "stream", false, "show on stderr what the model says as it comes")
	f.screenFlags.flags(c)
	return c
}

// isFile reports whether the argument names a file, which no id of a run can.
func isFile(arg string) bool { return agent.CheckRunID(arg) != nil }

func (a *app) debug(ctx context.Context, arg string, f debugFlags) error {
	if !isFile(arg) {
		if f.id != "" || f.keep != "" || f.model != "" {
			return usage("leave --id, --keep and --model away; to ask another model: fork", "debug run %s: it has its id, its place and its model", arg)
		}
		return a.reading(func(e agent.Engine) error { return a.debugRun(ctx, e, arg, f) })
	}
	if f.readOnly {
		return usage("name a run", "debug %s: --read-only begins nothing", arg)
	}
	f.begun = true
	if f.id != "" {
		if err := agent.CheckRunID(f.id); err != nil {
			return usage("choose another id", "%w", err)
		}
	}
	s, err := a.loadFile(arg, f.model)
	if err != nil {
		return err
	}
	if s.IsScenario() {
		return a.debugScenario(ctx, s, f)
	}
	if f.keep != "" {
		return usage("leave --keep away", "debug %s: --keep is for scenarios; a task works in its own workspace", arg)
	}
	return a.debugTask(ctx, s, f)
}

// debugTask begins a task's run, held.
func (a *app) debugTask(ctx context.Context, s *scenarios.Scenario, f debugFlags) error {
	dir, err := a.statePath()
	if err != nil {
		return err
	}
	operator, err := a.operator("", dir)
	if err != nil {
		return err
	}
	plan := s.Plan()
	if err := plan.CheckApprovers(operator, time.Now()); err != nil {
		return beginErr(ctx, err)
	}
	if plan.Run = f.id; plan.Run == "" {
		plan.Run = scenarios.NewRunID(s.Name())
	}
	return a.opened(func(e agent.Engine, _ string) error {
		host, done, err := a.hostOn(e, dir, plan.Run, operator)
		if err != nil {
			return err
		}
		defer done()
		run, found, err := host.Begin(ctx, plan)
		if err != nil {
			return beginErr(ctx, err)
		}
		a.tellFound(run, found)
		if err := hold(ctx, host, run); err != nil {
			return err
		}
		return a.debugRun(ctx, e, run.ID, f)
	})
}

// debugScenario sets a scenario up and begins its run, held. Its decisions are whoever
// debugs it's to take: the key is in its state directory.
func (a *app) debugScenario(ctx context.Context, s *scenarios.Scenario, f debugFlags) (err error) {
	if len(s.Faults) > 0 {
		return usage("play it with: sallyport test FILE --keep-failed; then debug its run", "debug %s: its processes die, and the debugger would with them", s.File)
	}
	me, err := self()
	if err != nil {
		return err
	}
	o := scenarios.StageOptions{Self: me, Dir: f.keep, Run: f.id, Name: s.Name(), Scripted: true, Endpoint: a.endpoint}
	if a.stateDir != "" {
		if o.State, err = a.statePath(); err != nil {
			return err
		}
	}
	log, done, err := a.stageLog()
	if err != nil {
		return err
	}
	defer done()
	o.Log = log
	st, err := scenarios.SetUp(s, o)
	if err != nil {
		return playErr(ctx, err)
	}
	remove := func() error { return nil }
	if f.passing = f.keep == ""; f.passing {
		remove = st.Remove
		a.lastly(func() { _ = st.Remove() })
	}
	defer func() { err = errors.Join(err, st.Close(), remove()) }()
	a.say("A workspace was made in %s", terminal.Line(st.Desk))
	run, found, err := st.Begin(ctx)
	if err != nil {
		return beginErr(ctx, err)
	}
	a.tellFound(run, found)
	if err := hold(ctx, st.Host, run); err != nil {
		return err
	}
	a.stateDir = st.State
	return a.debugRun(ctx, st.Host.Engine, run.ID, f)
}

// hold pauses a run that was begun just now.
func hold(ctx context.Context, host *scenarios.Host, run agent.Run) error {
	if run.Seq > 1 { // begun before: it is left as it is
		return nil
	}
	_, err := host.Engine.Deliver(ctx, run.ID, agent.Delivery{Key: deliveryKey(""), Actor: host.Actor, Decision: agent.Pause{}})
	return err
}

// debugRun is the debugger on one run of an engine.
func (a *app) debugRun(ctx context.Context, e agent.Engine, id string, f debugFlags) error {
	a.shared = e
	defer func() { a.shared = nil }()
	sh := &shell{app: a, engine: e, out: a.stdout, readOnly: f.readOnly, script: f.do != nil || !a.console().Interactive() || a.noInput}
	if err := sh.open(ctx, id); err != nil {
		return err
	}
	a.code = exitOK
	err := sh.attend(ctx, f)
	if ctx.Err() == nil && !sh.session.Last().State.Final() {
		sh.farewell(f.passing)
	}
	if err == nil {
		a.code = exitOK // how the run ended is not how the debugger did
	}
	return err
}

// farewell says in what state the run is left, and whether it goes with its folder.
func (sh *shell) farewell(passing bool) {
	run := sh.session.Last()
	what := string(run.State)
	if run.Held {
		what += ", paused, and stays so"
	}
	if passing {
		sh.app.say("Run %s was %s. Its folder is removed, and the run with it.", run.ID, what)
		return
	}
	dir, err := sh.app.statePath()
	if err != nil {
		return
	}
	d := &desk{app: sh.app, run: run.ID, more: sh.app.stateFlag(dir)}
	sh.app.say("Run %s is left as it is: %s. Go on with:\n  %s", run.ID, what, d.command("resume", run.ID))
}

// open looks at another run.
func (sh *shell) open(ctx context.Context, id string) error {
	if err := agent.CheckRunID(id); err != nil {
		return usage("list them with: runs", "%w", err)
	}
	s, err := debug.Open(ctx, sh.engine, id)
	if err != nil {
		return err
	}
	sh.session, sh.shown = s, s.Last().Seq
	return nil
}

// historyFile keeps what was typed, in the state directory.
const historyFile = "debug_history"

func (sh *shell) historyPath() (string, error) {
	dir, err := sh.app.statePath()
	if err != nil {
		return "", fmt.Errorf("find the history: %w", err)
	}
	return filepath.Join(dir, historyFile), nil
}
