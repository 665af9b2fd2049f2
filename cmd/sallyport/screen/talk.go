package screen

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	tea "charm.land/bubbletea/v2"

	"sallyport/agent/debug"
	"sallyport/cmd/sallyport/terminal"
)

// Message is one of the messages that the model is sent.
type Message struct {
	Role string // a fixed word
	Text string // as it is sent; of anybody
}

// talk is the context of a step: what the model was sent by then, and what of it was new.
type talk struct {
	step     int   // that asked the model
	seq      int64 // its entry
	messages []Message
	known    int // how many of them it had been sent the time before
	err      error
}

// ask is which context is wanted.
type ask struct{ step, before int }

// wanted is the context to show at the cursor.
func wanted(s *debug.Session) ask {
	at := s.Asked(s.Position().Step)
	return ask{at, s.Asked(at - 1)}
}

// fetch reads a context beside the screen: it replays the journal. It reads no more of
// the session than the entries' numbers.
func (a ask) fetch(ctx context.Context, c *Config) tea.Cmd {
	seq := c.Session().Mark(a.step).Seq
	before := c.Session().Mark(a.before).Seq
	run := c.Session().Last()
	return func() tea.Msg {
		t := talk{step: a.step, seq: seq}
		t.messages, t.err = c.Context(ctx, run, seq)
		if t.err != nil || a.before == 0 {
			return t
		}
		var was []Message
		was, t.err = c.Context(ctx, run, before)
		for t.known < min(len(was), len(t.messages)) && was[t.known] == t.messages[t.known] {
			t.known++
		}
		return t
	}
}

// lines shows a context. It gives the line on which what is new begins.
func (t talk) lines(width int) (all fixed, fresh int) {
	if t.err != nil {
		return wrapped("The context cannot be shown: "+terminal.Message(t.err.Error()), width), 0
	}
	size := 0
	for _, m := range t.messages {
		size += len(m.Text)
	}
	all = wrapped(fmt.Sprintf("── What the model is sent at step %d, entry %d ──\n%d messages, %d bytes; + is new since it was asked before",
		t.step, t.seq, len(t.messages), size), width)
	for i, m := range t.messages {
		mark := " "
		if i >= t.known {
			mark = "+"
		}
		if i == t.known {
			fresh = len(all)
		}
		head := fmt.Sprintf("── %s %d %s, %d bytes ──", mark, i+1, terminal.Line(m.Role), len(m.Text))
		all = append(all, wrapped(head+"\n"+m.shown(width), width)...)
	}
	if t.known == 0 {
		fresh = 0
	}
	return slices.Clip(all), fresh
}

func (m Message) shown(width int) string {
	var b bytes.Buffer
	text := m.Text
	if len(text) > MaxBody {
		text = text[:whole(text, MaxBody)]
	}
	_ = terminal.Untrusted(&b, text, width) // a buffer takes it
	if rest := len(m.Text) - len(text); rest > 0 {
		fmt.Fprintf(&b, "%d bytes more; all of it with :context\n", rest)
	}
	return b.String()
}
