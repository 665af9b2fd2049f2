package scriptserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// What a server keeps in its folder.
const (
	// RecordFile holds one [Entry] a line, in the order in which things came and were done.
	RecordFile = "record.jsonl"
	// FilesDir is the folder of the files that the script writes.
	FilesDir = "files"
)

// Entry is one line of a server's record. Besides Start exactly one of Method, Answer, Junk, Wrote and
// Spawned is set; none of them in the line of the start itself.
type Entry struct {
	// Start is which start of the server wrote the line: 1 is the first.
	Start int `json:"start"`
	// Method, ID and Params are a request or notification as it was received; Tool is the name in a
	// tools/call. The line is there before anything is done about it.
	Method string          `json:"method,omitzero"`
	ID     json.RawMessage `json:"id,omitzero"`
	Tool   string          `json:"tool,omitzero"`
	Params json.RawMessage `json:"params,omitzero"`
	// Reply is the path in the script of the reply that was chosen; empty for an ordinary one.
	Reply string `json:"reply,omitzero"`
	// Answer is a reply of the client to a request of the server, whole.
	Answer json.RawMessage `json:"answer,omitzero"`
	// Junk is a line that is no message.
	Junk string `json:"junk,omitzero"`
	// Wrote is a file that was written or removed.
	Wrote string `json:"wrote,omitzero"`
	// Spawned is the id of a process.
	Spawned int `json:"spawned,omitzero"`
}

// ReadRecord returns what the servers that ran in a folder noted. What a killed one left of its last line
// is passed over; a folder without a record has none. The entries hold what was sent, grants included.
func ReadRecord(folder string) ([]Entry, error) {
	data, err := os.ReadFile(filepath.Join(folder, RecordFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of a scripted server: %w", err)
	}
	var all []Entry
	for line := range bytes.Lines(data) {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			if bytes.HasSuffix(line, []byte{'\n'}) {
				return nil, fmt.Errorf("read the record of a scripted server: line %d: %w", len(all)+1, err)
			}
			break
		}
		all = append(all, e)
	}
	return all, nil
}

// memory is what a server knows of its past, and the record that it comes from. Without a folder it lasts
// for one start.
type memory struct {
	mu     sync.Mutex
	start  int
	lists  int
	calls  int
	used   map[string]int // by the path of the reply
	record io.WriteCloser // nil without a folder
}

// remember reads the record of a folder and begins a start.
func remember(folder string, forget bool) (*memory, error) {
	m := &memory{start: 1, used: map[string]int{}}
	if folder == "" {
		return m, nil
	}
	past, err := ReadRecord(folder)
	if err != nil {
		return nil, err
	}
	for _, e := range past {
		m.start = max(m.start, e.Start+1)
		if !forget {
			m.count(e)
		}
	}
	file := filepath.Join(folder, RecordFile)
	if err := dropHalfLine(file); err != nil {
		return nil, err
	}
	if m.record, err = os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600); err != nil {
		return nil, fmt.Errorf("open the record of a scripted server: %w", err)
	}
	return m, m.note(Entry{})
}

// dropHalfLine ends a record with a whole line.
func dropHalfLine(file string) error {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (len(data) == 0 || data[len(data)-1] == '\n') {
		return nil
	}
	if err == nil {
		err = os.Truncate(file, int64(bytes.LastIndexByte(data, '\n')+1))
	}
	if err != nil {
		return fmt.Errorf("mend the record of a scripted server: %w", err)
	}
	return nil
}

// count adds a message to what is counted.
func (m *memory) count(e Entry) {
	switch {
	case e.Method == "tools/call":
		m.calls++
	case e.Method == "tools/list" && firstPage(e.Params):
		m.lists++
	}
	if e.Reply != "" {
		m.used[e.Reply]++
	}
}

// firstPage reports whether a list is begun with these params.
func firstPage(params []byte) bool {
	var p struct{ Cursor *string }
	return len(params) == 0 || json.Unmarshal(params, &p) != nil || p.Cursor == nil
}

// note appends a line, whole, before it returns.
func (m *memory) note(e Entry) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record == nil {
		return nil
	}
	e.Start = m.start
	line, err := json.Marshal(e)
	if err == nil {
		_, err = m.record.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("note what was received: %w", err)
	}
	return nil
}

func (m *memory) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.record != nil {
		_ = m.record.Close() // each line was written whole
		m.record = nil
	}
}
