package debug

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// The view: what paths lead into. docs/debugger.md has its sections and their members.
type view struct {
	Step   int          `json:"step"`
	State  agent.State  `json:"state"`
	Run    viewRun      `json:"run"`
	Call   *viewCall    `json:"call"`
	Turn   *viewTurn    `json:"turn"`
	Open   *viewOpen    `json:"open"`
	Entry  *agent.Entry `json:"entry"`
	Budget agent.Budget `json:"budget"`
	Used   viewUsed     `json:"used"`
	Left   agent.Budget `json:"left"`
	Spec   agent.Spec   `json:"spec"`
}

type viewRun struct {
	ID         string         `json:"id"`
	Version    int            `json:"version"`
	Seq        int64          `json:"seq"`
	Head       string         `json:"head"`
	Time       time.Time      `json:"time"`
	State      agent.State    `json:"state"`
	Reason     string         `json:"reason"`
	Operator   string         `json:"operator"`
	Model      string         `json:"model"`
	Parent     string         `json:"parent"`
	Held       bool           `json:"held"`
	Cancelling bool           `json:"cancelling"`
	Deadline   *time.Time     `json:"deadline"`
	Unreached  int            `json:"unreached"`
	Noted      int            `json:"noted"`
	Messages   int            `json:"messages"`
	Carried    int            `json:"carried"`
	TurnedDown int            `json:"turned_down"`
	Answer     *agent.BodyRef `json:"answer"`
}

type viewCall struct {
	ID          string           `json:"id"`
	Index       int              `json:"index"`
	Tool        string           `json:"tool"`
	Server      string           `json:"server"`
	Risk        agent.Risk       `json:"risk"`
	Proposal    agent.BodyRef    `json:"proposal"`
	Arguments   *agent.BodyRef   `json:"arguments"`
	Edited      bool             `json:"edited"`
	Candidate   *grant.Candidate `json:"candidate"`
	Needed      int              `json:"needed"`
	Grants      []viewGrant      `json:"grants"`
	Sent        bool             `json:"sent"`
	Carried     int64            `json:"carried"`
	Outcome     *agent.Outcome   `json:"outcome"`
	Settled     bool             `json:"settled"`
	Substituted bool             `json:"substituted"`
}

type viewGrant struct {
	Approver string    `json:"approver"`
	Key      string    `json:"key"`
	Expires  time.Time `json:"expires"`
}

type viewTurn struct {
	Seq   int64            `json:"seq"`
	Next  int              `json:"next"`
	Calls []agent.Proposal `json:"calls"`
}

type viewOpen struct {
	Kind        agent.EffectKind `json:"kind"`
	Seq         int64            `json:"seq"`
	Call        string           `json:"call"`
	After       *time.Time       `json:"after"`
	Released    bool             `json:"released"`
	Substituted bool             `json:"substituted"`
}

type viewUsed struct {
	Calls  int     `json:"calls"`
	Turns  int     `json:"turns"`
	Tokens int64   `json:"tokens"`
	Wall   float64 `json:"wall"` // seconds
	Cost   int64   `json:"cost"`
}

// sections makes each part of the view from a moment.
var sections = map[string]func(*Moment) any{
	"step":   func(m *Moment) any { return m.Step },
	"state":  func(m *Moment) any { return m.Run.State },
	"run":    func(m *Moment) any { return runView(&m.Run) },
	"call":   func(m *Moment) any { return callView(&m.Run) },
	"turn":   func(m *Moment) any { return turnView(&m.Run) },
	"open":   func(m *Moment) any { return openView(&m.Run) },
	"entry":  func(m *Moment) any { return json.RawMessage(m.Entry.Bytes()) },
	"budget": func(m *Moment) any { return m.Run.Budget },
	"used":   func(m *Moment) any { return usedView(&m.Run) },
	"left":   func(m *Moment) any { return leftOf(&m.Run) },
	"spec":   func(m *Moment) any { return m.Run.Spec },
}

func runView(r *agent.Run) viewRun {
	v := viewRun{
		ID: r.ID, Version: r.Version, Seq: r.Seq, Head: r.Head, Time: r.Time, State: r.State, Reason: r.Reason, Operator: r.Operator,
		Model: r.Spec.Model, Held: r.Held, Cancelling: r.Cancelling, Deadline: moment(r.Deadline), Unreached: r.Unreached, Noted: r.Noted,
		Messages: r.Transcript.Len, Carried: r.Carried.Calls, TurnedDown: len(r.TurnedDown), Answer: reference(r.Answer),
	}
	if r.Spec.Fork != nil {
		v.Parent = r.Spec.Fork.Run
	}
	return v
}

