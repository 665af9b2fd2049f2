package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"sallyport/agent"
	"sallyport/tools"
	"sallyport/tools/strictjson"
)

// The fields of a voiding read-back that say that the write did not, and will not, take
// effect: nothing is there, and the candidate had not been spent.
const (
	fieldExists = "exists"
	fieldSpent  = "spent"
)

// ReadBack makes the check that the contract declares for a write (`settle`): it
// connects if need be, calls the read-back, and compares what it shows with the
// arguments of the write. Applied and NotApplied are certain; anything else is
// Undecided, and a person must say. An error means that the check could not be made
// and may be tried again.
func (b *Bridge) ReadBack(ctx context.Context, c Call) (agent.Verified, []agent.Body, error) {
	ctx, stop := b.with(ctx)
	defer stop()
	r := readBack{b: b, call: c}
	found, evidence, err := r.perform(ctx)
	if err != nil {
		return agent.Verified{}, nil, fmt.Errorf("read back what call %s wrote: %w", c.id(), b.unlessClosed(err))
	}
	b.logFinding(r, found)
	if evidence == nil {
		return found, nil, nil
	}
	body := agent.NewBody(evidence)
	found.Evidence = body.Ref
	return found, []agent.Body{body}, nil
}

// readBack is one ReadBack under way.
type readBack struct {
	b      *Bridge
	call   Call
	write  agent.Tool
	settle *tools.Settle
	tool   *tools.Tool // that reads back
	id     string      // of the MCP request
}

func undecided(reason string) agent.Verified {
	return agent.Verified{Finding: agent.Undecided, Reason: reason}
}

func (r *readBack) perform(ctx context.Context) (agent.Verified, []byte, error) {
	contract, ok := r.b.registry.Contract(r.call.Name)
	write, pinned := r.b.spec.Tool(r.call.Name)
	if !ok || !pinned || contract.Settle == nil {
		return undecided(ReasonNoReadBack), nil, nil
	}
	r.write, r.settle = write, contract.Settle
	pin, ok := r.b.spec.Tool(r.settle.Tool)
	if !ok {
		return undecided(ReasonNoReadBack), nil, nil
	}
	list, conn, err := r.b.list(ctx, pin.Server)
	if err != nil {
		return agent.Verified{}, nil, err
	}
	r.b.learn(pin.Server, list)
	if no := definitionRefusal(pin, list); no != nil {
		return undecided(no.Reason), nil, nil
	}
	if r.tool = r.b.tool(pin); r.tool == nil {
		return undecided(ReasonNoReadBack), nil, nil
	}
	wrote, ok := r.wrote()
	if !ok {
		return undecided(ReasonNoArguments), nil, nil
	}
	arguments, ok := r.arguments(wrote)
	if !ok && r.needsGrant() && r.b.spec.Fork != nil {
		return undecided(ReasonNoGrant), nil, nil
	}
	if !ok {
		return undecided(ReasonNoArguments), nil, nil
	}
	return r.ask(ctx, conn, pin, arguments, wrote)
}

// ask calls the read-back and judges its answer.
func (r *readBack) ask(ctx context.Context, conn *connection, pin agent.Tool, arguments []byte, wrote values) (agent.Verified, []byte, error) {
	srv, _ := r.b.registry.Server(pin.Server)
	r.id = r.b.ids.next()
	f, _, err := conn.callTool(ctx, r.tool.Contract.Limit(srv), r.id, pin.Remote, arguments)
	if err != nil {
		return agent.Verified{}, nil, err
	}
	out := judge(r.tool, false, f)
	switch {
	case out.Status == agent.StatusUnavailable:
		return agent.Verified{}, nil, fmt.Errorf("the answer is not valid: %s", out.Reason)
	case out.Status != agent.StatusOK:
		return undecided(ReasonReadBackFailed), out.body, nil
	}
	data, err := dataOf(r.tool, f.result)
	if err != nil {
		return agent.Verified{}, nil, err
	}
	return r.compare(data, wrote), out.body, nil
}

// values are the members of an object, as compact JSON by name.
type values map[string][]byte

