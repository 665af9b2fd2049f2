package cassette

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sallyport/nodes"
)

// Recorder writes the cassette of one run. It is safe for use by several goroutines.
// Close it.
type Recorder struct {
	mu       sync.Mutex
	path     string
	file     *os.File
	size     int64
	header   *header // nil before the first line
	sum      string  // of the last line
	messages []nodes.Message
}

// Create makes a new file, of mode 0600, which must not exist ([fs.ErrExist]). Nothing
// is written before the first attempt has ended.
func Create(path string) (*Recorder, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create the cassette: %w", err)
	}
	if err := syncFolder(path); err != nil {
		return nil, errors.Join(fmt.Errorf("create the cassette: %w", err), file.Close())
	}
	return &Recorder{path: path, file: file}, nil
}

// Append goes on with a cassette of the same run, such as after an approval in another
// process. What is not whole and unchanged is refused, as a [Player] refuses it.
func Append(path string) (*Recorder, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("go on with the cassette: %w", err)
	}
	r, err := goOn(path, file)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return r, nil
}

func goOn(path string, file *os.File) (*Recorder, error) {
	data, err := readAll(path, file)
	if err != nil {
		return nil, err
	}
	r := &Recorder{path: path, file: file, size: int64(len(data))}
	if len(data) == 0 {
		return r, nil
	}
	p, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	r.header, r.sum = &p.header, p.header.Sum
	if n := len(p.records); n > 0 {
		r.sum, r.messages = p.records[n-1].Sum, p.records[n-1].messages
	}
	return r, nil
}

func readAll(path string, file *os.File) ([]byte, error) {
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the cassette: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("read the cassette %q: it is no ordinary file", path)
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read the cassette: %w", err)
	}
	return data, nil
}

// syncFolder makes the name of a new file durable.
func syncFolder(path string) error {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Close closes the file. A run of which nothing was recorded leaves none.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.header == nil {
		if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("remove the empty cassette: %w", err), r.file.Close())
		}
	}
	if err := r.file.Close(); err != nil {
		return fmt.Errorf("close the cassette: %w", err)
	}
	return nil
}

// Model is a model that answers as m does, and is recorded. label names it in the
// cassette.
func (r *Recorder) Model(label string, m nodes.Model) nodes.Model { return recorded{r, label, m} }

type recorded struct {
	recorder *Recorder
	label    string
	model    nodes.Model
}

// unrecorded is a turn that cannot be recorded: the fault is not the model's, and the
// run stays as it is for all that.
type unrecorded struct {
	path string
	err  error
}

func (u *unrecorded) Error() string {
	return fmt.Sprintf("record the model's turn in %q: %v; the turn is not kept", u.path, u.err)
}

func (u *unrecorded) Unwrap() []error { return []error{u.err, nodes.ErrModelFault} }

// Turn implements [nodes.Model]. An attempt that cannot be recorded is a fault of the
// model: the run stays as it is. So is nothing recorded of a model that is at fault
// itself, or of one that was not waited for.
func (m recorded) Turn(ctx context.Context, q nodes.Request) (nodes.Reply, error) {
	start := time.Now()
	answer, err := m.model.Turn(ctx, q)
	took := time.Since(start)
	if ctx.Err() != nil || errors.Is(err, nodes.ErrModelFault) {
		return answer, err
	}
	line := record{Attempt: q.Attempt, Millis: took.Milliseconds()}
	switch missed := new(nodes.Unavailable); {
	case err == nil:
		line.Reply = replyOf(answer)
	case errors.As(err, &missed):
		line.Unavailable = &unavailable{Reason: missed.Reason, After: missed.After.Milliseconds(), Final: missed.Final}
	default:
		line.Unavailable = &unavailable{}
	}
	if err := m.recorder.write(m.label, q, line); err != nil {
		return nodes.Reply{}, &unrecorded{m.recorder.path, err}
	}
	return answer, err
}

// Fits reports why the cassette cannot go on with a run of that model: it records
// another. One that is empty fits all.
func (r *Recorder) Fits(run, label string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.fits(run, label)
}

func (r *Recorder) fits(run, label string) error {
	switch {
	case r.header == nil:
	case r.header.Run != run:
		return fmt.Errorf("it records run %q, and this is run %q", r.header.Run, run)
	case r.header.Model != label:
		return fmt.Errorf("it records the model %q, and this is %q", r.header.Model, label)
	}
	return nil
}

// write adds a line, and the header before the first.
func (r *Recorder) write(label string, q nodes.Request, line record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []byte
	if r.header == nil {
		tools, err := toolsOf(q)
		if err != nil {
			return err
		}
		h := &header{Cassette: Version, Run: q.Run, Model: label, Tools: tools}
		if out, err = seal("", &h.Sum, h); err != nil {
			return err
		}
		r.header, r.sum = h, h.Sum
	}
	if err := r.fits(q.Run, label); err != nil {
		return err
	}
	data, err := r.line(q, &line)
	if err != nil {
		return err
	}
	if out = append(out, data...); r.size+int64(len(out)) > MaxBytes {
		return fmt.Errorf("a cassette has at most %d bytes", MaxBytes)
	}
	if _, err := r.file.Write(out); err != nil {
		return errors.Join(err, r.file.Truncate(r.size)) // no part of a line is left
	}
	if err := r.file.Sync(); err != nil {
		return err
	}
	r.sum, r.messages, r.size = line.Sum, line.messages, r.size+int64(len(out))
	return nil
}

// line completes a line.
func (r *Recorder) line(q nodes.Request, line *record) ([]byte, error) {
	var err error
	line.messages = normal(q.Messages)
	line.Turn = q.Taken() + 1
	if line.Request, err = digest(q, line.messages); err != nil {
		return nil, err
	}
	if line.Keep, err = shared(r.messages, line.messages); err != nil {
		return nil, err
	}
	line.Added = line.messages[line.Keep:]
	return seal(r.sum, &line.Sum, line)
}
