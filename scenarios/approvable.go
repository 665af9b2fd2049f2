package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sallyport/agent"
	"sallyport/tools"
	"sallyport/tools/grant"
)

// NotApprovable says that nobody could approve a call of a tool: too few of the run's
// approvers may sign for it.
type NotApprovable struct {
	Tool   string
	Needed int      // signatures, by as many people
	Role   string   // that they must hold; empty is none
	Able   []string // names of those who may sign
	Unable []Unable
}

// Unable is an approver who may not sign for a tool, and why.
type Unable struct{ Name, Why string }

// WhyRole is why a key may not sign that has not the role.
const WhyRole = "has not the role"

// Error names the tool, how many must sign, and what each key is good for.
func (n *NotApprovable) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tool %s needs ", n.Tool)
	switch {
	case n.Needed > 1:
		fmt.Fprintf(&b, "%d approvals, by as many people", n.Needed)
	default:
		b.WriteString("an approval")
	}
	if n.Role != "" {
		fmt.Fprintf(&b, ", in the role %s", n.Role)
	}
	switch {
	case len(n.Able)+len(n.Unable) == 0:
		b.WriteString(", and you have no key to give it with")
	case len(n.Able) == 0:
		b.WriteString(", and none of the keys can give one")
	default:
		fmt.Fprintf(&b, ", and only %d can be given: by %s", len(n.Able), strings.Join(n.Able, ", "))
	}
	for i, u := range n.Unable {
		b.WriteString([]string{"; not by ", ", "}[min(i, 1)])
		fmt.Fprintf(&b, "%s (%s)", u.Name, u.Why)
	}
	return b.String()
}

// CheckApprovers reports the first tool of the plan whose calls nobody could approve if
// operator began the run now, as a [*NotApprovable]: such a run could only park.
func (p Plan) CheckApprovers(operator string, now time.Time) error {
	for _, c := range p.Setup.Contracts {
		if c.Off() || c.Approvers() == 0 {
			continue
		}
		n := &NotApprovable{Tool: c.Name, Needed: c.Approvers()}
		if c.Approval != nil {
			n.Role = c.Approval.Role
		}
		for _, a := range p.Approvers {
			n.count(a, c, operator, now)
		}
		if len(n.Able) < n.Needed {
			return n
		}
	}
	return nil
}

// count puts an approver among those who may sign or those who may not, by the rules
// that the state machine goes by.
func (n *NotApprovable) count(a agent.Approver, c tools.Contract, operator string, now time.Time) {
	key, err := grant.ParsePublicKey(a.Key)
	if err != nil {
		return // the engine refuses it
	}
	own, why := c.Approval != nil && c.Approval.OwnKey, ""
	switch {
	case !a.NotAfter.IsZero() && !now.Before(a.NotAfter):
		why = "only until " + a.NotAfter.Format(time.DateOnly)
	case n.Role != "" && !slices.Contains(a.Roles, n.Role):
		why = WhyRole
	case n.Needed > 1 && !own && key.Name == operator:
		why = "begins the run"
	case slices.Contains(n.Able, key.Name):
		why = "counts once"
	}
	if why != "" {
		n.Unable = append(n.Unable, Unable{key.Name, why})
		return
	}
	n.Able = append(n.Able, key.Name)
}
