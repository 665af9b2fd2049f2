package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios/config"
)

// health is what a check came to.
type health string

// What checks come to.
const (
	healthPass health = "PASS"
	healthWarn health = "WARN" // it works, and could be better
	healthFail health = "FAIL" // a run could not work with it
	healthSkip health = "SKIP" // there was nothing to try, or it was not asked for
)

// finding is one check of the doctor, and what to do about it.
type finding struct {
	Check  string `json:"check"`
	Health health `json:"health"`
	Says   string `json:"says"`           // what was tried, and what was seen
	Do     string `json:"do,omitempty"`   // what to do about it
	Exit   exit   `json:"exit,omitempty"` // of FAIL: the exit code of commands that meet it
}

// doctor is one examination.
type doctor struct {
	app      *app
	live     bool
	found    []finding
	told     error // that stdout could not be written
	home     string
	user     *config.User   // never nil once read
	conf     *config.Config // nil: there is none, or it is wrong
	stateDir string
	self     string
	scratch  string // a folder of its own, which is removed
}

func (a *app) doctorCommand() *cobra.Command {
	var live bool
	c := &cobra.Command{
		Use: "doctor", Short: "Check what a run needs, and say what to do if something is amiss", Args: cobra.NoArgs,
		Long: `Try everything that a run needs, and print a line for each check: PASS, WARN, FAIL or
SKIP, what was tried, and what to do about it. It works without any configuration, and
changes nothing: what it makes, it makes in a temporary folder.

Servers are started, asked for their tools, and ended; no tool of theirs is called. A
model behind an endpoint is asked for one short run, in which it has to add two numbers
with the calculator server. With --live it is asked a few more short questions, to
see whether it streams, whether it says what a turn costs, and which profile fits it.
Keys and passphrases are never shown.

The exit code is 0 if nothing fails; else the highest that a failed check stands for, as
in "sallyport help exit-codes".`,
		RunE: func(c *cobra.Command, _ []string) error { return a.doctor(c.Context(), live) },
	}
	c.Flags().BoolVar(&live, "live", false, "ask the model more: streaming, usage, and which profile fits")
	return c
}

func (a *app) doctor(ctx context.Context, live bool) (err error) {
	d := &doctor{app: a, live: live, user: &config.User{}}
	if d.self, err = self(); err != nil {
		return err
	}
	if d.scratch, err = os.MkdirTemp("", "sallyport-doctor-"); err != nil {
		return fmt.Errorf("make a folder to try things in: %w", err)
	}
	remove := func() { _ = os.RemoveAll(d.scratch) } // it is temporary
	a.lastly(remove)
	defer remove()
	for _, check := range []func(context.Context){
		d.program, d.configuration, d.state, d.clock, d.keys, d.builtins, d.servers, d.model, d.terminal,
	} {
		if check(ctx); context.Cause(ctx) != nil {
			return context.Cause(ctx)
		}
	}
	if err := d.conclude(); err != nil {
		return err
	}
	return d.told
}

// conclude sets the exit code, and prints what was not printed yet.
func (d *doctor) conclude() error {
	for _, f := range d.found {
		if f.Health == healthFail {
			d.app.code = max(d.app.code, f.Exit)
		}
	}
	if d.app.output == formatJSON {
		return d.app.json(d.found, true)
	}
	if d.app.code != exitOK {
		d.app.say("What failed has to be mended before a run can work.")
	}
	return nil
}

// find notes a finding, and tells it at once where lines are printed.
func (d *doctor) find(f finding) {
	if f.Health != healthFail {
		f.Exit = exitOK
	}
	d.found = append(d.found, f)
	switch d.app.output {
	case formatJSON:
	case formatJSONL:
		d.tell(d.app.json(f, false))
	default:
		d.tell(d.app.print("%s", f.text()))
	}
}

func (d *doctor) tell(err error) {
	if d.told == nil {
		d.told = err
	}
}

// text is the finding for people.
func (f finding) text() string {
	var b strings.Builder
	lead := fmt.Sprintf("%s  %-14s ", f.Health, f.Check)
	for i, line := range strings.Split(strings.TrimRight(f.Says, "\n"), "\n") {
		if i > 0 {
			lead = "      "
		}
		b.WriteString(lead + terminal.Message(line) + "\n")
	}
	if f.Do != "" {
		for i, line := range strings.Split(f.Do, "\n") {
			b.WriteString([]string{"      do: ", "          "}[min(i, 1)] + terminal.Message(line) + "\n")
		}
	}
	return b.String()
}

func (d *doctor) pass(check, format string, args ...any) {
	d.find(finding{Check: check, Health: healthPass, Says: fmt.Sprintf(format, args...)})
}

func (d *doctor) skip(check, format string, args ...any) {
	d.find(finding{Check: check, Health: healthSkip, Says: fmt.Sprintf(format, args...)})
}

func (d *doctor) warn(check, do, format string, args ...any) {
	d.find(finding{Check: check, Health: healthWarn, Says: fmt.Sprintf(format, args...), Do: do})
}

func (d *doctor) fail(check string, code exit, do, format string, args ...any) {
	d.find(finding{Check: check, Health: healthFail, Says: fmt.Sprintf(format, args...), Do: do, Exit: code})
}

// failErr is fail with the exit code and the advice that commands give to the error.
func (d *doctor) failErr(check, do string, err error) {
	code, next := codeOf(err)
	if do == "" {
		do = next
	}
	d.fail(check, code, do, "%s", err)
}
