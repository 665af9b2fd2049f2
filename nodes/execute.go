package nodes

import (
	"context"
	"fmt"

	"sallyport/agent"
	"sallyport/tools/strictjson"
)

// prepare does everything but the call (state execute, effect Prepare).
func (n *Nodes) prepare(ctx context.Context, t agent.Task) (agent.Report, error) {
	p, call, err := callInHand(ctx, t)
	if err != nil {
		return agent.Report{}, err
	}
	n.logProposal(t, p)
	if own(pinned(t.Run)) {
		result, bodies := n.prepareOwn(t, call)
		return agent.Report{Result: result, Bodies: bodies}, nil
	}
	result, bodies, err := n.bridge.Prepare(ctx, call)
	if err != nil {
		return agent.Report{}, fmt.Errorf("prepare call %s: %w", t.Run.Call.ID, err)
	}
	return agent.Report{Result: result, Bodies: bodies}, nil
}

// send sends exactly one request (state execute, effect Send).
func (n *Nodes) send(ctx context.Context, t agent.Task) (agent.Report, error) {
	if own(pinned(t.Run)) {
		returned, bodies, err := n.sendOwn(ctx, t)
		if err != nil {
			return agent.Report{}, err
		}
		return agent.Report{Result: returned, Bodies: bodies}, nil
	}
	_, call, err := callInHand(ctx, t)
	if err != nil {
		return agent.Report{}, err
	}
	returned, bodies, err := n.bridge.Send(ctx, call)
	if err != nil {
		return agent.Report{}, fmt.Errorf("send call %s: %w", t.Run.Call.ID, err)
	}
	return agent.Report{Result: returned, Bodies: bodies}, nil
}

// callInHand reads what the bridge needs of the call in hand.
func callInHand(ctx context.Context, t agent.Task) (agent.ProposalBody, Call, error) {
	p, err := proposal(ctx, t)
	if err != nil {
		return p, Call{}, err
	}
	call := Call{Run: t.Run, Name: p.Name, Arguments: p.Arguments, Head: t.Effect.Head}
	if t.Run.Call.Edited {
		if call.Edited, err = arguments(ctx, t); err != nil {
			return p, Call{}, err
		}
	}
	return p, call, nil
}

// proposal is the call in hand as the model sent it.
func proposal(ctx context.Context, t agent.Task) (agent.ProposalBody, error) {
	var p agent.ProposalBody
	if t.Run.Call == nil {
		return p, fmt.Errorf("%s of run %s: no call is in hand", t.Effect.Kind, t.Run.ID)
	}
	ref := t.Run.Call.Proposal.Body
	data, err := t.Reader.Body(ctx, ref)
	if err != nil {
		return p, fmt.Errorf("read the proposal of call %s: %w", t.Run.Call.ID, err)
	}
	if err := strictjson.Decode(data, &p); err != nil {
		return p, fmt.Errorf("decode the proposal of call %s: %w", t.Run.Call.ID, err)
	}
	return p, nil
}

// arguments are the canonical argument bytes of the call in hand.
func arguments(ctx context.Context, t agent.Task) ([]byte, error) {
	data, err := t.Reader.Body(ctx, t.Run.Call.Arguments)
	if err != nil {
		return nil, fmt.Errorf("read the arguments of call %s: %w", t.Run.Call.ID, err)
	}
	return data, nil
}
