package grant

import "time"

// maxTime is the last second of the year 9999, in Unix seconds.
const maxTime = 253_402_300_799

// Claims are what a grant says: this approver lets this candidate take effect
// within this time.
type Claims struct {
	Candidate Candidate `json:"candidate"`
	Grant     string    `json:"grant"`      // the grant's own id, 32 lower-case hex characters
	Approver  string    `json:"approver"`   // the name of the signing key
	NotBefore int64     `json:"not_before"` // Unix seconds; valid from here on
	Expires   int64     `json:"expires"`    // Unix seconds; no longer valid from here on
}

// CheckTime reports whether the claims are valid at now: not_before ≤ now <
// expires, in whole seconds (SPEC G1). It returns [ErrNotYetValid] or [ErrExpired].
func (c Claims) CheckTime(now time.Time) error {
	switch second := now.Unix(); {
	case second < c.NotBefore:
		return ErrNotYetValid
	case second >= c.Expires:
		return ErrExpired
	}
	return nil
}

func (c Claims) check() error {
	if err := c.Candidate.Check(); err != nil {
		return err
	}
	switch {
	case !isHex(c.Grant, 32):
		return refused("grant")
	case !isName(c.Approver):
		return refused("approver")
	case !isTime(c.NotBefore):
		return refused("not_before")
	case !isTime(c.Expires) || c.Expires <= c.NotBefore:
		return refused("expires")
	}
	return nil
}

func isTime(second int64) bool { return 0 <= second && second <= maxTime }
