package scriptserver

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Options are where a script is played.
type Options struct {
	// Folder is where the record and the files of the script are. Without one nothing is recorded, every
	// start is the first, and a script that writes is refused. It is made if it is not there.
	Folder string
	// Idle is the command of a process that calls [Idle]; its flags --for DURATION and, perhaps, --stubborn
	// are added. Without it nothing is spawned.
	Idle []string
}

// The exit codes of [Serve], where the script gives none.
const (
	exitEnded   = 0 // the input ended
	exitRefused = 2 // the start was refused; nothing was written to stdout
)

// Serve plays a script on the streams of a process until the input ends, ctx ends, or the script says so,
// and returns the process's exit code. The caller ends the process with it: a reply may still be under
// way, held up by a reader that takes nothing. Replies that are waiting are given before the end of the
// input ends it.
func Serve(ctx context.Context, script Script, o Options, in io.Reader, out io.WriteCloser, errs io.Writer) int {
	s, err := newServer(script, o, out, errs)
	if err != nil {
		_, _ = fmt.Fprintf(errs, "sallyport mcp script: %v\n", err) // there is nowhere else to say it
		return exitRefused
	}
	defer s.close()
	if slices.Contains(script.Ignores, IgnoreTerminate) {
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP) // also where somebody was told of them
	}
	ctx, s.stop = context.WithCancel(ctx)
	defer s.stop()
	lines := make(chan []byte)
	go s.read(ctx, in, lines)             // ends with the input or the process; nobody waits for a read
	go s.play(ctx, lines)                 // ends with ctx; s.ended says that it is done
	never := time.NewTimer(math.MaxInt64) // a process in which everything waits is taken for a deadlock
	defer never.Stop()
	select {
	case code := <-s.ended:
		return code
	case <-ctx.Done():
	case <-never.C:
	}
	select { // the script's own end comes first
	case code := <-s.ended:
		return code
	default:
		return exitEnded
	}
}

// server is a script under way.
type server struct {
	script Script
	idle   []string
	memory *memory
	files  files
	out    output
	errs   io.Writer

	page  int           // of the list under way
	deaf  chan struct{} // closed, by hush, when nothing is read any more
	hush  func()
	stop  context.CancelFunc
	ended chan int // takes the exit code, once

	mu      sync.Mutex
	waiting map[string]context.CancelFunc // delayed requests, by id
	jobs    sync.WaitGroup
}

func newServer(script Script, o Options, out io.WriteCloser, errs io.Writer) (*server, error) {
	if problems := script.Check(); len(problems) > 0 {
		return nil, fmt.Errorf("%v: %s", problems[0].Path, problems[0].Message)
	}
	if o.Folder == "" && script.needsFolder() {
		return nil, errors.New("the script writes files: name a folder for them")
	}
	files, err := openFiles(o.Folder)
	if err != nil {
		return nil, err
	}
	memory, err := remember(o.Folder, script.Forget)
	if err != nil {
		files.close()
		return nil, err
	}
	deaf := make(chan struct{})
	return &server{
		script: script, idle: o.Idle, memory: memory, files: files, out: output{to: out}, errs: errs,
		deaf: deaf, hush: sync.OnceFunc(func() { close(deaf) }),
		ended: make(chan int, 1), waiting: map[string]context.CancelFunc{},
	}, nil
}

func (s *server) close() {
	s.memory.close()
	s.files.close()
}

// end ends the server with a code; only the first counts.
func (s *server) end(code int) {
	select {
	case s.ended <- code:
	default:
	}
	s.stop()
}

// read passes lines on until the input ends. Nobody takes them from it once the server is deaf, and then
// nothing more is read.
func (s *server) read(ctx context.Context, in io.Reader, lines chan<- []byte) {
	lineReader := bufio.NewReader(in)
	for {
		line, err := readLine(lineReader)
		if err != nil {
			close(lines)
			return
		}
		select {
		case lines <- line:
		case <-ctx.Done():
			return
		}
	}
}

func (s *server) isDeaf() bool {
	select {
	case <-s.deaf:
		return true
	default:
		return false
	}
}

// play begins, and takes lines one after another.
func (s *server) play(ctx context.Context, lines <-chan []byte) {
	s.start(ctx)
	for ctx.Err() == nil && !s.isDeaf() {
		select {
		case <-ctx.Done():
		case <-s.deaf:
		case line, more := <-lines:
			if !more {
				s.inputEnded()
				return
			}
			s.take(ctx, readMessage(line))
		}
	}
}

// inputEnded ends the server when what it owes is done.
func (s *server) inputEnded() {
	if slices.Contains(s.script.Ignores, IgnoreEnd) {
		return
	}
	s.jobs.Wait()
	if !s.isDeaf() {
		s.end(exitEnded)
	}
}

func (s *server) start(ctx context.Context) {
	for _, b := range s.script.Starts {
		if s.holds(b.When, scene{read: s.files.read}) {
			s.perform(ctx, job{acts: b.Acts, scene: scene{read: s.files.read}})
			return
		}
	}
}

// holds reports whether a condition holds now.
func (s *server) holds(w *When, sc scene) bool {
	if w == nil {
		return true
	}
	there := func(t *Text) bool {
		name, err := sc.render(t)
		return err == nil && s.files.exists(string(name))
	}
	return w.Start.holds(s.memory.start) && w.Lists.holds(s.memory.lists) && w.Calls.holds(s.memory.calls) &&
		(w.Exists == nil || there(w.Exists)) && (w.Absent == nil || !there(w.Absent))
}

// take deals with one message: it is counted, a reply is chosen, it is recorded, and then acted upon.
func (s *server) take(ctx context.Context, m message) {
	e := m.entry()
	s.memory.count(e)
	j := job{id: m.id, scene: scene{arguments: m.scene, read: s.files.read}}
	var reply Reply
	if e.Method != "" {
		reply, e.Reply = s.choose(m, j.scene)
		if e.Reply != "" {
			s.memory.used[e.Reply]++
		}
	}
	if err := s.memory.note(e); err != nil {
		s.complain(err)
		s.end(exitRefused)
		return
	}
	if id := m.cancelled(); id != "" && !slices.Contains(s.script.Ignores, IgnoreCancel) {
		s.cancel(id)
	}
	if e.Answer != nil {
		return
	}
	j.acts, j.frames, j.after, j.copies, j.hold = reply.Acts, reply.Frames, reply.After, reply.Copies, reply.Hold
	j.answer = s.answer(m, reply, j.scene)
	s.begin(ctx, j)
}

// begin performs a job now, or in its own time if it is delayed.
func (s *server) begin(ctx context.Context, j job) {
	if j.acts.Delay == 0 {
		s.perform(ctx, j)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	s.waiting[string(j.id)] = cancel
	s.mu.Unlock()
	s.jobs.Go(func() { // ends with ctx; inputEnded waits for it
		defer cancel()
		s.perform(ctx, j)
	})
}

// cancel drops a delayed request.
func (s *server) cancel(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if drop := s.waiting[id]; drop != nil {
		drop()
		delete(s.waiting, id)
	}
}

// complain tells the operator what the server itself could not do.
func (s *server) complain(err error) {
	_, _ = fmt.Fprintf(s.errs, "sallyport mcp script: %v\n", err) // there is nowhere else to say it
}
