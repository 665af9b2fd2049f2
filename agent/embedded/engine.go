package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"sallyport/agent"
)

// Config is how an engine is opened. Its zero value is fit for use.
type Config struct {
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Actor names the operator where a Start or a Delivery names none.
	Actor string
	// Parallel bounds the runs that Serve without names serves at once; 0 is
	// [DefaultParallel].
	Parallel int
	// Report, if set, is told of each run that Serve without names had to set aside,
	// from the goroutine that served it.
	Report func(run string, err error)
	// Door, if set, refuses decisions that today's configuration no longer allows: see
	// [agent.Driver]. It is asked by the process that gives the verdict, which is the one
	// that serves the run, else the one that delivers; so every process sets it alike. It
	// is called by many goroutines at once.
	Door func(agent.Run, agent.Decision) *agent.Refusal
	// Crash, if set, is called at the points of [agent.Driver] and of this package,
	// with their names; tests end the process there.
	Crash func(point string)
}

// DefaultParallel is how many runs Serve without names serves at once.
const DefaultParallel = 64

// The crash points of this package, besides those of [agent.Driver].
const (
	InCommit    = "in_commit"    // in the transaction, all written, before COMMIT
	InMigration = "in_migration" // in Open: a new schema is written, before COMMIT
	Delivered   = "delivered"    // a delivery is in the inbox, without a verdict
	Erased      = "erased"       // an erasure is journaled, the files not yet cleaned
)

// Engine is the [agent.Engine] on one state directory. Its methods may be called by
// many goroutines at once.
type Engine struct {
	config  Config
	dir     string
	path    string // of the state file
	writer  *writer
	reads   *sql.DB
	topics  *topics
	serving *serving

	closing context.Context
	close   context.CancelFunc
	active  sync.WaitGroup // calls under way
	mu      sync.Mutex     // guards closed and active.Add
	closed  bool
}

var _ agent.Engine = (*Engine)(nil)

// errClosed is what calls on a closed engine return.
var errClosed = errors.New("the engine is closed")

// Open opens the engine on a state directory, which it creates if need be (0700). It
// refuses a directory that others own or may write to, one on a network file system,
// a state.db that is not sallyport's, and, as [agent.ErrNewer], one that a newer
// version wrote.
func Open(dir string, config Config) (*Engine, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Parallel <= 0 {
		config.Parallel = DefaultParallel
	}
	dir, err := prepareDirectory(dir)
	if err != nil {
		return nil, err
	}
	turn, err := openTurnstile(filepath.Join(dir, lockFolder))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, stateFile)
	e := &Engine{config: config, dir: dir, path: path, topics: newTopics(), serving: newServing()}
	if err := prepareStore(path, turn, e.crash); err != nil {
		return nil, errors.Join(err, turn.close())
	}
	e.closing, e.close = context.WithCancel(context.Background())
	e.reads = openPool(path, readers)
	e.writer = newWriter(path, turn, writerHooks{
		crash: e.crash,
		told:  e.topics.tell,
		heard: e.heard,
	})
	e.topics.listen = e.writer.listen
	return e, nil
}

// heard is told by the writer that another process has committed. It runs between two writes.
func (e *Engine) heard(waiting func() ([]string, error)) {
	if e.serving.any() {
		runs, err := waiting()
		if err != nil {
			e.serving.hintAll() // each looks for itself, and meets the error
		}
		for _, run := range runs {
			e.serving.hint(run)
		}
	}
	e.topics.tellAll()
}

// enter begins a call; what it returns ends it. The context is done when the
// engine is closed.
func (e *Engine) enter(ctx context.Context) (context.Context, func(), error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ctx, nil, errClosed
	}
	e.active.Add(1)
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.closing, cancel)
	return ctx, func() { stop(); cancel(); e.active.Done() }, nil
}

// Close ends every call under way as if its context were done, waits for them, and
// closes the files. Closing twice is closing once.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	e.close()
	e.active.Wait()
	return errors.Join(e.writer.close(), e.reads.Close())
}

// Start implements [agent.Engine].
func (e *Engine) Start(ctx context.Context, spec agent.Spec, actor string, bodies []agent.Body) (agent.Run, error) {
	ctx, done, err := e.enter(ctx)
	if err != nil {
		return agent.Run{}, err
	}
	defer done()
	if err := checkBodies(bodies); err != nil {
		return agent.Run{}, err
	}
	if actor == "" {
		actor = e.config.Actor
	}
	if err := ctx.Err(); err != nil {
		return agent.Run{}, err
	}
	var run agent.Run
	if spec.Fork == nil {
		run, err = e.begin(spec, actor, bodies)
	} else {
		run, err = e.fork(ctx, spec, actor, bodies)
	}
	if errors.Is(err, errTaken) {
		return e.again(ctx, spec)
	}
	if err != nil {
		return agent.Run{}, fmt.Errorf("start run %q: %w", spec.Run, err)
	}
	return run, nil
}

// begin starts a run that is no fork, or returns errTaken.
func (e *Engine) begin(spec agent.Spec, actor string, bodies []agent.Body) (agent.Run, error) {
	run, entry, err := agent.Advance(agent.Run{}, agent.Begin(spec, actor, e.config.Now()))
	if err != nil {
		return agent.Run{}, err
	}
	return run, e.writer.do(spec.Run, func(tx *transaction) error {
		_, err := tx.begin([]agent.Commit{{Run: run, Entry: entry, Bodies: bodies}})
		return err
	})
}

// again answers the Start of a run that exists.
func (e *Engine) again(ctx context.Context, spec agent.Spec) (agent.Run, error) {
	was, err := e.load(ctx, spec.Run)
	if err != nil {
		return agent.Run{}, err
	}
	if !was.run.Spec.Equal(spec) {
		return agent.Run{}, fmt.Errorf("start run %s: %w", spec.Run, agent.ErrExists)
	}
	return was.run, nil
}

// crash calls the test's crash point.
func (e *Engine) crash(point string) {
	if e.config.Crash != nil {
		e.config.Crash(point)
	}
}
