package scenarios

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/tools"
	"sallyport/tools/strictjson"
)

// tape takes what happens in a play and the journal does not hold. Its methods may be
// called by several goroutines at once.
type tape struct {
	mu      sync.Mutex
	to      io.Writer // takes each record as a line, if set
	missing []missing
	heard   []heard
	given   []verdict
	grants  []string // that were delivered, genuine or not
	faults  int      // that happened
	acted   map[int]bool
	jumped  map[int]bool    // items of the scenario's clock that were reached
	handed  map[string]bool // decisions that were handed in, by their path
	shown   []string        // each candidate, as a person would see it
	kept    []record        // all but what the model heard, for the next leg
	failed  error           // the tape could not be written
	waits   *patience       // for what a model owes
}

// record is one line of a tape.
type record struct {
	Heard   *heard    `json:"heard,omitempty"`
	Given   *verdict  `json:"given,omitempty"`
	Grant   string    `json:"grant,omitempty"`
	Handed  string    `json:"handed,omitempty"` // the path of a decision that is about to be delivered
	Missing []missing `json:"missing,omitempty"`
	Shown   string    `json:"shown,omitempty"`
	Acted   *int      `json:"acted,omitempty"`
	Fault   string    `json:"fault,omitempty"`  // the point at which the process was about to end
	Jump    int64     `json:"jump,omitempty"`   // how far the clock was set ahead, in nanoseconds
	Jumped  *int      `json:"jumped,omitempty"` // by which item of the scenario's clock
	Reached Point     `json:"reached,omitempty"`
	Error   string    `json:"error,omitempty"`
	Script  *mistake  `json:"script,omitempty"`
}

// mistake is an error of the scenario's script.
type mistake struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Reason string `json:"reason"`
}

// add takes a record.
func (t *tape) add(r record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.take(r)
	if t.to == nil {
		return
	}
	data, err := json.Marshal(r)
	if err == nil {
		_, err = t.to.Write(append(data, '\n'))
	}
	if err != nil && t.failed == nil {
		t.failed = fmt.Errorf("note what the scenario does: %w", err)
	}
}

func (t *tape) take(r record) {
	if r.Heard != nil {
		t.heard = append(t.heard, *r.Heard)
	} else {
		t.kept = append(t.kept, r)
	}
	if r.Given != nil {
		t.given = append(t.given, *r.Given)
	}
	if r.Grant != "" {
		t.grants = append(t.grants, r.Grant)
	}
	if r.Missing != nil {
		t.missing = r.Missing
	}
	if r.Acted != nil {
		if t.acted == nil {
			t.acted = map[int]bool{}
		}
		t.acted[*r.Acted] = true
	}
	if r.Jumped != nil {
		if t.jumped == nil {
			t.jumped = map[int]bool{}
		}
		t.jumped[*r.Jumped] = true
	}
	if r.Handed != "" {
		if t.handed == nil {
			t.handed = map[string]bool{}
		}
		t.handed[r.Handed] = true
	}
	if r.Shown != "" {
		t.shown = append(t.shown, r.Shown)
	}
	if r.Fault != "" {
		t.faults++
	}
}

// has reports whether the operator's i-th action was done.
func (t *tape) has(i int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.acted[i]
}

// lastGrant is the newest grant that was delivered for real; empty if none was.
func (t *tape) lastGrant() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.grants) == 0 {
		return ""
	}
	return t.grants[len(t.grants)-1]
}

// hear makes a model of another that notes what it is asked.
func (t *tape) hear(m nodes.Model) nodes.Model { return listener{m, t} }

type listener struct {
	nodes.Model
	tape *tape
}

// Turn implements [nodes.Model].
func (l listener) Turn(ctx context.Context, r nodes.Request) (nodes.Reply, error) {
	data, err := strictjson.Encode(r)
	if err != nil {
		return nodes.Reply{}, fmt.Errorf("note what the model is asked: %w", err)
	}
	h := heard{Request: string(data)}
	for _, tool := range r.Tools {
		h.Tools = append(h.Tools, tool.Name)
	}
	l.tape.add(record{Heard: &h})
	reply, err := l.Model.Turn(ctx, r)
	l.tape.waits.owe(err, r.Attempt)
	return reply, err
}

