package config

import (
	"fmt"

	"sallyport/agent"
	"sallyport/tools"
)

// Budgets are the limits of a run as people write them (SPEC A8). What is absent is
// not said.
type Budgets struct {
	ToolCalls  *int            `yaml:"tool_calls"`
	ModelTurns *int            `yaml:"model_turns" check:"positive"`
	Tokens     *int64          `yaml:"tokens"`
	WallTime   *tools.Duration `yaml:"wall_time" check:"positive"` // working time; parked time is free
	Cost       *Amount         `yaml:"cost" check:"positive"`      // in the currency of the model's prices
}

// Over returns base with what is said here in its place.
func (b Budgets) Over(base agent.Budget) agent.Budget {
	if b.ToolCalls != nil {
		base.Calls = *b.ToolCalls
	}
	if b.ModelTurns != nil {
		base.Turns = *b.ModelTurns
	}
	if b.Tokens != nil {
		base.Tokens = *b.Tokens
	}
	if b.WallTime != nil {
		base.Wall = b.WallTime.Seconds()
	}
	if b.Cost != nil {
		base.Cost = int64(*b.Cost)
	}
	return base
}

// Widens reports every limit here that is higher than the ceiling, or makes no sense.
// path leads to the budgets in their file.
func (b Budgets) Widens(ceiling agent.Budget, path ...string) []tools.Problem {
	var problems []tools.Problem
	over := func(key string, given bool, n, most int64, unit string) {
		switch {
		case !given:
		case n < 0:
			problems = append(problems, tools.Problem{Path: append(path[:len(path):len(path)], key), Message: "a budget is not negative"})
		case n > most:
			problems = append(problems, tools.Problem{Path: append(path[:len(path):len(path)], key), Message: fmt.Sprintf(
				"%d%s is more than the %d%[2]s that are allowed: a file can only lower a budget; raise it in your own configuration", n, unit, most)})
		}
	}
	b2 := b.Over(agent.Budget{})
	over("tool_calls", b.ToolCalls != nil, int64(b2.Calls), int64(ceiling.Calls), "")
	over("model_turns", b.ModelTurns != nil, int64(b2.Turns), int64(ceiling.Turns), "")
	over("tokens", b.Tokens != nil, b2.Tokens, ceiling.Tokens, "")
	over("wall_time", b.WallTime != nil, b2.Wall, ceiling.Wall, " s")
	if b.WallTime != nil && b2.Wall == 0 {
		problems = append(problems, tools.Problem{Path: append(path[:len(path):len(path)], "wall_time"), Message: "the working time is at least 1s"})
	}
	if b.Cost != nil && ceiling.Cost != 0 && b2.Cost > ceiling.Cost {
		problems = append(problems, tools.Problem{Path: append(path[:len(path):len(path)], "cost"), Message: fmt.Sprintf(
			"%s is more than the %s that are allowed: a file can only lower a budget; raise it in your own configuration", *b.Cost, Amount(ceiling.Cost))})
	}
	return problems
}

// most is what no file raises a budget above: counters stay far from overflowing.
var most = agent.Budget{Calls: 1_000_000, Turns: 1_000_000, Tokens: 1 << 40, Wall: 366 * 24 * 3600}

// MostBudget is what nobody raises a budget above, no file and no operator.
func MostBudget() agent.Budget {
	b := most
	b.Cost = int64(MaxAmount)
	return b
}
