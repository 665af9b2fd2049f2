package bridge

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"sallyport/agent"
	"sallyport/tools"
	"sallyport/tools/grant"
	"sallyport/tools/strictjson"
)

// refusal is an outcome of Prepare other than "go on".
type refusal struct {
	agent.Outcome
	detail    string           // for the log: which rule of a rule
	candidate *grant.Candidate // with waiting_approval
}

func refuse(status agent.Status, class agent.Class, reason, detail string) *refusal {
	return &refusal{Outcome: agent.Outcome{Status: status, Class: class, Reason: reason}, detail: detail}
}

func rejected(reason, detail string) *refusal {
	return refuse(agent.StatusRejected, agent.ClassToolError, reason, detail)
}

// preparation is one Prepare under way: what the rows have found so far.
type preparation struct {
	b         *Bridge
	call      Call
	pin       agent.Tool
	tool      *tools.Tool
	list      listing // of this Prepare
	conn      *connection
	arguments []byte // canonical, once row 3 has passed
}

// Prepare does everything but the call, in the order of SPEC B10, and may be repeated.
// It returns an [agent.Checked], or an [agent.Returned] that refuses or names the
// candidate that a person must sign. An error means that ctx was done.
func (b *Bridge) Prepare(ctx context.Context, c Call) (agent.Result, []agent.Body, error) {
	p := preparation{b: b, call: c}
	no := p.check(ctx)
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	b.logDecision(p, no)
	var bodies []agent.Body
	var arguments agent.BodyRef
	if p.arguments != nil {
		body := agent.NewBody(p.arguments)
		bodies, arguments = []agent.Body{body}, body.Ref
	}
	if no != nil {
		return agent.Returned{Outcome: no.Outcome, Arguments: arguments, Candidate: no.candidate}, bodies, nil
	}
	b.prepared = prepared{call: c.id(), arguments: p.arguments}
	return agent.Checked{
		Arguments: arguments, Definition: p.pin.Definition, Server: p.pin.Server, Protocol: p.conn.protocol,
	}, bodies, nil
}

// check is SPEC B10: the first row that refuses is the answer.
func (p *preparation) check(ctx context.Context) *refusal {
	if no := p.checkShape(); no != nil { // 1
		return no
	}
	if no := p.checkName(); no != nil { // 2
		return no
	}
	if no := p.know(ctx); no != nil {
		return no
	}
	for _, row := range []func() *refusal{
		p.decode,      // 3
		p.checkBudget, // 4
		func() *refusal { return p.discover(ctx) }, // 5
		p.checkDefinition,                          // 6
		p.checkSchema,                              // 7
		p.checkApproval,                            // 8
	} {
		if no := row(); no != nil {
			return no
		}
	}
	return nil
}

func (p *preparation) checkShape() *refusal {
	return argumentRefusal(tools.CheckArguments(p.call.text()))
}

// argumentRefusal is the refusal of arguments by rows 1 or 3.
func argumentRefusal(err error) *refusal {
	var bad *tools.ArgumentError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &bad):
		return rejected(ReasonArgumentsInvalid, "")
	case bad.Row == 1 && bad.Reason == tools.ValueTooLarge:
		return rejected(ReasonArgumentsTooLarge, "")
	case bad.Row == 1:
		return rejected(ReasonArgumentsNotObject, string(bad.Reason))
	}
	return rejected(ReasonArgumentsInvalid, string(bad.Reason))
}

func (p *preparation) checkName() *refusal {
	pin, ok := p.b.spec.Tool(p.call.Name)
	_, contracted := p.b.registry.Contract(p.call.Name)
	if !ok || pin.HostOnly || !contracted {
		return rejected(ReasonUnknownTool, "")
	}
	if c := p.call.Run.Call; c != nil && c.Proposal.Tool == "" { // proposed to a parent that did not have it
		return rejected(ReasonUnknownTool, "")
	}
	p.pin = pin
	return nil
}