func valuesOf(object []byte) (values, bool) {
	members, err := strictjson.Members(object)
	if err != nil {
		return nil, false
	}
	v := make(values, len(members))
	for _, m := range members {
		v[m.Name] = m.Value
	}
	return v, true
}

// wrote are the exact arguments of the write.
func (r *readBack) wrote() (values, bool) {
	data, ok := r.b.arguments(r.call, r.b.tool(r.write))
	if !ok {
		return nil, false
	}
	return valuesOf(data)
}

// needsGrant reports whether the read-back asks for a grant that is not there.
func (r *readBack) needsGrant() bool {
	for _, from := range r.settle.Args {
		if from == tools.GrantArg {
			return r.call.wire(r.write.Approvers) == ""
		}
	}
	return false
}

// arguments are those of the read-back.
func (r *readBack) arguments(wrote values) ([]byte, bool) {
	var members []strictjson.Member
	for name, from := range r.settle.Args {
		value, ok := wrote[from]
		if from == tools.GrantArg {
			wire := r.call.wire(r.write.Approvers)
			text, err := strictjson.Encode(wire)
			value, ok = text, err == nil && wire != ""
		}
		if !ok {
			return nil, false
		}
		members = append(members, strictjson.Member{Name: name, Value: value})
	}
	object, err := strictjson.Object(members)
	if err != nil {
		return nil, false
	}
	filled, err := r.tool.DecodeArguments(string(object))
	return filled, err == nil
}

// compare says what the read-back shows.
func (r *readBack) compare(data, wrote values) agent.Verified {
	if r.applied(data, wrote) {
		return agent.Verified{Finding: agent.Applied, Reason: ReasonReadBack}
	}
	// Without a void, absence proves nothing: the write may still be on its way.
	if r.settle.Voids && string(data[fieldExists]) == "false" && string(data[fieldSpent]) == "false" {
		return agent.Verified{Finding: agent.NotApplied, Reason: ReasonReadBack}
	}
	return undecided(ReasonOtherContent)
}

func (r *readBack) applied(data, wrote values) bool {
	for field, match := range r.settle.AppliedWhen {
		shown, ok := data[field]
		if !ok || !matches(match, shown, wrote) {
			return false
		}
	}
	return len(r.settle.AppliedWhen) > 0
}

func matches(m tools.Match, shown []byte, wrote values) bool {
	argument, ok := wrote[m.SHA256Of+m.Equals]
	if !ok {
		return false
	}
	if m.Equals != "" {
		a, err1 := strictjson.Canonical(shown)
		b, err2 := strictjson.Canonical(argument)
		return err1 == nil && err2 == nil && bytes.Equal(a, b)
	}
	var text, digest string
	if strictjson.Decode(argument, &text) == nil {
		argument = []byte(text)
	}
	return strictjson.Decode(shown, &digest) == nil && digest == strictjson.Digest(argument)
}

// dataOf is the data of a valid result: of the shape of SPEC D7 its data, else the
// structured content, else the text of the content blocks as {"content": …}.
func dataOf(t *tools.Tool, raw []byte) (values, error) {
	members, err := strictjson.Members(raw)
	if err != nil {
		return nil, err
	}
	var structured, content []byte
	for _, m := range members {
		switch m.Name {
		case "structuredContent":
			structured = m.Value
		case "content":
			content = m.Value
		}
	}
	if t.Contract.Result == tools.ResultStatus {
		s, ok := readShape(structured)
		if !ok {
			return nil, errNoData
		}
		structured = s.data
	}
	if structured == nil || structured[0] != '{' {
		if structured, err = textOf(content); err != nil {
			return nil, err
		}
	}
	v, ok := valuesOf(structured)
	if !ok {
		return nil, errNoData
	}
	return v, nil
}

var errNoData = errors.New("the read-back shows no data")

// textOf makes {"content": …} of the text blocks, joined as they are.
func textOf(content []byte) ([]byte, error) {
	var blocks []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if content == nil || json.Unmarshal(content, &blocks) != nil {
		return nil, errNoData
	}
	var text strings.Builder
	for _, b := range blocks {
		if b.Type == "text" {
			text.WriteString(b.Text)
		}
	}
	return strictjson.Encode(struct {
		Content string `json:"content"`
	}{text.String()})
}
