package terminal

import (
	"io"
	"strings"
	"unicode"
)

// Live writes text that somebody else wrote as it comes, piece by piece: escaped, and
// behind the gutter from its first character on, as [Untrusted] would. It is for one
// goroutine at a time.
type Live struct {
	out   io.Writer
	label string
	width int

	block bool // the label has been written, and nothing else since
	used  int  // cells of the line that is begun; -1 if none is
	marks int  // combining marks in a row, over all pieces
}

// NewLive writes to out, whose lines have width cells; 0 wraps nothing. The label
// stands before each block.
func NewLive(out io.Writer, label string, width int) *Live {
	return &Live{out: out, label: label, width: room(width), used: -1}
}

// Text writes a piece. A write error is nobody's: what is shown is not what counts.
func (l *Live) Text(piece string) {
	var b strings.Builder
	if !l.block {
		b.WriteString(l.label + "\n")
		l.block, l.marks = true, 0
	}
	for _, r := range piece {
		l.rune(&b, r)
	}
	_, _ = io.WriteString(l.out, b.String())
}

func (l *Live) rune(b *strings.Builder, r rune) {
	if r == '\n' {
		if l.used < 0 {
			b.WriteString(gutter)
		}
		b.WriteByte('\n')
		l.used, l.marks = -1, 0
		return
	}
	if l.used < 0 {
		b.WriteString(gutter)
		l.used = 0
	}
	for _, s := range l.shown(r) {
		n := breadth(s)
		if l.width > 0 && l.used > 0 && l.used+n > l.width {
			b.WriteString("\n" + carried)
			l.used = 0
		}
		b.WriteRune(s)
		l.used += n
	}
}

// shown is one character as [Escape] shows it, with the marks of the pieces before.
func (l *Live) shown(r rune) string {
	if !unicode.Is(unicode.M, r) {
		l.marks = 0
	} else if l.marks++; l.marks > maxMarks {
		return hidden(r)
	}
	shown, _ := Escape(string(r))
	return shown
}

// End ends the line that is begun, if one is, and the block.
func (l *Live) End() {
	if l.used >= 0 {
		_, _ = io.WriteString(l.out, "\n")
	}
	l.block, l.used, l.marks = false, -1, 0
}
