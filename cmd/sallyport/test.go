package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sallyport/agent"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios"
	"sallyport/scenarios/suite"
)

// onceText is the value of a flag that is given once.
type onceText struct {
	text  string
	given bool
}

// Set implements the flag.
func (o *onceText) Set(text string) error {
	if o.given {
		return errors.New("it is given twice; one expression can say both, as in 'a|b'")
	}
	o.text, o.given = text, true
	return nil
}

// String implements the flag.
func (o *onceText) String() string { return o.text }

// Type implements the flag.
func (o *onceText) Type() string { return "REGEX" }

// testFlags are those of `test`.
type testFlags struct {
	run            onceText
	jobs           int
	verbose        bool
	shuffle        shuffle
	timeout        time.Duration
	failFast, list bool
	keep, noKeep   bool
	update         bool
	out            string
}

// shuffle is the value of --shuffle.
type shuffle struct {
	seed *uint64
}

// Set implements the flag. The word new makes a seed.
func (s *shuffle) Set(text string) error {
	if text == "new" {
		seed := rand.Uint64N(1 << 32) // short enough to type
		s.seed = &seed
		return nil
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return errors.New("want a whole number, as in --shuffle=42, or nothing")
	}
	s.seed = &seed
	return nil
}

// String implements the flag.
func (s *shuffle) String() string { return "" }

// Type implements the flag.
func (s *shuffle) Type() string { return "SEED" }

