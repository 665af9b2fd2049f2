package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios"
	"sallyport/tools/bridge"
)

// decide is the value of --decide.
type decide scenarios.Verb

// Set implements the flag.
func (d *decide) Set(s string) error {
	all := []scenarios.Verb{scenarios.VerbApprove, scenarios.VerbReject, scenarios.VerbWait}
	if !slices.Contains(all, scenarios.Verb(s)) {
		return errors.New("want approve, reject or wait")
	}
	*d = decide(s)
	return nil
}

// String implements the flag.
func (d *decide) String() string { return string(*d) }

// Type implements the flag.
func (d *decide) Type() string { return "DECISION" }

// runFlags are those of `run`.
type runFlags struct {
	decide decide
	id, as string
	keep   string
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use: "run FILE", Short: "Run a task file, or play a scenario file", Args: cobra.ExactArgs(1),
		Long: `Run a task file: the agent works until it has an answer. What writes is shown in
full and asked about on this terminal; without one, or with --decide wait, the run
parks and the command exits with 5. While it asks, "sallyport approve" in another
terminal lets it go on.

A scenario file brings its own workspace, model and decisions. It is played in a
temporary folder and compared with what it expects.`,
		RunE: func(c *cobra.Command, args []string) error { return a.run(c.Context(), args[0], f) },
	}
	c.Flags().Var(&f.decide, "decide", "with a task file only wait: park, ask nobody; scenarios take approve and reject too")
	c.Flags().StringVar(&f.id, "id", "", "`RUN` id: 1 to 64 of a-z, 0-9 and -; beginning an id twice is once")
	c.Flags().StringVar(&f.as, "as", "", "sign with the key called `NAME`")
	c.Flags().StringVar(&f.keep, "keep", "", "play the scenario in `DIR` and keep it")
	return c
}

func (a *app) run(ctx context.Context, path string, f runFlags) error {
	s, err := a.loadFile(path)
	if err != nil {
		return err
	}
	if f.id != "" {
		if err := agent.CheckRunID(f.id); err != nil {
			return usage("choose another id", "%w", err)
		}
	}
	if s.IsScenario() {
		return a.play(ctx, s, f)
	}
	switch {
	case f.decide != "" && scenarios.Verb(f.decide) != scenarios.VerbWait:
		return usage("decide yourself, on a terminal or with: sallyport approve RUN",
			"run %s: --decide %s: with a task file only wait can be said beforehand", path, f.decide)
	case f.keep != "":
		return usage("leave --keep away", "run %s: --keep is for scenarios; a task works in its own workspace", path)
	}
	return a.runTask(ctx, s, f)
}

func (a *app) runTask(ctx context.Context, s *scenarios.Scenario, f runFlags) error {
	if err := canApprove(s); err != nil {
		return err
	}
	dir, err := a.statePath()
	if err != nil {
		return err
	}
	plan := s.Plan()
	plan.Run = f.id
	if plan.Run == "" {
		plan.Run = scenarios.NewRunID(s.Name())
	}
	return a.opened(func(e agent.Engine, _ string) error {
		host, done, err := a.hostOn(e, dir, plan.Run)
		if err != nil {
			return err
		}
		defer done()
		run, found, err := host.Begin(ctx, plan)
		if err != nil {
			return beginErr(ctx, err)
		}
		a.tellFound(run, found)
		d := &desk{
			app: a, host: host, run: run.ID, signer: signer{a, f.as, dir}, more: a.stateFlag(dir),
			ask: a.asks() && f.decide == "",
		}
		return d.goOn(ctx)
	})
}

// canApprove refuses a task whose tools need approvals that nobody could give.
func canApprove(s *scenarios.Scenario) error {
	if len(s.Config.Keys) > 0 {
		return nil
	}
	for _, c := range s.Config.Tools {
		if c.Approvers() > 0 {
			return fail(exitNoKey, "make a key with: sallyport keys new",
				"run %s: tool %s needs an approval, and you have no key to give it with", s.File, c.Name)
		}
	}
	return nil
}

// beginErr gives the errors of a beginning their exit codes.
func beginErr(ctx context.Context, err error) error {
	var missing *scenarios.Unreachable
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case errors.As(err, &missing):
		return fail(exitUnreachable, "no run was created; mend the server, or mark it optional", "%w", err)
	}
	return err
}

