package agent

import (
	"fmt"
	"math/bits"
	"regexp"
)

// Prices say what the tokens of a run cost, each in millionths of the currency's unit
// for a million tokens. A run pins them, so that its cost is the same in every replay.
type Prices struct {
	Currency string `json:"currency"` // 1 to 16 letters
	Input    int64  `json:"input"`    // that were not served from the cache
	Cached   int64  `json:"cached"`   // that were
	Output   int64  `json:"output"`
}

// MaxPrice bounds a price, in millionths of the unit for a million tokens: with the
// bound on a turn's tokens, the cost of a turn is below 2^62.
const MaxPrice = 1 << 40

// maxCost is where the cost of a run stops counting: far above every limit.
const maxCost = 1 << 62

// million is by how many tokens a price is quoted.
const million = 1_000_000

var currency = regexp.MustCompile(`^[A-Za-z]{1,16}$`)

// checkPrices checks the prices, and that a limit of cost has some.
func (s *Spec) checkPrices() error {
	p := s.Prices
	if p == nil {
		if s.Budget.Cost != 0 {
			return fmt.Errorf("a limit of cost without prices: what is not counted cannot be bounded")
		}
		return nil
	}
	if !currency.MatchString(p.Currency) {
		return fmt.Errorf("currency %q: want 1 to 16 letters", p.Currency)
	}
	for _, n := range []int64{p.Input, p.Cached, p.Output} {
		if n < 0 || n > MaxPrice {
			return fmt.Errorf("price %d: want 0 to 2^40 millionths for a million tokens", n)
		}
	}
	return nil
}

// Cost is what a turn costs, in millionths of the unit, rounded up; 0 without prices.
// The usage is one that [Step] takes.
func (p *Prices) Cost(u Usage) int64 {
	if p == nil {
		return 0
	}
	var hi, lo uint64
	for _, part := range [][2]int64{{u.Input - u.Cached, p.Input}, {u.Cached, p.Cached}, {u.Output, p.Output}} {
		h, l := bits.Mul64(uint64(part[0]), uint64(part[1])) // neither is negative
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi, _ = bits.Add64(hi, h, carry)
	}
	cost, rest := bits.Div64(hi, lo, million)
	if rest > 0 {
		cost++
	}
	return int64(cost) // below 2^62: see MaxPrice
}

// add is the cost of a run after a turn.
func (p *Prices) add(cost int64, u Usage) int64 {
	return min(cost+min(p.Cost(u), maxCost-cost), maxCost)
}