func (a *app) testCommand() *cobra.Command {
	var f testFlags
	c := &cobra.Command{
		Use: "test PATH...", Short: "Play scenarios as a suite of tests",
		Annotations: map[string]string{formatsKey: "table json jsonl junit tap"},
		Long: `Play scenario files, each with a state and a workspace of its own, several at once. A
PATH is a file, a folder, or a pattern in quotes. A folder is searched for *.yaml and
*.yml, with all below it but testdata and what begins with a dot. Files that hold no
"scenario:" are passed over, and counted (-v names them); one that looks as if it were
to hold it is warned of. One that cannot be read ends the command before anything is
played.

The exit code is 0 if all passed, 1 if not, 2 if nothing could be played.

What does not pass is shown with the place of the expectation, what was wanted and
what came, the last rows of the journal, and the command that opens the state, which
is kept for it.`,
		Example: `  sallyport test scenarios
  sallyport test scenarios -run 'refused|budget' -v
  sallyport test scenarios -o junit --out report.xml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("name files or folders that hold scenarios, such as in: sallyport test scenarios")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return a.test(c.Context(), args, f) },
	}
	flags := c.Flags()
	flags.Var(&f.run, "run", "only cases whose name the `REGEX` matches, or is or holds if it matches none")
	flags.VarP(&a.output, "output", "o", "`FORMAT` of the report: table, json, jsonl, junit or tap")
	flags.IntVarP(&f.jobs, "jobs", "j", runtime.GOMAXPROCS(0), "how `MANY` are played at once")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "list what passed too, and the slowest")
	flags.Var(&f.shuffle, "shuffle", "play in another order; the seed is printed, and repeats it")
	flags.Lookup("shuffle").NoOptDefVal = "new"
	flags.DurationVar(&f.timeout, "timeout", suite.DefaultTimeout, "how long one scenario may take")
	flags.BoolVar(&f.failFast, "fail-fast", false, "start nothing new after the first that does not pass")
	flags.BoolVar(&f.list, "list", false, "list the cases, play nothing")
	flags.BoolVar(&f.keep, "keep", false, "keep the state of all")
	flags.BoolVar(&f.noKeep, "no-keep", false, "keep the state of none")
	flags.BoolVar(&f.update, "update", false, "rewrite golden journals instead of comparing them")
	flags.StringVar(&f.out, "out", "", "write the report in the -o format to `FILE`, and the table to stdout")
	return c
}

// oneDash lets `test -run REGEX` be written as go test has it.
func oneDash(args []string) []string {
	out, test := make([]string, len(args)), false
	for i, arg := range args {
		switch {
		case arg == "--":
			return append(out[:i], args[i:]...)
		case arg == "test":
			test = true
		case test && (arg == "-run" || strings.HasPrefix(arg, "-run=")):
			arg = "-" + arg
		}
		out[i] = arg
	}
	return out
}

// check finds what is wrong with the flags.
func (f testFlags) check(a *app) (*regexp.Regexp, error) {
	var re *regexp.Regexp
	var err error
	if f.run.text != "" {
		if re, err = regexp.Compile(f.run.text); err != nil {
			return nil, usage("give a regular expression in the syntax of Go", "-run %q: %w", f.run.text, err)
		}
	}
	switch {
	case f.jobs < 1 || f.jobs > suite.MaxJobs:
		return nil, usage("leave it away for one per processor", "-j %d: want 1 to %d", f.jobs, suite.MaxJobs)
	case f.timeout <= 0:
		return nil, usage(`give a time such as 30s`, "--timeout %s: want more than nothing", f.timeout)
	case f.keep && f.noKeep:
		return nil, usage("leave one of them away", "--keep and --no-keep are opposites")
	case a.stateDir != "":
		return nil, usage("leave it away; --keep keeps them all", "--state: each scenario has a state of its own")
	case a.logFile != "":
		return nil, usage("leave it away; the log of each is in its state, which --keep keeps", "--log-file: each scenario has a log of its own")
	case f.list && (a.output == formatJUnit || a.output == formatTAP):
		return nil, usage("list as table, json or jsonl", "-o %s: a list is no report", a.output)
	}
	return re, nil
}

func (a *app) test(ctx context.Context, paths []string, f testFlags) error {
	re, err := f.check(a)
	if err != nil {
		return err
	}
	cases, err := a.findCases(paths, re, f.verbose)
	if err != nil {
		return err
	}
	if f.list {
		return a.listCases(cases)
	}
	if f.shuffle.seed != nil {
		cases = suite.Shuffle(cases, *f.shuffle.seed)
		a.say("Shuffled: repeat the order with --shuffle=%d", *f.shuffle.seed)
	}
	s, err := a.suiteOf(cases, f)
	if err != nil {
		return err
	}
	reporters, done, err := a.reporters(f)
	if err != nil {
		return err
	}
	sum, err := a.playSuite(ctx, s, reporters)
	if err = errors.Join(err, done()); err != nil {
		err = fail(exitFailed, "", "%w", err)
	}
	if sum.Kept != "" {
		a.say("Kept: %s", terminal.Line(sum.Kept))
	}
	switch {
	case sum.Interrupted:
		return fail(exitInterrupted, "", "%w", errors.Join(errInterrupted, err))
	case !sum.OK():
		a.code = exitFailed
	}
	return err
}

// findCases finds what is to be played, and says what is odd about it.
func (a *app) findCases(paths []string, re *regexp.Regexp, verbose bool) ([]suite.Case, error) {
	if a.configFile != "" { // else every file would say so
		if _, err := os.Stat(a.configFile); err != nil {
			return nil, usage("nothing was played", "read the configuration: %w", err)
		}
	}
	found, err := suite.Find(paths, scenarios.LoadOptions{Config: a.configFile})
	for _, w := range found.Warnings {
		a.warn("Warning", w)
	}
	if err != nil {
		return nil, usage("nothing was played", "%w", err)
	}
	a.passedOver(found.Passed, verbose)
	if len(found.Cases) == 0 {
		return nil, usage("write one as docs/scenarios/tutorial.md shows", "no scenario was found: of %d YAML files none holds `scenario:`", len(found.Passed))
	}
	cases := suite.Select(found.Cases, re)
	if len(cases) == 0 {
		return nil, usage("list the names with --list", "no scenario was selected: -run %q matches none of %d", re, len(found.Cases))
	}
	return cases, nil
}

// passedOver says how many files were not played, and which if it is asked.
func (a *app) passedOver(files []string, verbose bool) {
	switch n := len(files); {
	case n == 0:
		return
	case n == 1:
		a.say("Passed over: 1 YAML file without `scenario:`")
	default:
		a.say("Passed over: %d YAML files without `scenario:`", n)
	}
	if verbose {
		for _, file := range files {
			a.say("  %s", terminal.Line(file))
		}
	}
}

// caseRow is a case in a list.
type caseRow struct{ suite.Case }

func (c caseRow) cells() []string { return []string{c.Name, c.Title} }

func (a *app) listCases(cases []suite.Case) error {
	rows := make([]caseRow, len(cases))
	for i, c := range cases {
		rows[i] = caseRow{c}
	}
	return list(a, []string{"SCENARIO", "TITLE"}, rows)
}

func (a *app) suiteOf(cases []suite.Case, f testFlags) (*suite.Suite, error) {
	self, err := self()
	if err != nil {
		return nil, err
	}
	s := &suite.Suite{
		Player: []string{self, playerName}, Cases: cases, Config: a.configFile, Jobs: f.jobs, Timeout: f.timeout,
		FailFast: f.failFast, Update: f.update, Seed: f.shuffle.seed, Tail: journalTail,
		Opens: func(state, run string) []string {
			more := " " + run + " --state " + quoted(state)
			return []string{program() + " show" + more, program() + " journal" + more}
		},
	}
	switch {
	case f.keep:
		s.Keep = suite.KeepAll
	case f.noKeep:
		s.Keep = suite.KeepNone
	}
	return s, nil
}

// reporters are that of stdout, and of --out; done closes its file.
func (a *app) reporters(f testFlags) (all []suite.Reporter, done func() error, err error) {
	add := func(format format, w io.Writer) {
		var r suite.Reporter
		if r, err = suite.NewReporter(suite.Format(format), w, f.verbose); err == nil {
			all = append(all, r)
		}
	}
	if f.out == "" {
		add(a.output, a.stdout)
		return all, func() error { return nil }, err
	}
	file, err := os.OpenFile(f.out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644) // #nosec G302: a report is for others to read
	if err != nil {
		return nil, nil, usage("give a file that can be written", "open the report: %w", err)
	}
	add(formatTable, a.stdout)
	add(a.output, file)
	return all, func() error {
		if err := file.Close(); err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		return nil
	}, err
}

// playSuite plays, with a line of progress on a terminal.
func (a *app) playSuite(ctx context.Context, s *suite.Suite, reporters []suite.Reporter) (suite.Summary, error) {
	a.lastly(func() {
		suite.Abandon()
		a.say("\nEnded at once: what was played is lost, and its folders are removed.")
	})
	if !term.IsTerminal(int(a.errs.Fd())) || os.Getenv("TERM") == "dumb" {
		return s.Run(ctx, reporters...)
	}
	l := newTestLine(a.stderr, terminal.Console{Out: a.errs}.Width(), len(s.Cases))
	defer l.end()
	s.Watch = l
	for i, r := range reporters {
		reporters[i] = aside{r, l}
	}
	return s.Run(ctx, reporters...)
}

// journalTail tells the last rows of a run's journal in words, and how many it has.
func journalTail(stateDir, run string, most int) (rows []string, all int64, err error) {
	if !there(filepath.Join(stateDir, stateFile)) {
		return nil, 0, agent.ErrNoRun
	}
	err = openedAt(stateDir, func(e agent.Engine, _ string) error {
		for entry, err := range e.Journal(context.Background(), run, 1, false) {
			if err != nil {
				return err
			}
			all++
			if rows = append(rows, entryLine(entry)); len(rows) > most {
				rows = rows[1:]
			}
		}
		return nil
	})
	return rows, all, err
}

// playerName is the command that plays one case of a suite.
const playerName = "scenario-player"

// playerCommand is what a suite starts for each case.
func (a *app) playerCommand() *cobra.Command {
	return &cobra.Command{
		Use: playerName, Short: "Play one scenario for a suite: reads an order on stdin", Args: cobra.NoArgs, Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			self, err := self()
			if err != nil {
				return err
			}
			return suite.Play(c.Context(), a.in, a.out, scenarios.StageOptions{Self: self, Endpoint: a.endpoint, Show: a.shown})
		},
	}
}
