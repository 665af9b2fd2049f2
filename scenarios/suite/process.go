package suite

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// endGrace is how long a child has after it was told to stop: a call in flight
	// is waited for.
	endGrace = 6 * time.Second
	// hungGrace is the same for one that has used up its time.
	hungGrace = time.Second
	// maxAnswer bounds what a child may answer, and maxSaid what is kept of what it says
	// otherwise, in bytes.
	maxAnswer = 8 << 20
	maxSaid   = 4 << 10
)

// errTimeout is the cause of a context whose time is over.
var errTimeout = errors.New("the time of a scenario is over")

// players are the children of every suite of this process.
var players = household{live: map[int]string{}}

// household sees to it that nothing of a child is left.
type household struct {
	mu   sync.Mutex     // held while a child is started, and while orphans are looked for
	live map[int]string // the folder that each plays in
}

// player has cases played by children.
type player struct {
	command []string // the program and its arguments
}

// play has one case played by a child. When ctx is done the child is told to stop, and
// after a grace killed, with everything below it.
func (p player) play(ctx context.Context, o order, env []string) Result {
	told, err := json.Marshal(o)
	if err != nil {
		return unplayed(err)
	}
	var answer, said bytes.Buffer
	cmd := exec.Command(p.command[0], p.command[1:]...)
	cmd.Env = append(cmd.Environ(), env...)
	cmd.Stdout, cmd.Stderr = &bounded{to: &answer, left: maxAnswer}, &bounded{to: &said, left: maxSaid, tail: true}
	cmd.SysProcAttr = childAttributes()
	cmd.WaitDelay = hungGrace // for pipes that something else holds open
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return unplayed(err)
	}
	if err := players.start(cmd, o.Dir); err != nil {
		return unplayed(fmt.Errorf("start the player: %w", err))
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the child, which is killed if need be
	_, _ = stdin.Write(append(told, '\n'))
	err = p.await(ctx, cmd, ended, func() { _ = stdin.Close() })
	players.leave(cmd)
	return judged(answer.Bytes(), said.String(), err)
}

// await waits for the child and ends it when ctx is done.
func (p player) await(ctx context.Context, cmd *exec.Cmd, ended <-chan error, stop func()) error {
	select {
	case err := <-ended:
		stop()
		return err
	case <-ctx.Done():
	}
	grace := endGrace
	if errors.Is(context.Cause(ctx), errTimeout) {
		grace = hungGrace
	}
	stop()
	select {
	case err := <-ended:
		return err
	case <-time.After(grace):
	}
	killAll(cmd.Process.Pid)
	return <-ended
}

// start starts a child, and counts it as one of the household.
func (h *household) start(cmd *exec.Cmd, dir string) error {
	becomeReaper()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return err
	}
	h.live[cmd.Process.Pid] = dir
	return nil
}

// leave ends what a child has left behind.
func (h *household) leave(cmd *exec.Cmd) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.live, cmd.Process.Pid)
	sweep(cmd.Process.Pid, h.live)
}

// Abandon ends every child of every suite at once, with what is below it, and removes
// the folders that they played in: for a process that is about to end.
func Abandon() { players.abandon() }

func (h *household) abandon() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for pid, dir := range h.live {
		killAll(pid)
		sweep(pid, nil)
		_ = errors.Join(removeAll(dir), removeAll(dir+tempEnding), os.Remove(filepath.Dir(dir)))
	}
}

// judged reads the answer of a child.
func judged(answer []byte, said string, err error) Result {
	var r Result
	if err == nil {
		if err = json.Unmarshal(answer, &r); err == nil {
			return r
		}
		err = fmt.Errorf("read what came of it: %w", err)
	}
	message := "the process that played it ended early: " + err.Error()
	if said = strings.TrimSpace(said); said != "" {
		message += "\n" + said
	}
	return unplayed(errors.New(message))
}

// bounded keeps what is written up to a limit: the beginning, or the end.
type bounded struct {
	to   *bytes.Buffer
	left int
	tail bool
}

// Write implements io.Writer. It takes everything, so that the child is never held up.
func (b *bounded) Write(p []byte) (int, error) {
	if !b.tail {
		n := min(len(p), b.left)
		b.left -= n
		b.to.Write(p[:n])
		return len(p), nil
	}
	b.to.Write(p)
	if over := b.to.Len() - b.left; over > 0 {
		b.to.Next(over)
	}
	return len(p), nil
}
