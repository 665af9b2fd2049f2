package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"sallyport/agent"
)

// The bounds of the command that is started when a candidate begins to wait.
const (
	notifyTime   = 10 * time.Second // for one, and for all that are left at the end
	notifyAtOnce = 4
	notifyQueued = 256
	notifyStderr = 1 << 10 // bytes of it that are told if it fails
)

// notifyEnv are the variables that the command gets of our own: none that could hold a
// secret of the runtime.
var notifyEnv = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR",
	"DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
	"SystemRoot", "TEMP", "USERPROFILE",
}

// notifier starts a command for each candidate that begins to wait. What becomes of it
// changes nothing.
type notifier struct {
	command []string      // program and arguments
	limit   time.Duration // for each
	failed  func(run string, err error)

	queue   chan pendingRow
	workers sync.WaitGroup
	ctx     context.Context
	cancel  context.CancelFunc
}

// newNotifier takes a command of words; there is no shell, and no quoting.
func newNotifier(command string, failed func(run string, err error)) (*notifier, error) {
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil, usage("name a program", "--notify %q: there is no command", command)
	}
	path, err := exec.LookPath(words[0])
	if err != nil {
		return nil, usage("name a program that can be started", "--notify: %w", err)
	}
	words[0] = path
	n := &notifier{command: words, limit: notifyTime, failed: failed, queue: make(chan pendingRow, notifyQueued)}
	n.ctx, n.cancel = context.WithCancel(context.Background())
	for range notifyAtOnce {
		n.workers.Go(func() { // ends with the queue; close waits
			for p := range n.queue {
				if err := n.start(p); err != nil {
					n.failed(p.Run, err)
				}
			}
		})
	}
	return n, nil
}

// waits says that a candidate has begun to wait.
func (n *notifier) waits(p pendingRow) {
	select {
	case n.queue <- p:
	default:
		n.failed(p.Run, fmt.Errorf("notify: %d commands wait already", notifyQueued))
	}
}

// close waits for the commands that are left, but not long.
func (n *notifier) close() {
	late := time.AfterFunc(n.limit, n.cancel)
	defer late.Stop()
	close(n.queue)
	n.workers.Wait()
	n.cancel()
}

// start runs the command for one candidate.
func (n *notifier) start(p pendingRow) error {
	ctx, cancel := context.WithTimeout(n.ctx, n.limit)
	defer cancel()
	var said tail
	cmd := exec.CommandContext(ctx, n.command[0], n.command[1:]...)
	cmd.Env = append(notified(p), ownEnv()...)
	cmd.Stderr = &said
	cmd.WaitDelay = time.Second // for a child of its own that keeps stderr
	err := cmd.Run()
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("it was ended after %s", n.limit)
	case ctx.Err() != nil:
		err = errors.New("it was ended, or not started, because we end")
	}
	if text := strings.TrimSpace(said.String()); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return fmt.Errorf("notify: %w", err)
}

// notified is what the command is told: never content, grants or keys.
func notified(p pendingRow) []string {
	return []string{
		"SALLYPORT_RUN=" + p.Run, "SALLYPORT_TOOL=" + p.Tool, "SALLYPORT_SHA256=" + p.SHA256,
		"SALLYPORT_DEADLINE=" + deadline(p.Expires),
	}
}

func deadline(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func ownEnv() []string {
	var env []string
	for _, name := range notifyEnv {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// pending makes what a notification says of a run; false if nothing waits there any more.
func pending(run agent.Run) (pendingRow, bool) {
	if run.State != agent.StateAwaitingApproval || run.Call == nil || run.Call.Candidate == nil {
		return pendingRow{}, false
	}
	return pendingOf(run), true
}

// tail keeps the last bytes of what is written.
type tail struct{ bytes.Buffer }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	n, err := t.Buffer.Write(p)
	if over := t.Len() - notifyStderr; over > 0 {
		t.Next(over)
	}
	return n, err
}
