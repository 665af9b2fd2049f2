package scenarios_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/nodes"
	"sallyport/scenarios"
	"sallyport/tools"
)

// counter is a model of one's own: it asks the shelf once, then answers.
type counter struct{}

func (counter) Turn(_ context.Context, r nodes.Request) (nodes.Reply, error) {
	last := r.Messages[len(r.Messages)-1]
	if last.Role != "tool" {
		call := nodes.ToolCall{ID: "1", Name: "shelf__count", Arguments: `{"shelf":"B"}`}
		return nodes.Reply{Calls: []nodes.ToolCall{call}, Finish: nodes.FinishToolCalls}, nil
	}
	var told nodes.Observation
	if err := json.Unmarshal([]byte(last.Content), &told); err != nil {
		return nodes.Reply{}, err
	}
	return nodes.Reply{Text: "The shelf says " + string(told.Untrusted.Data), Finish: nodes.FinishStop}, nil
}

// A run inside a Go program, with a tool server and a model of one's own. The server is
// any program that speaks MCP on stdin and stdout; here it is this program once more.
func Example() {
	ctx := context.Background()
	self, dir := check(os.Executable()), check(os.MkdirTemp("", "shelf-"))
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	engine := check(embedded.Open(dir+"/state", embedded.Config{}))
	defer engine.Close() //nolint:errcheck // nothing is left to write

	host := scenarios.Host{
		Engine: engine, StateDir: dir + "/state", Actor: "example",
		Model: func(agent.Run) nodes.Model { return counter{} },
	}
	_, _, err := host.Begin(ctx, scenarios.Plan{
		Run: "stock-taking", Task: "How many books are on shelf B?", Budget: agent.DefaultBudget,
		Setup: scenarios.Setup{
			Servers:   []tools.Server{{Prefix: "shelf", Command: []string{self, "shelf"}}},
			Contracts: []tools.Contract{{Name: "shelf__count", Owner: "library", Risk: agent.RiskRead}},
		},
	})
	if err == nil {
		err = host.Serve(ctx, "stock-taking")
	}
	check(0, err)
	run := check(agent.Replay(engine.Journal(ctx, "stock-taking", 1, false)))
	fmt.Println(run.State, run.Used.Calls)
	fmt.Println(string(check(engine.Body(ctx, run.ID, run.Answer))))
	// Output:
	// completed 1
	// {"content":"The shelf says {\"books\":12}","role":"assistant"}
}

func check[T any](it T, err error) T {
	if err != nil {
		panic(err)
	}
	return it
}
