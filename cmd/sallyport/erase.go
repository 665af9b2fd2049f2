package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sallyport/agent"
	"sallyport/agent/embedded"
	"sallyport/scenarios"
)

// leastDigits is how many hex digits of a hash name content at least.
const leastDigits = 12

func (a *app) eraseCommand() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "erase RUN REF", Short: "Erase the content behind a hash for good; the journal holds", Args: runAndRef,
		Long: `Erase content of a run that has ended: a task, a message, arguments, a result. REF is
its SHA-256 as show and journal print it, with or without sha256: before it; the first
12 digits or more are enough if only one body of the run begins so.

The bytes leave every file of the state directory, unless another run holds the same
content. The journal names content by its hash only, so that its chain still holds;
it gets an entry that says who erased what, and audits say "erased". There is no way
back. Backups and exports that were made before are not reached.

It is asked about on a terminal; without one --yes is needed.`,
		ValidArgsFunction: a.completeRuns(agent.Filter{}),
		RunE: func(c *cobra.Command, args []string) error {
			return a.upkeep(func(e *embedded.Engine, dir string) error {
				return a.erase(c.Context(), e, dir, args[0], args[1], yes)
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// runAndRef wants the id of a run and the digits of a hash.
func runAndRef(c *cobra.Command, args []string) error {
	if err := cobra.ExactArgs(2)(c, args); err != nil {
		return err
	}
	if _, err := digits(args[1]); err != nil {
		return err
	}
	return agent.CheckRunID(args[0])
}

// hashDigits are those of a hash, or of the beginning of one.
var hashDigits = regexp.MustCompile(`^[0-9a-f]{1,64}$`)

// digits are the hex digits of a reference as people write it.
func digits(ref string) (string, error) {
	text, _, _ := strings.Cut(strings.TrimPrefix(ref, "sha256:"), "#")
	text = strings.ToLower(strings.TrimRight(text, "….")) // as lists shorten it
	switch {
	case !hashDigits.MatchString(text):
		return "", fmt.Errorf("%q is no SHA-256: want its hex digits", ref)
	case len(text) < leastDigits:
		return "", fmt.Errorf("%q is too short: want %d hex digits or more", ref, leastDigits)
	}
	return text, nil
}

// erasure is content that was erased.
type erasure struct {
	SHA256 string    `json:"sha256"`
	Bytes  int64     `json:"bytes"`
	Time   time.Time `json:"time"`
	By     string    `json:"by"`
}

func erasures(entries []agent.Entry) (found []erasure) {
	for _, e := range entries {
		if e.Kind == agent.EntryErased {
			found = append(found, erasure{e.Body.SHA256, e.Body.Bytes, e.Time, e.Actor})
		}
	}
	return found
}

// content is something that a journal names.
type content struct {
	Run     string   `json:"run"`
	SHA256  string   `json:"sha256"`
	Bytes   int64    `json:"bytes"`
	Entries []int64  `json:"entries"`         // that name it
	Forks   []string `json:"forks,omitempty"` // of the run: they may hold copies

	words []string
}

func (c *content) ref() agent.BodyRef { return agent.BodyRef{SHA256: c.SHA256, Bytes: c.Bytes} }

// find finds the one body of a journal whose hash begins with those digits.
func find(run string, entries []agent.Entry, prefix string) (*content, error) {
	var found []*content
	for _, e := range entries {
		if e.Kind != agent.EntryEvent {
			continue
		}
		for _, ref := range named(e) {
			if !strings.HasPrefix(ref.SHA256, prefix) {
				continue
			}
			found = mention(found, run, ref, e)
		}
	}
	switch len(found) {
	case 0:
		return nil, usage("see what it names with: sallyport journal "+run+" -o jsonl", "run %s names no content that begins with %s", run, prefix)
	case 1:
		return found[0], nil
	}
	return nil, usage("give more digits", "run %s names %d contents that begin with %s", run, len(found), prefix)
}

func mention(found []*content, run string, ref agent.BodyRef, e agent.Entry) []*content {
	for _, c := range found {
		if c.ref() != ref {
			continue
		}
		if c.Entries[len(c.Entries)-1] != e.Seq {
			c.Entries = append(c.Entries, e.Seq)
			c.words = append(c.words, fmt.Sprintf("%d (%s)", e.Seq, e.Row))
		}
		return found
	}
	return append(found, &content{
		Run: run, SHA256: ref.SHA256, Bytes: ref.Bytes, Entries: []int64{e.Seq}, words: []string{fmt.Sprintf("%d (%s)", e.Seq, e.Row)},
	})
}

// named are the references in an entry, wherever in it they are.
func named(e agent.Entry) []agent.BodyRef {
	var v any
	d := json.NewDecoder(bytes.NewReader(e.Bytes()))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return nil // it was parsed before
	}
	return references(nil, v)
}

func references(found []agent.BodyRef, v any) []agent.BodyRef {
	switch v := v.(type) {
	case []any:
		for _, it := range v {
			found = references(found, it)
		}
	case map[string]any:
		sum, _ := v["sha256"].(string)
		size, _ := v["bytes"].(json.Number)
		if n, err := size.Int64(); err == nil && len(sum) == 64 {
			found = append(found, agent.BodyRef{SHA256: sum, Bytes: n})
		}
		for _, it := range v {
			found = references(found, it)
		}
	}
	return found
}

func (a *app) erase(ctx context.Context, e *embedded.Engine, dir, id, ref string, yes bool) error {
	prefix, err := digits(ref)
	if err != nil {
		return usage("", "%w", err)
	}
	run, entries, err := scenarios.Load(ctx, e, id)
	if err != nil {
		return err
	}
	if !run.State.Final() {
		return stillOpen(run.ID, fmt.Errorf("erase content of run %s: %w (%s), and may need it to go on", run.ID, embedded.ErrOpen, run.State))
	}
	it, err := find(id, entries, prefix)
	if err != nil {
		return err
	}
	if err := a.sure(ctx, it, yes); err != nil {
		return err
	}
	operator, err := a.operator("", dir)
	if err != nil {
		return err
	}
	switch err := e.Erase(ctx, id, it.ref(), operator); {
	case errors.Is(err, embedded.ErrOpen):
		return stillOpen(id, err)
	case errors.Is(err, agent.ErrNoBody):
		return usage("see what it names with: sallyport journal "+id+" -o jsonl", "%w", err)
	case err != nil:
		return err
	}
	if it.Forks, err = forksOf(ctx, e, id); err != nil {
		return err
	}
	if len(it.Forks) > 0 {
		a.say("Forks of run %s may hold a copy, which is erased in each of them by itself: %s.", id, strings.Join(it.Forks, ", "))
	}
	if a.output != formatTable {
		return a.json(it, a.output == formatJSON)
	}
	return a.print("erased %s: %d bytes\n", it.SHA256, it.Bytes)
}

// forksOf are the runs that are forks of another, or of such a fork.
func forksOf(ctx context.Context, e agent.Engine, id string) ([]string, error) {
	all, err := e.List(ctx, agent.Filter{})
	if err != nil {
		return nil, fmt.Errorf("look for forks of run %s: %w", id, err)
	}
	var found []string
	for of := []string{id}; len(of) > 0; of = of[1:] {
		for _, s := range all {
			if s.Parent == of[0] {
				found, of = append(found, s.ID), append(of, s.ID)
			}
		}
	}
	return found, nil
}

func stillOpen(run string, err error) error {
	return fail(exitDenied, "wait until it has ended, or end it with: sallyport cancel "+run, "%w", err)
}

// sure asks whether it is meant.
func (a *app) sure(ctx context.Context, it *content, yes bool) error {
	if yes {
		return nil
	}
	if !a.asks() {
		return usage("add --yes", "erase content of run %s: there is nobody to ask, and no --yes", it.Run)
	}
	a.say("Content of run %s, %d bytes, sha256:%s, named by entries %s.", it.Run, it.Bytes, it.SHA256, strings.Join(it.words, ", "))
	word, err := a.console().Choose(ctx, "Type erase to erase it for good.\nerase? ", "erase")
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err == nil && word == "" {
		err = fail(exitDenied, "", "erase content of run %s: nothing was erased", it.Run)
	}
	return err
}
