package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
)

// user is somebody with a home of their own, and folders to work in.
type user struct {
	t   *testing.T
	dir string
	env []string // more of the environment
}

func newUser(t *testing.T) *user {
	t.Helper()
	u := &user{t: t, dir: t.TempDir()}
	for _, below := range []string{"home", "tmp"} {
		if err := os.Mkdir(u.path(below), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if alive := lingering(u.dir); len(alive) > 0 {
			t.Errorf("still alive: %q", alive)
		}
	})
	return u
}

func (u *user) path(parts ...string) string {
	return filepath.Join(append([]string{u.dir}, parts...)...)
}

// write makes a file, and the folders above it.
func (u *user) write(name, text string) string {
	u.t.Helper()
	path := u.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		u.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		u.t.Fatal(err)
	}
	return path
}

func (u *user) read(name string) string {
	u.t.Helper()
	data, err := os.ReadFile(u.path(name))
	if err != nil {
		u.t.Fatal(err)
	}
	return string(data)
}

func (u *user) command(args ...string) *exec.Cmd {
	path, err := exec.LookPath("sallyport")
	if err != nil {
		u.t.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), path, args...)
	cmd.Dir = u.dir
	cmd.Env = append(hostEnv(u.dir), "PATH="+os.Getenv("PATH"))
	cmd.Env = append(cmd.Env, u.env...)
	return cmd
}

// ended is how a command without a terminal came out.
type ended struct {
	code             int
	stdout, messages string
}

// run runs a command without a terminal.
func (u *user) run(args ...string) ended {
	u.t.Helper()
	cmd := u.command(args...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	return ended{exitCode(u.t, cmd.Run()), out.String(), errs.String()}
}

// must is run, and fails unless the command ended with that code.
func (u *user) must(code exit, args ...string) ended {
	u.t.Helper()
	e := u.run(args...)
	if e.code != int(code) {
		u.t.Fatalf("sallyport %s: exit code %d, want %d\n%s%s", strings.Join(args, " "), e.code, code, e.stdout, e.messages)
	}
	return e
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exited *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exited):
		return exited.ExitCode()
	}
	t.Fatal(err)
	return -1
}

// terminalSession is a command on a pseudo-terminal.
type terminalSession struct {
	t   *testing.T
	cmd *exec.Cmd
	tty *os.File

	mu     sync.Mutex
	grown  *sync.Cond
	screen strings.Builder
	closed bool
	late   bool
	read   int // how much of the screen has been waited for
}

// open starts a command on a terminal of 80 by 24.
func (u *user) open(args ...string) *terminalSession {
	u.t.Helper()
	s := &terminalSession{t: u.t, cmd: u.command(args...)}
	s.grown = sync.NewCond(&s.mu)
	var err error
	if s.tty, err = pty.StartWithSize(s.cmd, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		u.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // ends when the terminal is gone; end waits for it
		defer close(done)
		_, _ = io.Copy(s, s.tty)
		s.mu.Lock()
		s.closed = true
		s.grown.Broadcast()
		s.mu.Unlock()
	}()
	u.t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.tty.Close()
		<-done
	})
	return s
}

// Write takes in what the terminal shows.
func (s *terminalSession) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.screen.Write(p)
	s.grown.Broadcast()
	return len(p), nil
}

// limit is how long a test waits for what must come.
const limit = 30 * time.Second

// see waits until the screen shows the text after what was seen before, and returns
// what it shows from there on.
func (s *terminalSession) see(text string) string {
	s.t.Helper()
	timer := time.AfterFunc(limit, func() {
		s.mu.Lock()
		s.late = true
		s.grown.Broadcast()
		s.mu.Unlock()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		shown := s.screen.String()
		if i := strings.Index(shown[s.read:], text); i >= 0 {
			from := s.read
			s.read += i + len(text)
			return shown[from:s.read]
		}
		if s.closed || s.late {
			s.t.Fatalf("the screen did not show %q:\n%s", text, shown)
		}
		s.grown.Wait()
	}
}

// enter types.
func (s *terminalSession) enter(text string) {
	s.t.Helper()
	if _, err := io.WriteString(s.tty, text); err != nil {
		s.t.Fatal(err)
	}
}

// What is typed to interrupt and to end the input.
const (
	ctrlC = "\x03"
	ctrlD = "\x04"
)

// end waits for the command and returns its exit code and all that was shown, with
// the terminal's line ends undone.
func (s *terminalSession) end() (int, string) {
	s.t.Helper()
	late := time.AfterFunc(limit, func() { _ = s.cmd.Process.Kill() })
	code := exitCode(s.t, s.cmd.Wait())
	if !late.Stop() {
		s.t.Errorf("the command did not end")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed {
		s.grown.Wait()
	}
	return code, strings.ReplaceAll(s.screen.String(), "\r\n", "\n")
}
