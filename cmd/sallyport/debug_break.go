package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sallyport/agent/debug"
	"sallyport/cmd/sallyport/terminal"
)

func breakpointVerbs() []verb {
	return []verb{
		{names: []string{"break", "b"}, args: "SUBJECT VALUE [if CONDITION]", says: breakHelp, do: (*shell).breakAt, complete: (*shell).breakWords},
		{names: []string{"tbreak"}, args: "SUBJECT VALUE [if CONDITION]", says: "break once", do: (*shell).breakOnce, complete: (*shell).breakWords},
		{names: []string{"watch"}, args: "PATH [if CONDITION]", says: "stop where the value at a path changes", do: (*shell).watch, complete: func(*shell) []string { return debug.Paths() }},
		{names: []string{"condition"}, args: "N [CONDITION]", says: "give a breakpoint a condition, or none", do: (*shell).condition},
		{names: []string{"breakpoints", "bl"}, says: "list the breakpoints", do: (*shell).list},
		{names: []string{"clear"}, args: "N|all", says: "remove a breakpoint", do: (*shell).clear},
		{names: []string{"disable"}, args: "N", says: "let a breakpoint stop nothing", do: func(sh *shell, _ context.Context, args string) error { return sh.turn(args, true) }},
		{names: []string{"enable"}, args: "N", says: "let it stop again", do: func(sh *shell, _ context.Context, args string) error { return sh.turn(args, false) }},
		{names: []string{"on"}, args: "N [COMMAND]", says: "do a command whenever the breakpoint stops; without one, none", do: (*shell).onHit},
		{names: []string{"display"}, args: "[PATH]", says: "show the value at a path after every movement; without one, list them", do: (*shell).display, complete: func(*shell) []string { return debug.Paths() }},
		{names: []string{"undisplay"}, args: "[PATH]", says: "show it no more; without one, none", do: (*shell).undisplay, complete: func(sh *shell) []string { return sh.displays }},
	}
}

const breakHelp = `stop at a state, a tool, ...; see help break
SUBJECT VALUE is one of
  state STATE       where the state is entered
  tool NAME         where a call of the tool begins; * and ? stand for others
  risk RISK         where a call of that risk begins: read, write, destructive
  event KIND        at an event, such as approve
  row ROW           at a row of the table, such as granted
  reason NAME       where a rule decides, such as refused or budget
  budget NAME>=N    where what is used comes to that: calls, turns, tokens, wall, cost;
                    N% is a part of the limit
  step N            at a step
A state, row, kind of event, risk, tool or number works without its subject.
A CONDITION is such as: call.tool == "docs__save_report" && used.calls > 3
with == != < <= > >= ~ (a pattern) && || ! and brackets; paths are as in print.`

func (sh *shell) breakAt(_ context.Context, args string) error { return sh.set(args, false) }

func (sh *shell) breakOnce(_ context.Context, args string) error { return sh.set(args, true) }

func (sh *shell) set(args string, once bool) error {
	b, err := sh.session.Break(args)
	if err != nil {
		return usage("see: help break", "%w", err)
	}
	b.Once = once
	sh.print("Breakpoint %d: %s\n", b.ID, terminal.Line(b.String()))
	return nil
}

// breakWords complete the first word behind break.
func (sh *shell) breakWords() []string {
	var out []string
	for _, s := range debug.Subjects() {
		out = append(out, string(s))
		out = append(out, sh.session.Known(s)...)
	}
	return out
}

// subjectValues complete what stands behind a subject.
func (sh *shell) subjectValues(subject string) []string {
	if subject == string(debug.OnBudget) {
		return []string{"calls>=", "turns>=", "tokens>=", "wall>=", "cost>="}
	}
	return sh.session.Known(debug.Subject(subject))
}

