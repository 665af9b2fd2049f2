package screen

import (
	"strings"
	"unicode/utf8"

	"sallyport/cmd/sallyport/terminal"
)

// line is one line of a pane.
type line struct {
	text string // fit for a terminal, no wider than its pane
	face face
}

// lines are what a pane shows.
type lines interface {
	count() int
	line(i int) line
}

// fixed are lines that are all there.
type fixed []line

func (f fixed) count() int      { return len(f) }
func (f fixed) line(i int) line { return f[i] }

// indent stands before what is left of a line that was too long.
const indent = "      "

// wrapped makes lines of a text that is fit for a terminal. Lines that begin with a rule
// are headings.
func wrapped(text string, width int) fixed {
	var out fixed
	for l := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		f := plain
		if strings.HasPrefix(l, "── ") {
			f = strong
		}
		for _, part := range broken(tabbed(l), width) {
			out = append(out, line{part, f})
		}
	}
	return out
}

// broken cuts a line into parts that fit: what somebody else wrote anywhere, ours between
// words.
func broken(l string, width int) []string {
	if cells(l) <= width {
		return []string{l}
	}
	if strings.HasPrefix(l, gutter) || strings.HasPrefix(l, carried) {
		return joined(terminal.Wrap(l, max(width-cells(carried), 1)), carried)
	}
	room := max(width-len(indent), 1)
	var parts []string
	for cells(l) > room {
		part := beginning(l, room)
		parts = append(parts, strings.TrimRight(part, " "))
		l = strings.TrimLeft(l[len(part):], " ")
	}
	return joined(append(parts, l), indent)
}

// beginning is as much of a line as fits, to the end of a word if one ends in its second
// half.
func beginning(l string, room int) string {
	head := l[:min(len(l), 4*room+utf8.UTFMax)] // no character takes more
	part := terminal.Wrap(strings.ToValidUTF8(head, ""), room)[0]
	if at := strings.LastIndexByte(part, ' '); at > len(part)/2 && !strings.HasPrefix(l[len(part):], " ") {
		return part[:at+1]
	}
	return part
}

// The gutters of package terminal: of a line that somebody else wrote, and of what is
// left of one that was too long.
const (
	gutter  = "  │ "
	carried = "  ┊ "
)

// joined sets a lead before all parts but the first.
func joined(parts []string, lead string) []string {
	for i := 1; i < len(parts); i++ {
		parts[i] = lead + parts[i]
	}
	return parts
}

// pane is a window on lines.
type pane struct {
	lines lines
	top   int
	of    string // what the lines are of
}

// show sets other lines; those of something else are shown from their beginning.
func (p *pane) show(of string, l lines) {
	if p.of != of {
		p.top = 0
	}
	p.of, p.lines = of, l
}

// count is how many lines there are.
func (p *pane) count() int {
	if p.lines == nil {
		return 0
	}
	return p.lines.count()
}

// scroll moves the window, of that height, within the lines.
func (p *pane) scroll(by, height int) {
	p.top = max(min(p.top+by, p.count()-height), 0)
}

// reveal moves the window so that a line is in it.
func (p *pane) reveal(at, height int) {
	if at < p.top || at >= p.top+height {
		p.top = at - height/2
	}
	p.scroll(0, height)
}

// below is how many lines there are under the window.
func (p *pane) below(height int) int { return max(p.count()-p.top-height, 0) }
