package nodes

import (
	"context"
	"errors"
	"fmt"

	"sallyport/agent"
	"sallyport/tools/strictjson"
)

// The reasons that observing adds to those of the bridge.
const (
	reasonInvalidResult = "invalid_result" // the stored result is not what it was classified as
	reasonUnconfirmed   = "unconfirmed"    // the read-back did not find what the tool reported
)

// observe validates an outcome, stores its data and writes the message for the model
// (state observe, effect Observe). An outcome that is still open gets no message.
func (n *Nodes) observe(ctx context.Context, t agent.Task) (agent.Report, error) {
	p, call, err := callInHand(ctx, t)
	if err != nil {
		return agent.Report{}, err
	}
	out := t.Run.Call.Outcome
	if out == nil {
		return agent.Report{}, fmt.Errorf("observe call %s: it has no outcome", t.Run.Call.ID)
	}
	o := outcome{
		task: t, proposal: p, pin: pinned(t.Run),
		seen: agent.Observed{Status: out.Status, Class: out.Class, Reason: out.Reason},
	}
	if err := n.judge(ctx, &o, call); err != nil {
		return agent.Report{}, err
	}
	n.logOutcome(o)
	if o.open() {
		return agent.Report{Result: o.seen}, nil
	}
	return tell(ctx, o)
}

// outcome is the outcome of a call while it is judged.
type outcome struct {
	task     agent.Task
	proposal agent.ProposalBody
	pin      agent.Tool // zero, a read, if the run does not expose the tool
	seen     agent.Observed
	evidence *evidence    // of a valid result
	bodies   []agent.Body // to be stored beside the message
}

// pinned is the pinned tool of the call in hand.
func pinned(run agent.Run) agent.Tool {
	if pin, ok := run.Spec.Tool(run.Call.Proposal.Tool); ok {
		return pin
	}
	return agent.Tool{Risk: agent.RiskRead}
}

// open reports whether the outcome is not final: a candidate waits, or nobody knows
// whether a write took effect.
func (o *outcome) open() bool {
	return o.seen.Status == agent.StatusWaitingApproval ||
		o.seen.Status == agent.StatusResultUnknown && o.pin.Risk.Writes() && o.task.Run.Call.Outcome.Sent
}

// disbelieve replaces a success that does not hold: of a write nobody knows then
// (SPEC B9). Other outcomes stay: the run takes only an ok that turns out worse.
func (o *outcome) disbelieve(reason string) {
	if o.seen.Status != agent.StatusOK {
		return
	}
	o.seen.Status, o.seen.Class, o.seen.Reason = agent.StatusUnavailable, agent.ClassProtocolError, reason
	if o.pin.Risk.Writes() {
		o.seen.Status = agent.StatusResultUnknown
	}
}

// judge validates the stored result of a call that was sent, or that an operator gave,
// and has a write that reports success confirmed (SPEC B13). What evidence or persons
// decided stays.
func (n *Nodes) judge(ctx context.Context, o *outcome, call Call) error {
	c := o.task.Run.Call
	given := c.Substituted && !c.Outcome.Body.IsZero()
	if !c.Outcome.Sent && !given || c.Settled || o.open() {
		return nil
	}
	if err := n.readEvidence(ctx, o); err != nil {
		return err
	}
	if o.seen.Status != agent.StatusOK || !o.pin.Risk.Writes() || !o.pin.Settle {
		return nil
	}
	found, bodies, err := n.bridge.ReadBack(ctx, call)
	switch {
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("confirm call %s: %w", c.ID, ctx.Err())
	case err != nil || found.Finding != agent.Applied:
		o.disbelieve(reasonUnconfirmed)
	default:
		o.seen.ReadBack, o.bodies = found.Evidence, bodies
	}
	return nil
}

// readEvidence takes the evidence out of the stored result. Where that is not valid,
// the call was no success.
func (n *Nodes) readEvidence(ctx context.Context, o *outcome) error {
	ev, err := n.stored(ctx, o)
	switch {
	case err == nil:
		o.evidence = &ev
	case errors.Is(err, errNotAResult):
		o.disbelieve(reasonInvalidResult)
	default:
		return fmt.Errorf("read the result of call %s: %w", o.task.Run.Call.ID, err)
	}
	return nil
}

// stored is the evidence in the result that the call's outcome names, or
// errNotAResult. An unavailable tool has none, whatever it sent.
func (n *Nodes) stored(ctx context.Context, o *outcome) (evidence, error) {
	out := o.task.Run.Call.Outcome
	if out.Body.IsZero() || out.Status == agent.StatusUnavailable {
		return evidence{}, errNotAResult
	}
	raw, err := o.task.Reader.Body(ctx, out.Body)
	if err != nil {
		return evidence{}, err
	}
	if own(o.pin) {
		return opened(raw)
	}
	return extract(raw, out.Status, n.derived != nil && n.derived(o.pin.Name))
}

// tell writes the one message that answers the call, and stores the data that it
// quotes.
func tell(ctx context.Context, o outcome) (agent.Report, error) {
	note, args, err := edited(ctx, o.task)
	if err != nil {
		return agent.Report{}, err
	}
	said := Observation{Status: o.seen.Status}
	bodies := o.bodies
	switch {
	case o.evidence == nil:
		said.Message = note + sentence(o.seen, o.task.Run.Call.Outcome.Sent, &o.task.Run.Spec)
	case o.evidence.piece != nil:
		p := o.evidence.piece
		o.seen.Evidence = p.Ref // kept already
		said.Message, said.Untrusted = pieceOpened, p.untrusted(o.evidence.data)
	default:
		data := agent.NewBody(o.evidence.data)
		bodies = append(bodies, data)
		o.seen.Evidence = data.Ref
		said.Message = note + resultSentences[o.seen.Status]
		said.Untrusted = quote(o, data, args)
		if said.Untrusted.Data == nil {
			said.Message += tooMuch(&o.task.Run.Spec)
		}
	}
	body, err := toolMessage(o.proposal.ID, said)
	if err != nil {
		return agent.Report{}, err
	}
	o.seen.Message = body.Ref
	return agent.Report{Result: o.seen, Bodies: append(bodies, body)}, nil
}

// quote marks what a tool returned as untrusted.
func quote(o outcome, data agent.Body, args []byte) *Untrusted {
	u := &Untrusted{
		Source: Source{Server: o.pin.Server, Tool: o.pin.Remote, File: fileOf(args)},
		Ref:    data.Ref.String(), Bytes: data.Ref.Bytes, Remark: o.evidence.remark,
	}
	if len(data.Data) <= MaxData {
		u.Data = data.Data
	}
	return u
}

// edited is what the model is told of arguments that a person replaced. It also
// returns the canonical arguments, if there are any.
func edited(ctx context.Context, t agent.Task) (note string, args []byte, err error) {
	c := t.Run.Call
	if c.Arguments.IsZero() {
		return "", nil, nil
	}
	if args, err = arguments(ctx, t); err != nil {
		return "", nil, err
	}
	switch {
	case !c.Edited:
		return "", args, nil
	case !c.Outcome.Sent:
		return editedUnused, args, nil
	}
	return editedUsed + string(args) + ". ", args, nil
}

// fileOf is the file that a call was about: the argument "filename", if it is text.
func fileOf(args []byte) string {
	members, err := strictjson.Members(args)
	if err != nil {
		return ""
	}
	for _, m := range members {
		var name string
		if m.Name == "filename" && strictjson.Decode(m.Value, &name) == nil {
			return name
		}
	}
	return ""
}
