package scenarios

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"sallyport/agent"
)

// Chain is what the Host's JSON log says of one call, found by its correlation id
// alone: proposal, decision, approver, MCP request, outcome (SPEC C3).
type Chain struct {
	ID        string      `json:"correlation_id"`
	Run       string      `json:"run"`
	Tool      string      `json:"tool"`
	Proposed  bool        `json:"proposed"`
	Decisions []string    `json:"decisions"` // of the Host: waiting, allowed, refused
	Approvals []string    `json:"approvals"` // of persons: approve NAME, refuse NAME
	Requests  []string    `json:"requests"`  // MCP request ids
	Status    string      `json:"status"`
	Class     agent.Class `json:"class"`
	Reason    string      `json:"reason,omitempty"`
	Final     bool        `json:"final"`
}

// logLine is what is read of a line of the log.
type logLine struct {
	Event    string `json:"event"`
	ID       string `json:"correlation_id"`
	Run      string `json:"run"`
	Tool     string `json:"tool"`
	Decision string `json:"decision"`
	Said     string `json:"approval_decision"`
	Approver any    `json:"approver"`
	Request  string `json:"mcp_request_id"`
	Status   string `json:"status"`
	Class    string `json:"class"`
	Reason   string `json:"reason"`
	Final    bool   `json:"final"`
}

// Chains rebuilds the chain of every call from the bytes of a log, in the order in
// which the calls were proposed.
func Chains(log []byte) ([]Chain, error) {
	var chains []Chain
	lines := bufio.NewScanner(bytes.NewReader(log))
	lines.Buffer(nil, len(log)+1)
	for n := 1; lines.Scan(); n++ {
		var l logLine
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("read the log: line %d is not JSON", n)
		}
		if l.ID == "" {
			continue
		}
		at := slices.IndexFunc(chains, func(c Chain) bool { return c.ID == l.ID })
		if at < 0 {
			at = len(chains)
			chains = append(chains, Chain{ID: l.ID, Run: l.Run})
		}
		chains[at].take(l)
	}
	return chains, nil
}

// take adds a line to the chain.
func (c *Chain) take(l logLine) {
	if l.Tool != "" {
		c.Tool = l.Tool
	}
	switch l.Event {
	case "proposal":
		c.Proposed = true
	case "decision":
		c.Decisions = append(c.Decisions, l.Decision)
	case "approval":
		c.Approvals = append(c.Approvals, fmt.Sprintf("%s %v", l.Said, l.Approver))
	case "request":
		c.Requests = append(c.Requests, l.Request)
	case "outcome":
		c.Status, c.Class, c.Reason, c.Final = l.Status, agent.Class(l.Class), l.Reason, l.Final
	}
}

// gap names what the chain lacks for a call that came to this end; empty if nothing.
func (c Chain) gap(sent, approved bool) string {
	switch {
	case !c.Proposed:
		return "no proposal"
	case len(c.Decisions) == 0:
		return "no decision"
	case approved && len(c.Approvals) == 0:
		return "no approval"
	case sent && len(c.Requests) == 0:
		return "no request id"
	case !sent && len(c.Requests) > 0:
		return "a request of a call that was not sent"
	case c.Status == "":
		return "no outcome"
	case !known(c.Class, classes...):
		return fmt.Sprintf("the outcome has no class, or an unknown one: %q", c.Class)
	}
	return ""
}
