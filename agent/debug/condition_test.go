package debug_test

import (
	"context"
	"strings"
	"testing"

	"sallyport/agent/debug"
)

type mover = func(context.Context) (debug.Stop, error)

// holds reports whether a condition holds at step 11 of the report, where the save waits.
func TestCondition_SaysWhatItMeans(t *testing.T) {
	d := newDesk(t)
	d.reported("r")
	for text, want := range map[string]bool{
		`true`: true, `false`: false, `null`: false, `1`: true, `0`: false, `-1`: true, `"x"`: true, `""`: false,
		`step == 11`: true, `step != 11`: false, `step < 12`: true, `step <= 11`: true, `step > 11`: false, `step >= 11`: true,
		`state == "awaiting_approval"`: true, `state ~ "await*"`: true, `state ~ "[a"`: false, `state > "a"`: true,
		`call.tool == "desk__write" && used.calls > 1`: true,
		`call.tool == "desk__read" || used.calls > 1`:  true,
		`call.tool == "desk__read" || used.calls > 2`:  false,
		`!call.sent`: true, `!!call.sent`: false, `!(call.sent || call.edited)`: true,
		`call.grants`: false, `call.candidate`: true, `call.candidate.run == "r"`: true,
		`call.candidate == call.candidate`: false, // what has members equals nothing
		`call.carried == 0`:                true, `call.outcome.status == "waiting_approval"`: true,
		`turn.calls[1].tool == "desk__write"`: true, `turn.calls.1.tool == "desk__write"`: true,
		`turn.calls[2] == null`: true, `turn.calls[9].tool == null`: true, `run.parent == ""`: true,
		`entry.data.no.such.thing == null`: true, `entry.data.no.such.thing < 1`: false, `entry.row == "approval_required"`: true,
		`used.calls == "2"`: false, `used.calls == 2.0`: true, `run.held == false`: true, `null == null`: true, `true == 1`: false,
		`used.calls > 1 && used.calls > 2 || step == 11`:   true, // and binds closer than or
		`used.calls > 1 && (used.calls > 2 || step == 12)`: false,
		`left.calls == 10 && budget.calls == 12`:           true,
		`spec.tools[1].risk == "write"`:                    true,
	} {
		s := d.open("r")
		if _, err := s.Break("step 11 if " + text); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		stop, err := s.Continue(t.Context())
		if err != nil || (stop.Reason == debug.Hit) != want {
			t.Errorf("%s: %t, %v; want %t", text, stop.Reason == debug.Hit, err, want)
		}
	}
}

func TestCondition_IsRefusedWhereItMeansNothing(t *testing.T) {
	d := newDesk(t)
	d.reported("r")
	s := d.open("r")
	for text, want := range map[string]string{
		`used.calls >`:                     "it ends where a value should be",
		`(step`:                            "a bracket is not closed",
		`step)`:                            "is too much",
		`step == 1 == 2`:                   "is too much",
		`"open`:                            "without its closing quote",
		`step = 1`:                         `"=" means nothing here`,
		`step & 1`:                         `"&" means nothing here`,
		`&& step`:                          "&& where a value should be",
		`calls > 1`:                        "it begins with one of step, state, run",
		`used.call > 1`:                    "used has calls, turns",
		`step.x`:                           "step has no members",
		`call..tool`:                       "want names and numbers",
		`1.2.3 == 1`:                       "is no number",
		strings.Repeat("(", 33) + "1":      "nested more than 32 deep",
		strings.Repeat("!", 33) + "1":      "nested more than 32 deep",
		strings.Repeat("1", 1025):          "at most 1024",
		strings.Repeat("a", 257) + " == 1": "at most 256",
	} {
		if _, err := s.Break("step 11 if " + text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for _, text := range []string{strings.Repeat("(", 32) + "1" + strings.Repeat(")", 32), strings.Repeat("!", 32) + "1", strings.Repeat("1", 300)} {
		if _, err := s.Break("step 11 if " + text); err != nil {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

func FuzzBreak(f *testing.F) {
	d := newDesk(f)
	d.reported("r")
	for _, text := range []string{
		`state model if used.calls > 3 && !(call.tool ~ "docs__*")`, `budget tokens>50%`, `step 11 if turn.calls[1].tool == "x" || null`,
		`11 if "\u202e" != -1.5`, `tool desk__[a-z]* if spec.tools.0`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d := &desk{t: t, engine: d.engine, world: d.world}
		s := d.open("r")
		b, err := s.Break(text)
		if err != nil {
			return
		}
		if _, err := s.Continue(t.Context()); err != nil {
			t.Fatalf("break %q: %v", text, err)
		}
		again, err := d.open("r").Break(b.String())
		if err != nil || again.String() != b.String() {
			t.Errorf("break %q is shown as %q, which gives %v, %v", text, b, again, err)
		}
	})
}

func FuzzValue(f *testing.F) {
	d := newDesk(f)
	d.reported("r")
	s := d.open("r")
	for _, p := range debug.Paths() {
		f.Add(p)
	}
	f.Fuzz(func(t *testing.T, path string) {
		_, _ = s.Moment().Value(path)
	})
}
