package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Choose writes the question and reads one line. It returns the word that the line is,
// trimmed of white space and compared exactly, or "" if it is none of them, the end of
// input included. When ctx is done first it returns ctx.Err(), and nothing of a
// half-typed line counts. Only a terminal is asked.
func (c Console) Choose(ctx context.Context, question string, words ...string) (string, error) {
	if !c.Interactive() {
		return "", errors.New("ask: there is no terminal")
	}
	if _, err := io.WriteString(c.Out, question); err != nil {
		return "", fmt.Errorf("ask: %w", err)
	}
	line, err := c.line(ctx)
	switch {
	case errors.Is(err, io.EOF):
		_, _ = io.WriteString(c.Out, "\n")
		return "", nil
	case ctx.Err() != nil:
		_, _ = io.WriteString(c.Out, "\n")
		return "", ctx.Err()
	case err != nil:
		return "", fmt.Errorf("read the answer: %w", err)
	}
	if word := strings.TrimSpace(line); slices.Contains(words, word) {
		return word, nil
	}
	return "", nil
}
