package scenarios

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/nodes/llm"
	"sallyport/scenarios/config"
	"sallyport/tools"
	"sallyport/tools/strictjson"
)

// Written is a scenario that was written down from a run.
type Written struct {
	YAML []byte
	// Notes say what of the run it cannot say. With any of them, it may not hold.
	Notes []string
}

// ErrNotWritable: the run is none that a scenario can be written of.
var ErrNotWritable = errors.New("no scenario can be written of this run")

// FromRun writes a scenario of a run: the task, the documents that the run read, the
// model's turns as a script, the decisions, and what came of it. configuration is the
// path of the run's configuration from where the scenario will lie; empty leaves it out.
func FromRun(ctx context.Context, e agent.Engine, id, configuration string) (Written, error) {
	run, entries, err := Load(ctx, e, id)
	if err != nil {
		return Written{}, err
	}
	if run.Spec.Fork != nil {
		return Written{}, fmt.Errorf("write a scenario of run %s: it is a fork of %s, and a scenario begins at the beginning: %w", id, run.Spec.Fork.Run, ErrNotWritable)
	}
	setup, err := ReadSetup(ctx, e, run)
	if err != nil {
		return Written{}, err
	}
	w := &writer{
		run: run, entries: entries, setup: setup, files: map[string]string{}, saved: map[string]string{},
		body: func(ref agent.BodyRef) ([]byte, error) { return e.Body(ctx, run.ID, ref) },
	}
	if err := w.read(); err != nil {
		return Written{}, fmt.Errorf("write a scenario of run %s: %w", id, err)
	}
	return w.written(configuration)
}

// writer turns a run into a scenario.
type writer struct {
	run     agent.Run
	entries []agent.Entry
	setup   Setup
	body    func(agent.BodyRef) ([]byte, error)

	task      string
	turns     []string          // the script, an item each
	approvals []string          // an item each
	calls     []Call            // as the journal tells them
	files     map[string]string // that were read, or must have been there
	searched  []string          // that were only found
	saved     map[string]string
	last      agent.Status // of the last tool message; empty if another came last
	notes     []string
	unclear   bool // a candidate waits for its decision
	missed    bool // an attempt gave no turn: the script counts otherwise than turns
}

func (w *writer) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.notes, text) {
		w.notes = append(w.notes, text)
	}
}

// read takes in the journal.
func (w *writer) read() error {
	task, err := w.body(w.run.Spec.Task)
	if err != nil {
		return fmt.Errorf("read the task: %w", err)
	}
	w.task = string(task)
	if w.calls, err = Calls(w.entries); err != nil {
		return err
	}
	var run agent.Run
	for _, e := range w.entries {
		before := run
		if run, err = agent.Apply(run, e); err != nil {
			return err
		}
		if e.Kind != agent.EntryEvent {
			continue
		}
		if err := w.entry(before, e); err != nil {
			return fmt.Errorf("entry %d: %w", e.Seq, err)
		}
	}
	if w.unclear {
		w.approvals = append(w.approvals, string(VerbWait))
	}
	return w.workspace()
}

// entry takes in one event that came to the run as it was before.
func (w *writer) entry(before agent.Run, e agent.Entry) error {
	p, err := e.Payload()
	if err != nil {
		return err
	}
	if e.Row == agent.RowApprovalRequired {
		w.unclear = true
	}
	switch p := p.(type) {
	case agent.Turned:
		return w.turned(e, p)
	case agent.TurnRefused:
		w.refusedTurn(p)
	case agent.Unreached:
		w.missed = true
		w.turns = append(w.turns, fmt.Sprintf("unavailable: {reason: %s, after: %ds, final: %t}", p.Reason, p.After, p.Final))
	case agent.Observed:
		if !p.Message.IsZero() {
			w.last = p.Status
			return w.evidence(before, p)
		}
	case agent.Refuse:
		w.decided(string(VerbReject))
	case agent.Edit:
		return w.edited(p)
	case agent.Approve:
		if e.Row == agent.RowGranted {
			w.decided(string(VerbApprove))
		}
	case agent.Attest:
		w.note("entry %d: a person said what became of a write", e.Seq)
	case agent.Pause, agent.Resume, agent.StepOnce, agent.Extend, agent.Cancel, agent.Substitute:
		w.note("entry %d: the operator said %s", e.Seq, e.Event)
	}
	switch e.Row {
	case agent.RowExpired:
		w.unclear = false
		w.note("entry %d: nobody decided in time", e.Seq)
	case agent.RowOutcomeUnknown:
		w.note("entry %d: nobody knew what became of a write", e.Seq)
	}
	return nil
}