// tellFound says what was discovered.
func (a *app) tellFound(run agent.Run, found bridge.Found) {
	names := make([]string, len(found.Exposed))
	for i, t := range found.Exposed {
		names[i] = terminal.Line(t.Name)
	}
	protocols := make([]string, len(found.Servers))
	for i, s := range found.Servers {
		protocols[i] = terminal.Line(s.Prefix + " (MCP " + s.Protocol + ")")
	}
	a.say("Run %s. Servers: %s. Tools: %s.", run.ID, strings.Join(protocols, ", "), strings.Join(names, ", "))
	for _, p := range found.Problems {
		a.say("Not offered: %s", terminal.Line(p.Error()))
	}
}

// result writes what a run came to on stdout: its answer, or all of it as JSON.
func (a *app) result(ctx context.Context, e agent.Engine, run agent.Run) error {
	if a.output == formatTable {
		text, err := answer(ctx, e, run)
		if err != nil || text == "" {
			return err
		}
		shown, _ := terminal.Escape(text)
		return a.print("%s\n", strings.TrimSuffix(shown, "\n"))
	}
	s, err := showRun(ctx, e, run.ID)
	if err != nil {
		return err
	}
	return a.json(s, a.output == formatJSON)
}

// play plays a scenario and reports.
func (a *app) play(ctx context.Context, s *scenarios.Scenario, f runFlags) error {
	o, err := a.playOptions(f)
	if err != nil {
		return err
	}
	r, err := scenarios.Play(ctx, s, o)
	if err != nil {
		return playErr(ctx, err)
	}
	if !r.Passed() {
		a.code = exitFailed
	} else if !r.Compared {
		a.code = codeOfRun(r.Last)
	}
	if r.Dir != "" {
		a.say("The folder is kept: %s", terminal.Line(r.Dir))
	}
	if r.Last.State.Open() {
		a.code = max(a.code, (&desk{app: a, run: r.Run, more: "--state " + quoted(r.StateDir)}).report(r.Last))
	}
	return a.scenarioResult(r)
}

func playErr(ctx context.Context, err error) error {
	var place *scenarios.PlaceError
	switch {
	case errors.Is(err, scenarios.ErrNotEmpty):
		return usage("choose a folder that is not there yet", "%w", err)
	case errors.As(err, &place):
		return usage("give folders of your own on a local disk", "%w", err)
	}
	return beginErr(ctx, err)
}

// playOptions plays with a folder of its own, and tells every transition.
func (a *app) playOptions(f runFlags) (scenarios.PlayOptions, error) {
	self, err := self()
	if err != nil {
		return scenarios.PlayOptions{}, err
	}
	state := a.stateDir
	if state != "" {
		if state, err = a.statePath(); err != nil {
			return scenarios.PlayOptions{}, err
		}
	}
	return scenarios.PlayOptions{
		StageOptions: scenarios.StageOptions{Self: self, Dir: f.keep, State: state, Run: f.id},
		Decide:       scenarios.Verb(f.decide), Keep: f.keep != "",
		Began: func(st *scenarios.Stage, run agent.Run) func(agent.Run) {
			told := a.progress(context.Background(), st.Host.Engine, run.ID)
			return func(last agent.Run) {
				told.reach(last.Seq)
				told.stop()
			}
		},
		Present: func(ctx context.Context, st *scenarios.Stage, run agent.Run) error {
			return (&desk{app: a, host: st.Host, run: run.ID}).show(ctx, run)
		},
	}, nil
}

// scenarioResult says how a play ended.
func (a *app) scenarioResult(r scenarios.Result) error {
	if a.output != formatTable {
		return a.json(r, a.output == formatJSON)
	}
	verdict := "PASS"
	switch {
	case !r.Passed():
		verdict = "FAIL"
	case !r.Compared:
		verdict = strings.ToUpper(string(r.State))
	}
	if err := a.print("%s  %s\n", verdict, terminal.Line(r.Scenario)); err != nil {
		return err
	}
	for _, m := range r.Mismatches {
		if err := a.print("      %s\n", terminal.Line(fmt.Sprintf("%s: %s", r.File, m))); err != nil {
			return err
		}
	}
	return nil
}
