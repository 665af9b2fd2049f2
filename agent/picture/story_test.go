package picture

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/agent/enginetest"
)

func TestRead_CountsWhatTheJournalSays(t *testing.T) {
	s := trouble(t).story()
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"visits of the model", s.visits[agent.StateModel], 5},
		{"visits of approval", s.visits[agent.StateAwaitingApproval], 3},
		{"endorsed", s.times(agent.StateAwaitingApproval, agent.StateAwaitingApproval, agent.RowEndorsed), 1},
		{"expired", s.times(agent.StateAwaitingApproval, agent.StateObserve, agent.RowExpired), 1},
		{"paused in execute", s.times(agent.StateExecute, agent.StateExecute, agent.RowPaused), 1},
		{"time of the unknown outcome", s.spent[agent.StateNeedsVerification], 26 * time.Hour},
		{"waited", s.waited, 26*time.Hour + 11*time.Minute + 21*time.Minute + 20*time.Second + 3*time.Minute + 24*time.Hour + time.Second},
		{"calls", len(s.calls), 6},
		{"first call", s.calls[0].came(), wentWell},
		{"call of no tool", s.calls[1].tool, unnamed},
		{"performed again", s.calls[2].attempts, 1},
		{"third call", s.calls[2].came(), unavailable},
		{"refused call", s.calls[3].came(), rejected},
		{"how it ended", s.ending(), "Failed (budget:tokens)"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
	var says []string
	for _, m := range s.marks {
		says = append(says, m.says)
	}
	want := []string{
		"model not reached", "turn refused", "turned away: mallory", "approved by alice", "approved by bob", "read-back left it open",
		"verdict by bob", "paused by carol", "resumed by carol", "performed again", "refused by bob", "nobody decided in time", "budget ended",
	}
	if !slices.Equal(says, want) {
		t.Errorf("marks:\n%q\nwant\n%q", says, want)
	}
}

// The time in all states together is the time that the run lasted.
func TestRead_TimeAddsUp(t *testing.T) {
	for name, s := range stories(t) {
		var sum, stays time.Duration
		for _, d := range s.spent {
			sum += d
		}
		for _, st := range s.stays {
			stays += st.long()
		}
		if sum != s.lasted() || stays != s.lasted() {
			t.Errorf("%s: %v in states, %v in stays, lasted %v", name, sum, stays, s.lasted())
		}
	}
}

func TestRead_RefusesAJournalThatIsBroken(t *testing.T) {
	d := report(t)
	d.entries = slices.Delete(d.entries, 3, 4)
	if _, err := Read(d.journal()); !errors.Is(err, agent.ErrIntegrity) {
		t.Errorf("read without an entry: %v", err)
	}
	d.entries = nil
	if _, err := Read(d.journal()); !errors.Is(err, agent.ErrNoRun) {
		t.Errorf("read nothing: %v", err)
	}
	lost := errors.New("lost")
	if _, err := Read(func(yield func(agent.Entry, error) bool) { yield(agent.Entry{}, lost) }); !errors.Is(err, lost) {
		t.Errorf("read what cannot be read: %v", err)
	}
}

// A run that waits says so: its state is lit, and its last stay goes on.
func TestTimeline_OfAnOpenRunGoesOn(t *testing.T) {
	s := parked(t).story()
	for _, want := range []string{"goes on", "Now in awaiting_approval", "7 min", "approved by alice"} {
		if !strings.Contains(s.Timeline(Normal), want) {
			t.Errorf("the timeline does not hold %q", want)
		}
	}
	if g := s.Graph(Normal); !strings.Contains(g, `class="now"`) || strings.Count(g, `class="now"`) != 1 {
		t.Error("not exactly one state is lit")
	}
}

// True lengths of the waits are written, though none has its width.
func TestTimeline_WritesHowLongEachWaitWas(t *testing.T) {
	for _, size := range Sizes {
		svg := trouble(t).story().Timeline(size)
		for _, want := range []string{">21 min 20 s<", ">1 d 2 h<", ">11 min<", ">3 min<", ">1 d<"} {
			if !strings.Contains(svg, want) {
				t.Errorf("size %d: the timeline does not hold %s", size, want)
			}
		}
	}
}