func (w *writer) decided(word string) {
	w.approvals, w.unclear = append(w.approvals, word), false
}

// edited writes down the arguments of a person.
func (w *writer) edited(p agent.Edit) error {
	data, err := w.body(p.Arguments)
	if err != nil {
		return fmt.Errorf("read the edited arguments: %w", err)
	}
	args, err := flow(data)
	if err != nil {
		return err
	}
	w.decided("{do: edit, args: " + args + "}")
	return nil
}

// turned writes a turn down as it was.
func (w *writer) turned(e agent.Entry, p agent.Turned) error {
	data, err := w.body(p.Message)
	if err != nil {
		return fmt.Errorf("read the model's turn: %w", err)
	}
	var m nodes.Message
	if err := strictjson.Decode(data, &m); err != nil {
		return fmt.Errorf("read the model's turn: %w", err)
	}
	if len(m.Vendor) > 0 {
		w.note("the model's reasoning is left out")
	}
	var lines []string
	if w.last != "" {
		lines = append(lines, fmt.Sprintf("expect_message: {status: %s}", w.last))
	}
	if m.Content != "" || len(m.ToolCalls) == 0 {
		lines = append(lines, "say: "+w.text(m.Content, "        "))
	}
	if len(m.ToolCalls) > 0 {
		lines = append(lines, "calls:")
	}
	for i, c := range m.ToolCalls {
		lines = append(lines, "  - "+w.call(e, i, c))
	}
	lines = append(lines, usageLine(p.Usage)...)
	w.turn(lines)
	return nil
}

// turn adds a turn to the script.
func (w *writer) turn(lines []string) {
	w.turns = append(w.turns, strings.Join(lines, "\n"))
	w.last = ""
}

func usageLine(u agent.Usage) []string {
	if u.Input == 0 && u.Output == 0 {
		return nil
	}
	return []string{fmt.Sprintf("usage: {input: %d, output: %d}", u.Input, u.Output)}
}

// call is a tool call with its exact arguments.
func (w *writer) call(e agent.Entry, i int, c nodes.ToolCall) string {
	members := []string{"tool: " + w.quote(c.Name), "arguments: " + w.quote(c.Arguments)}
	switch {
	case !w.missed && c.ID == fmt.Sprintf("call_%d_%d", w.number(), i): // as a script makes it
	case c.ID == hostID(e, i):
		members = append(members, `id: ""`)
	default:
		members = append(members, "id: "+w.quote(c.ID))
	}
	if pin, known := w.run.Spec.Tool(c.Name); !known || pin.HostOnly {
		members = append(members, "offered: false")
	}
	return "{" + strings.Join(members, ", ") + "}"
}

// number is the position of the turn that is written, as a script counts.
func (w *writer) number() int { return len(w.turns) + 1 }

// hostID is the id that the Host makes for a call without one: see package nodes.
func hostID(e agent.Entry, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "model call\x00%s\x00%d\x00%d", e.Run, e.Effect, i))
	return "call_" + hex.EncodeToString(sum[:12])
}

// finishes are how turns end that are refused for their end.
var finishes = map[string]string{
	"unfinished": llm.FinishNone, "cut_off": nodes.FinishLength, "filtered": nodes.FinishFilter, "unknown_finish": "unknown",
}

// refusedTurn writes down a turn that did not count. What the model had said is not
// kept, so that another text stands for it.
func (w *writer) refusedTurn(p agent.TurnRefused) {
	lines := []string{`say: "(what it said was not kept)"`}
	switch finish, known := finishes[p.Reason]; {
	case known:
		lines = append(lines, "finish: "+finish)
	case p.Reason == "empty":
		lines = []string{`say: ""`}
	default:
		w.note("a turn was refused as %q, and what the model had said is not kept", p.Reason)
		lines = append(lines, "finish: unknown")
	}
	w.turn(append(lines, usageLine(p.Usage)...))
}

