package chat

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"

	"sallyport/tools/strictjson"
)

// MaxStream bounds a streamed response as it comes over the wire, in bytes.
const MaxStream = 64 << 20

// ErrTooLarge is the error of a stream past [MaxStream], or of an event that is larger
// than a frame may be.
var ErrTooLarge = errors.New("the stream is too large")

// ErrCut is the error of a stream that ends in the middle of a line.
var ErrCut = errors.New("the stream ended in the middle of a line")

// Events yields the data of each event of a stream in the form of server-sent events:
// comments, other fields and events without data are passed over. What it yields is valid
// until the next. The sequence ends with the stream, or after an error of the reader.
func Events(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		s := events{in: bufio.NewReaderSize(r, 1<<16)}
		for {
			data, err := s.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(data, err) || err != nil {
				return
			}
		}
	}
}

type events struct {
	in    *bufio.Reader
	total int
	data  []byte
	lines int // of data in this event
	ended bool
}

// next is the data of the next event. The last one needs no empty line behind it, but
// its line must be whole.
func (s *events) next() ([]byte, error) {
	s.data, s.lines = s.data[:0], 0
	for !s.ended {
		line, err := s.line()
		switch {
		case errors.Is(err, io.EOF):
			s.ended = true
		case err != nil:
			return nil, err
		case len(line) > 0:
			if err := s.field(line); err != nil {
				return nil, err
			}
			continue
		}
		if s.lines > 0 {
			return s.data, nil
		}
	}
	return nil, io.EOF
}

// line is the next line without its end; \n and \r\n end one.
func (s *events) line() ([]byte, error) {
	var whole []byte
	for {
		piece, err := s.in.ReadSlice('\n')
		if s.total += len(piece); s.total > MaxStream || len(whole)+len(piece) > strictjson.FrameLimits.Bytes+len("data: \r\n") {
			return nil, ErrTooLarge
		}
		switch {
		case err == nil && whole == nil:
			return bytes.TrimSuffix(piece[:len(piece)-1], []byte{'\r'}), nil
		case err == nil:
			whole = append(whole, piece[:len(piece)-1]...)
			return bytes.TrimSuffix(whole, []byte{'\r'}), nil
		case errors.Is(err, bufio.ErrBufferFull):
			whole = append(whole, piece...)
		case errors.Is(err, io.EOF) && len(whole)+len(piece) > 0:
			return nil, ErrCut
		case errors.Is(err, io.EOF):
			return nil, io.EOF
		default:
			return nil, fmt.Errorf("read the stream: %w", err)
		}
	}
}

// field takes a line of an event in.
func (s *events) field(line []byte) error {
	name, value, _ := bytes.Cut(line, []byte{':'})
	if string(name) != "data" {
		return nil
	}
	if s.lines++; s.lines > 1 {
		s.data = append(s.data, '\n')
	}
	s.data = append(s.data, bytes.TrimPrefix(value, []byte{' '})...)
	if len(s.data) > strictjson.FrameLimits.Bytes {
		return ErrTooLarge
	}
	return nil
}