// know makes sure that the pinned definition is known, without which no argument can
// be checked. A bridge that has just been made asks the server; the list then serves
// row 5 too, and a call that no budget is left for is not worth asking.
func (p *preparation) know(ctx context.Context) *refusal {
	if p.tool = p.b.tool(p.pin); p.tool != nil {
		return nil
	}
	if no := p.checkBudget(); no != nil {
		return no
	}
	if no := p.discover(ctx); no != nil {
		return no
	}
	if p.tool = p.b.tool(p.pin); p.tool != nil {
		return nil
	}
	if no := p.checkDefinition(); no != nil {
		return no
	}
	return rejected(ReasonUnknownTool, "quarantined")
}

func (p *preparation) decode() *refusal {
	arguments, err := p.tool.DecodeArguments(p.call.text())
	if err != nil {
		return argumentRefusal(err)
	}
	if p.call.Edited != nil && string(arguments) != string(p.call.Edited) {
		return rejected(ReasonArgumentsInvalid, "edit_not_canonical") // other bytes than were signed
	}
	if p.oversized(arguments) {
		return rejected(ReasonArgumentsInvalid, string(tools.FieldLength))
	}
	p.arguments = arguments
	return nil
}

// byteLimits bound arguments of the builtin servers in bytes of UTF-8, which no schema
// can say: nobody is asked to approve what the server must refuse (SPEC D5).
var byteLimits = map[string]map[string]map[string]int{
	tools.BuiltinDocs: {"save_report": {"content": 24_000}},
}

func (p *preparation) oversized(arguments []byte) bool {
	srv, _ := p.b.registry.Server(p.pin.Server)
	limits := byteLimits[srv.Builtin][p.pin.Remote]
	if limits == nil {
		return false
	}
	members, err := strictjson.Members(arguments)
	if err != nil {
		return true
	}
	for _, m := range members {
		var text string
		limit, limited := limits[m.Name]
		if limited && (strictjson.Decode(m.Value, &text) != nil || len(text) > limit) {
			return true
		}
	}
	return false
}

func (p *preparation) checkBudget() *refusal {
	if p.call.Run.Used.Calls < p.call.Run.Budget.Calls {
		return nil
	}
	return refuse(agent.StatusRejected, agent.ClassBudget, ReasonBudget, "")
}

func (p *preparation) discover(ctx context.Context) *refusal {
	if p.list != nil {
		return nil
	}
	list, conn, err := p.b.list(ctx, p.pin.Server)
	if err != nil {
		reason, class := cause(err)
		if reason != ReasonClosed {
			reason = ReasonDiscovery
		}
		return refuse(agent.StatusUnavailable, class, reason, detail(err))
	}
	p.list, p.conn = list, conn
	p.b.learn(p.pin.Server, list)
	return nil
}

func (p *preparation) checkDefinition() *refusal {
	return definitionRefusal(p.pin, p.list)
}

// definitionRefusal compares a tool as it is listed now with what the run pinned.
func definitionRefusal(pin agent.Tool, list listing) *refusal {
	e := list[pin.Remote]
	if e == nil {
		return refuse(agent.StatusRejected, agent.ClassPermissionRefused, ReasonDefinitionGone, "")
	}
	d, err := e.define()
	if err != nil || d.Digest != pin.Definition {
		return refuse(agent.StatusRejected, agent.ClassPermissionRefused, ReasonDefinitionChanged, "")
	}
	return nil
}

func (p *preparation) checkSchema() *refusal {
	err := p.tool.CheckArguments(p.arguments)
	var bad *tools.Invalid
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		return rejected(ReasonServerSchema, string(bad.Reason))
	}
	return rejected(ReasonServerSchema, "")
}

