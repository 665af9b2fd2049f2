//go:build unix

package screen_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/vt"
	"github.com/creack/pty"

	"sallyport/cmd/sallyport/screen"
)

var update = flag.Bool("update", false, "write the captured screens anew")

// patience is how long a screen may take to show what is waited for.
const patience = 20 * time.Second

// monitor is a terminal emulator with a screen running in it.
type monitor struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	quit   chan error // what Run returned

	mu      sync.Mutex
	vt      *vt.Emulator
	raw     bytes.Buffer // all that was written
	changed chan struct{}
}

// watch runs a screen in a terminal of that size.
func watch(t *testing.T, c screen.Config, width, height int) *monitor {
	t.Helper()
	m := monitorOf(t, width, height)
	m.start(c)
	return m
}

// monitorOf is a terminal of that size, with nothing in it yet.
func monitorOf(t *testing.T, width, height int) *monitor {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if master, err = pollable(master); err != nil {
		t.Fatal(err)
	}
	m := &monitor{t: t, master: master, slave: slave, quit: make(chan error, 1), vt: vt.NewEmulator(width, height), changed: make(chan struct{}, 1)}
	m.size(width, height)
	return m
}

// pollable is the same end of a terminal, whose reads end when it is closed.
func pollable(f *os.File) (*os.File, error) {
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	err = errors.Join(syscall.SetNonblock(fd, true), f.Close()) // before: a file is what it is then
	return os.NewFile(uintptr(fd), f.Name()), err
}

// start runs a screen in it until the test ends.
func (m *monitor) start(c screen.Config) {
	ctx, cancel := context.WithCancel(context.Background())
	var showing, reading sync.WaitGroup
	reading.Go(m.read)
	reading.Go(m.answer)
	showing.Go(func() { m.quit <- screen.Run(ctx, c, m.slave, m.slave) })
	m.t.Cleanup(func() {
		cancel()
		showing.Wait()
		_ = m.master.Close()                     // which ends what the library still reads; the other end goes with the process
		_ = m.vt.InputPipe().(io.Closer).Close() // its own Close is not for two goroutines
		reading.Wait()
	})
}

// read takes what is written to the terminal.
func (m *monitor) read() {
	buf := make([]byte, 4096)
	for {
		n, err := m.master.Read(buf)
		if err != nil {
			return // closed
		}
		m.mu.Lock()
		m.raw.Write(buf[:n])
		_, _ = m.vt.Write(buf[:n]) // it takes anything
		m.mu.Unlock()
		select {
		case m.changed <- struct{}{}:
		default:
		}
	}
}

// answer hands back what the emulator replies to queries.
func (m *monitor) answer() {
	buf := make([]byte, 256)
	for {
		n, err := m.vt.Read(buf)
		if err != nil {
			return
		}
		_, _ = m.master.Write(buf[:n]) // the screen may be gone
	}
}

func (m *monitor) size(width, height int) {
	m.t.Helper()
	if err := pty.Setsize(m.slave, &pty.Winsize{Cols: uint16(width), Rows: uint16(height)}); err != nil {
		m.t.Fatal(err)
	}
}

// resize gives the terminal another size.
func (m *monitor) resize(width, height int) {
	m.t.Helper()
	m.mu.Lock()
	m.vt.Resize(width, height)
	m.mu.Unlock()
	m.size(width, height)
	if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
		m.t.Fatal(err)
	}
}

// keys types.
func (m *monitor) keys(text string) {
	m.t.Helper()
	if _, err := m.master.WriteString(text); err != nil {
		m.t.Fatal(err)
	}
}

// text is what is on the screen, without what is blank at the right.
func (m *monitor) text() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	lines := strings.Split(strings.ReplaceAll(m.vt.String(), "\r", ""), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// written is how many bytes were written so far.
func (m *monitor) written() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.raw.Len()
}

// until waits for the screen to be as it should, and gives it.
func (m *monitor) until(what string, is func(string) bool) string {
	m.t.Helper()
	late := time.After(patience)
	for {
		text := m.text()
		if is(text) {
			return text
		}
		select {
		case <-m.changed:
		case err := <-m.quit:
			m.t.Fatalf("the screen ended (%v) before %s:\n%s", err, what, text)
		case <-late:
			m.t.Fatalf("no %s in %s; the screen is\n%s", what, patience, text)
		}
	}
}

// shows waits for a text on the screen.
func (m *monitor) shows(want string) string {
	m.t.Helper()
	return m.until(want, func(text string) bool { return strings.Contains(text, want) })
}

// golden waits for the screen to be the one that was captured.
func (m *monitor) golden(name string) {
	m.t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		m.rest()
		if err := os.WriteFile(path, []byte(m.text()), 0o600); err != nil {
			m.t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		m.t.Fatal(err)
	}
	m.until("the screen of "+path, func(text string) bool { return text == string(want) })
}

// rest waits until nothing is written for a while: when captures are made anew only.
func (m *monitor) rest() {
	for {
		select {
		case <-m.changed:
		case <-time.After(time.Second):
			return
		}
	}
}

// ended waits for the screen to end.
func (m *monitor) ended() error {
	m.t.Helper()
	select {
	case err := <-m.quit:
		return err
	case <-time.After(patience):
		m.t.Fatalf("the screen does not end:\n%s", m.text())
		return nil
	}
}

// stream is all that was written to the terminal.
func (m *monitor) stream() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.raw.String()
}
