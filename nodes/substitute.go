package nodes

import (
	"fmt"

	"sallyport/agent"
	"sallyport/tools/strictjson"
)

// GiveTurn makes the decision by which an operator of a fork takes the model's turn: the
// reply is judged as a model's would be, and must be one that counts. Its usage is left
// out. The bodies go with the delivery. The run must wait for a turn.
func GiveTurn(run agent.Run, r Reply) (agent.Substitute, []agent.Body, error) {
	if run.Open == nil || run.Open.Kind != agent.Ask {
		return agent.Substitute{}, nil, fmt.Errorf("give a turn to run %s: it waits for none", run.ID)
	}
	r.Usage = agent.Usage{}
	report, err := turn(agent.Task{Run: run, Effect: *run.Open}, r)
	if err != nil {
		return agent.Substitute{}, nil, fmt.Errorf("give a turn to run %s: %w", run.ID, err)
	}
	turned, ok := report.Result.(agent.Turned)
	if !ok {
		return agent.Substitute{}, nil, fmt.Errorf("give a turn to run %s: it would be refused (%s)", run.ID, refusal(r))
	}
	return agent.Substitute{Turn: &turned}, report.Bodies, nil
}

// GiveResult makes the decision by which an operator of a fork says what the prepared
// call returns. structured is the structured content of the result, as the tool would have
// given it: one JSON value; empty is a call without a result. A run takes an ok only for
// a call that reads.
func GiveResult(status agent.Status, structured []byte) (agent.Substitute, []agent.Body, error) {
	out := agent.Outcome{Status: status, Class: agent.ClassToolError, Reason: agent.ReasonSubstituted}
	if status == agent.StatusOK {
		out.Class = agent.ClassOK
	}
	if len(structured) == 0 {
		return agent.Substitute{Outcome: &out}, nil, nil
	}
	value, err := strictjson.Canonical(structured)
	if err != nil {
		return agent.Substitute{}, nil, fmt.Errorf("give a result: %w", err)
	}
	raw, err := strictjson.Object([]strictjson.Member{{Name: "structuredContent", Value: value}})
	if err != nil {
		return agent.Substitute{}, nil, fmt.Errorf("give a result: %w", err)
	}
	body := agent.NewBody(raw)
	out.Body = body.Ref
	return agent.Substitute{Outcome: &out}, []agent.Body{body}, nil
}
