package main

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"sallyport/agent"
)

// build is what this executable is.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	System  string `json:"system"`
	Journal int    `json:"journal"` // the newest journal format that it reads
	Rules   int    `json:"rules"`   // the version of Step's behaviour
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version, and the formats that it reads", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if a.output != formatTable {
				return a.json(b, a.output == formatJSON)
			}
			return a.print("sallyport %s %s %s, journal format %d, rules %d\n",
				b.Version, cmp.Or(b.Commit, "(no commit)"), b.Go+" "+b.System, b.Journal, b.Rules)
		},
	}
}

func thisBuild() build {
	b := build{
		Version: "devel", Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Journal: agent.Version, Rules: agent.Rules,
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		b.Version = v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			b.Commit = s.Value
		}
	}
	return b
}
