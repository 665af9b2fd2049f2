package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sallyport/agent"
	"sallyport/nodes/llm"
	"sallyport/scenarios/config"
	"sallyport/tools"
)

// Verb is a decision that a scenario gives.
type Verb string

// The verbs. Wait decides nothing: the run parks. The last four are what must not
// count: a stranger's signature, a grant that was used before, one that comes after the
// deadline, one for other arguments.
const (
	VerbApprove Verb = "approve"
	VerbReject  Verb = "reject"
	VerbWait    Verb = "wait"
	VerbEdit    Verb = "edit"
	VerbForge   Verb = "forge"
	VerbReplay  Verb = "replay"
	VerbLate    Verb = "late"
	VerbOther   Verb = "other"
)

// verbs are all of them, in the order of their description.
var verbs = []Verb{VerbApprove, VerbReject, VerbWait, VerbEdit, VerbForge, VerbReplay, VerbLate, VerbOther}

// UnmarshalText reads one of the verbs.
func (v *Verb) UnmarshalText(text []byte) error {
	if known(Verb(text), verbs...) {
		*v = Verb(text)
		return nil
	}
	return unknownWord(string(text), "decision", verbs)
}

// unknownWord is the error of a word that is none of a closed set.
func unknownWord[T ~string](word, what string, all []T) error {
	names := make([]string, len(all))
	for i, w := range all {
		names[i] = string(w)
	}
	list := strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
	if near := config.Nearest(word, names); near != "" {
		return fmt.Errorf("%q is no %s: did you mean %q? It is one of %s", word, what, near, list)
	}
	return fmt.Errorf("%q is no %s: write %s", word, what, list)
}

// genuine reports whether the decision is one that counts.
func (v Verb) genuine() bool {
	return known(v, VerbApprove, VerbReject, VerbWait, VerbEdit)
}

// Forgery is how a grant is forged.
type Forgery string

// The forgeries.
const (
	ForgeStranger Forgery = "stranger" // signed by a key of nobody's, in an approver's name
	ForgeBit      Forgery = "bit"      // a good signature with one bit changed
	ForgeCut      Forgery = "cut"      // the first half of a good grant
	ForgeText     Forgery = "text"     // a text that is no grant
	ForgeEmpty    Forgery = "empty"    // nothing
)

var forgeries = []Forgery{ForgeStranger, ForgeBit, ForgeCut, ForgeText, ForgeEmpty}

// UnmarshalText reads one of the forgeries.
func (f *Forgery) UnmarshalText(text []byte) error {
	if known(Forgery(text), forgeries...) {
		*f = Forgery(text)
		return nil
	}
	return unknownWord(string(text), "forgery", forgeries)
}

// Delivery is one decision about a pending candidate.
type Delivery struct {
	Do Verb `yaml:"do" check:"required"`
	// By names the approver who signs; empty is as many as it takes for an approval, the
	// first who may for all else, and the operator, unsigned, for a refusal.
	By string `yaml:"by"`
	// After is how long the candidate has waited by then: the clock jumps.
	After tools.Duration `yaml:"after" check:"positive"`
	// Args are the arguments that an edit puts in place of the model's.
	Args *Arguments `yaml:"args"`
	// How says in which way a grant is forged.
	How Forgery `yaml:"how"`
	// Expect is what must become of the delivery. Absent, what is genuine must be taken,
	// and what is not refused.
	Expect *ExpectVerdict `yaml:"expect"`
}

// Arguments are written as YAML and become JSON.
type Arguments llm.Args

// UnmarshalConfig reads a mapping.
func (a *Arguments) UnmarshalConfig(n config.Node) error {
	if !n.IsMapping() {
		return n.Problem("write `args: {NAME: VALUE}`", "arguments are a mapping")
	}
	var args llm.Args
	if err := args.UnmarshalYAML(n.AST()); err != nil {
		return n.Problem("", "arguments must be what JSON can say")
	}
	*a = Arguments(args)
	return nil
}

// ExpectVerdict is what must become of a delivery.
type ExpectVerdict struct {
	Code string    `yaml:"code"` // why it is refused
	Row  agent.Row `yaml:"row"`  // what it turns out to mean, if it is taken
}

