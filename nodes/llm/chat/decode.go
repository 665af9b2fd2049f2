package chat

import (
	"bytes"
	"errors"

	"sallyport/nodes"
	"sallyport/tools/strictjson"
)

// responseLimits are those on what a model may send, but for the size.
var responseLimits = strictjson.Limits{
	Bytes: MaxResponse, Depth: strictjson.FrameLimits.Depth,
	NumberLen: strictjson.FrameLimits.NumberLen, Exponent: strictjson.FrameLimits.Exponent,
}

// Decode reads a whole response, whose status was 200, to the tools that were offered.
// An error is a [*nodes.Unavailable].
func (p Profile) Decode(tools []nodes.Tool, body []byte) (nodes.Reply, error) {
	if err := strictjson.Check(body, responseLimits); err != nil {
		return nodes.Reply{}, badJSON(err)
	}
	o, err := readObject(body)
	if err != nil {
		return nodes.Reply{}, badJSON(err)
	}
	if err := errorIn(o); err != nil {
		return nodes.Reply{}, err
	}
	choices, err := o.list("choices")
	if err != nil {
		return nodes.Reply{}, err
	}
	switch len(choices) {
	case 0:
		return nodes.Reply{}, Unavailable(ReasonNoChoices, errors.New("the response holds no choice"))
	case 1:
	default:
		return nodes.Reply{}, Unavailable(ReasonManyChoices, errors.New("the response holds more than one choice"))
	}
	var t turn
	if t.usage, _, err = readUsage(o); err != nil {
		return nodes.Reply{}, err
	}
	message, err := choices[0].object("message")
	if err != nil {
		return nodes.Reply{}, err
	}
	if message == nil {
		return nodes.Reply{}, bad("its choice holds no message")
	}
	said, err := readPart(message)
	if err != nil {
		return nodes.Reply{}, err
	}
	if err := t.add(said, false); err != nil {
		return nodes.Reply{}, err
	}
	finish, _, err := choices[0].text("finish_reason")
	if err != nil {
		return nodes.Reply{}, err
	}
	return p.complete(&t, tools, finish)
}

// complete makes the reply of a turn that ended with a provider's word, or without.
func (p Profile) complete(t *turn, tools []nodes.Tool, word string) (nodes.Reply, error) {
	finish := p.finish(word)
	if finish == overloaded {
		return nodes.Reply{}, Unavailable(ReasonOverloaded, errors.New("the provider ran out of resources in the middle of the turn"))
	}
	return t.reply(p, tools, finish), nil
}

// endMarker is the data of the event that ends a stream.
var endMarker = []byte("[DONE]")

// Assembler puts a streamed response together, one event's data after the other. It is
// used by one goroutine. After an error it stays in error.
type Assembler struct {
	profile Profile
	tools   []nodes.Tool
	turn    turn
	chunks  int
	index   int64 // of the choice, once there was one
	choice  bool
	finish  string
	done    bool
	err     error
}

// MaxChunks bounds the events of a streamed response.
const MaxChunks = 200_000

// Assemble starts a streamed response to the tools that were offered.
func (p Profile) Assemble(tools []nodes.Tool) *Assembler { return &Assembler{profile: p, tools: tools} }

// Add takes the data of one event and returns the text that it adds, for display only:
// the turn may still turn out to be none. The end marker is an event like the others.
// An error is a [*nodes.Unavailable].
func (a *Assembler) Add(data []byte) (string, error) {
	if a.err != nil {
		return "", a.err
	}
	text, err := a.add(data)
	a.err = err
	return text, err
}

func (a *Assembler) add(data []byte) (string, error) {
	if a.chunks++; a.chunks > MaxChunks {
		return "", bad("it has too many events")
	}
	if a.done {
		return "", Unavailable(ReasonAfterFinish, errors.New("the stream went on after its end marker"))
	}
	if bytes.Equal(bytes.TrimSpace(data), endMarker) {
		a.done = true
		return "", nil
	}
	if err := strictjson.Check(data, strictjson.FrameLimits); err != nil {
		return "", badJSON(err)
	}
	o, err := readObject(data)
	if err != nil {
		return "", badJSON(err)
	}
	if err := errorIn(o); err != nil {
		return "", err
	}
	// Some send the usage so far with every event: the last one counts.
	if used, ok, err := readUsage(o); err != nil {
		return "", err
	} else if ok {
		a.turn.usage = used
	}
	choices, err := o.list("choices")
	if err != nil || len(choices) == 0 {
		return "", err
	}
	if len(choices) > 1 {
		return "", Unavailable(ReasonManyChoices, errors.New("an event holds more than one choice"))
	}
	return a.take(choices[0])
}

// take takes one choice of an event in.
func (a *Assembler) take(choice object) (string, error) {
	index, _, err := choice.whole("index")
	if err != nil {
		return "", err
	}
	if a.choice && index != a.index {
		return "", Unavailable(ReasonManyChoices, errors.New("the stream holds more than one choice"))
	}
	a.choice, a.index = true, index
	delta, err := choice.object("delta")
	if err != nil {
		return "", err
	}
	said, err := readPart(delta)
	if err != nil {
		return "", err
	}
	word, _, err := choice.text("finish_reason")
	switch {
	case err != nil:
		return "", err
	case a.finish != "" && word != "":
		return "", Unavailable(ReasonFinishTwice, errors.New("the stream holds two finish reasons"))
	case a.finish != "" && !said.empty():
		return "", Unavailable(ReasonAfterFinish, errors.New("the stream went on after its finish reason"))
	}
	if err := a.turn.add(said, true); err != nil {
		return "", err
	}
	a.finish = word + a.finish
	return said.text, nil
}

// Reply is the turn, once the stream has ended. Without the end marker it has no finish
// reason, whatever was sent before. An error is a [*nodes.Unavailable].
func (a *Assembler) Reply() (nodes.Reply, error) {
	switch {
	case a.err != nil:
		return nodes.Reply{}, a.err
	case !a.choice:
		return nodes.Reply{}, Unavailable(ReasonNoChoices, errors.New("the stream held no choice"))
	case !a.done:
		return a.turn.reply(a.profile, a.tools, ""), nil
	}
	return a.profile.complete(&a.turn, a.tools, a.finish)
}

// Done reports whether the end marker has come.
func (a *Assembler) Done() bool { return a.done }
