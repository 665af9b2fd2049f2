package embedded_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/agent/enginetest"
)

// CASES A2: a process that is killed at any point leaves a run that goes on, in which
// no write was sent twice and each call has exactly one result.

func TestCrash_AtEachPointOfALifeNothingIsSentTwice(t *testing.T) {
	const beside = 2
	for first := 1; first <= beside; first++ {
		t.Run(fmt.Sprint(first), func(t *testing.T) {
			t.Parallel()
			point := first
			for killAt(t, point) {
				point += beside
			}
			if point < 40 {
				t.Errorf("a life has %d crash points: they are not called", point)
			}
		})
	}
}

// killAt kills a life at its n-th crash point, lets another process take it up, and
// looks at the end. It reports false if there was no such point.
func killAt(t *testing.T, point int) bool {
	t.Helper()
	dir := t.TempDir()
	killed := liveUntilKilled(t, dir, "short", point)
	if killed && liveUntilKilled(t, dir, "short", 0) {
		t.Fatalf("point %d: the second process was killed, by nobody", point)
	}
	checkLife(t, dir, 2, fmt.Sprintf("killed at point %d", point))
	return killed
}

func TestCrash_AgainAndAgain(t *testing.T) {
	t.Parallel()
	for _, every := range []int{13, 17, 29} {
		dir := t.TempDir()
		processes := 1
		for liveUntilKilled(t, dir, "long", every) {
			if processes++; processes > 100 {
				t.Fatalf("killed every %d points, a run makes no progress", every)
			}
		}
		checkLife(t, dir, 4, fmt.Sprintf("killed every %d points", every))
	}
}

// liveUntilKilled runs one of the lives in a child, which kills itself at its n-th crash point;
// 0 is never.
func liveUntilKilled(t *testing.T, dir, which string, point int) (killed bool) {
	t.Helper()
	cmd := command("live", filepath.Join(dir, "state"), "r", filepath.Join(dir, "ledger"), which)
	if point > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", crashVariable, point))
	}
	c := spawn(t, cmd)
	said := strings.Join(c.rest(), "; ")
	err := c.wait()
	switch {
	case err == nil && said == string(agent.StateCompleted):
		return false
	case err != nil && said == "" && point > 0:
		return true
	}
	t.Fatalf("point %d: the child said %q: %v", point, said, err)
	return false
}

// checkLife looks at a run that ended: its requests and its results.
func checkLife(t *testing.T, dir string, calls int, what string) {
	t.Helper()
	e := open(t, filepath.Join(dir, "state"), embedded.Config{})
	run, err := agent.Replay(e.Journal(t.Context(), "r", 1, false))
	if err != nil || run.State != agent.StateCompleted {
		t.Fatalf("%s: the run is in %s: %v", what, run.State, err)
	}
	results := map[string]int{}
	var call string
	for entry, err := range e.Journal(t.Context(), "r", 1, false) {
		if err != nil {
			t.Fatal(err)
		}
		payload, err := entry.Payload()
		if o, ok := payload.(agent.Observed); ok && !o.Message.IsZero() && err == nil {
			results[call]++
			if _, err := e.Body(t.Context(), "r", o.Message); err != nil {
				t.Errorf("%s: the message of entry %d: %v", what, entry.Seq, err)
			}
		}
		for _, eff := range entry.Effects { // the next call, if this entry ended one
			if eff.Kind == agent.Prepare {
				call = eff.Call
			}
		}
	}
	if len(results) != calls {
		t.Errorf("%s: %d calls have a result, want %d", what, len(results), calls)
	}
	for id, n := range results {
		if n != 1 {
			t.Errorf("%s: call %s has %d results, want 1", what, id, n)
		}
	}
	sent := map[string]int{}
	for _, line := range newLedger(filepath.Join(dir, "ledger"), nil).lines() {
		sent[line]++
	}
	for line, n := range sent {
		if n > 1 && !strings.HasSuffix(line, enginetest.ToolRead) {
			t.Errorf("%s: %s was sent %d times", what, line, n)
		}
	}
	// What was counted is what was journaled as an intent: once for each call.
	if run.Used.Calls != calls {
		t.Errorf("%s: %d calls are counted, want %d", what, run.Used.Calls, calls)
	}
}
