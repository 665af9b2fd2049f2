package bridge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"sallyport/tools/strictjson"
)

// MaxFrame is the longest line that a server may send, in bytes without the line feed.
const MaxFrame = 1 << 20

// FrameReason says why a frame was refused: a fixed word.
type FrameReason string

// The reasons. A refused frame ends the connection.
const (
	FrameTooLong   FrameReason = "too_long"         // over MaxFrame
	FrameSyntax    FrameReason = "syntax"           // not one JSON value: a junk line
	FrameDuplicate FrameReason = "duplicate_name"   // an object with a name twice
	FrameDepth     FrameReason = "depth"            // nested over 64
	FrameNumber    FrameReason = "number"           // over 32 characters, or an exponent over 308
	FrameUTF8      FrameReason = "utf8"             // not UTF-8, or half of a surrogate pair
	FrameEnvelope  FrameReason = "envelope"         // JSON, but no JSON-RPC 2.0 message; batches included
	FrameReply     FrameReason = "unexpected_reply" // to no request that is open
)

// FrameError is a refused frame. It holds nothing of what was sent.
type FrameError struct{ Reason FrameReason }

// Error implements error.
func (e *FrameError) Error() string {
	return fmt.Sprintf("the server sent a refused frame: %s", e.Reason)
}

func refusedFrame(r FrameReason) error { return &FrameError{Reason: r} }

// frame is one message of a server. Its parts are compact JSON of the frame's own
// bytes: member order and number text are as sent.
type frame struct {
	id     string // the text of the id; empty for a notification
	method string // of a request or notification; a reply has none
	reply  bool
	result []byte // of a reply that is no error
	fault  []byte // the error object of a reply
}

// frameReader reads a server's stdout line by line, in bounded memory.
type frameReader struct{ in *bufio.Reader }

func newFrameReader(r io.Reader) *frameReader {
	return &frameReader{in: bufio.NewReaderSize(r, 32<<10)}
}

// next returns the next line without its end, or io.EOF, or a [FrameError] as soon as
// the line is too long. What follows the last line feed is no frame.
func (r *frameReader) next() ([]byte, error) {
	var line []byte
	for {
		part, err := r.in.ReadSlice('\n')
		if len(line)+len(bytes.TrimSuffix(part, []byte{'\n'})) > MaxFrame {
			return nil, refusedFrame(FrameTooLong)
		}
		switch {
		case err == nil && line == nil:
			return bytes.Clone(part[:len(part)-1]), nil
		case err == nil:
			return append(line, part[:len(part)-1]...), nil
		case errors.Is(err, bufio.ErrBufferFull):
			line = append(line, part...)
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		default:
			return nil, fmt.Errorf("read from the server: %w", err)
		}
	}
}

// parseFrame checks a line and takes the envelope apart. It accepts exactly the
// requests, notifications and replies of JSON-RPC 2.0.
func parseFrame(line []byte) (frame, error) {
	if len(line) > MaxFrame {
		return frame{}, refusedFrame(FrameTooLong)
	}
	members, err := strictjson.Members(line) // refuses what strictjson.Check refuses of a frame
	if err != nil {
		return frame{}, refusedFrame(frameReason(err))
	}
	f, ok := envelope(members)
	if !ok {
		return frame{}, refusedFrame(FrameEnvelope)
	}
	return f, nil
}

func frameReason(err error) FrameReason {
	switch {
	case errors.Is(err, strictjson.ErrTooLarge):
		return FrameTooLong
	case errors.Is(err, strictjson.ErrDuplicate):
		return FrameDuplicate
	case errors.Is(err, strictjson.ErrDepth):
		return FrameDepth
	case errors.Is(err, strictjson.ErrNumber):
		return FrameNumber
	case errors.Is(err, strictjson.ErrUTF8):
		return FrameUTF8
	case errors.Is(err, strictjson.ErrNotObject):
		return FrameEnvelope
	}
	return FrameSyntax
}

func envelope(members []strictjson.Member) (frame, bool) {
	var f frame
	var version, method, params bool
	for _, m := range members {
		switch m.Name {
		case "jsonrpc":
			version = string(m.Value) == `"2.0"`
		case "id":
			if c := m.Value[0]; c != '"' && c != '-' && (c < '0' || c > '9') {
				return f, false // null included: it answers nothing that was understood
			}
			f.id = string(m.Value)
		case "method":
			method = json.Unmarshal(m.Value, &f.method) == nil && f.method != ""
			if !method {
				return f, false
			}
		case "params":
			params = true
		case "result":
			f.result = m.Value
		case "error":
			if m.Value[0] != '{' {
				return f, false
			}
			f.fault = m.Value
		}
	}
	f.reply = !method
	if f.reply {
		return f, version && f.id != "" && !params && (f.result == nil) != (f.fault == nil)
	}
	return f, version && f.result == nil && f.fault == nil
}
