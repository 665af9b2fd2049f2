package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"text/tabwriter"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/cmd/sallyport/terminal"
)

// prompt stands before what is typed, and in scripts before what was read.
const prompt = "(sallyport) "

// shell is the debugger in line mode: it does one line after the other.
type shell struct {
	app      *app
	engine   agent.Engine
	session  *debug.Session
	out      io.Writer
	readOnly bool
	script   bool // nobody types: lines are shown, and the first that fails ends it

	displays []string    // paths that are shown after each movement
	last     string      // the movement that an empty line repeats
	shown    int64       // the entry up to which what happens was told
	serving  atomic.Bool // the run itself goes on: a call may be in flight
	depth    int         // of files that read files
	over     bool
}

// verb is a command of the debugger.
type verb struct {
	names    []string // the first is its own, the others stand for it
	args     string
	says     string
	acts     bool // it acts on the run, or begins another
	moves    bool // an empty line repeats it
	do       func(sh *shell, ctx context.Context, args string) error
	complete func(sh *shell) []string
}

// verbs are all of them, in the order of the help.
func verbs() []verb {
	return slices.Concat(movingVerbs(), breakpointVerbs(), lookingVerbs(), actingVerbs(), shellVerbs())
}

func shellVerbs() []verb {
	return []verb{
		{names: []string{"runs"}, args: "[FLAG ...]", says: "list the runs", do: (*shell).runs},
		{names: []string{"open"}, args: "RUN", says: "look at another run", do: (*shell).openOther, complete: (*shell).runIDs},
		{names: []string{"source"}, args: "FILE", says: "do the lines of a file", do: (*shell).source},
		{names: []string{"help", "h", "?"}, args: "[COMMAND]", says: "say what the commands are", do: (*shell).help, complete: func(*shell) []string { return verbNames() }},
		{names: []string{"quit", "q", "exit"}, says: "leave the debugger, and the run as it is", do: func(sh *shell, _ context.Context, _ string) error { sh.over = true; return nil }},
	}
}

func verbNames() (names []string) {
	for _, v := range verbs() {
		names = append(names, v.names[0])
	}
	return names
}