func TestTimeline_SaysThatABudgetIsExceeded(t *testing.T) {
	svg := trouble(t).story().Timeline(Normal)
	for _, want := range []string{"11,800 of 9,000, over", "3 of 6", "cost in EUR", "0.03925 of 0.04"} {
		if !strings.Contains(svg, want) {
			t.Errorf("the timeline does not hold %q", want)
		}
	}
}

// calling is a run with that many calls, of that many tools.
func calling(t testing.TB, calls, tools int) *Story {
	d := begin(t, "calling", func(s *agent.Spec) {
		s.Budget = agent.Budget{Calls: 10_000, Turns: 10_000, Tokens: 1 << 30, Wall: 1 << 30}
		read := s.Tools[0]
		s.Tools = nil
		for i := range tools {
			read.Name, read.Remote = fmt.Sprintf("desk__tool_%02d", i), fmt.Sprintf("tool_%02d", i)
			s.Tools = append(s.Tools, read)
		}
	})
	for i := range calls {
		d.after(time.Second).proposes(fmt.Sprintf("desk__tool_%02d", i%tools)).reads(100 * time.Millisecond)
	}
	return d.answers().story()
}

func TestTimeline_ManyCallsShareTheLinesOfTheirTools(t *testing.T) {
	at, past := calling(t, maxCalls, 3).Timeline(Normal), calling(t, maxCalls+1, 3).Timeline(Normal)
	if !strings.Contains(at, ">24 desk__tool_02<") || strings.Contains(at, "by tool") {
		t.Errorf("%d calls have no line each", maxCalls)
	}
	if !strings.Contains(past, "Calls by tool") || !strings.Contains(past, ">9 ok<") || strings.Contains(past, ">1 desk__tool_00<") {
		t.Errorf("%d calls have a line each", maxCalls+1)
	}
	at, past = calling(t, 40, maxTools).Timeline(Normal), calling(t, 40, maxTools+1).Timeline(Normal)
	if strings.Contains(at, "other tools") || !strings.Contains(past, ">2 other tools<") {
		t.Errorf("%d tools, and one more, do not have the lines that they should", maxTools)
	}
}

func TestTimeline_ManyMarksShareALine(t *testing.T) {
	marks := make([]mark, 0, maxMarkRows+3)
	for i := range maxMarkRows {
		marks = append(marks, mark{says: fmt.Sprint("mark ", i)})
	}
	if rows := markRows(marks); len(rows) != maxMarkRows || rows[maxMarkRows-1].says != "mark 15" {
		t.Errorf("%d marks give %d rows", maxMarkRows, len(rows))
	}
	rows := markRows(append(marks, mark{says: "one more"}, mark{says: "one more"}, mark{says: "mark 0"}))
	if last := rows[len(rows)-1]; len(rows) != maxMarkRows || last.says != "and others" || len(last.marks) != 3 || len(rows[0].marks) != 2 {
		t.Errorf("one past: %d rows, the last %q with %d", len(rows), last.says, len(last.marks))
	}
}

// Ten thousand steps, and the largest page that there can be, stay within bounds.
func TestPictures_OfLongRunsAreBounded(t *testing.T) {
	long := endless(t, 10_000)
	for what, text := range everything(long.story()) {
		if len(text) > MaxBytes/2 {
			t.Errorf("%s has %d bytes", what, len(text))
		}
	}
	s := endless(t, 2000).story()
	name := strings.Repeat("\u202e", 60)
	for i := range s.calls {
		s.calls[i].tool, s.calls[i].reason = fmt.Sprint(i%40, name), name
	}
	for i := range s.marks {
		s.marks[i].says = "approved by " + named(fmt.Sprint(i, name))
	}
	s.run.Reason = name
	if n := len(s.Page()); n > MaxBytes {
		t.Errorf("a page of the longest names has %d bytes", n)
	}
	s.calls, s.stays, s.marks = s.calls[:maxCalls], s.stays[:maxStays], s.marks[:maxSigns]
	if n := len(s.Page()); n > MaxBytes {
		t.Errorf("a page of as much as is shown one by one has %d bytes", n)
	}
}

