package terminal

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// changes shows what a person changed about the arguments that the model proposed, as a
// unified diff for each of them. All of it is untrusted: it stands behind the gutter.
func changes(w *bytes.Buffer, was, now []byte, width int) error {
	before, err := arguments(was)
	if err != nil {
		return err
	}
	after, err := arguments(now)
	if err != nil {
		return err
	}
	same := true
	for i, a := range after {
		b, there := find(before, a.name)
		if there && a == b {
			continue
		}
		same = false
		if err := change(w, i, a.name, word(there, "changed", "added"), b, a, width); err != nil {
			return err
		}
	}
	for i, b := range before {
		if _, there := find(after, b.name); !there {
			same = false
			if err := change(w, i, b.name, "removed", b, argument{}, width); err != nil {
				return err
			}
		}
	}
	if same {
		fmt.Fprintln(w, "(the same arguments as the model proposed)")
	}
	return nil
}

func word(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

func find(args []argument, name string) (argument, bool) {
	for _, a := range args {
		if a.name == name {
			return a, true
		}
	}
	return argument{}, false
}

// change shows one argument: lines of the model behind -, of the person behind +.
func change(w *bytes.Buffer, i int, name, how string, was, now argument, width int) error {
	if !plainName.MatchString(name) {
		fmt.Fprintf(w, "argument %d is called\n", i+1)
		if _, err := untrusted(w, name, width); err != nil {
			return err
		}
	}
	if how == "changed" && was.isText != now.isText {
		how += fmt.Sprintf(", from %s to %s", word(was.isText, "text", "JSON"), word(now.isText, "text", "JSON"))
	}
	fmt.Fprintf(w, "argument %s, %s\n", shortName(i, name), how)
	diff := udiff.Unified("was", "now", was.text, now.text)
	if _, body, found := strings.Cut(diff, "\n+++ now\n"); found {
		diff = body
	}
	_, err := untrusted(w, diff, width)
	return err
}
