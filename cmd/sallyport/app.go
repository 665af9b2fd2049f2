package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios/config"
)

// app is one invocation: its streams, its global flags, and how it is to end.
type app struct {
	in, out, errs  *os.File
	stdout, stderr *stream // out and errs, for writing

	stateDir   string // --state
	configFile string // --config
	logFile    string // --log-file
	noInput    bool   // --no-input
	streams    bool   // --stream
	output     format // -o

	configured *string // the state directory that configuration names, once known

	began bool // the arguments were understood
	code  exit // where no error says otherwise

	// shared, if set, is the engine that a command has open, for those that it does itself.
	shared agent.Engine

	mu    sync.Mutex
	catch func(os.Signal) bool // takes a signal for itself
	last  []func()             // done before the process ends at once
}

// lastly says what is done even if the process must end at once, after what was said
// before.
func (a *app) lastly(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last = append(a.last, do)
}

// interrupted says that the first Ctrl-C was heard, where somebody may be waiting.
func (a *app) interrupted() {
	if a.console().Interactive() {
		a.say("\nInterrupted: nothing new is started; a call in flight is waited for. Ctrl-C again ends at once.")
	}
}

// atOnce is the last thing before the process ends at once.
func (a *app) atOnce() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, do := range a.last {
		do()
	}
}

// root is the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "sallyport",
		Short: "An agent proposes; a person signs exactly those bytes; then it happens, once.",
		Long: `sallyport runs a model as an agent over tool servers. The model can only propose.
What writes waits until a person has signed exactly those bytes, and a journal keeps
every step, so that nothing is lost and nothing happens twice.

Start with: sallyport demo`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.stateDir, "state", "", "state `DIR` (default: $XDG_STATE_HOME/sallyport)")
	flags.StringVar(&a.configFile, "config", "", "configuration `FILE` (default: sallyport.yaml beside the file or above it)")
	flags.StringVar(&a.logFile, "log-file", "", "append the JSON log to `FILE`; - is stderr (default: in the state directory)")
	flags.BoolVar(&a.noInput, "no-input", false, "never ask; park instead")
	flags.VarP(&a.output, "output", "o", "output `FORMAT`: table, json or jsonl")
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error {
		if err := a.formatFits(c); err != nil {
			return err
		}
		a.began = true
		return nil
	}
	root.AddCommand(
		a.demoCommand(), a.runCommand(), a.testCommand(), a.playerCommand(), a.runsCommand(), a.showCommand(), a.journalCommand(),
		a.approvalsCommand(), a.approveCommand(), a.rejectCommand(),
		a.debugCommand(), a.resumeCommand(), a.extendCommand(), a.forkCommand(), a.pauseCommand(), a.cancelCommand(), a.auditCommand(),
		a.verifyCommand(),
		a.scenarioCommand(), a.serveCommand(), a.backupCommand(), a.gcCommand(), a.eraseCommand(),
		a.acceptCommand(), a.graphCommand(), a.timelineCommand(), a.proveCommand(), a.keysCommand(), a.doctorCommand(), a.mcpCommand(), a.versionCommand(), a.legCommand(), exitCodesTopic(),
	)
	return root
}

// exitCodesTopic is a help topic: a command without anything to run.
func exitCodesTopic() *cobra.Command {
	var b strings.Builder
	for _, e := range exits {
		fmt.Fprintf(&b, "%4d  %s\n", e.code, e.means)
	}
	return &cobra.Command{Use: "exit-codes", Short: "What the exit codes mean", Long: strings.TrimRight(b.String(), "\n")}
}

// console is the terminal to ask on; it may not be one.
func (a *app) console() terminal.Console { return terminal.Console{In: a.in, Out: a.errs} }

// asks reports whether there is somebody to ask.
func (a *app) asks() bool { return !a.noInput && a.console().Interactive() }

// say writes a line for people.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.stderr, format+"\n", args...) // stderr is nobody's data
}

// statePath is the state directory: the flag, else what the configuration says, else
// XDG_STATE_HOME. It is absolute and need not exist.
func (a *app) statePath() (string, error) {
	if a.stateDir != "" {
		return filepath.Abs(a.stateDir)
	}
	if a.configured == nil {
		state, err := a.configuredState()
		if err != nil {
			return "", err
		}
		a.configured = &state
	}
	if *a.configured != "" {
		return *a.configured, nil
	}
	return defaultState()
}

func defaultState() (string, error) {
	dir, err := config.StateDir()
	if err != nil {
		return "", usage("name one with --state DIR", "find the state directory: %w", err)
	}
	return dir, nil
}

// configuredState is the state directory that a configuration names: --config, or that
// of the folder we are in, or the user's own; empty if none does.
func (a *app) configuredState() (string, error) {
	file := a.configFile
	if file == "" {
		var err error
		if file, err = config.Find("."); err != nil && !errors.Is(err, config.ErrNotFound) {
			return "", usage("", "%w", err)
		}
	}
	if file != "" {
		c, err := config.Load(file, config.Options{})
		if err != nil {
			return "", usage("", "%w", err)
		}
		return c.State, nil
	}
	home, err := configHome()
	if err != nil {
		return "", err
	}
	u, err := config.LoadUser(home)
	if err != nil {
		return "", usage("", "%w", err)
	}
	return u.State, nil
}

// configHome is where the user's own configuration and keys are.
func configHome() (string, error) {
	dir, err := config.UserDir()
	if err != nil {
		return "", usage("", "%w", err)
	}
	return dir, nil
}
