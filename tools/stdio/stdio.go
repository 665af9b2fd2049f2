// Package stdio runs an MCP server on a pair of streams, which is what our servers have in common. It
// stands between the streams and the protocol library, which decodes before it checks: a line is bounded,
// must be one strict JSON object, and only then is passed on. It also keeps the input open until the
// replies that are owed have been written, so that requests piped in are answered before the server ends.
//
// It knows no tool. A refused line ends the connection, because nobody can tell which request it was; the
// one exception is in [Run].
package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"sallyport/tools/strictjson"
)

// Limits of a connection.
const (
	// MaxLine is the length of the longest line that is read, in bytes, without its line end.
	MaxLine = 1 << 20
	// lastReplies bounds the wait for replies that are owed when the input has ended.
	lastReplies = 5 * time.Second
)

// ErrFrame reports that a line was refused, which ended the connection. Its text never holds any of it.
var ErrFrame = errors.New("a line of the input was refused")

// Run serves until in ends, a line is refused (ErrFrame), or ctx ends, and closes both streams.
//
// A tools/call whose fault lies within its arguments (duplicate names, a lone surrogate, a number past the
// limits of [strictjson.FrameLimits]) does not end the connection: its arguments are replaced by null,
// which every tool refuses, so that the caller gets an answer to its request.
func Run(ctx context.Context, server *mcp.Server, in io.ReadCloser, out io.WriteCloser) error {
	owed := newReplies()
	lines := newLineReader(in, owed)
	err := server.Run(ctx, &mcp.IOTransport{
		Reader: lines,
		Writer: &replyWriter{out: out, owed: owed},
		// A replaced or trimmed line is never longer than the line that was read.
		MaxLineLength: MaxLine + 2,
	})
	if refused := lines.refusal(); refused != nil {
		return refused
	}
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// reason names what is wrong with a line, in words of ours.
func reason(err error) error {
	for _, known := range []error{
		strictjson.ErrSyntax, strictjson.ErrTrailing, strictjson.ErrDuplicate, strictjson.ErrUTF8,
		strictjson.ErrDepth, strictjson.ErrNumber, strictjson.ErrTooLarge, strictjson.ErrNotObject,
	} {
		if errors.Is(err, known) {
			return fmt.Errorf("%w: %w", ErrFrame, known)
		}
	}
	return ErrFrame
}
