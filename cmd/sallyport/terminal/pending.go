package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"sallyport/agent"
	"sallyport/tools/grant"
	"sallyport/tools/strictjson"
)

// Pending is a candidate that waits for a person, with all that the person is shown.
type Pending struct {
	Candidate grant.Candidate
	Arguments []byte     // the exact canonical argument bytes, as they will be sent
	Tool      agent.Tool // as the run pinned it
	Signed    []string   // names of those who have signed already
	Deadline  time.Time  // when the candidate expires

	Edited string // who changed the model's arguments; empty: nobody did
	Was    []byte // then, what the model had proposed: the canonical arguments

	// What the operator's contract says of the tool; may be empty.
	SideEffect, Rollback string
	Sends                bool     // the effect leaves the machine or reaches a person
	Recipients           []string // names of the arguments that say whom it reaches
}

// plain is an argument that is repeated in the block next to the question, such as a
// file name or a recipient: it cannot look like anything else of the block. All others
// stand there by size and digest.
var plain = regexp.MustCompile(`^[A-Za-z0-9._@/:+-]{1,80}$`)

// Write shows the candidate: first what the model proposed, every argument in full,
// as untrusted text behind its gutter, after a diff where a person changed them; last,
// next to the question, what a signature would be bound to (SPEC G1, G2). It shows
// nothing, and returns an error, if the argument bytes are not those that the candidate
// stands for. Width is that of the terminal in cells; 0 wraps nothing.
func (p Pending) Write(w io.Writer, width int) error {
	if err := p.Candidate.Check(); err != nil {
		return fmt.Errorf("show candidate %s: %w", Line(p.Candidate.ID), err)
	}
	if err := p.Candidate.Matches(p.Arguments); err != nil {
		return fmt.Errorf("show candidate %s: %w", Line(p.Candidate.ID), err)
	}
	args, err := arguments(p.Arguments)
	if err != nil {
		return fmt.Errorf("show candidate %s: %w", Line(p.Candidate.ID), err)
	}
	var b bytes.Buffer
	if err := p.proposal(&b, args, width); err != nil {
		return err
	}
	p.facts(&b, args)
	_, err = w.Write(b.Bytes())
	return err
}

// argument is one top-level argument as it is shown.
type argument struct {
	name, text string
	isText     bool // a JSON string: text is its content, not its JSON
}

func arguments(data []byte) ([]argument, error) {
	members, err := strictjson.Members(data)
	if err != nil {
		return nil, fmt.Errorf("read the arguments: %w", err)
	}
	args := make([]argument, len(members))
	for i, m := range members {
		args[i] = argument{name: m.Name, text: string(m.Value)}
		var s string
		if m.Value[0] != '"' {
			continue
		}
		if err := json.Unmarshal(m.Value, &s); err != nil {
			return nil, fmt.Errorf("read the arguments: %w", err)
		}
		args[i].text, args[i].isText = s, true
	}
	return args, nil
}

// proposal is the untrusted part.
func (p Pending) proposal(w *bytes.Buffer, args []argument, width int) error {
	if p.Edited == "" {
		fmt.Fprintf(w, "── The model proposes a call of %s. Its text, in full, is untrusted: ──\n", Line(p.Tool.Name))
		return fullArguments(w, args, width)
	}
	fmt.Fprintf(w, "── The model proposed a call of %s, and %s changed its arguments: ──\n", Line(p.Tool.Name), Line(p.Edited))
	if err := changes(w, p.Was, p.Arguments, width); err != nil {
		return err
	}
	fmt.Fprintln(w, "── The text as changed, in full, is untrusted: ──")
	return fullArguments(w, args, width)
}

