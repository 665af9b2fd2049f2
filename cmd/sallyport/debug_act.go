package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/nodes"
	"sallyport/scenarios"
)

// The verbs that act are the commands of the same name, on the run as it is now: the same
// display in full, the same keys, the same refusals.
func actingVerbs() []verb {
	return []verb{
		{names: []string{"approve"}, args: "[--sha256 DIGEST] [--as NAME]", says: "show the pending candidate in full, ask, and sign exactly its bytes", acts: true, do: (*shell).approve},
		{names: []string{"reject"}, args: "[--signed] [--as NAME]", says: "refuse the pending candidate for good", acts: true, do: (*shell).reject},
		{names: []string{"edit"}, args: "[=FILE] [--field NAME]", says: "change its arguments, signed; the new candidate is asked about", acts: true, do: (*shell).edit},
		{names: []string{"verify"}, args: "[--applied|--not-applied|--unknown] [--as NAME]", says: "say, signed, what became of a write whose outcome is unknown", acts: true, do: (*shell).verify},
		{names: []string{"extend"}, args: "--calls +N ...", says: "raise the budgets", acts: true, do: (*shell).extend},
		{names: []string{"pause"}, says: "withhold all that the run has not started, wherever it is served", acts: true, do: (*shell).pause},
		{names: []string{"resume"}, says: "release it, and serve the run here until it ends or waits", acts: true, do: (*shell).resume},
		{names: []string{"cancel"}, args: "[--abandon]", says: "end the run; a write in flight is settled first", acts: true, do: (*shell).cancel},
		{names: []string{"fork"}, args: "[--from SEQ] [--set BUDGET=+N] [--model NAME] [--id RUN]", says: forkHelp, acts: true, do: (*shell).fork},
		{names: []string{"substitute"}, args: "answer TEXT | call TOOL JSON | result STATUS [JSON]", says: substituteHelp, acts: true, do: (*shell).substitute,
			complete: func(*shell) []string { return []string{"answer", "call", "result"} }},
	}
}

const (
	forkHelp = `begin a new run that goes on from here, and look at that one
It has what this run had done by the step under the cursor, or by entry SEQ of its
journal. What was sent is not sent again; what writes needs new signatures. --set adds to a
budget, such as --set calls=+5. The run that it is a fork of is not changed.`
	substituteHelp = `in a fork: give what the model, or a call that is not sent, will have said
answer TEXT: the model's next turn is this answer. call TOOL JSON: it proposes this call.
result STATUS [JSON]: the call in hand has this status (ok, of a call that reads; failed,
rejected, unavailable) and this structured content. It is journaled as an operator's.`
)

