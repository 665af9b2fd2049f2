package screen

import "strings"

// key is what a key does.
type key struct {
	keys []string // as bubbletea names them
	name string   // as the help does
	does string
	do   func(*model)
}

// table is every key of the screen; the help is made from it.
func table() []key {
	return []key{
		{[]string{"s", "right"}, "s right", "one step on", (*model).stepOn},
		{[]string{"b", "left"}, "b left", "one step back; nothing is undone", (*model).stepBack},
		{[]string{"n"}, "n", "on to the end of this call, or of the next one", (*model).next},
		{[]string{"p"}, "p", "back to where the call before ended", (*model).previous},
		{[]string{"c"}, "c", "on to a breakpoint, or to the end", (*model).on},
		{[]string{"r"}, "r", "back to a breakpoint, or to the beginning", (*model).rewind},
		{[]string{"]"}, "]", "on to the next step that asks, or is, a person's", func(m *model) { m.person(1) }},
		{[]string{"["}, "[", "back to the one before", func(m *model) { m.person(-1) }},
		{[]string{"j", "down"}, "j down", "a line down; in the steps, a step on", func(m *model) { m.line(1) }},
		{[]string{"k", "up"}, "k up", "a line up; in the steps, a step back", func(m *model) { m.line(-1) }},
		{[]string{"pgdown", "ctrl+f", "space"}, "pgdn space", "a page down", func(m *model) { m.page(1) }},
		{[]string{"pgup", "ctrl+b"}, "pgup ctrl-b", "a page up", func(m *model) { m.page(-1) }},
		{[]string{"g", "home"}, "g home", "to the top", func(m *model) { m.edge(-1) }},
		{[]string{"G", "end"}, "G end", "to the bottom", func(m *model) { m.edge(1) }},
		{[]string{"tab"}, "tab", "to the next pane", func(m *model) { m.turn(1) }},
		{[]string{"shift+tab"}, "shift-tab", "to the pane before", func(m *model) { m.turn(-1) }},
		{[]string{"0", "1", "2", "3", "4", "5", "6"}, "0 to 6", "steps, call, context, journal, why, machine, output", nil},
		{[]string{"enter", "z"}, "enter z", "the pane over the whole screen, and back", (*model).toggleZoom},
		{[]string{"f"}, "f", "follow a run that goes on, or stop that", (*model).toggleFollow},
		{[]string{"/"}, "/", "find a text in the pane; then n and N go on", func(m *model) { m.open('/') }},
		{[]string{":"}, ":", "a command of the line mode; tab completes, up recalls", func(m *model) { m.open(':') }},
		{[]string{"a"}, "a", "decide on the candidate that waits: needs :act", (*model).decide},
		{[]string{"ctrl+l"}, "ctrl-l", "draw the screen anew", (*model).redraw},
		{[]string{"?"}, "?", "this help", (*model).toggleHelp},
		{[]string{"esc"}, "esc", "out of the help, a search, a whole pane", (*model).escape},
		{[]string{"q", "ctrl+c"}, "q ctrl-c", "quit: the run stays as it is", (*model).quit},
	}
}

// helpText is the help.
func helpText() string {
	var b strings.Builder
	b.WriteString("── Keys ──\n")
	for _, k := range table() {
		b.WriteString("  " + fit(k.name, 12) + " " + k.does + "\n")
	}
	b.WriteString(`── Panes ──
  Steps        each step of the run, its row, and when; > is the one that is shown,
               ~ is one that a fork took over from its parent
  Call         the candidate that waits, in full; else the call and its outcome
  Context      what the model was sent; + is new
  Journal      every entry as it is recorded, times of this place
  Why          what led here, step by step
  Machine      every state and where it leads
  Output       what commands wrote
── Acting ──
  The screen only looks. :act lets commands that act on the run through, such as
  :approve; they ask on the bare terminal, as they do elsewhere. :act off ends that.
`)
	return b.String()
}
