package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sallyport/agent"
	"sallyport/agent/audit"
	"sallyport/tools/bridge"
	"sallyport/tools/scriptserver"
	"sallyport/tools/strictjson"
)

// facts are what a play came to.
type facts struct {
	stage   *Stage
	run     agent.Run
	entries []agent.Entry
	calls   []Call
	missing []missing // tools that are not offered
	refused error     // why no run was begun
	heard   []heard   // what the model was asked
	shown   []string  // what a person would have seen
	given   []verdict // what became of deliveries and actions
	asked   int       // candidates that came up
	faults  int       // that happened
	jumped  map[int]bool
	handed  map[string]bool
	secrets map[string]string
	body    func(agent.BodyRef) ([]byte, error)
	update  bool
	updated string
}

// missing is a tool that is not offered, and why.
type missing struct {
	Tool string `json:"tool"`
	Why  string `json:"why"`
}

func missingOf(found bridge.Found) []missing {
	var out []missing
	for _, p := range found.Problems {
		why := p.Error()
		if p.Tool != "" && p.Detail != "" { // fixed words; of a server it is what it wrote to stderr
			why += " (" + p.Detail + ")"
		}
		out = append(out, missing{p.Tool, why})
	}
	return out
}

// heard is one request of the model.
type heard struct {
	Request string   `json:"request"` // as JSON
	Tools   []string `json:"tools"`
}

// compare lists what is otherwise than expected.
func (e Expect) compare(ctx context.Context, x *facts) ([]Mismatch, error) {
	m := &mismatches{file: x.stage.Scenario.file}
	if !e.begin(m, x) {
		return m.list, nil
	}
	e.end(m, x)
	e.journal(m, x)
	if err := e.compareCalls(m, x); err != nil {
		return m.list, err
	}
	if err := e.told(m, x); err != nil {
		return m.list, err
	}
	e.files(m, x)
	if err := e.servers(m, x); err != nil {
		return m.list, err
	}
	e.quarantined(m, x)
	x.verdicts(m)
	if err := x.always(ctx, m, e); err != nil {
		return m.list, err
	}
	if e.Golden != "" {
		return m.list, x.golden(m, e.Golden)
	}
	return m.list, nil
}

// begin looks at whether a run was begun; false if there is nothing more to look at.
func (e Expect) begin(m *mismatches, x *facts) bool {
	switch {
	case x.refused != nil && e.Begin == nil:
		m.at("", x.refused.Error(), "begin")
		return false
	case e.Begin == nil:
		return true
	case x.refused == nil:
		m.at("no run is begun", "a run was begun", "expect", "begin")
		return false
	}
	m.text(TextCheck{Contains: e.Begin.Refused}, x.refused.Error(), "expect", "begin", "refused")
	e.files(m, x)
	return false
}

func (e Expect) end(m *mismatches, x *facts) {
	given(m, e.State, x.run.State, "expect", "state")
	given(m, e.Reason, x.run.Reason, "expect", "reason")
	if e.Held != nil {
		differs(m, *e.Held, x.run.Held, "expect", "held")
	}
	if u := e.Used; u != nil {
		m.within(u.Calls, int64(x.run.Used.Calls), "expect", "used", "calls")
		m.within(u.Turns, int64(x.run.Used.Turns), "expect", "used", "turns")
		m.within(u.Tokens, x.run.Used.Tokens, "expect", "used", "tokens")
	}
}

// journal looks at states, rows and events.
func (e Expect) journal(m *mismatches, x *facts) {
	var path []agent.State
	var rows []agent.Row
	count := map[agent.Row]int64{}
	for _, entry := range x.entries {
		if entry.Kind != agent.EntryEvent {
			continue
		}
		rows = append(rows, entry.Row)
		count[entry.Row]++
		if len(path) == 0 || path[len(path)-1] != entry.State {
			path = append(path, entry.State)
		}
	}
	if e.Path != nil && !slices.Equal(e.Path, path) {
		m.at(joined(e.Path), joined(path), "expect", "path")
	}
	if e.Rows != nil && !slices.Equal(e.Rows, rows) {
		m.at(joined(e.Rows), joined(rows), "expect", "rows")
	}
	for _, row := range slices.Sorted(maps.Keys(e.Counts)) {
		want := e.Counts[row]
		m.within(&want, count[row], "expect", "counts", string(row))
	}
	next := 0
	for _, entry := range x.entries {
		if next < len(e.Events) && e.Events[next].is(entry) {
			next++
		}
	}
	if next < len(e.Events) {
		m.at(e.Events[next].String(), "no such entry after the ones before it", "expect", "events", strconv.Itoa(next))
	}
	for i, not := range e.NoEvents {
		if at := slices.IndexFunc(x.entries, not.is); at >= 0 {
			m.at("no "+not.String(), fmt.Sprintf("entry %d is one", x.entries[at].Seq), "expect", "no_events", strconv.Itoa(i))
		}
	}
}

