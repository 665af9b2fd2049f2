package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"
)

// muteName is the hidden command that acceptance puts before a server.
const muteName = "mute"

// muteCommand relays between our stdin and stdout and a tool server, and keeps every
// tools/call from it: the server is discovered as always, and never answers a call.
func (a *app) muteCommand() *cobra.Command {
	return &cobra.Command{
		Use: muteName + " -- COMMAND…", Hidden: true, Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return mute(c.Context(), args, a.in, a.out, a.errs) },
	}
}

func mute(ctx context.Context, command []string, in io.Reader, out, errs *os.File) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = out, errs
	server, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	return errors.Join(relay(in, server), server.Close(), cmd.Wait())
}

// relay passes lines on, except calls.
func relay(in io.Reader, server io.Writer) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 && !isCall(line) {
			if _, err := server.Write(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func isCall(line []byte) bool {
	var m struct {
		Method string `json:"method"`
	}
	return json.Unmarshal(line, &m) == nil && m.Method == "tools/call"
}
