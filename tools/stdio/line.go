package stdio

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"sallyport/tools/strictjson"
)

// blank is JSON's white space.
const blank = " \t\r\n"

// lineReader passes on the lines of a stream that are strict JSON objects.
type lineReader struct {
	in    io.ReadCloser
	lines *bufio.Reader
	owed  *replies
	left  []byte // of the line being handed out

	mu      sync.Mutex
	refused error
}

func newLineReader(in io.ReadCloser, owed *replies) *lineReader {
	return &lineReader{in: in, lines: bufio.NewReader(in), owed: owed}
}

// Read hands out checked lines. Once the stream has ended, or a line was refused, it waits for the replies
// that are owed and then returns io.EOF for ever.
func (r *lineReader) Read(p []byte) (int, error) {
	for len(r.left) == 0 {
		if err := r.next(); err != nil {
			r.owed.wait(lastReplies)
			return 0, io.EOF
		}
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

// Close closes the stream and ends a wait for replies.
func (r *lineReader) Close() error {
	r.owed.end()
	return r.in.Close()
}

// refusal returns why a line was refused, or nil.
func (r *lineReader) refusal() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused
}

// next makes one checked line ready. Blank lines are passed over.
func (r *lineReader) next() error {
	if err := r.refusal(); err != nil {
		return err
	}
	line, err := r.readLine()
	if err == nil && len(line) > 0 {
		line, err = r.check(line)
	}
	if err != nil {
		if !errors.Is(err, io.EOF) {
			r.mu.Lock()
			r.refused = reason(err)
			r.mu.Unlock()
		}
		return err
	}
	if len(line) > 0 {
		r.left = append(line, '\n')
	}
	return nil
}

// readLine reads one line without the white space around it, never holding much more than MaxLine bytes.
// The last line may lack its line end.
func (r *lineReader) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		line = append(line, part...)
		if len(bytes.TrimRight(line, blank)) > MaxLine || len(line) > 2*MaxLine {
			return nil, strictjson.ErrTooLarge
		}
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(line) > 0:
			return bytes.Trim(line, blank), nil
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return nil, io.EOF // a stream that cannot be read has ended
		}
	}
}

// check refuses a line, or returns it, mended where that is possible, and notes the reply that it asks for.
func (r *lineReader) check(line []byte) ([]byte, error) {
	members, err := strictjson.Members(line)
	if err != nil {
		mended, ok := withoutArguments(line)
		if !ok {
			return nil, err
		}
		line = mended
		if members, err = strictjson.Members(line); err != nil {
			return nil, err
		}
	}
	r.owed.ask(members)
	return line, nil
}

// lenient scans what is only looked through for the place of a value.
var lenient = jsontext.AllowDuplicateNames(true)

// withoutArguments returns a tools/call with the value of params.arguments replaced by null. What is left
// must be checked again: nothing was checked here.
func withoutArguments(line []byte) ([]byte, bool) {
	dec := jsontext.NewDecoder(bytes.NewReader(line), lenient, jsontext.AllowInvalidUTF8(true))
	var method string
	var start, end int64
	found := eachMember(dec, func(name string) error {
		switch name {
		case "method":
			value, err := dec.ReadToken()
			if err == nil {
				method = value.String()
			}
			return err
		case "params":
			if dec.PeekKind() != '{' {
				return dec.SkipValue()
			}
			return eachMember(dec, func(name string) error {
				if name != "arguments" {
					return dec.SkipValue()
				}
				value, err := dec.ReadValue()
				end = dec.InputOffset()
				start = end - int64(len(value))
				return err
			})
		}
		return dec.SkipValue()
	})
	if found != nil || method != "tools/call" || end == 0 {
		return nil, false
	}
	mended := append(line[:start:start], "null"...)
	return append(mended, line[end:]...), true
}

// eachMember calls visit after each name of the object that dec stands before; visit takes the value.
func eachMember(dec *jsontext.Decoder, visit func(name string) error) error {
	if token, err := dec.ReadToken(); err != nil || token.Kind() != '{' {
		return errors.Join(strictjson.ErrNotObject, err)
	}
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return err
		}
		if err := visit(name.String()); err != nil {
			return err
		}
	}
	_, err := dec.ReadToken()
	return err
}
