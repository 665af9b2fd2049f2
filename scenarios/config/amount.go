package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Amount is money in millionths of a currency's unit. It is read exactly: a price is
// never a floating-point number.
type Amount int64

// amountDigits is how many digits may follow the point.
const amountDigits = 6

// MaxAmount bounds an amount, in millionths: a million units.
const MaxAmount Amount = 1_000_000_000_000

var amountForm = regexp.MustCompile(`^[0-9]+(\.[0-9]{1,6})?$`)

// UnmarshalText reads a decimal number such as 3 or 0.075.
func (a *Amount) UnmarshalText(text []byte) error {
	whole, fraction, _ := strings.Cut(string(text), ".")
	if !amountForm.Match(text) {
		return fmt.Errorf("%q is no amount: write a decimal number of at most %d digits after the point, such as 3 or 0.075", text, amountDigits)
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", amountDigits-len(fraction)), 10, 64)
	if err != nil || Amount(n) > MaxAmount {
		return fmt.Errorf("%q is more than the largest amount, %s", text, MaxAmount)
	}
	*a = Amount(n)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (a Amount) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// String is the shortest decimal form.
func (a Amount) String() string {
	text := fmt.Sprintf("%0*d", amountDigits+1, int64(a))
	point := len(text) - amountDigits
	return strings.TrimRight(strings.TrimRight(text[:point]+"."+text[point:], "0"), ".")
}