// verdict is what became of a delivery, or of what an operator did.
type verdict struct {
	Path    []string       `json:"path"`
	Genuine bool           `json:"genuine"` // it is to be taken unless something else is expected
	Want    *ExpectVerdict `json:"want,omitempty"`
	Code    string         `json:"code,omitempty"`
	Row     agent.Row      `json:"row,omitempty"`
}

// verdicts holds what became of deliveries against what is expected: the last word on
// each counts, since a process that died may have been at it before.
func (x *facts) verdicts(m *mismatches) {
	seen := map[string]bool{}
	for _, v := range slices.Backward(x.given) {
		path := strings.Join(v.Path, ".")
		if seen[path] {
			continue
		}
		seen[path] = true
		got := "row " + string(v.Row)
		if v.Code != "" {
			got = "refused: " + v.Code
		}
		switch {
		case v.Want == nil && v.Genuine == (v.Code == ""):
		case v.Want == nil && v.Genuine:
			m.at("a decision that is taken", got, v.Path...)
		case v.Want == nil:
			m.at("a decision that is refused", got, v.Path...)
		case v.Want.Code != v.Code:
			m.at("refused: "+v.Want.Code, got, append(v.Path, "expect")...)
		case v.Want.Row != "" && v.Want.Row != v.Row:
			m.at("row "+string(v.Want.Row), got, append(v.Path, "expect")...)
		}
	}
	for i := range x.stage.Scenario.Operator {
		if path := []string{"operator", index(i)}; !seen[strings.Join(path, ".")] {
			m.at("the point is reached", "it was not", path...)
		}
	}
	for i := range x.stage.Scenario.Clock {
		if !x.jumped[i] {
			m.at("the point is reached", "it was not", "clock", index(i))
		}
	}
	x.undelivered(m, seen)
}

// undelivered finds decisions about candidates that came up, and that were not given: the
// run had gone on, was held, or waits. One that a process died of has no verdict, but was
// handed in.
func (x *facts) undelivered(m *mismatches, seen map[string]bool) {
	for i, all := range x.stage.Scenario.Approvals[:min(x.asked, len(x.stage.Scenario.Approvals))] {
		for j, d := range all.List {
			path := append([]string{"approvals", index(i)}, all.step(j)...)
			if at := strings.Join(path, "."); d.Do != VerbWait && !seen[at] && !x.handed[at] {
				m.at("a decision that is delivered", "it was not delivered", path...)
			}
		}
	}
}

// secrets are the texts that no request of a model may hold, with what each is.
func (p *play) secrets(entries []agent.Entry) (map[string]string, error) {
	st, out := p.stage, map[string]string{}
	add := func(text, what string) {
		if len(text) >= minSecret && !st.shows(text) {
			out[text] = what
		}
	}
	for _, g := range p.tape.grants {
		add(g, "a grant")
	}
	for _, e := range entries {
		if payload, err := e.Payload(); err == nil {
			if a, ok := payload.(agent.Approve); ok {
				add(a.Grant, "a grant")
			}
		}
	}
	for _, key := range st.Keys {
		texts, err := secretTexts(filepath.Join(st.State, keysFolder, key.Public().Name+".json"))
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			add(text, "a private key")
		}
		add(key.Public().String(), "a public key")
	}
	for _, srv := range st.Scenario.Config.Servers {
		if srv.Builtin == tools.BuiltinDocs && srv.Scope != srv.Prefix {
			add(srv.Scope, "a scope")
		}
	}
	add(st.Dir, "a folder of the stage")
	return out, nil
}

// minSecret is how long a text must be to be looked for, in bytes: shorter ones are
// found everywhere.
const minSecret = 8

// shows reports whether the scenario itself shows a text to the model.
func (st *Stage) shows(text string) bool {
	if strings.Contains(st.Scenario.Task, text) {
		return true
	}
	for _, f := range st.Scenario.Files {
		if f.Text != nil && strings.Contains(*f.Text, text) {
			return true
		}
	}
	return false
}

// secretTexts are the long texts of a key's file.
func secretTexts(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a key of the stage: %w", err)
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return nil, fmt.Errorf("read a key of the stage: %w", err)
	}
	var out []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			if len(v) >= 32 {
				out = append(out, v)
			}
		case map[string]any:
			for _, member := range v {
				walk(member)
			}
		}
	}
	walk(v)
	return out, nil
}
