package terminal

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

func TestJudge(t *testing.T) {
	tests := map[string]Answer{
		"approve": Approved, " approve\t": Approved, "approve\r": Approved,
		"Approve": Refused, "APPROVE": Refused, "yes": Refused, "y": Refused, "": Refused,
		"approve it": Refused, "aprove": Refused, "approve approve": Refused,
		"ａｐｐｒｏｖｅ": Refused, "approve\u200b": Refused, "\"approve\"": Refused,
	}
	for line, want := range tests {
		if got := Judge(line); got != want {
			t.Errorf("Judge(%q) = %s, want %s", line, got, want)
		}
	}
}

// a pseudo-terminal, and a console on its far end.
func console(t *testing.T) (keyboard *os.File, c Console) {
	t.Helper()
	near, far, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
	return near, Console{In: far, Out: far}
}

type asked struct {
	answer Answer
	err    error
}

func ask(ctx context.Context, c Console) <-chan asked {
	got := make(chan asked, 1)
	go func() {
		a, err := c.Ask(ctx, "question> ")
		got <- asked{a, err}
	}()
	return got
}

// waitFor reads the screen until it shows text.
func waitFor(t *testing.T, screen io.Reader, text string) string {
	t.Helper()
	var seen strings.Builder
	buf := make([]byte, 256)
	for !strings.Contains(seen.String(), text) {
		n, err := screen.Read(buf)
		if err != nil {
			t.Fatalf("the screen ended with %q before it showed %q: %v", seen.String(), text, err)
		}
		seen.Write(buf[:n])
	}
	return seen.String()
}

func TestConsole_Ask(t *testing.T) {
	tests := []struct {
		name, typed string
		want        Answer
	}{
		{"the word", "approve\n", Approved},
		{"the word with space around", "  approve \n", Approved},
		{"another case", "Approve\n", Refused},
		{"yes", "yes\n", Refused},
		{"more than the word", "approve it\n", Refused},
		{"an empty line", "\n", Refused},
		{"end of input", "\x04", Refused},
		{"the word, then end of input instead of a newline", "approve\x04\x04", Refused},
		{"the word on the second line only", "no\napprove\n", Refused},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			keyboard, c := console(t)
			got := ask(t.Context(), c)
			waitFor(t, keyboard, "question> ")
			if _, err := io.WriteString(keyboard, tt.typed); err != nil {
				t.Fatal(err)
			}
			if a := <-got; a.err != nil || a.answer != tt.want {
				t.Errorf("typed %q: %s, %v, want %s", tt.typed, a.answer, a.err, tt.want)
			}
		})
	}
}

func TestConsole_AskIsWithdrawnWithAHalfTypedLine(t *testing.T) {
	keyboard, c := console(t)
	ctx, cancel := context.WithCancel(t.Context())
	got := ask(ctx, c)
	waitFor(t, keyboard, "question> ")
	if _, err := io.WriteString(keyboard, "approve"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, keyboard, "approve") // the echo: it has arrived
	cancel()
	if a := <-got; a.err != nil || a.answer != Withdrawn {
		t.Errorf("got %s, %v, want withdrawn", a.answer, a.err)
	}
}

func TestConsole_AskRefusesWhenTheTerminalGoesAway(t *testing.T) {
	keyboard, c := console(t)
	got := ask(t.Context(), c)
	waitFor(t, keyboard, "question> ")
	if err := keyboard.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case a := <-got:
		if a.answer == Approved {
			t.Errorf("got %s, %v", a.answer, a.err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the question outlived its terminal")
	}
}

func TestConsole_DiscardsWhatWasTypedBefore(t *testing.T) {
	keyboard, c := console(t)
	if _, err := io.WriteString(keyboard, "approve\n"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, keyboard, "approve")
	c.Discard()
	got := ask(t.Context(), c)
	waitFor(t, keyboard, "question> ")
	if _, err := io.WriteString(keyboard, "no\n"); err != nil {
		t.Fatal(err)
	}
	if a := <-got; a.err != nil || a.answer != Refused {
		t.Errorf("got %s, %v, want refused", a.answer, a.err)
	}
}

func TestConsole_AsksOnlyOnATerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close(); _ = w.Close() }()
	if _, err := io.WriteString(w, "approve\n"); err != nil {
		t.Fatal(err)
	}
	c := Console{In: r, Out: w}
	if c.Interactive() {
		t.Error("a pipe passes for a terminal")
	}
	if a, err := c.Ask(t.Context(), "question> "); err == nil || a != Withdrawn {
		t.Errorf("asked a pipe: %s, %v", a, err)
	}
	left := make([]byte, 8)
	if n, _ := r.Read(left); string(left[:n]) != "approve\n" {
		t.Errorf("the pipe was read: %q is left", left[:n])
	}
}