func (sh *shell) watch(_ context.Context, args string) error {
	b, err := sh.session.Watch(args)
	if err != nil {
		return usage("paths are as in print", "%w", err)
	}
	sh.print("Watch %d: %s\n", b.ID, terminal.Line(strings.TrimPrefix(b.String(), string(b.On)+" ")))
	return nil
}

// numbered is a breakpoint and what stands behind its number.
func (sh *shell) numbered(args string) (*debug.Breakpoint, string, error) {
	number, rest, _ := strings.Cut(args, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil, "", usage("list them with: breakpoints", "%q is not the number of a breakpoint", number)
	}
	b, err := sh.session.Breakpoint(n)
	if err != nil {
		return nil, "", usage("list them with: breakpoints", "%w", err)
	}
	return b, strings.TrimSpace(rest), nil
}

func (sh *shell) condition(_ context.Context, args string) error {
	b, rest, err := sh.numbered(args)
	if err != nil {
		return err
	}
	if err := sh.session.Condition(b.ID, strings.TrimPrefix(rest, "if ")); err != nil {
		return usage("see: help break", "%w", err)
	}
	sh.print("Breakpoint %d: %s\n", b.ID, terminal.Line(b.String()))
	return nil
}

func (sh *shell) list(context.Context, string) error {
	all := sh.session.Breakpoints()
	if len(all) == 0 {
		sh.print("There are no breakpoints.\n")
		return nil
	}
	var rows [][]string
	for _, b := range all {
		var notes []string
		if b.Once {
			notes = append(notes, "once")
		}
		if b.Off {
			notes = append(notes, "disabled")
		}
		if b.Hits > 0 {
			notes = append(notes, fmt.Sprintf("hit %d times", b.Hits))
		}
		for _, line := range b.Do {
			notes = append(notes, "on hit: "+line)
		}
		rows = append(rows, []string{fmt.Sprint(b.ID), b.String(), strings.Join(notes, ", ")})
	}
	sh.table(rows)
	return nil
}

func (sh *shell) clear(_ context.Context, args string) error {
	if args == "all" {
		for _, b := range sh.session.Breakpoints() {
			_ = sh.session.Clear(b.ID) // it was listed just now
		}
		return nil
	}
	b, _, err := sh.numbered(args)
	if err != nil {
		return err
	}
	return sh.session.Clear(b.ID)
}

func (sh *shell) turn(args string, off bool) error {
	b, _, err := sh.numbered(args)
	if err == nil {
		b.Off = off
	}
	return err
}

func (sh *shell) onHit(_ context.Context, args string) error {
	b, line, err := sh.numbered(args)
	if err != nil {
		return err
	}
	if line == "" {
		b.Do = nil
		return nil
	}
	name, _, _ := strings.Cut(line, " ")
	v, err := verbNamed(name)
	switch {
	case err != nil:
		return err
	case v.moves || v.acts || v.names[0] == "source" || v.names[0] == "open":
		return usage("choose one that looks", "on %d: %s would move, act or leave", b.ID, v.names[0])
	}
	b.Do = append(b.Do, line)
	return nil
}

func (sh *shell) display(_ context.Context, path string) error {
	if path == "" {
		for _, p := range sh.displays {
			if err := sh.display1(p); err != nil {
				return err
			}
		}
		return nil
	}
	if err := sh.display1(path); err != nil {
		return err
	}
	if !slices.Contains(sh.displays, path) {
		sh.displays = append(sh.displays, path)
	}
	return nil
}

func (sh *shell) display1(path string) error {
	text, err := sh.valueAt(path, false)
	if err == nil {
		sh.print("%s = %s\n", terminal.Line(path), text)
	}
	return err
}

func (sh *shell) undisplay(_ context.Context, path string) error {
	if path == "" {
		sh.displays = nil
		return nil
	}
	if !slices.Contains(sh.displays, path) {
		return usage("", "undisplay %s: it is not shown", path)
	}
	sh.displays = slices.DeleteFunc(sh.displays, func(p string) bool { return p == path })
	return nil
}