// codes are why a run refuses a decision.
var codes = []string{
	agent.CodeIllegal, agent.CodeEnded, agent.CodeHeld, agent.CodeNotWaiting, agent.CodeOther, agent.CodeLate,
	agent.CodeForged, agent.CodeKey, agent.CodeTwice, agent.CodeUnknown, agent.CodeInvalid, agent.CodeBudget, agent.CodeUnsigned, agent.CodeStale,
}

// UnmarshalConfig reads a code as a text, or a mapping.
func (e *ExpectVerdict) UnmarshalConfig(n config.Node) error {
	if code, ok := n.Text(); ok {
		e.Code = code
	} else {
		type plain ExpectVerdict
		var p plain
		if err := n.Decode(&p); err != nil {
			return err
		}
		*e = ExpectVerdict(p)
	}
	switch {
	case e.Code == "" && e.Row == "" || e.Code != "" && e.Row != "":
		return n.Problem("write `code:` for a refusal, or `row:` for what it becomes", "a verdict is one of two")
	case e.Code != "" && !slices.Contains(codes, e.Code):
		return unknownWord(e.Code, "code of a refusal", codes)
	case e.Row != "" && !known(e.Row, rows()...):
		return unknownWord(string(e.Row), "row of the table", rows())
	}
	return nil
}

// rows are the rows of the transition table, each once.
func rows() []agent.Row {
	var all []agent.Row
	for _, t := range agent.Table() {
		if !slices.Contains(all, t.Row) {
			all = append(all, t.Row)
		}
	}
	return all
}

// Deliveries are the decisions about one candidate, in order.
type Deliveries struct {
	List  []Delivery
	plain bool // written without a list
}

// UnmarshalConfig reads a verb, a mapping, or a list of both.
func (d *Deliveries) UnmarshalConfig(n config.Node) error {
	if !n.IsList() {
		one, err := readDelivery(n)
		*d = Deliveries{List: []Delivery{one}, plain: true}
		return err
	}
	for _, item := range n.Items() {
		one, err := readDelivery(item)
		if err != nil {
			return err
		}
		d.List = append(d.List, one)
	}
	if len(d.List) == 0 {
		return n.Problem("write wait", "a candidate without a decision waits")
	}
	return nil
}

func readDelivery(n config.Node) (Delivery, error) {
	var d Delivery
	if text, ok := n.Text(); ok {
		if err := d.Do.UnmarshalText([]byte(text)); err != nil {
			return d, n.Errorf("%v", err)
		}
		return d, nil
	}
	if n.Has("who") {
		return d, n.Get("who").Problem(`write by: the approver who signs`, "there is no such key")
	}
	return d, n.Decode(&d)
}

// step is the path from the candidate's item to its j-th delivery.
func (d Deliveries) step(j int) []string {
	if d.plain {
		return nil
	}
	return []string{fmt.Sprint(j)}
}

// mistake says what is wrong with a delivery; granted is whether an earlier one approves.
func (d Delivery) mistake(granted bool) (message, remedy string) {
	switch {
	case d.Do == VerbEdit && d.Args == nil:
		return "an edit without arguments", "add `args: {NAME: VALUE}`, all of them"
	case d.Do != VerbEdit && d.Args != nil:
		return fmt.Sprintf("%s takes no arguments", d.Do), "remove args, or write do: edit"
	case d.Do != VerbForge && d.How != "":
		return fmt.Sprintf("%s is not done in several ways", d.Do), "remove how, or write do: forge"
	case d.Do == VerbWait && (d.By != "" || d.Expect != nil):
		return "to wait delivers nothing", "remove the other keys"
	case d.Do == VerbReplay && !granted:
		return "there is no earlier grant", "let an earlier candidate be approved"
	}
	return "", ""
}

// keyName is how an approver of a stage, or a role, may be called.
var keyName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,31}$`)

// coverage is how a rule or a case that a scenario shows is called.
var coverage = regexp.MustCompile(`^[A-Z][0-9]{1,3}[a-z]?(-[0-9]{1,2})?$`)

// fileMode is how permissions are written.
var fileMode = regexp.MustCompile(`^0[0-7]{3}$`)
