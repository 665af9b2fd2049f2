package config

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/tools"
)

// Position is a place in a file. Both count from 1; columns are characters. The zero
// value is the file as a whole.
type Position struct{ Line, Column int }

// Diagnostic is one thing that is wrong with a file.
type Diagnostic struct {
	File string
	Position
	Message string // what is wrong, with its place in the structure
	Remedy  string // what to write instead; may be empty
	Excerpt string // the line, as it is
}

// hidden stands for a line that may hold a secret.
const hidden = "(line not shown: it may hold a secret)"

// String is the diagnostic as a person reads it: the place and the message, the line
// with a mark under the column, the remedy. Characters of the file that hide or
// control are shown as [tools.Visible] shows them.
func (d Diagnostic) String() string {
	var out strings.Builder
	out.WriteString(d.place() + ": " + visible(d.Message))
	if d.Line > 0 {
		line, mark := d.excerpt()
		number := fmt.Sprint(d.Line)
		margin := strings.Repeat(" ", len(number))
		fmt.Fprintf(&out, "\n  %s | %s\n  %s | %s^", number, line, margin, strings.Repeat(" ", mark))
	}
	if d.Remedy != "" {
		out.WriteString("\n  " + visible(d.Remedy))
	}
	return out.String()
}

func (d Diagnostic) place() string {
	if d.Line == 0 {
		return visible(d.File)
	}
	return fmt.Sprintf("%s:%d:%d", visible(d.File), d.Line, d.Column)
}

// excerptWidth is how much of a line is shown, in characters.
const excerptWidth = 120

// excerpt is the part of the line around the column, and where in it the column is.
func (d Diagnostic) excerpt() (string, int) {
	line := []rune(strings.ToValidUTF8(d.Excerpt, "\ufffd"))
	at := min(max(d.Column-1, 0), len(line))
	from, ahead := 0, ""
	if at > excerptWidth/2 && len(line) > excerptWidth {
		from, ahead = at-excerptWidth/2, "…"
	}
	to, behind := len(line), ""
	if to-from > excerptWidth {
		to, behind = from+excerptWidth, "…"
	}
	before := ahead + visible(string(line[from:at]))
	return before + visible(string(line[at:to])) + behind, width(before)
}

// width is how many cells of a terminal a text takes, near enough to put a mark under
// what follows it: Chinese, Japanese and Korean characters and pictures take two.
func width(text string) int {
	cells := 0
	for _, r := range text {
		cells++
		if slices.ContainsFunc(wide, func(w [2]rune) bool { return w[0] <= r && r <= w[1] }) {
			cells++
		}
	}
	return cells
}

var wide = [][2]rune{
	{0x1100, 0x115f}, {0x2e80, 0xa4cf}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f},
	{0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x1f300, 0x1faff}, {0x20000, 0x3fffd},
}

func visible(text string) string {
	shown, _ := tools.Visible(text)
	return shown
}

// Error is everything that is wrong with a file, in the order of its lines.
type Error struct {
	Diagnostics []Diagnostic
}

// Error lists the diagnostics, an empty line between two.
func (e *Error) Error() string {
	parts := make([]string, len(e.Diagnostics))
	for i, d := range e.Diagnostics {
		parts[i] = d.String()
	}
	return strings.Join(parts, "\n\n")
}

// diagnose makes an error of diagnostics; nil if there are none.
func diagnose(all []Diagnostic) error {
	if len(all) == 0 {
		return nil
	}
	sorted := slices.Clone(all)
	for i, d := range sorted { // what one finding hides, no other shows
		if slices.ContainsFunc(all, func(o Diagnostic) bool { return o.Excerpt == hidden && o.File == d.File && o.Line == d.Line }) {
			sorted[i].Excerpt = hidden
		}
	}
	slices.SortStableFunc(sorted, func(a, b Diagnostic) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return &Error{Diagnostics: sorted}
}

// nearest returns the candidate that word is most likely a slip of, or "".
func nearest(word string, candidates []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(word), strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	if best != "" || len(word) < 4 {
		return best
	}
	// turns for model_turns, timeout_seconds for timeout
	for _, c := range candidates {
		if strings.Contains(c, word) || len(c) >= 4 && strings.Contains(word, c) {
			return c
		}
	}
	return ""
}

// distance is how many characters must be added, removed, changed or swapped with
// their neighbour to make b of a.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	x, y := []rune(a), []rune(b)
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range y {
		rows[0][j+1] = j + 1
	}
	for i := range x {
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			d := min(rows[i][j+1]+1, rows[i+1][j]+1, rows[i][j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				d = min(d, rows[i-1][j-1]+1)
			}
			rows[i+1][j+1] = d
		}
	}
	return rows[len(x)][len(y)]
}
