package scriptserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// idleFor is how long a spawned process lives if the script does not say.
const idleFor = time.Minute

// Idle does nothing until the time has passed or ctx ends. A stubborn process ignores SIGTERM, SIGINT and
// SIGHUP from then on.
func Idle(ctx context.Context, d time.Duration, stubborn bool) {
	if stubborn {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	}
	wait(ctx, d)
}

// descend starts a process that calls [Idle], and returns its id.
func (s *server) descend(what Spawn) (int, error) {
	if len(s.idle) == 0 {
		return 0, errors.New("spawn a process: there is no program for it")
	}
	life := time.Duration(what.For)
	if life == 0 {
		life = idleFor
	}
	args := append(s.idle[1:len(s.idle):len(s.idle)], "--for", life.String())
	if what.Stubborn {
		args = append(args, "--stubborn")
	}
	cmd := exec.Command(s.idle[0], args...)
	if what.Bare {
		cmd.Env = []string{}
	}
	if f, ok := s.errs.(*os.File); ok {
		cmd.Stderr = f
	}
	if f, ok := s.out.to.(*os.File); ok && what.KeepStdout {
		cmd.Stdout = f
	}
	if what.NewSession {
		if err := detach(cmd); err != nil {
			return 0, err
		}
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("spawn a process: %w", err)
	}
	pid := cmd.Process.Pid
	return pid, cmd.Process.Release()
}
