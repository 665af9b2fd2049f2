package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// SaveOutcome tells what is known about a new file after [Workspace.Save].
type SaveOutcome int

// The outcomes of a save (SPEC D8).
const (
	// SaveUnknown: the name may or may not have appeared, or what is there could not be confirmed.
	SaveUnknown SaveOutcome = iota
	// SaveCreated: the file is there under its name, durable, and was read back equal.
	SaveCreated
	// SaveExists: the name was taken; what is there was not touched.
	SaveExists
	// SaveNotWritten: it ended before the step that can make the name appear; nothing was left behind.
	SaveNotWritten
)

// String returns the outcome in words.
func (o SaveOutcome) String() string {
	switch o {
	case SaveCreated:
		return "created"
	case SaveExists:
		return "exists"
	case SaveNotWritten:
		return "not written"
	case SaveUnknown:
	}
	return "unknown"
}

// Save creates reports/name with exactly content and mode 0600, whatever the umask, and never replaces an
// entry of any kind. The file appears whole or not at all: it is written and synced before it gets its name,
// and its folder is synced after. A sync that failed is not tried again. The error is nil for [SaveCreated]
// only and is for the operator; callers branch on the outcome. ctx is looked at before the first step and
// not after (SPEC D5, D8).
func (w *Workspace) Save(ctx context.Context, name string, content []byte) (SaveOutcome, error) {
	if !ValidName(name) {
		return SaveNotWritten, fmt.Errorf("save report %q: %w", name, ErrName)
	}
	if len(content) > MaxFileBytes {
		return SaveNotWritten, fmt.Errorf("save report %q: content %w", name, ErrTooLarge)
	}
	done, err := w.use()
	if err != nil {
		return SaveNotWritten, err
	}
	defer done()
	if err := ctx.Err(); err != nil {
		return SaveNotWritten, fmt.Errorf("save report %q: %w", name, err)
	}
	outcome, err := w.create(name, content)
	if err != nil {
		return outcome, fmt.Errorf("save report %q: %w", name, err)
	}
	return outcome, nil
}

// create writes a draft, gives it its name, makes that durable, and reads it back.
func (w *Workspace) create(name string, content []byte) (SaveOutcome, error) {
	d, err := w.calls.newDraft(w.reports)
	if err != nil {
		return SaveNotWritten, err
	}
	if err := d.fill(content); err != nil {
		return d.discard(err)
	}
	if err := d.link(name); err != nil {
		if errors.Is(err, ErrExists) {
			if _, left := d.discard(nil); left != nil {
				err = errors.Join(err, left)
			}
			return SaveExists, err
		}
		_, left := d.discard(nil)
		return SaveUnknown, errors.Join(err, left)
	}
	// The name is there. Whatever fails from here on leaves doubt.
	if err := d.settle(); err != nil {
		return SaveUnknown, err
	}
	back, file, err := w.readFile(w.reports, name)
	switch {
	case err != nil:
		return SaveUnknown, fmt.Errorf("read back: %w", err)
	case file != d.file || !bytes.Equal(back, content):
		return SaveUnknown, errors.New("read back: not the file that was written")
	}
	return SaveCreated, nil
}
