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
	"sallyport/scenarios"
)

// The commands that look: runs, show, journal, approvals. They change nothing.

type runRow struct{ agent.Summary }

func (r runRow) cells() []string {
	state := string(r.State)
	if r.Held {
		state += " (paused)"
	}
	reason := r.Reason
	if r.Unknown {
		reason = strings.TrimSpace(reason + " OUTCOME UNKNOWN")
	}
	if r.Parent != "" {
		reason = strings.TrimSpace(reason + " fork of " + r.Parent)
	}
	return []string{r.ID, state, r.Tool, clock(r.Started), clock(r.Updated), reason}
}

func (a *app) runsCommand() *cobra.Command {
	var filter agent.Filter
	var state string
	c := &cobra.Command{
		Use: "runs", Short: "List the runs, newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			filter.State = agent.State(state)
			if err := knownState(filter.State); err != nil {
				return err
			}
			if filter.Limit < 0 {
				return usage("0 lists all", "list runs: --limit %d is below 0", filter.Limit)
			}
			rows, err := a.summaries(c.Context(), filter)
			if len(rows) == 0 {
				err = a.none("No runs", err)
			}
			return errors.Join(list(a, []string{"RUN", "STATE", "TOOL", "STARTED", "UPDATED", ""}, rows), err)
		},
	}
	c.Flags().BoolVar(&filter.Open, "open", false, "only runs that have not ended")
	c.Flags().StringVar(&state, "in", "", "only runs in this `STATE`")
	c.Flags().IntVar(&filter.Limit, "limit", 0, "at most `N` runs; 0 is all")
	return c
}

func knownState(s agent.State) error {
	if s == agent.StateNone {
		return nil
	}
	names := make([]string, 0, len(agent.States()))
	for _, known := range agent.States() {
		if s == known {
			return nil
		}
		names = append(names, string(known))
	}
	return usage("states are "+strings.Join(names, ", "), "list runs in state %q: there is no such state", string(s))
}

// summaries lists runs. Where nothing has run yet it is [agent.ErrNoRun].
func (a *app) summaries(ctx context.Context, filter agent.Filter) ([]runRow, error) {
	var rows []runRow
	err := a.reading(func(e agent.Engine) error {
		found, err := e.List(ctx, filter)
		for _, s := range found {
			rows = append(rows, runRow{s})
		}
		return err
	})
	return rows, err
}

// wasErased reports whether a body is missing because its content was erased: no damage.
func wasErased(err error) bool {
	return errors.Is(err, agent.ErrNoBody) && !errors.Is(err, agent.ErrIntegrity)
}

// pendingRow is a candidate that waits.
type pendingRow struct {
	Run       string    `json:"run"`
	Tool      string    `json:"tool"`
	SHA256    string    `json:"sha256"` // of the exact argument bytes: what approve --sha256 takes
	Bytes     int64     `json:"bytes"`
	Candidate string    `json:"candidate"`
	Expires   time.Time `json:"expires"`
	Needed    int       `json:"needed"`
	Signed    []string  `json:"signed"`
	Paused    bool      `json:"paused,omitempty"`
	Expired   bool      `json:"expired,omitempty"` // nobody decided in time: whoever serves the run next finds so
}

func (p pendingRow) cells() []string {
	signed := fmt.Sprintf("%d of %d", len(p.Signed), p.Needed)
	return []string{p.Run, p.Tool, p.SHA256, fmt.Sprint(p.Bytes), p.until(), signed}
}

// until is when the candidate expires, and whether that has come.
func (p pendingRow) until() string {
	if p.Expired {
		return clock(p.Expires) + " (expired)"
	}
	return clock(p.Expires)
}

func pendingOf(run agent.Run) pendingRow {
	tool, _ := run.Spec.Tool(run.Call.Proposal.Tool)
	return pendingRow{
		Run: run.ID, Tool: tool.Name, SHA256: run.Call.Candidate.Arguments, Bytes: run.Call.Candidate.Bytes,
		Candidate: run.Call.Candidate.ID, Expires: run.Deadline, Needed: tool.Approvers, Signed: signers(run), Paused: run.Held,
		Expired: !run.Deadline.IsZero() && !time.Now().Before(run.Deadline),
	}
}

