package config

import (
	"errors"
	"fmt"
	"strings"

	"sallyport/tools/grant"
)

// Key says where the key of an endpoint is. The zero value is none: the endpoint is
// asked without one.
type Key struct {
	Env    string // the name of an environment variable
	File   string // the path of a private file; absolute
	Needed bool   // the endpoint is not asked without it
}

// said reports whether it names a place.
func (k Key) said() bool { return k.Env != "" || k.File != "" }

// Here reports whether there is a key to send.
func (k Key) Here(env Getenv) bool {
	key, err := k.Read(env)
	return err == nil && key != ""
}

// ErrNoKey: the key of an endpoint is not where it should be, or is none.
var ErrNoKey = errors.New("no key for the model's endpoint")

// MaxKey bounds a key, in bytes.
const MaxKey = 4096

// Read reads the key; empty if there is none to send. A file must be private as those
// of approvers are: a regular file of the user's own, mode 0600, under one name. No
// error holds any part of a key; each is an [ErrNoKey].
func (k Key) Read(env Getenv) (string, error) {
	switch {
	case k.File != "":
		data, err := grant.ReadPrivate(k.File, MaxKey)
		if err != nil {
			return "", fmt.Errorf("%w: read %q: %w", ErrNoKey, k.File, err)
		}
		return cleanKey(string(data), fmt.Sprintf("the file %q", k.File))
	case k.Env != "":
		value := env(k.Env)
		if value == "" && !k.Needed {
			return "", nil
		}
		return cleanKey(value, "the variable "+k.Env)
	}
	return "", nil
}

// cleanKey is a key without the blanks around it. What cannot stand in a header of a
// request is no key.
func cleanKey(text, where string) (string, error) {
	key := strings.TrimSpace(text)
	switch {
	case key == "":
		return "", fmt.Errorf("%w: %s is empty", ErrNoKey, where)
	case len(key) > MaxKey:
		return "", fmt.Errorf("%w: %s holds more than %d bytes", ErrNoKey, where, MaxKey)
	case strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("%w: %s holds more than one word of ASCII", ErrNoKey, where)
	}
	return key, nil
}