// verbNamed finds a command by one of its names, or the beginning of only one.
func verbNamed(name string) (verb, error) {
	var found []verb
	for _, v := range verbs() {
		if slices.Contains(v.names, name) {
			return v, nil
		}
		if strings.HasPrefix(v.names[0], name) {
			found = append(found, v)
		}
	}
	switch len(found) {
	case 0:
		return verb{}, usage("list them with: help", "there is no command %q", name)
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, v := range found {
		names[i] = v.names[0]
	}
	return verb{}, usage("", "%q is the beginning of %s", name, strings.Join(names, ", "))
}

// do does one line. What has nothing before a # is a remark.
func (sh *shell) do(ctx context.Context, line string) error {
	line = strings.TrimSpace(line)
	if line == "" && !sh.script {
		line = sh.last
	}
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	name, args, _ := strings.Cut(line, " ")
	v, err := verbNamed(name)
	if err != nil {
		return err
	}
	if v.acts && sh.readOnly {
		return usage("begin the debugger without --read-only", "%s: the debugger only looks", v.names[0])
	}
	if args = strings.TrimSpace(args); v.args == "" && !v.acts {
		if err := none(v.names[0], args); err != nil {
			return err
		}
	}
	if sh.last = ""; v.moves {
		sh.last = line
	}
	sh.app.code = exitOK
	return v.do(sh, ctx, args)
}

// begin does what was given with --exec, or what is read.
func (sh *shell) begin(ctx context.Context, lines []string) error {
	switch {
	case lines != nil:
		return sh.lines(ctx, strings.NewReader(strings.Join(lines, "\n")))
	case sh.script:
		return sh.lines(ctx, sh.app.in)
	}
	return sh.converse(ctx)
}

// longestCommand bounds a line, in bytes: of a substitute, which may hold a document.
const longestCommand = 1 << 20

// lines does every line, showing it, until one fails.
func (sh *shell) lines(ctx context.Context, from io.Reader) error {
	in := bufio.NewScanner(from)
	in.Buffer(nil, longestCommand)
	for !sh.over && in.Scan() {
		sh.print("%s%s\n", prompt, terminal.Line(in.Text()))
		if err := sh.do(ctx, in.Text()); err != nil {
			return err
		}
	}
	if err := in.Err(); err != nil {
		return usage("", "read the commands: %w", err)
	}
	return nil
}

// maxSources bounds how deep files of commands read one another.
const maxSources = 8

func (sh *shell) source(ctx context.Context, path string) error {
	if path == "" {
		return usage("name it", "source: no file")
	}
	if sh.depth >= maxSources {
		return usage("", "source %q: files read one another more than %d deep", path, maxSources)
	}
	file, err := os.Open(path)
	if err != nil {
		return usage("", "source: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	sh.depth++
	defer func() { sh.depth-- }()
	return sh.lines(ctx, file)
}

// converse reads from the terminal until it is left. What fails is told, and that is
// all. Ctrl-C ends the command, not the debugger.
func (sh *shell) converse(ctx context.Context) error {
	in, err := sh.reader()
	if err != nil {
		return err
	}
	sh.print("Type help for the commands.\n")
	for !sh.over {
		line, err := in.line(prompt)
		switch {
		case errors.Is(err, io.EOF):
			sh.print("\n")
			return nil
		case err != nil:
			return fmt.Errorf("read the terminal: %w", err)
		}
		if err := sh.interruptibly(ctx, line); err != nil {
			code, next := codeOf(err)
			if ctx.Err() != nil {
				return err
			}
			if code == exitInterrupted {
				err, next = errors.New("interrupted; nothing new was started"), ""
			}
			sh.app.complain("debug", err, next)
		}
	}
	return nil
}

// interruptibly does a line that Ctrl-C ends.
func (sh *shell) interruptibly(ctx context.Context, line string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer sh.app.catching(func(s os.Signal) bool {
		if s != os.Interrupt {
			return false
		}
		stop()
		if sh.serving.Swap(false) {
			sh.app.say("\nInterrupted: nothing new is started; a call that was sent already is waited for.")
		}
		return true
	})()
	return sh.do(ctx, line)
}

// catching lets catch have the signals that it wants, until the returned function is
// called.
func (a *app) catching(catch func(os.Signal) bool) func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.catch = catch
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.catch = nil
	}
}

// caught reports whether a command took a signal for itself.
func (a *app) caught(s os.Signal) bool {
	a.mu.Lock()
	catch := a.catch
	a.mu.Unlock()
	return catch != nil && catch(s)
}

func (sh *shell) help(_ context.Context, about string) error {
	w := tabwriter.NewWriter(sh.out, 0, 8, 2, ' ', 0)
	defer func() { _ = w.Flush() }() // stdout tells when it breaks
	if about != "" {
		v, err := verbNamed(about)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s %s\n  %s\n", strings.Join(v.names, ", "), v.args, strings.ReplaceAll(v.says, "\n", "\n  "))
		return nil
	}
	for _, part := range []struct {
		title string
		verbs []verb
	}{
		{"Moving", movingVerbs()}, {"Stopping", breakpointVerbs()}, {"Looking", lookingVerbs()},
		{"Acting, where the run is now", actingVerbs()}, {"The debugger", shellVerbs()},
	} {
		fmt.Fprintf(w, "%s\n", part.title)
		for _, v := range part.verbs {
			says, _, _ := strings.Cut(v.says, "\n")
			fmt.Fprintf(w, "  %s\t%s\n", strings.TrimSpace(strings.Join(v.names, ", ")+" "+v.args), says)
		}
	}
	return nil
}

func (sh *shell) openOther(ctx context.Context, id string) error {
	if err := sh.open(ctx, id); err != nil {
		return err
	}
	return sh.where(ctx)
}

func (sh *shell) runs(ctx context.Context, args string) error {
	return sh.command(ctx, sh.app.runsCommand(), args)
}

func (sh *shell) runIDs() (ids []string) {
	found, err := sh.engine.List(context.Background(), agent.Filter{})
	if err != nil {
		return nil // a completion has nowhere to say so
	}
	for _, s := range found {
		ids = append(ids, s.ID)
	}
	return ids
}

// print writes what somebody looks at; stdout tells when it breaks.
func (sh *shell) print(format string, args ...any) { _, _ = fmt.Fprintf(sh.out, format, args...) }

// table writes rows in columns.
func (sh *shell) table(rows [][]string) {
	w := tabwriter.NewWriter(sh.out, 0, 8, 2, ' ', 0)
	for _, cells := range rows {
		for i := range cells {
			cells[i] = terminal.Line(cells[i])
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_ = w.Flush()
}
