package terminal

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// Unknown is a write whose outcome nobody knows, with all the evidence that there is.
type Unknown struct {
	Candidate grant.Candidate
	Arguments []byte     // the exact canonical argument bytes that were sent
	Tool      agent.Tool // as the run pinned it
	Signed    []string   // names of those who approved it
	Edited    string     // who changed the arguments; empty: they are the model's

	Sent    time.Time     // when the intent became durable: the request left after that
	SentIn  string        // of a fork: the run in which it was sent, if not in this one
	SentAt  int64         // and the entry there that says what came of it
	Outcome agent.Outcome // as the Host classified what came back
	Reply   []byte        // what the server answered, if anything

	Checks     []Check
	Again      int  // how often a check was begun again, after a failure or a crash
	Unfinished bool // a check is due and could not be made yet
	Statements []Statement

	// What the operator's contract says of the tool; may be empty.
	SideEffect, Rollback string
}

// Check is one read-back.
type Check struct {
	Time     time.Time
	Finding  agent.Finding
	Reason   string
	Evidence []byte // what the server answered, if anything
}

// Statement is what a person has said about the outcome already.
type Statement struct {
	Time    time.Time
	By      string
	Verdict string
}

// MaxEvidence is how much of one answer of a server is shown, in bytes. Arguments are
// always shown in full.
const MaxEvidence = 8_000

// Write shows the evidence: first everything untrusted, last what the journal knows.
// It shows nothing, and returns an error, if the argument bytes are not those that the
// candidate stands for. Width is that of the terminal in cells; 0 wraps nothing.
func (u Unknown) Write(w io.Writer, width int) error {
	if err := u.Candidate.Matches(u.Arguments); err != nil {
		return fmt.Errorf("show candidate %s: %w", Line(u.Candidate.ID), err)
	}
	args, err := arguments(u.Arguments)
	if err != nil {
		return fmt.Errorf("show candidate %s: %w", Line(u.Candidate.ID), err)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "── Nobody knows what became of this call of %s. What was sent, in full, is untrusted: ──\n", Line(u.Tool.Name))
	if err := fullArguments(&b, args, width); err != nil {
		return err
	}
	if err := answered(&b, "the server answered the call", u.Reply, width); err != nil {
		return err
	}
	for i, c := range u.Checks {
		if err := answered(&b, fmt.Sprintf("the server answered check %d", i+1), c.Evidence, width); err != nil {
			return err
		}
	}
	u.facts(&b, args)
	_, err = w.Write(b.Bytes())
	return err
}

// answered shows an answer of a server.
func answered(w *bytes.Buffer, what string, data []byte, width int) error {
	if len(data) == 0 {
		return nil
	}
	text, more := string(data), ""
	if len(text) > MaxEvidence {
		text, more = strings.ToValidUTF8(text[:MaxEvidence], ""), fmt.Sprintf(", the first %d", MaxEvidence)
	}
	fmt.Fprintf(w, "%s (%s%s)\n", what, count(len(data), "byte"), more)
	_, err := untrusted(w, text, width)
	return err
}

// facts is the authoritative part, from the journal, the pins and the contract.
func (u Unknown) facts(w *bytes.Buffer, args []argument) {
	c, o := u.Candidate, u.Outcome
	line := func(name, format string, a ...any) {
		fmt.Fprintf(w, "  %-11s %s\n", name, fmt.Sprintf(format, a...))
	}
	fmt.Fprintln(w, "── What the journal knows of it: ──")
	line("run", "%s", Line(c.Run))
	line("tool", "%s of server %s (%s), risk %s", Line(c.Tool), Line(u.Tool.Server), Line(c.Audience), u.Tool.Risk)
	line("scope", "%s", Line(c.Scope))
	for i, a := range args {
		line(factName(i, a.name), "%s", (Pending{}).fact(a))
	}
	if u.SideEffect != "" {
		line("side effect", "%s", Line(u.SideEffect))
	}
	if u.Rollback != "" {
		line("rollback", "%s", Line(u.Rollback))
	}
	if u.Edited != "" {
		line("changed by", "%s", Line(u.Edited))
	}
	if len(u.Signed) == 0 && u.SentIn != "" {
		line("approved", "in run %s; no approval came along", Line(u.SentIn))
	} else {
		line("approved by", "%s", Line(strings.Join(u.Signed, ", ")))
	}
	if u.SentIn != "" {
		line("sent", "once, in run %s, of which this is a fork; see its journal, entry %d%s", Line(u.SentIn), u.SentAt, request(o.Request))
	} else {
		line("sent", "once, after %s%s", u.Sent.Format(time.RFC3339), request(o.Request))
	}
	line("came back", "%s (%s), %s; %s", o.Status, o.Class, orNone(Line(o.Reason), "no reason"), replied(u.Reply))
	for i, k := range u.Checks {
		line(fmt.Sprintf("check %d", i+1), "%s: %s, %s", k.Time.Format(time.RFC3339), k.Finding, orNone(Line(k.Reason), "no reason"))
	}
	switch {
	case u.Unfinished:
		line("checks", "one is due and could not be made yet")
	case len(u.Checks) == 0:
		line("checks", "none")
	}
	if u.Again > 0 {
		line("attempts", "a check was begun again %s", times(u.Again))
	}
	for _, s := range u.Statements {
		line("said before", "%s: %s, by %s", s.Time.Format(time.RFC3339), s.Verdict, Line(s.By))
	}
	line("arguments", "%s, sha256 %s", count(int(c.Bytes), "byte"), c.Arguments)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func request(id string) string {
	if id == "" {
		return ""
	}
	return ", request " + Line(id)
}

func replied(data []byte) string {
	if len(data) == 0 {
		return "the server's answer is not there"
	}
	return "the server's answer is shown above"
}

func orNone(text, none string) string {
	if text == "" {
		return none
	}
	return text
}
