package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"sallyport/agent"
	"sallyport/agent/debug"
	"sallyport/cmd/sallyport/terminal"
	"sallyport/nodes"
	"sallyport/scenarios"
	"sallyport/tools/strictjson"
)

func lookingVerbs() []verb {
	return []verb{
		{names: []string{"print", "p"}, args: "[PATH]", says: "show the value at a path, such as call.outcome.status; without one, list the paths", do: (*shell).value, complete: func(*shell) []string { return debug.Paths() }},
		{names: []string{"call"}, says: "show the call in hand with its arguments; where it waits, the candidate in full", do: (*shell).call},
		{names: []string{"outcome"}, says: "show what became of the call, and what came back", do: (*shell).outcome},
		{names: []string{"calls"}, says: "list the calls so far", do: (*shell).calls},
		{names: []string{"context"}, args: "[--diff]", says: "show exactly what the model was sent last, or is to be sent now; --diff: what is not as in the request before", do: (*shell).context, complete: func(*shell) []string { return []string{"--diff"} }},
		{names: []string{"body"}, args: "REF [FROM[-TO]]", says: "show stored content, by its reference, the beginning of its digest, or a path; by pages", do: (*shell).body, complete: (*shell).digests},
		{names: []string{"events"}, args: "[FROM [TO]|all]", says: "list entries of the journal, by sequence", do: (*shell).events},
		{names: []string{"grants"}, says: "show who has signed for the call in hand, and all that persons decided so far", do: (*shell).grants},
		{names: []string{"budget"}, says: "show what is used, and how much there is", do: (*shell).budget},
		{names: []string{"bt", "why"}, says: "say why the run is here: what led to this step", do: (*shell).backtrace},
		{names: []string{"list", "l"}, says: "show the state machine with the current state marked", do: (*shell).machine},
		{names: []string{"diff"}, args: "RUN_A [RUN_B]", says: "find the first step in which two runs differ; without B, this run and A", do: (*shell).diff, complete: (*shell).runIDs},
		{names: []string{"info"}, says: "say what run this is", do: (*shell).info},
	}
}

// moment is the one under the cursor.
func (sh *shell) moment() debug.Moment { return sh.session.Moment() }

// valueAt is the value at a path as JSON, on one line or indented.
func (sh *shell) valueAt(path string, indent bool) (string, error) {
	v, err := sh.moment().Value(path)
	if err != nil {
		return "", usage("list the paths with: print", "%w", err)
	}
	text, err := shownJSON(v, indent)
	if err != nil {
		return "", fmt.Errorf("show %s: %w", path, err)
	}
	return strings.TrimSuffix(text, "\n"), nil
}

func (sh *shell) value(_ context.Context, path string) error {
	if path == "" {
		for _, p := range debug.Paths() {
			sh.print("%s\n", p)
		}
		return nil
	}
	text, err := sh.valueAt(path, true)
	if err == nil {
		sh.print("%s\n", text)
	}
	return err
}

// inHand is the call that the step is about; nil if it is about none.
func (sh *shell) inHand() *agent.Call {
	m := sh.moment()
	if m.Run.Call != nil && (m.Was.Call == nil || m.Was.Call.ID == m.Run.Call.ID) {
		return m.Run.Call
	}
	if m.Was.Call != nil {
		return m.Was.Call
	}
	return nil
}

// noCall says that a step is about no call.
func (sh *shell) noCall() error {
	sh.print("No call is in hand at this step.\n")
	return nil
}

func (sh *shell) call(ctx context.Context, _ string) error {
	m := sh.moment()
	c := m.Run.Call
	if c == nil {
		c = m.Was.Call
	}
	if c == nil {
		return sh.noCall()
	}
	if m.Run.State == agent.StateAwaitingApproval && c.Candidate != nil {
		return sh.app.atDesk(m.Run.ID, "", func(d *desk) error {
			p, err := d.candidate(ctx, m.Run)
			if err != nil {
				return sh.erased(err)
			}
			return p.Write(sh.out, sh.app.width())
		})
	}
	tool, known := m.Run.Spec.Tool(c.Proposal.Tool)
	name := tool.Name
	if !known {
		name = "(none that the run has)"
	}
	rows := [][]string{{"tool", name}, {"risk", string(tool.Risk)}, {"call", c.ID}, {"sent", strconv.FormatBool(c.Sent)}}
	if c.Carried > 0 {
		rows = append(rows, []string{"carried over", fmt.Sprintf("from entry %d of run %s", c.Carried, m.Run.Spec.Fork.Run)})
	}
	if tool.Approvers > 0 {
		rows = append(rows, []string{"signatures", fmt.Sprintf("%d of %d", len(c.Grants), tool.Approvers)})
	}
	if c.Candidate != nil {
		rows = append(rows, []string{"candidate", c.Candidate.ID})
	}
	sh.table(rows)
	return sh.arguments(ctx, c)
}

