package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/scenarios/config"
	"sallyport/tools/grant"
)

// What the doctor checks of this machine and its files: nothing here starts a process or
// asks anybody.

func (d *doctor) program(context.Context) {
	b := thisBuild()
	says := fmt.Sprintf("sallyport %s, %s, %s, journal format %d", b.Version, b.Go, b.System, b.Journal)
	if !strings.HasPrefix(b.System, "linux/") {
		d.warn("version", "Linux is what is tested; see docs/safety.md", "%s", says)
		return
	}
	d.pass("version", "%s", says)
}

// configuration reads the user's own file and the project's.
func (d *doctor) configuration(context.Context) {
	var err error
	if d.home, err = configHome(); err != nil {
		d.failErr("your config", "", err)
	} else if user, err := config.LoadUser(d.home); err != nil {
		d.fail("your config", exitUsage, "mend the file at that place, or move it away", "%s", err)
	} else {
		d.user = user
		if user.Path == "" {
			d.warn("your config", "make a key, and the file with it: sallyport keys new", "there is none yet at %s: the defaults hold, and every key beside it may sign", filepath.Join(d.home, config.UserFile))
		} else {
			d.pass("your config", "%s loads; it lets %d keys sign", user.Path, len(user.Keys()))
		}
	}
	d.project()
}

const firstSteps = "see what it is like: sallyport demo\nthen write one with its servers and tools, beside your task: docs/configuration.md has one to copy"

func (d *doctor) project() {
	file := d.app.configFile
	if file == "" {
		var err error
		file, err = config.Find(".")
		if errors.Is(err, config.ErrNotFound) {
			d.warn("project", firstSteps, "there is no %s here, nor above up to the root of a repository", config.FileName)
			return
		}
		if err != nil {
			d.failErr("project", "", err)
			return
		}
	}
	c, err := config.Load(file, config.Options{})
	if err != nil {
		d.fail("project", exitUsage, "mend the file at that place", "%s", err)
		return
	}
	d.conf = c
	if len(c.Warnings) > 0 {
		texts := make([]string, len(c.Warnings))
		for i, w := range c.Warnings {
			texts[i] = w.String()
		}
		d.warn("project", "see docs/configuration.md", "%s loads, with %d servers and %d tools\n%s", c.File, len(c.Servers), len(c.Tools), strings.Join(texts, "\n"))
		return
	}
	d.pass("project", "%s loads, with %d servers and %d tools", c.File, len(c.Servers), len(c.Tools))
}

// How much of the disk should be free, and with how little a run cannot even begin, in
// bytes.
const (
	leastRoom = 200 << 20
	noRoom    = 1 << 20
)

// state looks at the state directory, and opens the state in it if there is one.
func (d *doctor) state(ctx context.Context) {
	dir, err := d.statePath()
	if err != nil {
		d.failErr("state", "", err)
		return
	}
	f, err := embedded.Examine(dir)
	if err != nil {
		d.fail("state", exitUsage, "or name another folder of your own on a local disk with --state DIR", "%s", err)
		return
	}
	d.stateDir = dir
	switch err := writable(f.Dir); {
	case err != nil:
		d.fail("state", exitUsage, "let this user write there, or name another folder with --state DIR", "%s: it cannot be written to: %v", f.Dir, err)
	case !f.Exists:
		d.pass("state", "%s is not there yet; the first run makes it, for you alone, in %s", dir, f.Dir)
	default:
		d.pass("state", "%s is yours, nobody else can write to it, and it is on a local disk", dir)
	}
	d.disk(f.Room)
	if f.Begun {
		d.journals(ctx, dir)
	}
}

func (d *doctor) disk(room int64) {
	switch {
	case room < 0:
		d.skip("disk", "how much of it is free is not known on this system")
	case room < noRoom:
		d.fail("disk", exitFailed, "free some of it: a run stops when its journal cannot be written", "it is full: %d KiB are free", room>>10)
	case room < leastRoom:
		d.warn("disk", "free some of it: a run stops when its journal cannot be written", "%d MiB are free", room>>20)
	default:
		d.pass("disk", "%d MiB are free", room>>20)
	}
}

// statePath is the state directory, as far as it can be known: a configuration that is
// wrong was told already.
func (d *doctor) statePath() (string, error) {
	switch {
	case d.app.stateDir != "":
		return filepath.Abs(d.app.stateDir)
	case d.conf != nil && d.conf.State != "":
		return d.conf.State, nil
	case d.conf == nil && d.user.State != "":
		return d.user.State, nil
	}
	return defaultState()
}

