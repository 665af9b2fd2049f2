package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/agent/embedded"
)

func (a *app) gcCommand() *cobra.Command {
	var before string
	var opts embedded.CollectOptions
	c := &cobra.Command{
		Use: "gc --ended-before WHEN", Short: "Remove runs that ended long ago, each as a whole", Args: cobra.NoArgs,
		Long: `Remove runs that ended before WHEN: journal, content, decisions and log. WHEN is an age
(30d, 12h), a day (2026-01-31, its beginning here) or a time (2026-01-31T09:00:00Z).

Open runs stay. A run that ended with the outcome of a write unknown stays too, unless
--unknown is given: its journal is the only record of that. So does one whose journal
does not hold together. Copies of what is removed may stay in the file until the next
erase: erase first what must be gone for certain.`,
		RunE: func(c *cobra.Command, _ []string) error {
			at, err := endedBefore(before, time.Now())
			if err != nil {
				return err
			}
			return a.upkeep(func(e *embedded.Engine, dir string) error { return a.collect(c.Context(), e, dir, at, opts) })
		},
	}
	c.Flags().StringVar(&before, "ended-before", "", "runs that ended before `WHEN`: an age, a day or a time")
	c.Flags().BoolVar(&opts.Dry, "dry-run", false, "remove nothing, say what would go")
	c.Flags().BoolVar(&opts.Unknown, "unknown", false, "also runs that ended with the outcome of a write unknown")
	return c
}

// endedBefore reads the value of --ended-before.
func endedBefore(text string, now time.Time) (time.Time, error) {
	at, ok := time.Time{}, false
	if days, isDays := strings.CutSuffix(text, "d"); isDays {
		n, err := strconv.ParseUint(days, 10, 16)
		at, ok = now.AddDate(0, 0, -int(n)), err == nil
	} else if age, err := time.ParseDuration(text); err == nil {
		at, ok = now.Add(-age), age >= 0
	} else if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		at, ok = day, true
	} else if exact, err := time.Parse(time.RFC3339, text); err == nil {
		at, ok = exact, true
	}
	switch {
	case text == "":
		return at, usage("say how old, for example --ended-before 30d", "gc: --ended-before is missing")
	case !ok:
		return at, usage("write an age such as 30d or 12h, a day such as 2026-01-31, or a time such as 2026-01-31T09:00:00Z",
			"gc --ended-before %q: not an age, a day or a time", text)
	case at.After(now):
		return at, usage("", "gc --ended-before %q: that time has not come", text)
	}
	return at, nil
}

// collected is what gc tells.
type collected struct {
	DryRun     bool      `json:"dry_run,omitempty"`
	Before     time.Time `json:"ended_before"`
	Runs       int64     `json:"runs"`
	Entries    int64     `json:"entries"`
	Bodies     int64     `json:"bodies"`
	Deliveries int64     `json:"deliveries"`
	Bytes      int64     `json:"bytes"` // by which the state file became shorter
	Kept       []kept    `json:"kept"`
}

// kept is a run that ended before and stays.
type kept struct {
	Run string `json:"run"`
	Why string `json:"why"`
}

func (a *app) collect(ctx context.Context, e *embedded.Engine, dir string, before time.Time, opts embedded.CollectOptions) error {
	was, err := runIDs(ctx, e)
	if err != nil {
		return err
	}
	gone, failed := e.Collect(ctx, before, opts)
	told := collected{
		DryRun: opts.Dry, Before: before.UTC(), Runs: gone.Runs, Entries: gone.Entries, Bodies: gone.Bodies,
		Deliveries: gone.Deliveries, Bytes: gone.Bytes, Kept: []kept{},
	}
	for _, k := range gone.Kept {
		told.Kept = append(told.Kept, kept{k.Run, k.Why.Error()})
	}
	return errors.Join(failed, a.removeLogs(context.WithoutCancel(ctx), e, dir, was), a.collected(told, gone.Kept))
}

// removeLogs removes the logs of those runs that are there no more.
func (a *app) removeLogs(ctx context.Context, e *embedded.Engine, dir string, was map[string]bool) error {
	is, err := runIDs(ctx, e)
	if err != nil {
		return err
	}
	var errs []error
	for id := range was {
		if is[id] {
			continue
		}
		if err := os.Remove(filepath.Join(dir, logFolder, id+".jsonl")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove the log of run %s: %w", id, err))
		}
	}
	return errors.Join(errs...)
}

func runIDs(ctx context.Context, e agent.Engine) (map[string]bool, error) {
	found, err := e.List(ctx, agent.Filter{})
	ids := make(map[string]bool, len(found))
	for _, s := range found {
		ids[s.ID] = true
	}
	return ids, err
}

// collected writes what gc did, or would.
func (a *app) collected(told collected, why []embedded.Kept) error {
	for _, k := range why {
		switch {
		case errors.Is(k.Why, embedded.ErrUnknown):
			a.say("Run %s stays: the outcome of a write stayed unknown. With --unknown it goes too.", k.Run)
		default:
			a.warn("Run "+k.Run+" stays", k.Why.Error())
		}
	}
	if a.output != formatTable {
		return a.json(told, a.output == formatJSON)
	}
	verb := "removed"
	if told.DryRun {
		verb = "would remove"
	}
	return a.print("%s %d runs that ended before %s: %d entries, %d bodies, %d decisions; the state file is %d bytes shorter\n",
		verb, told.Runs, clock(told.Before), told.Entries, told.Bodies, told.Deliveries, told.Bytes)
}