// evidence takes the documents out of what our document server answered.
func (w *writer) evidence(run agent.Run, p agent.Observed) error {
	if run.Call == nil || p.Status != agent.StatusOK || p.Evidence.IsZero() {
		return nil
	}
	pin, _ := w.run.Spec.Tool(run.Call.Proposal.Tool)
	if !w.documents(pin.Server) {
		return nil
	}
	data, err := w.body(p.Evidence)
	if err != nil {
		return fmt.Errorf("read what a tool answered: %w", err)
	}
	switch pin.Remote {
	case "read_document":
		var found struct {
			Filename string `json:"filename"`
			Content  string `json:"content"`
		}
		if err := strictjson.Decode(data, &found); err != nil {
			return fmt.Errorf("read a document: %w", err)
		}
		name := "sources/" + found.Filename
		if was, again := w.files[name]; again && was != found.Content {
			w.note("%s was changed while the run went on", name)
		}
		w.files[name] = found.Content
	case "search_documents":
		var found struct {
			Hits []struct {
				Filename string `json:"filename"`
			} `json:"hits"`
		}
		if err := json.Unmarshal(data, &found); err != nil {
			return fmt.Errorf("read what a search found: %w", err)
		}
		for _, h := range found.Hits {
			w.searched = append(w.searched, "sources/"+h.Filename)
		}
	}
	return nil
}

// documents reports whether a server is our document server.
func (w *writer) documents(prefix string) bool {
	return slices.ContainsFunc(w.setup.Servers, func(s tools.Server) bool { return s.Prefix == prefix && s.Builtin == tools.BuiltinDocs })
}

// workspace finds out what was saved, and what must have been there before.
func (w *writer) workspace() error {
	for _, c := range w.calls {
		pin, _ := w.run.Spec.Tool(c.Tool)
		if pin.Remote != "save_report" || !w.documents(pin.Server) || !c.Sent {
			continue
		}
		data, err := w.body(c.arguments)
		if err != nil {
			return fmt.Errorf("read what was saved: %w", err)
		}
		var args struct {
			Filename string `json:"filename"`
			Content  string `json:"content"`
		}
		if err := json.Unmarshal(data, &args); err != nil {
			return fmt.Errorf("read what was saved: %w", err)
		}
		name := "reports/" + args.Filename
		switch _, before := w.saved[name]; {
		case c.Status == agent.StatusOK:
			w.saved[name] = args.Content
		case c.Status == agent.StatusRejected && !before:
			w.files[name] = "(it was there before, and its content is not known)\n"
			w.note("%s was there before the run, with a content that is not known", name)
		}
	}
	return nil
}

// quote is a text on one line.
func (w *writer) quote(text string) string {
	out, ok := quoted(text)
	if !ok {
		w.note("a text is not UTF-8")
	}
	return out
}

// text is a text, over several lines if that is plain to read.
func (w *writer) text(text, indent string) string {
	out, ok := block(text, indent)
	if !ok {
		w.note("a text is not UTF-8")
	}
	return out
}

// written puts the file together.
func (w *writer) written(configuration string) (Written, error) {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Written down from run %s; the model was %s.", w.run.ID, oneLine(w.run.Spec.Model))
	if configuration == "" {
		line("# Its servers and tools are those of the run's configuration: put it beside that.")
	}
	w.only()
	w.limits()
	for _, n := range w.notes {
		line("# NOT SAID HERE: %s.", oneLine(n))
	}
	line("scenario: %s", w.quote("As run "+w.run.ID+" went"))
	if configuration != "" {
		line("config: %s", w.quote(configuration))
	}
	line("task: %s", w.text(w.task, "  "))
	w.section(&b, "files", w.files)
	w.model(&b)
	w.budgets(&b)
	if len(w.approvals) > 0 {
		line("approvals:")
		for _, a := range w.approvals {
			line("  - %s", a)
		}
	}
	w.expect(&b)
	data := []byte(b.String())
	if _, err := config.ParseFile("scenario.yaml", data); err != nil {
		return Written{}, fmt.Errorf("write a scenario of run %s: %w: %w", w.run.ID, ErrNotWritable, err)
	}
	return Written{YAML: data, Notes: w.notes}, nil
}

// oneLine is a text for a comment.
func oneLine(text string) string {
	shown, _ := tools.Visible(text)
	return shown
}

