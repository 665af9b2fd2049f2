//go:build linux || darwin

package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// line reads up to a newline. The end of input before it is io.EOF, whatever was
// typed. It owns one goroutine, which ends before line returns.
func (c Console) line(ctx context.Context) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = w.Close() }) // wakes the poll below
	defer func() {
		if stop() {
			_ = w.Close()
		}
	}()
	var line []byte
	for {
		if err := readable(int(c.In.Fd()), int(r.Fd())); err != nil {
			return "", err
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
		var buf [longestLine]byte
		n, err := unix.Read(int(c.In.Fd()), buf[:])
		switch {
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			continue
		case n == 0 || errors.Is(err, unix.EIO): // EIO: the terminal is gone
			return "", io.EOF
		case err != nil:
			return "", err
		}
		line = append(line, buf[:n]...)
		if before, _, found := strings.Cut(string(line), "\n"); found || len(line) >= longestLine {
			return before, nil
		}
	}
}

// readable waits until one of the descriptors can be read or has ended.
func readable(fds ...int) error {
	polled := make([]unix.PollFd, len(fds))
	for i, fd := range fds {
		polled[i] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	}
	for {
		_, err := unix.Poll(polled, -1)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// hide turns the echo off, and gives what turns it on again.
func hide(fd int) (show func(), err error) {
	was, err := unix.IoctlGetTermios(fd, getSettings)
	if err != nil {
		return nil, err
	}
	hidden := *was
	hidden.Lflag &^= unix.ECHO
	hidden.Lflag |= unix.ICANON | unix.ISIG
	hidden.Iflag |= unix.ICRNL
	if err := unix.IoctlSetTermios(fd, setSettings, &hidden); err != nil {
		return nil, err
	}
	return func() { _ = unix.IoctlSetTermios(fd, setSettings, was) }, nil
}
