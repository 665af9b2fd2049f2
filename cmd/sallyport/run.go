package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/nodes/llm"
	"sallyport/scenarios"
	"sallyport/scenarios/config"
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
	modelFlags
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
	c.Flags().StringVar(&f.model, "model", "", "ask an endpoint for the model `NAME`, whatever the files say")
	a.asked(c, &f.modelFlags)
	return c
}

func (a *app) run(ctx context.Context, path string, f runFlags) error {
	if path == "" {
		return usage("name a task or scenario file", "run: the name of the file is empty")
	}
	s, err := a.loadFile(path, f.model)
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
	dir, err := a.statePath()
	if err != nil {
		return err
	}
	operator, err := a.operator(f.as, dir)
	if err != nil {
		return err
	}
	plan := s.Plan()
	if err := plan.CheckApprovers(operator, time.Now()); err != nil {
		return beginErr(ctx, err) // before a state directory is made
	}
	plan.Run = f.id
	if plan.Run == "" {
		plan.Run = scenarios.NewRunID(s.Name())
	}
	return a.opened(func(e agent.Engine, _ string) error {
		host, done, err := a.hostOn(e, dir, plan.Run, operator)
		if err != nil {
			return err
		}
		defer done()
		return recording(host, f.record, nil, func() error { return a.begin(ctx, host, plan, f, dir) })
	})
}

// begin begins a task's run, and attends to it.
func (a *app) begin(ctx context.Context, host *scenarios.Host, plan scenarios.Plan, f runFlags, dir string) error {
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
}

// beginErr gives the errors of a beginning their exit codes.
func beginErr(ctx context.Context, err error) error {
	var missing *scenarios.Unreachable
	var parked *scenarios.NotApprovable
	var clash *scenarios.Clash
	switch {
	case context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case errors.As(err, &parked):
		return fail(exitNoKey, approvable(parked), "no run was created: %w", err)
	case errors.As(err, &clash):
		return usage("", "%w", err)
	case errors.As(err, &missing):
		return fail(exitUnreachable, "no run was created; mend the server, or mark it optional", "%w", err)
	}
	return err
}

// approvable says what to do so that somebody can approve.
func approvable(n *scenarios.NotApprovable) string {
	if len(n.Able)+len(n.Unable) == 0 {
		return "make a key with: sallyport keys new"
	}
	for _, u := range n.Unable {
		if u.Why == scenarios.WhyRole {
			return fmt.Sprintf("give a key the role in your own %s: approvers: [{key: NAME, roles: [%s]}]", config.UserFile, n.Role)
		}
	}
	return fmt.Sprintf("list keys of other people under approvers in your own %s; a key of your own: sallyport keys new --as NAME", config.UserFile)
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
		text := p.Error()
		if detail := strings.TrimSpace(p.Detail); detail != "" {
			text += ": " + detail
		}
		a.say("Not offered: %s", terminal.Message(text))
	}
}

// result writes what a run came to on stdout: its answer, or all of it as JSON.
func (a *app) result(ctx context.Context, e agent.Engine, run agent.Run) error {
	if a.output == formatTable {
		text, err := answer(ctx, e, run)
		if gone := new(embedded.ErasedError); errors.As(err, &gone) {
			a.say("The answer was erased at %s by %s.", clock(gone.At), terminal.Line(gone.By))
			return nil
		}
		if err != nil || text == "" {
			return err
		}
		return a.modelText("The answer", text)
	}
	s, err := a.showRun(ctx, e, run.ID)
	if err != nil {
		return err
	}
	return a.json(s, a.output == formatJSON)
}

// play plays a scenario and reports.
func (a *app) play(ctx context.Context, s *scenarios.Scenario, f runFlags) (err error) {
	o, done, err := a.playOptions(f)
	if err != nil {
		return err
	}
	defer done()
	var end func() error
	if o.Record, end, err = recorder(f.record, nil); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	r, err := scenarios.Play(ctx, s, o)
	if err != nil {
		return a.unplayed(ctx, r, playErr(ctx, err))
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

// unplayed adds to the error of a play what is left of it.
func (a *app) unplayed(ctx context.Context, r scenarios.Result, err error) error {
	if context.Cause(ctx) == nil {
		return err
	}
	if r.Dir == "" {
		return fail(exitInterrupted, "", "%w; the folder of the scenario is removed, and its run with it", err)
	}
	d := &desk{run: r.Run, more: "--state " + quoted(r.StateDir)}
	return fail(exitInterrupted, d.command("resume", r.Run), "%w; the folder is kept: %q", err, r.Dir)
}

func playErr(ctx context.Context, err error) error {
	var place *scenarios.PlaceError
	var script *llm.ScriptError
	switch {
	case errors.As(err, &script):
		return usage("mend the script", "%s: %w", scriptFault, script)
	case replayErr(err, "") != nil:
		return replayErr(err, "play it with what it was recorded with, or record it anew with --record")
	case errors.Is(err, scenarios.ErrNotEmpty):
		return usage("choose a folder that is not there yet", "%w", err)
	case errors.As(err, &place):
		return usage("give folders of your own on a local disk", "%w", err)
	}
	return beginErr(ctx, err)
}

// stageLog is where the JSON log of a stage goes if --log-file says so; nil if not. The
// caller calls done.
func (a *app) stageLog() (to io.Writer, done func(), err error) {
	if a.logFile == "" {
		return nil, func() {}, nil
	}
	return a.log("", "")
}

// playOptions plays with a folder of its own, and tells every transition. The caller
// calls done.
func (a *app) playOptions(f runFlags) (o scenarios.PlayOptions, done func(), err error) {
	self, err := self()
	if err != nil {
		return o, nil, err
	}
	state := a.stateDir
	if state != "" {
		if state, err = a.statePath(); err != nil {
			return o, nil, err
		}
	}
	log, done, err := a.stageLog()
	if err != nil {
		return o, nil, err
	}
	return scenarios.PlayOptions{
		StageOptions: scenarios.StageOptions{Self: self, Dir: f.keep, State: state, Run: f.id, Log: log, Endpoint: a.endpoint, Show: a.shown},
		Decide:       scenarios.Verb(f.decide), Keep: f.keep != "",
		Began: func(st *scenarios.Stage, run agent.Run) func(agent.Run) {
			if f.keep == "" {
				a.lastly(func() { _ = st.Remove() })
			}
			a.lastly((&desk{app: a, run: run.ID, more: "--state " + quoted(st.State), passing: f.keep == ""}).endAtOnce)
			told := a.progress(context.Background(), st.Host.Engine, run.ID)
			return func(last agent.Run) {
				told.reach(last.Seq)
				told.stop()
			}
		},
		Present: func(ctx context.Context, st *scenarios.Stage, run agent.Run) error {
			return (&desk{app: a, host: st.Host, run: run.ID}).show(ctx, run)
		},
	}, done, nil
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
		at := r.File
		if m.Line > 0 {
			at = fmt.Sprintf("%s:%d", m.File, m.Line)
		}
		if err := a.print("      %s\n", terminal.Line(fmt.Sprintf("%s: %s", at, m))); err != nil {
			return err
		}
	}
	return nil
}