func signers(run agent.Run) []string {
	names := []string{}
	for _, g := range run.Call.Grants {
		names = append(names, g.Approver)
	}
	return names
}

func (a *app) approvalsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "approvals", Short: "List the candidates that wait for a person", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var rows []pendingRow
			err := a.reading(func(e agent.Engine) error {
				waiting, err := e.List(c.Context(), agent.Filter{State: agent.StateAwaitingApproval})
				for _, s := range waiting {
					run, _, err := scenarios.Load(c.Context(), e, s.ID)
					if err != nil {
						return err
					}
					if run.State == agent.StateAwaitingApproval {
						rows = append(rows, pendingOf(run))
					}
				}
				return err
			})
			if len(rows) == 0 {
				err = a.none("Nothing waits for approval", err)
			}
			return errors.Join(list(a, []string{"RUN", "TOOL", "SHA256", "BYTES", "EXPIRES", "SIGNED"}, rows), err)
		},
	}
}

// shown is what `show` tells of a run.
type shown struct {
	agent.Summary
	Model    string        `json:"model,omitempty"`
	Config   string        `json:"config"`
	Budget   agent.Budget  `json:"budget"`
	Used     agent.Budget  `json:"used"`
	Prices   *agent.Prices `json:"prices,omitempty"`   // with them cost is counted
	Exceeded *exceeded     `json:"exceeded,omitempty"` // the budget that ended it
	Fork     *agent.Fork   `json:"fork,omitempty"`     // of which run it is one, and from where
	Carried  int           `json:"carried,omitempty"`  // calls whose outcome is that run's
	Calls    []callRow     `json:"calls"`
	Pending  *pendingRow   `json:"pending,omitempty"`
	Answer   string        `json:"answer,omitempty"` // untrusted: the model's words
	Noted    int           `json:"noted,omitempty"`  // deliveries that were refused
	Erased   []erasure     `json:"erased,omitempty"` // content that is gone for good
}

func (a *app) showCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show RUN", Short: "Show a run: its state, its calls, what it waits for", Args: oneRun,
		ValidArgsFunction: a.completeRuns(agent.Filter{}),
		RunE: func(c *cobra.Command, args []string) error {
			return a.reading(func(e agent.Engine) error {
				s, err := a.showRun(c.Context(), e, args[0])
				if err != nil {
					return err
				}
				if a.output != formatTable {
					return a.json(s, a.output == formatJSON)
				}
				return a.showTable(s)
			})
		},
	}
}

func (a *app) showRun(ctx context.Context, e agent.Engine, id string) (shown, error) {
	run, entries, err := scenarios.Load(ctx, e, id)
	if err != nil {
		return shown{}, err
	}
	s := shown{
		Summary: agent.Summarize(run, entries[0].Time), Model: run.Spec.Model, Config: run.Spec.Config, Budget: run.Budget,
		Used: spentBudget(run.Used), Prices: run.Spec.Prices, Exceeded: exceededBy(run),
		Fork: run.Spec.Fork, Carried: run.Carried.Calls, Noted: run.Noted,
	}
	if s.Exceeded != nil {
		dir, err := a.statePath()
		if err != nil {
			return s, err
		}
		s.Exceeded.Resume = (&desk{more: a.stateFlag(dir)}).command("resume", id, s.Exceeded.Flag)
	}
	s.Erased = erasures(entries)
	told, err := scenarios.Calls(entries)
	if err != nil {
		return s, err
	}
	for _, c := range told {
		s.Calls = append(s.Calls, callRow{c})
	}
	if s.Answer, err = answer(ctx, e, run); err != nil && !wasErased(err) {
		return s, err
	}
	if run.State == agent.StateAwaitingApproval {
		p := pendingOf(run)
		s.Pending = &p
	}
	return s, nil
}

