package cassette

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"sallyport/nodes"
	"sallyport/tools/strictjson"
)

// Player is a model that answers what a cassette holds. It may serve many runs at once
// and is not changed by them.
type Player struct {
	file    string
	header  header
	records []record
}

var _ nodes.Model = (*Player)(nil)

// Error says that a cassette cannot be played, or does not fit the run. It wraps
// [nodes.ErrModelFault]: the run stays as it is.
type Error struct {
	File   string
	Line   int // 1 is the first; 0 is the file as a whole
	Reason string
	Diff   string // what was recorded and what is asked now, as a unified diff; may be empty
}

// Error implements error: FILE:LINE: REASON, and below it the difference.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
	if e.Line == 0 {
		text = fmt.Sprintf("%s: %s", e.File, e.Reason)
	}
	if e.Diff != "" {
		text += "\n" + e.Diff
	}
	return text
}

// Unwrap makes the error a [nodes.ErrModelFault].
func (e *Error) Unwrap() error { return nodes.ErrModelFault }

// Load reads a cassette. What is wrong with its content is an [*Error].
func Load(path string) (*Player, []byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read the cassette: %w", err)
	}
	defer func() { _ = file.Close() }()
	data, err := readAll(path, file)
	if err != nil {
		return nil, nil, err
	}
	p, err := Parse(path, data)
	return p, data, err
}

// Parse reads a cassette from data; name is what messages call it. A cassette of a
// newer version, torn, or changed after it was recorded is an [*Error].
func Parse(name string, data []byte) (*Player, error) {
	p := &Player{file: name}
	switch {
	case len(data) == 0:
		return nil, p.wrong(0, "the cassette is empty: nothing was recorded")
	case len(data) > MaxBytes:
		return nil, p.wrong(0, "the cassette has more than %d bytes", MaxBytes)
	}
	lines := bytes.Split(data, []byte("\n"))
	if last := len(lines) - 1; len(lines[last]) > 0 {
		return nil, p.wrong(len(lines), "the last line is torn: whatever recorded it was ended in the middle; "+
			"remove the line to play what is before it")
	}
	for i, line := range lines[:len(lines)-1] {
		var err error
		if i == 0 {
			err = p.readHeader(line)
		} else {
			err = p.readRecord(i+1, line)
		}
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Model is the label of the model that was recorded.
func (p *Player) Model() string { return p.header.Model }

func (p *Player) wrong(line int, format string, args ...any) error {
	return &Error{File: p.file, Line: line, Reason: fmt.Sprintf(format, args...)}
}

func (p *Player) readHeader(line []byte) error {
	var version struct {
		Cassette int `json:"cassette"`
	}
	switch err := json.Unmarshal(line, &version); {
	case err != nil || version.Cassette < 1:
		return p.wrong(1, "this is no cassette: `sallyport run --record FILE` makes one")
	case version.Cassette > Version:
		return p.wrong(1, "it is of version %d, and this program knows 1 to %d: use the newer program", version.Cassette, Version)
	}
	return p.read(1, line, "", &p.header, &p.header.Sum)
}

func (p *Player) readRecord(number int, line []byte) error {
	var r record
	before, messages := p.header.Sum, []nodes.Message(nil)
	if n := len(p.records); n > 0 {
		before, messages = p.records[n-1].Sum, p.records[n-1].messages
	}
	if err := p.read(number, line, before, &r, &r.Sum); err != nil {
		return err
	}
	if r.Keep < 0 || r.Keep > len(messages) || (r.Reply == nil) == (r.Unavailable == nil) || r.Turn < 1 || r.Attempt < 0 {
		return p.wrong(number, "the line is none that this program writes")
	}
	r.line = number
	r.messages = append(messages[:r.Keep:r.Keep], r.Added...)
	p.records = append(p.records, r)
	return nil
}

// read decodes a line and compares its sum.
func (p *Player) read(number int, line []byte, before string, out any, sum *string) error {
	if err := strictjson.Decode(line, out); err != nil {
		return p.wrong(number, "the line is none that this program writes: %v", err)
	}
	whole, err := seal(before, sum, out)
	if err != nil {
		return p.wrong(number, "%v", err)
	}
	if !bytes.Equal(whole, append(line[:len(line):len(line)], '\n')) {
		return p.wrong(number, "it was changed after it was recorded, or one before it was: record it anew; "+
			"for words that you write yourself there are scripts")
	}
	return nil
}

// Turn answers what was recorded for the same request.
func (p *Player) Turn(ctx context.Context, q nodes.Request) (nodes.Reply, error) {
	if err := ctx.Err(); err != nil {
		return nodes.Reply{}, err
	}
	turn := q.Taken() + 1
	r, err := p.at(turn, q.Attempt)
	if err != nil {
		return nodes.Reply{}, err
	}
	messages := normal(q.Messages)
	now, err := digest(q, messages)
	if err != nil {
		return nodes.Reply{}, p.wrong(r.line, "%v", err)
	}
	if now != r.Request {
		return nodes.Reply{}, p.differs(r, q, messages)
	}
	if r.Unavailable != nil {
		return nodes.Reply{}, r.Unavailable.err()
	}
	return r.Reply.reply(), nil
}

// at is the line of a turn and an attempt: the last, if the attempt was made again
// after a crash.
func (p *Player) at(turn, attempt int) (record, error) {
	last := record{line: 1}
	for _, r := range slices.Backward(p.records) {
		if r.Turn == turn && r.Attempt == attempt {
			return r, nil
		}
		if last.line == 1 {
			last = r
		}
	}
	switch first := p.records; {
	case len(first) > 0 && turn < first[0].Turn:
		return record{}, p.wrong(first[0].line, "the cassette begins with turn %d, and turn %d is asked for", first[0].Turn, turn)
	case turn > last.Turn:
		return record{}, p.wrong(last.line, "the cassette has ended: turn %d is asked for, and it has %d", turn, last.Turn)
	}
	return record{}, p.wrong(last.line, "attempt %d at turn %d is asked for, and was not recorded", attempt+1, turn)
}

// Offers reports whether the recorded model was offered a tool.
func (p *Player) Offers(tool string) bool {
	for _, t := range p.header.Tools {
		if t.Name == tool {
			return true
		}
	}
	return false
}