func (p *preparation) checkApproval() *refusal {
	if p.pin.Approvers == 0 {
		return nil
	}
	candidate, err := p.candidate()
	if err != nil {
		return rejected(ReasonCandidate, "")
	}
	reason := ReasonApproval
	if len(p.call.Run.Call.Grants) > 0 {
		switch err := p.granted(candidate); {
		case err == nil:
			return nil
		case errors.Is(err, grant.ErrExpired):
			reason = ReasonGrantExpired
		}
	}
	no := refuse(agent.StatusWaitingApproval, agent.ClassPermissionRefused, reason, "")
	no.candidate = &candidate
	return no
}

// candidate is exactly what a person must sign for this call, now.
func (p *preparation) candidate() (grant.Candidate, error) {
	server, _ := p.b.spec.Server(p.pin.Server)
	base := grant.Candidate{
		Audience: server.Audience, Scope: server.Scope, Run: p.call.Run.ID, Tool: p.pin.Remote,
		Call: p.call.id(), Definition: p.pin.Definition, Head: p.call.Head,
	}
	var err error
	for _, names := range p.fields() {
		var c grant.Candidate
		if c, err = base.Bind(p.arguments, names...); err == nil && !c.Fits(p.longestApprover()) {
			err = grant.ErrTooLarge
		}
		if !errors.Is(err, grant.ErrTooLarge) {
			return c, err
		}
	}
	return grant.Candidate{}, err
}

// fields are the sets of arguments that a candidate may list by digest, the best
// first: all, then those that the read-back is given or compares; none where there is
// no read-back. The digest of the whole is there in any case. A candidate that cannot
// list what its server or its read-back compares is not made: nobody is asked to sign
// what would be refused.
func (p *preparation) fields() [][]string {
	const none = "\x00" // no argument has this name
	s := p.tool.Contract.Settle
	if s == nil {
		return [][]string{nil, {none}}
	}
	named := []string{none}
	for _, arg := range s.Args {
		named = append(named, arg)
	}
	for _, m := range s.AppliedWhen {
		named = append(named, m.SHA256Of+m.Equals)
	}
	slices.Sort(named)
	return [][]string{nil, slices.Compact(named)}
}

// longestApprover is the name that makes a grant largest.
func (p *preparation) longestApprover() string {
	longest := "a"
	for _, a := range p.b.spec.Approvers {
		if k, err := grant.ParsePublicKey(a.Key); err == nil && utf8.RuneCountInString(k.Name) > len(longest) {
			longest = k.Name
		}
	}
	return longest
}

var errGrants = errors.New("the grants are not for this candidate")

// granted checks the call's grants once more, by itself: enough of them, by different
// pinned keys, valid now, over the candidate that was asked for, which must be this
// one but for the history before it.
func (p *preparation) granted(now grant.Candidate) error {
	asked := p.call.Run.Call.Candidate
	if asked == nil || len(p.call.Run.Call.Grants) < p.pin.Approvers {
		return errGrants
	}
	now.Head = asked.Head
	if !now.Equal(*asked) {
		return errGrants
	}
	all, err := p.keys().OpenGrants(p.call.wire(p.pin.Approvers), p.pin.Approvers)
	if err != nil {
		return err
	}
	for _, claims := range all {
		if !claims.Candidate.Equal(*asked) {
			return errGrants
		}
		if err := claims.CheckTime(p.b.cfg.Now()); err != nil {
			return err
		}
	}
	return nil
}

func (p *preparation) keys() grant.Keys {
	var keys grant.Keys
	for _, a := range p.b.spec.Approvers {
		if k, err := grant.ParsePublicKey(a.Key); err == nil {
			keys = append(keys, k)
		}
	}
	return keys
}

// wire is the call's first need grants as they go to a server.
func (c Call) wire(need int) string {
	if c.Run.Call == nil {
		return ""
	}
	wires := make([]string, 0, need)
	for _, g := range c.Run.Call.Grants[:min(need, len(c.Run.Call.Grants))] {
		wires = append(wires, g.Wire)
	}
	return strings.Join(wires, ".")
}