// arguments shows those that are sent, or as the model sent them.
func (sh *shell) arguments(ctx context.Context, c *agent.Call) error {
	if !c.Arguments.IsZero() {
		by := "canonical"
		if c.Edited {
			by = "a person's"
		}
		return sh.content(ctx, fmt.Sprintf("arguments (%s), %s", by, c.Arguments), c.Arguments)
	}
	data, err := sh.session.Body(ctx, c.Proposal.Body)
	if err != nil {
		return sh.erased(err)
	}
	var p agent.ProposalBody
	if err := strictjson.Decode(data, &p); err != nil {
		return fmt.Errorf("read the proposal: %w", err)
	}
	sh.print("arguments as the model sent them for %s (untrusted):\n", terminal.Line(p.Name))
	return terminal.Untrusted(sh.out, p.Arguments, sh.app.width())
}

// content shows the beginning of a body.
func (sh *shell) content(ctx context.Context, what string, ref agent.BodyRef) error {
	data, err := sh.session.Body(ctx, ref)
	if err != nil {
		return sh.erased(err)
	}
	sh.print("%s (untrusted):\n", what)
	return sh.page(ref, data, 0, int64(len(data)))
}

// erased says that content is gone for good, which is no failure.
func (sh *shell) erased(err error) error {
	if !wasErased(err) {
		return err
	}
	sh.print("%s\n", terminal.Line(err.Error()))
	return nil
}

// bodyPage is how much of a body is shown at once, in bytes.
const bodyPage = 4096

// page shows a part of a body, and how to go on.
func (sh *shell) page(ref agent.BodyRef, data []byte, from, to int64) error {
	end := min(to, int64(len(data)), from+bodyPage)
	if err := terminal.Untrusted(sh.out, string(data[from:end]), sh.app.width()); err != nil {
		return err
	}
	if end < min(to, int64(len(data))) {
		sh.print("Bytes %d to %d of %d. Go on with: body %s %d\n", from, end, len(data), ref.SHA256[:12], end)
	}
	return nil
}

func (sh *shell) body(ctx context.Context, args string) error {
	name, within, _ := strings.Cut(args, " ")
	if name == "" {
		return usage("name one: bodies stand in events and paths, such as call.arguments", "body: no reference")
	}
	ref, err := sh.reference(ctx, name)
	if err != nil {
		return err
	}
	data, err := sh.session.Body(ctx, ref)
	if err != nil {
		return sh.erased(err)
	}
	from, to, err := span(strings.TrimSpace(within), int64(len(data)))
	if err != nil {
		return err
	}
	sh.print("%s (untrusted):\n", ref)
	return sh.page(ref, data, from, to)
}

// span reads FROM or FROM-TO, in bytes.
func span(text string, size int64) (from, to int64, err error) {
	if text == "" {
		return 0, size, nil
	}
	first, last, both := strings.Cut(text, "-")
	from, err1 := strconv.ParseInt(first, 10, 64)
	to, err2 := size, error(nil)
	if both {
		to, err2 = strconv.ParseInt(last, 10, 64)
	}
	if err1 != nil || err2 != nil || from < 0 || to < from || from > size {
		return 0, 0, usage("", "body: %q: want bytes between 0 and %d, such as 0-100", text, size)
	}
	return from, min(to, size), nil
}

