package cassette

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"sallyport/agent"
	"sallyport/nodes"
)

// answers is a model that gives these, one after the other.
type answers struct {
	t    *testing.T
	give []any // nodes.Reply or error
}

func (a *answers) Turn(context.Context, nodes.Request) (nodes.Reply, error) {
	if len(a.give) == 0 {
		a.t.Fatal("it is asked too often")
	}
	next := a.give[0]
	a.give = a.give[1:]
	if err, failed := next.(error); failed {
		return nodes.Reply{}, err
	}
	return next.(nodes.Reply), nil
}

var offered = []nodes.Tool{
	{Name: "docs__read", Description: "Reads.", Parameters: []byte(`{"type":"object"}`)},
	{Name: "docs__save", Description: "Saves.", Parameters: []byte(`{"type":"object"}`)},
}

// talk is a run's transcript as it grows, with the ids that a Host of that run makes.
type talk struct {
	run      string
	messages []nodes.Message
}

func newTalk(run string) *talk {
	return &talk{run, []nodes.Message{{Role: nodes.RoleSystem, Content: "rules"}, {Role: nodes.RoleUser, Content: "the task"}}}
}

func (k *talk) request(attempt int) nodes.Request {
	return nodes.Request{Messages: k.messages, Tools: offered, Run: k.run, Attempt: attempt}
}

// took adds a reply and an answer to each of its calls.
func (k *talk) took(r nodes.Reply, results ...string) {
	m := nodes.Message{Role: nodes.RoleAssistant, Content: r.Text, Vendor: r.Vendor, Adjusted: r.Adjusted}
	for i, c := range r.Calls {
		if c.ID == "" {
			c.ID = fmt.Sprintf("call_%s_%d_%d", k.run, len(k.messages), i)
		}
		m.ToolCalls = append(m.ToolCalls, c)
	}
	k.messages = append(k.messages[:len(k.messages):len(k.messages)], m)
	for i, c := range m.ToolCalls {
		k.messages = append(k.messages, nodes.Message{Role: nodes.RoleTool, ToolCallID: c.ID, Content: results[i]})
	}
}

var (
	first = nodes.Reply{
		Calls: []nodes.ToolCall{{Name: "docs__read", Arguments: `{"filename":"a.md"}`}, {ID: "theirs", Name: "docs__read", Arguments: `{}`}}, Finish: nodes.FinishToolCalls,
		Usage: agent.Usage{Input: 10, Cached: 4, Output: 3}, Vendor: map[string]string{"reasoning": "hm"}, Adjusted: []string{"empty arguments"},
	}
	last    = nodes.Reply{Text: "It is done <&>\u2028.", Finish: nodes.FinishStop, Usage: agent.Usage{Input: 20, Output: 1}}
	limited = &nodes.Unavailable{Reason: "rate_limited", After: 3 * time.Second, Err: errors.New("key sk-secret")}
)

