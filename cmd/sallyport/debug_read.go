package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"sallyport/cmd/sallyport/terminal"
)

// lineReader reads lines from a terminal with history and completion. The terminal is
// raw only while a line is read, so that whatever a command asks is asked as elsewhere.
type lineReader struct {
	in  *os.File
	out io.Writer
	on  *term.Terminal
}

func (sh *shell) reader() (*lineReader, error) {
	h, err := sh.remembered()
	if err != nil {
		return nil, err
	}
	r := &lineReader{in: sh.app.in, out: sh.app.errs}
	r.on = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{clearing{r.in}, r.out}, prompt)
	r.on.History = h
	r.on.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		return sh.completed(r.on, line, pos)
	}
	return r, nil
}

// clearing makes Ctrl-C, which would be the end of what is read, clear the line.
type clearing struct{ from io.Reader }

// Read implements io.Reader.
func (c clearing) Read(p []byte) (int, error) {
	const ctrlC, ctrlU = 0x03, 0x15
	n, err := c.from.Read(p)
	for i, b := range p[:n] {
		if b == ctrlC {
			p[i] = ctrlU
		}
	}
	return n, err
}

// line reads one.
func (r *lineReader) line(prompt string) (string, error) {
	fd := int(r.in.Fd())
	was, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	if width, height, err := term.GetSize(fd); err == nil && width > 0 {
		_ = r.on.SetSize(width, height) // it asks the terminal for nothing
	}
	r.on.SetPrompt(prompt)
	line, err := r.on.ReadLine()
	if errors.Is(err, term.ErrPasteIndicator) {
		err = nil
	}
	return line, errors.Join(err, term.Restore(fd, was))
}

// completed is the line with the word before the cursor completed as far as it can be;
// where there are several ways, they are listed.
func (sh *shell) completed(w io.Writer, line string, pos int) (string, int, bool) {
	before, after := line[:pos], line[pos:]
	at := strings.LastIndex(before, " ") + 1
	var fits []string
	for _, c := range sh.candidates(before[:at]) {
		if strings.HasPrefix(c, before[at:]) && !slices.Contains(fits, c) {
			fits = append(fits, c)
		}
	}
	if len(fits) == 0 {
		return line, pos, true
	}
	common := fits[0]
	for _, f := range fits[1:] {
		for !strings.HasPrefix(f, common) {
			common = common[:len(common)-1]
		}
	}
	if len(fits) == 1 {
		common += " "
	} else if len(common) == pos-at {
		_, _ = fmt.Fprintf(w, "%s\n", terminal.Line(strings.Join(fits, "  "))) // the terminal itself
	}
	return before[:at] + common + after, at + len(common), true
}

// candidates are what may follow the words so far.
func (sh *shell) candidates(before string) []string {
	words := strings.Fields(before)
	if len(words) == 0 {
		return verbNames()
	}
	v, err := verbNamed(words[0])
	if err != nil || v.complete == nil {
		return nil
	}
	if len(words) > 1 && v.names[0] == "break" {
		return sh.subjectValues(words[1])
	}
	return v.complete(sh)
}

// maxHistory is how many lines are kept.
const maxHistory = 1000

// history keeps the lines that were typed, in a file of the user's own.
type history struct {
	path  string
	lines []string // oldest first
}

// readHistory reads what was typed before. It can be used even if it could not.
func readHistory(path string) (*history, error) {
	h := &history{path: path}
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return h, nil
	}
	if err != nil {
		return h, fmt.Errorf("read the history: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	in := bufio.NewScanner(file)
	for in.Scan() {
		h.lines = append(h.lines, in.Text())
	}
	h.lines = h.lines[max(0, len(h.lines)-maxHistory):]
	return h, nil
}

// Add implements [term.History]. A line that cannot be kept is not missed.
func (h *history) Add(line string) {
	if line = strings.TrimSpace(line); line == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	flags := os.O_CREATE | os.O_APPEND | os.O_WRONLY
	text := line + "\n"
	if len(h.lines) > 2*maxHistory {
		h.lines = slices.Clone(h.lines[len(h.lines)-maxHistory:])
		flags, text = os.O_CREATE|os.O_TRUNC|os.O_WRONLY, strings.Join(h.lines, "\n")+"\n"
	}
	file, err := os.OpenFile(h.path, flags, 0o600)
	if err != nil {
		return
	}
	_, _ = file.WriteString(text)
	_ = file.Close()
}

// Len implements [term.History].
func (h *history) Len() int { return len(h.lines) }

// At implements [term.History]: 0 is the newest.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }
