package cassette

import (
	"fmt"
	"slices"
	"time"

	"sallyport/agent"
	"sallyport/nodes"
	"sallyport/tools/strictjson"
)

// Version is the version of the form that is written, and the newest that is read.
const Version = 1

// Limits of a cassette.
const (
	// MaxBytes bounds a file, in bytes. It is kept whole with each run that plays it.
	MaxBytes = 16 << 20
)

// header is the first line.
type header struct {
	Cassette int    `json:"cassette"` // the version
	Run      string `json:"run"`      // that was recorded; it does not matter to a play
	Model    string `json:"model"`    // the label of the model that was recorded
	Tools    []tool `json:"tools"`    // that it was offered
	Sum      string `json:"sum,omitempty"`
}

// tool is the definition of a tool, by its digest.
type tool struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// record is every other line: one attempt.
type record struct {
	Turn    int    `json:"turn"`    // 1 is the first
	Attempt int    `json:"attempt"` // how many attempts at this turn gave none before
	Request string `json:"request"` // digest of all that the model was given
	// Keep is how many messages of the line before begin this request too; Added are
	// those that follow.
	Keep        int             `json:"keep"`
	Added       []nodes.Message `json:"added"`
	Reply       *reply          `json:"reply,omitempty"`
	Unavailable *unavailable    `json:"unavailable,omitempty"`
	Millis      int64           `json:"ms"` // how long it took
	Sum         string          `json:"sum,omitempty"`

	line     int             // in the file; 1 is the first
	messages []nodes.Message // the whole request
}

// reply is a [nodes.Reply] as it is written.
type reply struct {
	Text     string            `json:"text,omitempty"`
	Calls    []call            `json:"calls,omitempty"`
	Finish   string            `json:"finish,omitempty"`
	Usage    agent.Usage       `json:"usage"`
	Vendor   map[string]string `json:"vendor,omitempty"`
	Adjusted []string          `json:"adjusted,omitempty"`
}

type call struct {
	ID        string `json:"id,omitempty"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// unavailable is a [nodes.Unavailable] as it is written, without its cause.
type unavailable struct {
	Reason string `json:"reason"`
	After  int64  `json:"after_ms,omitempty"`
	Final  bool   `json:"final,omitempty"`
}

func replyOf(r nodes.Reply) *reply {
	out := &reply{Text: r.Text, Finish: r.Finish, Usage: r.Usage, Vendor: r.Vendor, Adjusted: r.Adjusted}
	for _, c := range r.Calls {
		out.Calls = append(out.Calls, call(c))
	}
	return out
}

func (r *reply) reply() nodes.Reply {
	out := nodes.Reply{Text: r.Text, Finish: r.Finish, Usage: r.Usage, Vendor: r.Vendor, Adjusted: slices.Clone(r.Adjusted)}
	for _, c := range r.Calls {
		out.Calls = append(out.Calls, nodes.ToolCall(c))
	}
	return out
}

func (u *unavailable) err() error {
	return &nodes.Unavailable{Reason: u.Reason, After: time.Duration(u.After) * time.Millisecond, Final: u.Final}
}

// seal gives a line its sum, over the sum of the line before and all that it says, and
// returns it as it is written. A line is changed, taken out or put in only with all
// that follow.
func seal(before string, sum *string, line any) ([]byte, error) {
	*sum = ""
	data, err := strictjson.Encode(line)
	if err != nil {
		return nil, fmt.Errorf("encode a line: %w", err)
	}
	*sum = strictjson.Digest(append([]byte(before+"\n"), data...))
	if data, err = strictjson.Encode(line); err != nil {
		return nil, fmt.Errorf("encode a line: %w", err)
	}
	return append(data, '\n'), nil
}

// toolsOf are the definitions of a request, by their digests.
func toolsOf(r nodes.Request) ([]tool, error) {
	out := make([]tool, len(r.Tools))
	for i, t := range r.Tools {
		data, err := strictjson.Encode(t)
		if err != nil {
			return nil, fmt.Errorf("encode the tool %q: %w", t.Name, err)
		}
		out[i] = tool{t.Name, strictjson.Digest(data)}
	}
	return out, nil
}

// normal is the request as it counts: ids of calls by the order in which they appear.
func normal(messages []nodes.Message) []nodes.Message {
	ids := map[string]string{}
	named := func(id string) string {
		if id != "" && ids[id] == "" {
			ids[id] = fmt.Sprintf("call-%d", len(ids)+1)
		}
		return ids[id]
	}
	out := make([]nodes.Message, len(messages))
	for i, m := range messages {
		m.ToolCalls = slices.Clone(m.ToolCalls)
		for j := range m.ToolCalls {
			m.ToolCalls[j].ID = named(m.ToolCalls[j].ID)
		}
		m.ToolCallID = named(m.ToolCallID)
		out[i] = m
	}
	return out
}

// digest is that of all that a model is given.
func digest(r nodes.Request, messages []nodes.Message) (string, error) {
	r.Messages = messages
	data, err := strictjson.Encode(r)
	if err != nil {
		return "", fmt.Errorf("encode the request: %w", err)
	}
	return strictjson.Digest(data), nil
}

// shared is how many messages two requests begin with alike.
func shared(a, b []nodes.Message) (int, error) {
	for i := range min(len(a), len(b)) {
		same, err := alike(a[i], b[i])
		if err != nil || !same {
			return i, err
		}
	}
	return min(len(a), len(b)), nil
}

func alike(a, b nodes.Message) (bool, error) {
	x, err := strictjson.Encode(a)
	if err != nil {
		return false, fmt.Errorf("encode a message: %w", err)
	}
	y, err := strictjson.Encode(b)
	if err != nil {
		return false, fmt.Errorf("encode a message: %w", err)
	}
	return string(x) == string(y), nil
}