// A fork's calls that were the parent's are told apart.
func TestTimeline_OfACallThatIsCarriedSaysSo(t *testing.T) {
	s := report(t).story()
	s.calls[0].carried = true
	if !strings.Contains(s.Timeline(Normal), "ok · carried") {
		t.Error("a carried call is not told")
	}
}

func TestRead_AnEditedCallSaysSo(t *testing.T) {
	s := report(t).story()
	if last := s.calls[3]; !last.edited || last.word() != "ok, edited" || last.tool != enginetest.ToolWrite {
		t.Errorf("the edited call: %+v", last)
	}
}

func BenchmarkRead10000(b *testing.B) {
	d := endless(b, 10_000)
	for b.Loop() {
		if _, err := Read(d.journal()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPage10000(b *testing.B) {
	s := endless(b, 10_000).story()
	for b.Loop() {
		_ = s.Page()
	}
}

// Marks are drawn one by one up to a bound; one more, and crowded lines are counted.
func TestTimeline_ManyMarksAreCounted(t *testing.T) {
	s := report(t).story()
	s.marks = slices.Repeat(s.marks[:1], maxSigns)
	signs := func() int { return strings.Count(s.Timeline(Normal), "edited by alice, ") }
	if n := signs(); n != maxSigns {
		t.Errorf("%d marks of %d", n, maxSigns)
	}
	s.marks = append(s.marks, s.marks[0])
	if n := signs(); n != 0 {
		t.Errorf("one past: %d marks", n)
	}
}

// Stays are bars of their own up to a bound; one more, and their share is drawn.
func TestTimeline_ManyStaysAreShares(t *testing.T) {
	s := waitsOf(maxStays / 2)
	s.stays = s.stays[:maxStays]
	s.visits = agent.Visits{agent.StateModel: 1}
	s.spent = map[agent.State]time.Duration{}
	s.run.Seq = 1
	if svg := s.Timeline(Normal); strings.Contains(svg, "share of the time") {
		t.Errorf("%d stays are drawn as shares", maxStays)
	}
	s.stays = append(s.stays, stay{state: agent.StateModel, from: s.stays[maxStays-1].to, to: s.stays[maxStays-1].to.Add(time.Second)})
	if svg := s.Timeline(Normal); !strings.Contains(svg, "share of the time") {
		t.Errorf("%d stays are drawn one by one", maxStays+1)
	}
}

// Exactly at a limit passes, so that a budget that is used up is not over it.
func TestTimeline_ABudgetThatIsUsedUpIsNotOver(t *testing.T) {
	s := report(t).story()
	s.run.Budget.Calls = s.run.Used.Calls
	if svg := s.Timeline(Normal); !strings.Contains(svg, ">4 of 4<") || strings.Contains(svg, "over") {
		t.Error("4 of 4 calls are shown as too many")
	}
	s.run.Budget.Calls--
	if svg := s.Timeline(Normal); !strings.Contains(svg, ">4 of 3, over<") {
		t.Error("4 of 3 calls are not shown as too many")
	}
}

// What was returned can turn out to be worse once it is observed: that is the outcome.
func TestRead_AnOutcomeIsTheOneThatWasObserved(t *testing.T) {
	d := begin(t, "worse").proposes(enginetest.ToolRead).checked().came(agent.StatusOK, agent.ClassOK, "")
	d.node(agent.Observed{Status: agent.StatusFailed, Class: agent.ClassProtocolError, Reason: "bad_result", Message: ref("told")})
	if k := d.story().calls[0]; k.came() != failed || k.reason != "bad_result" || k.open {
		t.Errorf("the call: %+v", k)
	}
}
