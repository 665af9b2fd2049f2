package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/agent/embedded"
)

func (a *app) backupCommand() *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "Write a checked copy of all runs to a new file, while others go on", Args: cobra.ExactArgs(1),
		Long: `Write a consistent copy of the state file to a new file of mode 0600: all journals, all
content and all decisions as they are at one moment, while other processes go on. The
copy is checked before it gets its name. A file that is there already is left alone.

It holds what the runs read and wrote, as the state directory does: keep it as safe.
It does not hold private keys, logs, or the ledgers of servers. Content that is erased
later stays in it.

To restore it in place, end every process that uses the state directory, move state.db,
state.db-wal and state.db-shm away, and copy FILE to state.db: the ledger, which
remembers the grants that were used, must be the one beside it.`,
		RunE: func(c *cobra.Command, args []string) error {
			return a.upkeep(func(e *embedded.Engine, dir string) error { return a.backup(c.Context(), e, dir, args[0]) })
		},
	}
}

// upkeep opens the state directory for a command about the store itself. It makes none.
func (a *app) upkeep(use func(e *embedded.Engine, dir string) error) error {
	dir, err := a.statePath()
	if err != nil {
		return err
	}
	return a.reading(func(e agent.Engine) error { return use(e.(*embedded.Engine), dir) }) // what reading opens
}

// copied is a backup that was written.
type copied struct {
	File  string `json:"file"`
	Bytes int64  `json:"bytes"`
}

func (a *app) backup(ctx context.Context, e *embedded.Engine, dir, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return usage("name a file", "back up to %q: %w", file, err)
	}
	switch err := e.Backup(ctx, file); {
	case errors.Is(err, fs.ErrExist):
		return usage("name a file that is not there yet", "%w", err)
	case errors.Is(err, fs.ErrNotExist):
		return usage("make the folder first", "%w", err)
	case errors.Is(err, fs.ErrPermission):
		return usage("name a file in a folder that you may write to", "%w", err)
	case err != nil:
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("look at the backup: %w", err)
	}
	a.say("To restore it, end every process that uses %s, move state.db* there away, and:\n  cp %s %s",
		quoted(dir), quoted(file), quoted(filepath.Join(dir, stateFile)))
	a.say("The ledgers of servers are not in it: keep the folder %s as it is, or grants that were used are forgotten.",
		quoted(filepath.Join(dir, "ledger")))
	if a.output != formatTable {
		return a.json(copied{file, info.Size()}, a.output == formatJSON)
	}
	return a.print("%s\n", quoted(file))
}