func (a *app) showTable(s shown) error {
	line := func(name, format string, args ...any) {
		_ = a.print("%-9s %s\n", name, terminal.Line(fmt.Sprintf(format, args...))) // list reports a broken stdout
	}
	line("run", "%s", s.ID)
	line("state", "%s", strings.Join(runRow{s.Summary}.cells()[1:2], ""))
	if s.Reason != "" {
		line("reason", "%s", s.Reason)
	}
	if s.Unknown {
		line("unknown", "the outcome of a write; a person must find out")
	}
	line("started", "%s", clock(s.Started))
	line("updated", "%s", clock(s.Updated))
	if f := s.Fork; f != nil {
		line("fork of", "%s, from its entry %d: %s", f.Run, f.Seq, carriedOver(s.Carried))
	}
	line("used", "%s", budgetTexts(budgetRows(s.Used, s.Budget, s.Prices)))
	if x := s.Exceeded; x != nil {
		line("ended by", "its budget of %s, having used %s of %s; go on with a fork: %s", x.Budget, x.Used, x.Limit, x.Resume)
	}
	if p := s.Pending; p != nil {
		line("waits", "%s, sha256 %s, until %s", p.Tool, p.SHA256, p.until())
	}
	for _, e := range s.Erased {
		line("erased", "sha256 %s at %s by %s", e.SHA256, clock(e.Time), e.By)
	}
	if err := a.print("\n"); err != nil {
		return err
	}
	if err := list(a, []string{"TOOL", "STATUS", "CLASS", "ARGUMENTS SHA256", ""}, s.Calls); err != nil {
		return err
	}
	if s.Answer == "" {
		return nil
	}
	if err := a.print("\nThe answer, in the model's words (untrusted):\n"); err != nil {
		return err
	}
	return terminal.Untrusted(a.stdout, s.Answer, a.width())
}

func (a *app) journalCommand() *cobra.Command {
	var follow bool
	c := &cobra.Command{
		Use: "journal RUN", Short: "Print a run's journal, checked entry by entry", Args: oneRun,
		Long: `Print a run's journal. Every entry is checked on the way: the hash chain, the
signatures, and that the state machine comes to the same state again. With -o jsonl
the entries are printed exactly as they are stored.`,
		ValidArgsFunction: a.completeRuns(agent.Filter{}),
		RunE: func(c *cobra.Command, args []string) error {
			return a.reading(func(e agent.Engine) error { return a.journal(c.Context(), e, args[0], follow) })
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "wait for more until the run ends")
	return c
}

func (a *app) journal(ctx context.Context, e agent.Engine, id string, follow bool) error {
	var run agent.Run
	for entry, err := range e.Journal(ctx, id, 1, follow) {
		if err != nil {
			return err
		}
		if run, err = agent.Apply(run, entry); err != nil {
			return err
		}
		if err := a.entry(entry); err != nil {
			return err
		}
		if a.stdout.gone.Load() {
			return nil // there is nobody to follow it for
		}
	}
	if run.Seq == 0 {
		return fmt.Errorf("read run %s: %w", id, agent.ErrNoRun)
	}
	if a.output == formatJSON {
		return a.print("]\n")
	}
	return nil
}

func (a *app) entry(e agent.Entry) error {
	switch a.output {
	case formatJSONL:
		return a.print("%s\n", e.Bytes())
	case formatJSON:
		lead := "["
		if e.Seq > 1 {
			lead = ","
		}
		return a.print("%s%s\n", lead, e.Bytes())
	}
	return a.print("%s\n", entryLine(e))
}

// entryLine is one line of a journal for people, and of progress.
func entryLine(e agent.Entry) string {
	what, where := string(e.Row), string(e.State)
	switch e.Kind {
	case agent.EntryEvent:
	case agent.EntryNoted:
		what, where = "refused", string(e.Event)
	case agent.EntryAttempt:
		what, where = "attempt", fmt.Sprintf("effect %d", e.Effect)
	case agent.EntryErased:
		what, where = "erased", e.Body.SHA256
	}
	line := fmt.Sprintf("%4d  %s  %-17s %-18s %s", e.Seq, e.Time.Local().Format("15:04:05.000"), what, where, terminal.Line(detail(e)))
	return strings.TrimRight(line, " ")
}

// completeRuns completes run ids.
func (a *app) completeRuns(filter agent.Filter) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		rows, err := a.summaries(c.Context(), filter)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ids := make([]string, len(rows))
		for i, r := range rows {
			ids[i] = r.ID + "\t" + string(r.State)
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
