package nodes_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/tools/strictjson"
)

// tale is a journal as far as a context is made of it, and its bodies.
type tale struct {
	entries []agent.Entry
	bodies  map[agent.BodyRef][]byte
	reads   map[agent.BodyRef]int
	calls   int
}

// begun is a tale with a task.
func begun(task string, pins ...agent.Tool) *tale {
	l := &tale{bodies: map[agent.BodyRef][]byte{}, reads: map[agent.BodyRef]int{}}
	l.add(agent.KindStart, agent.Spec{
		Run: "tale", Task: l.store([]byte(task)), Tools: append([]agent.Tool{}, pins...), Servers: []agent.Server{}, Approvers: []agent.Approver{},
	}, true)
	return l
}

func encoded(v any) []byte {
	data, err := strictjson.Encode(v)
	if err != nil {
		panic(err) // the tests say what JSON can
	}
	return data
}

func (l *tale) store(data []byte) agent.BodyRef {
	b := agent.NewBody(data)
	l.bodies[b.Ref] = data
	return b.Ref
}

func (l *tale) add(event agent.Kind, payload any, asks bool) {
	e := agent.Entry{Seq: int64(len(l.entries)) + 1, Kind: agent.EntryEvent, Event: event}
	var err error
	if e.Data, err = json.Marshal(payload); err != nil {
		panic(err)
	}
	if asks {
		e.Effects = []agent.Effect{{Kind: agent.Ask, Seq: e.Seq}}
	}
	l.entries = append(l.entries, e)
}

// turn is a turn of the model with a call for each size, answered by data of that many
// bytes; a negative size is a call that was refused. The last answer asks the model
// again.
func (l *tale) turn(text string, sizes ...int) {
	m := nodes.Message{Role: nodes.RoleAssistant, Content: text}
	for i := range sizes {
		m.ToolCalls = append(m.ToolCalls, nodes.ToolCall{ID: fmt.Sprintf("c%d", l.calls+i), Name: toolRead, Arguments: "{}"})
	}
	l.add(agent.KindTurned, agent.Turned{Message: l.store(encoded(m))}, false)
	for i, size := range sizes {
		l.add(agent.KindReturned, agent.Returned{}, false)
		l.observe(size, i == len(sizes)-1)
	}
}

func (l *tale) observe(size int, asks bool) {
	id := fmt.Sprintf("c%d", l.calls)
	l.calls++
	o := nodes.Observation{Status: agent.StatusOK, Message: "The tool has answered."}
	seen := agent.Observed{Status: agent.StatusOK, Class: agent.ClassOK}
	if size >= 0 {
		data := encoded(struct {
			N int    `json:"n"`
			X string `json:"x"`
		}{l.calls, strings.Repeat("x", size)})
		seen.Evidence = l.store(data)
		o.Untrusted = &nodes.Untrusted{
			Source: nodes.Source{Server: "docs", Tool: "read_document"}, Ref: seen.Evidence.String(), Bytes: seen.Evidence.Bytes, Data: data,
		}
	}
	seen.Message = l.store(encoded(nodes.Message{Role: nodes.RoleTool, ToolCallID: id, Content: string(encoded(o))}))
	l.add(agent.KindObserved, seen, asks)
}

// refused is a turn that did not count.
func (l *tale) refused() {
	m := l.store(encoded(nodes.Message{Role: nodes.RoleUser, Content: "Host: take the turn again."}))
	l.add(agent.KindTurnRefused, agent.TurnRefused{Reason: "empty", Message: m}, true)
}

func (l *tale) body(ref agent.BodyRef) ([]byte, error) {
	l.reads[ref]++
	data, ok := l.bodies[ref]
	if !ok {
		return nil, agent.ErrNoBody
	}
	return data, nil
}

// context is what the model is given after the first n entries.
func (l *tale) context(n int, w nodes.Window) ([]nodes.Message, error) {
	return nodes.Context("system", w, func(yield func(agent.Entry, error) bool) {
		for _, e := range l.entries[:n] {
			if !yield(e, nil) {
				return
			}
		}
	}, l.body)
}

func (l *tale) now(t *testing.T, w nodes.Window) []nodes.Message {
	t.Helper()
	ms, err := l.context(len(l.entries), w)
	if err != nil {
		t.Fatal(err)
	}
	return ms
}

func sizeOf(ms []nodes.Message) (n int64) {
	for _, m := range ms {
		n += int64(len(encoded(m)))
	}
	return n
}

// quoted is the quotation in a tool message; nil if there is none.
func quoted(m nodes.Message) *nodes.Untrusted {
	if m.Role != nodes.RoleTool {
		return nil
	}
	o, err := nodes.ParseObservation(m.Content)
	if err != nil {
		panic(err)
	}
	return o.Untrusted
}

