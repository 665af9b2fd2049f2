package nodes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"time"
	"unicode/utf8"

	"sallyport/agent"
	"sallyport/tools/strictjson"
)

// Model gives one turn. It holds no state of a run: everything that it may know is
// in the request. Its errors must not hold keys, since they are logged.
type Model interface {
	// Turn returns the model's reply as its provider gave it, complete or not. An
	// error that is an [*Unavailable] says how to go on; one that wraps [ErrModelFault]
	// stops the runtime and leaves the run as it is; any other is an attempt that
	// failed.
	Turn(ctx context.Context, r Request) (Reply, error)
}

// Request is what a model is given, in the form of Chat Completions.
type Request struct {
	Messages []Message `json:"messages"`
	Tools    []Tool    `json:"tools,omitempty"`
	// ParallelToolCalls is always false (SPEC B5).
	ParallelToolCalls bool `json:"parallel_tool_calls"`

	// Run and Attempt are for the operator's eyes and for recordings; no model is told
	// of them. Attempt counts the attempts at this turn that gave none.
	Run     string `json:"-"`
	Attempt int    `json:"-"`
}

// Taken is how many turns the transcript holds already: each ended with a message of
// the assistant, or with the Host's note that it did not count. The first message of the
// user is the task.
func (r Request) Taken() int {
	turns, users := 0, 0
	for _, m := range r.Messages {
		switch m.Role {
		case RoleAssistant:
			turns++
		case RoleUser:
			users++
		case RoleSystem, RoleTool:
		}
	}
	return turns + max(0, users-1)
}

// Reply is one turn as a provider gave it.
type Reply struct {
	Text   string
	Calls  []ToolCall
	Finish string // a Finish constant; empty if the turn ended without saying so
	Usage  agent.Usage

	Vendor   map[string]string // see [Message.Vendor]
	Adjusted []string          // see [Message.Adjusted]
}

// The finish reasons of complete and cut-off turns. A provider's other words are
// the model's to translate; what is none of these refuses the turn.
const (
	FinishStop      = "stop"
	FinishToolCalls = "tool_calls"
	FinishLength    = "length"
	FinishFilter    = "content_filter"
)

// MaxCallID bounds the model's call ids and tool names, in bytes.
const MaxCallID = 256

// ErrModelFault is wrapped by errors of a model that cannot work as it is set up: a
// script that ran out, a file that is not there. Asking again is useless, and the
// run is not to blame: it stays as it is and can be resumed.
var ErrModelFault = errors.New("the model cannot work as it is set up")

// Unavailable says that the model gave no turn.
type Unavailable struct {
	Reason string // a fixed word; it is journaled
	// After is the least pause before the next attempt; 0 leaves it to the Host. One
	// longer than [MaxRetryAfter] makes the attempt final.
	After time.Duration
	Final bool  // another attempt is useless
	Err   error // for the operator's log; may be nil
}

// Error implements error.
func (u *Unavailable) Error() string {
	if u.Err == nil {
		return fmt.Sprintf("the model gave no turn (%s)", u.Reason)
	}
	return fmt.Sprintf("the model gave no turn (%s): %v", u.Reason, u.Err)
}

// Unwrap returns the cause.
func (u *Unavailable) Unwrap() error { return u.Err }

// The reasons of turns that failed on this side.
const (
	reasonModelError  = "error"        // an error of no kind
	reasonContextFull = "context_full" // the run has grown past the window for good
)

// ask gets one turn (state model, effect Ask).
func (n *Nodes) ask(ctx context.Context, t agent.Task) (agent.Report, error) {
	messages, err := n.context(ctx, t.Reader)
	if errors.Is(err, ErrContextFull) {
		return n.unreached(ctx, t, &Unavailable{Reason: reasonContextFull, Final: true, Err: err})
	}
	if err != nil {
		return agent.Report{}, err
	}
	start := n.now()
	reply, err := n.model.Turn(ctx, Request{
		Messages: messages, Tools: n.offered(&t.Run.Spec), Run: t.Run.ID, Attempt: t.Run.Unreached,
	})
	if err != nil {
		return n.unreached(ctx, t, err)
	}
	report, err := turn(t, reply)
	if err != nil {
		return agent.Report{}, fmt.Errorf("take the model's turn: %w", err)
	}
	n.logTurn(t, report.Result, reply, n.now().Sub(start))
	return report, nil
}

func (n *Nodes) context(ctx context.Context, r agent.Reader) ([]Message, error) {
	body := func(ref agent.BodyRef) ([]byte, error) { return r.Body(ctx, ref) }
	return Context(n.system, n.window, iter.Seq2[agent.Entry, error](r.Entries(ctx)), body)
}

// unreached turns an error of the model into a result, unless the asking was ended
// or the model is at fault.
func (n *Nodes) unreached(ctx context.Context, t agent.Task, err error) (agent.Report, error) {
	if ctx.Err() != nil {
		return agent.Report{}, fmt.Errorf("ask the model: %w", ctx.Err())
	}
	if errors.Is(err, ErrModelFault) {
		return agent.Report{}, fmt.Errorf("ask the model: %w", err)
	}
	u := &Unavailable{Reason: reasonModelError, Err: err}
	errors.As(err, &u)
	reason := cmp.Or(u.Reason, reasonModelError)
	n.logUnreached(t, reason, u)
	return agent.Report{Result: agent.Unreached{
		Reason: reason, After: pause(t.Run.Unreached, u.After), Final: u.Final || u.After > MaxRetryAfter*time.Second,
	}}, nil
}

