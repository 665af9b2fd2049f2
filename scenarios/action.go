package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"sallyport/agent"
	"sallyport/scenarios/config"
	"sallyport/tools"
	"sallyport/tools/grant"
)

// Point is a place of a run at which something happens.
type Point string

// The points: an effect is about to be performed; it has been, and its result is not
// yet journaled; and where a run rests.
const (
	PointAsk     Point = "ask"
	PointPrepare Point = "prepare"
	PointSend    Point = "send"
	PointObserve Point = "observe"
	PointPresent Point = "present"
	PointVerify  Point = "verify"

	PointAsked    Point = "asked"
	PointPrepared Point = "prepared"
	PointSent     Point = "sent"
	PointObserved Point = "observed"
	PointVerified Point = "verified"

	PointWaiting Point = "awaiting_approval"  // a candidate waits for a decision
	PointUnknown Point = "needs_verification" // nobody knows what became of a write
	PointHeld    Point = "held"
	// PointUnchecked is where the read-back of a write could not even be made.
	PointUnchecked Point = "unchecked"
)

var points = []Point{
	PointAsk, PointPrepare, PointSend, PointObserve, PointPresent, PointVerify,
	PointAsked, PointPrepared, PointSent, PointObserved, PointVerified, PointWaiting, PointUnknown, PointHeld, PointUnchecked,
}

// UnmarshalText reads one of the points.
func (p *Point) UnmarshalText(text []byte) error {
	if known(Point(text), points...) {
		*p = Point(text)
		return nil
	}
	return unknownWord(string(text), "point of a run", points)
}

// before and after are the points around the performing of an effect.
var (
	before = map[agent.EffectKind]Point{
		agent.Ask: PointAsk, agent.Prepare: PointPrepare, agent.Send: PointSend,
		agent.Observe: PointObserve, agent.Present: PointPresent, agent.Verify: PointVerify,
	}
	after = map[agent.EffectKind]Point{
		agent.Ask: PointAsked, agent.Prepare: PointPrepared, agent.Send: PointSent,
		agent.Observe: PointObserved, agent.Verify: PointVerified,
	}
)

// Act is what an operator does.
type Act string

// The acts.
const (
	ActPause   Act = "pause"
	ActResume  Act = "resume"
	ActStep    Act = "step"
	ActCancel  Act = "cancel"
	ActAbandon Act = "abandon"
	ActExtend  Act = "extend"
	ActAttest  Act = "attest"
	ActAgain   Act = "again" // where the run is unchecked: it is served once more
)

var acts = []Act{ActPause, ActResume, ActStep, ActCancel, ActAbandon, ActExtend, ActAttest, ActAgain}

// UnmarshalText reads one of the acts.
func (a *Act) UnmarshalText(text []byte) error {
	if known(Act(text), acts...) {
		*a = Act(text)
		return nil
	}
	return unknownWord(string(text), "act of an operator", acts)
}

// Action is something that an operator does at a point, once.
type Action struct {
	At Point `yaml:"at" check:"required"`
	// Nth is which time that the point is reached; 0 is the first.
	Nth int `yaml:"nth" check:"positive"`
	Do  Act `yaml:"do" check:"required"`
	// Says is what an attest says: applied, not_applied or unknown.
	Says string `yaml:"says"`
	// By signs an attest; empty is the first approver.
	By string `yaml:"by"`
	// Calls, Turns and Tokens are by how much an extend raises the budgets.
	Calls  int   `yaml:"calls" check:"positive"`
	Turns  int   `yaml:"turns" check:"positive"`
	Tokens int64 `yaml:"tokens" check:"positive"`
	// Expect is what must become of it; absent, it must be taken.
	Expect *ExpectVerdict `yaml:"expect"`
}

// mistake says what is wrong with an action, what to write, and at which key.
func (a Action) mistake() (message, remedy, key string) {
	verdicts := []string{grant.VerdictApplied, grant.VerdictNotApplied, grant.VerdictUnknown}
	extends := a.Calls > 0 || a.Turns > 0 || a.Tokens > 0
	switch {
	case a.Do == ActAttest && !slices.Contains(verdicts, a.Says):
		return "an attest says what became of the write", "write says: applied, not_applied or unknown", "do"
	case a.Do != ActAttest && a.Says != "":
		return fmt.Sprintf("%s says nothing", a.Do), "remove the key", "says"
	case a.Do != ActAttest && a.By != "":
		return fmt.Sprintf("%s is not signed", a.Do), "remove the key", "by"
	case a.Do == ActAgain && a.At != PointUnchecked:
		return "only what could not be checked is tried again", "write at: unchecked, or another act", "do"
	case a.Do == ActExtend && !extends:
		return "an extend raises a budget", "add calls, turns or tokens", "do"
	case a.Do != ActExtend && extends:
		return fmt.Sprintf("%s raises no budget", a.Do), "write do: extend, or remove calls, turns and tokens", "do"
	}
	return "", "", ""
}

// ClockJump sets the clock of the Host ahead, for the rest of the run. Servers keep the
// real time.
type ClockJump struct {
	Jump tools.Duration `yaml:"jump" check:"required,positive"`
	At   Point          `yaml:"at" check:"required"`
	Nth  int            `yaml:"nth" check:"positive"`
}

// Fault is what befalls the process that serves the run: it is a real one, of its own,
// and another goes on after it.
type Fault struct {
	// Crash is the point of the runtime at which the process is killed.
	Crash string `yaml:"crash"`
	// DiskFull is the point from which on nothing can be written.
	DiskFull string `yaml:"disk_full"`
	// At is which time that the point is reached; 0 is the first.
	At int `yaml:"at" check:"positive"`
	// Removes is a file of the stage that is gone when another process goes on.
	Removes string `yaml:"removes"`
}

// point is where the fault happens.
func (f Fault) point() string {
	if f.Crash != "" {
		return f.Crash
	}
	return f.DiskFull
}

// nth is which time it is.
func (f Fault) nth() int { return max(1, f.At) }

func (f Fault) mistake() (message, remedy, key string) {
	switch {
	case (f.Crash == "") == (f.DiskFull == ""):
		return "a fault is one of two", "write crash: POINT or disk_full: POINT", ""
	case !slices.Contains(crashPoints(), f.point()):
		key := "crash"
		if f.Crash == "" {
			key = "disk_full"
		}
		remedy := fmt.Sprintf("points are %q", crashPoints())
		if near := config.Nearest(f.point(), crashPoints()); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", near)
		}
		return fmt.Sprintf("there is no point %q", f.point()), remedy, key
	case f.Removes != "" && (checkStaged(f.Removes) != nil || !strings.Contains(f.Removes, "/")):
		return fmt.Sprintf("%q is no file of the stage", f.Removes), "write sources/NAME, reports/NAME or outside/NAME", "removes"
	}
	return "", "", ""
}
