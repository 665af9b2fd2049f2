package bridge

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"sallyport/tools"
)

// stderrTail is how much of a server's stderr is kept, in bytes: the end of it.
const stderrTail = 64 << 10

// tail keeps the end of what a server writes to stderr. It is for the operator only:
// a server may write there what it was sent, grants included.
type tail struct {
	mu      sync.Mutex
	file    *os.File
	ring    []byte // at most stderrTail
	at      int    // where the next byte goes, once the ring is full
	dropped int64  // bytes that are no longer there
	stopped bool
}

// drain reads until the end of the file, or [tail.stop], and closes it.
func (t *tail) drain(f *os.File) {
	t.mu.Lock()
	t.file = f
	if t.stopped {
		_ = f.Close()
	}
	t.mu.Unlock()
	buf := make([]byte, 32<<10)
	for {
		n, err := f.Read(buf)
		t.add(buf[:n])
		if err != nil {
			t.stop()
			return
		}
	}
}

// stop closes the file. A descendant that still holds the other end does not keep
// anybody waiting.
func (t *tail) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	if t.file != nil {
		_ = t.file.Close()
	}
}

// Write implements [io.Writer].
func (t *tail) Write(p []byte) (int, error) {
	t.add(p)
	return len(p), nil
}

func (t *tail) add(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(p) > 0 {
		if room := stderrTail - len(t.ring); room > 0 {
			n := min(room, len(p))
			t.ring, p = append(t.ring, p[:n]...), p[n:]
			continue
		}
		n := copy(t.ring[t.at:], p)
		t.at, p = (t.at+n)%stderrTail, p[n:]
		t.dropped += int64(n)
	}
}

// lost is how many bytes are no longer there.
func (t *tail) lost() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.dropped
}

// text is the kept end with every character shown that could act on a terminal or
// hide. What was dropped before it is counted in the first line.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := string(t.ring[t.at:]) + string(t.ring[:t.at])
	if t.dropped == 0 {
		return visible(kept)
	}
	return fmt.Sprintf("(%d bytes before this were dropped)\n", t.dropped) + visible(kept)
}

// visible writes each line as [tools.Visible] does.
func visible(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i], _ = tools.Visible(line)
	}
	return strings.Join(lines, "\n")
}
