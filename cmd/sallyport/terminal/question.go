package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Answer is what came of a question.
type Answer string

// The answers. Only Approved goes on; Refused is whatever else was typed, the end of
// input included. Withdrawn says that the question was taken back before an answer:
// the caller knows why.
const (
	Approved  Answer = "approved"
	Refused   Answer = "refused"
	Withdrawn Answer = "withdrawn"
)

// Word is the one line that approves.
const Word = "approve"

// Judge says what a line means: trimmed of white space and compared exactly.
func Judge(line string) Answer {
	if strings.TrimSpace(line) == Word {
		return Approved
	}
	return Refused
}

// Console is a terminal to ask on. In and Out are the same terminal or two.
type Console struct {
	In  *os.File // where lines come from
	Out *os.File // where the question goes
}

// Interactive reports whether there is somebody to ask: both ends are terminals.
func (c Console) Interactive() bool {
	return c.In != nil && c.Out != nil && term.IsTerminal(int(c.In.Fd())) && term.IsTerminal(int(c.Out.Fd()))
}

// Width is that of the terminal in cells, or 0 if it has none.
func (c Console) Width() int {
	width, _, err := term.GetSize(int(c.Out.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// Discard drops what was typed before the question could be read.
func (c Console) Discard() { discard(int(c.In.Fd())) }

// Ask writes the question and reads one line. It returns [Withdrawn] when ctx is done
// first; then nothing of a half-typed line counts. Only a terminal is asked.
func (c Console) Ask(ctx context.Context, question string) (Answer, error) {
	if !c.Interactive() {
		return Withdrawn, errors.New("ask: there is no terminal")
	}
	if _, err := io.WriteString(c.Out, question); err != nil {
		return Withdrawn, fmt.Errorf("ask: %w", err)
	}
	line, err := c.line(ctx)
	switch {
	case errors.Is(err, io.EOF):
		_, _ = io.WriteString(c.Out, "\n")
		return Refused, nil
	case ctx.Err() != nil:
		_, _ = io.WriteString(c.Out, "\n")
		return Withdrawn, nil
	case err != nil:
		return Withdrawn, fmt.Errorf("read the answer: %w", err)
	}
	return Judge(line), nil
}

// longestLine bounds what is read as an answer; more is not "approve" anyway.
const longestLine = 4096

// Secret writes the prompt and reads one line without showing it. It returns
// ctx.Err() when ctx is done first. Only a terminal is asked.
func (c Console) Secret(ctx context.Context, prompt string) ([]byte, error) {
	if !c.Interactive() {
		return nil, errors.New("ask for a passphrase: there is no terminal")
	}
	show, err := hide(int(c.In.Fd()))
	if err != nil {
		return nil, fmt.Errorf("ask for a passphrase: %w", err)
	}
	defer show()
	if _, err := io.WriteString(c.Out, prompt); err != nil {
		return nil, fmt.Errorf("ask for a passphrase: %w", err)
	}
	line, err := c.line(ctx)
	_, _ = io.WriteString(c.Out, "\n")
	if err != nil {
		return nil, fmt.Errorf("read the passphrase: %w", err)
	}
	return []byte(strings.TrimSuffix(line, "\r")), nil
}