func joined[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return strings.Join(out, ", ")
}

// is reports whether an entry is such an event.
func (e ExpectEvent) is(entry agent.Entry) bool {
	reason, status := reasonOf(entry)
	return fits(e.Row, entry.Row) && fits(e.Event, entry.Event) && fits(e.Kind, entry.Kind) && fits(e.Origin, entry.Origin) &&
		fits(e.Actor, entry.Actor) && fits(e.State, entry.State) && fits(e.Code, entry.Code) && fits(e.Reason, reason) && fits(e.Status, status)
}

func fits[T ~string](want, got T) bool { return want == "" || want == got }

// reasonOf is the reason and the status that an entry's event holds.
func reasonOf(entry agent.Entry) (string, agent.Status) {
	p, err := entry.Payload()
	if err != nil {
		return "", ""
	}
	switch p := p.(type) {
	case agent.TurnRefused:
		return p.Reason, ""
	case agent.Unreached:
		return p.Reason, ""
	case agent.Returned:
		return p.Reason, p.Status
	case agent.Observed:
		return p.Reason, p.Status
	case agent.Verified:
		return p.Reason, ""
	}
	return "", ""
}

// String is the event as it is written.
func (e ExpectEvent) String() string {
	var parts []string
	for _, p := range [][2]string{
		{"row", string(e.Row)}, {"event", string(e.Event)}, {"kind", string(e.Kind)}, {"origin", string(e.Origin)}, {"actor", e.Actor},
		{"state", string(e.State)}, {"code", e.Code}, {"reason", e.Reason}, {"status", string(e.Status)},
	} {
		if p[1] != "" {
			parts = append(parts, p[0]+": "+p[1])
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (e Expect) compareCalls(m *mismatches, x *facts) error {
	for i := range e.Calls {
		at := []string{"expect", "calls", strconv.Itoa(i)}
		if i >= len(x.calls) {
			m.at(fmt.Sprintf("a call of %q", e.Calls[i].Tool), "no such call", at...)
			continue
		}
		if err := e.Calls[i].compare(m, x, x.calls[i], at); err != nil {
			return err
		}
	}
	for i := len(e.Calls); e.Calls != nil && i < len(x.calls); i++ {
		c := x.calls[i]
		m.at(fmt.Sprintf("%d calls", len(e.Calls)), fmt.Sprintf("call %d, of %q (%s)", i+1, c.Tool, c.Status), "expect", "calls")
	}
	for i, tool := range e.NotSent {
		if n := slices.IndexFunc(x.calls, func(c Call) bool { return c.Tool == tool && c.Sent }); n >= 0 {
			m.at("no request to "+tool, fmt.Sprintf("call %d was one", n+1), "expect", "not_sent", strconv.Itoa(i))
		}
	}
	for i, tool := range e.NoCall {
		if n := slices.IndexFunc(x.calls, func(c Call) bool { return c.Tool == tool }); n >= 0 {
			m.at("no call of "+tool, fmt.Sprintf("call %d was one", n+1), "expect", "no_call", strconv.Itoa(i))
		}
	}
	return nil
}

func (e ExpectCall) compare(m *mismatches, x *facts, c Call, at []string) error {
	below := func(step string) []string { return append(at[:len(at):len(at)], step) }
	differs(m, e.Tool, c.Tool, below("tool")...)
	given(m, e.Status, c.Status, below("status")...)
	given(m, e.Class, c.Class, below("class")...)
	given(m, e.Reason, c.Reason, below("reason")...)
	if e.Sent != nil {
		differs(m, *e.Sent, c.Sent, below("sent")...)
	}
	if e.Approvers != nil && !slices.Equal(e.Approvers, c.Approvers) {
		m.at(joined(e.Approvers), joined(c.Approvers), below("approvers")...)
	}
	if e.Args == nil {
		return nil
	}
	want, err := strictjson.Canonical(*e.Args)
	if err != nil {
		return fmt.Errorf("read the arguments that are expected of call %s: %w", c.ID, err)
	}
	got := "none that are canonical"
	if !c.arguments.IsZero() {
		data, err := x.body(c.arguments)
		if err != nil {
			return fmt.Errorf("read the arguments of call %s: %w", c.ID, err)
		}
		got = string(data)
	}
	differs(m, string(want), got, below("args")...)
	return nil
}

// told looks at what the model was sent and what it answered.
func (e Expect) told(m *mismatches, x *facts) error {
	if e.Answer != nil {
		text, err := x.answer()
		if err != nil {
			return err
		}
		m.text(*e.Answer, text, "expect", "answer")
	}
	if e.Shown != nil {
		m.text(*e.Shown, strings.Join(x.shown, "\n"), "expect", "shown")
	}
	w := e.Model
	if w == nil {
		return nil
	}
	m.within(w.Requests, int64(len(x.heard)), "expect", "model", "requests")
	for i, text := range w.Contains {
		if !x.toldOf(text) {
			m.at(fmt.Sprintf("a request that contains %q", text), "none does", "expect", "model", "contains", strconv.Itoa(i))
		}
	}
	for i, text := range w.Lacks {
		if x.toldOf(text) {
			m.at(fmt.Sprintf("no request that contains %q", text), "one does", "expect", "model", "lacks", strconv.Itoa(i))
		}
	}
	for _, h := range x.heard {
		if w.Tools != nil && !slices.Equal(w.Tools, h.Tools) {
			m.at(joined(w.Tools), joined(h.Tools), "expect", "model", "tools")
			break
		}
	}
	return nil
}

// toldOf reports whether a request of the model held a text.
func (x *facts) toldOf(text string) bool {
	quoted, err := strictjson.Encode(text)
	inner := strings.Trim(string(quoted), `"`)
	twice, err2 := strictjson.Encode(inner) // a tool message is JSON within JSON
	return slices.ContainsFunc(x.heard, func(h heard) bool {
		return strings.Contains(h.Request, text) || err == nil && strings.Contains(h.Request, inner) ||
			err2 == nil && strings.Contains(h.Request, strings.Trim(string(twice), `"`))
	})
}

// answer is the model's last message, if the run has completed.
func (x *facts) answer() (string, error) {
	if x.run.Answer.IsZero() {
		return "", nil
	}
	data, err := x.body(x.run.Answer)
	if err != nil {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	var message struct{ Content string }
	if err := json.Unmarshal(data, &message); err != nil {
		return "", fmt.Errorf("read the answer: %w", err)
	}
	return message.Content, nil
}

func (e Expect) files(m *mismatches, x *facts) {
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		e.Files[name].compare(m, x.stage, x.stage.path(name), name, "expect", "files", name)
	}
	for _, folder := range slices.Sorted(maps.Keys(e.Only)) {
		got, err := x.stage.listing(folder)
		if err != nil {
			m.at(joined(e.Only[folder]), err.Error(), "expect", "only", folder)
			continue
		}
		if want := slices.Sorted(slices.Values(e.Only[folder])); !slices.Equal(want, got) {
			m.at(joined(want), joined(got), "expect", "only", folder)
		}
	}
}

// compare looks at one file; name is what the stage calls it.
func (f File) compare(m *mismatches, st *Stage, path, name string, at ...string) {
	below := func(step string) []string { return append(at[:len(at):len(at)], step) }
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && f.Absent:
		return
	case err != nil:
		m.at("a file", "it is not there", at...)
		return
	case f.Absent:
		m.at("no file", "it is there", below("absent")...)
		return
	}
	if mode := fmt.Sprintf("%#o", info.Mode().Perm()); f.Mode != "" && mode != f.Mode {
		m.at(f.Mode, mode, below("mode")...)
	}
	if !f.looksInside() {
		return
	}
	data, err := os.ReadFile(path)
	if err != nil {
		m.at("a file that can be read", "it cannot", at...)
		return
	}
	m.text(f.TextCheck, string(data), at...)
	given(m, f.SHA256, strictjson.Digest(data), below("sha256")...)
	m.within(f.Size, int64(len(data)), below("size")...)
	if !f.Unchanged {
		return
	}
	was, err := st.Scenario.Files[name].content(filepath.Dir(st.Scenario.File))
	if err != nil || !bytes.Equal(was, data) {
		m.at("as it was put there", "it has changed", below("unchanged")...)
	}
}

func (f File) looksInside() bool {
	return f.Equals != nil || len(f.Contains) > 0 || len(f.Lacks) > 0 || f.SHA256 != "" || f.Size != nil || f.Unchanged
}

// servers looks at what scripted servers noted.
func (e Expect) servers(m *mismatches, x *facts) error {
	for _, prefix := range slices.Sorted(maps.Keys(e.Servers)) {
		record, err := scriptserver.ReadRecord(x.stage.played(prefix))
		if err != nil {
			return fmt.Errorf("look at what server %q was sent: %w", prefix, err)
		}
		if err := e.Servers[prefix].compare(m, x.stage, record, prefix); err != nil {
			return err
		}
	}
	return nil
}

func (e ExpectServer) compare(m *mismatches, st *Stage, record []scriptserver.Entry, prefix string) error {
	at := func(steps ...string) []string { return append([]string{"expect", "servers", prefix}, steps...) }
	methods, calls, args := map[string]int64{}, map[string]int64{}, map[string][]string{}
	starts := int64(0)
	var all strings.Builder
	for _, r := range record {
		starts = max(starts, int64(r.Start))
		if r.Method != "" {
			methods[r.Method]++
			all.Write(r.Params)
			all.WriteByte('\n')
		}
		if r.Tool == "" {
			continue
		}
		calls[r.Tool]++
		var params struct {
			Arguments jsonText `json:"arguments"`
		}
		if err := json.Unmarshal(r.Params, &params); err != nil {
			return fmt.Errorf("read what server %q was sent: %w", prefix, err)
		}
		args[r.Tool] = append(args[r.Tool], string(params.Arguments))
	}
	m.within(e.Starts, starts, at("starts")...)
	for _, name := range slices.Sorted(maps.Keys(e.Methods)) {
		want := e.Methods[name]
		m.within(&want, methods[name], at("methods", name)...)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Calls)) {
		want := e.Calls[name]
		m.within(&want, calls[name], at("calls", name)...)
	}
	for _, name := range slices.Sorted(maps.Keys(e.Args)) {
		want := make([]string, len(e.Args[name]))
		for i, a := range e.Args[name] {
			text, err := strictjson.Canonical(a)
			if err != nil {
				return fmt.Errorf("read the arguments that are expected of tool %q: %w", name, err)
			}
			want[i] = string(text)
		}
		if !slices.Equal(want, args[name]) {
			m.at(strings.Join(want, "\n"), strings.Join(args[name], "\n"), at("args", name)...)
		}
	}
	m.text(TextCheck{Contains: e.Contains, Lacks: e.Lacks}, all.String(), at()...)
	for _, name := range slices.Sorted(maps.Keys(e.Files)) {
		path := filepath.Join(st.played(prefix), scriptserver.FilesDir, filepath.FromSlash(name))
		e.Files[name].compare(m, st, path, "", at("files", name)...)
	}
	return nil
}

// jsonText keeps a JSON value in its canonical form.
type jsonText string

// UnmarshalJSON keeps the value.
func (t *jsonText) UnmarshalJSON(data []byte) error {
	canonical, err := strictjson.Canonical(data)
	*t = jsonText(canonical)
	return err
}

func (e Expect) quarantined(m *mismatches, x *facts) {
	for _, tool := range slices.Sorted(maps.Keys(e.Quarantined)) {
		at := []string{"expect", "quarantined", tool}
		i := slices.IndexFunc(x.missing, func(p missing) bool { return p.Tool == tool })
		if i < 0 {
			m.at("it is not offered", "it is", at...)
			continue
		}
		m.text(TextCheck{Contains: Texts(e.Quarantined[tool])}, x.missing[i].Why, at...)
	}
}

// always looks at what every play must keep to: see [Expect].
func (x *facts) always(ctx context.Context, m *mismatches, e Expect) error {
	if want := len(x.stage.Scenario.Approvals); x.asked < want {
		m.at(fmt.Sprintf("%d candidates", want), fmt.Sprintf("%d came up", x.asked), "approvals")
	}
	if want := len(x.stage.Scenario.Faults); x.faults < want {
		m.at("the point is reached", "it was not", "faults", strconv.Itoa(x.faults))
	}
	for _, secret := range slices.Sorted(maps.Keys(x.secrets)) {
		if slices.ContainsFunc(x.heard, func(h heard) bool { return strings.Contains(h.Request, secret) }) {
			m.at("no request of the model that holds "+x.secrets[secret], "one does", "model")
		}
	}
	report, err := audit.Check(x.stage.Host.Engine.Journal(ctx, x.run.ID, 1, false), x.body)
	var broken *audit.Break
	switch {
	case errors.As(err, &broken):
		m.at("an audit that finds nothing broken", err.Error(), "audit")
	case err != nil:
		return fmt.Errorf("audit run %s: %w", x.run.ID, err)
	}
	if e.Findings != nil {
		var got []string
		for _, f := range report.Findings {
			if f.Open != audit.OpenScripted {
				got = append(got, string(f.Open))
			}
		}
		if !slices.Equal(e.Findings, got) {
			m.at(joined(e.Findings), joined(got), "expect", "findings")
		}
	}
	return nil
}
