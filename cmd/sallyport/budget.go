package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/scenarios/config"
	"sallyport/tools"
)

// budgetKind is one of a run's budgets (SPEC A8), and how people meet it.
type budgetKind struct {
	key   string // as configuration and the reasons of ended runs have it
	flag  string // that adds to it
	words string // after a number
	means string // for the flag's help
	of    func(*agent.Budget) int64
	add   func(*agent.Budget, int64)
	read  func(string) (int64, error)
	show  func(int64) string // as read takes it
}

// budgetKinds are all of them, in the order in which they are shown.
var budgetKinds = []budgetKind{
	{"tool_calls", "calls", "tool calls", "add `+N` tool calls",
		func(b *agent.Budget) int64 { return int64(b.Calls) }, func(b *agent.Budget, n int64) { b.Calls += int(n) }, readCount, showCount},
	{"model_turns", "turns", "turns of the model", "add `+N` turns of the model",
		func(b *agent.Budget) int64 { return int64(b.Turns) }, func(b *agent.Budget, n int64) { b.Turns += int(n) }, readCount, showCount},
	{"tokens", "tokens", "tokens", "add `+N` tokens",
		func(b *agent.Budget) int64 { return b.Tokens }, func(b *agent.Budget, n int64) { b.Tokens += n }, readCount, showCount},
	{"wall_time", "wall", "of working time", "add `+D` of working time, such as +10m",
		func(b *agent.Budget) int64 { return b.Wall }, func(b *agent.Budget, n int64) { b.Wall += n }, readSeconds, showSeconds},
	{"cost", "cost", "", "add `+X`, such as +0.50, in the currency of the run's prices",
		func(b *agent.Budget) int64 { return b.Cost }, func(b *agent.Budget, n int64) { b.Cost += n }, readAmount, showAmount},
}

var countForm = regexp.MustCompile(`^[0-9]+$`)

func readCount(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if !countForm.MatchString(text) {
		return 0, fmt.Errorf("%q is no whole number", text)
	}
	if err != nil {
		return 0, fmt.Errorf("%s is too much", text)
	}
	return n, nil
}

func showCount(n int64) string { return strconv.FormatInt(n, 10) }

func readSeconds(text string) (int64, error) {
	var d tools.Duration
	if err := d.UnmarshalText([]byte(text)); err != nil {
		return 0, err
	}
	if d.Std()%time.Second != 0 {
		return 0, fmt.Errorf("%q is not in whole seconds", text)
	}
	return d.Seconds(), nil
}

