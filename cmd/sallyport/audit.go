package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/agent/audit"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/nodes"
	"sallyport/scenarios"
	"sallyport/scenarios/config"
	"sallyport/tools/grant"
)

// The commands of an auditor: audit, audit export, audit check. They change no run.

func (a *app) auditCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "audit [RUN]", Short: "Check runs from their journals alone", Args: atMostOneRun,
		Long: `Check a run, or every run, from its journal alone: the hash chain, every state, every
signature, that each write was sent once and with its grants over exactly its bytes,
that each call has one result, the budgets, and every stored body. Nothing that the
program that wrote the journal remembers otherwise is believed.

What is merely open, such as an outcome that nobody knows, is listed and is no break.
Any break ends in exit code 8 and names its entry, after all runs were looked at.

The last signed head is the newest history that somebody's approval vouches for: what
is behind it could have been cut off without a trace, so note it down elsewhere.

A run called export or check is audited with: sallyport audit -- RUN`,
		ValidArgsFunction: a.completeRuns(agent.Filter{}),
		RunE: func(c *cobra.Command, args []string) error {
			return a.reading(func(e agent.Engine) error { return a.audit(c.Context(), e, args) })
		},
	}
	c.AddCommand(a.auditExportCommand(), a.auditCheckCommand())
	return c
}

// auditRow is the audit of a run in a list.
type auditRow struct{ audit.Report }

func (r auditRow) cells() []string {
	n, signed := r.Counts, ""
	if r.Signed != nil {
		signed = fmt.Sprintf("%d by %s", r.Signed.Seq, r.Signed.Approver)
	}
	return []string{
		r.Run, string(r.State), strconv.FormatInt(r.Entries, 10), strconv.Itoa(n.Sends), strconv.Itoa(n.Writes),
		strconv.Itoa(n.Grants), strconv.Itoa(n.Bodies), signed, strconv.Itoa(len(r.Findings)), verdictOn(r.Report),
	}
}

func verdictOn(r audit.Report) string {
	if len(r.Breaks) > 0 {
		return fmt.Sprintf("BROKEN at entry %d", r.Breaks[0].Seq)
	}
	return "holds"
}

func (a *app) audit(ctx context.Context, e agent.Engine, runs []string) error {
	one := len(runs) > 0
	var listed error
	if !one {
		found, err := e.List(ctx, agent.Filter{})
		if errors.Is(err, agent.ErrIntegrity) {
			listed = err // of damaged runs: the others are audited all the same
		} else if err != nil {
			return fmt.Errorf("list the runs: %w", err)
		}
		for _, s := range found {
			runs = append(runs, s.ID)
		}
	}
	var rows []auditRow
	var broken []error
	if listed != nil {
		broken = append(broken, listed)
	}
	for _, id := range runs {
		r, err := a.auditRun(ctx, e, id)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if err != nil && !isBreak(err) { // it could not be read: that says nothing of the others
			broken = append(broken, fmt.Errorf("audit run %s: %w", id, err))
			continue
		}
		if err != nil {
			broken = append(broken, err)
		}
		r.Run = id
		rows = append(rows, auditRow{r})
	}
	if err := a.audited(rows, one); err != nil {
		return err
	}
	return errors.Join(broken...)
}

// auditRun audits one run: a fork beside its parent, if that is there.
func (a *app) auditRun(ctx context.Context, e agent.Engine, id string) (audit.Report, error) {
	parent, err := parentOf(ctx, e, id)
	switch {
	case err == nil && parent != "":
		return audit.CheckFork(e.Journal(ctx, id, 1, false), bodiesOf(ctx, e, id), e.Journal(ctx, parent, 1, false))
	case errors.Is(err, agent.ErrNoRun):
		a.say("The run that run %s is a fork of is not here: what it carried over is checked by itself only.", id)
	}
	return audit.Check(e.Journal(ctx, id, 1, false), bodiesOf(ctx, e, id)) // which says what is wrong with the run
}

