package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"sallyport/cmd/sallyport/terminal"
	"sallyport/scenarios/suite"
)

// lineEvery is how often the line of progress is drawn anew while nothing happens.
const lineEvery = time.Second

// testLine is the one line of progress that a suite has on a terminal.
type testLine struct {
	w     io.Writer
	width int
	total int
	over  chan struct{}
	drawn sync.WaitGroup

	mu           sync.Mutex
	hidden       bool
	done, failed int
	running      []underWay
}

// underWay is a case that is played.
type underWay struct {
	name  string
	began time.Time
}

// newTestLine draws until end is called.
func newTestLine(w io.Writer, width, total int) *testLine {
	l := &testLine{w: w, width: cmp.Or(width, 80), total: total, over: make(chan struct{})}
	l.drawn.Go(func() { // ends with over; end waits for it
		tick := time.NewTicker(lineEvery)
		defer tick.Stop()
		for {
			select {
			case <-l.over:
				return
			case <-tick.C:
				l.draw(func() {})
			}
		}
	})
	return l
}

// Started implements [suite.Watcher].
func (l *testLine) Started(c suite.Case) {
	l.draw(func() { l.running = append(l.running, underWay{c.Name, time.Now()}) })
}

// Finished implements [suite.Watcher].
func (l *testLine) Finished(c suite.Case, r suite.Result) {
	l.draw(func() {
		l.running = slices.DeleteFunc(l.running, func(u underWay) bool { return u.name == c.Name })
		l.done++
		if r.Status != suite.StatusPassed {
			l.failed++
		}
	})
}

// draw changes what is shown and shows it.
func (l *testLine) draw(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	if !l.hidden {
		_, _ = fmt.Fprint(l.w, clearLine+l.text())
	}
}

// clearLine goes back to the beginning of the line and empties it.
const clearLine = "\r\x1b[K"

// text is the line, with what has been played for longest, within the width.
func (l *testLine) text() string {
	text := fmt.Sprintf("%d of %d", l.done, l.total)
	if l.failed > 0 {
		text += fmt.Sprintf(", %d not passed", l.failed)
	}
	if len(l.running) > 0 {
		first := l.running[0]
		text += fmt.Sprintf("  %ds  %s", int(time.Since(first.began).Seconds()), terminal.Line(first.name))
	}
	if more := len(l.running) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fit(text, l.width-1)
}

// fit cuts a text to so many cells, a character counted as two where it may be that wide.
func fit(text string, cells int) string {
	for i, r := range text {
		cells--
		if r >= 0x1100 {
			cells--
		}
		if cells < 0 {
			return text[:i]
		}
	}
	return text
}

// aside hides the line while something else is written, which may be for the same
// terminal.
func (l *testLine) aside(write func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hidden {
		return write()
	}
	_, _ = fmt.Fprint(l.w, clearLine)
	err := write()
	_, _ = fmt.Fprint(l.w, l.text())
	return err
}

// end takes the line away.
func (l *testLine) end() {
	l.hide()
	close(l.over)
	l.drawn.Wait()
}

func (l *testLine) hide() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.hidden {
		_, _ = fmt.Fprint(l.w, clearLine)
	}
	l.hidden = true
}

// aside is a reporter beside the line.
type aside struct {
	suite.Reporter
	line *testLine
}

// Result implements [suite.Reporter].
func (r aside) Result(result suite.Result) error {
	return r.line.aside(func() error { return r.Reporter.Result(result) })
}

// End implements [suite.Reporter].
func (r aside) End(s suite.Summary) error {
	r.line.hide()
	return r.Reporter.End(s)
}
