package main

import (
	"context"
	"errors"
	"fmt"

	"sallyport/agent"
	"sallyport/scenarios/config"
	"sallyport/tools/grant"
)

// exit is how the process ends: what scripts branch on.
type exit int

// The exit codes.
const (
	exitOK          exit = 0
	exitFailed      exit = 1
	exitUsage       exit = 2
	exitDenied      exit = 3
	exitNoKey       exit = 4
	exitParked      exit = 5
	exitUnknown     exit = 6
	exitUnreachable exit = 7
	exitIntegrity   exit = 8
	exitInterrupted exit = 130
)

// exits says what each code means; `sallyport help exit-codes` prints it.
var exits = []struct {
	code  exit
	means string
}{
	{exitOK, "ok; a run has completed, also after refused calls"},
	{exitFailed, "the run has failed or was cancelled, the scenario, acceptance or proof did not hold, or the state cannot be written"},
	{exitUsage, "usage or configuration, a script that does not fit its run included; files are named as file:line:col"},
	{exitDenied, "denied: the decision came late, is not allowed, or is about something else; or another process serves the run"},
	{exitNoKey, "no usable key, of an approver or of the model's endpoint: none is there, its file or passphrase is wrong, the run does not know it, or too few may approve"},
	{exitParked, "an approval is needed and there is nobody to ask; the run waits, or is paused"},
	{exitUnknown, "the outcome of a write is unknown; a person must find out"},
	{exitUnreachable, "the model or a required tool server cannot be reached"},
	{exitIntegrity, "the journal does not hold together, or a newer version wrote it"},
	{exitInterrupted, "interrupted; the run can be resumed, but for a demo or scenario, whose folder is removed unless --keep"},
}

// failure is an error with the exit code that it ends in and what to do next.
type failure struct {
	code exit
	err  error
	next string // one sentence or command; empty if there is nothing to suggest
}

// Error implements error.
func (f *failure) Error() string { return f.err.Error() }

// Unwrap returns the cause.
func (f *failure) Unwrap() error { return f.err }

// fail makes a failure from a message; %w works.
func fail(code exit, next, format string, args ...any) error {
	return &failure{code: code, err: fmt.Errorf(format, args...), next: next}
}

// usage is a failure of what the user typed or wrote.
func usage(next, format string, args ...any) error { return fail(exitUsage, next, format, args...) }

// errInterrupted is the cause of a context that Ctrl-C ended.
var errInterrupted = errors.New("interrupted")

// classes gives an exit code to errors that packages below return, the first match.
var classes = []struct {
	is   error
	code exit
	next string
}{
	{errInterrupted, exitInterrupted, ""},
	{context.Canceled, exitInterrupted, ""},
	{agent.ErrIntegrity, exitIntegrity, "the state directory was changed from outside, or its disk is at fault; restore it from a copy"},
	{agent.ErrNewer, exitIntegrity, "use the newer version of sallyport with this state directory"},
	{agent.ErrNoRun, exitUsage, "list what is there with: sallyport runs (and --state DIR, if the run is kept elsewhere)"},
	{agent.ErrServed, exitDenied, "another process is serving the run; watch it with: sallyport journal RUN --follow"},
	{agent.ErrExists, exitUsage, "choose another run id with --id"},
	{grant.ErrKeyFile, exitNoKey, "a private key must be a file of your own with mode 0600: chmod 600 FILE"},
	{config.ErrNoKey, exitNoKey, "set the variable, or name another under `endpoints` in your own configuration"},
	{grant.ErrPassphrase, exitNoKey, "try again on a terminal, where the passphrase is asked for"},
}

// codeOf gives the exit code and the advice for an error; nil is exitOK.
func codeOf(err error) (exit, string) {
	var f *failure
	if err == nil {
		return exitOK, ""
	}
	if errors.As(err, &f) {
		return f.code, f.next
	}
	if placed := new(config.Error); errors.As(err, &placed) {
		return exitUsage, ""
	}
	if refused := new(config.Refused); errors.As(err, &refused) {
		return exitUsage, "" // it says itself what to do
	}
	for _, c := range classes {
		if errors.Is(err, c.is) {
			return c.code, c.next
		}
	}
	return exitFailed, ""
}
