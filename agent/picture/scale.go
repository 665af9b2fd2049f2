package picture

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// scale is how time becomes width. Working time has its length; a wait is cut out and
// has the width of a tear, whatever its length, or none where there are too many.
type scale struct {
	x, w  float64
	spans []span
	tail  float64 // room behind the last entry of a run that goes on
}

// span is a time of work, or a wait, and where it lies.
type span struct {
	from, to time.Time
	x0, x1   float64
	wait     bool
	torn     bool // a wait with a width
}

func (s span) long() time.Duration { return s.to.Sub(s.from) }

// tears are how many waits may have a width, how many of them have one where there are
// more, and which width at most.
var tears = map[Size]struct {
	most, few int
	width     float64
}{Normal: {10, 3, 44}, Small: {5, 2, 34}, Wide: {16, 4, 52}}

// tornShare is how much of a picture's width its tears may have together.
const tornShare = 0.4

// scaled lays the story's time out on a width.
func (s *Story) scaled(size Size, x, w float64) scale {
	sc := scale{x: x, w: w, spans: spansOf(s.stays)}
	if s.run.State.Open() {
		sc.tail = 30
	}
	tear := tears[size]
	torn := longest(sc.spans)
	if len(torn) > tear.most {
		torn = torn[:tear.few]
	}
	var work time.Duration
	for _, sp := range sc.spans {
		if !sp.wait {
			work += sp.long()
		}
	}
	if len(torn) > 0 {
		tear.width = min(tear.width, w*tornShare/float64(len(torn)))
	}
	room := w - sc.tail - float64(len(torn))*tear.width
	if work == 0 && len(torn) > 0 {
		tear.width = (w - sc.tail) / float64(len(torn))
	}
	at := x
	for i := range sc.spans {
		sp := &sc.spans[i]
		sp.x0 = at
		switch {
		case !sp.wait && work > 0:
			at += room * float64(sp.long()) / float64(work)
		case slices.Contains(torn, i):
			sp.torn = true
			at += tear.width
		}
		sp.x1 = at
	}
	return sc
}

// spansOf joins stays of the same kind; those without a length vanish.
func spansOf(stays []stay) []span {
	var out []span
	for _, st := range stays {
		if st.long() <= 0 {
			continue
		}
		if n := len(out); n > 0 && out[n-1].wait == st.waits() && out[n-1].to.Equal(st.from) {
			out[n-1].to = st.to
			continue
		}
		out = append(out, span{from: st.from, to: st.to, wait: st.waits()})
	}
	return out
}

// longest are the indexes of the waits, the longest first.
func longest(spans []span) []int {
	var waits []int
	for i, sp := range spans {
		if sp.wait {
			waits = append(waits, i)
		}
	}
	slices.SortStableFunc(waits, func(a, b int) int { return cmp.Compare(spans[b].long(), spans[a].long()) })
	return waits
}

// at is where a time lies.
func (sc *scale) at(t time.Time) float64 {
	i := sort.Search(len(sc.spans), func(i int) bool { return !sc.spans[i].to.Before(t) })
	if i == len(sc.spans) {
		return sc.end()
	}
	sp := sc.spans[i]
	if !t.After(sp.from) {
		return sp.x0
	}
	return sp.x0 + (sp.x1-sp.x0)*float64(t.Sub(sp.from))/float64(sp.long())
}

// end is where the last entry lies.
func (sc *scale) end() float64 {
	if len(sc.spans) == 0 {
		return sc.x
	}
	return sc.spans[len(sc.spans)-1].x1
}

// tick is a place on the axis of working time.
type tick struct {
	x    float64
	says string
}

// steps are lengths that people count in.
var steps = []time.Duration{
	time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 20 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 200 * time.Millisecond, 500 * time.Millisecond, time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second,
	30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 6 * time.Hour,
	12 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour,
}

// ticks are at round lengths of working time, at least apart from each other.
func (sc *scale) ticks(apart float64) []tick {
	var work time.Duration
	var room float64
	for _, sp := range sc.spans {
		if !sp.wait {
			work, room = work+sp.long(), room+sp.x1-sp.x0
		}
	}
	if work == 0 {
		return nil
	}
	step := steps[len(steps)-1]
	for _, s := range steps {
		if room*float64(s)/float64(work) >= apart {
			step = s
			break
		}
	}
	out := []tick{{sc.x, "0"}}
	var gone time.Duration
	next := step
	for _, sp := range sc.spans {
		if sp.wait {
			continue
		}
		for ; next <= gone+sp.long(); next += step {
			x := sp.x0 + (sp.x1-sp.x0)*float64(next-gone)/float64(sp.long())
			if x-out[len(out)-1].x >= apart {
				out = append(out, tick{x, duration(next)})
			}
		}
		gone += sp.long()
	}
	return out
}

// untorn are the waits that have no width: how many, and how long together.
func (sc *scale) untorn() (n int, long time.Duration) {
	for _, sp := range sc.spans {
		if sp.wait && !sp.torn {
			n, long = n+1, long+sp.long()
		}
	}
	return n, long
}
