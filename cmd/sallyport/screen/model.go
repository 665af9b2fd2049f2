package screen

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/cmd/sallyport/terminal"
)

// paneID names a pane.
type paneID int

const (
	stepsPane paneID = iota
	callPane
	contextPane
	journalPane
	whyPane
	machinePane
	outputPane
	panes // how many
)

// titles are what the panes are called.
var titles = [panes]string{"Steps", "Call", "Context", "Journal", "Why", "Machine", "Output"}

// maxQueued bounds the keys that are kept while something is at work; maxOutput, the
// lines of output that are.
const (
	maxQueued = 256
	maxOutput = 20_000
)

// model is the screen. Bubbletea calls it from one goroutine; what it works on beside
// comes back as a message, and until then it touches nothing of the session.
type model struct {
	ctx    context.Context
	config Config

	width, height int
	panes         [panes]pane
	focus         paneID
	tab           paneID // the pane beside the steps, or under the call
	zoomed        bool
	helping       bool
	help          pane

	acting    bool
	following bool
	message   string // of the last thing done
	urgent    bool

	prompt prompt
	find   search
	output fixed

	journal *journal
	talk    talk
	asked   ask  // what talk is of
	fetched ask  // what is being fetched
	waiting bool // for it

	working func() // stops what is at work; nil: nothing is
	queued  []tea.KeyPressMsg
	cmds    []tea.Cmd
	frame   string
	unsaid  string // how much a pane has, where the row over it had no room
}

func newModel(ctx context.Context, c Config) *model {
	m := &model{ctx: ctx, config: c, width: 80, height: 24, tab: callPane, acting: c.Acting}
	m.prompt.recalled = slices.Clone(c.Recalled[max(0, len(c.Recalled)-maxRecalled):])
	s := c.Session()
	m.following = s.Last().State.Open() && s.Position().Step == s.Steps()
	m.journal = &journal{ctx: ctx, detail: c.Detail}
	return m
}

// tick is when an open run is looked at again.
type tick time.Time

// done is what came of work beside.
type done struct {
	stop   *debug.Stop
	output string
	show   bool // the output is for the pane
	err    error
}

// Init implements [tea.Model].
func (m *model) Init() tea.Cmd { return m.later() }

func (m *model) later() tea.Cmd {
	return tea.Tick(m.config.Poll, func(t time.Time) tea.Msg { return tick(t) })
}

// Update implements [tea.Model].
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.cmds = nil
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		m.press(msg)
	case tea.PasteMsg:
		if m.prompt.sign != 0 {
			m.prompt.add(msg.Content)
		}
	case tick:
		m.refresh()
		m.cmds = append(m.cmds, m.later())
	case talk:
		m.took(msg)
	case done:
		m.finish(msg)
	}
	if m.working == nil {
		m.draw()
	}
	return m, tea.Batch(m.cmds...)
}

// View implements [tea.Model].
func (m *model) View() tea.View {
	v := tea.NewView(m.frame)
	v.AltScreen = true
	return v
}

// press takes a key, now or when what is at work is done.
func (m *model) press(k tea.KeyPressMsg) {
	switch {
	case m.working != nil && k.String() == "ctrl+c":
		m.working()
		m.queued = nil
		m.message = "Stopping: nothing new is started; a call that was sent already is waited for."
		m.drawFoot()
	case m.working != nil:
		if len(m.queued) < maxQueued {
			m.queued = append(m.queued, k)
		}
	case m.prompt.sign != 0:
		m.typed(k)
	default:
		m.message, m.urgent = "", false
		m.command(k.String())
	}
}

// command does what a key stands for.
func (m *model) command(name string) {
	if m.find.text != "" && (name == "n" || name == "N") {
		m.found(map[string]int{"n": 1, "N": -1}[name])
		return
	}
	if len(name) == 1 && name >= "0" && name <= "6" {
		m.choose(paneID(name[0] - '0'))
		return
	}
	for _, k := range table() {
		for _, is := range k.keys {
			if is == name && k.do != nil {
				k.do(m)
				return
			}
		}
	}
}