// whole says for each quotation whether its data is there.
func whole(ms []nodes.Message) (all []bool) {
	for _, m := range ms {
		if u := quoted(m); u != nil {
			all = append(all, u.Data != nil)
		}
	}
	return all
}

func TestContext_AtTheWindowItIsWhole(t *testing.T) {
	l := begun("task")
	l.turn("a", 3000)
	l.turn("b", 3000)
	all := sizeOf(l.now(t, nodes.Window{}))
	if got := whole(l.now(t, nodes.Window{Bytes: all})); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("at the window: %v", got)
	}
	if got := whole(l.now(t, nodes.Window{Bytes: all - 1})); !slices.Equal(got, []bool{false, true}) {
		t.Errorf("one byte less: %v", got)
	}
	// The default, which is what an empty window means.
	if n := nodes.DefaultWindow.Bytes; n > nodes.DefaultWindow.Tokens*nodes.BytesPerToken {
		t.Errorf("the default of %d bytes is never reached", n)
	}
	// A token for every three bytes, whatever the other bound allows.
	tokens := (all + nodes.BytesPerToken - 1) / nodes.BytesPerToken
	if got := whole(l.now(t, nodes.Window{Tokens: tokens})); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("at the window in tokens: %v", got)
	}
	if got := whole(l.now(t, nodes.Window{Bytes: all, Tokens: tokens - 1})); !slices.Equal(got, []bool{false, true}) {
		t.Errorf("one token less: %v", got)
	}
}

func TestContext_TheOldestLoseTheirDataDownToHalf(t *testing.T) {
	l := begun("task")
	for range 6 {
		l.turn("t", 2000)
	}
	all := sizeOf(l.now(t, nodes.Window{}))
	// Before the last one it fits; with it the oldest go until half is left.
	ms := l.now(t, nodes.Window{Bytes: all - 1})
	if got := whole(ms); !slices.Equal(got, []bool{false, false, false, true, true, true}) && !slices.Equal(got, []bool{false, false, false, false, true, true}) {
		t.Errorf("%v", got)
	}
	if n := sizeOf(ms); n > (all-1)/2 {
		t.Errorf("%d bytes are left of %d", n, all-1)
	}
}

func TestContext_WhatLostItsDataSaysHowToOpenIt(t *testing.T) {
	own := nodes.OwnTool()
	for want, pins := range map[string][]agent.Tool{
		"The tool has answered. Its data has left this conversation to save room.":                                             nil,
		"The tool has answered. Its data has left this conversation to save room; host__open_body opens it again, by its ref.": {own.Tool},
	} {
		l := begun("task", pins...)
		l.turn("a", 5000)
		before := l.now(t, nodes.Window{})
		l.turn("b", 5000)
		m := l.now(t, nodes.Window{Bytes: 8000})[3]
		o, err := nodes.ParseObservation(m.Content)
		was := quoted(before[3])
		if err != nil || o.Message != want || m.ToolCallID != "c0" || o.Status != agent.StatusOK {
			t.Errorf("told %s (%v), want %q", m.Content, err, want)
		}
		if u := o.Untrusted; u.Data != nil || u.Ref != was.Ref || u.Bytes != was.Bytes || u.Source != was.Source {
			t.Errorf("left is %+v of %+v", u, was)
		}
	}
}

// What the model has had no turn to see stays whole while older data can go; then the
// largest goes first.
func TestContext_UnseenDataGoesLast(t *testing.T) {
	l := begun("task")
	l.turn("a", 3000, 3000)
	l.turn("b", 2000, 4000, 2500)
	for bytes, want := range map[int64][]bool{
		14000: {false, false, true, true, true},
		9800:  {false, false, true, false, true},
		5200:  {false, false, true, false, false},
		3400:  {false, false, false, false, false},
	} {
		if got := whole(l.now(t, nodes.Window{Bytes: bytes})); !slices.Equal(got, want) {
			t.Errorf("%d bytes: %v, want %v", bytes, got, want)
		}
	}
	// A turn that did not count was a turn: the model has seen what it was given.
	l.refused()
	if got := whole(l.now(t, nodes.Window{Bytes: 14000})); !slices.Equal(got, []bool{false, false, true, true, true}) {
		t.Errorf("nothing more had to go: %v", got)
	}
	l.turn("c", 7000)
	if got := whole(l.now(t, nodes.Window{Bytes: 14000})); got[2] || !got[5] {
		t.Errorf("after another turn: %v", got)
	}
}

