package terminal

import (
	"context"
	"errors"
	"io"
	"testing"
)

// Only the words themselves are chosen.
func TestConsole_Choose(t *testing.T) {
	for typed, want := range map[string]string{
		"applied\n": "applied", " not applied \n": "not applied", "unknown\n": "unknown",
		"not  applied\n": "", "Applied\n": "", "applied!\n": "", "\n": "", "\x04": "",
	} {
		keyboard, c := console(t)
		type chosen struct {
			word string
			err  error
		}
		done := make(chan chosen, 1)
		go func() { // ends with the answer
			word, err := c.Choose(t.Context(), "? ", "applied", "not applied", "unknown")
			done <- chosen{word, err}
		}()
		waitFor(t, keyboard, "? ")
		if _, err := io.WriteString(keyboard, typed); err != nil {
			t.Fatal(err)
		}
		if got := <-done; got.err != nil || got.word != want {
			t.Errorf("%q: %q, %v", typed, got.word, got.err)
		}
	}
}

func TestConsole_ChooseIsWithdrawn(t *testing.T) {
	_, c := console(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if word, err := c.Choose(ctx, "? ", "applied"); word != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("%q, %v", word, err)
	}
	if _, err := (Console{}).Choose(t.Context(), "? ", "applied"); err == nil {
		t.Error("asked without a terminal")
	}
}
