package tools

import (
	"fmt"
	"time"
)

// Duration is a length of time as people write it: 5s, 10m, 24h.
type Duration time.Duration

// UnmarshalText reads a Go duration. A bare number has no unit and is refused.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is no length of time: write a number with a unit, such as 5s, 10m or 24h", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes what UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String is the Go form, such as 1m30s.
func (d Duration) String() string { return time.Duration(d).String() }

// Std is the duration as package time knows it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// Seconds is the duration in whole seconds, rounded down.
func (d Duration) Seconds() int64 { return int64(time.Duration(d) / time.Second) }
