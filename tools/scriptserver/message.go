package scriptserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"sallyport/tools/strictjson"
)

// maxLine is the longest line that is read, in bytes. A longer one ends the input.
const maxLine = 16 << 20

// message is one line of the input.
type message struct {
	line    []byte
	junk    bool   // no JSON object
	id      []byte // compact JSON; nil of a notification
	method  string // empty of a reply
	params  []byte // compact JSON; nil if absent
	version string // the protocol version that a request names in its params
	tool    string // of a tools/call
	scene   map[string][]byte
}

// readMessage takes a line apart.
func readMessage(line []byte) message {
	m := message{line: line}
	members, err := strictjson.Members(line)
	if err != nil {
		m.junk = true
		return m
	}
	for _, member := range members {
		switch member.Name {
		case "id":
			m.id = member.Value
		case "method":
			m.junk = json.Unmarshal(member.Value, &m.method) != nil
		case "params":
			m.params = member.Value
		}
	}
	m.junk = m.junk || m.method == "" && m.id == nil
	m.readParams()
	return m
}

func (m *message) readParams() {
	members, err := strictjson.Members(m.params)
	if err != nil {
		return
	}
	for _, member := range members {
		switch member.Name {
		case "name":
			if m.method == "tools/call" && json.Unmarshal(member.Value, &m.tool) != nil {
				m.tool = ""
			}
		case "protocolVersion":
			_ = json.Unmarshal(member.Value, &m.version) // no text is no version
		case "_meta":
			m.readMeta(member.Value)
		case "arguments":
			m.readArguments(member.Value)
		}
	}
}

func (m *message) readMeta(meta []byte) {
	members, err := strictjson.Members(meta)
	if err != nil {
		return
	}
	for _, member := range members {
		if member.Name == "io.modelcontextprotocol/protocolVersion" {
			_ = json.Unmarshal(member.Value, &m.version) // no text is no version
		}
	}
}

func (m *message) readArguments(arguments []byte) {
	members, err := strictjson.Members(arguments)
	if err != nil {
		return
	}
	m.scene = map[string][]byte{}
	for _, member := range members {
		m.scene[member.Name] = member.Value
	}
}

// entry is the message in the record.
func (m *message) entry() Entry {
	switch {
	case m.junk:
		return Entry{Junk: string(m.line)}
	case m.method == "":
		return Entry{Answer: m.line}
	}
	return Entry{Method: m.method, ID: m.id, Tool: m.tool, Params: m.params}
}

// cancelled is the id of the request that a notification gives up.
func (m *message) cancelled() string {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if m.method != "notifications/cancelled" || json.Unmarshal(m.params, &p) != nil {
		return ""
	}
	return string(p.RequestID)
}

// readLine returns the next line that is not blank, or io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if line = append(line, part...); len(line) > maxLine {
			return nil, io.EOF
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err == nil || len(line) > 0:
			if line = bytes.TrimSpace(line); len(line) > 0 {
				return line, nil
			}
			if err != nil {
				return nil, io.EOF
			}
		default:
			return nil, io.EOF
		}
	}
}
