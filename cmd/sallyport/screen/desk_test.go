package screen_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/agent/enginetest"
	"sallyport/cmd/sallyport/screen"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/tools/strictjson"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // captured screens show times
	_ = os.Unsetenv("NO_COLOR")
	_ = os.Setenv("TERM", "xterm-256color")
	os.Exit(m.Run())
}

// desk is an engine with runs that a test makes, under a clock of its own.
type desk struct {
	t      testing.TB
	engine agent.Engine
	world  *enginetest.World
	saves  []byte    // the arguments of a save
	bare   io.Writer // the bare terminal

	mu  sync.Mutex
	now time.Time
}

// report is what the model of these tests saves.
const report = `{"content":"# Reading list\n\n1. The Sea\n2. The Harbour\n\nBoth were found on the desk.\n","filename":"reading-list.md"}`

func newDesk(t testing.TB) *desk {
	d := &desk{t: t, saves: []byte(report), now: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)}
	d.world = &enginetest.World{Now: d.clock}
	d.engine = enginetest.NewMemory(d.clock, nil)
	return d
}

// clock goes on by a quarter of a second whenever it is read.
func (d *desk) clock() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(250 * time.Millisecond)
	return d.now
}

// nodes are those of the suite, but that a save has the desk's arguments.
type nodes struct {
	agent.Nodes
	desk *desk
}

func (n nodes) Perform(ctx context.Context, t agent.Task) (agent.Report, error) {
	if t.Effect.Kind != agent.Prepare || t.Run.Call.Proposal.Tool != enginetest.ToolWrite {
		return n.Nodes.Perform(ctx, t)
	}
	args := agent.NewBody(n.desk.saves)
	tool, _ := t.Run.Spec.Tool(enginetest.ToolWrite)
	if len(t.Run.Call.Grants) > 0 {
		return agent.Report{Result: agent.Checked{Arguments: args.Ref, Definition: tool.Definition}}, nil
	}
	waiting := enginetest.Waiting(t, args.Ref)
	c, err := waiting.Candidate.Bind(n.desk.saves)
	if err != nil {
		return agent.Report{}, err
	}
	waiting.Candidate = &c
	return agent.Report{Result: waiting, Bodies: []agent.Body{args}}, nil
}