func showSeconds(n int64) string {
	text := (time.Duration(n) * time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

func readAmount(text string) (int64, error) {
	var a config.Amount
	err := a.UnmarshalText([]byte(text))
	return int64(a), err
}

func showAmount(n int64) string { return config.Amount(n).String() }

// addition is the flag that adds to one budget. It wants its plus sign, so that nobody
// takes it for the limit itself.
type addition struct {
	kind budgetKind
	more *agent.Budget
}

// Set implements the flag.
func (f addition) Set(text string) error {
	amount, plus := strings.CutPrefix(text, "+")
	if !plus {
		return fmt.Errorf("write what is to be added with a plus sign, such as +%s", cmp.Or(f.example(text), f.kind.show(f.one())))
	}
	n, err := f.kind.read(amount)
	most := config.MostBudget()
	switch {
	case err != nil:
		return err
	case n < 0 || n > f.kind.of(&most):
		return fmt.Errorf("between +%s and +%s can be added", f.kind.show(f.one()), f.kind.show(f.kind.of(&most)))
	case n == 0:
		return fmt.Errorf("+%s adds nothing", f.kind.show(n))
	}
	f.kind.add(f.more, n-f.kind.of(f.more))
	return nil
}

// example is the text, where it could be an addition.
func (f addition) example(text string) string {
	if n, err := f.kind.read(text); err != nil || n <= 0 {
		return ""
	}
	return text
}

// one is an amount to show as an example.
func (f addition) one() int64 {
	if f.kind.key == "wall_time" {
		return 60
	}
	return 1
}

// String implements the flag.
func (f addition) String() string {
	if f.more == nil || f.kind.of(f.more) == 0 {
		return ""
	}
	return "+" + f.kind.show(f.kind.of(f.more))
}

// Type implements the flag.
func (f addition) Type() string { return "ADDITION" }

// additions adds the flags that add to budgets.
func additions(c *cobra.Command, more *agent.Budget) {
	for _, k := range budgetKinds {
		c.Flags().Var(addition{k, more}, k.flag, k.means)
	}
}

// spentBudget is what a run has used, as its budget is written.
func spentBudget(u agent.Used) agent.Budget {
	return agent.Budget{Calls: u.Calls, Turns: u.Turns, Tokens: u.Tokens, Wall: int64(u.Wall / time.Second), Cost: u.Cost}
}

// budgetRow is one budget of a run in a list.
type budgetRow struct {
	kind        budgetKind
	used, limit int64
	currency    string
}

func (r budgetRow) cells() []string {
	limit := r.show(r.limit)
	if r.kind.key == "cost" && r.limit == 0 {
		limit = "no limit"
	}
	return []string{r.kind.key, r.show(r.used), limit}
}

func (r budgetRow) show(n int64) string {
	text := r.kind.show(n)
	if r.currency != "" {
		text += " " + r.currency
	}
	return text
}

// text is the row in a sentence: 12 of 12 tool calls.
func (r budgetRow) text() string {
	c := r.cells()
	of := " of " + c[2]
	if c[2] == "no limit" {
		of = ""
	}
	return strings.TrimSpace(c[1] + of + " " + r.kind.words)
}

// budgetRows are the budgets of a run, without that of cost where nothing is priced.
func budgetRows(used, limit agent.Budget, prices *agent.Prices) []budgetRow {
	var rows []budgetRow
	for _, k := range budgetKinds {
		r := budgetRow{kind: k, used: k.of(&used), limit: k.of(&limit)}
		if k.key == "cost" {
			if prices == nil {
				continue
			}
			r.currency = prices.Currency
		}
		rows = append(rows, r)
	}
	return rows
}

// budgetTexts are the rows in one sentence.
func budgetTexts(rows []budgetRow) string {
	texts := make([]string, len(rows))
	for i, r := range rows {
		texts[i] = r.text()
	}
	return strings.Join(texts, ", ")
}

// budgetReason begins the reason of a run that a budget ended.
const budgetReason = "budget:"

// exceeded is the budget that ended a run.
type exceeded struct {
	Budget string `json:"budget"` // its key in configuration
	Used   string `json:"used"`   // as people write it
	Limit  string `json:"limit"`
	Flag   string `json:"flag"` // of resume and fork, with an addition that lets the run go on
	Resume string `json:"resume"`
}

// exceededBy says which budget ended a run; nil if none did.
func exceededBy(run agent.Run) *exceeded {
	key, ended := strings.CutPrefix(run.Reason, budgetReason)
	for _, k := range budgetKinds {
		if !ended || k.key != key {
			continue
		}
		used := spentBudget(run.Used)
		r := budgetRow{kind: k, used: k.of(&used), limit: k.of(&run.Budget)}
		if p := run.Spec.Prices; p != nil && k.key == "cost" {
			r.currency = p.Currency
		}
		cells := r.cells()
		if k.key == "wall_time" {
			cells[1] = run.Used.Wall.Round(time.Millisecond).String() // in whole seconds it would look as if it were within
		}
		// As much again as it was begun with, behind what it has used.
		more := max(r.used-r.limit, 0) + max(k.of(&run.Spec.Budget), 1)
		return &exceeded{key, cells[1], cells[2], fmt.Sprintf("--%s +%s", k.flag, k.show(more)), ""}
	}
	return nil
}

// tooMuch refuses an extension that raises a budget above what anybody may have.
func tooMuch(run agent.Run, more agent.Budget) error {
	most := config.MostBudget()
	for _, k := range budgetKinds {
		if sum := k.of(&run.Budget) + k.of(&more); k.of(&more) > 0 && sum > k.of(&most) {
			return usage("add less", "extend run %s: %s %s would be more than the most there is, %s",
				run.ID, k.key, k.show(sum), k.show(k.of(&most)))
		}
	}
	if more.Cost > 0 && run.Budget.Cost == 0 {
		return usage("leave --cost away", "extend run %s: it has no limit of cost that could be raised", run.ID)
	}
	return nil
}

// sum is a budget with another added.
func sum(b, more agent.Budget) agent.Budget {
	for _, k := range budgetKinds {
		k.add(&b, k.of(&more))
	}
	return b
}
