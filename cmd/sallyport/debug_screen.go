package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/cmd/sallyport/screen"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/nodes"
	"sallyport/scenarios"
)

// screenFlags say whether the debugger has the whole screen.
type screenFlags struct {
	tui, line, act bool
	begun          bool // the run was begun to be debugged: it is there to be acted on
}

func (f *screenFlags) flags(c *cobra.Command) {
	c.Flags().BoolVar(&f.tui, "tui", false, "use the whole screen (the default on a terminal)")
	c.Flags().BoolVar(&f.line, "line", false, "type commands on a line instead")
	c.Flags().BoolVar(&f.act, "act", false, "on the screen: let it act on the run from the beginning, as with a FILE")
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		switch {
		case f.tui && f.line:
			return usage("give one of them", "debug: --tui and --line are two ways to debug")
		case f.act && c.Flags().Changed("read-only"):
			return usage("give one of them", "debug: --act and --read-only do not fit")
		}
		return nil
	}
}

// attend has the person look at the run: on the whole screen, on a line, or in a script.
func (sh *shell) attend(ctx context.Context, f debugFlags) error {
	switch {
	case f.tui && sh.script:
		return usage("leave --tui away", "debug run %s: there is no terminal, or nobody at it", sh.session.ID())
	case sh.script, f.line, !f.tui && os.Getenv("TERM") == "dumb":
		if err := sh.where(ctx); err != nil {
			return err
		}
		return sh.begin(ctx, f.do)
	}
	return sh.fullScreen(ctx, f.act || f.begun)
}

// fullScreen is the debugger over the whole terminal: the same session, and the same
// commands behind its colon.
func (sh *shell) fullScreen(ctx context.Context, acting bool) error {
	sh.readOnly = !acting
	typed, err := sh.remembered()
	if err != nil {
		return err
	}
	d := &desk{app: sh.app, host: &scenarios.Host{Engine: sh.engine}, run: sh.session.ID()}
	return screen.Run(ctx, screen.Config{
		Session:   func() *debug.Session { return sh.session },
		Candidate: d.candidate,
		Context:   sh.sent,
		Answer:    func(ctx context.Context, run agent.Run) (string, error) { return answer(ctx, sh.engine, run) },
		Detail:    detail,
		Displayed: sh.displayed,
		Do:        sh.doOnScreen,
		Acts:      actsOn,
		Complete:  sh.completions,
		Recalled:  typed.lines,
		Remember:  typed.Add,
		Acting:    acting,
		Allow:     func(acting bool) { sh.readOnly = !acting },
	}, sh.app.in, sh.app.errs)
}

// actsOn reports whether a line is a command that acts.
func actsOn(line string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	v, err := verbNamed(name)
	return err == nil && v.acts
}

// doOnScreen does a line and writes what it says to out; without one, on the bare
// terminal.
func (sh *shell) doOnScreen(ctx context.Context, line string, out io.Writer) error {
	if out == nil {
		return hinted(sh.interruptibly(ctx, line))
	}
	was := sh.out
	out = &shared{to: out}
	sh.out = out
	defer func() { sh.out = was }()
	defer sh.app.stdout.divert(out)()
	defer sh.app.stderr.divert(out)()
	return hinted(sh.do(ctx, line))
}

// shared lets several write to one.
type shared struct {
	mu sync.Mutex
	to io.Writer
}

// Write implements io.Writer.
func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to.Write(p)
}

// hinted is an error with what to do next.
func hinted(err error) error {
	if err == nil {
		return nil
	}
	code, next := codeOf(err)
	switch {
	case code == exitInterrupted:
		return errors.New("interrupted; nothing new was started")
	case next != "":
		return fmt.Errorf("%w; next: %s", err, next)
	}
	return err
}

// displayed is what `display` shows.
func (sh *shell) displayed() string {
	var b bytes.Buffer
	was := sh.out
	sh.out = &b
	defer func() { sh.out = was }()
	for _, path := range sh.displays {
		if err := sh.display1(path); err != nil {
			sh.print("%s: %s\n", terminal.Line(path), terminal.Message(err.Error()))
		}
	}
	return b.String()
}

// sent gives the messages that the model is sent as of an entry. It uses nothing of the
// shell but its engine.
func (sh *shell) sent(ctx context.Context, run agent.Run, seq int64) ([]screen.Message, error) {
	setup, err := scenarios.ReadSetup(ctx, sh.engine, run)
	if err != nil {
		return nil, err
	}
	entries := func(yield func(agent.Entry, error) bool) {
		for e, err := range sh.engine.Journal(ctx, run.ID, 1, false) {
			if err == nil && e.Seq > seq || !yield(e, err) || err != nil {
				return
			}
		}
	}
	body := func(ref agent.BodyRef) ([]byte, error) { return sh.engine.Body(ctx, run.ID, ref) }
	messages, err := nodes.Context(nodes.SystemText(setup.System), setup.Window, entries, body)
	if err != nil {
		return nil, err
	}
	out := make([]screen.Message, len(messages))
	for i, m := range messages {
		out[i] = screen.Message{Role: string(m.Role), Text: m.Content}
		for _, c := range m.ToolCalls {
			out[i].Text += fmt.Sprintf("\ncalls %s (%s) %s", c.Name, c.ID, c.Arguments)
		}
		out[i].Text = strings.TrimPrefix(out[i].Text, "\n")
		if m.ToolCallID != "" {
			out[i].Role += ", answers " + m.ToolCallID
		}
	}
	return out, nil
}

// completions are what a line that is being typed can become.
func (sh *shell) completions(line string) (lines []string) {
	at := strings.LastIndex(line, " ") + 1
	for _, c := range sh.candidates(line[:at]) {
		if strings.HasPrefix(c, line[at:]) {
			lines = append(lines, line[:at]+c)
		}
	}
	return lines
}

// remembered is what was typed before, here or on a line.
func (sh *shell) remembered() (*history, error) {
	path, err := sh.historyPath()
	if err != nil {
		return nil, err
	}
	h, err := readHistory(path)
	if err != nil {
		sh.app.warn("debug", err.Error())
	}
	return h, nil
}
