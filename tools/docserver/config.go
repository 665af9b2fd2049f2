package docserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"sallyport/tools/grant"
)

// KeysEnv names the environment variable that holds public key lines, one a line, for a configuration that
// has none.
const KeysEnv = "SALLYPORT_DOCS_KEYS"

// maxApprovers is the number of grants that one call can carry.
const maxApprovers = 2

// Config is what a document server must be told at its start. None of it ever comes from a model.
type Config struct {
	// Root is the folder of the workspace, which holds sources/ and reports/.
	Root string
	// Scope and Audience must be equal to the claims of a grant.
	Scope, Audience string
	// Keys are the public keys of the approvers, each a line "ed25519 BASE64 NAME".
	Keys []string
	// Ledger is the folder that remembers used candidates, outside of Root. It must exist.
	Ledger string
	// Approvers is the number of grants, by different approvers, that a save needs: 1 (also when zero) or 2.
	Approvers int
	// MirrorText repeats the structured content as text, for hosts that read only text (SPEC D7).
	MirrorText bool
}

// ConfigError tells which setting is wrong, and where it stands.
type ConfigError struct {
	// Place is file:line:col, or less where less is known; empty for a Config that was made in Go.
	Place string
	// Field is the setting, such as "root" or "keys[0]"; empty if the whole is wrong.
	Field string
	// Err is what is wrong with it, or what to do.
	Err error
}

// Error reads "place: field: what is wrong".
func (e *ConfigError) Error() string {
	parts := []string{e.Err.Error()}
	if e.Field != "" {
		parts = append([]string{e.Field}, parts...)
	}
	if e.Place != "" {
		parts = append([]string{e.Place}, parts...)
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns what is wrong.
func (e *ConfigError) Unwrap() error { return e.Err }

// check refuses a configuration that is incomplete, and returns its keys.
func (c Config) check() (grant.Keys, error) {
	for _, text := range []struct {
		field, value string
		max          int
	}{
		{"root", c.Root, 0},
		{"scope", c.Scope, grant.MaxScope},
		{"audience", c.Audience, grant.MaxAudience},
		{"ledger", c.Ledger, 0},
	} {
		if err := checkText(text.value, text.max); err != nil {
			return nil, &ConfigError{Field: text.field, Err: err}
		}
	}
	if c.Approvers < 0 || c.Approvers > maxApprovers {
		return nil, &ConfigError{Field: "approvers", Err: errors.New("must be 1 or 2")}
	}
	return c.checkKeys()
}

func checkText(value string, max int) error {
	switch {
	case strings.TrimSpace(value) == "":
		return errors.New("is missing or empty")
	case !utf8.ValidString(value), strings.ContainsRune(value, 0):
		return errors.New("is not text")
	case max > 0 && len(value) > max:
		return fmt.Errorf("has more than %d bytes", max)
	}
	return nil
}

func (c Config) checkKeys() (grant.Keys, error) {
	if len(c.Keys) == 0 {
		return nil, &ConfigError{Field: "keys", Err: fmt.Errorf(
			"no public key: give lines \"ed25519 BASE64 NAME\" here or in the environment variable %s", KeysEnv)}
	}
	var keys grant.Keys
	for i, line := range c.Keys {
		field := fmt.Sprintf("keys[%d]", i)
		key, err := grant.ParsePublicKey(line)
		if err != nil {
			return nil, &ConfigError{Field: field, Err: err}
		}
		for _, other := range keys {
			if other.ID() == key.ID() || other.Name == key.Name {
				return nil, &ConfigError{Field: field, Err: errors.New("the same key or name is there already")}
			}
		}
		keys = append(keys, key)
	}
	if len(keys) < c.approvers() {
		return nil, &ConfigError{Field: "keys", Err: errors.New("fewer keys than approvers")}
	}
	return keys, nil
}

func (c Config) approvers() int { return max(c.Approvers, 1) }

// LoadConfig reads a configuration file, YAML or JSON, strictly: an unknown, repeated or mistyped setting is
// a [*ConfigError] with file, line and column. Relative paths are taken from the file's folder. Keys come
// from the environment variable [KeysEnv] if the file has none. The result was checked as New does, but
// nothing was opened.
func LoadConfig(path string) (Config, error) {
	if path == "" {
		return Config{}, &ConfigError{Err: errors.New("no configuration file was given")}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return Config{}, &ConfigError{Place: path, Err: plain(err)}
	}
	config, places, err := parseConfig(path, text)
	if err != nil {
		return Config{}, err
	}
	config.Root = fromFile(path, config.Root)
	config.Ledger = fromFile(path, config.Ledger)
	if _, inFile := places["keys"]; !inFile {
		config.Keys = keyLines(os.Getenv(KeysEnv))
	}
	if _, err := config.check(); err != nil {
		var wrong *ConfigError
		if errors.As(err, &wrong) {
			wrong.Place = place(path, places, wrong.Field)
		}
		return Config{}, err
	}
	return config, nil
}

// plain drops the operation and the path that os puts into its errors; the place names the path.
func plain(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

func fromFile(file, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

func keyLines(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// place is where a field stands, or the file if it stands nowhere.
func place(path string, places map[string]string, field string) string {
	if at, ok := places[field]; ok {
		return at
	}
	return path
}