// parentOf is the run that another is a fork of; empty if it is none. It is
// [agent.ErrNoRun] if the parent is not there.
func parentOf(ctx context.Context, e agent.Engine, id string) (string, error) {
	spec, err := specOf(ctx, e, id)
	if err != nil || spec.Fork == nil {
		return "", ignoreNoRun(err)
	}
	_, err = specOf(ctx, e, spec.Fork.Run)
	return spec.Fork.Run, err
}

// ignoreNoRun leaves it to whoever reads the run to say that it is not there.
func ignoreNoRun(err error) error {
	if errors.Is(err, agent.ErrNoRun) {
		return nil
	}
	return err
}

// specOf is what a run was begun with, by its first entry alone.
func specOf(ctx context.Context, e agent.Engine, id string) (agent.Spec, error) {
	for entry, err := range e.Journal(ctx, id, 1, false) {
		if err != nil {
			return agent.Spec{}, err
		}
		run, err := agent.Apply(agent.Run{}, entry)
		return run.Spec, err
	}
	return agent.Spec{}, fmt.Errorf("read run %s: %w", id, agent.ErrNoRun)
}

func isBreak(err error) bool {
	var b *audit.Break
	return errors.As(err, &b)
}

// bodiesOf reads the content of a run for an auditor.
func bodiesOf(ctx context.Context, e agent.Engine, id string) func(agent.BodyRef) ([]byte, error) {
	return func(ref agent.BodyRef) ([]byte, error) { return e.Body(ctx, id, ref) }
}

// audited writes what audits found: one run in full, several as a list.
func (a *app) audited(rows []auditRow, one bool) error {
	switch {
	case a.output != formatTable && one && len(rows) == 1:
		return a.json(rows[0], a.output == formatJSON)
	case a.output == formatTable && one && len(rows) == 1:
		return a.auditTable(rows[0].Report)
	case len(rows) == 0 && !one:
		a.say("No runs.")
	}
	if err := list(a, []string{"RUN", "STATE", "ENTRIES", "SENDS", "WRITES", "GRANTS", "BODIES", "SIGNED HEAD", "OPEN", "VERDICT"}, rows); err != nil {
		return err
	}
	if a.output != formatTable {
		return nil
	}
	for _, r := range rows {
		if err := a.auditRemarks(r.Report, r.Run+": "); err != nil {
			return err
		}
	}
	return nil
}

// auditTable tells of one run.
func (a *app) auditTable(r audit.Report) error {
	n := r.Counts
	lines := [][2]string{
		{"run", r.Run},
		{"state", string(r.State)},
		{"entries", fmt.Sprintf("%d, %s to %s", r.Entries, clock(r.Started), clock(r.Updated))},
		{"head", r.Head},
		{"signed", signedHead(r.Signed)},
		{"calls", fmt.Sprintf("%d begun, %d results; %d sent, of which %d writes", n.Calls, n.Results, n.Sends, n.Writes)},
		{"decisions", fmt.Sprintf("%d valid grants, %d other signed statements; %d were refused or came too late", n.Grants, n.Statements, n.Notes)},
		{"used", fmt.Sprintf("%d turns, %d tokens, %s of work%s; %d effects performed again", n.Turns, n.Tokens, n.Wall.Round(time.Millisecond), costText(n.Cost), n.Attempts)},
		{"bodies", fmt.Sprintf("%d checked, %d erased, %d not included", n.Bodies, n.Erased, n.NotIncluded)},
		{"verdict", verdictOn(r)},
	}
	if n.Parent != "" {
		lines = slices.Insert(lines, 6, [2]string{"carried", fmt.Sprintf("%d calls carried from %s; %d turns and outcomes given by an operator", n.Carried, n.Parent, n.Substitutes)})
	}
	for _, l := range lines {
		if err := a.print("%-10s %s\n", l[0], terminal.Line(l[1])); err != nil {
			return err
		}
	}
	return a.auditRemarks(r, "")
}

// costText is what a run cost, in the currency that it pins; empty if nothing was.
func costText(cost int64) string {
	if cost == 0 {
		return ""
	}
	return ", cost " + showAmount(cost)
}

