package strictjson

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// Each text is built at one size and at eight times it. What is linear takes
// about 8 times as long, what is quadratic 64 times; the tests draw the line
// between the two at 24, whatever the machine.
const (
	growth    = 8
	worstCase = 24
)

// hostile are texts of about n bytes that decoders are known to choke on.
var hostile = map[string]func(n int) string{
	"nested arrays":     func(n int) string { return nested(n / 2) },
	"unclosed arrays":   func(n int) string { return strings.Repeat("[", n) },
	"nested objects":    func(n int) string { return nestedObjects(n / 6) },
	"wide arrays":       func(n int) string { return "[" + strings.Repeat("[],", n/3) + "[]]" },
	"towers":            func(n int) string { return "[" + strings.Repeat(nested(60)+",", n/121) + "0]" },
	"huge exponents":    func(n int) string { return "[" + strings.Repeat("1e999999,", n/9) + "1]" },
	"largest exponents": func(n int) string { return "[" + strings.Repeat("1e308,", n/6) + "1]" },
	"long numbers":      func(n int) string { return strings.Repeat("9", n) },
	"one string":        func(n int) string { return `"` + strings.Repeat("x", n) + `"` },
	"escapes":           func(n int) string { return `"` + strings.Repeat(`\u0041`, n/6) + `"` },
	"unclosed string":   func(n int) string { return `["` + strings.Repeat(`\\`, n/2) },
	"distinct names":    distinctNames,
	"tall and unsorted": tallUnsorted,
	"white space":       func(n int) string { return "[" + strings.Repeat(" ", n) + "]" },
}

// distinctNames is a flat object, its members in descending order.
func distinctNames(n int) string {
	var b strings.Builder
	for i := n / 14; i >= 0; i-- {
		fmt.Fprintf(&b, `,"k%08d":0`, i)
	}
	return "{" + b.String()[1:] + "}"
}

// tallUnsorted makes the canonical form move most bytes at each of 60 levels.
func tallUnsorted(n int) string {
	return strings.Repeat(`{"b":`, 60) + `"` + strings.Repeat("x", n) + `"` + strings.Repeat(`,"a":0}`, 60)
}

func TestCheck_TakesLinearTime(t *testing.T) {
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			mustGrowLinearly(t, text, func(data []byte) { _ = Check(data, Limits{Depth: 64, NumberLen: 32, Exponent: 308}) })
		})
	}
}

// Without limits the parser itself has to be linear.
func TestCheck_TakesLinearTimeWithoutLimits(t *testing.T) {
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			mustGrowLinearly(t, text, func(data []byte) { _ = Check(data, Limits{}) })
		})
	}
}

func TestCanonical_TakesLinearTime(t *testing.T) {
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			mustGrowLinearly(t, text, func(data []byte) { _, _ = Canonical(data) })
		})
	}
}

func TestDecode_TakesLinearTime(t *testing.T) {
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			mustGrowLinearly(t, text, func(data []byte) {
				var v any
				_ = Decode(data, &v)
			})
		})
	}
}

func TestCheck_NamesTheHostileText(t *testing.T) {
	for _, c := range []struct {
		name string
		text string
		want error
	}{
		{"60 KiB of nested arrays", hostile["nested arrays"](60 << 10), ErrDepth},
		{"900 levels", nested(900), ErrDepth},
		{"300 huge exponents", hostile["huge exponents"](9 * 300), ErrNumber},
		{"1 MiB of distinct names", hostile["distinct names"](1<<20 - 64), nil},
		{"one byte more than a frame", strings.Repeat(" ", 1<<20) + "0", ErrTooLarge},
	} {
		if err := Check([]byte(c.text), FrameLimits); err != c.want {
			t.Errorf("%s (%d bytes): %v, want %v", c.name, len(c.text), err, c.want)
		}
	}
}

// mustGrowLinearly compares the best of several times at two sizes. A disturbed
// measurement is repeated: only growth that shows every time is the code's.
func mustGrowLinearly(t *testing.T, text func(int) string, work func([]byte)) {
	t.Helper()
	const small = 30 << 10
	little, much := []byte(text(small)), []byte(text(growth*small))
	var ratio float64
	for range 5 {
		ratio = float64(best(work, much)) / float64(best(work, little))
		if ratio <= worstCase {
			return
		}
	}
	t.Errorf("%d times the bytes took %.1f times as long", growth, ratio)
}

func best(work func([]byte), data []byte) time.Duration {
	shortest := time.Hour
	for range 3 {
		start := time.Now()
		work(data)
		shortest = min(shortest, time.Since(start))
	}
	return max(shortest, 20*time.Microsecond) // below this a clock measures the scheduler
}