func TestContext_SmallDataStays(t *testing.T) {
	l := begun("task")
	l.turn("a", 100, -1, 5000)
	l.turn("b", 6000)
	if got := whole(l.now(t, nodes.Window{Bytes: 9000})); !slices.Equal(got, []bool{true, false, true}) {
		t.Errorf("%v", got)
	}
}

func TestContext_MoreThanTheWindowIsFull(t *testing.T) {
	l := begun(strings.Repeat("task ", 500))
	l.turn(strings.Repeat("words ", 500), 3000)
	for least := int64(9000); least > 0; least-- {
		_, err := l.context(len(l.entries), nodes.Window{Bytes: least})
		if err == nil {
			continue
		}
		if !errors.Is(err, nodes.ErrContextFull) {
			t.Fatal(err)
		}
		ms, err := l.context(len(l.entries), nodes.Window{Bytes: least + 1})
		if err != nil || sizeOf(ms) != least+1 {
			t.Errorf("%d bytes of messages are refused in a window of %d; %v", sizeOf(ms), least, err)
		}
		return
	}
	t.Error("it is never full")
}

// A run that has outgrown its window ends, with the reason.
func TestContext_AFullRunEnds(t *testing.T) {
	d := open(t, script(say("never asked")))
	d.config.Window = nodes.Window{Bytes: sizeOf(d.messages())}
	d.serve()
	if run := d.in(agent.StateCompleted); run.Used.Turns != 1 {
		t.Errorf("%d turns", run.Used.Turns)
	}
	d = open(t, script(say("never asked")))
	d.config.Window = nodes.Window{Bytes: sizeOf(d.messages()) - 1}
	d.serve()
	if run := d.in(agent.StateFailed); run.Reason != "model:context_full" || len(d.seen) != 0 {
		t.Errorf("ended by %s, %d requests", run.Reason, len(d.seen))
	}
}

// aTale is a random tale.
func aTale(t *rapid.T) *tale {
	l := begun(strings.Repeat("t", rapid.IntRange(1, 800).Draw(t, "task")))
	for range rapid.IntRange(0, 14).Draw(t, "turns") {
		if rapid.IntRange(0, 5).Draw(t, "kind") == 0 {
			l.refused()
			continue
		}
		sizes := rapid.SliceOfN(rapid.IntRange(-1, 4000), 1, 4).Draw(t, "sizes")
		l.turn(strings.Repeat("s", rapid.IntRange(1, 60).Draw(t, "text")), sizes...)
	}
	return l
}

// From entry to entry a context only grows at its end, but for where the model is asked:
// there, and only if the window was exceeded, data goes, and it never comes back.
func TestContext_ThePrefixIsStable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := aTale(rt)
		w := nodes.Window{Bytes: int64(rapid.IntRange(6000, 40000).Draw(rt, "window"))}
		all, err := l.context(len(l.entries), nodes.Window{Bytes: nodes.MaxWindow})
		if err != nil {
			rt.Fatal(err)
		}
		var was []nodes.Message
		added, settled := int64(0), false // since data last went; and whether half was reached then
		for n := 1; n <= len(l.entries); n++ {
			now, err := l.context(n, w)
			if errors.Is(err, nodes.ErrContextFull) {
				return
			}
			if err != nil {
				rt.Fatal(err)
			}
			asked := l.entries[n-1].Effects != nil
			if asked && sizeOf(now) > w.Bytes {
				rt.Fatalf("entry %d: %d bytes are asked with, the window is %d", n, sizeOf(now), w.Bytes)
			}
			for i := len(was); i < len(now); i++ {
				added += sizeOf(all[i : i+1])
			}
			shrank := false
			for i := range was {
				if reflect.DeepEqual(was[i], now[i]) {
					continue
				}
				before, after := quoted(was[i]), quoted(now[i])
				if !asked || before == nil || before.Data == nil || after.Data != nil || before.Ref != after.Ref || was[i].ToolCallID != now[i].ToolCallID {
					rt.Fatalf("entry %d: message %d changed from %+v to %+v", n, i, was[i], now[i])
				}
				shrank = true
			}
			if shrank {
				if settled && added <= w.Bytes/2 {
					rt.Fatalf("entry %d: data goes again after %d bytes", n, added)
				}
				added, settled = 0, sizeOf(now) <= w.Bytes/2
			}
			was = now
		}
	})
}