// The pause before a model is asked again, in seconds.
const (
	MaxPause      = 60  // of the Host's own choice
	MaxRetryAfter = 600 // that a provider may ask for; one who asks for more is not asked again
)

// pause doubles from one second with each attempt up to [MaxPause]. It is never
// shorter than what the model asked for: a provider that names a time is not asked
// before it. An attempt that is final has the pause of the longest wait.
func pause(failed int, asked time.Duration) int64 {
	own := min(int64(1)<<min(failed, 6), MaxPause)
	asks := min(max(asked, 0), MaxRetryAfter*time.Second)
	return max(own, int64((asks+time.Second-1)/time.Second))
}

// turn judges a reply: an answer, proposals, or no turn at all.
func turn(t agent.Task, r Reply) (agent.Report, error) {
	r.Calls = withIDs(t, r.Calls)
	if why := refusal(r); why != "" {
		return refusedTurn(why, r.Usage)
	}
	report := agent.Report{}
	turned := agent.Turned{Usage: r.Usage}
	message := Message{
		Role: RoleAssistant, Content: r.Text, ToolCalls: r.Calls, Vendor: r.Vendor, Adjusted: r.Adjusted,
	}
	for _, c := range r.Calls {
		proposal, body, err := propose(&t.Run.Spec, c)
		if err != nil {
			return agent.Report{}, err
		}
		turned.Calls = append(turned.Calls, proposal)
		report.Bodies = append(report.Bodies, body)
	}
	body, err := message.body()
	if err != nil {
		return agent.Report{}, err
	}
	turned.Message = body.Ref
	report.Result, report.Bodies = turned, append(report.Bodies, body)
	return report, nil
}

// refusal names what makes a reply no turn; empty if it is one. The order is that of
// the rules: what is incomplete is not looked at further.
func refusal(r Reply) string {
	switch {
	case r.Finish == "":
		return turnUnfinished
	case r.Finish == FinishLength:
		return turnCutOff
	case r.Finish == FinishFilter:
		return turnFiltered
	case r.Finish != FinishStop && r.Finish != FinishToolCalls:
		return turnUnknownFinish
	case len(r.Calls) > agent.MaxCallsPerTurn:
		return turnTooManyCalls
	case len(r.Calls) == 0 && (r.Text == "" || r.Finish == FinishToolCalls):
		return turnEmpty
	case !utf8.ValidString(r.Text), !validVendor(r.Vendor):
		return turnMalformed
	}
	seen := map[string]bool{}
	for _, c := range r.Calls {
		switch {
		case seen[c.ID]:
			return turnDuplicateID
		case malformed(c):
			return turnMalformed
		}
		seen[c.ID] = true
	}
	return ""
}

func malformed(c ToolCall) bool {
	return len(c.ID) > MaxCallID || len(c.Name) > MaxCallID || c.Name == "" ||
		!utf8.ValidString(c.ID) || !utf8.ValidString(c.Name) || !utf8.ValidString(c.Arguments)
}

func validVendor(fields map[string]string) bool {
	for name, text := range fields {
		if !utf8.ValidString(name) || !utf8.ValidString(text) {
			return false
		}
	}
	return true
}

// refusedTurn tells the model why its turn did not count. What it had said is not
// kept: a cut-off call in the context would have to be answered.
func refusedTurn(why string, used agent.Usage) (agent.Report, error) {
	body, err := Message{Role: RoleUser, Content: turnSentences[why]}.body()
	if err != nil {
		return agent.Report{}, err
	}
	return agent.Report{
		Result: agent.TurnRefused{Reason: why, Message: body.Ref, Usage: used},
		Bodies: []agent.Body{body},
	}, nil
}

// propose makes the proposal of a call. The journal gets a tool's name only if the
// run exposes it: the model's free text stays in the body.
func propose(spec *agent.Spec, c ToolCall) (agent.Proposal, agent.Body, error) {
	data, err := strictjson.Encode(agent.ProposalBody{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	if err != nil {
		return agent.Proposal{}, agent.Body{}, fmt.Errorf("encode a proposal: %w", err)
	}
	body := agent.NewBody(data)
	p := agent.Proposal{Body: body.Ref}
	if pin, ok := spec.Tool(c.Name); ok && !pin.HostOnly {
		p.Tool = c.Name
	}
	return p, body, nil
}

// withIDs fills in missing call ids. They follow from run, effect and index, so that
// the same reply to the same effect gets the same ids.
func withIDs(t agent.Task, calls []ToolCall) []ToolCall {
	out := make([]ToolCall, len(calls))
	for i, c := range calls {
		if c.ID == "" {
			sum := sha256.Sum256(fmt.Appendf(nil, "model call\x00%s\x00%d\x00%d", t.Run.ID, t.Effect.Seq, i))
			c.ID = "call_" + hex.EncodeToString(sum[:12])
		}
		out[i] = c
	}
	return out
}