// typed takes a key for the prompt.
func (m *model) typed(k tea.KeyPressMsg) {
	p := &m.prompt
	switch k.String() {
	case "esc", "ctrl+c":
		p.close()
	case "enter":
		sign, text := p.sign, strings.TrimSpace(p.text)
		p.close()
		m.message, m.urgent = "", false
		if sign == '/' {
			m.seek(text)
			return
		}
		m.run(text)
	case "backspace", "ctrl+h":
		p.rub()
	case "ctrl+w":
		p.word()
	case "ctrl+u":
		p.text = ""
	case "up", "ctrl+p":
		p.recall(-1)
	case "down", "ctrl+n":
		p.recall(1)
	case "tab":
		p.complete(m.config.Complete)
	default:
		p.add(k.Text)
	}
}

func (m *model) say(format string, args ...any) {
	m.message = terminal.Message(fmt.Sprintf(format, args...))
}

// complain says what went wrong; what the row at the bottom has no room for is in the
// output too.
func (m *model) complain(err error) {
	m.say("%s", err.Error())
	m.urgent = true
	if cells(m.message) > m.width-2 {
		message := m.message
		m.tell(message, true)
		m.message = message
	}
}

// session is what is looked at.
func (m *model) session() *debug.Session { return m.config.Session() }

// refresh reads what was appended to an open run.
func (m *model) refresh() {
	s := m.session()
	if m.working != nil || s.Last().State.Final() {
		return
	}
	atEnd := s.Position().Step == s.Steps()
	added, err := s.Refresh(m.ctx)
	if err != nil {
		m.complain(err)
		return
	}
	if added > 0 && atEnd && m.following {
		m.moved(s.Goto(m.ctx, s.Steps()))
	}
}

// took takes a context that was fetched.
func (m *model) took(t talk) {
	m.waiting = false
	m.talk, m.asked = t, m.fetched
}

// beside lets something work that may take a while: it alone has the session until then.
func (m *model) beside(what string, do func(ctx context.Context) done) {
	ctx, stop := context.WithCancel(m.ctx)
	m.message = what + " … ctrl-c stops it"
	m.draw()
	m.working = stop
	m.cmds = append(m.cmds, func() tea.Msg {
		defer stop()
		return do(ctx)
	})
}

// finish takes what came of work beside, and the keys that waited for it.
func (m *model) finish(d done) {
	m.working, m.message = nil, ""
	m.journal.upTo = 0 // another run, perhaps
	m.panes[callPane].of = ""
	if d.output != "" {
		m.tell(d.output, d.show)
	}
	if d.stop != nil {
		m.message, m.urgent = stopped(*d.stop, m.session().Last()), d.stop.Reason == debug.Hit
	}
	if d.err != nil {
		m.complain(d.err)
	}
	for len(m.queued) > 0 && m.working == nil {
		k := m.queued[0]
		m.queued = m.queued[1:]
		m.press(k)
	}
}

// tell adds to the output, and shows it, or says its last line.
func (m *model) tell(text string, show bool) {
	lines := wrapped(text, max(m.width-1, 1))
	m.output = append(m.output, lines...)
	if over := len(m.output) - maxOutput; over > 0 {
		m.output = m.output[over:]
	}
	if show {
		m.choose(outputPane)
		return
	}
	m.message = strings.TrimSpace(lines[len(lines)-1].text)
}

// run performs a command of the line mode.
func (m *model) run(line string) {
	if m.prompt.remember(line) && m.config.Remember != nil {
		m.config.Remember(line)
	}
	switch line {
	case "":
		return
	case "q", "quit", "exit":
		m.quit()
		return
	case "act", "act on":
		m.act(true)
		return
	case "act off":
		m.act(false)
		return
	case "help", "?":
		m.toggleHelp()
		return
	}
	m.perform(line, true)
}

// perform has a command done: on the bare terminal if it acts, and else beside. What it
// says is shown, or only its last line.
func (m *model) perform(line string, show bool) {
	switch acts := m.config.Acts(line); {
	case acts && !m.acting:
		m.say("%s acts on the run, and the screen only looks: allow it with :act", terminal.Line(line))
		m.urgent = true
	case acts:
		m.cmds = append(m.cmds, tea.Exec(&bare{ctx: m.ctx, do: m.config.Do, line: line}, func(err error) tea.Msg { return done{err: err} }))
	default:
		m.beside(":"+terminal.Line(line), func(ctx context.Context) done {
			d := done{show: show}
			d.output, d.err = m.outputOf(ctx, line)
			return d
		})
	}
}

