package scriptserver

import (
	"context"
	"time"
)

// job is what is done about one message, or at the start.
type job struct {
	id     []byte
	scene  scene
	acts   Acts
	answer func() ([]byte, error) // its line, made when it is due; nil is none
	frames []Frame                // in place of it
	after  []Frame
	copies int
	hold   int
}

// perform acts, in the order of [Acts].
func (s *server) perform(ctx context.Context, j job) {
	if !wait(ctx, time.Duration(j.acts.Delay)) {
		return
	}
	for _, w := range j.acts.Writes {
		name, err := s.files.write(w, j.scene)
		if err == nil {
			err = s.memory.note(Entry{Wrote: name})
		}
		if err != nil {
			s.complain(err)
		}
	}
	if j.acts.Spawn != nil {
		s.spawn(*j.acts.Spawn)
	}
	for _, f := range j.acts.Stderr {
		if err := j.scene.frame(ctx, s.errs, f, j.id); err != nil {
			s.complain(err)
		}
	}
	s.say(ctx, j)
	if j.acts.Deaf {
		s.hush()
	}
	if j.acts.Exit != nil {
		s.end(*j.acts.Exit)
	}
}

// say writes to stdout all that one message brings, in one piece.
func (s *server) say(ctx context.Context, j job) {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	s.frames(ctx, j, j.acts.Before)
	for range max(j.copies, 1) {
		s.frames(ctx, j, j.frames)
		s.respond(j)
	}
	s.frames(ctx, j, j.after)
	if j.acts.CloseStdout {
		_ = s.out.to.Close() // the reader sees the end
	}
}

func (s *server) respond(j job) {
	if j.answer == nil {
		return
	}
	line, err := j.answer()
	if err != nil {
		s.complain(err)
		line = failure(j.id, codeInternal, "internal error", nil)
	}
	s.out.answer(line, j.hold)
}

func (s *server) frames(ctx context.Context, j job, frames []Frame) {
	for _, f := range frames {
		if err := j.scene.frame(ctx, s.out.to, f, j.id); err != nil {
			s.complain(err)
		}
	}
}

// spawn starts a process that nobody waits for.
func (s *server) spawn(what Spawn) {
	pid, err := s.descend(what)
	if err == nil {
		err = s.memory.note(Entry{Spawned: pid})
	}
	if err != nil {
		s.complain(err)
	}
}
