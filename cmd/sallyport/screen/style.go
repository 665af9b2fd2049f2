package screen

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// face is how a text looks. What a face says is said by words or marks too: the screen
// reads the same without colour.
type face int

const (
	plain   face = iota
	faint        // what is not looked at now
	strong       // names, headings
	lit          // the current state and step
	warning      // what waits for a person
	bar          // the first row
)

// The colours are the terminal's own sixteen, so that they suit light and dark ones.
var faces = map[face]lipgloss.Style{
	plain:   lipgloss.NewStyle(),
	faint:   lipgloss.NewStyle().Faint(true),
	strong:  lipgloss.NewStyle().Bold(true),
	lit:     lipgloss.NewStyle().Bold(true).Reverse(true),
	warning: lipgloss.NewStyle().Bold(true).Foreground(lipgloss.Yellow),
	bar:     lipgloss.NewStyle().Bold(true).Reverse(true),
}

// in is a text in a face. The text must be fit for a terminal, and of one line.
func (f face) in(text string) string {
	if f == plain || text == "" {
		return text
	}
	return faces[f].Render(text)
}

// cells is how wide a text is.
func cells(text string) int { return lipgloss.Width(text) }

// tabbed gives tabs the width that they are counted with.
func tabbed(text string) string { return strings.ReplaceAll(text, "\t", "        ") }

// cut shortens a text of ours to a width, and says so with an ellipsis. What others
// wrote is wrapped instead.
func cut(text string, width int) string {
	if cells(text) <= width {
		return text
	}
	used, end := 0, 0
	for i, r := range text {
		n := max(cells(string(r)), 0)
		if used+n > width-1 {
			break
		}
		used += n
		end = i + len(string(r))
	}
	if width < 1 {
		return ""
	}
	return text[:end] + "…"
}

// fit is cut, and filled up to the width.
func fit(text string, width int) string {
	text = cut(text, width)
	return text + strings.Repeat(" ", max(width-cells(text), 0))
}
