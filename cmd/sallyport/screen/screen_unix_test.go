//go:build unix

package screen_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/term"

	"sallyport/agent"
)

func TestRun_ShowsARunInASmallTerminal(t *testing.T) {
	d := newDesk(t)
	d.saved("report-1")
	m := watch(t, d.config("report-1"), 80, 24)
	m.shows("@ step 1/16")
	m.golden("small-start")
	m.keys("]")
	m.shows("awaiting_approval]")
	m.golden("small-candidate")
	m.keys("\r")
	m.golden("small-candidate-whole")
	m.keys("G")
	m.golden("small-candidate-end")
	m.keys("\x1b")
	m.shows("leads on")
	m.keys("3")
	m.shows("[3 Journal]")
	m.golden("small-journal")
	m.keys("4")
	m.golden("small-why")
	m.keys("5")
	m.golden("small-machine")
	m.keys("2")
	m.shows("+")
	m.golden("small-context")
	m.keys("?")
	m.golden("small-help")
	m.keys("\x1b")
	m.shows("[2 Context]")
	m.keys(":print call.tool\r")
	m.shows("[6 Out]")
	m.golden("small-output")
	m.resize(200, 60)
	m.golden("large-output")
	m.keys("2")
	m.golden("large-candidate")
	m.keys("\x1b")
	m.shows("[0 Steps]")
	m.keys("G")
	m.shows("16/16")
	m.golden("large-end")
	m.resize(50, 12)
	m.golden("tiny")
}

// A breakpoint stops; the keys that are typed meanwhile wait; a search goes on.
func TestRun_StopsAtBreakpointsAndFinds(t *testing.T) {
	d := newDesk(t)
	d.saved("r")
	m := watch(t, d.config("r"), 80, 24)
	m.shows("@ step 1/16")
	m.keys(":break awaiting_approval\r")
	m.shows("Breakpoint 1: state awaiting_approval")
	m.keys("cb") // the second waits for the first
	m.shows("@ step 10/16")
	m.keys("s")
	m.shows("Breakpoint 1: state awaiting_approval.")
	m.keys("c")
	m.shows("This is the last step: the run has ended.")
	m.keys("r")
	m.shows("@ step 11/16")
	m.keys("g/next_\r")
	m.shows("@ step 5/16")
	m.keys("n")
	m.shows("@ step 9/16")
	m.keys("N")
	m.shows("/next_: line 5 of 16.")
	m.keys("\x1b")
	m.until("the search is over", func(text string) bool { return !strings.Contains(text, "/next_") })
	m.keys("n")
	m.shows("@ step 9/16")
	m.keys(":nonsense\r")
	m.shows(`there is no command "nonsense"`)
	m.keys("/not there\r")
	m.shows("is not in Steps")
}

// A run that goes on is followed; acting is refused until it is allowed, and happens on
// the bare terminal.
func TestRun_FollowsAndActs(t *testing.T) {
	d := newDesk(t)
	d.waiting("r")
	m := monitorOf(t, 80, 24)
	d.bare = m.slave
	m.start(d.config("r"))
	m.shows("@ step 11/11")
	m.shows("following  read-only")
	m.keys("a")
	m.shows("approve acts on the run, and the screen only looks")
	if run := d.run("r"); run.State != agent.StateAwaitingApproval {
		t.Fatalf("the run is %s", run.State)
	}
	m.keys(":act\r")
	m.shows("ACTING")
	m.keys("a")
	m.shows("approved on the bare terminal")
	m.shows("Enter goes back to the screen.")
	m.keys("\r")
	m.shows("@ step 12/12")
	d.serve("r", script) // elsewhere
	m.shows("@ step 16/16")
	m.shows("[completed]")
}

// The terminal is left as it was found, and the process may go on.
func TestRun_LeavesTheTerminalAsItWas(t *testing.T) {
	for _, key := range []string{"q", "\x03", ":quit\r"} {
		d := newDesk(t)
		d.saved("r")
		c := d.config("r")
		m := monitorOf(t, 80, 24)
		before, err := term.GetState(int(m.slave.Fd()))
		if err != nil {
			t.Fatal(err)
		}
		m.start(c)
		m.shows("@ step 1/16")
		m.keys(key)
		if err := m.ended(); err != nil {
			t.Errorf("%q: %v", key, err)
		}
		after, err := term.GetState(int(m.slave.Fd()))
		if err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("%q: the line discipline is %+v, was %+v (%v)", key, after, before, err)
		}
		if m.until("the screen is gone", func(text string) bool { return !strings.Contains(text, "@ step") }); m.vt.IsAltScreen() || m.vt.CursorHidden() {
			t.Errorf("%q: the other screen stayed, or the cursor is hidden", key)
		}
	}
}

var coloured = regexp.MustCompile(`\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;[0-9;]*)?m`)

// Without colour the same is said: by marks, and by words.
func TestRun_NeedsNoColour(t *testing.T) {
	d := newDesk(t)
	d.waiting("r")
	with := watch(t, d.config("r"), 80, 24)
	text := with.shows("The run waits for a person")
	if !coloured.MatchString(with.stream()) {
		t.Error("what waits has no colour, where there is some")
	}
	t.Setenv("NO_COLOR", "1")
	without := watch(t, d.config("r"), 80, 24)
	without.until("the same screen", func(s string) bool { return s == text })
	without.keys("b?")
	without.shows("── Keys ──")
	if at := coloured.FindString(without.stream()); at != "" {
		t.Errorf("a colour in spite of NO_COLOR: %q", at)
	}
}

// Over a slow line a step costs less than a screen: 80 by 24 characters.
func TestRun_WritesLittleForAStep(t *testing.T) {
	d := newDesk(t)
	d.saved("r")
	m := watch(t, d.config("r"), 80, 24)
	m.shows("@ step 1/16")
	was, steps := m.written(), 0
	for steps < 12 {
		steps++
		m.keys("s")
		m.shows(fmt.Sprintf("@ step %d/16", steps+1))
	}
	each := (m.written() - was) / steps
	t.Logf("%d bytes for a step", each)
	if each > 80*24 {
		t.Errorf("%d bytes for a step", each)
	}
}
