package bridge

import (
	"sallyport/agent"
	"sallyport/tools"
	"sallyport/tools/strictjson"
)

// MaxResult is how many bytes the whole result of a call may have, as compact JSON with
// minimal escapes (SPEC B9).
const MaxResult = 32_000

// result is the result of a tools/call, taken apart but not believed.
type result struct {
	raw        []byte // the whole, compact
	kind       []byte // resultType; nil if absent
	failed     bool   // isError
	structured []byte // structuredContent; nil if absent or null
	content    bool   // there is a list of content blocks
}

// readResult takes a result apart; false if it is none.
func readResult(raw []byte) (result, bool) {
	r := result{raw: raw}
	members, err := strictjson.Members(raw)
	if err != nil {
		return r, false
	}
	for _, m := range members {
		null := string(m.Value) == "null"
		switch m.Name {
		case "resultType":
			r.kind = m.Value
		case "isError":
			r.failed = string(m.Value) == "true"
			if !r.failed && string(m.Value) != "false" {
				return r, false
			}
		case "structuredContent":
			if !null {
				r.structured = m.Value
			}
		case "content":
			r.content = m.Value[0] == '['
			if !r.content && !null {
				return r, false
			}
		}
	}
	return r, true
}

// judge classifies a reply, in the order of SPEC B9. The first row that fails decides:
// a read is then `unavailable`, or `failed` where the protocol says error; a write is
// `result_unknown`, whatever the server says.
func judge(t *tools.Tool, writes bool, f frame) outcome {
	fails := func(class agent.Class, reason, detail string, body []byte) outcome {
		out := outcome{body: body, detail: detail}
		out.Class, out.Reason, out.Status = class, reason, agent.StatusUnavailable
		switch {
		case writes:
			out.Status = agent.StatusResultUnknown
		case reason == ReasonIsError:
			out.Status = agent.StatusFailed
		}
		return out
	}
	if f.fault != nil {
		return fails(agent.ClassProtocolError, ReasonProtocolError, "error_reply", f.fault)
	}
	r, ok := readResult(f.result)
	switch {
	case !ok:
		return fails(agent.ClassProtocolError, ReasonProtocolError, "undecodable", f.result)
	case r.kind != nil && string(r.kind) != complete:
		return fails(agent.ClassProtocolError, ReasonResultType, "", f.result)
	case r.failed:
		return fails(agent.ClassToolError, ReasonIsError, "", f.result)
	case len(r.raw) > MaxResult:
		return fails(agent.ClassProtocolError, ReasonResultTooLarge, "", f.result)
	}
	if detail := checkStructured(t, r); detail != "" {
		return fails(agent.ClassProtocolError, ReasonInvalidResult, detail, f.result)
	}
	status := agent.StatusOK
	if t.Contract.Result == tools.ResultStatus {
		shape, ok := readShape(r.structured)
		if !ok {
			return fails(agent.ClassProtocolError, ReasonInvalidResult, "status_shape", f.result)
		}
		status = shape.status
	} else if writes && t.Contract.Settle == nil {
		return fails(agent.ClassProtocolError, ReasonUnconfirmed, "", f.result)
	}
	out := outcome{body: f.result}
	out.Status, out.Class = status, classes[status]
	return out
}

// classes are the classes of what a server itself reports (SPEC C3).
var classes = map[agent.Status]agent.Class{
	agent.StatusOK:            agent.ClassOK,
	agent.StatusRejected:      agent.ClassPermissionRefused,
	agent.StatusFailed:        agent.ClassToolError,
	agent.StatusResultUnknown: agent.ClassToolError,
}

// checkStructured holds the structured content against the declared schema, and names
// what is wrong; empty if nothing is. A tool without one must have content at least.
func checkStructured(t *tools.Tool, r result) string {
	switch {
	case t.Output == nil && r.structured == nil && !r.content:
		return "empty"
	case t.Output == nil:
		return ""
	case r.structured == nil:
		return "no_structured_content"
	case r.structured[0] != '{':
		return "structured_content"
	}
	if err := t.Output.Validate(r.structured); err != nil {
		return "output_schema"
	}
	return ""
}

// shape is a result in the shape of SPEC D7.
type shape struct {
	status agent.Status
	data   []byte // an object
}

// readShape reads {status, message, data}: status one of the four that a server can
// report, message a text, data an object or absent, nothing else.
func readShape(structured []byte) (shape, bool) {
	members, err := strictjson.Members(structured)
	if err != nil {
		return shape{}, false
	}
	s := shape{data: []byte("{}")}
	var message *string
	for _, m := range members {
		var err error
		switch m.Name {
		case "status":
			var text string
			err = strictjson.Decode(m.Value, &text)
			s.status = agent.Status(text)
		case "message":
			err = strictjson.Decode(m.Value, &message)
		case "data":
			s.data = m.Value
		default:
			return shape{}, false
		}
		if err != nil {
			return shape{}, false
		}
	}
	_, known := classes[s.status]
	return s, known && message != nil && s.data[0] == '{'
}