// words cuts a line into words. What stands in single or double quotes is one.
func splitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	var quote rune
	begun := false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case r == ' ' || r == '\t':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if quote != 0 {
		return nil, usage("", "a quote %c is not closed", quote)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// command does a command of the program itself.
func (sh *shell) command(ctx context.Context, c *cobra.Command, line string, more ...string) error {
	args, err := splitWords(line)
	if err != nil {
		return err
	}
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetArgs(append(append([]string{}, more...), args...)) // nil would be the arguments of the process
	c.SetOut(sh.app.stdout)
	c.SetErr(sh.app.stderr)
	err = c.ExecuteContext(ctx)
	var known *failure
	if err != nil && !errors.As(err, &known) {
		if _, next := codeOf(err); next == "" && strings.Contains(err.Error(), "flag") {
			return usage("see: help "+c.Name(), "%w", err)
		}
	}
	return err
}

// act does a command on the run as it is now, and looks at what came of it.
func (sh *shell) act(ctx context.Context, c *cobra.Command, line string, more ...string) error {
	if at := sh.session.Position(); at.Step < at.Steps {
		sh.print("The cursor is %s; this acts on the run as it is now.\n", at)
	}
	err := sh.command(ctx, c, line, append([]string{sh.session.ID()}, more...)...)
	return errors.Join(err, sh.acted(ctx, err == nil))
}

// acted tells what was appended, and goes there.
func (sh *shell) acted(ctx context.Context, whole bool) error {
	if err := sh.tell(ctx); err != nil {
		return err
	}
	if !whole || sh.session.Position().Step == sh.session.Steps() {
		return nil
	}
	if _, err := sh.session.Goto(context.WithoutCancel(ctx), sh.session.Steps()); err != nil {
		return err
	}
	return sh.where(ctx)
}

func (sh *shell) approve(ctx context.Context, args string) error {
	return sh.act(ctx, sh.app.approveCommand(), args, "--no-resume")
}

func (sh *shell) reject(ctx context.Context, args string) error {
	return sh.act(ctx, sh.app.rejectCommand(), args, "--no-resume")
}

func (sh *shell) edit(ctx context.Context, args string) error {
	flag := "--edit"
	if file, ok := strings.CutPrefix(args, "="); ok {
		file, args, _ = strings.Cut(file, " ")
		flag += "=" + file
	}
	return sh.act(ctx, sh.app.approveCommand(), args, "--no-resume", flag)
}

func (sh *shell) verify(ctx context.Context, args string) error {
	return sh.act(ctx, sh.app.verifyCommand(), args, "--no-resume")
}

func (sh *shell) extend(ctx context.Context, args string) error {
	return sh.act(ctx, sh.app.extendCommand(), args)
}

func (sh *shell) pause(ctx context.Context, args string) error {
	return sh.act(ctx, sh.app.pauseCommand(), args)
}

// resume releases the run and attends to it until it rests, here or wherever it is
// served. Unlike the command of that name it asks about nothing: approve does.
func (sh *shell) resume(ctx context.Context, args string) error {
	if args != "" {
		return usage("raise budgets with extend; go on with a run that has ended with fork", "resume: %q is too much", args)
	}
	if _, err := sh.session.Refresh(ctx); err != nil {
		return err
	}
	run := sh.session.Last()
	if run.State.Final() {
		return fail(exitDenied, "fork it", "resume run %s: it has ended: %s", run.ID, terminal.Line(stateWords(run)))
	}
	err := sh.app.atDesk(run.ID, "", func(d *desk) error {
		if run.Held {
			if _, err := sh.app.steer(ctx, d, agent.Resume{}); err != nil {
				return err
			}
		}
		if err := sh.tell(ctx); err != nil {
			return err
		}
		sh.app.lastly(d.endAtOnce)
		return sh.lively(ctx, func() error {
			_, err := d.serve(ctx)
			return err
		})
	})
	return errors.Join(err, sh.acted(ctx, err == nil || ctx.Err() != nil))
}

func (sh *shell) cancel(ctx context.Context, args string) error {
	return sh.act(ctx, sh.app.cancelCommand(), args)
}

// fork begins a fork from the cursor, if no entry is named, and looks at it.
func (sh *shell) fork(ctx context.Context, line string) error {
	words, err := splitWords(line)
	if err != nil {
		return err
	}
	id, from := "", false
	var args []string
	for i := 0; i < len(words); i++ {
		flag, value, joined := strings.Cut(words[i], "=")
		if !joined && i+1 < len(words) && (flag == "--set" || flag == "--id") {
			i++
			value = words[i]
		}
		switch flag {
		case "--set":
			budget, amount, ok := strings.Cut(strings.TrimPrefix(value, "budget."), "=")
			if !ok {
				return usage("such as --set calls=+5", "fork --set %q: want a budget and what is added", value)
			}
			args = append(args, "--"+budget, amount)
			continue
		case "--id":
			id = value
			continue
		case "--serve":
			return usage("step or continue in the fork", "fork: --serve is for the command of that name")
		case "--from":
			from = true
		}
		args = append(args, words[i])
	}
	if id == "" {
		id = scenarios.NewRunID(sh.session.ID())
	}
	args = append(args, "--id", id)
	if !from {
		args = append(args, "--from", fmt.Sprint(sh.moment().Seq))
	}
	if err := sh.command(ctx, sh.app.forkCommand(), "", append([]string{sh.session.ID()}, args...)...); err != nil {
		return err
	}
	return sh.openOther(ctx, id)
}

func (sh *shell) substitute(ctx context.Context, line string) error {
	run := sh.session.Last()
	what, bodies, err := sh.given(run, line)
	if err != nil {
		return usage("see: help substitute", "%w", err)
	}
	err = sh.app.atDesk(run.ID, "", func(d *desk) error {
		v, err := d.host.Engine.Deliver(ctx, run.ID, agent.Delivery{Key: deliveryKey(""), Actor: d.host.Actor, Decision: what, Bodies: bodies})
		if err == nil && v.Refusal != nil {
			err = d.refused(v.Refusal)
		}
		return err
	})
	return errors.Join(err, sh.acted(ctx, err == nil))
}

// given reads what an operator gives.
func (sh *shell) given(run agent.Run, line string) (agent.Substitute, []agent.Body, error) {
	kind, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch kind {
	case "answer":
		return nodes.GiveTurn(run, nodes.Reply{Text: rest, Finish: nodes.FinishStop})
	case "call":
		tool, args, _ := strings.Cut(rest, " ")
		call := nodes.ToolCall{ID: fmt.Sprintf("given_%d", run.Seq), Name: tool, Arguments: strings.TrimSpace(args)}
		return nodes.GiveTurn(run, nodes.Reply{Calls: []nodes.ToolCall{call}, Finish: nodes.FinishToolCalls})
	case "result":
		status, structured, _ := strings.Cut(rest, " ")
		return nodes.GiveResult(agent.Status(status), []byte(strings.TrimSpace(structured)))
	}
	return agent.Substitute{}, nil, fmt.Errorf("substitute %s: want answer, call or result", terminal.Line(kind))
}

func fromUnix(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}