func signedHead(s *audit.Signed) string {
	if s == nil {
		return "none: no approval vouches for any of it"
	}
	return fmt.Sprintf("%s, entry %d, by %s in entry %d", s.Head, s.Seq, s.Approver, s.By)
}

// auditRemarks lists what is open and what is broken.
func (a *app) auditRemarks(r audit.Report, lead string) error {
	for _, f := range r.Findings {
		if err := a.print("%s\n", terminal.Line(fmt.Sprintf("%sopen   entry %d: %s: %s", lead, f.Seq, f.Open, f.Detail))); err != nil {
			return err
		}
	}
	for _, b := range r.Breaks {
		if err := a.print("%s\n", terminal.Line(fmt.Sprintf("%sBREAK  entry %d: %s: %s", lead, b.Seq, b.What, b.Detail))); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) auditExportCommand() *cobra.Command {
	var out string
	var without bool
	c := &cobra.Command{
		Use: "export RUN", Short: "Write a run as one file that another machine can check", Args: oneRun,
		Long: `Write a run as one self-contained file, JSON lines: its entries exactly as they are
stored and the bodies that they name. It goes to stdout, or with --out to a new file
of mode 0600; a file that is there already is left alone, and one that could not be
written whole is removed.

The content of calls whose contract redacts arguments is left out, and what was left
out is counted by whoever checks the file. The model may have quoted such content
elsewhere; --without-bodies leaves out all content.`,
		Annotations:       map[string]string{formatsKey: string(formatJSONL)},
		ValidArgsFunction: a.completeRuns(agent.Filter{}),
		RunE: func(c *cobra.Command, args []string) error {
			return a.reading(func(e agent.Engine) error { return a.auditExport(c.Context(), e, args[0], out, without) })
		},
	}
	c.Flags().StringVar(&out, "out", "", "write a new `FILE` instead of stdout")
	c.Flags().BoolVar(&without, "without-bodies", false, "leave out all content; the journal holds digests only")
	return c
}

func (a *app) auditExport(ctx context.Context, e agent.Engine, id, out string, without bool) error {
	bodies, err := a.exported(ctx, e, id, without)
	if err != nil {
		return err
	}
	write := func(w io.Writer) error {
		err := audit.Export(w, e.Journal(ctx, id, 1, false), bodies)
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		return err
	}
	if out == "" {
		return write(a.out)
	}
	if err := newFile(out, write); err != nil {
		return err
	}
	a.say("Run %s is in %s. On a machine that has the approvers' public keys:\n  sallyport audit check %s --key KEY.pub", id, terminal.Line(out), quoted(filepath.Base(out)))
	return nil
}

// exported gives the bodies that an export may hold.
func (a *app) exported(ctx context.Context, e agent.Engine, id string, without bool) (func(agent.BodyRef) ([]byte, error), error) {
	if without {
		return audit.WithoutBodies, nil
	}
	bodies := bodiesOf(ctx, e, id)
	secret, err := redacted(ctx, e, id)
	if err != nil || len(secret) == 0 {
		return bodies, err
	}
	a.say("Left out, because their contracts redact arguments: the content of calls of %s.", terminal.Line(strings.Join(secret, ", ")))
	return audit.WithoutCalls(e.Journal(ctx, id, 1, false), bodies, append(secret, nodes.OpenBody)...) // it may quote them
}

// redacted names the tools of a run whose contracts keep arguments out of exports. It
// believes the first entry only, so that a journal that breaks later can be exported.
func redacted(ctx context.Context, e agent.Engine, id string) ([]string, error) {
	var run agent.Run
	for entry, err := range e.Journal(ctx, id, 1, false) {
		if err != nil {
			return nil, fmt.Errorf("export run %s: %w", id, err)
		}
		if run, err = agent.Apply(run, entry); err != nil {
			return nil, fmt.Errorf("export run %s: %w", id, err)
		}
		break
	}
	setup, err := scenarios.ReadSetup(ctx, e, run)
	if err != nil {
		return nil, fail(exitOf(err), "leave out all content with --without-bodies", "export run %s: nobody knows what its contracts redact: %w", id, err)
	}
	var names []string
	for _, c := range setup.Contracts {
		if len(c.Redact) > 0 {
			names = append(names, c.Name)
		}
	}
	return names, nil
}

func exitOf(err error) exit {
	code, _ := codeOf(err)
	return code
}

// newFile writes a file of mode 0600 that is not there yet, durably, or none at all.
func newFile(path string, write func(io.Writer) error) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return usage("name a file that is not there yet with --out", "make the file: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	return f.Sync()
}

func (a *app) auditCheckCommand() *cobra.Command {
	var keys []string
	c := &cobra.Command{
		Use: "check FILE", Short: "Check an exported run, with public keys only", Args: cobra.ExactArgs(1),
		Long: `Check a file that "sallyport audit export" wrote; - is stdin. No state directory is
needed, only the public keys of the approvers that you trust: each --key is a file such
as alice.pub, or the line in it. Without --key they are the public keys in your own
keys directory and the approvers of your own configuration. A run that pinned any
other key is a break: its signatures would prove nothing to you.`,
		RunE: func(_ *cobra.Command, args []string) error { return a.auditCheck(args[0], keys) },
	}
	c.Flags().StringArrayVar(&keys, "key", nil, "trust this public key: a `FILE` or a line \"ed25519 BASE64 NAME\"; may be repeated")
	return c
}

func (a *app) auditCheck(path string, named []string) (err error) {
	keys, err := trustedKeys(named)
	if err != nil {
		return err
	}
	in := a.in
	if path != "-" {
		if in, err = os.Open(path); err != nil {
			return usage("give a file that sallyport audit export wrote", "check the export: %w", err)
		}
		defer func() { err = errors.Join(err, in.Close()) }()
	}
	r, err := audit.CheckExport(in, keys)
	var b *audit.Break
	switch {
	case errors.As(err, &b):
		if err := a.audited([]auditRow{{r}}, true); err != nil {
			return err
		}
		next := "the file is not what was exported, or the journal was broken then"
		if b.What == audit.BreakTrust {
			next = "if you trust that key, name it with --key"
		}
		return fail(exitIntegrity, next, "check %q: %w", path, b)
	case errors.Is(err, agent.ErrNewer):
		return usage("use the newer version of sallyport", "check %q: %w", path, err)
	case errors.Is(err, audit.ErrNotExport):
		return usage("give a file that sallyport audit export wrote", "check %q: %w", path, err)
	case err != nil:
		return usage("", "check %q: %w", path, err)
	}
	return a.audited([]auditRow{{r}}, true)
}

// trustedKeys are the lines of the keys that were named, or of the user's own.
func trustedKeys(named []string) ([]string, error) {
	if len(named) == 0 {
		return ownKeys()
	}
	var lines []string
	for _, k := range named {
		if !strings.ContainsAny(k, " \t") {
			data, err := os.ReadFile(k)
			if err != nil {
				return nil, usage("give the file or the line of a public key", "read --key: %w", err)
			}
			k = string(data)
		}
		k = strings.TrimSpace(k)
		if _, err := grant.ParsePublicKey(k); err != nil {
			return nil, usage("a public key is one line, ed25519 BASE64 NAME; sallyport keys new prints it", "read --key: %w", err)
		}
		lines = append(lines, k)
	}
	return lines, nil
}

func ownKeys() ([]string, error) {
	home, err := configHome()
	if err != nil {
		return nil, err
	}
	keys, err := config.ReadKeys(filepath.Join(home, keysBelow))
	if err != nil {
		return nil, usage("", "%w", err)
	}
	u, err := config.LoadUser(home)
	if err != nil {
		return nil, usage("", "%w", err)
	}
	var lines []string
	for _, k := range append(keys, u.Keys()...) {
		lines = append(lines, k.Key)
	}
	if len(lines) == 0 {
		return nil, usage("name the approvers' public keys with --key", "check an export: you have no public key to check it with")
	}
	return lines, nil
}
