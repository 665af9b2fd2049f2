package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios"
	"sallyport/tools/strictjson"
)

// demoFlags are those of `demo`.
type demoFlags struct {
	decide decide
	keep   string
}

func (a *app) demoCommand() *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use: "demo", Short: "See the main job: from a document to a signed report", Args: cobra.NoArgs,
		Long: `Play the main job in a temporary folder: the tools are found, a document is searched
and read, and a report is proposed. It is shown in full and saved only if you type
approve; anything else cancels, and no file is written. It needs no account, key,
network or set-up, and cleans up after itself.

Without a terminal nobody is asked: the folder is kept, the command exits with 5 and
prints how to go on.`,
		RunE: func(c *cobra.Command, _ []string) error { return a.demo(c.Context(), f) },
	}
	c.Flags().Var(&f.decide, "decide", "decide beforehand: approve, reject or wait")
	c.Flags().StringVar(&f.keep, "keep", "", "work in `DIR`, which must be empty, and keep it")
	return c
}

// demoName begins the run id and the folder of a demo.
const demoName = "demo"

func (a *app) demo(ctx context.Context, f demoFlags) (err error) {
	if a.configFile != "" {
		return usage("leave --config away", "demo: --config %s: the demo brings its own configuration", a.configFile)
	}
	me, err := self()
	if err != nil {
		return err
	}
	s, err := scenarios.Demo()
	if err != nil {
		return err
	}
	verb := scenarios.Verb(f.decide)
	o := scenarios.StageOptions{
		Self: me, Dir: f.keep, Name: demoName, Scripted: verb == scenarios.VerbApprove || verb == scenarios.VerbReject,
	}
	if a.stateDir != "" {
		if o.State, err = a.statePath(); err != nil {
			return err
		}
	}
	if !o.Scripted {
		if o.Actor, err = a.operator("", ""); err != nil {
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
	d := &demonstration{app: a, stage: st, verb: verb, kept: f.keep != ""}
	a.lastly(func() { _ = d.cleanUp() })
	defer func() { err = errors.Join(err, d.end()) }()
	return d.play(ctx)
}

// demonstration is a demo under way.
type demonstration struct {
	app   *app
	stage *scenarios.Stage
	verb  scenarios.Verb // empty: a person decides
	kept  bool           // the folder stays
}

// end closes everything and removes the folder unless it is to stay.
func (d *demonstration) end() error {
	return errors.Join(d.stage.Close(), d.cleanUp())
}

func (d *demonstration) cleanUp() error {
	if d.kept {
		return nil
	}
	return d.stage.Remove()
}

func (d *demonstration) play(ctx context.Context) error {
	a, st := d.app, d.stage
	a.say("A workspace was made in %s", terminal.Line(st.Desk))
	run, found, err := st.Begin(ctx)
	if err != nil {
		return beginErr(ctx, err)
	}
	a.tellFound(run, found)
	desk := &desk{
		app: a, host: st.Host, run: run.ID, more: "--state " + quoted(st.State),
		ask: d.verb == "" && a.asks(), keepTyped: true, endOnRefusal: true,
		key: &st.Keys[0], passing: !d.kept,
	}
	if d.verb == scenarios.VerbApprove || d.verb == scenarios.VerbReject {
		desk.scripted = d.verb
	}
	run, err = desk.attend(ctx)
	if err != nil {
		return desk.interrupted(run, err)
	}
	return d.conclude(ctx, desk, run)
}

// conclude says what came of it: saved, refused, or waiting.
func (d *demonstration) conclude(ctx context.Context, desk *desk, run agent.Run) error {
	_, entries, err := scenarios.Load(ctx, d.stage.Host.Engine, run.ID)
	if err != nil {
		return err
	}
	calls, err := scenarios.Calls(entries)
	if err != nil {
		return err
	}
	last := calls[len(calls)-1]
	switch {
	case run.State == agent.StateAwaitingApproval:
		d.kept = true
		d.app.code = desk.report(run)
		d.app.say("The folder is kept until you remove it:\n  rm -r %s", quoted(d.stage.Dir))
		return nil
	case last.Status == agent.StatusOK && run.State == agent.StateCompleted:
		return d.saved(ctx, desk, run, entries)
	case last.Reason == agent.ReasonRefused:
		return d.refused(ctx, desk, run)
	}
	d.app.code = max(desk.report(run), exitFailed)
	return nil
}

// saved reads the report back and compares it with what was approved.
func (d *demonstration) saved(ctx context.Context, desk *desk, run agent.Run, entries []agent.Entry) error {
	args, err := sentArguments(ctx, d.stage.Host.Engine, run.ID, entries)
	if err != nil {
		return err
	}
	path := filepath.Join(d.stage.Desk, "reports", args.Filename)
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read the report back: %w", err)
	}
	if string(data) != args.Content {
		return fail(exitFailed, "", "read the report back: %q has other content than was approved", path)
	}
	d.app.say("Read back %s: %d bytes, sha256 %s, exactly what was approved.", terminal.Line(path), len(data), strictjson.Digest(data))
	d.app.say("That a file was saved shows that the chain of tools works, not that the report is right.")
	d.app.code = desk.report(run)
	if d.app.output != formatTable {
		return d.app.result(ctx, d.stage.Host.Engine, run)
	}
	return d.app.modelText("The report", string(data))
}

// refused cancels what is left of the run and checks that nothing was written.
func (d *demonstration) refused(ctx context.Context, desk *desk, run agent.Run) error {
	if run.State.Open() {
		if _, err := d.app.steer(ctx, desk, agent.Cancel{}); err != nil {
			return err
		}
	}
	left, err := os.ReadDir(filepath.Join(d.stage.Desk, "reports"))
	if err != nil {
		return fmt.Errorf("look for reports: %w", err)
	}
	if len(left) > 0 {
		return fail(exitFailed, "", "the save was refused, and yet there is a file")
	}
	d.app.say("Refused: the run is cancelled, and nothing was written.")
	d.app.code = exitFailed
	if d.app.output != formatTable {
		return d.app.result(ctx, d.stage.Host.Engine, run)
	}
	return nil
}

// saveArguments are those of the save, as far as they are compared.
type saveArguments struct {
	Filename string `json:"filename"`
	Content  string `json:"content"`
}

// sentArguments are the argument bytes of the last intent of a run.
func sentArguments(ctx context.Context, e agent.Engine, run string, entries []agent.Entry) (saveArguments, error) {
	var args saveArguments
	for i := len(entries) - 1; i >= 0; i-- {
		p, err := entries[i].Payload()
		if err != nil {
			return args, err
		}
		checked, ok := p.(agent.Checked)
		if !ok {
			continue
		}
		data, err := e.Body(ctx, run, checked.Arguments)
		if err != nil {
			return args, fmt.Errorf("read the approved arguments: %w", err)
		}
		return args, strictjson.Decode(data, &args)
	}
	return args, errors.New("read the approved arguments: no call was sent")
}
