package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sallyport/agent"
	"sallyport/tools/grant"
)

// Approver names who may sign: a public key in one line, `ed25519 BASE64 NAME`, or only
// the name of one that is known already; with a mapping, also until when.
type Approver struct {
	Key      string
	NotAfter time.Time
	Roles    []string
}

type approverForm struct {
	Key      string   `yaml:"key" check:"required"`
	NotAfter date     `yaml:"not_after"`
	Roles    []string `yaml:"roles"`
}

// UnmarshalConfig reads both forms.
func (a *Approver) UnmarshalConfig(n Node) error {
	if key, ok := n.Text(); ok {
		a.Key = key
	} else {
		var form approverForm
		if err := n.Decode(&form); err != nil {
			return err
		}
		*a = Approver{Key: form.Key, NotAfter: form.NotAfter.Time, Roles: form.Roles}
	}
	if strings.ContainsAny(strings.TrimSpace(a.Key), " \t") {
		if _, err := grant.ParsePublicKey(a.Key); err != nil {
			return fmt.Errorf("a key is one line, `ed25519 BASE64 NAME`: %w", err)
		}
	}
	return nil
}

// date is a day, or a moment, in UTC.
type date struct{ time.Time }

// UnmarshalText reads 2027-01-31 or 2027-01-31T12:00:00Z.
func (d *date) UnmarshalText(text []byte) error {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, string(text)); err == nil {
			d.Time = t.UTC()
			return nil
		}
	}
	return fmt.Errorf("%q is no date: write one such as 2027-01-31 or 2027-01-31T12:00:00Z", text)
}

// named reports whether the approver names the known key: by its line, id or name.
func (a Approver) named(known agent.Approver) bool {
	k, err := grant.ParsePublicKey(known.Key)
	if err != nil {
		return false
	}
	if own, err := grant.ParsePublicKey(a.Key); err == nil {
		return own.ID() == k.ID() && own.Name == k.Name
	}
	return a.Key == k.Name || a.Key == k.ID()
}

// KeysDir is where a user's keys lie, below the user's configuration directory.
const KeysDir = "keys"

// maxKeyFile bounds a public key's file, in bytes.
const maxKeyFile = 4096

// ReadKeys reads the public keys NAME.pub of a directory, in the order of their names.
// A directory that does not exist holds none.
func ReadKeys(dir string) ([]agent.Approver, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the keys in %q: %w", dir, err)
	}
	var keys []agent.Approver
	for _, e := range entries {
		if filepath.Ext(e.Name()) != ".pub" {
			continue
		}
		line, err := readKey(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(keys, func(k agent.Approver) bool { return Approver{Key: line}.named(k) }) {
			continue
		}
		keys = append(keys, agent.Approver{Key: line})
	}
	return keys, nil
}

func readKey(path string) (string, error) {
	data, err := readOwn(path, maxKeyFile)
	if err != nil {
		return "", err
	}
	line := strings.TrimSpace(string(data))
	if _, err := grant.ParsePublicKey(line); err != nil {
		return "", fmt.Errorf("read the public key %q: it is one line, `ed25519 BASE64 NAME`: %w", path, err)
	}
	return line, nil
}