func callView(r *agent.Run) *viewCall {
	c := r.Call
	if c == nil {
		return nil
	}
	tool, _ := r.Spec.Tool(c.Proposal.Tool)
	v := &viewCall{
		ID: c.ID, Index: c.Index, Tool: c.Proposal.Tool, Server: tool.Server, Risk: tool.Risk, Proposal: c.Proposal.Body,
		Arguments: reference(c.Arguments), Edited: c.Edited, Candidate: c.Candidate, Needed: tool.Approvers, Grants: []viewGrant{},
		Sent: c.Sent, Carried: c.Carried, Outcome: c.Outcome, Settled: c.Settled, Substituted: c.Substituted,
	}
	for _, g := range c.Grants {
		v.Grants = append(v.Grants, viewGrant{g.Approver, g.Key, time.Unix(g.Expires, 0).UTC()})
	}
	return v
}

func turnView(r *agent.Run) *viewTurn {
	if r.Turn == nil {
		return nil
	}
	return &viewTurn{r.Turn.Seq, r.Turn.Next, r.Turn.Calls}
}

func openView(r *agent.Run) *viewOpen {
	o := r.Open
	if o == nil {
		return nil
	}
	return &viewOpen{o.Kind, o.Seq, o.Call, moment(o.After), o.Released, o.Substitute != nil}
}

func usedView(r *agent.Run) viewUsed {
	u := r.Used
	return viewUsed{u.Calls, u.Turns, u.Tokens, u.Wall.Seconds(), u.Cost}
}

// leftOf is what is left of each budget; a cost without a limit has none left.
func leftOf(r *agent.Run) agent.Budget {
	b, u := r.Budget, r.Used
	return agent.Budget{
		Calls: b.Calls - u.Calls, Turns: b.Turns - u.Turns, Tokens: b.Tokens - u.Tokens, Wall: b.Wall - int64(u.Wall/time.Second),
		Cost: max(b.Cost-u.Cost, 0),
	}
}

func moment(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func reference(r agent.BodyRef) *agent.BodyRef {
	if r.IsZero() {
		return nil
	}
	return &r
}

// members are the members of each section that has some, in the view's order.
var members = func() map[string][]string {
	m := map[string][]string{}
	for f := range reflect.TypeFor[view]().Fields() {
		t := f.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			continue
		}
		for member := range t.Fields() {
			if name, _, _ := strings.Cut(member.Tag.Get("json"), ","); name != "" && name != "-" {
				m[f.Tag.Get("json")] = append(m[f.Tag.Get("json")], name)
			}
		}
	}
	return m
}()

// Paths are the sections and their members: what a path can begin with.
func Paths() []string {
	var out []string
	for f := range reflect.TypeFor[view]().Fields() {
		name := f.Tag.Get("json")
		out = append(out, name)
		for _, member := range members[name] {
			out = append(out, name+"."+member)
		}
	}
	return out
}

// place is where a path leads in the view.
type place []string

// maxPath bounds the text of a path, in bytes.
const maxPath = 256

// parsePath reads a path such as call.outcome.status or entry.effects[0].kind, and checks
// as much of it as is known of every run.
func parsePath(text string) (place, error) {
	if len(text) > maxPath {
		return nil, fmt.Errorf("a path of %d bytes: at most %d", len(text), maxPath)
	}
	var p place
	for part := range strings.SplitSeq(strings.NewReplacer("[", ".", "]", "").Replace(text), ".") {
		if !isName(part) {
			return nil, fmt.Errorf("path %q: want names and numbers with dots between them, such as call.outcome.status", text)
		}
		p = append(p, part)
	}
	if sections[p[0]] == nil {
		return nil, fmt.Errorf("path %q: it begins with one of %s", text, strings.Join(sectionNames(), ", "))
	}
	if has := members[p[0]]; len(p) > 1 && !slices.Contains(has, p[1]) {
		if len(has) == 0 {
			return nil, fmt.Errorf("path %q: %s has no members", text, p[0])
		}
		return nil, fmt.Errorf("path %q: %s has %s", text, p[0], strings.Join(has, ", "))
	}
	return p, nil
}

func sectionNames() (out []string) {
	for _, p := range Paths() {
		if !strings.Contains(p, ".") {
			out = append(out, p)
		}
	}
	return out
}

func isName(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == ""
}

func (p place) String() string { return strings.Join(p, ".") }

// in is the value at the path: what encoding/json decodes, with numbers as
// [json.Number]. What is not there is nil.
func (p place) in(m *Moment) (any, error) {
	raw, err := json.Marshal(sections[p[0]](m))
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", p, err)
	}
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("look at %s: %w", p, err)
	}
	for _, name := range p[1:] {
		switch inside := v.(type) {
		case map[string]any:
			v = inside[name]
		case []any:
			n, err := strconv.Atoi(name)
			if err != nil || n < 0 || n >= len(inside) {
				return nil, nil
			}
			v = inside[n]
		default:
			return nil, nil
		}
	}
	return v, nil
}

// Value is what a path leads to: nil, a bool, a string, a [json.Number], a list or a map
// of such. What is not there, such as a call where none is in hand, is nil; a path that
// leads nowhere in any run is an error, which says what there is.
func (m Moment) Value(at string) (any, error) {
	p, err := parsePath(at)
	if err != nil {
		return nil, err
	}
	return p.in(&m)
}
