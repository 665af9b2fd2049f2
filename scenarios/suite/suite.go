package suite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sallyport/scenarios"
)

// Limits of a suite.
const (
	// MaxJobs is how many scenarios may be played at once.
	MaxJobs = 256
	// DefaultTimeout is how long one scenario may take, its start and end included.
	DefaultTimeout = time.Minute
	// MaxTail is how many rows of the journal of a scenario that did not pass are shown.
	MaxTail = 8
)

// Keep says whose state is kept.
type Keep int

// What is kept. The zero value keeps what is worth looking at.
const (
	KeepFailed Keep = iota
	KeepAll
	KeepNone
)

// Suite plays cases. Player must be set.
type Suite struct {
	// Player is the command of a child: a program that calls [Play].
	Player []string
	Cases  []Case
	// Config is the configuration for every case; empty looks for the file's own.
	Config string
	// Jobs is how many are played at once; below 1 is one.
	Jobs int
	// Timeout is how long one may take; 0 is [DefaultTimeout].
	Timeout time.Duration
	// FailFast starts no other case after one that does not pass.
	FailFast bool
	// Update rewrites golden journals in place of comparing them.
	Update bool
	Keep   Keep
	// Seed of the order, for the reports; nil if it was not shuffled.
	Seed *uint64
	// Tail, if set, tells the last rows of a run's journal in words, and how many rows
	// there are. The state directory may be that of a process that was killed.
	Tail func(stateDir, run string, most int) (rows []string, all int64, err error)
	// Opens, if set, names the commands that show a run.
	Opens func(stateDir, run string) []string
	// Watch, if set, is told of what is going on, by one goroutine at a time.
	Watch Watcher
}

// Watcher follows a suite.
type Watcher interface {
	Started(c Case)
	Finished(c Case, r Result)
}

// Run plays every case and hands each result to each reporter as it comes, then the
// summary. What could not be reported is an error, and the suite is played all the same.
// When ctx is done nothing new is started, what is played is stopped, and the summary
// says so.
func (s *Suite) Run(ctx context.Context, reporters ...Reporter) (Summary, error) {
	began := time.Now()
	sum := Summary{Total: len(s.Cases), Seed: s.Seed, Results: make([]Result, len(s.Cases))}
	root, err := os.MkdirTemp("", "sallyport-test-")
	if err != nil {
		return sum, fmt.Errorf("make a folder for the suite: %w", err)
	}
	reports := multi(reporters)
	err = reports.Begin(sum)
	run := suiteRun{Suite: s, root: root, player: player{command: s.Player}}
	for r := range run.results(ctx) {
		sum.Results[r.index] = r
		sum.count(r)
		err = errors.Join(err, reports.Result(r))
	}
	sum.Seconds, sum.Interrupted = since(began), ctx.Err() != nil
	sum.Kept, err = run.tidy(err)
	return sum, errors.Join(err, reports.End(sum))
}

// tempEnding makes the name of the folder for temporary files of that of a case.
const tempEnding = ".tmp"

// suiteRun is a suite under way.
type suiteRun struct {
	*Suite
	root   string
	player player

	mu      sync.Mutex // guards what follows, and the watcher
	next    int
	stopped bool
}

// results plays the cases and gives their results as they come, those that were not run
// last. It is read to its end.
func (s *suiteRun) results(ctx context.Context) <-chan Result {
	out := make(chan Result)
	var workers sync.WaitGroup
	for range min(max(s.Jobs, 1), len(s.Cases)) {
		workers.Go(func() { // ends when no case is left; out is closed after all
			for i := s.take(ctx); i >= 0; i = s.take(ctx) {
				out <- s.one(ctx, i)
			}
		})
	}
	go func() { // ends with the workers; whoever reads out waits for it
		workers.Wait()
		for i := s.next; i < len(s.Cases); i++ {
			out <- Result{
				Name: s.Cases[i].Name, Title: s.Cases[i].Title, File: s.Cases[i].File,
				Status: StatusNotRun, Failures: []Failure{}, index: i,
			}
		}
		close(out)
	}()
	return out
}

