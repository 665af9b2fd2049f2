// Package docserver is the MCP server for documents: five tools over one workspace, on stdin and stdout. It
// searches and reads sources, and it creates a report when, and only when, an approver whose public key it
// holds has signed exactly that report. It trusts its configuration and nothing that comes over the wire:
// every argument and every claim is checked here, whatever the Host has checked before.
//
// It never replaces or removes a file, never creates a folder, and never reads a private key. Files and
// ledger are in package workspace, signatures in package grant, the handling of the streams in package
// stdio. Stdout carries protocol frames only.
package docserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"sallyport/tools/grant"
	"sallyport/tools/stdio"
	"sallyport/workspace"
)

// The server's name and version in the protocol.
const (
	serverName    = "sallyport-docs"
	serverVersion = "0.1.0"
)

// errHandler is why a call failed whose handler panicked, for the log.
var errHandler = errors.New("handler panicked")

// Options are what a server gets from the process around it.
type Options struct {
	// Now is the clock for the times of a grant; nil means time.Now.
	Now func() time.Time
	// Log receives one line for each call: tool, status and a fixed reason, never arguments. The zero value
	// logs nothing.
	Log zerolog.Logger
}

// Server is one document server. [Server.Run] may be called once; Close releases what New opened.
type Server struct {
	scope, audience string
	approvers       int
	mirror          bool
	keys            grant.Keys
	saveDefinition  string

	workspace *workspace.Workspace
	ledger    *workspace.Ledger
	now       func() time.Time
	lockWait  time.Duration
	log       zerolog.Logger
	protocol  *mcp.Server

	// began, when set by a test, runs as a handler begins.
	began func(tool string)
}

// New checks the configuration and opens the workspace and the ledger. Its error names what is wrong, and
// then nothing is left open (SPEC D11).
func New(config Config, options Options) (*Server, error) {
	keys, err := config.check()
	if err != nil {
		return nil, err
	}
	files, err := workspace.Open(config.Root)
	if err != nil {
		return nil, err
	}
	ledger, err := workspace.OpenLedger(config.Ledger, files)
	if err != nil {
		return nil, errors.Join(err, files.Close())
	}
	s := &Server{
		scope: config.Scope, audience: config.Audience, approvers: config.approvers(), mirror: config.MirrorText,
		keys: keys, workspace: files, ledger: ledger, now: options.Now, log: options.Log,
		lockWait: defaultLockWait,
	}
	if s.now == nil {
		s.now = time.Now
	}
	_, s.saveDefinition = Definition(ToolSave)
	s.protocol = s.newProtocol()
	for _, fallback := range files.Fallbacks() {
		s.log.Warn().Str("fallback", fallback).Msg("a system call is missing")
	}
	return s, nil
}

// Close releases the descriptors of workspace and ledger. It may be called twice.
func (s *Server) Close() error {
	return errors.Join(s.ledger.Close(), s.workspace.Close())
}

// Run serves one client until in ends, and closes both streams. Requests that were read are answered before
// it returns. A line that is refused ends it with [stdio.ErrFrame].
func (s *Server) Run(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	return stdio.Run(ctx, s.protocol, in, out)
}

// handler answers one call from the argument bytes as they came.
type handler func(ctx context.Context, arguments []byte) result

func (s *Server) newProtocol() *mcp.Server {
	protocol := mcp.NewServer(&mcp.Implementation{Name: serverName, Version: serverVersion},
		&mcp.ServerOptions{Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}}})
	handlers := map[string]struct {
		handle   handler
		panicked result // what is true when the handler did not come to an end
	}{
		ToolSearch: {s.search, failedSearch},
		ToolRead:   {s.read, failedRead},
		ToolStatus: {s.status, failedReport},
		ToolSave:   {s.save, unknownSave},
		ToolSettle: {s.settle, failedSettle},
	}
	for _, tool := range definitions() {
		h := handlers[tool.Name]
		protocol.AddTool(tool, s.serve(tool.Name, h.handle, h.panicked))
	}
	return protocol
}

// serve makes a protocol handler. A call that has begun is not given up when its caller stops listening or
// the input ends: each ends by itself, within the bounds of a workspace.
func (s *Server) serve(tool string, handle handler, panicked result) mcp.ToolHandler {
	return func(ctx context.Context, request *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		answer := s.guard(tool, handle, panicked)(context.WithoutCancel(ctx), request.Params.Arguments)
		s.log.Info().Str("tool", tool).Str("status", answer.Status).Str("reason", answer.reasonWord()).Msg("call")
		return answer.wire(s.mirror)
	}
}

// guard turns a panic into an answer: one broken call must not take the server and the other calls along.
func (s *Server) guard(tool string, handle handler, panicked result) func(context.Context, json.RawMessage) result {
	return func(ctx context.Context, arguments json.RawMessage) (answer result) {
		defer func() {
			if value := recover(); value != nil {
				answer = panicked.because(fmt.Errorf("%w (%T)", errHandler, value))
			}
		}()
		if s.began != nil {
			s.began(tool)
		}
		return handle(ctx, arguments)
	}
}