// journals opens the state, which refuses settings of SQLite that lose what was written.
func (d *doctor) journals(ctx context.Context, dir string) {
	err := openedAt(dir, func(e agent.Engine, _ string) error {
		runs, err := e.List(ctx, agent.Filter{})
		if err != nil {
			return err
		}
		open, future := 0, agent.Summary{}
		for _, r := range runs {
			if r.State.Open() {
				open++
			}
			if r.Updated.After(time.Now().Add(time.Minute)) {
				future = r
			}
		}
		if future.ID != "" {
			d.warn("journals", "see whether the clock is right: sallyport show "+future.ID, "%d runs, %d open; run %s has an entry of %s, which has not come yet", len(runs), open, future.ID, clock(future.Updated))
			return nil
		}
		d.pass("journals", "they open, journal_mode wal, synchronous full; %d runs, %d open", len(runs), open)
		return nil
	})
	if err != nil {
		d.failErr("journals", "", err)
	}
}

// clock compares the clock with the disk's, and with when this program can have been
// written.
func (d *doctor) clock(context.Context) {
	now := time.Now()
	path := filepath.Join(d.scratch, "clock")
	err := os.WriteFile(path, nil, 0o600)
	var info os.FileInfo
	if err == nil {
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		d.failErr("clock", "let this user write to "+os.TempDir()+", or set TMPDIR", err)
	case now.Year() < 2026:
		d.fail("clock", exitFailed, "set the clock: approvals and their expiry go by it", "it says %s, which is before this program was written", now.Format(time.RFC3339))
	case info.ModTime().Sub(now).Abs() > agent.GrantSkew*time.Second:
		d.warn("clock", "see which of the two is right: approvals go by the clock", "it says %s, and a file that was written now %s", now.Format(time.RFC3339), info.ModTime().Format(time.RFC3339))
	default:
		d.pass("clock", "it says %s, and files are dated the same", now.Format(time.RFC3339))
	}
}

// keys looks at the user's keys, without unlocking any.
func (d *doctor) keys(context.Context) {
	if d.home == "" {
		d.skip("keys", "where they are is not known")
		return
	}
	rows, err := keysIn(filepath.Join(d.home, keysBelow))
	switch {
	case err != nil:
		d.failErr("keys", "", err)
	case len(rows) == 0:
		d.warn("keys", "make one: sallyport keys new", "you have none, so that nothing that writes could be approved")
	}
	for _, r := range rows {
		d.key(r)
	}
	approvers := d.user.Keys()
	if d.conf != nil {
		approvers = d.conf.Keys
	}
	usable := 0
	for _, a := range approvers {
		if a.NotAfter.IsZero() || time.Now().Before(a.NotAfter) {
			usable++
		}
	}
	switch {
	case len(approvers) > 0 && usable == 0:
		d.fail("approvers", exitNoKey, "give one a later not_after in your own configuration, or list a new one", "all %d were to sign until a day that has passed", len(approvers))
	case usable == 0:
		d.warn("approvers", "make a key: sallyport keys new", "there are none: only tools that read can be used")
	default:
		d.pass("approvers", "%d may sign", usable)
	}
}

func (d *doctor) key(r keyRow) {
	check := "key " + r.Name
	lock := "it asks for a passphrase"
	if !r.Encrypted {
		lock = "it has no passphrase"
	}
	listed := listed(d.user.Keys(), publicKey(r.Public))
	switch {
	case r.Problem != "":
		d.fail(check, exitNoKey, "make it a file of your own with mode 0600: chmod 600 "+quoted(r.Path), "%s: %s", r.Path, r.Problem)
	case listed == nil:
		d.warn(check, "if it is to sign, list it under approvers in "+filepath.Join(d.home, config.UserFile), "%s; your configuration does not list it as an approver", lock)
	case !listed.NotAfter.IsZero() && !time.Now().Before(listed.NotAfter):
		d.warn(check, "give it a later not_after in your own configuration, or make another", "%s; it was to sign until %s", lock, listed.NotAfter.Format(time.DateOnly))
	default:
		d.pass(check, "its file is yours alone; %s; your configuration lets it sign", lock)
	}
}

// publicKey is the key of a line; no key if it is none.
func publicKey(line string) grant.PublicKey {
	k, _ := grant.ParsePublicKey(line) // a row with a problem says so itself
	return k
}

// terminal says whether somebody can be asked here, and how it is shown.
func (d *doctor) terminal(context.Context) {
	c := d.app.console()
	switch {
	case d.app.noInput:
		d.skip("terminal", "--no-input: nobody is asked, and runs that need an approval park with exit code 5")
	case !c.Interactive():
		d.skip("terminal", "stdin and stderr are none: nobody is asked, and runs that need an approval park with exit code 5")
	case c.Width() > 0 && c.Width() < 60:
		d.warn("terminal", "make it wider: what is approved is easier to read", "somebody can be asked here; it has %d columns", c.Width())
	default:
		d.pass("terminal", "somebody can be asked here; it has %d columns, TERM is %q; no colours are needed", c.Width(), os.Getenv("TERM"))
	}
}
