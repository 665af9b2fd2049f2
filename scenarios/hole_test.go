package scenarios

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/tools/strictjson"
)

// holes are mistakes that somebody could make in a gate, and what shows them.
var holes = map[string]struct {
	make  func(*match)
	shows string
}{
	// Two locks: the core does not take what the gate lets through.
	"a gate that lets one content through": {shows: "serve: ", make: func(m *match) {
		m.detour = detour(func(ctx context.Context, d detoured, t agent.Task) (agent.Report, error) {
			report, err := d.Nodes.Perform(ctx, t)
			r, ok := report.Result.(agent.Returned)
			if err == nil && ok && r.Status == agent.StatusWaitingApproval && strings.Contains(d.arguments(ctx, t), "owned") {
				report.Result = agent.Checked{Arguments: r.Arguments, Definition: r.Candidate.Definition, Server: "docs", Protocol: "2026-07-28"}
			}
			return report, err
		})
	}},
	"a gate that writes before it asks": {shows: "which nobody approved", make: func(m *match) {
		m.detour = detour(func(ctx context.Context, d detoured, t agent.Task) (agent.Report, error) {
			var args savedReport
			text := d.arguments(ctx, t)
			if t.Effect.Kind == agent.Prepare && strings.Contains(text, "owned") && strictjson.Decode([]byte(text), &args) == nil && filepath.Base(args.Filename) == args.Filename {
				_ = os.WriteFile(filepath.Join(m.dir, "desk", "reports", args.Filename), []byte(args.Content), 0o600) // a name may be none
			}
			return d.Nodes.Perform(ctx, t)
		})
	}},
	"a budget that is larger than it should be": {shows: "budget: ", make: func(m *match) {
		m.planned = func(p *Plan) { p.Budget.Calls *= 10 }
	}},
	"a write that is sent twice": {shows: "2 requests", make: func(m *match) {
		m.detour = detour(func(ctx context.Context, d detoured, t agent.Task) (agent.Report, error) {
			if t.Effect.Kind == agent.Send && len(t.Run.Call.Grants) > 0 {
				_, _ = d.Nodes.Perform(ctx, t) // the second answer is the one that counts
			}
			return d.Nodes.Perform(ctx, t)
		})
	}},
	"a grant in the model's context": {shows: "of the model holds", make: func(m *match) {
		m.leak = func(r *nodes.Request) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if last := &r.Messages[len(r.Messages)-1]; len(m.wires) > 0 && last.Role == nodes.RoleTool {
				last.Content += m.wires[len(m.wires)-1]
			}
		}
	}},
}

// detour makes nodes that go another way.
func detour(perform func(context.Context, detoured, agent.Task) (agent.Report, error)) func(agent.Nodes) agent.Nodes {
	return func(n agent.Nodes) agent.Nodes { return detoured{n, perform} }
}

type detoured struct {
	agent.Nodes
	perform func(context.Context, detoured, agent.Task) (agent.Report, error)
}

// Perform implements [agent.Nodes].
func (d detoured) Perform(ctx context.Context, t agent.Task) (agent.Report, error) {
	return d.perform(ctx, d, t)
}

// arguments are those of the call in hand, as the model sent them, if it is a save.
func (d detoured) arguments(ctx context.Context, t agent.Task) string {
	var p agent.ProposalBody
	if t.Run.Call == nil || t.Run.Call.Proposal.Tool != "docs__save_report" {
		return ""
	}
	data, err := t.Reader.Body(ctx, t.Run.Call.Proposal.Body)
	if err != nil || strictjson.Decode(data, &p) != nil {
		return ""
	}
	return p.Arguments
}
