package screen

import (
	"context"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/cmd/sallyport/terminal"
)

// Config is what a screen shows, and what it hands on. All of it is called by one
// goroutine at a time, but for Context.
type Config struct {
	// Session is what is looked at. A command may have opened another.
	Session func() *debug.Session
	// Candidate is the candidate that waits in a run, with all that a person is shown.
	Candidate func(ctx context.Context, run agent.Run) (terminal.Pending, error)
	// Context gives the messages that the model is sent in a run as of an entry. It must
	// not use the session: it is called beside.
	Context func(ctx context.Context, run agent.Run, seq int64) ([]Message, error)
	// Answer is the model's last message in a run that has completed.
	Answer func(ctx context.Context, run agent.Run) (string, error)
	// Detail is what a line about an entry adds to its row and state.
	Detail func(agent.Entry) string

	// Displayed is what the person has asked to be shown at every step, fit for a terminal.
	Displayed func() string

	// Do performs a command of the line mode, and writes what it says, fit for a terminal.
	// With a nil out the command has the bare terminal, and may ask on it.
	Do func(ctx context.Context, line string, out io.Writer) error
	// Acts reports whether a command acts on a run: such is performed on the bare terminal.
	// One that moves the cursor does not, though where the recording ends it lets the run
	// itself go on, if acting is allowed.
	Acts func(line string) bool
	// Complete gives what a line that is being typed can become.
	Complete func(line string) []string

	// Recalled are commands that were typed before, oldest first; Remember keeps one more.
	// Neither need be given.
	Recalled []string
	Remember func(line string)

	// Acting lets commands act on the run, from the beginning.
	Acting bool
	// Allow is called when the person allows that, or ends it.
	Allow func(acting bool)
	// Poll is how often a run that is open is looked at again; 0 is [Poll].
	Poll time.Duration
}

// Poll is how often a run that is open is looked at again.
const Poll = 500 * time.Millisecond

// framesPerSecond bounds how often the terminal is written to: less over a slow line, and
// nobody reads faster.
const framesPerSecond = 30

// Run shows the screen until the person quits or ctx is done. The terminal is left as it
// was found, and the run as it is.
func Run(ctx context.Context, c Config, in, out *os.File) error {
	if c.Poll <= 0 {
		c.Poll = Poll
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	program := tea.NewProgram(newModel(ctx, c),
		tea.WithInput(in), tea.WithOutput(out), tea.WithFPS(framesPerSecond),
		tea.WithoutSignalHandler()) // package main hears signals, and ends ctx
	// Asked to quit, the program waits for its reader; given ctx, it would close the
	// terminal under it.
	defer context.AfterFunc(ctx, program.Quit)()
	_, err := program.Run()
	if err == nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
