// Command sallyport runs an agent whose every effect passes a gate: the model
// proposes, a person signs exactly those bytes, and a journal keeps what happened.
//
// This package wires the others together and owns what a user meets: commands, exit
// codes (exit.go), output, prompts. What a run means is package agent's, what YAML
// means package scenarios/config's. Data goes to stdout, all else to stderr.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"sallyport/cmd/sallyport/terminal"
	"sallyport/tools/bridge"
)

func main() {
	bridge.AdoptOrphans() // no child of the command's own is in a session of its own
	os.Exit(int(start(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)))
}

// start runs one command and returns its exit code.
func start(args []string, in, out, errs *os.File) exit {
	survivePipes()
	a := &app{in: in, out: out, errs: errs, stdout: &stream{file: out}, stderr: &stream{file: errs}}
	ctx, stop := interruptible(a.caught, a.interrupted, a.atOnce)
	defer stop()
	root := a.root()
	root.SetArgs(oneDash(args))
	root.SetIn(in)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return a.code
	}
	if cause := context.Cause(ctx); errors.Is(cause, errInterrupted) && errors.Is(err, context.Canceled) {
		err = fail(exitInterrupted, "", "%w", errInterrupted)
	}
	code, next := codeOf(err)
	if !a.began {
		code, next = exitUsage, "see: "+command.CommandPath()+" --help"
	}
	a.complain(command.CommandPath(), err, next)
	return code
}

// complain writes an error with what was attempted and what to do next.
func (a *app) complain(attempted string, err error, next string) {
	a.warn(attempted, err.Error())
	if next != "" {
		_, _ = fmt.Fprintln(a.stderr, "  next: "+terminal.Message(next))
	}
}

// warn writes a message of one or more lines.
func (a *app) warn(about, message string) {
	for i, line := range strings.Split(message, "\n") {
		if i == 0 {
			line = about + ": " + line
		}
		_, _ = fmt.Fprintln(a.stderr, terminal.Message(line)) // there is nowhere else to say it
	}
}

// interruptible gives a context that the first Ctrl-C, or a termination, ends: then
// nothing new is started and a Send in flight is waited for. The second ends the
// process at once, after atOnce; children end by the end of their input. What caught takes
// does neither.
func interruptible(caught func(os.Signal) bool, interrupted, atOnce func()) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	done := make(chan struct{})
	go func() { // ends with done
		for seen := 0; ; seen++ {
			select {
			case <-done:
				return
			case s := <-signals:
				if caught(s) {
					seen--
					continue
				}
				if seen > 0 {
					atOnce()
					os.Exit(int(exitInterrupted))
				}
				cancel(errInterrupted)
				interrupted()
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}