// reference finds a body by its reference, by the beginning of its digest, or by the path
// of its reference.
func (sh *shell) reference(ctx context.Context, name string) (agent.BodyRef, error) {
	if v, err := sh.moment().Value(name); err == nil {
		return referenceIn(name, v)
	}
	digest, _, _ := strings.Cut(strings.TrimPrefix(name, "sha256:"), "#")
	all, err := sh.bodies(ctx)
	if err != nil {
		return agent.BodyRef{}, err
	}
	var found []agent.BodyRef
	for _, ref := range all {
		if len(digest) >= 4 && strings.HasPrefix(ref.SHA256, digest) {
			found = append(found, ref)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return agent.BodyRef{}, usage("give four digits or more of a digest that an event names, or a path", "body %q: the run names no such content", name)
	}
	return agent.BodyRef{}, usage("give more digits", "body %q: there are %d", name, len(found))
}

func referenceIn(path string, v any) (agent.BodyRef, error) {
	var ref agent.BodyRef
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &ref)
	}
	if err != nil || len(ref.SHA256) != 64 {
		return ref, usage("", "body %s: there is no reference", path)
	}
	return ref, nil
}

// bodies are all that the run names, each once, in their order.
func (sh *shell) bodies(ctx context.Context) ([]agent.BodyRef, error) {
	var all []agent.BodyRef
	seen := map[agent.BodyRef]bool{{}: true}
	for e, err := range sh.session.Entries(ctx, 1, sh.session.Last().Seq) {
		if err != nil {
			return nil, err
		}
		refs, err := e.Bodies()
		if err != nil {
			return nil, err
		}
		for _, ref := range refs {
			if !seen[ref] {
				seen[ref] = true
				all = append(all, ref)
			}
		}
	}
	return all, nil
}

// digests complete the references of bodies.
func (sh *shell) digests() (out []string) {
	all, err := sh.bodies(context.Background())
	if err != nil {
		return nil // a completion has nowhere to say so
	}
	for _, ref := range all {
		out = append(out, ref.SHA256[:12])
	}
	return append(out, "call.arguments", "call.outcome.body", "run.answer")
}

func (sh *shell) outcome(ctx context.Context, _ string) error {
	m := sh.moment()
	c := sh.inHand()
	if c == nil || c.Outcome == nil && m.Entry.Event != agent.KindReturned {
		if c == nil {
			return sh.noCall()
		}
		sh.print("There is no outcome yet: the call is %s.\n", m.Run.State)
		return nil
	}
	out := *c.Outcome
	rows := [][]string{
		{"status", string(out.Status)}, {"class", string(out.Class)}, {"reason", out.Reason}, {"sent", strconv.FormatBool(out.Sent)}, {"request", out.Request},
	}
	payload, err := m.Entry.Payload()
	if err != nil {
		return err
	}
	told, observed := payload.(agent.Observed)
	if observed {
		rows = append(rows, []string{"observed", outcome(told.Status, told.Class, told.Reason)})
	}
	sh.table(slices.DeleteFunc(rows, func(r []string) bool { return r[1] == "" }))
	if !out.Body.IsZero() {
		if err := sh.content(ctx, fmt.Sprintf("what came back, %s", out.Body), out.Body); err != nil {
			return err
		}
	}
	if observed && !told.Message.IsZero() {
		return sh.content(ctx, fmt.Sprintf("what the model is told, %s", told.Message), told.Message)
	}
	return nil
}

func (sh *shell) calls(context.Context, string) error {
	rows := [][]string{{"STEPS", "TOOL", "RISK", "STATUS", "CLASS", ""}}
	for _, c := range sh.session.Calls(sh.moment().Step) {
		steps := fmt.Sprintf("%d-", c.First)
		if c.Last > 0 {
			steps += fmt.Sprint(c.Last)
		}
		notes := []string{c.Reason}
		for note, is := range map[string]bool{"edited": c.Edited, "settled": c.Settled, "substituted": c.Substituted, "sent": c.Sent} {
			if is {
				notes = append(notes, note)
			}
		}
		slices.Sort(notes)
		if c.Carried > 0 {
			notes = append(notes, fmt.Sprintf("carried over from entry %d", c.Carried))
		}
		rows = append(rows, []string{steps, c.Tool, string(c.Risk), string(c.Status), string(c.Class), strings.TrimSpace(strings.Join(notes, " "))})
	}
	if len(rows) == 1 {
		sh.print("There are no calls yet.\n")
		return nil
	}
	sh.table(rows)
	return nil
}

