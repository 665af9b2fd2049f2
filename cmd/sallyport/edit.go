package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios"
	"sallyport/tools"
	"sallyport/tools/strictjson"
)

// inEditor is the value of --edit without a file.
const inEditor = "$EDITOR"

// edit is how a person changes the arguments of a pending candidate on the command line.
type edit struct {
	from   string // a file, or inEditor; empty: nothing is edited
	field  string // the argument whose text is edited; empty: all of them, as JSON
	chosen bool   // field was given
}

// flags adds the flags of an edit.
func (e *edit) flags(c *cobra.Command) {
	c.Flags().StringVar(&e.from, "edit", "", "change the arguments first, in $VISUAL or $EDITOR, or take them from `FILE`")
	c.Flags().Lookup("edit").NoOptDefVal = inEditor
	c.Flags().StringVar(&e.field, "field", "", "with --edit: change only the text of the argument `NAME`; '' is all arguments, as JSON")
}

// check refuses flags that do not fit one another.
func (e *edit) check(c *cobra.Command) error {
	e.chosen = c.Flags().Changed("field")
	switch run := c.Flags().Arg(0); {
	case e.chosen && e.from == "":
		return usage("say --edit too", "approve run %s: --field is for --edit", run)
	case e.from != "" && c.Flags().Changed("sha256"):
		return usage("edit first; then approve what came of it with --sha256",
			"approve run %s: --sha256 names bytes that --edit is about to replace", run)
	}
	return nil
}

// approveEdited signs other arguments for the pending candidate, has the new candidate
// prepared, shows that one and asks about it. The edit itself grants nothing.
func (a *app) approveEdited(ctx context.Context, id string, d decision) error {
	return a.pendingAt(ctx, id, d, func(desk *desk, run agent.Run) error {
		if d.edit.from == inEditor && !a.asks() {
			return fail(exitParked, desk.command("approve", id, "--edit=FILE"), "approve run %s: there is nobody to edit the arguments, and no file with them", id)
		}
		args, err := desk.newArguments(ctx, run, d.edit)
		if err != nil {
			return err
		}
		key, err := desk.signingKey(ctx, asEditor(run))
		if err != nil {
			return err
		}
		desk.key = &key // for the approval too: the passphrase is not asked for again
		delivery, err := scenarios.Edit(run, key, args, time.Now())
		if err != nil {
			return err
		}
		v, err := desk.host.Deliver(ctx, run, delivery)
		if err != nil {
			return err
		}
		if v.Refusal != nil {
			return desk.refused(v.Refusal)
		}
		a.say("Run %s: %s, by %s. That grants nothing: the new candidate is asked about.", id, v.Row, delivery.Actor)
		return desk.askAnew(ctx, d.noResume)
	})
}

// asEditor is the run as it concerns an editor: whoever may sign for the tool may edit,
// also one that has signed the candidate already.
func asEditor(run agent.Run) agent.Run {
	call := *run.Call
	call.Grants = nil
	run.Call = &call
	return run
}

// askAnew has the edited call prepared, and asks about the candidate that comes of it.
func (d *desk) askAnew(ctx context.Context, noResume bool) error {
	run, err := d.prepared(ctx)
	if err != nil {
		return d.interrupted(run, err)
	}
	if run.State != agent.StateAwaitingApproval || !run.Call.Edited {
		d.app.say("The edited call did not become a candidate: see %s", d.command("show", d.run))
		return d.goOn(ctx)
	}
	if run.Held || !d.ask {
		d.app.code = d.report(run)
		return nil
	}
	if err := d.show(ctx, run); err != nil {
		return err
	}
	answer, err := d.app.askOnce(ctx, d, run)
	if err != nil {
		return d.interrupted(run, err)
	}
	delivery := scenarios.Refusal(run, d.host.Actor)
	if answer == terminal.Approved {
		if delivery, err = scenarios.Approval(run, *d.key, time.Now()); err != nil {
			return err
		}
	}
	return d.app.decided(ctx, d, run, delivery, noResume)
}

// prepared serves the run until it rests.
func (d *desk) prepared(ctx context.Context) (agent.Run, error) {
	d.told = d.app.progress(ctx, d.host.Engine, d.run)
	defer d.told.stop()
	run, err := d.serve(ctx)
	d.told.reach(run.Seq)
	return run, err
}

// newArguments are the canonical arguments that the person wants instead.
func (d *desk) newArguments(ctx context.Context, run agent.Run, e edit) ([]byte, error) {
	was, err := candidateBytes(ctx, d.host.Engine, run)
	if err != nil {
		return nil, err
	}
	tool, err := scenarios.PinnedTool(ctx, d.host.Engine, run, run.Call.Proposal.Tool)
	if err != nil {
		return nil, err
	}
	if !e.chosen && e.from == inEditor {
		e.field = proseOf(was)
	}
	text, err := d.app.edited(ctx, was, e)
	if err != nil {
		return nil, fmt.Errorf("edit the arguments of run %s: %w", run.ID, err)
	}
	now, err := decodeEdit(tool, was, text, e.field)
	switch {
	case err != nil:
		return nil, usage("nothing was changed; the candidate waits as it was", "edit the arguments of run %s: %w", run.ID, err)
	case bytes.Equal(was, now):
		return nil, usage("approve them without --edit", "edit the arguments of run %s: they are the same; nothing was changed", run.ID)
	}
	return now, nil
}

// decodeEdit reads what was edited as strictly as what a model sends, and holds it
// against the schemas of the tool.
func decodeEdit(tool *tools.Tool, was, text []byte, field string) ([]byte, error) {
	if field != "" {
		var err error
		if text, err = withText(was, field, text); err != nil {
			return nil, err
		}
	}
	now, err := tool.DecodeArguments(string(text))
	if err != nil {
		return nil, err
	}
	return now, tool.CheckArguments(now)
}