// taped records a run of two turns, the first of which takes two attempts.
func taped(t *testing.T, run string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "run.jsonl")
	r, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	m := r.Model("openai:m@host", &answers{t, []any{limited, first, last}})
	k := newTalk(run)
	if _, err := m.Turn(t.Context(), k.request(0)); !errors.Is(err, limited) {
		t.Fatalf("%v", err)
	}
	got, err := m.Turn(t.Context(), k.request(1))
	if err != nil || !reflect.DeepEqual(got, first) {
		t.Fatalf("%+v, %v", got, err)
	}
	k.took(first, `{"status":"ok"}`, `{"status":"rejected"}`)
	if _, err := m.Turn(t.Context(), k.request(0)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func player(t *testing.T, path string) *Player {
	t.Helper()
	p, data, err := Load(path)
	if err != nil || len(data) == 0 {
		t.Fatal(err)
	}
	return p
}

// Another run, whose Host makes other ids, gets the same replies; in whatever order and
// process it asks, since the player keeps nothing.
func TestPlay_GivesAnotherRunWhatWasRecorded(t *testing.T) {
	path := taped(t, "one")
	k := newTalk("another")
	start := k.request(0)
	k.took(first, `{"status":"ok"}`, `{"status":"rejected"}`)
	later := k.request(0)
	for range 2 {
		p := player(t, path)
		if got, err := p.Turn(t.Context(), later); err != nil || !reflect.DeepEqual(got, last) {
			t.Errorf("%+v, %v", got, err)
		}
		_, err := p.Turn(t.Context(), start)
		if u := new(nodes.Unavailable); !errors.As(err, &u) || u.Reason != "rate_limited" || u.After != 3*time.Second || u.Final {
			t.Errorf("%v", err)
		}
		again := start
		again.Attempt = 1
		if got, err := p.Turn(t.Context(), again); err != nil || !reflect.DeepEqual(got, first) {
			t.Errorf("%+v, %v", got, err)
		}
		if p.Model() != "openai:m@host" {
			t.Errorf("it is called %q", p.Model())
		}
	}
}

func TestRecord_HoldsNoSecretAndIsPrivate(t *testing.T) {
	path := taped(t, "one")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(data, []byte("sk-secret")) || bytes.Count(data, []byte("the task")) != 1 {
		t.Errorf("the cassette holds\n%s", data)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := Create(path); !errors.Is(err, fs.ErrExist) {
		t.Errorf("an existing file: %v", err)
	}
}

func TestPlay_RefusesEveryDifference(t *testing.T) {
	p := player(t, taped(t, "one"))
	for name, row := range map[string]struct {
		change func(*talk, *nodes.Request)
		want   string
	}{
		"another task": {func(k *talk, q *nodes.Request) { q.Messages[1].Content = "another task" }, "run.jsonl:4: turn 2 is asked for otherwise than it was recorded\n--- recorded\n+++ now"},
		"a result":     {func(k *talk, q *nodes.Request) { q.Messages[3].Content = `{"status":"failed"}` }, `-  "status": "ok"` + "\n" + `+  "status": "failed"`},
		"arguments":    {func(k *talk, q *nodes.Request) { q.Messages[2].ToolCalls[0].Arguments = `{"filename":"b.md"}` }, `+  "filename": "b.md"`},
		"an answer to another call": {func(k *talk, q *nodes.Request) {
			q.Messages[3].ToolCallID, q.Messages[4].ToolCallID = q.Messages[4].ToolCallID, q.Messages[3].ToolCallID
		}, "about call-2"},
		"reasoning": {func(k *talk, q *nodes.Request) { q.Messages[2].Vendor = nil }, `"reasoning":"hm"`},
		"a message more": {func(k *talk, q *nodes.Request) {
			q.Messages = append(q.Messages, nodes.Message{Role: nodes.RoleTool, ToolCallID: "x", Content: "more"})
		}, "+more"},
		"a tool less": {func(k *talk, q *nodes.Request) { q.Tools = q.Tools[:1] }, `the tool "docs__save" is not offered now`},
		"a tool more": {func(k *talk, q *nodes.Request) {
			q.Tools = append(q.Tools, nodes.Tool{Name: "x", Parameters: []byte("{}")})
		}, `the tool "x" was not offered then`},
		"a tool changed":  {func(k *talk, q *nodes.Request) { q.Tools[1].Description = "Saves!" }, `the tool "docs__save" is described otherwise`},
		"tools reordered": {func(k *talk, q *nodes.Request) { q.Tools[0], q.Tools[1] = q.Tools[1], q.Tools[0] }, "another order"},
	} {
		t.Run(name, func(t *testing.T) {
			k := newTalk("x")
			k.took(first, `{"status":"ok"}`, `{"status":"rejected"}`)
			q := k.request(0)
			q.Tools = append([]nodes.Tool{}, offered...)
			row.change(k, &q)
			_, err := p.Turn(t.Context(), q)
			var e *Error
			if !errors.As(err, &e) || !errors.Is(err, nodes.ErrModelFault) || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v\nwant %s", err, row.want)
			}
		})
	}
}

func TestPlay_NamesWhatWasNotRecorded(t *testing.T) {
	p := player(t, taped(t, "one"))
	k := newTalk("x")
	k.took(first, "a", "b")
	k.took(last)
	for want, q := range map[string]nodes.Request{
		"run.jsonl:4: the cassette has ended: turn 3 is asked for, and it has 2": k.request(0),
		"attempt 3 at turn 1 is asked for, and was not recorded":                 newTalk("x").request(2),
	} {
		if _, err := p.Turn(t.Context(), q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Turn(ctx, newTalk("x").request(0)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Any byte that is changed, of which every third is tried, and any line that is taken out, but for lines at the end,
// is noticed.
func TestParse_NoticesEveryChange(t *testing.T) {
	data, err := os.ReadFile(taped(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(data); i += 3 {
		changed := bytes.Clone(data)
		changed[i] ^= 1
		var e *Error
		if _, err := Parse("c", changed); !errors.As(err, &e) || !errors.Is(err, nodes.ErrModelFault) {
			t.Fatalf("byte %d, %q for %q: %v", i, changed[i], data[i], err)
		}
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	for i := range len(lines) - 2 {
		if _, err := Parse("c", bytes.Join(append(append([][]byte{}, lines[:i]...), lines[i+1:]...), nil)); err == nil {
			t.Errorf("line %d can be taken out", i+1)
		}
	}
	for end := range data {
		_, err := Parse("c", data[:end])
		if whole := end > 0 && data[end-1] == '\n'; (err == nil) != whole {
			t.Fatalf("cut after %d bytes: %v", end, err)
		}
	}
	if _, err := Parse("c", data[:len(data)-1]); err == nil || !strings.Contains(err.Error(), "c:4: the last line is torn") {
		t.Errorf("%v", err)
	}
}

func TestParse_Refuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  "c: the cassette is empty",
		"{}\n":                              "c:1: this is no cassette",
		"- call: x\n":                       "c:1: this is no cassette",
		`{"cassette":2,"more":true}` + "\n": "c:1: it is of version 2, and this program knows 1 to 1",
		`{"cassette":1,"model":"m","tools":[],"run":"r","sum":"x"}` + "\n": "c:1: it was changed",
		`{"cassette":1,"what":0}` + "\n":                                   "c:1: the line is none",
	} {
		if _, err := Parse("c", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, _, err := Load(t.TempDir()); err == nil {
		t.Error("a folder is read")
	}
	if _, _, err := Load(filepath.Join(t.TempDir(), "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// A run that goes on in another process goes on in its cassette; another run does not.
func TestAppend_GoesOnWithTheSameRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.jsonl")
	turn := func(open func(string) (*Recorder, error), label string, k *talk, give any) error {
		r, err := open(path)
		if err != nil {
			return err
		}
		defer func() {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}()
		_, err = r.Model(label, &answers{t, []any{give}}).Turn(t.Context(), k.request(0))
		return err
	}
	k := newTalk("one")
	if err := turn(Create, "m", k, first); err != nil {
		t.Fatal(err)
	}
	if err := turn(Append, "m", newTalk("two"), first); err == nil || !errors.Is(err, nodes.ErrModelFault) || !strings.Contains(err.Error(), "it records run") || strings.Contains(err.Error(), nodes.ErrModelFault.Error()) {
		t.Errorf("another run: %v", err)
	}
	if err := turn(Append, "n", k, first); err == nil || !strings.Contains(err.Error(), "it records the model") {
		t.Errorf("another model: %v", err)
	}
	// The reply that was recorded last did not reach the journal: the turn is taken again.
	other := first
	other.Text = "the other"
	if err := turn(Append, "m", k, other); err != nil {
		t.Fatal(err)
	}
	k.took(other, "a", "b")
	if err := turn(Append, "m", k, last); err != nil {
		t.Fatal(err)
	}
	p := player(t, path)
	got, err := p.Turn(t.Context(), newTalk("x").request(0))
	if err != nil || got.Text != "the other" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := p.Turn(t.Context(), k.request(0)); err != nil || got.Text != last.Text {
		t.Errorf("%+v, %v", got, err)
	}
	if err := os.WriteFile(path, []byte("{\"cassette\":1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := turn(Append, "m", k, last); err == nil || !strings.Contains(err.Error(), "torn") {
		t.Errorf("%v", err)
	}
}

// Data that left the context between two turns does not break the record.
func TestRecord_ContextThatShrank(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.jsonl")
	r, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	m := r.Model("m", &answers{t, []any{first, last, last}})
	k := newTalk("one")
	var asked []nodes.Request
	ask := func() {
		asked = append(asked, k.request(0))
		if _, err := m.Turn(t.Context(), asked[len(asked)-1]); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	k.took(first, strings.Repeat("long ", 1000), "b")
	ask()
	k.took(last)
	k.messages = append([]nodes.Message{}, k.messages...)
	k.messages[3].Content = "see sha256:…"
	ask()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	p := player(t, path)
	for i, q := range asked {
		if _, err := p.Turn(t.Context(), q); err != nil {
			t.Errorf("turn %d: %v", i+1, err)
		}
	}
}

// What is not the model's doing is not recorded, and what cannot be recorded stops the
// run where it is.
func TestRecord_OnlyAttempts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.jsonl")
	r, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	fault := fmt.Errorf("no script: %w", nodes.ErrModelFault)
	if _, err := r.Model("m", &answers{t, []any{fault}}).Turn(t.Context(), newTalk("one").request(0)); !errors.Is(err, fault) {
		t.Errorf("%v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a cassette of nothing is left: %v", err)
	}
	if r, err = Create(path); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Model("m", &answers{t, []any{errors.New("sk-secret")}}).Turn(t.Context(), newTalk("one").request(0)); err == nil {
		t.Error("no error")
	}
	if err := r.file.Close(); err != nil { // as if the disk were gone
		t.Fatal(err)
	}
	if _, err := r.Model("m", &answers{t, []any{last}}).Turn(t.Context(), newTalk("one").request(1)); !errors.Is(err, nodes.ErrModelFault) {
		t.Errorf("%v", err)
	}
	_, err = player(t, path).Turn(t.Context(), newTalk("x").request(0))
	if u := new(nodes.Unavailable); !errors.As(err, &u) || u.Reason != "" {
		t.Errorf("%v", err)
	}
}

// A cassette of exactly the largest size is read and not gone on with; one byte more is
// refused.
func TestCassette_Limit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.jsonl")
	size := func(text int) int64 {
		_ = os.Remove(path)
		r, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		m := r.Model("m", &answers{t, []any{nodes.Reply{Text: strings.Repeat("a", text), Finish: nodes.FinishStop}}})
		_, err = m.Turn(t.Context(), newTalk("one").request(0))
		if errors.Is(err, nodes.ErrModelFault) {
			_ = r.Close()
			return MaxBytes + 1
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	over := int(size(1)) - 1 // all but the text; its length in digits does not count
	if got := size(MaxBytes - over); got != MaxBytes {
		t.Fatalf("made %d bytes", got)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Parse("c", data); err != nil {
		t.Error(err)
	}
	if _, err := Parse("c", append(data, '\n')); err == nil || !strings.Contains(err.Error(), "more than") {
		t.Errorf("one byte more: %v", err)
	}
	if size(MaxBytes-over+1) != MaxBytes+1 {
		t.Error("one byte more is recorded")
	}
}

// A field that a reply gains must be recorded too.
func TestLine_HoldsAllOfAReply(t *testing.T) {
	for _, pair := range [][2]reflect.Type{
		{reflect.TypeFor[nodes.Reply](), reflect.TypeFor[reply]()}, {reflect.TypeFor[nodes.ToolCall](), reflect.TypeFor[call]()},
	} {
		if a, b := pair[0].NumField(), pair[1].NumField(); a != b {
			t.Errorf("%s has %d fields, %s has %d", pair[0], a, pair[1], b)
		}
	}
}
