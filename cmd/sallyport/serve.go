package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios"
)

func (a *app) serveCommand() *cobra.Command {
	var notify string
	c := &cobra.Command{
		Use: "serve", Short: "Serve every open run of the state directory until told to end", Args: cobra.NoArgs,
		Long: `Serve every open run of the state directory: what was interrupted is gone on with, what
is decided on from anywhere is carried out, and what nobody decides on expires. Nobody
is asked here; decide with "sallyport approve" and "reject" in other terminals.

Each transition is a line on stderr, or with -o jsonl an object on stdout. A run that
cannot be gone on with is set aside until its journal moves on, and reported; the
others go on.

SIGTERM and Ctrl-C end it: nothing new is started, and a call in flight is waited for.
After SIGTERM the exit code is 0, after Ctrl-C 130. A second signal ends it at once.

--notify starts a command when a candidate begins to wait: words, without a shell. It
gets SALLYPORT_RUN, SALLYPORT_TOOL, SALLYPORT_SHA256 and SALLYPORT_DEADLINE, never
content, and 10 seconds. That it fails is reported, and changes nothing.`,
		Annotations: map[string]string{formatsKey: string(formatTable) + " " + string(formatJSONL)},
		RunE: func(c *cobra.Command, _ []string) error {
			return a.serve(c.Context(), notify, c.Flags().Changed("notify"))
		},
	}
	c.Flags().StringVar(&notify, "notify", "", "start `COMMAND` when a candidate begins to wait")
	return c
}

// service is one `serve`.
type service struct {
	app      *app
	engine   *embedded.Engine
	dir      string
	operator string
	watcher  *watcher
	notifier *notifier // nil if nobody is to be notified
}

func (a *app) serve(ctx context.Context, notify string, notifies bool) (err error) {
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM)
	defer signal.Stop(terminated)
	s := &service{app: a}
	if s.dir, err = a.statePath(); err != nil {
		return err
	}
	if s.operator, err = a.operator("", s.dir); err != nil {
		return err
	}
	if notifies {
		if s.notifier, err = newNotifier(notify, s.unnotified); err != nil {
			return err
		}
		defer s.notifier.close()
	}
	config := engineConfig()
	if config.Now == nil {
		config.Now = time.Now
	}
	config.Door, config.Report = door(s.dir, config.Now), s.setAside
	if s.engine, err = embedded.Open(s.dir, config); err != nil {
		return stateErr(s.dir, err)
	}
	defer func() { err = errors.Join(err, s.engine.Close()) }()
	return s.ended(ctx, s.all(ctx), func() bool {
		signal.Stop(terminated) // all that came before is in the channel then
		return len(terminated) > 0
	})
}

// all serves every open run until ctx is done, and tells what they do.
func (s *service) all(ctx context.Context) error {
	watcher, open, err := watch(ctx, s.engine)
	if err != nil {
		return fmt.Errorf("list the runs: %w", err)
	}
	s.watcher = watcher
	watcher.tell, watcher.lost = s.moved, s.setAside
	s.tell(served{Event: "serving", Detail: fmt.Sprintf("%d open runs of %s", len(open), s.dir)})
	stop := context.AfterFunc(ctx, func() {
		s.tell(served{Event: "stopping", Detail: "nothing new is started; a call in flight is waited for"})
	})
	defer stop()
	beside, end := context.WithCancel(context.WithoutCancel(ctx)) // it tells of the drain too
	var following sync.WaitGroup
	following.Go(func() { watcher.follow(beside) }) // waited for below
	err = s.engine.Serve(ctx, agent.ServeOptions{}, func(run agent.Run) (agent.Nodes, error) { return s.nodes(ctx, run) })
	end()
	following.Wait()
	watcher.all(context.WithoutCancel(ctx))
	return err
}

// nodes makes the nodes of a run, with its own log.
func (s *service) nodes(ctx context.Context, run agent.Run) (agent.Nodes, error) {
	host, done, err := s.app.hostOn(s.engine, s.dir, run.ID, s.operator)
	if err != nil {
		return nil, err
	}
	nodes, err := host.Nodes(ctx, run)
	if err != nil {
		done()
		return nil, err
	}
	moved := func() { s.watcher.hint(run.ID) }
	moved()
	return &watchedNodes{nodes, moved, done}, nil
}

// watchedNodes hint at each effect that all before it is in the journal.
type watchedNodes struct {
	agent.Nodes
	moved func()
	done  func()
}

// Perform implements [agent.Nodes].
func (w *watchedNodes) Perform(ctx context.Context, t agent.Task) (agent.Report, error) {
	w.moved()
	return w.Nodes.Perform(ctx, t)
}

// Close implements [agent.Nodes].
func (w *watchedNodes) Close() error {
	defer w.done()
	w.moved()
	return w.Nodes.Close()
}

// ended is how a service that an error ended is told: to be told to end is none.
func (s *service) ended(ctx context.Context, err error, terminated func() bool) error {
	if ctx.Err() == nil || err == nil {
		return err
	}
	var store *embedded.StoreError
	if errors.As(err, &store) {
		return fail(exitFailed, "free the disk; what is in the journal is safe", "the state could not be written: %w", store)
	}
	if err.Error() != ctx.Err().Error() { // it says more than that we were told to end
		s.tell(served{Event: "drained", Error: err.Error()})
	}
	if terminated() {
		return nil
	}
	return context.Cause(ctx)
}

// served is a line of a service.
type served struct {
	Time   time.Time       `json:"time"`
	Event  string          `json:"event"` // serving, transition, set_aside, notify_failed, stopping, drained
	Run    string          `json:"run,omitempty"`
	Seq    int64           `json:"seq,omitempty"`
	Kind   agent.EntryKind `json:"kind,omitempty"`
	Row    agent.Row       `json:"row,omitempty"`
	State  agent.State     `json:"state,omitempty"`
	Detail string          `json:"detail,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// tell writes a line. That it cannot be written does not end the service.
func (s *service) tell(l served) {
	if l.Time.IsZero() {
		l.Time = time.Now().UTC()
	}
	switch {
	case s.app.output == formatJSONL:
		_ = s.app.json(l, false)
	case l.Error != "":
		about := l.Event
		if l.Run != "" {
			about = "run " + l.Run + ": " + about
		}
		s.app.warn(about, l.Error)
	default:
		s.app.say("%s", terminal.Line(l.Event+": "+l.Detail))
	}
}

// moved tells a transition, and starts the notification of a candidate.
func (s *service) moved(e agent.Entry) {
	if s.app.output == formatJSONL {
		s.tell(served{Time: e.Time, Event: "transition", Run: e.Run, Seq: e.Seq, Kind: e.Kind, Row: e.Row, State: e.State, Detail: detail(e)})
	} else {
		s.app.say("%s %s", e.Run, entryLine(e))
	}
	if s.notifier == nil || e.Kind != agent.EntryEvent || e.Row != agent.RowApprovalRequired {
		return
	}
	run, _, err := scenarios.Load(context.Background(), s.engine, e.Run)
	if err != nil {
		s.unnotified(e.Run, err)
		return
	}
	if p, waits := pending(run); waits {
		s.notifier.waits(p)
	}
}

// setAside tells of a run that is not gone on with.
func (s *service) setAside(run string, err error) {
	s.tell(served{Event: "set_aside", Run: run, Error: err.Error()})
}

// unnotified tells of a notification that failed.
func (s *service) unnotified(run string, err error) {
	s.tell(served{Event: "notify_failed", Run: run, Error: err.Error()})
}
