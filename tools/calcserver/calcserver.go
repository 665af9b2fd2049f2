// Package calcserver is the smallest MCP server that is worth talking to: one tool, add, over 64-bit
// integers (SPEC C5). It is the end-to-end proof that a client, the protocol and a server of ours fit
// together, and the server to try a host with. It touches no file and keeps no state. Stdout carries
// protocol frames only.
package calcserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"sallyport/tools/stdio"
	"sallyport/tools/strictjson"
)

// ToolAdd is the name of the only tool.
const ToolAdd = "add"

// What a refused call is told.
const (
	unknownTool      = "Unknown tool"
	refusedArguments = "The arguments were refused: a and b must be there, be integers of 64 bits, and be alone."
	refusedOverflow  = "The sum does not fit into 64 bits."
	failedCall       = "The call failed."
)

var (
	errArguments = errors.New("arguments")
	errOverflow  = errors.New("overflow")
)

// Serve runs the calculator on the streams of a process until stdin ends, and returns the process's exit
// code: 0 at the end of stdin, 1 if the connection failed or a line was refused.
func Serve(ctx context.Context, stdin, stdout *os.File, stderr io.Writer) int {
	log := zerolog.New(stderr).With().Timestamp().Logger()
	err := stdio.Run(ctx, newProtocol(), stdin, stdout)
	if err == nil {
		return 0
	}
	event := log.Error()
	if errors.Is(err, stdio.ErrFrame) {
		event = event.Err(err) // a text of ours; others may quote what came in
	}
	event.Msg("the connection failed")
	return 1
}

func newProtocol() *mcp.Server {
	protocol := mcp.NewServer(&mcp.Implementation{Name: "sallyport-calc", Version: "0.1.0"},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	protocol.AddTool(&mcp.Tool{
		Name:        ToolAdd,
		Description: "Adds two integers of 64 bits exactly; a sum that does not fit is refused.",
		InputSchema: json.RawMessage(`{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
			"required": ["a", "b"], "additionalProperties": false}`),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: new(bool)},
	}, add)
	protocol.AddReceivingMiddleware(nameUnknownTools)
	return protocol
}

// nameUnknownTools refuses a call of any other tool in the words that clients look for, before the library
// does in its own.
func nameUnknownTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
		if call, ok := request.(*mcp.CallToolRequest); ok && call.Params.Name != ToolAdd {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: unknownTool}
		}
		return next(ctx, method, request)
	}
}

// add answers a call of the tool. A panic is answered too: it must not end the server.
func add(_ context.Context, request *mcp.CallToolRequest) (answer *mcp.CallToolResult, _ error) {
	defer func() {
		if recover() != nil {
			answer = refuse(failedCall)
		}
	}()
	a, b, err := parse(request.Params.Arguments)
	if err != nil {
		return refuse(refusedArguments), nil
	}
	sum, err := addExactly(a, b)
	if err != nil {
		return refuse(refusedOverflow), nil
	}
	return &mcp.CallToolResult{Content: text(strconv.FormatInt(sum, 10))}, nil
}

func refuse(why string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: text(why), IsError: true}
}

func text(s string) []mcp.Content { return []mcp.Content{&mcp.TextContent{Text: s}} }

// parse reads the arguments strictly: exactly a and b, both integers as written.
func parse(raw []byte) (a, b int64, err error) {
	members, err := strictjson.Members(raw)
	if err != nil {
		return 0, 0, errArguments
	}
	for _, name := range []string{"a", "b"} {
		if !slices.ContainsFunc(members, func(m strictjson.Member) bool { return m.Name == name }) {
			return 0, 0, errArguments
		}
	}
	var args struct {
		A int64 `json:"a"`
		B int64 `json:"b"`
	}
	if err := strictjson.Decode(raw, &args); err != nil {
		return 0, 0, errArguments
	}
	return args.A, args.B, nil
}

// addExactly returns the sum, or errOverflow if it is not an int64.
func addExactly(a, b int64) (int64, error) {
	if b > 0 && a > math.MaxInt64-b || b < 0 && a < math.MinInt64-b {
		return 0, errOverflow
	}
	return a + b, nil
}
