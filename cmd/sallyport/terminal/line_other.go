//go:build !linux && !darwin

package terminal

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
)

func discard(int) {}

// line reads up to a newline. The end of input before it is io.EOF. Where a terminal
// cannot be polled, the goroutine that reads is left behind when ctx is done first;
// the process is about to end then.
func (c Console) line(ctx context.Context) (string, error) {
	type read struct {
		line string
		err  error
	}
	got := make(chan read, 1)
	go func() {
		line, err := bufio.NewReader(io.LimitReader(c.In, longestLine)).ReadString('\n')
		got <- read{strings.TrimSuffix(line, "\n"), err}
	}()
	select {
	case r := <-got:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func hide(int) (show func(), err error) {
	return nil, errors.New("this system's terminal cannot hide what is typed")
}