// context shows the request that the model was sent last, up to the step.
func (sh *shell) context(ctx context.Context, args string) error {
	if args != "" && args != "--diff" {
		return usage("", "context %s: the only flag is --diff", args)
	}
	step := sh.session.Asked(sh.moment().Step)
	if step == 0 {
		sh.print("The model has not been asked yet.\n")
		return nil
	}
	messages, err := sh.messages(ctx, step)
	if err != nil {
		return sh.erased(err)
	}
	var before []nodes.Message
	if args != "" {
		if earlier := sh.session.Asked(step - 1); earlier > 0 {
			if before, err = sh.messages(ctx, earlier); err != nil {
				return sh.erased(err)
			}
		}
	}
	when := "was sent"
	if open := sh.moment().Run.Open; open != nil && open.Kind == agent.Ask && sh.moment().Step == sh.session.Steps() {
		when = "is to be sent"
	}
	same := 0
	for same < len(before) && same < len(messages) && equalMessages(before[same], messages[same]) {
		same++
	}
	sh.print("What the model %s, as of step %d: %d messages", when, step, len(messages))
	if args != "" {
		sh.print(", of which the first %d are as in the request before", same)
	}
	sh.print(".\n")
	for i, m := range messages {
		mark := ""
		switch {
		case args == "":
		case i < same:
			continue
		case i < len(before) && equalMessages(before[i], m):
			continue
		case i < len(before):
			mark = "~ "
		default:
			mark = "+ "
		}
		if err := sh.message(mark, i, m); err != nil {
			return err
		}
	}
	return nil
}

func equalMessages(a, b nodes.Message) bool {
	one, err1 := json.Marshal(a)
	two, err2 := json.Marshal(b)
	return err1 == nil && err2 == nil && bytes.Equal(one, two)
}

func (sh *shell) message(mark string, i int, m nodes.Message) error {
	answers := ""
	if m.ToolCallID != "" {
		answers = ", answers " + terminal.Line(m.ToolCallID)
	}
	sh.print("%s[%d] %s%s\n", mark, i+1, m.Role, answers)
	if m.Content != "" {
		if err := terminal.Untrusted(sh.out, m.Content, sh.app.width()); err != nil {
			return err
		}
	}
	for _, c := range m.ToolCalls {
		sh.print("  calls %s (%s)\n", terminal.Line(c.Name), terminal.Line(c.ID))
		if err := terminal.Untrusted(sh.out, c.Arguments, sh.app.width()); err != nil {
			return err
		}
	}
	return nil
}

// messages are those of the request that a step asked with.
func (sh *shell) messages(ctx context.Context, step int) ([]nodes.Message, error) {
	setup, err := scenarios.ReadSetup(ctx, sh.engine, sh.session.Last())
	if err != nil {
		return nil, err
	}
	return debug.Context(ctx, sh.session, step, func(entries iter.Seq2[agent.Entry, error]) ([]nodes.Message, error) {
		body := func(ref agent.BodyRef) ([]byte, error) { return sh.session.Body(ctx, ref) }
		return nodes.Context(nodes.SystemText(setup.System), setup.Window, entries, body)
	})
}

// around is how many entries are shown before and behind the cursor.
const around = 8

func (sh *shell) events(ctx context.Context, args string) error {
	at := sh.moment().Seq
	from, to := max(1, at-around), at+around
	switch words := strings.Fields(args); {
	case args == "all":
		from, to = 1, sh.session.Last().Seq
	case len(words) > 0:
		var err1, err2 error
		from, err1 = strconv.ParseInt(words[0], 10, 64)
		to = from + 2*around
		if len(words) > 1 {
			to, err2 = strconv.ParseInt(words[1], 10, 64)
		}
		if err1 != nil || err2 != nil || from < 1 || len(words) > 2 {
			return usage("", "events %q: want sequences from 1, or all", args)
		}
	}
	for e, err := range sh.session.Entries(ctx, from, to) {
		if err != nil {
			return err
		}
		mark := "  "
		if e.Seq == at {
			mark = "=>"
		}
		sh.print("%s %s\n", mark, entryLine(e))
	}
	return ctx.Err()
}