// outputOf is what a command says, under its own line.
func (m *model) outputOf(ctx context.Context, line string) (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%s ──\n", outputHead, terminal.Line(line))
	empty := b.Len()
	err := m.config.Do(ctx, line, &b)
	if b.Len() == empty {
		return "", err
	}
	return b.String(), err
}

// outputHead stands before what a command says.
const outputHead = "── :"

func (m *model) act(on bool) {
	m.acting = on
	m.config.Allow(on)
	if on {
		m.say("Commands that act on the run are let through; :act off ends that.")
		return
	}
	m.say("The screen only looks.")
}

// bare is a command on the bare terminal, after which the person is waited for.
type bare struct {
	ctx  context.Context
	do   func(context.Context, string, io.Writer) error
	line string
	in   io.Reader
	out  io.Writer
}

func (b *bare) SetStdin(r io.Reader)  { b.in = r }
func (b *bare) SetStdout(w io.Writer) { b.out = w }
func (b *bare) SetStderr(io.Writer)   {}

// Run performs it.
func (b *bare) Run() error {
	_, _ = fmt.Fprintf(b.out, "sallyport debug: %s\n", terminal.Line(b.line))
	if err := b.do(b.ctx, b.line, nil); err != nil {
		_, _ = fmt.Fprintln(b.out, terminal.Message(err.Error()))
	}
	_, _ = fmt.Fprint(b.out, "Enter goes back to the screen. ")
	for one := make([]byte, 1); ; {
		if n, err := b.in.Read(one); err != nil || n == 1 && (one[0] == '\n' || one[0] == '\r') {
			return nil // the terminal's end is seen by the screen itself
		}
	}
}

// moved shows how a movement ended, and does what belongs to the breakpoints.
func (m *model) moved(stop debug.Stop, err error) {
	if err != nil {
		m.complain(err)
		return
	}
	m.message = stopped(stop, m.session().Last())
	m.urgent = stop.Reason == debug.Hit
	if does(stop) {
		m.beside("at the breakpoint", func(ctx context.Context) done {
			return m.hit(ctx, done{stop: &stop})
		})
	}
}

// does reports whether a stop has commands that belong to it.
func does(stop debug.Stop) bool {
	return slices.ContainsFunc(stop.Breakpoints, func(b *debug.Breakpoint) bool { return len(b.Do) > 0 })
}

// hit does the commands of the breakpoints of a stop. Those that act would ask, and the
// screen is in the way.
func (m *model) hit(ctx context.Context, d done) done {
	for _, b := range d.stop.Breakpoints {
		for _, line := range b.Do {
			if m.config.Acts(line) {
				d.output += fmt.Sprintf("%s%s ──\nnot done: it acts on the run\n", outputHead, terminal.Line(line))
				continue
			}
			said, err := m.outputOf(ctx, line)
			d.output, d.show = d.output+said, true
			if err != nil {
				d.err = err
				return d
			}
		}
	}
	return d
}

// stopped says why a movement stopped.
func stopped(stop debug.Stop, last agent.Run) string {
	var parts []string
	switch {
	case stop.Reason == debug.AtBeginning:
		parts = append(parts, "This is the first step.")
	case stop.Reason == debug.AtEnd && last.State.Final():
		parts = append(parts, "This is the last step: the run has ended.")
	case stop.Reason == debug.AtEnd:
		parts = append(parts, "This is the last step so far; the run is open.")
	}
	for _, b := range stop.Breakpoints {
		parts = append(parts, fmt.Sprintf("Breakpoint %d: %s.", b.ID, terminal.Line(b.String())))
	}
	for _, f := range stop.Changed {
		parts = append(parts, fmt.Sprintf("%s was %s, is %s.", f.Path, terminal.Line(f.A), terminal.Line(f.B)))
	}
	return strings.Join(parts, " ")
}