// take gives the next case; -1 if there is none, or no other is to be started.
func (s *suiteRun) take(ctx context.Context) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || ctx.Err() != nil || s.next == len(s.Cases) {
		return -1
	}
	i := s.next
	s.next++
	if s.Watch != nil {
		s.Watch.Started(s.Cases[i])
	}
	return i
}

// one plays one case.
func (s *suiteRun) one(ctx context.Context, i int) Result {
	c, began := s.Cases[i], time.Now()
	limit := s.Timeout
	if limit == 0 {
		limit = DefaultTimeout
	}
	timed, cancel := context.WithTimeoutCause(ctx, limit, errTimeout)
	defer cancel()
	run := scenarios.NewRunID(short(c.name))
	dir := filepath.Join(s.root, fmt.Sprintf("%03d", i+1))
	r := s.play(timed, c, dir, run)
	r.Name, r.Title, r.File, r.index = c.Name, c.Title, c.File, i
	r.Run, r.Seconds = run, since(began)
	switch {
	case r.Status == StatusPassed:
	case errors.Is(context.Cause(timed), errTimeout) && ctx.Err() == nil:
		r.Status = StatusTimeout
		r.Failures = []Failure{{File: c.File, Message: fmt.Sprintf("it did not end within %s and was stopped", limit)}}
	case ctx.Err() != nil:
		r.Status = StatusInterrupted
		r.Failures = []Failure{{File: c.File, Message: "it was stopped with the suite"}}
	}
	s.look(&r, filepath.Join(dir, "state"))
	s.clear(&r, dir)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = s.stopped || s.FailFast && r.Status.bad()
	if s.Watch != nil {
		s.Watch.Finished(c, r)
	}
	return r
}

// maxID is how much of a case's name its run is called by, in characters: the id, and
// the folder, are in every grant, whose size is limited.
const maxID = 20

func short(name string) string {
	all := []rune(name)
	return string(all[:min(len(all), maxID)])
}

// play has the case played in a folder of its own, and with a folder for temporary
// files that is removed with whatever is in it.
func (s *suiteRun) play(ctx context.Context, c Case, dir, run string) Result {
	temp := dir + tempEnding
	if err := os.Mkdir(temp, 0o700); err != nil {
		return unplayed(fmt.Errorf("make a temporary folder: %w", err))
	}
	defer func() { _ = removeAll(temp) }() // tidy meets what is left
	return s.player.play(ctx, order{
		File: c.File, Name: c.name, Config: s.Config, Dir: dir, Run: run, Update: s.Update,
	}, []string{"TMPDIR=" + temp})
}

// look adds what the state of a case that did not pass shows.
func (s *suiteRun) look(r *Result, state string) {
	if r.Failures == nil {
		r.Failures = []Failure{}
	}
	if r.Status == StatusPassed || s.Tail == nil {
		return
	}
	rows, all, err := s.Tail(state, r.Run, MaxTail)
	if err == nil {
		r.Journal, r.Rows = rows, all
	}
}

// clear removes the folder of a case, or says how it is opened.
func (s *suiteRun) clear(r *Result, dir string) {
	keep := s.Keep == KeepAll || s.Keep == KeepFailed && r.Status.bad()
	state := filepath.Join(dir, "state")
	if _, err := os.Stat(state); !keep || err != nil {
		if err := removeAll(dir); err != nil {
			r.Status = StatusError
			r.Failures = append(r.Failures, Failure{Message: "its folder cannot be removed: " + err.Error()})
		}
		return
	}
	r.StateDir = state
	if s.Opens != nil && (r.Rows > 0 || r.Status == StatusPassed) {
		r.Opens = s.Opens(state, r.Run)
	}
}

// tidy removes the folder of the suite unless it holds something that is kept.
func (s *suiteRun) tidy(err error) (kept string, _ error) {
	switch rerr := os.Remove(s.root); {
	case rerr == nil || errors.Is(rerr, fs.ErrNotExist):
		return "", err
	case s.Keep == KeepNone:
		return "", errors.Join(err, removeAll(s.root))
	}
	return s.root, err
}

// removeAll removes a folder though it holds folders that may not be written.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700) // #nosec G302: a folder; what fails is met below
		}
		return nil
	})
	return os.RemoveAll(dir)
}
