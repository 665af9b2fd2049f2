package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"sallyport/scenarios/config"
	"sallyport/tools"
	"sallyport/tools/scriptserver"
)

// idleName is the hidden command that a scripted server spawns.
const idleName = "idle"

// scriptCommand plays a server whose behaviour is written down.
func (a *app) scriptCommand() *cobra.Command {
	var file, folder string
	script := &cobra.Command{
		Use: "script --config FILE [--folder DIR]", Short: "A server whose whole behaviour is written down, for tests", Args: cobra.NoArgs,
		Long: `Serve what FILE describes: tools, replies in order, delays, crashes, junk. FILE is YAML, or JSON:

  tools:
    - name: find
      description: Finds a text.
      result: status              # answers {status, message, data}
      replies:
        - {status: ok, data: {hits: 1}}
        - {delay: 10s}            # the second call is slow
        - {exit: 3}               # and every one after it ends the server

DIR takes record.jsonl, where every message is noted as it came, and files/, where replies write.`,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := readScript(file)
			if err != nil {
				return usage("see: sallyport help mcp script", "%w", err)
			}
			self, err := os.Executable()
			if err != nil {
				return err
			}
			a.code = exit(scriptserver.Serve(c.Context(), s, scriptserver.Options{
				Folder: folder, Idle: []string{self, "mcp", idleName},
			}, a.in, a.out, a.errs))
			return nil
		},
	}
	script.Flags().StringVar(&file, "config", "", "the description, a YAML or JSON `FILE`")
	script.Flags().StringVar(&folder, "folder", "", "a `DIR` for the record of what was received and the files that are written")
	return script
}

// readScript reads a description: JSON as the Host writes it, or YAML as people do.
func readScript(file string) (scriptserver.Script, error) {
	var s scriptserver.Script
	if file == "" {
		return s, errors.New("no description was given: name its file with --config FILE")
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return s, err
	}
	if filepath.Ext(file) == ".json" {
		return scriptserver.Parse(file, data)
	}
	f, err := config.ParseFile(file, data)
	if err == nil {
		err = f.Decode(&s)
	}
	if err != nil {
		return s, err
	}
	problems := []tools.Problem{}
	for _, p := range s.Check() {
		problems = append(problems, tools.Problem(p))
	}
	return s, f.Problems(problems)
}

// idleCommand is a process that does nothing, for a scripted server to leave behind.
func (a *app) idleCommand() *cobra.Command {
	var life time.Duration
	var stubborn bool
	idle := &cobra.Command{
		Use: idleName, Hidden: true, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			scriptserver.Idle(c.Context(), life, stubborn)
			return nil
		},
	}
	idle.Flags().DurationVar(&life, "for", time.Minute, "how long")
	idle.Flags().BoolVar(&stubborn, "stubborn", false, "ignore what asks it to end")
	return idle
}