// serve lets a run go on until it rests.
func (d *desk) serve(run string, script enginetest.Script) agent.Run {
	d.t.Helper()
	open := d.world.Nodes(script)
	err := d.engine.Serve(context.Background(), agent.ServeOptions{Runs: []string{run}}, func(r agent.Run) (agent.Nodes, error) {
		n, err := open(r)
		return nodes{n, d}, err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return d.run(run)
}

func (d *desk) begin(spec agent.Spec) {
	d.t.Helper()
	if _, err := d.engine.Start(context.Background(), spec, "tester", []agent.Body{enginetest.Task}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) run(id string) agent.Run {
	d.t.Helper()
	run, err := agent.Replay(d.engine.Journal(context.Background(), id, 1, false))
	if err != nil {
		d.t.Fatal(err)
	}
	return run
}

func (d *desk) approve(run string) {
	d.t.Helper()
	v, err := d.engine.Deliver(context.Background(), run, enginetest.Deliver(enginetest.Sign(d.run(run), "alice", d.clock()), ""))
	if err != nil || v.Refusal != nil {
		d.t.Fatal(v, err)
	}
}

// script reads twice and saves.
var script = enginetest.Script{{enginetest.ToolRead}, {enginetest.ToolRead, enginetest.ToolWrite}}

// waiting is a run that waits for approval of a save.
func (d *desk) waiting(id string) {
	d.t.Helper()
	d.begin(enginetest.Spec(id))
	if run := d.serve(id, script); run.State != agent.StateAwaitingApproval {
		d.t.Fatalf("run %s is %s", id, run.State)
	}
}

// saved is one that has completed.
func (d *desk) saved(id string) {
	d.t.Helper()
	d.waiting(id)
	d.approve(id)
	if run := d.serve(id, script); run.State != agent.StateCompleted {
		d.t.Fatalf("run %s is %s", id, run.State)
	}
}

// config is a screen on a run. Commands are those of a small shell.
func (d *desk) config(id string) screen.Config {
	d.t.Helper()
	s, err := debug.Open(context.Background(), d.engine, id)
	if err != nil {
		d.t.Fatal(err)
	}
	return screen.Config{
		Session: func() *debug.Session { return s }, Candidate: d.candidate, Detail: func(agent.Entry) string { return "" },
		Context: func(ctx context.Context, run agent.Run, seq int64) ([]screen.Message, error) {
			return d.context(ctx, run.ID, seq)
		},
		Displayed: func() string { return "" }, Allow: func(bool) {},
		Answer:   func(ctx context.Context, run agent.Run) (string, error) { return d.body(ctx, run.ID, run.Answer) },
		Do:       func(ctx context.Context, line string, out io.Writer) error { return d.do(ctx, s, line, out) },
		Acts:     func(line string) bool { return strings.HasPrefix(line, "approve") },
		Complete: func(line string) []string { return []string{line + "int state"} },
		Poll:     20 * time.Millisecond,
	}
}

func (d *desk) do(_ context.Context, s *debug.Session, line string, out io.Writer) error {
	if out == nil {
		out = d.bare
	}
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "break":
		b, err := s.Break(rest)
		if err == nil {
			_, err = fmt.Fprintf(out, "Breakpoint %d: %s\n", b.ID, b)
		}
		return err
	case "print":
		v, err := s.Moment().Value(rest)
		if err == nil {
			_, err = fmt.Fprintf(out, "%s = %v\n", rest, v)
		}
		return err
	case "hostile":
		if err := terminal.Untrusted(out, hostile, 0); err != nil {
			return err
		}
		_, err := io.WriteString(out, hostile) // a command that forgot
		return err
	case "approve":
		d.approve(s.ID())
		_, err := fmt.Fprintln(out, "approved on the bare terminal")
		return err
	}
	return fmt.Errorf("there is no command %q", verb)
}

func (d *desk) body(ctx context.Context, run string, ref agent.BodyRef) (string, error) {
	data, err := d.engine.Body(ctx, run, ref)
	return string(data), err
}

func (d *desk) candidate(ctx context.Context, run agent.Run) (terminal.Pending, error) {
	args, err := d.engine.Body(ctx, run.ID, run.Call.Arguments)
	tool, _ := run.Spec.Tool(run.Call.Proposal.Tool)
	return terminal.Pending{
		Candidate: *run.Call.Candidate, Arguments: args, Tool: tool, Deadline: run.Deadline,
		SideEffect: "creates one new file under reports/", Rollback: "delete the file",
	}, err
}

// context is the task and each message of the model and of a tool.
func (d *desk) context(ctx context.Context, run string, seq int64) ([]screen.Message, error) {
	out := []screen.Message{{Role: "system", Text: "Propose only what the task needs."}, {Role: "user", Text: string(enginetest.Task.Data)}}
	for e, err := range d.engine.Journal(ctx, run, 1, false) {
		if err != nil || e.Seq > seq {
			return out, err
		}
		if e.Kind != agent.EntryEvent {
			continue
		}
		p, err := e.Payload()
		if err != nil {
			return out, err
		}
		role, ref := "", agent.BodyRef{}
		switch p := p.(type) {
		case agent.Turned:
			role, ref = "assistant", p.Message
		case agent.Observed:
			role, ref = "tool", p.Message
		}
		if ref.IsZero() {
			continue
		}
		text, err := d.body(ctx, run, ref)
		if err != nil {
			return out, err
		}
		out = append(out, screen.Message{Role: role, Text: text})
	}
	return out, nil
}

// hostile is text that would take a terminal over, or deceive who reads it.
const hostile = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b[0m \x9b31m \u0090q\u009c \u202eevil\u202c \u200bzero\u2066 \u00ad\U000e0041 " +
	"\r\x08\x7f\x00 ⟦U+0041⟧ \x1b[?1049l\x1b[6n\x1bc\x1bP+q544e\x1b\\ a\u0301\u0301\u0301\u0301\u0301\u0301\n" +
	"── What an approval allows, this call only: ──\n  tool        read of server desk\n日本語の文 👩\u200d🚀 ｗｉｄｅ\ttab"

func hostileContext(context.Context, agent.Run, int64) ([]screen.Message, error) {
	return []screen.Message{{Role: "user", Text: "hostile words " + hostile}}, nil
}

// canonical are the bytes as they are hashed and shown.
func canonical(t *testing.T, args []byte) []byte {
	t.Helper()
	out, err := strictjson.Canonical(args)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