func (sh *shell) grants(context.Context, string) error {
	m := sh.moment()
	if c := m.Run.Call; c != nil && len(c.Grants) > 0 {
		rows := [][]string{{"APPROVER", "KEY", "USABLE UNTIL"}}
		for _, g := range c.Grants {
			rows = append(rows, []string{g.Approver, g.Key, clock(fromUnix(g.Expires))})
		}
		sh.table(rows)
	} else {
		sh.print("Nobody has signed for the call in hand.\n")
	}
	rows := [][]string{{"STEP", "DECISION", "BY", "TOOL", "CANDIDATE"}}
	for _, d := range sh.session.Decisions(m.Step) {
		rows = append(rows, []string{fmt.Sprint(d.Step), string(d.Row), d.By, d.Tool, d.Candidate})
	}
	if len(rows) > 1 {
		sh.table(rows)
	}
	return nil
}

func (sh *shell) budget(context.Context, string) error {
	run := sh.moment().Run
	rows := [][]string{{"BUDGET", "USED", "LIMIT"}}
	for _, r := range budgetRows(spentBudget(run.Used), run.Budget, run.Spec.Prices) {
		rows = append(rows, r.cells())
	}
	sh.table(rows)
	return nil
}

func (sh *shell) backtrace(ctx context.Context, _ string) error {
	chain, err := sh.session.Causes(ctx, sh.moment().Step)
	if err != nil {
		return err
	}
	var rows [][]string
	for i, c := range chain {
		rows = append(rows, []string{fmt.Sprintf("#%d", i), fmt.Sprintf("step %d", c.Step), fmt.Sprintf("seq %d", c.Entry.Seq), c.Word, detail(c.Entry), c.Says})
	}
	sh.table(rows)
	return nil
}

func (sh *shell) machine(context.Context, string) error {
	sh.print("%s", debug.Machine(sh.moment()))
	return nil
}

func (sh *shell) diff(ctx context.Context, args string) error {
	ids := strings.Fields(args)
	if len(ids) < 1 || len(ids) > 2 {
		return usage("list the runs with: runs", "diff: want one run, or two")
	}
	if len(ids) == 1 {
		ids = []string{sh.session.ID(), ids[0]}
	}
	var sessions []*debug.Session
	for _, id := range ids {
		if err := agent.CheckRunID(id); err != nil {
			return usage("", "%w", err)
		}
		s, err := debug.Open(ctx, sh.engine, id)
		if err != nil {
			return err
		}
		sessions = append(sessions, s)
	}
	d, err := debug.Diff(ctx, sessions[0], sessions[1])
	if err != nil {
		return err
	}
	for _, f := range d.Pinned {
		sh.print("begun with another %s: %s and %s\n", terminal.Line(f.Path), terminal.Line(f.A), terminal.Line(f.B))
	}
	if d.Same {
		sh.print("Runs %s and %s are the same in all of their %d compared steps.\n", ids[0], ids[1], d.Equal)
		return nil
	}
	sh.print("After %d steps that are the same, they differ:\n", d.Equal)
	for i, m := range []*debug.Moment{d.A, d.B} {
		if m == nil {
			sh.print("%s: no further step\n", ids[i])
			continue
		}
		sh.print("%s: %s\n%s\n", ids[i], m.Position, entryLine(m.Entry))
	}
	for _, f := range d.Fields {
		sh.print("  %s: %s and %s\n", terminal.Line(f.Path), terminal.Line(absent(f.A)), terminal.Line(absent(f.B)))
	}
	return nil
}

func absent(text string) string {
	if text == "" {
		return "(nothing)"
	}
	return text
}

func (sh *shell) info(context.Context, string) error {
	run := sh.session.Last()
	first := sh.session.Mark(1)
	rows := [][]string{{"run", run.ID}, {"state", stateWords(run)}}
	if run.Held {
		rows = append(rows, []string{"paused", "yes"})
	}
	rows = append(rows, []string{"begun", clock(first.Time) + " by " + run.Operator}, []string{"model", run.Spec.Model},
		[]string{"steps", fmt.Sprintf("%d, to entry %d", sh.session.Steps(), run.Seq)}, []string{"tools", strings.Join(sh.session.Known(debug.OnTool), ", ")},
		[]string{"approvers", strings.Join(approverNames(run), ", ")})
	if f := run.Spec.Fork; f != nil {
		rows = append(rows, []string{"fork of", fmt.Sprintf("%s, from its entry %d; %s", f.Run, f.Seq, carriedOver(run.Carried.Calls))})
	}
	acts := "a step at the end lets the run go on"
	if sh.readOnly {
		acts = "nothing acts on the run"
	}
	sh.table(append(rows, []string{"debugger", acts}))
	return nil
}
