package agent_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

// TestPrices_CostIsExactAndRoundedUp: a millionth of a cent too much rather than too
// little, and never a float.
func TestPrices_CostIsExactAndRoundedUp(t *testing.T) {
	prices := &agent.Prices{Currency: "USD", Input: 2_500_000, Cached: 1_250_000, Output: 10_000_000}
	for _, row := range []struct {
		name  string
		usage agent.Usage
		want  int64
	}{
		{"nothing", agent.Usage{}, 0},
		{"a million of each is the price", agent.Usage{Input: 2_000_000, Cached: 1_000_000, Output: 1_000_000}, 13_750_000},
		{"one input token rounds up", agent.Usage{Input: 1}, 3},
		{"two are exact", agent.Usage{Input: 2}, 5},
		{"the cache is cheaper", agent.Usage{Input: 4, Cached: 4}, 5},
		{"rounded once a turn, not once a price", agent.Usage{Input: 2, Cached: 1, Output: 1}, 14},
	} {
		if got := prices.Cost(row.usage); got != row.want {
			t.Errorf("%s: %d, want %d", row.name, got, row.want)
		}
	}
	if got := (*agent.Prices)(nil).Cost(agent.Usage{Input: 5}); got != 0 {
		t.Errorf("without prices a turn costs %d", got)
	}
}

func TestPrices_CostNeverOverflows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens, price := rapid.Int64Range(0, 1<<40), rapid.Int64Range(0, agent.MaxPrice)
		p := agent.Prices{Currency: "X", Input: price.Draw(t, "input"), Cached: price.Draw(t, "cached"), Output: price.Draw(t, "output")}
		u := agent.Usage{Input: tokens.Draw(t, "in"), Output: tokens.Draw(t, "out")}
		u.Cached = rapid.Int64Range(0, u.Input).Draw(t, "from cache")
		want := new(big.Int).Mul(big.NewInt(u.Input-u.Cached), big.NewInt(p.Input))
		want.Add(want, new(big.Int).Mul(big.NewInt(u.Cached), big.NewInt(p.Cached)))
		want.Add(want, new(big.Int).Mul(big.NewInt(u.Output), big.NewInt(p.Output)))
		want.Add(want, big.NewInt(999_999)).Div(want, big.NewInt(1_000_000))
		if got := p.Cost(u); big.NewInt(got).Cmp(want) != 0 {
			t.Fatalf("%+v at %+v: %d, want %s", u, p, got, want)
		}
	})
}

// priced is a run that pays one millionth a token and may pay that much.
func priced(t *testing.T, cost int64) *trace {
	t.Helper()
	spec := enginetest.Spec("r")
	spec.Prices = &agent.Prices{Currency: "EUR", Input: 1_000_000, Cached: 1_000_000, Output: 1_000_000}
	spec.Budget.Cost = cost
	return begin(t, spec)
}

// TestStep_CostEndsARun: exactly at the limit passes, one more ends the run by name:
// after a turn with proposals, before the next turn, and after a refused one.
func TestStep_CostEndsARun(t *testing.T) {
	usage := agent.Usage{Input: 80, Output: 20, Cached: 30}
	proposal := proposes(enginetest.ToolRead)
	proposal.Usage = usage
	for _, row := range []struct {
		name  string
		limit int64
		turn  agent.Result
		state agent.State
	}{
		{"proposals at the limit", 100, proposal, agent.StateExecute},
		{"proposals past it", 99, proposal, agent.StateFailed},
		{"a refused turn at the limit", 100, agent.TurnRefused{Reason: "length", Message: ref("cut"), Usage: usage}, agent.StateModel},
		{"a refused turn past it", 99, agent.TurnRefused{Reason: "length", Message: ref("cut"), Usage: usage}, agent.StateFailed},
		{"an answer past it counts all the same", 99, agent.Turned{Message: ref("answer"), Usage: usage}, agent.StateCompleted},
		{"no limit", 0, proposal, agent.StateExecute},
	} {
		t.Run(row.name, func(t *testing.T) {
			tr := priced(t, row.limit)
			tr.node(row.turn)
			if tr.run.State != row.state || tr.run.Used.Cost != 100 {
				t.Errorf("in %s after %d millionths, want %s after 100", tr.run.State, tr.run.Used.Cost, row.state)
			}
			if ended := tr.run.State == agent.StateFailed; ended != (tr.run.Reason == "budget:cost") {
				t.Errorf("the reason is %q", tr.run.Reason)
			}
		})
	}
}

// TestExtend_RaisesTheCost, and a run without a limit does not get one by it.
func TestExtend_RaisesTheCost(t *testing.T) {
	tr := priced(t, 100)
	turn := proposes(enginetest.ToolRead)
	turn.Usage = agent.Usage{Input: 101}
	tr.outside(agent.Extend{Budget: agent.Budget{Cost: 1}})
	tr.node(turn)
	if tr.run.State != agent.StateExecute || tr.run.Budget.Cost != 101 {
		t.Errorf("in %s with a limit of %d, want execute with 101", tr.run.State, tr.run.Budget.Cost)
	}
	free := priced(t, 0)
	for _, more := range []agent.Budget{{Cost: 1}, {Cost: -1}} {
		var no *agent.Refusal
		_, _, err := agent.Step(free.run, agent.FromOutside(agent.Extend{Budget: more}, "operator", free.now))
		if !errors.As(err, &no) || no.Code != agent.CodeInvalid {
			t.Errorf("an extension by %+v: %v, want refusal %s", more, err, agent.CodeInvalid)
		}
	}
}

func TestSpec_PricesAndCost(t *testing.T) {
	for _, row := range []struct {
		name string
		with func(*agent.Spec)
		want string // in the error; empty is none
	}{
		{"none", func(*agent.Spec) {}, ""},
		{"prices without a limit", func(s *agent.Spec) { s.Prices = &agent.Prices{Currency: "EUR"} }, ""},
		{"a limit of what costs nothing", func(s *agent.Spec) { s.Prices, s.Budget.Cost = &agent.Prices{Currency: "EUR"}, 5 }, ""},
		{"a limit without prices", func(s *agent.Spec) { s.Budget.Cost = 5 }, "without prices"},
		{"the largest price", func(s *agent.Spec) { s.Prices = &agent.Prices{Currency: "EUR", Input: agent.MaxPrice} }, ""},
		{"one more", func(s *agent.Spec) { s.Prices = &agent.Prices{Currency: "EUR", Input: agent.MaxPrice + 1} }, "price"},
		{"a negative price", func(s *agent.Spec) { s.Prices = &agent.Prices{Currency: "EUR", Output: -1} }, "price"},
		{"no currency", func(s *agent.Spec) { s.Prices = &agent.Prices{} }, "currency"},
		{"a currency of 16 letters", func(s *agent.Spec) { s.Prices = &agent.Prices{Currency: strings.Repeat("x", 16)} }, ""},
		{"a currency of 17", func(s *agent.Spec) { s.Prices = &agent.Prices{Currency: strings.Repeat("x", 17)} }, "currency"},
	} {
		spec := enginetest.Spec("r")
		row.with(&spec)
		err := spec.Check()
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}