// Data that the model has not seen is whole, unless nothing older could go.
func TestContext_UnseenDataIsWholeWhileOlderIs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := aTale(rt)
		w := nodes.Window{Bytes: int64(rapid.IntRange(6000, 40000).Draw(rt, "window"))}
		now, err := l.context(len(l.entries), w)
		if errors.Is(err, nodes.ErrContextFull) {
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		spoke := 0 // the model's last turn, or the note on it
		for i, m := range now {
			if m.Role != nodes.RoleTool {
				spoke = i
			}
		}
		unseenWent, olderStays := false, false
		for i, m := range now {
			u := quoted(m)
			switch {
			case u == nil:
			case i > spoke && u.Data == nil:
				unseenWent = true
			case i < spoke && u.Data != nil && len(encoded(m)) > nodes.MinLeaves:
				olderStays = true
			}
		}
		if unseenWent && olderStays {
			rt.Fatal("unseen data went while older data stays")
		}
	})
}

// Each body is read at most once, so that the cost is linear in the journal.
func TestContext_ReadsEachBodyOnce(t *testing.T) {
	l := begun("task")
	for range 300 {
		l.turn("t", 3000, 50)
	}
	if got := whole(l.now(t, nodes.Window{Bytes: 800_000})); got[0] || !got[len(got)-1] {
		t.Error("nothing was taken out")
	}
	for ref, n := range l.reads {
		if n > 1 {
			t.Errorf("body %s was read %d times", ref, n)
		}
	}
}

func BenchmarkContext(b *testing.B) {
	for _, turns := range []int{333, 3333} { // three entries each
		l := begun("task")
		for range turns {
			l.turn("t", 8000)
		}
		b.Run(fmt.Sprint(len(l.entries), "_entries"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.context(len(l.entries), nodes.Window{Bytes: 3_000_000}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// narrow is a run in a window of two documents: the first leaves it, a piece of it is
// opened again, and a search in between is small enough to stay.
func narrow(t *testing.T) *desk {
	first := `{"content":"` + strings.Repeat("The bridge at Orvik was closed. ", 60) + `","filename":"a.md"}`
	open1 := fmt.Sprintf(`{"ref":%q,"offset":1500,"length":60}`, agent.NewBody([]byte(first)).Ref)
	d := open(t, script(
		call(toolRead, `{"filename":"a.md"}`),
		call(toolSearch, `{"query":"Orvik"}`),
		call(toolRead, `{"filename":"b.md"}`),
		call(nodes.OpenBody, open1),
		say("It was closed."),
	), withOwn)
	d.config.Window = nodes.Window{Bytes: 6_000}
	d.bridge.results[toolRead] = ok("Read.", first)
	d.bridge.results[toolSearch] = ok("One hit.", `{"examined":1,"hits":[],"skipped":0,"truncated":false}`)
	d.model = after{d.model, 3, func() {
		d.bridge.results[toolRead] = ok("Read.", strings.ReplaceAll(first, "Orvik", "Lom"))
	}}
	d.serve()
	d.in(agent.StateCompleted)
	return d
}

// after is a model before whose nth turn something happens.
type after struct {
	nodes.Model
	n  int
	do func()
}

func (a after) Turn(ctx context.Context, r nodes.Request) (nodes.Reply, error) {
	turns := 0
	for _, m := range r.Messages {
		if m.Role == nodes.RoleAssistant {
			turns++
		}
	}
	if turns == a.n-1 {
		a.do()
	}
	return a.Model.Turn(ctx, r)
}

func TestContext_OfANarrowWindow(t *testing.T) {
	d := narrow(t)
	var b strings.Builder
	for i, r := range d.seen {
		fmt.Fprintf(&b, "── request %d: %d bytes of 6000\n", i+1, sizeOf(r.Messages))
		b.WriteString(written(t, r.Messages[1:])) // the rules are in context.txt
	}
	golden(t, "context_window.txt", b.String())
}

// The page shows what the golden file holds.
func TestContext_ThePageShowsTheRule(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "context.md"))
	if err != nil {
		t.Fatal(err)
	}
	var shown, opened int
	for _, r := range narrow(t).seen {
		for _, m := range r.Messages {
			u := quoted(m)
			switch {
			case u == nil:
			case u.Data == nil && bytes.Contains(page, []byte("\n    "+m.Content+"\n")):
				shown++
			case strings.Contains(string(u.Data), `"offset"`) && bytes.Contains(page, []byte("\n    "+m.Content+"\n")):
				opened++
			}
		}
	}
	if shown == 0 || opened == 0 {
		t.Errorf("docs/context.md shows %d references and %d pieces of the example", shown, opened)
	}
	for _, fact := range []string{
		fmt.Sprintf("%d bytes for a token", nodes.BytesPerToken), fmt.Sprintf("`%s`", nodes.OpenBody),
		"`model:context_full`", "300,000 bytes", "100,000 tokens", "16,000 bytes", "1,000 bytes",
	} {
		if !bytes.Contains(page, []byte(fact)) {
			t.Errorf("docs/context.md does not say %q", fact)
		}
	}
}