// fullArguments shows every argument in full.
func fullArguments(w *bytes.Buffer, args []argument, width int) error {
	for i, a := range args {
		var shown bytes.Buffer
		escaped, err := untrusted(&shown, a.text, width)
		if err != nil {
			return err
		}
		if !plainName.MatchString(a.name) {
			fmt.Fprintf(w, "argument %d is called\n", i+1)
			if _, err := untrusted(w, a.name, width); err != nil {
				return err
			}
		}
		fmt.Fprintf(w, "argument %s (%s)\n", shortName(i, a.name), a.describe(escaped))
		w.Write(shown.Bytes())
	}
	if len(args) == 0 {
		fmt.Fprintln(w, "(no arguments)")
	}
	return nil
}

func (a argument) describe(escaped int) string {
	if !a.isText {
		return fmt.Sprintf("JSON, %s", count(len(a.text), "byte"))
	}
	s := fmt.Sprintf("text, %s, %s", count(utf8.RuneCountInString(a.text), "character"), count(len(a.text), "byte"))
	if a.text != "" && strings.Contains(a.text, "\n") && !strings.HasSuffix(a.text, "\n") {
		s += ", no newline at the end"
	}
	if escaped > 0 {
		s += fmt.Sprintf(", %s shown as ⟦…⟧", count(escaped, "character"))
	}
	return s
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// facts is the authoritative part: all of it from the candidate, the pins of the run
// and the operator's contract.
func (p Pending) facts(w *bytes.Buffer, args []argument) {
	c := p.Candidate
	line := func(name, format string, a ...any) {
		fmt.Fprintf(w, "  %-11s %s\n", name, fmt.Sprintf(format, a...))
	}
	fmt.Fprintln(w, "── What an approval allows, this call only: ──")
	line("run", "%s", Line(c.Run))
	line("tool", "%s of server %s (%s), risk %s", Line(c.Tool), Line(p.Tool.Server), Line(c.Audience), p.Tool.Risk)
	line("scope", "%s", Line(c.Scope))
	for i, a := range args {
		line(factName(i, a.name), "%s", p.fact(a))
	}
	for _, name := range p.Recipients {
		line("reaches", "the recipients in argument %s, shown in full above", Line(name))
	}
	if p.Sends {
		line("sends", "what it does leaves this machine or reaches a person")
	}
	if p.SideEffect != "" {
		line("side effect", "%s", Line(p.SideEffect))
	}
	if p.Rollback != "" {
		line("rollback", "%s", Line(p.Rollback))
	}
	if p.Edited != "" {
		line("changed by", "%s", Line(p.Edited))
	}
	line("definition", "sha256 %s", c.Definition)
	line("arguments", "%s, sha256 %s", count(int(c.Bytes), "byte"), c.Arguments)
	line("expires", "%s; a grant holds for %s from signing", p.Deadline.Format(time.RFC3339), time.Duration(p.Tool.UseWithin)*time.Second)
	line("approvers", "%s", p.approvers())
}

// plainName is an argument's name that can stand in a line of ours. Names come from the
// server's schema.
var plainName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,40}$`)

// shortName is an argument's name, or its number if the name is not plain.
func shortName(i int, name string) string {
	if plainName.MatchString(name) {
		return name
	}
	return fmt.Sprintf("#%d", i+1)
}

// factName keeps an argument's name from passing for one of our own lines.
func factName(i int, name string) string {
	if name == "filename" {
		return "file"
	}
	return "." + shortName(i, name)
}

func (p Pending) fact(a argument) string {
	digest := strictjson.Digest([]byte(a.text))
	s := fmt.Sprintf("%s, sha256 %s", count(len(a.text), "byte"), digest)
	if plain.MatchString(a.text) {
		s = a.text + " · " + s
	}
	return s
}

func (p Pending) approvers() string {
	s := fmt.Sprintf("%d needed", p.Tool.Approvers)
	if len(p.Signed) == 0 {
		return s + ", none has signed"
	}
	names := make([]string, len(p.Signed))
	for i, n := range p.Signed {
		names[i] = Line(n)
	}
	return s + ", signed by " + strings.Join(names, ", ")
}
