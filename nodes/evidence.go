package nodes

import (
	"encoding/json"
	"errors"
	"unicode/utf8"

	"sallyport/agent"
	"sallyport/tools/strictjson"
)

// evidence is what a valid result holds for the model.
type evidence struct {
	data   []byte // canonical
	remark string // the tool's own message, cut
	piece  *piece // of a body that another tool returned: see [OpenBody]
}

// errNotAResult says that stored bytes are no valid result of a tool. The bridge has
// checked more than this; the check here keeps a result that was misclassified from
// the model.
var errNotAResult = errors.New("not a valid result")

// resultMembers are the members of a tool result that matter here.
type resultMembers struct {
	structured []byte
	content    []byte
}

// readResult takes a raw result apart. It refuses one that is marked as an error or
// not complete.
func readResult(raw []byte) (resultMembers, error) {
	var r resultMembers
	members, err := strictjson.Members(raw)
	if err != nil {
		return r, errNotAResult
	}
	for _, m := range members {
		switch {
		case m.Name == "isError" && string(m.Value) != "false",
			m.Name == "resultType" && string(m.Value) != `"complete"`:
			return r, errNotAResult
		case m.Name == "structuredContent" && string(m.Value) != "null":
			r.structured = m.Value
		case m.Name == "content":
			r.content = m.Value
		}
	}
	if r.structured == nil && r.content == nil {
		return r, errNotAResult
	}
	return r, nil
}

// extract takes the evidence out of a raw result. status is how the Host classified
// it; derived says that the tool does not answer in the shape of SPEC D7, so that
// its structured content is data as a whole, whatever it looks like.
func extract(raw []byte, status agent.Status, derived bool) (evidence, error) {
	r, err := readResult(raw)
	if err != nil {
		return evidence{}, err
	}
	if r.structured == nil {
		return fromContent(r.content)
	}
	if !derived {
		if ev, ok := fromStatusShape(r.structured, status); ok {
			return ev, nil
		}
	}
	data, err := strictjson.Canonical(r.structured)
	if err != nil {
		return evidence{}, errNotAResult
	}
	return evidence{data: data}, nil
}

// fromStatusShape reads {status, message, data}; false if the content is anything
// else, or says another status than the Host.
func fromStatusShape(structured []byte, status agent.Status) (evidence, bool) {
	members, err := strictjson.Members(structured)
	if err != nil {
		return evidence{}, false
	}
	var said, message *string
	data := []byte("{}")
	for _, m := range members {
		var err error
		switch m.Name {
		case "status":
			err = strictjson.Decode(m.Value, &said)
		case "message":
			err = strictjson.Decode(m.Value, &message)
		case "data":
			data, err = strictjson.Canonical(m.Value)
		default:
			return evidence{}, false
		}
		if err != nil {
			return evidence{}, false
		}
	}
	if said == nil || message == nil || *said != string(status) || data[0] != '{' {
		return evidence{}, false
	}
	return evidence{data: data, remark: cut(*message, MaxRemark)}, true
}

// fromContent makes data of content blocks: the texts, and how many other blocks
// there are, which stay in the raw result (CASES D4).
func fromContent(content []byte) (evidence, error) {
	var blocks []json.RawMessage
	if err := strictjson.Decode(content, &blocks); err != nil {
		return evidence{}, errNotAResult
	}
	shown := struct {
		Text  []string `json:"text"`
		Other int      `json:"other,omitzero"`
	}{Text: []string{}}
	for _, raw := range blocks {
		text, isText, err := textBlock(raw)
		switch {
		case err != nil:
			return evidence{}, err
		case isText:
			shown.Text = append(shown.Text, text)
		default:
			shown.Other++
		}
	}
	data, err := strictjson.Encode(shown)
	if err != nil {
		return evidence{}, errNotAResult
	}
	return evidence{data: data}, nil
}

func textBlock(raw []byte) (text string, isText bool, err error) {
	members, err := strictjson.Members(raw)
	if err != nil {
		return "", false, errNotAResult
	}
	var kind string
	for _, m := range members {
		switch m.Name {
		case "type":
			err = strictjson.Decode(m.Value, &kind)
		case "text":
			err = strictjson.Decode(m.Value, &text)
		}
		if err != nil {
			return "", false, errNotAResult
		}
	}
	return text, kind == "text", nil
}

// cut shortens s to at most n characters.
func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