// only notes the documents of which no more than a part was seen.
func (w *writer) only() {
	for _, name := range slices.Compact(slices.Sorted(slices.Values(w.searched))) {
		if _, read := w.files[name]; !read {
			w.note("%s was only found by a search; its content is not known", name)
		}
	}
}

// section writes texts by name.
func (w *writer) section(b *strings.Builder, key string, texts map[string]string) {
	if len(texts) == 0 {
		return
	}
	fmt.Fprintf(b, "%s:\n", key)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		fmt.Fprintf(b, "  %s: %s\n", w.quote(name), w.text(texts[name], "    "))
	}
}

func (w *writer) model(b *strings.Builder) {
	b.WriteString("model:\n")
	if w.setup.OpenBody {
		b.WriteString("  open_body: true\n")
	}
	if win := w.setup.Window; win != (nodes.Window{}) {
		var parts []string
		if win.Bytes != 0 {
			parts = append(parts, fmt.Sprintf("bytes: %d", win.Bytes))
		}
		if win.Tokens != 0 {
			parts = append(parts, fmt.Sprintf("tokens: %d", win.Tokens))
		}
		fmt.Fprintf(b, "  context: {%s}\n", strings.Join(parts, ", "))
	}
	if p := w.run.Spec.Prices; p != nil {
		fmt.Fprintf(b, "  prices: {currency: %s, input: %s, cached: %s, output: %s}\n", p.Currency,
			config.Amount(p.Input), config.Amount(p.Cached), config.Amount(p.Output))
	}
	b.WriteString("  script:\n")
	for _, t := range w.turns {
		b.WriteString("    - " + strings.ReplaceAll(t, "\n", "\n      ") + "\n")
	}
	if len(w.turns) == 0 {
		b.WriteString("    - say: \"\"\n")
	}
}

// limits notes the budgets that a scenario cannot have.
func (w *writer) limits() {
	b, most := w.run.Spec.Budget, agent.DefaultBudget
	if b.Calls > most.Calls || b.Turns > most.Turns || b.Tokens > most.Tokens || b.Wall > most.Wall {
		w.note("the run had higher budgets than a scenario has")
	}
}

func (w *writer) budgets(b *strings.Builder) {
	has, most := w.run.Spec.Budget, agent.DefaultBudget
	var parts []string
	add := func(lower bool, format string, n any) {
		if lower {
			parts = append(parts, fmt.Sprintf(format, n))
		}
	}
	add(has.Calls < most.Calls, "tool_calls: %d", has.Calls)
	add(has.Turns < most.Turns, "model_turns: %d", has.Turns)
	add(has.Tokens < most.Tokens, "tokens: %d", has.Tokens)
	add(has.Wall < most.Wall, "wall_time: %ds", has.Wall)
	add(has.Cost > 0, "cost: %s", config.Amount(has.Cost))
	if len(parts) > 0 {
		fmt.Fprintf(b, "budgets: {%s}\n", strings.Join(parts, ", "))
	}
}

func (w *writer) expect(b *strings.Builder) {
	fmt.Fprintf(b, "expect:\n  state: %s\n", w.run.State)
	if w.run.Reason != "" {
		fmt.Fprintf(b, "  reason: %s\n", w.quote(w.run.Reason))
	}
	if len(w.calls) > 0 {
		b.WriteString("  calls:\n")
	}
	for _, c := range w.calls {
		var parts []string
		if c.Tool != "" {
			parts = append(parts, "tool: "+c.Tool)
		}
		if c.Status != "" {
			parts = append(parts, fmt.Sprintf("status: %s", c.Status))
		}
		if c.Class != "" {
			parts = append(parts, fmt.Sprintf("class: %s", c.Class))
		}
		if c.Reason != "" {
			parts = append(parts, "reason: "+w.quote(c.Reason))
		}
		parts = append(parts, fmt.Sprintf("sent: %t", c.Sent))
		fmt.Fprintf(b, "    - {%s}\n", strings.Join(parts, ", "))
	}
	if len(w.saved) == 0 {
		return
	}
	b.WriteString("  files:\n")
	for _, name := range slices.Sorted(maps.Keys(w.saved)) {
		fmt.Fprintf(b, "    %s:\n      equals: %s\n", w.quote(name), w.text(w.saved[name], "        "))
	}
}