// withText replaces one argument by a text.
func withText(was []byte, field string, text []byte) ([]byte, error) {
	if !utf8.Valid(text) {
		return nil, fmt.Errorf("the text of %q is not UTF-8", field)
	}
	members, err := strictjson.Members(was)
	if err != nil {
		return nil, err
	}
	value, err := strictjson.Encode(string(text))
	if err != nil {
		return nil, err
	}
	for i := range members {
		if members[i].Name == field {
			members[i].Value = value
			return strictjson.Object(members)
		}
	}
	return strictjson.Object(append(members, strictjson.Member{Name: field, Value: value}))
}

// proseOf names the one argument that is text of several lines: the one that a person
// would rather edit as text. It is empty if there is none, or more than one.
func proseOf(args []byte) string {
	members, err := strictjson.Members(args)
	if err != nil {
		return ""
	}
	found := ""
	for _, m := range members {
		var text string
		if strictjson.Decode(m.Value, &text) != nil || !strings.Contains(strings.TrimSuffix(text, "\n"), "\n") {
			continue
		}
		if found != "" {
			return ""
		}
		found = m.Name
	}
	return found
}

// edited is what stands in the file, or what the editor made of it.
func (a *app) edited(ctx context.Context, was []byte, e edit) ([]byte, error) {
	if e.from != inEditor {
		data, err := readEdit(e.from)
		if err != nil {
			return nil, usage("give a file with the new arguments, as JSON, or with the text of --field", "%w", err)
		}
		return data, nil
	}
	text, name, err := editable(was, e.field)
	if err != nil {
		return nil, err
	}
	out, err := a.editor(ctx, name, text)
	if err != nil {
		return nil, err
	}
	if e.field != "" && !bytes.HasSuffix(text, []byte("\n")) {
		out = bytes.TrimSuffix(out, []byte("\n")) // editors end the last line
	}
	return out, nil
}

// readEdit reads at most one byte more than arguments may have.
func readEdit(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, tools.MaxArguments+1))
}

// editable is what an editor is given: indented JSON, or one argument's text.
func editable(was []byte, field string) (text []byte, name string, err error) {
	if field == "" {
		var b bytes.Buffer
		if err := indent(&b, was); err != nil {
			return nil, "", err
		}
		return b.Bytes(), "arguments.json", nil
	}
	members, err := strictjson.Members(was)
	if err != nil {
		return nil, "", err
	}
	for _, m := range members {
		var s string
		if m.Name != field {
			continue
		}
		if err := strictjson.Decode(m.Value, &s); err != nil {
			return nil, "", usage("edit all arguments as JSON, with --field ''", "argument %q is no text", field)
		}
		return []byte(s), "text.md", nil
	}
	return nil, "", usage("name one that it has with --field", "the call has no argument %q", field)
}

// editor lets the person edit a text in a file that nobody else can read.
func (a *app) editor(ctx context.Context, name string, text []byte) (out []byte, err error) {
	command := strings.Fields(os.Getenv("VISUAL"))
	if len(command) == 0 {
		command = strings.Fields(os.Getenv("EDITOR"))
	}
	if len(command) == 0 {
		return nil, usage("set EDITOR to your editor, or give the new arguments with --edit=FILE", "neither VISUAL nor EDITOR is set")
	}
	dir, err := os.MkdirTemp("", "sallyport-edit-")
	if err != nil {
		return nil, fmt.Errorf("make a folder to edit in: %w", err)
	}
	remove := func() error { return os.RemoveAll(dir) }
	a.lastly(func() { _ = remove() })
	defer func() {
		if gone := remove(); err == nil {
			err = gone
		}
	}()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("write the file to edit: %w", err)
	}
	edit := exec.CommandContext(ctx, command[0], append(command[1:], path)...) //nolint:gosec // the user's own editor
	edit.Stdin, edit.Stdout, edit.Stderr = a.in, a.errs, a.errs
	if err := edit.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, fail(exitParked, "nothing was changed; the candidate waits as it was", "the editor %s: %w", command[0], err)
	}
	return readEdit(path)
}

// edited says who changed the arguments of the call in hand last, and what the model had
// proposed. Both are empty for a call whose arguments are the model's.
func (d *desk) edited(ctx context.Context, run agent.Run) (by string, was []byte, err error) {
	if run.Call == nil || !run.Call.Edited {
		return "", nil, nil
	}
	var at agent.Run
	var proposed agent.BodyRef
	for e, err := range d.host.Engine.Journal(ctx, d.run, 1, false) {
		if err != nil {
			return "", nil, fmt.Errorf("read run %s: %w", d.run, err)
		}
		if at, err = agent.Apply(at, e); err != nil {
			return "", nil, err
		}
		if at.Call == nil || at.Call.ID != run.Call.ID {
			continue
		}
		if !at.Call.Edited {
			proposed = at.Call.Arguments
		}
		if e.Kind == agent.EntryEvent && e.Event == agent.KindEdit {
			by = e.Actor
		}
	}
	was, err = d.host.Engine.Body(ctx, d.run, proposed)
	if err != nil {
		return "", nil, fmt.Errorf("read what the model proposed in run %s: %w", d.run, err)
	}
	return by, was, nil
}

// indent writes canonical JSON for people to edit.
func indent(w *bytes.Buffer, canonical []byte) error {
	if err := json.Indent(w, canonical, "", "  "); err != nil {
		return err
	}
	w.WriteByte('\n')
	return nil
}
