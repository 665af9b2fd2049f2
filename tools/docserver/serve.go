package docserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rs/zerolog"

	"sallyport/tools/stdio"
)

// The exit codes of [Serve].
const (
	exitEnded   = 0 // the input ended
	exitFailed  = 1 // the connection failed or was refused
	exitRefused = 2 // the start was refused; nothing was written to stdout (SPEC D11)
)

// Serve runs the document server of a configuration file on the streams of a process until stdin ends, and
// returns the process's exit code: 0 at the end of stdin, 1 if the connection failed, 2 if the start was
// refused, with what is wrong on stderr. Stdout carries protocol frames only (SPEC D10).
func Serve(ctx context.Context, configPath string, stdin, stdout *os.File, stderr io.Writer) int {
	config, err := LoadConfig(configPath)
	if err != nil {
		return refuse(stderr, err)
	}
	server, err := New(config, Options{Log: zerolog.New(stderr).With().Timestamp().Logger()})
	if err != nil {
		return refuse(stderr, err)
	}
	return server.serveProcess(ctx, stdin, stdout)
}

// serveProcess runs the server and releases everything that it holds.
func (s *Server) serveProcess(ctx context.Context, stdin, stdout *os.File) int {
	code := exitEnded
	if err := s.Run(ctx, stdin, stdout); err != nil {
		event := s.log.Error()
		if errors.Is(err, stdio.ErrFrame) {
			event = event.Err(err) // a text of ours; others may quote what came in
		}
		event.Msg("the connection failed")
		code = exitFailed
	}
	if err := s.Close(); err != nil {
		s.log.Error().Msg("a descriptor could not be closed")
		code = exitFailed
	}
	return code
}

func refuse(stderr io.Writer, err error) int {
	_, _ = fmt.Fprintf(stderr, "sallyport mcp docs: %v\n", err) // there is nowhere else to say it
	return exitRefused
}
