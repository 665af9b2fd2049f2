package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"sallyport/agent"
	"sallyport/scenarios"
	"sallyport/tools/strictjson"
)

// callRow is a call in a list.
type callRow struct{ scenarios.Call }

func (c callRow) cells() []string {
	reason := c.Reason
	if c.Carried > 0 {
		reason = strings.TrimSpace(fmt.Sprintf("%s carried over from entry %d", reason, c.Carried))
	}
	if len(c.Approvers) > 0 {
		reason = strings.TrimSpace(reason + " signed by " + strings.Join(c.Approvers, ", "))
	}
	return []string{c.Tool, string(c.Status), string(c.Class), c.Arguments, reason}
}

// answer is the model's last message, once the run has completed.
func answer(ctx context.Context, e agent.Engine, run agent.Run) (string, error) {
	if run.Answer.IsZero() {
		return "", nil
	}
	data, err := e.Body(ctx, run.ID, run.Answer)
	if err != nil {
		return "", fmt.Errorf("read the answer of run %s: %w", run.ID, err)
	}
	var m struct {
		Content string `json:"content"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return "", fmt.Errorf("read the answer of run %s: %w", run.ID, err)
	}
	return m.Content, nil
}

// candidateBytes are the exact argument bytes of the pending candidate.
func candidateBytes(ctx context.Context, e agent.Engine, run agent.Run) ([]byte, error) {
	data, err := e.Body(ctx, run.ID, run.Call.Arguments)
	if err != nil {
		return nil, fmt.Errorf("read the candidate of run %s: %w", run.ID, err)
	}
	if strictjson.Digest(data) != run.Call.Candidate.Arguments {
		return nil, fmt.Errorf("read the candidate of run %s: %w: the stored arguments are not those of the candidate", run.ID, agent.ErrIntegrity)
	}
	return data, nil
}

// detail is what a line of progress adds to row and state.
func detail(e agent.Entry) string {
	what := ownDetail(e)
	if e.Carried != 0 {
		what = strings.TrimSpace(fmt.Sprintf("%s (carried over from entry %d)", what, e.Carried))
	}
	return what
}

func ownDetail(e agent.Entry) string {
	if e.Kind == agent.EntryErased {
		return "by " + e.Actor
	}
	p, err := e.Payload()
	if err != nil || e.Kind != agent.EntryEvent {
		return e.Code
	}
	switch p := p.(type) {
	case agent.Turned:
		names := make([]string, len(p.Calls))
		for i, c := range p.Calls {
			names[i] = c.Tool
			if c.Tool == "" {
				names[i] = "(unknown tool)"
			}
		}
		return strings.Join(names, ", ")
	case agent.TurnRefused:
		return p.Reason
	case agent.Unreached:
		return p.Reason
	case agent.Returned:
		return outcome(p.Status, p.Class, p.Reason)
	case agent.Observed:
		return outcome(p.Status, p.Class, p.Reason)
	case agent.Verified:
		return strings.TrimSpace(string(p.Finding) + " " + p.Reason)
	case agent.Extend:
		return fmt.Sprintf("%s by %s", flagsOf(p.Budget), e.Actor)
	case agent.Decision:
		return "by " + e.Actor
	case agent.Spec:
		return begun(p)
	}
	return ""
}

// begun counts what a run was begun with.
func begun(s agent.Spec) string {
	host := 0
	for _, t := range s.Tools {
		if t.HostOnly {
			host++
		}
	}
	what := fmt.Sprintf("tools: %d exposed", len(s.Tools)-host)
	if host > 0 {
		what += fmt.Sprintf(", %d for the host", host)
	}
	what = fmt.Sprintf("%s; approvers: %d", what, len(s.Approvers))
	if f := s.Fork; f != nil {
		what += fmt.Sprintf("; fork of %s from entry %d", f.Run, f.Seq)
	}
	return what
}

func outcome(status agent.Status, class agent.Class, reason string) string {
	s := string(status)
	if string(class) != s && class != "" {
		s += " (" + string(class) + ")"
	}
	if reason != "" {
		s += " " + reason
	}
	return s
}

// clock shows a time to the second, in the local zone.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}
